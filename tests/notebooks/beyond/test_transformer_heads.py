"""Heads of Transformers: what holds by construction, correlations, and the report of the tutorial."""

import html
import re
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.decomposition.components import Components
from companion.results.frames import Table
from companion.results.result import Result
from companion.results.run import computed
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.transformer_heads.experiment import steps_by_reading
from notebooks.beyond.your_own_model import experiment as your_own_model
from notebooks.beyond.your_own_model.report import framed_report
from notebooks.shared.intervals import spearman
from tests.attnlib.models.model_builders import SMALL, batch_of, transformer
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer

KINDS = ("cross", "encoder_self", "decoder_self")

pytestmark = pytest.mark.usefixtures("few_resamples")


def head(task, seed=0, **numbers):
    """A head of cross-attention with zeros but for these."""
    kind = {"positions": "sinusoidal", "kind": "cross", "state": "trained", "varies": 1, "learned": 1}
    return {"task": task, "seed": seed} | kind | dict.fromkeys(experiment.AGAINST, 0.0) | numbers


def heads(*rows):
    return Table.of(rows, experiment.HEAD, "a head")


def value_of(table, **names):
    (row,) = (row for row in table.records() if names.items() <= row.items())
    return row


POSITIONS = pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])


@cache
def judged_heads(positions):
    texts = np.random.default_rng(0).integers(4, 8, size=(60, 5)).tolist()
    batch = batch_of(pairs=[(text, text) for text in texts])
    model_pass = transformer_pass(transformer(positions=positions), batch)
    judgement = JudgedSums(Fit(method="means").update(model_pass)).update(model_pass)
    return judgement, experiment.numbers_of_heads(judgement)


def head_in_second_layer(rows):
    (row,) = (row for row in rows if (row["kind"], row["layer"], row["head"]) == ("cross", 1, 0))
    return row


@POSITIONS
def test_every_head_has_its_numbers(positions):
    _, rows = judged_heads(positions)
    assert len(rows) == len(KINDS) * SMALL.layers * SMALL.heads


@POSITIONS
def test_the_content_share_is_that_of_terms_without_positions(positions):
    judgement, rows = judged_heads(positions)
    shares = judgement.heads["cross.1", 0].shares.covariance
    content = ("input·input", "input·residual", "residual·input", "residual·residual")
    expected = sum(shares[name] for name in content)
    assert head_in_second_layer(rows)["content_share"] == pytest.approx(expected, abs=1e-8)


@POSITIONS
def test_the_mixed_share_is_that_of_positions_with_words(positions):
    judgement, rows = judged_heads(positions)
    shares = judgement.heads["cross.1", 0].shares.covariance
    mixed = shares["temporal·input"] + shares["input·temporal"]
    assert head_in_second_layer(rows)["mixed_share"] == pytest.approx(mixed, abs=1e-8)


@POSITIONS
def test_shares_of_a_head_sum_to_one(positions):
    _, rows = judged_heads(positions)
    parts = ("temporal", "input", "mixed", "residual", "position_bias")
    for row in rows:
        assert sum(row[f"{part}_share"] for part in parts) == pytest.approx(1, abs=1e-6)


@POSITIONS
def test_a_position_bias_counts_where_there_is_one(positions):
    _, rows = judged_heads(positions)
    for row in rows:
        biased = positions == "relative" and row["kind"] != "cross"
        assert (row["position_bias_share"] != 0) == biased
        assert (row["position_rebuilds"] != row["temporal_rebuilds"]) == biased


def test_variance_of_states_by_hand():
    """Word + position has no residual; a product of both signs has nothing but."""
    tokens = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    everywhere = torch.ones(4, 2, dtype=torch.bool)
    place = torch.tensor([0.0, 1.0]).expand(4, 2)
    sums = Components(1, n_tokens=2, n_positions=2, method="least_squares")
    sums.update((3.0 * tokens + place)[..., None], tokens, everywhere)
    signs = Components(1, n_tokens=2, n_positions=2, method="least_squares")
    signs.update(((2.0 * tokens - 1) * (2 * place - 1))[..., None], tokens, everywhere)
    added, product = experiment.state_rows({"added": sums, "product": signs})
    assert (added["input_unique"], added["temporal_unique"]) == pytest.approx((0.9, 0.1))  # 9 : 1
    assert (added["residual"], product["residual"]) == (0, 1)


@pytest.mark.long
def test_the_first_layer_holds_what_it_must(store):
    """As the page says: nothing left before the norm; without added positions nothing after it either."""
    config = tiny("transformer_heads")
    states = experiment.values(config, experiment.compute(config, store))["states"]["one_to_one"]
    for positions in config.positions:
        sites = "encoder.embedded", "encoder.0.self"
        before, after = (states[positions][site]["trained"] for site in sites)
        assert (before["residual"]["value"], before["residual"]["high"]) == (0, 0)
        bare = positions not in ("sinusoidal", "learned")
        assert (after["residual"]["value"] == 0, after["temporal_unique"]["value"] == 0) == (bare, bare)


