"""Parts that come from elsewhere: what moves, what cannot, and what a forward pass would have given."""

import math
from dataclasses import replace

import pytest
import torch

from attnlib.analysis import Stream
from attnlib.analysis.heads import Head
from attnlib.analysis.interventions import (
    CALIBRATION_COLUMNS,
    INTERVENTION_COLUMNS,
    WAYS,
    Donors,
    InterventionSums,
    attributions,
    calibration_rows,
    intervention_rows,
    spearman,
)
from attnlib.analysis.judge import JudgedSums
from attnlib.decomposition import STATE_PARTS
from attnlib.decomposition.rows import total_variation
from attnlib.decomposition.term_names import NINE
from attnlib.errors import BadInput
from attnlib.linear_map import LinearMap
from attnlib.report import PartialSums, analyse, read_report, write_report
from attnlib.trace import Attention, Trace
from tests.attnlib.adapters.adapter_builders import rotary
from tests.attnlib.analysis.builders import ALL, HEADS, Toy, assert_same_rows, fit_of
from tests.attnlib.models.model_builders import generator

LENGTH, WIDTH = 4, 6


def pass_of(source, target, seed=0, *, rotation=None, bias=None):
    """Two heads over states of place, word and noise; all samples are of one length."""
    draw = generator(seed)

    def states(tokens, words, places):
        noise = torch.randn(*tokens.shape, WIDTH, generator=draw, dtype=torch.float64)
        return words[tokens] + places[: tokens.shape[1]] + noise

    tables = generator(99)
    words, places = (torch.randn(9, WIDTH, generator=tables, dtype=torch.float64) for _ in range(2))
    maps = [LinearMap(torch.randn(2, 4, WIDTH, generator=tables, dtype=torch.float64) / 2) for _ in range(2)]
    attended = Attention(
        "cross",
        0,
        query_inputs=states(target, words, places),
        key_inputs=states(source, words.flip(0), places.flip(0)),
        query_site="decoder",
        key_site="encoder",
        maps=tuple(maps),
        scale=0.5,
        position_bias=bias,
        query_rotation=rotation,
        key_rotation=rotation,
    )
    return Trace(
        source_tokens=source,
        source_mask=torch.ones_like(source, dtype=torch.bool),
        target_tokens=target,
        target_outputs=target,
        target_mask=torch.ones_like(target, dtype=torch.bool),
        attentions=(attended,),
    )


def random_pass(seed=0, samples=6, **options):
    draw = generator(seed)
    source, target = (torch.randint(0, 9, (samples, LENGTH), generator=draw) for _ in range(2))
    return pass_of(source, target, seed, **options)


def judged(model_pass, method="means"):
    return JudgedSums(fit_of([model_pass], method=method), interventions=True).update(model_pass)


def effects(judgement):
    rows = intervention_rows(judgement.moved)
    return {(row["head"], row["way"], row["side"], row["part"]): row["moved"] for row in rows}


# What moves.


@pytest.mark.parametrize("method", ["means", "least_squares"])
@pytest.mark.parametrize("rotated", [False, True], ids=["plain", "rotary"])
def test_exchanging_all_parts_of_both_sides_gives_the_other_samples_attention(method, rotated):
    """Two samples of one length each have the other as their partner."""
    model_pass = random_pass(samples=2, rotation=rotary(LENGTH, 4) if rotated else None)
    measured = effects(judged(model_pass, method))
    attention = model_pass.attentions[0].scores.softmax(-1)  # (samples, heads, target, source)
    for head in range(2):
        expected = float(total_variation(attention[0, head], attention[1, head]).mean())
        assert measured[head, "exchange", "both", "state"] == pytest.approx(expected)


@pytest.mark.signatures
def test_exchanging_a_part_of_a_state_is_what_a_pass_with_that_state_gives():
    """Residuals of the keys, by hand: states with the partner's residual go through the scores again."""
    model_pass = random_pass(samples=2)
    judgement = judged(model_pass)
    attended = model_pass.attentions[0]
    encoder = judgement.fit.components["encoder"]
    parts = encoder.split(attended.key_inputs, model_pass.source_tokens, model_pass.source_mask)
    patched = attended.key_inputs - parts.residual + parts.residual.flip(0)
    after = replace(attended, key_inputs=patched).scores.softmax(-1)
    expected = total_variation(after, attended.scores.softmax(-1)).mean((0, 2))  # (heads,)
    measured = effects(judgement)
    for head in range(2):
        assert measured[head, "exchange", "keys", "residual"] == pytest.approx(float(expected[head]))


