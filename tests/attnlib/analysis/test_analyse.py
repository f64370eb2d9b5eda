"""A corpus to an analysis: what is held out and shown, parts, kills and damage, what a reader must know."""

import json
import math
import shutil
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.adapters import Modules
from attnlib.analysis import CorpusGaps, HoldOut, Shard, Stream, samples
from attnlib.analysis.counted import counted_attention
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.learned import Learned
from attnlib.analysis.passes import fit_shard, judge_shard
from attnlib.analysis.results import HEAD_COLUMNS
from attnlib.analysis.samples import LONGEST
from attnlib.analysis.stream import STAGES
from attnlib.commands.analyse import choose_threads
from attnlib.errors import CorruptFile
from attnlib.report import analyse, compare
from attnlib.report.findings import notes
from attnlib.report.page import page
from attnlib.report.resume import PartialSums, merged_analysis, merged_fit
from tests.attnlib.adapters.adapter_builders import BATCH, HOOKED, Reader, run
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import ALL, HEADS, Toy, fit_of, judged
from tests.attnlib.refusals import assert_refused, flip, refused

pytestmark = pytest.mark.slow

TOY = Toy(ALL, ignored=(3,), bias=True)
WHOLE = Shard()


def stream_of(batches=20, *, probed=2, killed_at=None, seen=None):
    def trace(number):
        if number == killed_at:
            raise SystemExit
        if seen is not None:
            seen.append(number)
        return TOY(number)

    return Stream(
        trace, range(batches), TOY.probe, probed=probed, losses=lambda number: CorpusGaps(number, 1)
    )


def keep_of(folder, seconds=0.0, **asked):
    return PartialSums(folder, {"model": "toy", "layers": (0,)} | asked, seconds)


@pytest.mark.parametrize("method", ["means", "least_squares"])
@pytest.mark.parametrize(
    ("batches", "every", "held"), [(12, 4, (3, 7, 11)), (1, 5, ()), (4, 5, ()), (6, 1, ())]
)
def test_an_analysis_judges_the_batches_held_out_of_its_fit(batches, every, held, method):
    """Where nothing is held out because the corpus is too small, or by wish, on the same."""
    analysis = analyse(stream_of(batches, probed=None), every=every, method=method)
    fitted = [number for number in range(batches) if number not in held]
    fit = fit_of(map(TOY, fitted), method=method)
    expected = judged(fit, map(TOY, held or fitted), TOY.probe)
    toys.assert_same_rows(
        [*analysis.heads, *analysis.terms, *analysis.states], toys.rows_of(expected, bool(held))
    )


@pytest.mark.parametrize("method", ["means", "least_squares"])
@pytest.mark.parametrize(
    ("batches", "every", "held"), [(12, 4, (3, 7, 11)), (1, 5, ()), (4, 5, ()), (6, 1, ())]
)
def test_an_analysis_without_held_out_batches_has_no_intervals(batches, every, held, method):
    analysis = analyse(stream_of(batches, probed=None), every=every, method=method)
    assert held or all(math.isnan(row["input_low"]) for row in analysis.heads)


@pytest.mark.parametrize("method", ["means", "least_squares"])
@pytest.mark.parametrize(
    ("batches", "every", "held"), [(12, 4, (3, 7, 11)), (1, 5, ()), (4, 5, ()), (6, 1, ())]
)
def test_an_analysis_counts_what_it_fitted(batches, every, held, method):
    analysis = analyse(stream_of(batches, probed=None), every=every, method=method)
    assert analysis.held_out == bool(held) == (0 < analysis.judged < analysis.fitted)
    assert held or analysis.fitted == analysis.judged > 0


def test_rows_of_heads_have_the_columns_that_are_declared():
    rows = analyse(Stream(TOY, range(5))).heads
    assert {tuple(row) for row in rows} == {tuple(HEAD_COLUMNS)}


