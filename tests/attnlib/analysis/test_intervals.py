"""Intervals of corpora whose shares are known, of one analysis and of the difference of two."""

import math
from collections import Counter
from dataclasses import replace
from functools import cache, cached_property, partial

import pytest
import torch
from typer.testing import CliRunner

from attnlib.adapters import Attended, LinearMap, ModelPass
from attnlib.analysis import Stream, analyse, compare, write_report
from attnlib.analysis.compare import MEASURES
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import PARTS as ALL_PARTS
from attnlib.analysis.judge import REBUILT, Judgement, part_of, sample_keys
from attnlib.analysis.report import KEPT
from attnlib.cli import app
from tests.attnlib.adapters.adapter_builders import rotary
from tests.attnlib.analysis.builders import ALL, Toy, assert_same_rows, table_of
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused

WORDS, WIDTH, LONGEST, BATCH = 80, 6, 9, 25
PARTS = ("temporal", "input", "mixed", "residual")


class Known:
    """A cross-attention over states made of a constant, a place, a word and noise, of which each is known.

    Words come as in texts, one as often as all rarer ones by Zipf's law, and prefer some places. With a mark
    every query sequence starts with it, it is nowhere else, and its state is so large.
    """

    def __init__(self, kind="cross", seed=0, noise=(0.7, 0.6), mark=0.0, words=WORDS):
        self.kind, self.noise, self.mark = kind, noise, mark
        sides = range(2 if kind == "cross" else 1)
        normal = partial(torch.randn, generator=generator(seed), dtype=torch.float64)
        self.constant = [normal(WIDTH) for _ in sides]
        self.places = [0.8 * normal(LONGEST, WIDTH) for _ in sides]
        self.words = [normal(words, WIDTH) for _ in sides]
        if mark:
            self.places[0][0] = mark * normal(WIDTH)
            self.words[0] = torch.cat([self.words[0], torch.zeros(1, WIDTH)])
        self.maps = [LinearMap(normal(1, 4, WIDTH), normal(1, 4)) for _ in range(2)]
        self.odds = 1 / torch.arange(1, words + 1)

    def draw(self, samples, seed):
        """Ids, masks, and the four parts of the states of both sides; in self-attention they are one."""
        draw, found, known = generator(seed), [], (self.constant, self.places, self.words, self.noise)
        for constant, place, words, size in zip(*known, strict=False):
            ids = torch.multinomial(self.odds.expand(samples, -1), LONGEST, True, generator=draw)
            ids[:, 1::2] = ids[:, 1::2].sort(1).values  # the rarer ones late
            if self.mark and not found:
                ids[:, 0] = len(self.odds)
            mask = torch.arange(LONGEST) < torch.randint(3, LONGEST + 1, (samples, 1), generator=draw)
            noise = torch.randn(samples, LONGEST, WIDTH, generator=draw, dtype=torch.float64)
            ones = torch.ones_like(noise)
            found.append((ids, mask, torch.stack([constant * ones, place * ones, words[ids], size * noise])))
        return found[0], found[-1]

    def one(self, samples, seed):
        (asks, query_mask, queries), (answers, key_mask, keys) = self.draw(samples, seed)
        states = queries.sum(0), keys.sum(0)
        sites = ("q", "k") if self.kind == "cross" else ("q", "q")
        attended = Attended(self.kind, 0, *states, *sites, *self.maps, scale=0.3)
        tokens = {"target_tokens": asks, "target_outputs": asks, "target_mask": query_mask}
        return ModelPass(source_tokens=answers, source_mask=key_mask, attended=(attended,), **tokens)

    @cached_property
    def shares(self):
        """By another way than the library's: covariances of what the parts known make, over many samples."""
        explained, means = Counter(), []
        for side, (_, mask, parts) in enumerate(self.draw(8000, 9_999)):
            first = int(bool(self.mark) and side == 0)  # the mark and its place share no mean with the others
            apart = (torch.arange(LONGEST) >= first)[:, None] * parts[2, :, first:][mask[:, first:]].mean(0)
            means.append((apart, (parts[1] + apart)[mask].mean(0)))
        for seed in range(8):
            (_, query_mask, queries), (_, key_mask, keys) = self.draw(1000, 10_000 + seed)
            mapped = []
            for parts, (word, mean), own in zip((queries, keys), means, self.maps, strict=True):
                # the mean of words is the places', that of places is constant
                parts = [parts[0] + mean, parts[1] + word - mean, parts[2] - word, parts[3]]
                moved = torch.stack(parts) @ own.weight[0].T
                moved[0] += own.bias[0]
                mapped.append(moved)
            allowed = query_mask[:, :, None] & key_mask[:, None]
            terms = torch.einsum("ibsw,jbtw->ijbst", *mapped) * allowed
            counts = allowed.sum(-1, keepdim=True).clamp(min=1)
            terms = (terms - terms.sum(-1, keepdim=True) / counts) * allowed
            names = ("constant", *PARTS[:2], "residual")
            explains = (terms * terms.sum((0, 1))).sum((2, 3, 4))
            for i, mine in enumerate(names):
                for j, other in enumerate(names):
                    explained[part_of(f"{mine}·{other}")] += float(explains[i, j])
        return {part: explained[part] / sum(explained.values()) for part in PARTS}