@pytest.fixture(scope="module")
def two_tasks():
    """Heads of three networks a task, temporal as they are typical, and one of each without shares."""
    draw = np.random.default_rng(3)
    rows = []
    for task, seed in product(("one_to_one", "reordering"), range(3)):
        for typical, share in draw.random((4, 2)):
            shares = {"temporal_share": typical**3, "input_share": share}
            rows.append(head(task, seed, typicality=typical, **shares))
        rows.append(head(task, seed, typicality=0.99, temporal_share=None, varies=0))
    return heads(*rows)


def test_a_correlation_is_over_heads(two_tasks):
    correlation = value_of(experiment.correlations_with_typicality(two_tasks), quantity="temporal_share")
    assert (correlation["value"], correlation["low"], correlation["high"]) == pytest.approx((1, 1, 1))


def test_heads_whose_scores_hardly_vary_are_counted_as_left_out(two_tasks):
    for number in ("temporal_share", "temporal_rebuilds"):  # one that they lack, and one that they have
        correlation = value_of(experiment.correlations_with_typicality(two_tasks), quantity=number)
        assert (correlation["heads"], correlation["left_out"]) == (24, 6)


def test_networks_are_what_is_drawn_anew(two_tasks):
    correlation = value_of(experiment.correlations_with_typicality(two_tasks), quantity="temporal_share")
    assert correlation["n"] == 6


def test_the_correlation_of_heads_is_that_of_all_of_them_together(two_tasks):
    varying = two_tasks.frame.query("varies == 1")
    plain = spearman(varying["typicality"].to_numpy(), varying["input_share"].to_numpy())
    correlation = value_of(experiment.correlations_with_typicality(two_tasks), quantity="input_share")
    assert correlation["value"] == pytest.approx(plain)


def test_a_constant_has_no_correlation(two_tasks):
    correlation = value_of(experiment.correlations_with_typicality(two_tasks), quantity="residual_share")
    assert correlation["value"] is None


def test_tasks_are_drawn_whatever_codes_positions():
    """Shares rise with typicality in one task and fall in the other: every second draw has one alone."""
    rows = []
    networks = product(("sinusoidal", "rotary"), range(2))
    for place, (positions, seed) in enumerate(networks):
        known = {"positions": positions, "seed": seed}
        rows.append(head("one_to_one", typicality=place, temporal_share=place, **known))
        rows.append(head("scan", typicality=place, temporal_share=-place, **known))
    correlation = value_of(experiment.correlations_with_typicality(heads(*rows)), quantity="temporal_share")
    assert (correlation["low"], correlation["high"]) == pytest.approx((-1, 1))


# Temporal shares by seed, on one-to-one and on reordering: 0.9 and 0.4 with sinusoidal positions, 0.6 and 0.5
# with rotary ones; then 0.8 and 0.7, 0.7 and 0.3. The smallest difference is rotary's 0.1, then sinusoidal's.
SINUSOIDAL = (
    head("one_to_one", 0, temporal_share=0.9),
    head("reordering", 0, temporal_share=0.4),
    head("one_to_one", 1, temporal_share=0.8),
    head("reordering", 1, temporal_share=0.7),
)
ROTARY = (
    head("one_to_one", 0, positions="rotary", temporal_share=0.6),
    head("reordering", 0, positions="rotary", temporal_share=0.5),
    head("one_to_one", 1, positions="rotary", temporal_share=0.7),
)
LAST = head("reordering", 1, positions="rotary", temporal_share=0.3)
IN_ORDER = [head("in_order", seed, positions="rotary", temporal_share=0.9) for seed in (0, 1)]


def differ(*rows, difference="one_to_one_less_reordering", positions):
    table = experiment.temporal_differences(heads(*rows))
    return value_of(table, difference=difference, positions=positions)


@pytest.mark.parametrize(
    ("difference", "positions", "expected"),
    [
        pytest.param("one_to_one_less_reordering", "rotary", 0.25, id="between tasks"),
        pytest.param("one_to_one_less_reordering", "smallest", 0.1, id="the smallest seed by seed"),
        pytest.param("sinusoidal_less", "rotary", 0.2, id="between kinds of positions"),
        pytest.param("anchored_less_free", "rotary", 0.25, id="with an opening word"),
    ],
)
def test_temporal_shares_are_subtracted_seed_by_seed(difference, positions, expected):
    rows = (*SINUSOIDAL, *ROTARY, LAST, *IN_ORDER)
    interval = differ(*rows, difference=difference, positions=positions)
    assert interval["value"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "last",
    [pytest.param((), id="is not there"), pytest.param((LAST | {"learned": 0},), id="has not learned")],
)
def test_a_seed_of_which_one_network_counts_not_has_no_smallest_difference(last):
    assert differ(*SINUSOIDAL, *ROTARY, *last, positions="smallest")["n"] == 1