def test_rows_are_ordered_by_kind_layer_head():
    def trace(number):
        model_pass = TOY(number)
        layers = [
            replace(attention, layer=layer)
            for layer in (10, 2)
            for attention in reversed(model_pass.attentions)
        ]
        return replace(model_pass, attentions=tuple(layers))

    analysis = analyse(Stream(trace, range(5)))
    places = [(row["kind"], row["layer"], row["head"]) for row in analysis.heads]
    assert places == [(kind, layer, head) for kind in ALL for layer in (2, 10) for head in range(HEADS)]
    assert list(analysis.samples[0].attention) == [(f"{kind}.{layer}", head) for kind, layer, head in places]


def test_the_first_samples_judged_are_shown_whole():
    analysis, model_pass = analyse(Stream(TOY, range(5), TOY.probe)), TOY(4)
    counted = {side: model_pass.counted(side) for side in ("source", "target")}
    whole = (counted["source"].any(1) & counted["target"].any(1)).nonzero()[:, 0].tolist()
    assert len(analysis.samples) == len(whole) > 1
    for row, shown in zip(whole, analysis.samples, strict=True):
        valid = {side: model_pass.mask(side)[row] for side in counted}
        assert torch.equal(shown.source, model_pass.source_tokens[row][valid["source"]])
        assert torch.equal(shown.read, model_pass.target_tokens[row][valid["target"]])
        assert torch.equal(shown.target, model_pass.target_outputs[row][valid["target"]])
        probe = TOY.probe(model_pass)[row][valid["target"]][:, valid["source"]]
        torch.testing.assert_close(shown.probe, probe)
        for attended, head in product(model_pass.attentions, range(HEADS)):
            asks, answers = model_pass.sides(attended.kind)
            full, allowed = (matrix[row] for matrix in counted_attention(model_pass, attended, head))
            seen = counted[asks][row][:, None] & counted[answers][row] & allowed
            full, seen = (matrix[valid[asks]][:, valid[answers]] for matrix in (full, seen))
            matrix = shown.attention[attended.name, head]
            torch.testing.assert_close(matrix, full.masked_fill(~seen, torch.nan), equal_nan=True)
    assert analyse(Stream(TOY, range(5))).samples[0].probe is None


@pytest.mark.parametrize("bias", [True, False])
def test_what_terms_rebuild_of_the_sentences_shown_is_what_the_rows_say(bias):
    """Of the only batch that is judged: 1 − total variation, over rows of two positions at least."""
    toy = Toy(ALL, bias=bias)
    analysis = analyse(Stream(toy, range(5)), method="means")
    assert len(analysis.samples) == analysis.judged
    for row in analysis.heads:
        maps = [sample.maps[f"{row['kind']}.{row['layer']}", row["head"]] for sample in analysis.samples]
        for place, measure in enumerate(("temporal", "input", "no_residual"), start=1):
            similar = []
            for matrices in maps:
                full = (~matrices[0].isnan()).sum(-1) >= 2
                apart = (matrices[place] - matrices[0]).abs().nan_to_num().sum(-1)[full] / 2
                similar += (1 - apart).tolist()
            assert sum(similar) / len(similar) == pytest.approx(row[f"{measure}_rebuilds"], abs=1e-9)


@pytest.mark.parametrize("entries", [4 * HEADS * 3 * 20, 4 * HEADS * 9, samples.ENTRIES])
def test_no_more_entries_are_kept_than_fit(monkeypatch, entries):
    monkeypatch.setattr(samples, "ENTRIES", entries)
    shown_samples = analyse(Stream(Toy(), range(5))).samples
    assert sum(maps.numel() for sample in shown_samples for maps in sample.maps.values()) <= entries
    assert len(shown_samples) >= 1
    assert analyse(Stream(Toy(), range(5)), heads=[0]).samples[0].maps.keys() == {("cross.0", 0)}


def test_a_long_sentence_is_cut():
    length = LONGEST + 5
    model_pass = toys.by_hand([[1.0] * length] * 3)
    analysis = analyse(Stream(lambda model_pass: model_pass, [model_pass] * 5))
    assert analysis.samples[0].source.tolist() == list(range(LONGEST))
    assert analysis.samples[0].lengths == (length, 3)
    assert analysis.samples[0].maps["cross.0", 0].shape == (4, 3, LONGEST)
    note = f"Shown are the first {LONGEST} positions of a side; the source has {length}"
    assert note in page(analysis, "A title", lambda _, token: str(token))