known = cache(Known)
marked = partial(known, noise=(0.3, 0.3), mark=3.0)


def analysis_of(model, lines, seed, **options):
    sizes = enumerate(min(BATCH, lines - first) for first in range(0, lines, BATCH))
    batches = [(size, seed * 1000 + number) for number, size in sizes]
    return analyse(Stream(lambda own: model.one(*own), batches), **options)


def analysed(model, lines, seed, **options):
    return analysis_of(model, lines, seed, **options).heads[0]


def assert_covered(held, corpora):
    """Within what 95 of 100 may come to in so many corpora, and in many 92 to 98."""
    slack = max(0.03, 3.3 * (0.95 * 0.05 / corpora) ** 0.5)
    shares = {part: count / corpora for part, count in held.items()}
    assert shares == pytest.approx(dict.fromkeys(held, 0.95), abs=slack)


@pytest.mark.parametrize(
    ("kind", "mark", "lines", "corpora", "bias"),
    [
        ("cross", "", 200, 25, 0.04), ("encoder_self", "", 200, 25, 0.04), ("cross", "marked", 200, 25, 0.04),
        *(pytest.param(*own, 0.01, marks=pytest.mark.long)
          for own in (("cross", "", 200, 500), ("cross", "", 800, 100), ("encoder_self", "", 200, 300),
                      ("cross", "marked", 200, 300), ("cross", "marked", 800, 100),
                      ("encoder_self", "marked", 200, 300))),
    ],
)  # fmt: skip
def test_intervals_hold_the_shares_of_corpora_and_in_the_mean_shares_are_hardly_off(
    kind, mark, lines, corpora, bias
):
    held, off, model = Counter(), Counter(), (marked if mark else known)(kind)
    for seed in range(1, corpora + 1):
        row = analysed(model, lines, seed)
        for part, share in model.shares.items():
            held[part] += row[f"{part}_low"] <= share <= row[f"{part}_high"]
            off[part] += (row[f"{part}_share"] - share) / corpora
    assert_covered(held, corpora)
    assert max(map(abs, off.values())) < bias


def test_shares_do_not_move_with_the_corpus_where_a_mark_has_a_place_to_itself():
    """Though more words are seen in more text, and the state of the mark is large: nothing hangs on it."""
    model, corpora = known("cross", noise=(0.3, 0.3), mark=6.0, words=400), 12
    few, many = [analysed(model, 200, seed) for seed in range(1, corpora + 1)], analysed(model, 3200, 1)
    for part, share in model.shares.items():
        assert many[f"{part}_low"] <= share <= many[f"{part}_high"]
        assert sum(row[f"{part}_share"] for row in few) / corpora == pytest.approx(share, abs=0.02)


def test_shares_do_not_move_with_the_corpus_and_intervals_narrow():
    """As residuals of means do, to which words that were not fitted on are added."""
    model, widths = known("cross"), []
    for lines in (200, 3200):
        row = analysed(model, lines, 7)
        widths.append(row["residual_high"] - row["residual_low"])
    assert 2.5 < widths[0] / widths[1] < 7  # 4, were all corpora alike
    few = analysed(model, 200, 7, method="means")["residual_share"]
    many = analysed(model, 3200, 7, method="means")["residual_share"]
    assert few > many + 0.02


@pytest.mark.parametrize(("left", "part"), [("words", "input"), ("places", "temporal")])
def test_of_states_of_words_alone_all_is_input_and_of_places_alone_all_is_temporal(left, part):
    """Whatever the mean of the words is: a constant query with a word is about words. Means call it mixed."""
    model = Known("encoder_self", seed=3, noise=(0, 0))
    for name in {"words", "places"} - {left}:
        for own in getattr(model, name):
            own.zero_()
    row = analysed(model, 200, 1)
    assert row[f"{part}_share"] == pytest.approx(1, abs=1e-6)
    assert row[f"{part}_low"] == pytest.approx(1, abs=1e-6) == row[f"{part}_high"]
    assert row["no_residual_rebuilds"] == pytest.approx(1, abs=1e-6)
    if part == "input":
        as_in_the_papers = analysed(model, 200, 1, method="means")
        assert as_in_the_papers["input_share"] < 0.9
        assert row["constant_input_share"] > 0.1