def test_exchanging_identical_samples_moves_nothing():
    """A temporal part comes from another position of the same sample, and does move attention."""
    twin = random_pass(samples=1)
    attended = twin.attentions[0]
    inputs = {name: getattr(attended, name).repeat(3, 1, 1) for name in ("query_inputs", "key_inputs")}
    tokens = {
        name: getattr(twin, name).repeat(3, 1)
        for name in ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    }
    triplet = Trace(**tokens, attentions=(replace(attended, **inputs),))
    for (_, way, _, part), moved in effects(judged(triplet)).items():
        if way == "exchange" and part != "temporal":
            assert moved == pytest.approx(0, abs=1e-12)
        if part == "temporal":
            assert moved > 0.01


def test_no_part_no_effect():
    """States without residual: whatever its residuals are exchanged for, attention stays."""
    model_pass = random_pass()
    fit = fit_of([model_pass])
    attended = model_pass.attentions[0]
    without = {}
    for site, (side, states) in model_pass.sites().items():
        parts = fit.components[site].split(states, model_pass.tokens(side), model_pass.mask(side))
        without[site] = parts.temporal + parts.input
    attended = replace(attended, query_inputs=without["decoder"], key_inputs=without["encoder"])
    judgement = JudgedSums(fit, interventions=True).update(replace(model_pass, attentions=(attended,)))
    for (_, _, _, part), moved in effects(judgement).items():
        if part == "residual":
            assert moved == pytest.approx(0, abs=1e-12)
        else:
            assert moved > 0


def test_temporal_parts_come_from_the_same_place_either_way():
    measured = effects(judged(random_pass()))
    for (head, way, side, part), moved in measured.items():
        if part == "temporal":
            assert moved == measured[head, WAYS[0], side, part], way


# Where parts come from.


def drawn(lengths, seed=0):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    draw = generator(seed)
    return mask, Donors.drawn(mask, torch.arange(len(lengths)), draw)


def test_a_partner_is_the_next_sample_that_is_long_enough():
    _, donors = drawn([3, 1, 2])
    assert donors.partner.tolist() == [[1, 2, 0], [2, 1, 1], [0, 0, 2]]


def test_resampled_places_are_those_that_count_each_once():
    mask, donors = drawn([3, 1, 2, 4])
    taken = torch.stack([donors.across_sample[mask], donors.across_position[mask]], 1).tolist()
    assert sorted(taken) == mask.nonzero().tolist()
    assert taken != mask.nonzero().tolist()


def test_positions_of_a_sample_are_put_into_another_order():
    mask, donors = drawn([4, 2, 3])
    for sample, valid in enumerate(mask):
        assert sorted(donors.within[sample][valid].tolist()) == list(range(int(valid.sum())))


@pytest.mark.parametrize(
    ("way", "part", "places"),
    [
        ("exchange", "residual", "partner"),
        ("resample", "residual", "across"),
        ("exchange", "temporal", "within"),
    ],
)
def test_values_are_taken_from_the_donors_of_their_part(way, part, places):
    _, donors = drawn([3, 1, 2])
    values = torch.arange(9).view(3, 3, 1)  # sample · 3 + position
    own_sample = torch.arange(3)[:, None]
    expected = {
        "partner": 3 * donors.partner + torch.arange(3),
        "across": 3 * donors.across_sample + donors.across_position,
        "within": 3 * own_sample + donors.within,
    }
    assert torch.equal(donors.origin(way, part).of(values)[..., 0], expected[places])


# Sums, and the analysis.


def test_halves_merge_to_the_whole():
    passes = [random_pass(seed) for seed in range(3)]
    fit = fit_of(passes)
    whole = JudgedSums(fit, interventions=True)
    for model_pass in passes:
        whole.update(model_pass)
    first, second = (JudgedSums(fit, interventions=True) for _ in range(2))
    first.update(passes[2])
    second.update(passes[0]).update(passes[1])
    assert effects(first + second) == pytest.approx(effects(whole))


@pytest.mark.signatures
def test_a_sample_alone_has_nothing_to_exchange_with():
    judgement = judged(random_pass(samples=1))
    assert judgement.moved == {}
    assert all(math.isnan(effect["moved"]) for effect in InterventionSums([0]).effects())