def read(keep, stream, part=WHOLE, order=None):
    """Both readings of all parts of a corpus, kept; the second in another order than the first."""
    parts = part.all_shards()
    for shard in order or range(part.of):
        fit_shard(stream, parts[shard], method="means", keep=keep)
    fit = merged_fit(keep, part)
    for shard in reversed(order or range(part.of)):
        judge_shard(stream, fit, parts[shard], keep=keep)
    return fit, keep.merged("judge", part, lambda: JudgedSums(fit))


def kept(folder, stream, shards=1, every=5):
    keep, part = keep_of(folder), Shard(0, shards, HoldOut(every))
    read(keep, stream, part)
    return merged_analysis(stream, keep, part, about={"Model": "a toy"})


def test_shards_of_a_corpus_too_small_are_refused(tmp_path):
    assert_refused(lambda: kept(tmp_path, stream_of(4), shards=3), "take fewer shards than 3")


@pytest.mark.parametrize("every", [5, 1])
def test_losses_are_those_of_all_batches_once(tmp_path, every):
    """Batch n lacks n samples and has one in part."""
    for analysis in (analyse(stream_of(12), every=every), kept(tmp_path, stream_of(12), 2, every)):
        assert analysis.losses == CorpusGaps(sum(range(12)), 12)


def test_attentions_that_nothing_checked_are_named(tmp_path):
    """Those without the model's own attention, in any batch of either reading; through files as well."""

    def with_attention(model_pass, attention):
        weights = [model_pass.softmax(attention, head) for head in range(HEADS)]
        return replace(attention, weights=torch.stack(weights, 1))

    def checked(number, but=None):
        model_pass = TOY(number)
        if number == but:
            return model_pass
        attentions = [with_attention(model_pass, attention) for attention in model_pass.attentions]
        return replace(model_pass, attentions=tuple(attentions))

    assert analyse(Stream(checked, range(6))).unchecked == ()
    for number in (0, 4):
        analysis = analyse(Stream(partial(checked, but=number), range(6)))
        assert analysis.unchecked == tuple(f"{kind}.0" for kind in ALL)
        stream = Stream(partial(checked, but=number), range(10))
        assert kept(tmp_path / str(number), stream, 2).unchecked == analysis.unchecked