def test_with_a_rotation_what_is_constant_depends_on_position():
    """Then the terms of a constant key stay, and all terms still make the scores."""
    model, turn = Known("encoder_self", seed=4), rotary(LONGEST, 4)
    one = model.one(BATCH, 1)
    (own,) = one.attended
    rotated = replace(one, attended=(replace(own, query_rotation=turn, key_rotation=turn),))
    for given, count in ((one, 12), (rotated, 16)):
        judgement = Judgement(Fit(method="least_squares").update(given)).update(given)
        ((_, sums),) = judgement.heads.items()
        assert len(sums.terms.terms) == count
        assert sum(sums.terms.result().covariance.values()) == pytest.approx(1)
        spread = sums.terms.result().spread
        scores = given.attended[0].scores[:, 0]
        allowed = given.allowed(given.attended[0])
        mean = (scores * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True).clamp(min=1)
        assert spread == pytest.approx(float((scores - mean)[allowed].square().mean().sqrt()))


def test_words_that_were_not_fitted_on_move_no_share():
    """Whatever their states are: a wild one would be called residual, and more so in a small corpus."""
    model = known("cross")
    fit = Fit(method="least_squares").update(model.one(BATCH, 1))
    one, sums = model.one(BATCH, 2), []
    new = torch.zeros_like(one.source_tokens, dtype=torch.bool)
    new[::2, 1] = True
    one = replace(one, source_tokens=one.source_tokens.masked_fill(new, WORDS + 1))
    (own,) = one.attended
    for factor in (1, 30):
        keys = torch.where(new[:, :, None], factor * own.key_inputs, own.key_inputs)
        judged = Judgement(fit).update(replace(one, attended=(replace(own, key_inputs=keys),)))
        ((_, found),) = judged.heads.items()
        sums.append(found.terms.sums)
    assert judged.seen["k"]["unseen_words"] >= int((new & one.source_mask).sum()) > 5
    for name in ("absolute", "products", "moments", "similarity"):
        torch.testing.assert_close(*(own[name] for own in sums))


# Two analyses: a head does not differ from itself, an altered one does.

BATCHES = range(25)


def toy(altered=0.0, kinds=("cross",)):
    """Its second head asks for something else the more it is altered."""
    made = Toy(kinds, bias=True)
    query, key = made.maps["cross"]
    weight = query.weight.clone()
    weight[1] += altered * torch.randn(weight[1].shape, generator=generator(5), dtype=weight.dtype)
    made.maps["cross"] = [LinearMap(weight, query.bias), key]
    return made


@pytest.fixture(scope="module")
def first():
    return analyse(Stream(toy(), BATCHES))


@pytest.fixture(scope="module")
def second():
    return analyse(Stream(toy(3.0), BATCHES))


def test_a_head_that_was_altered_differs_and_the_other_does_not(first, second):
    found = compare(first, second)
    assert found.paired
    assert len(found.rows) == 2 * len(MEASURES)
    assert {row["head"] for row in found.differing} == {1}
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in found.rows if row["head"] == 0)
    values = {(row["head"], row["measure"]): row for row in found.rows}
    for row, other in zip(first.heads, second.heads, strict=True):
        for measure in MEASURES:
            own = values[row["head"], measure]
            assert (own["first"], own["second"]) == (row[measure], other[measure])
            assert own["low"] <= own["high"]
    back = {(row["head"], row["measure"]): row for row in compare(second, first).rows}
    assert all(back[place]["low"] == pytest.approx(-row["high"]) for place, row in values.items())


def test_the_same_sentences_narrow_the_interval_of_a_small_change(first):
    """Of other sentences all that varies from one to the next is in it."""
    little = compare(first, analyse(Stream(toy(0.02), BATCHES)))
    other = compare(first, analyse(Stream(toy(0.02), range(100, 125))))
    assert (little.paired, other.paired) == (True, False)
    for mine, theirs in zip(little.rows, other.rows, strict=True):
        if mine["head"] == 1:
            assert mine["high"] - mine["low"] < 0.3 * (theirs["high"] - theirs["low"])