def test_networks_that_have_not_learned_are_not_compared():
    rows = [row | {"learned": 0} for row in (SINUSOIDAL[0], ROTARY[0])]
    assert not experiment.temporal_differences(heads(*rows)).records()


def test_the_last_layer_minus_the_first_is_over_all_heads():
    """The mean of (0.6 − 0.2 + 0)/2 and 0.4; the layer between and other heads do not count."""

    def of(task, layer, share, **others):
        return head(task, positions="rotary", layer=layer, residual_share=share) | others

    differences = experiment.last_minus_first_layer(
        heads(
            of("one_to_one", 1, 0.1),
            of("one_to_one", 1, 0.3),
            of("one_to_one", 2, 9),
            of("one_to_one", 3, 0.6),
            of("reordering", 1, 0.5),
            of("reordering", 3, 0.5),
            of("one_to_one", 1, 0, seed=1),
            of("one_to_one", 3, 0.4, seed=1),
            of("one_to_one", 3, None, seed=1),
            of("one_to_one", 3, 5, state="untrained"),
            of("one_to_one", 3, 5, kind="encoder_self"),
        )
    )
    (row,) = differences.records()
    assert (row["value"], row["n"]) == (pytest.approx(0.3), 2)


def test_of_a_source_with_one_position_the_lexical_probe_is_the_networks_own_probability():
    network, batch = transformer(), batch_of(pairs=[([], [4, 7]), ([], [5])])  # end marks alone
    trace = network(batch)
    probability = trace.logits.softmax(-1).gather(2, trace.target_outputs[..., None])[
        ..., 0
    ]  # (batch, target)
    probe = your_own_model.lexical_probe(network, trace)
    torch.testing.assert_close(probe, (probability * trace.target_mask)[..., None])


def test_positions_of_a_source_have_different_lexical_probes():
    network, batch = transformer(), batch_of()
    probe = your_own_model.lexical_probe(network, network(batch))
    first, second = probe[0, 0, :2].tolist()
    assert first != pytest.approx(second)


@pytest.mark.slow
def test_the_report_says_on_how_many_sentences_it_judged_predictions(store):
    outcome = computed(your_own_model, tiny("your_own_model"), store)
    assert outcome.values["learned"]["sentences"] > 0


@pytest.mark.slow
def test_the_report_says_how_well_heads_agree_with_the_probe(store):
    outcome = computed(your_own_model, tiny("your_own_model"), store)
    cross = [row for row in outcome.tables["heads"] if row["kind"] == "cross"]
    assert all(0 <= row["agreement_with_probe"] <= 1 for row in cross)


def test_every_column_of_a_measured_report_is_declared(store):
    config = tiny("your_own_model")
    (measurement,) = your_own_model.measurements(config)
    measured, tables = measurement.answer(store), your_own_model.compute(config, store)
    for name in your_own_model.ROWS:
        assert set(measured[name][0]) == set(tables[name].frame)


@pytest.fixture(scope="module")
def frame(store):
    config = tiny("your_own_model")
    outcome = computed(your_own_model, config, store)
    numbers = {"values": outcome.values, "tables": outcome.tables}
    return framed_report(Result("your_own_model", "quick", vars(config), data={}, **numbers))


def test_the_frame_of_the_report_lets_nothing_run(frame):
    assert re.match(r'<iframe [^<>]*sandbox="" [^<>]*></iframe>$', frame)
    page = html.unescape(frame.partition('srcdoc="')[2])
    assert not re.search(r"<script|<[^<>]*\s(on\w+|src)=", page)


def test_the_frame_of_the_report_holds_the_page(frame):
    page = html.unescape(frame.partition('srcdoc="')[2])
    assert page.count("<h2") >= 5


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # A B A C: after reading A (steps 1 and 3) the word has a double, after B it has none. D E: never.
        pytest.param(
            (batch_of(pairs=[[[4, 5, 4, 6], [4, 5, 4, 6]], [[7, 8], [7, 8]]]),),
            [
                [[False, False, True, False, False], [False, True, False, False, False]],
                [[False, True, False, True, False], [False, False, False, False, False]],
            ],
            id="a_word_with_a_double_and_none",
        )
    ],
)
def test_steps_by_reading_by_hand(given, expected):
    assert_answer(steps_by_reading(*given), expected)