@given(st.integers(1, 9), st.integers(1, 9))
def test_batches_are_dealt_to_one_stage_of_one_shard(shards, every):
    """Where nothing is held out, to both stages; judged ones are ranked over all shards."""
    several, judged = Shard(0, shards, HoldOut(every)).all_shards(), 0
    for number in range(shards * every * 3):
        dealt = [(shard.number, stage) for shard in several for stage in STAGES if shard.is_of(stage, number)]
        held_out = number % every == every - 1
        stages = STAGES if every == 1 else STAGES[held_out : held_out + 1]
        assert dealt == [(number // every % shards, stage) for stage in stages]
        if "judge" in stages:
            assert several[0].judged_before(number) == judged
            judged += 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    read(keep_of(folder), stream_of())
    return folder


@pytest.mark.parametrize(
    ("killed_at", "seconds"),
    [((0,), 0), ((18,), 0), ((4,), 0), ((19,), 0), ((3,), 3600), ((14,), 3600), ((2, 7, 11, 4, 9, 14), 0)],
)  # 4, 9, 14 and 19 are judged
def test_a_pass_that_was_killed_goes_on_to_the_same_bytes(tmp_path, finished, killed_at, seconds):
    for number in killed_at:
        with pytest.raises(SystemExit):
            read(keep_of(tmp_path, seconds), stream_of(killed_at=number))
    fit, judgement = read(keep_of(tmp_path), stream_of())
    assert toys.files_of(tmp_path) == toys.files_of(finished)
    assert (fit.losses, judgement.losses) == (CorpusGaps(144, 16), CorpusGaps(4 + 9 + 14 + 19, 4))


def test_what_was_read_is_not_read_again(tmp_path):
    with pytest.raises(SystemExit):
        read(keep_of(tmp_path), stream_of(killed_at=7))
    seen = []
    read(keep_of(tmp_path), stream_of(seen=seen))
    assert seen == [7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 4, 9, 14, 19]
    read(keep_of(tmp_path), stream_of(killed_at=seen[0]))  # finished: nothing is


def test_progress_after_a_kill_counts_from_the_start(tmp_path):
    with pytest.raises(SystemExit):
        read(keep_of(tmp_path), stream_of(killed_at=7))
    reports = []
    fit_shard(
        stream_of(), method="means", keep=keep_of(tmp_path), progress=lambda *report: reports.append(report)
    )
    assert reports == [("fit", number) for number in range(7, 17)]  # six of sixteen were read before


@pytest.mark.parametrize(
    ("parts", "batches", "order"),
    [
        (Shard(0, 3, HoldOut(4)), 34, (0, 1, 2)),
        (Shard(0, 3, HoldOut(4)), 34, (2, 0, 1)),
        (Shard(0, 5, HoldOut(1)), 3, range(5)),
    ],
    ids=["in order", "in another", "more shards than batches"],
)
def test_shards_in_any_order_come_to_what_one_process_sums(tmp_path, parts, batches, order):
    _, judgement = read(keep_of(tmp_path), stream_of(batches), parts, order)
    at_once = Shard(hold_out=parts.hold_out)
    fitted, held_out = ([n for n in range(batches) if at_once.is_of(stage, n)] for stage in STAGES)
    whole = fit_of(map(TOY, fitted))
    expected = judged(whole, map(TOY, held_out[:2]), TOY.probe)  # two batches are probed in all
    expected += judged(whole, map(TOY, held_out[2:]))
    assert judgement.samples == expected.samples > 0
    toys.assert_same_rows(toys.rows_of(judgement), toys.rows_of(expected))


def test_shards_that_are_missing_are_listed(tmp_path):
    keep, parts = keep_of(tmp_path), Shard(0, 4).all_shards()
    for _ in range(2):
        assert fit_shard(stream_of(), parts[1], heads=[1], method="means", keep=keep).heads == (1,)
    with pytest.raises(SystemExit):
        fit_shard(stream_of(killed_at=3), parts[0], method="means", keep=keep)  # begun is not finished
    assert keep.unfinished("fit", parts[0]) == [0, 2, 3]
    assert_refused(lambda: merged_fit(keep, parts[0]), "shards 0, 2, 3 of 4 have no finished fit")


# Another analysis in the same folder, and damage.


def test_another_analysis_in_the_same_folder_is_refused(finished):
    """In all that the command asks for, of which its own tests have each; here in what only one asks for."""
    keep = keep_of(finished, target="b.txt")
    for use in (partial(read, stream=stream_of()), partial(merged_fit, shard=WHOLE)):
        assert_refused(partial(use, keep), "belongs to another target (None there, 'b.txt' here); delete")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "damage",
    [
        *(partial(flip, place=place) for place in (9, 12, 40, 200, 900, 3_000, -3_000, -20)),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        lambda path: path.write_bytes(path.read_bytes().replace(b'\\"samples\\": ', b'\\"samples\\":1', 1)),
    ],
)
def test_a_file_that_was_flipped_cut_or_changed_is_noticed(tmp_path, finished, stage, damage):
    keep = keep_of(shutil.copytree(finished, tmp_path / "copied"))
    path = keep.path(stage, WHOLE)
    before = path.read_bytes()
    damage(path)
    assert path.read_bytes() != before
    message = f"{stage}-0-of-1/sums.safetensors is not what … run this shard"
    assert_refused(lambda: read(keep, stream_of()), message, CorruptFile)


def test_a_probe_that_cannot_be_taken_is_said_before_any_work():
    """By a warning, before the first batch is fitted on; and everything else of the report is there."""
    model, seen = Reader(function="torch.softmax"), []
    hooked = replace(HOOKED, attention=None)  # names nothing that makes the attention
    adapter = Modules(model, [hooked], run, start=2, unchecked=True)
    stream = Stream(adapter.trace, [BATCH] * 6, adapter.lexical_probe)
    with pytest.warns(UserWarning, match=r"no lexical probe: cross\.0: name the module") as warned:
        analysis = analyse(stream, progress=lambda *_: seen.append(len(warned)))
    assert seen == [1] * 6
    assert "name the module that makes its attention, to force it" in "".join(analysis.no_probe)
    assert analysis.heads[0]["rows_probed"] == 0
    assert any(note.startswith("No lexical probe was taken: cross.0: name") for note in notes(analysis))


def logits_of(model_pass, right):
    """Almost sure of the right word in the first samples, of word 0 in the others."""
    words = model_pass.target_outputs.where(torch.arange(len(model_pass.target_mask))[:, None] < right, 0)
    return 3.0 * torch.nn.functional.one_hot(words, 8)


@pytest.mark.parametrize("right", [0, 4, 6])
def test_a_report_says_whether_the_model_has_learned(right):
    stream = replace(stream_of(20), logits=lambda model_pass: logits_of(model_pass, right))
    analysis = analyse(stream, every=2)
    ones = [TOY(number) for number in range(1, 9, 2)]  # four of ten
    valid = torch.cat([model_pass.target_outputs[model_pass.target_mask] for model_pass in ones])
    good = torch.cat(
        [model_pass.target_outputs[:right][model_pass.target_mask[:right]] for model_pass in ones]
    )
    learned = analysis.learned
    assert learned["words"] == len(valid)
    assert learned["accuracy"] == pytest.approx(len(good) / len(valid))
    assert learned["whole_sentences"] == right / 6
    shares = valid.bincount()[valid.unique()].double() / len(valid)
    assert learned["loss_by_frequency"] == pytest.approx(float(-(shares * shares.log()).sum()))
    warned = [note for note in notes(analysis) if note.startswith("The model has not learned this text")]
    assert bool(warned) == (right == 0) == (learned["loss"] > learned["loss_by_frequency"])
    halves = [Learned(), Learned()]
    for number, model_pass in enumerate(ones):
        halves[number % 2].add(model_pass, logits_of(model_pass, right))
    merged = Learned().load_state_dict(json.loads(json.dumps((halves[0] + halves[1]).state_dict())))
    assert merged.result() == pytest.approx(learned)


def test_the_fewest_threads_that_are_worth_it(monkeypatch):
    """Twice as many have to take nine tenths of the time; the next are tried after those only."""
    before, tried = torch.get_num_threads(), {1: 10.0, 2: 6.0, 4: 5.8, 8: 1.0}

    def work():
        return tried[torch.get_num_threads()]

    monkeypatch.setattr("timeit.repeat", lambda work, number, repeat: [number * work(), 99.0][:repeat])
    try:
        assert choose_threads(work, most=8) == pytest.approx({1: 10, 2: 6, 4: 5.8})
        assert torch.get_num_threads() == 2
        assert choose_threads(work, most=1) == {}
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def analyse_copies(count, scores, ignored):
    analyse(Stream(lambda model_pass: model_pass, [toys.by_hand(scores, source=ignored)] * count))


OF_ANOTHER_MODEL = replace(stream_of(10), logits=lambda model_pass: logits_of(model_pass, 0)[..., :3])

test_what_cannot_be_is_refused = refused(
    (lambda: Stream(str, iter([1, 2])), "read only once"),
    (
        lambda: analyse(5),
        "int is given without a source; expected … or a Stream: Stream(adapter.trace, batches)",
    ),
    (lambda: analyse([1, 2]), "list is given without a source"),
    (lambda: analyse(Stream(str, [])), "no sample with a counted position"),
    (lambda: analyse_copies(7, [[1.0, 2.0]], [True, True]), "no sample with a counted position"),
    # a row with one position to look at says nothing: without another there is nothing to report
    (lambda: analyse_copies(6, [[1.0], [2.0]], [False]), "no row of attention has two positions"),
    (
        partial(analyse, OF_ANOTHER_MODEL, progress=pytest.fail),  # before any work
        "a correct word has id 7; the model predicts 3 words",
    ),
    (lambda: compare(analyse(Stream(Toy(), [*range(5)])), None), "the second is NoneType; give what analyse"),
)