def test_blocks_add_up_to_what_the_rows_say(first):
    for row in first.heads:
        *sums, rows = first.blocks[f"{row['kind']}.{row['layer']}", row["head"]].sum(0).tolist()
        assert rows == row["rows"]
        explained = sums[: len(ALL_PARTS)]
        for measure, own in zip(MEASURES, sums, strict=True):
            whole = rows if measure.endswith("rebuilds") else sum(explained)
            assert own / whole == pytest.approx(row[measure])
    assert len(MEASURES) == len(ALL_PARTS) + len(REBUILT)


def test_a_sentence_has_its_key_in_whatever_batch():
    """Alone and without padding as well; another word on either side is another key."""
    one = replace(toy()(0), attended=())
    keys = sample_keys(one)
    assert len(set(keys.tolist())) == len(keys)
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    for row, key in enumerate(keys):
        given = {name: getattr(one, name)[row, one.mask(name[:6])[row]][None] for name in names}
        alone = replace(one, **given)
        assert sample_keys(alone).tolist() == [key]
        for name in ("source_tokens", "target_outputs"):
            changed = getattr(alone, name).clone()
            changed[0, -1] += 1
            assert sample_keys(replace(alone, **{name: changed})).tolist() != [key]


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_differences_of_two_models_whose_shares_are_known(paired):
    models, corpora, held = (known("cross"), Known("cross", seed=11)), 30, Counter()
    for seed in range(1, corpora + 1):
        other = seed if paired else seed + 100
        found = compare(analysis_of(models[0], 200, seed), analysis_of(models[1], 200, other))
        assert found.paired == paired
        for row in found.rows:
            part = row["measure"].removesuffix("_share")
            if part in models[0].shares:
                difference = models[1].shares[part] - models[0].shares[part]
                held[part] += row["low"] <= difference <= row["high"]
    assert_covered(held, corpora)


@pytest.mark.parametrize(("times", "warned"), [(1.4, False), (1.6, True), (1 / 1.6, True)])
def test_where_one_is_of_much_more_text_a_note_says_what_that_moves(first, times, warned, tmp_path):
    other = replace(first, fitted=round(times * first.fitted))
    for name, own in (("one", first), ("other", other)):
        write_report(own, tmp_path / name)
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "one"), str(tmp_path / "other")])
    found = compare(first, other)
    assert done.stdout.splitlines() == [repr(found), *found.notes]
    assert found.table().attrs["notes"] == found.notes
    assert len(found.notes) == warned
    assert all(f"on {first.fitted:,} samples" in note for note in found.notes)


def test_without_held_out_sentences_nothing_is_known_of_how_sure_it_is(first):
    found = compare(first, replace(first, held_out=False))
    assert all(math.isnan(row["low"]) and math.isnan(row["high"]) for row in found.rows)
    assert found.differing == []
    assert repr(found).endswith("no difference has an interval")


def test_options_that_make_other_sentences_are_named(first):
    other = replace(first, made={"options": {"--ignore-special": True, "--batch-size": 3}})
    assert compare(first, other).notes == ["--ignore-special differs: heads may differ for that alone."]


def test_heads_of_one_alone_are_named_and_none_in_both_is_an_error(first):
    more = analyse(Stream(toy(kinds=ALL), BATCHES))
    assert compare(first, more).alone == tuple(f"{kind}.0 head {n}" for kind in ALL[1:] for n in range(2))
    rest = replace(more, heads=[row for row in more.heads if row["kind"] != "cross"])
    for other, said in (
        (rest, "no head is in both: the first has cross.0 head 0, … analyse the"),
        (replace(first, blocks={}), "the second analysis has no blocks of sentences: make it again"),
        (replace(first, method="means"), "one is by least_squares, the other by means: analyse both"),
    ):
        assert_refused(partial(compare, first, other), said)


def test_the_command_says_which_heads_differ(first, second, tmp_path):
    for name, own in (("one", first), ("other", second)):
        write_report(own, tmp_path / name)
    table = tmp_path / "differences.csv"
    words = ["compare", str(tmp_path / "one"), str(tmp_path / "other"), "--out", str(table)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = compare(first, second)
    assert done.stdout.startswith(f"{found!r}\n")
    said = done.stdout.splitlines()[1:]
    assert len(said) == len(found.differing) > 1
    assert said[0].startswith(f"cross.0 head 1, {found.differing[0]['measure']}: ")
    assert_same_rows(table_of(table), found.rows, tolerance=1e-8)
    done = CliRunner().invoke(app, ["compare", str(tmp_path), str(tmp_path)])
    assert done.exit_code == 2
    assert f"holds no {KEPT}" in done.stderr
