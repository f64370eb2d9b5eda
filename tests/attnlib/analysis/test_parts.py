"""Passes in parts: each batch once; cut short, in shards or damaged: the same numbers, or an error."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnlib.analysis import Keep, Losses, Part, Stream
from attnlib.analysis.analyse import STAGES, fit_part, judge_part, lacking, merged_fit, merged_judgement
from attnlib.analysis.stored import is_stored, load_fit, load_judgement, read_index, save_fit, save_judgement
from attnlib.errors import AttnlibError, BadInput, CorruptFile
from tests.attnlib.analysis.analysis_builders import ALL, Toy, assert_same_rows, fit_of, judged, rows_of

TOY = Toy(ALL, ignored=(3,), bias=True)
ASKED = {"model": "toy", "layers": [0]}
numbers, shards, every = st.integers(0, 500), st.integers(1, 9), st.integers(2, 9)


# Parts of a stream.


@given(numbers, shards, every)
def test_every_batch_is_in_one_stage_of_one_shard(number, shards, every):
    found = [
        (part.shard, stage)
        for part in Part(0, shards, every).all_shards()
        for stage in ("fit", "judge")
        if part.is_of(stage, number)
    ]
    assert len(found) == 1
    assert found[0][0] == number // every % shards


@given(numbers, shards)
def test_where_nothing_is_held_out_every_batch_is_in_both_stages(number, shards):
    for stage in ("fit", "judge"):
        assert sum(part.is_of(stage, number) for part in Part(0, shards, 1).all_shards()) == 1


@given(shards, every)
def test_one_in_so_many_is_judged_and_never_the_first(shards, every):
    """The same ones whatever the number of shards, and as many in each."""
    several = Part(0, shards, every).all_shards()
    judged = [[n for n in range(shards * every * 3) if part.is_of("judge", n)] for part in several]
    assert [len(own) for own in judged] == [3] * shards
    assert sorted(n for own in judged for n in own) == list(range(every - 1, shards * every * 3, every))


@given(shards, every | st.just(1))
def test_judged_batches_are_ranked_over_all_shards(shards, every):
    judged = [
        (number, part.judged_before(number))
        for number in range(60)
        for part in Part(0, shards, every).all_shards()
        if part.is_of("judge", number)
    ]
    assert [rank for _, rank in judged] == list(range(len(judged)))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((3, 3), "shard is 3 of 3"), ((-1, 3), "shard is -1"), ((0, 0), "of 0"), ((0, 1, 0), "every is 0")],
)
def test_parts_that_are_none(numbers, message):
    with pytest.raises(BadInput, match=message):
        Part(*numbers)


def test_a_corpus_that_can_be_read_only_once_is_refused():
    with pytest.raises(BadInput, match="read only once"):
        Stream(lambda batch: batch, (batch for batch in [1, 2]))


@pytest.mark.parametrize("batches", [["a", "b"], lambda: iter(["a", "b"])])
def test_numbers_start_again_with_every_pass(batches):
    stream = Stream(lambda batch: batch, batches)
    assert [list(stream.numbered()) for _ in range(2)] == [[(0, "a"), (1, "b")]] * 2


def test_saved_passes_are_read_file_by_file_in_the_order_of_their_names(tmp_path):
    for name, token in (("b", 2), ("a", 1)):
        tensors = {f"{side}_tokens": torch.tensor([[token]]) for side in ("source", "target")}
        masks = {f"{side}_mask": torch.tensor([[True]]) for side in ("source", "target")}
        save_file(tensors | masks, tmp_path / f"{name}.safetensors")
    stream = Stream.saved(tmp_path)
    found = [(n, int(stream.trace(batch).source_tokens)) for n, batch in stream.numbered()]
    assert found == [(0, 1), (1, 2)]
    assert stream.is_probed(10**9)  # a β that was saved costs nothing
    with pytest.raises(BadInput, match=r"no \*\.safetensors"):
        Stream.saved(tmp_path / "none")


# Cut short.


class Killed(Exception):
    """What ends a process in the middle."""


def stream_of(batches=20, killed_at=None, **changes):
    def trace(number):
        if number == killed_at:
            raise Killed
        return TOY(number)

    return replace(Stream(trace, range(batches), TOY.probe, probed=2), **changes)


def keep_of(folder, seconds=0.0, **asked):
    return Keep(Path(folder), ASKED | asked, seconds)


def read(keep, stream=None, part=None):
    """Both readings of a corpus in one part, kept."""
    stream, part = stream or stream_of(), part or Part()
    fit = fit_part(stream, part, keep=keep)
    return fit, judge_part(stream, fit, part, keep=keep)


def interrupted(keep, *killed_at):
    """A pass that was killed at these batches, one after the other, and went on each time."""
    for number in killed_at:
        with pytest.raises(Killed):
            read(keep, stream_of(killed_at=number))
    return keep


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """What passes that nothing disturbed leave behind."""
    folder = tmp_path_factory.mktemp("finished")
    read(keep_of(folder))
    return folder


@pytest.mark.parametrize(
    ("killed_at", "seconds"),
    [
        *(((0,), 0.0), ((1,), 0.0), ((18,), 0.0), ((4,), 0.0), ((9,), 0.0), ((19,), 0.0), ((3,), 3600.0)),
        *(((14,), 3600.0), ((2, 7, 11, 4, 9, 14), 0.0)),
    ],
)  # 4, 9, 14 and 19 are judged
def test_a_pass_that_was_killed_goes_on_to_the_same_bytes(tmp_path, finished, killed_at, seconds):
    interrupted(keep_of(tmp_path, seconds), *killed_at)
    read(keep_of(tmp_path))
    assert files_of(tmp_path) == files_of(finished)


def test_what_was_read_is_not_read_again(tmp_path):
    interrupted(keep_of(tmp_path), 7)
    seen = []

    def trace(number):
        seen.append(number)
        return TOY(number)

    read(keep_of(tmp_path), stream_of(trace=trace))
    assert seen == [7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 4, 9, 14, 19]
    read(keep_of(tmp_path), stream_of(killed_at=seen[0]))  # finished: nothing is


def test_progress_counts_from_the_start_of_the_part(tmp_path):
    interrupted(keep_of(tmp_path), 7)
    told = []
    fit_part(stream_of(), keep=keep_of(tmp_path), progress=lambda *one: told.append(one))
    assert told == [("fit", number) for number in range(7, 17)]  # six of sixteen were read before


@pytest.mark.parametrize("made_anew", ["unfinished", "empty"])
def test_killed_while_a_part_takes_the_place_of_another(tmp_path, finished, made_anew):
    """Between two renames the folder is not there, or a workflow made an empty one: it is put back."""
    keep = interrupted(keep_of(tmp_path), 7)
    folder = keep.part("fit", Part())
    folder.rename(folder.with_name(f".{folder.name}.before"))
    (folder.with_name(f".{folder.name}.new") if made_anew == "unfinished" else folder).mkdir()
    assert is_stored(folder)
    read(keep)
    assert files_of(tmp_path) == files_of(finished)


def test_a_failed_write_leaves_the_part_as_it_was(tmp_path, monkeypatch):
    fit = fit_of([TOY(0)])
    save_fit(fit, tmp_path / "part", {"done": 1})
    before = files_of(tmp_path)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("attnlib.analysis.fit.AverageAttention.tensors", full)
    with pytest.raises(OSError, match="no space"):
        save_fit(fit + fit, tmp_path / "part", {"done": 2})
    assert {name: data for name, data in files_of(tmp_path).items() if ".new" not in name} == before
    monkeypatch.undo()
    save_fit(fit + fit, tmp_path / "part", {"done": 2})
    assert load_fit(tmp_path / "part")[0].samples == 2 * fit.samples


def test_losses_are_counted_once_however_often_a_pass_is_killed(tmp_path):
    def losses(number):
        return Losses(number, 1)

    for killed_at in (2, 7, 9):
        with pytest.raises(Killed):
            read(keep_of(tmp_path), stream_of(killed_at=killed_at, losses=losses))
    fit, judgement = read(keep_of(tmp_path), stream_of(losses=losses))
    held_out = (4, 9, 14, 19)
    assert judgement.losses == Losses(sum(held_out), 4)
    assert fit.losses == Losses(sum(range(20)) - sum(held_out), 16)
    assert load_fit(tmp_path / "fit-0-of-1")[0].losses == fit.losses
    assert load_judgement(tmp_path / "judge-0-of-1", fit)[0].losses == judgement.losses


# In shards.


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_shards_in_any_order_come_to_what_one_process_sums(tmp_path, order):
    keep, stream = keep_of(tmp_path), stream_of(34)
    parts = Part(0, 3, 4).all_shards()
    for shard in order:
        fit_part(stream, parts[shard], keep=keep)
    fit = merged_fit(keep, parts[0])
    for shard in reversed(order):
        judge_part(stream, fit, parts[shard], keep=keep)
    found = merged_judgement(keep, parts[0], fit)

    numbers = {stage: [n for n in range(34) if any(p.is_of(stage, n) for p in parts)] for stage in STAGES}
    whole = fit_of(map(TOY, numbers["fit"]))
    expected = judged(whole, map(TOY, numbers["judge"][:2]), TOY.probe)  # two batches are probed in all
    expected += judged(whole, map(TOY, numbers["judge"][2:]))
    assert found.samples == expected.samples > 0
    assert_same_rows(rows_of(found), rows_of(expected))


def test_more_shards_than_batches(tmp_path):
    """Shards without a batch are finished parts of nothing."""
    keep, stream = keep_of(tmp_path), stream_of(3)
    parts = Part(0, 5, 1).all_shards()
    for part in parts:
        fit_part(stream, part, keep=keep)
    fit = merged_fit(keep, parts[0])
    for part in parts:
        judge_part(stream, fit, part, keep=keep)
    assert load_fit(keep.part("fit", parts[4]))[0].samples == 0
    found = merged_judgement(keep, parts[0], fit)
    whole = judged(fit_of(map(TOY, range(3))), map(TOY, range(2)), TOY.probe)
    assert_same_rows(rows_of(found), rows_of(whole + judged(whole.fit, [TOY(2)])))


def test_shards_that_are_missing_are_listed(tmp_path):
    keep, parts = keep_of(tmp_path), Part(0, 4).all_shards()
    fit_part(stream_of(), parts[1], keep=keep)
    with pytest.raises(Killed):
        fit_part(stream_of(killed_at=3), parts[0], keep=keep)  # begun is not finished
    assert lacking("fit", keep, parts[0]) == [0, 2, 3]
    with pytest.raises(BadInput, match=r"shards 0, 2, 3 of 4 have no finished fit"):
        merged_fit(keep, parts[0])
    with pytest.raises(BadInput, match=r"shards 0, 1, 2, 3 of 4 have no finished judge"):
        merged_judgement(keep, parts[0], fit_of([]))


def test_some_heads_alone_are_kept(tmp_path):
    fit = fit_part(stream_of(5), heads=[1], keep=keep_of(tmp_path))
    loaded = merged_fit(keep_of(tmp_path), Part())
    assert loaded.heads == fit.heads == (1,)
    assert loaded.averages.keys() == fit.averages.keys()


# Another analysis in the same folder.


@pytest.mark.parametrize(
    ("asked", "part", "message"),
    [
        ({"model": "other"}, Part(), "model is toy there, other here"),
        ({"target": "b.txt"}, Part(), "target is None there, b.txt here"),
        ({"layers": [0, 1]}, Part(), r"layers is \[0\] there, \[0, 1\] here"),
        ({}, Part(every=3), "every is 5 there, 3 here"),
    ],
)
def test_another_analysis_in_the_same_folder_is_refused(finished, asked, part, message):
    before, keep = files_of(finished), keep_of(finished, **asked)
    for use in (lambda: read(keep, part=part), lambda: merged_fit(keep, part)):
        with pytest.raises(BadInput, match=f"part of another analysis .{message}"):
            use()
    assert files_of(finished) == before


def test_what_is_asked_need_not_be_written_as_json_gives_it_back(tmp_path):
    """Tuples become lists in a file; they ask for the same."""
    keep = Keep(tmp_path, {"layers": (0, 1), "sizes": {1: "a"}}, 0.0)
    fit = fit_part(stream_of(4), keep=keep)
    assert fit_part(stream_of(4, killed_at=0), keep=keep).samples == fit.samples


# Damage.


DAMAGED = [("fit", name) for name in ("components-0.safetensors", "averages.safetensors", "index.json")]
DAMAGED += [("judge", name) for name in ("heads.safetensors", "index.json")]


@pytest.fixture
def copied(tmp_path, finished):
    for name, data in files_of(finished).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def load(keep):
    fit = merged_fit(keep, Part())
    return merged_judgement(keep, Part(), fit)


@pytest.mark.parametrize("where", [0.3, 0.6, 0.999])
@pytest.mark.parametrize(("stage", "name"), DAMAGED)
def test_a_byte_that_flipped_is_noticed(copied, stage, name, where):
    path = copied / f"{stage}-0-of-1" / name
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 2))] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFile, match=f"{path.parent.name}.*{name}"):
        load(keep_of(copied))


@pytest.mark.parametrize(("stage", "name"), DAMAGED)
@pytest.mark.parametrize("content", [b"", b"[]", b"{}", None])
def test_a_file_that_was_cut_or_taken_away(copied, stage, name, content):
    path = copied / f"{stage}-0-of-1" / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(AttnlibError) as caught:
        load(keep_of(copied))
    if content is None and name == "index.json":  # as if it had never been made
        assert f"have no finished {stage} yet" in str(caught.value)
    else:
        assert isinstance(caught.value, CorruptFile)
        assert str(path) in str(caught.value)


def test_a_number_changed_in_the_index_is_noticed(copied):
    path = copied / "judge-0-of-1" / "index.json"
    index = json.loads(path.read_text())
    path.write_text(json.dumps(index | {"samples": 7}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    with pytest.raises(CorruptFile, match=r"judge-0-of-1.index\.json"):
        load(keep_of(copied))


def test_a_folder_that_holds_no_part(tmp_path):
    assert not is_stored(tmp_path)
    for call in (load_fit, read_index, lambda folder: load_judgement(folder, fit_of([]))):
        with pytest.raises(BadInput, match="holds no part of an analysis"):
            call(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(BadInput, match=r"cannot write .*taken"):
        read(keep_of(tmp_path / "taken"))


# Files.


def test_a_judgement_by_a_fit_goes_through_files(tmp_path):
    fit = fit_of(map(TOY, range(9)))
    judgement = judged(fit, map(TOY, range(9, 12)), TOY.probe)
    save_fit(fit, tmp_path / "fit", {"n": 1})
    save_judgement(judgement, tmp_path / "judge", {"n": 2})
    fit, told = load_fit(tmp_path / "fit")
    loaded, said = load_judgement(tmp_path / "judge", fit)
    assert (told, said, read_index(tmp_path / "judge")) == ({"n": 1}, {"n": 2}, {"n": 2})
    assert_same_rows(rows_of(loaded), rows_of(judgement), tolerance=0)
    for key, own in judgement.heads.items():
        assert loaded.heads[key].totals == own.totals
    assert list(map(str, sorted(tmp_path.iterdir()))) == [str(tmp_path / "fit"), str(tmp_path / "judge")]


def test_the_same_sums_are_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        save_fit(fit_of(map(TOY, range(5))), tmp_path / name, {})
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