def test_an_analysis_has_effects_of_every_head_where_they_are_asked_for():
    stream = Stream(Toy(ALL, bias=True, ignored=(3,)), range(10))
    plain, with_effects = analyse(stream), analyse(stream, interventions=True)
    assert plain.heads == with_effects.heads
    assert plain.interventions == []
    frame = with_effects.tables.interventions()
    assert list(frame.columns) == list(INTERVENTION_COLUMNS)
    assert len(frame) == len(ALL) * HEADS * 2 * 3 * 4
    assert frame["moved"].between(0, 1).all()
    rows = {(row["kind"], row["head"]): row["rows"] for row in with_effects.heads}
    assert all(rows[row["kind"], row["head"]] == row["rows"] for row in with_effects.interventions)
    with pytest.raises(BadInput, match="interventions=True"):
        plain.tables.calibration()


def test_a_part_that_is_kept_without_interventions_is_not_taken_for_one_with(tmp_path):
    stream, keep = Stream(Toy(), range(10)), PartialSums(tmp_path, {})
    analyse(stream, keep=keep)
    with pytest.raises(BadInput, match="other interventions"):
        analyse(stream, keep=keep, interventions=True)


def test_kept_interventions_are_read_again(tmp_path):
    stream, keep = Stream(Toy(), range(10)), PartialSums(tmp_path, {})
    first = analyse(stream, keep=keep, interventions=True)
    again = analyse(stream, keep=keep, interventions=True)
    assert again.interventions == first.interventions


def test_effects_are_read_back_from_a_report(tmp_path):
    analysis = analyse(Stream(Toy(), range(10)), interventions=True)
    write_report(analysis, tmp_path)
    again = read_report(tmp_path)
    assert_same_rows(again.interventions, analysis.interventions, tolerance=1e-8)


def test_a_report_has_effects_beside_shares(tmp_path):
    analysis = analyse(Stream(Toy(), range(10)), interventions=True)
    write_report(analysis, tmp_path)
    markup = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Shares against effects" in markup
    assert "Own, split and any-term share of each part" in markup
    assert (tmp_path / "interventions.csv").is_file()


def test_a_report_without_interventions_has_no_effects(tmp_path):
    write_report(analyse(Stream(Toy(), range(10))), tmp_path / "plain")
    assert "Shares against effects" not in (tmp_path / "plain/index.html").read_text(encoding="utf-8")


# Calibration.


def term_rows(shares, head=0):
    covariance = dict.fromkeys(NINE, 0.0) | shares
    return [
        {"kind": "cross", "layer": 0, "head": head, "term": term, "covariance_share": share}
        | {"mean_absolute_share": share, "similarity_without": 1 - share}
        for term, share in covariance.items()
    ]


def test_hand_worked_attributions():
    rows = term_rows({"temporal·temporal": 0.25, "temporal·residual": 0.5, "residual·temporal": 0.25})
    assert attributions(rows, "temporal", "both") == {
        "own": 0.25, "split": 0.625, "any_term": 1.0, "mean_absolute": 0.625, "substitution": 0.25,
    }  # fmt: skip
    assert attributions(rows, "residual", "query")["any_term"] == 0.25
    assert attributions(rows, "residual", "keys")["any_term"] == 0.5


@pytest.mark.signatures
def test_rank_correlations_are_over_heads_part_by_part():
    """Of three heads, the one with the larger share moves further; a head that attends evenly is left out."""
    shares, moved = (0.2, 0.5, 0.9, 0.3), (0.1, 0.3, 0.4, 1.0)
    terms, interventions = [], []
    for head, (share, effect) in enumerate(zip(shares, moved, strict=True)):
        terms += term_rows({"temporal·temporal": share, "input·input": 1 - share}, head)
        for part in STATE_PARTS:
            values = ("cross", 0, head, "exchange", "keys", part, effect, 5)
            interventions.append(dict(zip(INTERVENTION_COLUMNS, values, strict=True)))
    rows = calibration_rows(terms, interventions, even=[Head("cross.0", 3)])
    assert all(tuple(row) == tuple(CALIBRATION_COLUMNS) for row in rows)
    of_part = {row["part"]: row["rank_correlation"] for row in rows if row["attribution"] == "own"}
    assert of_part["temporal"] == pytest.approx(1)
    assert of_part["input"] == pytest.approx(-1)
    assert math.isnan(of_part["residual"])  # its shares do not differ
    assert {row["heads"] for row in rows} == {3}


@pytest.mark.parametrize("seed", range(3))
def test_rank_correlation_agrees_with_scipy(seed):
    stats = pytest.importorskip("scipy.stats")
    pairs = torch.randint(0, 5, (12, 2), generator=generator(seed)).double().numpy()
    assert spearman(pairs) == pytest.approx(stats.spearmanr(*pairs.T).statistic)
