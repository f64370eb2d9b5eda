"""Readings cut short, done in shards, or found damaged: the same numbers, or a line that says why."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from attnlib.analysis import Losses, Part, Stream
from attnlib.analysis.readings import (
    STAGES,
    Keep,
    fit_part,
    judge_part,
    lacking,
    merged_fit,
    merged_judgement,
)
from attnlib.analysis.stored import is_stored, load_fit, load_judgement, read_index, save_fit, save_judgement
from attnlib.errors import AttnlibError, BadInput, CorruptFile
from tests.attnlib.analysis.test_fit_and_judge import ALL, Toy, assert_same_rows, fit_of, judged, rows_of

TOY = Toy(ALL, ignored=(3,), bias=True)
ASKED = {"model": "toy", "layers": [0]}


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


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """What a reading that nothing disturbed leaves behind."""
    folder = tmp_path_factory.mktemp("finished")
    read(keep_of(folder))
    return folder


# Cut short.


@pytest.mark.parametrize(
    ("killed_at", "seconds"),
    [(0, 0.0), (1, 0.0), (18, 0.0), (4, 0.0), (9, 0.0), (19, 0.0), (3, 3600.0), (14, 3600.0)],
)  # 4, 9, 14 and 19 are judged
def test_a_reading_that_was_killed_goes_on_to_the_same_bytes(tmp_path, finished, killed_at, seconds):
    with pytest.raises(Killed):
        read(keep_of(tmp_path, seconds), stream_of(killed_at=killed_at))
    read(keep_of(tmp_path))
    assert files_of(tmp_path) == files_of(finished)


def test_killed_again_and_again(tmp_path, finished):
    for killed_at in (2, 7, 11, 4, 9, 14):
        with pytest.raises(Killed):
            read(keep_of(tmp_path), stream_of(killed_at=killed_at))
    read(keep_of(tmp_path))
    assert files_of(tmp_path) == files_of(finished)


def test_what_was_read_is_not_read_again(tmp_path):
    with pytest.raises(Killed):
        read(keep_of(tmp_path), stream_of(killed_at=7))
    seen = []

    def trace(number):
        seen.append(number)
        return TOY(number)

    read(keep_of(tmp_path), stream_of(trace=trace))
    assert seen == [7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 4, 9, 14, 19]
    read(keep_of(tmp_path), stream_of(killed_at=seen[0]))  # finished: nothing is


def test_progress_counts_from_the_start_of_the_part(tmp_path):
    with pytest.raises(Killed):
        read(keep_of(tmp_path), stream_of(killed_at=7))
    told = []
    fit_part(stream_of(), keep=keep_of(tmp_path), progress=lambda *one: told.append(one))
    assert told == [("fit", number) for number in range(7, 17)]  # six of sixteen were read before


def test_killed_while_a_part_takes_the_place_of_another(tmp_path, finished):
    """Between two renames the folder is not there: it is put back, and the reading goes on from it."""
    keep = keep_of(tmp_path)
    with pytest.raises(Killed):
        read(keep, stream_of(killed_at=7))
    folder = keep.part("fit", Part())
    folder.rename(folder.with_name(f".{folder.name}.before"))
    folder.with_name(f".{folder.name}.new").mkdir()
    read(keep)
    assert files_of(tmp_path) == files_of(finished)


def test_a_failed_write_leaves_the_part_as_it_was(tmp_path, monkeypatch):
    fit = fit_of([TOY(0)])
    save_fit(fit, tmp_path / "part", {"done": 1})
    before = files_of(tmp_path)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("attnlib.analysis.averages.AverageAttention.tensors", full)
    with pytest.raises(OSError, match="no space"):
        save_fit(fit + fit, tmp_path / "part", {"done": 2})
    assert {name: data for name, data in files_of(tmp_path).items() if ".new" not in name} == before
    monkeypatch.undo()
    save_fit(fit + fit, tmp_path / "part", {"done": 2})
    assert load_fit(tmp_path / "part")[0].samples == 2 * fit.samples


def test_losses_are_counted_once_however_often_a_reading_is_killed(tmp_path):
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


def test_a_folder_that_a_workflow_made_beforehand_is_no_obstacle(tmp_path, finished):
    """An empty folder stands where the part was that is being replaced."""
    keep = keep_of(tmp_path)
    with pytest.raises(Killed):
        read(keep, stream_of(killed_at=7))
    folder = keep.part("fit", Part())
    folder.rename(folder.with_name(f".{folder.name}.before"))
    folder.mkdir()
    assert is_stored(folder)
    read(keep)
    assert files_of(tmp_path) == files_of(finished)


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


def test_without_a_folder_the_numbers_are_the_same(finished):
    fit = fit_part(stream_of())
    kept = merged_fit(keep_of(finished), Part())
    found = judge_part(stream_of(), fit)
    assert_same_rows(rows_of(found), rows_of(merged_judgement(keep_of(finished), Part(), kept)), tolerance=0)


# Another analysis in the same folder.


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"model": "other"}, "model is toy there, other here"),
        ({"target": "b.txt"}, "target is None there, b.txt here"),
        ({"layers": [0, 1]}, r"layers is \[0\] there, \[0, 1\] here"),
    ],
)
def test_another_model_or_text_is_refused(finished, asked, message):
    before = files_of(finished)
    with pytest.raises(BadInput, match=f"part of another analysis .{message}"):
        read(keep_of(finished, **asked))
    assert files_of(finished) == before


def test_another_share_held_out_is_refused(finished):
    with pytest.raises(BadInput, match="every is 5 there, 3 here"):
        read(keep_of(finished), part=Part(every=3))
    with pytest.raises(BadInput, match="every is 5 there, 3 here"):
        merged_fit(keep_of(finished), Part(every=3))


def test_what_is_asked_need_not_be_written_as_json_gives_it_back(tmp_path):
    """Tuples become lists in a file; they ask for the same."""
    keep = Keep(tmp_path, {"layers": (0, 1), "sizes": {1: "a"}}, 0.0)
    fit = fit_part(stream_of(4), keep=keep)
    assert fit_part(stream_of(4, killed_at=0), keep=keep).samples == fit.samples


# Damage.


def damaged_files():
    return [
        ("fit", "components-0.safetensors"),
        ("fit", "averages.safetensors"),
        ("fit", "index.json"),
        ("judge", "heads.safetensors"),
        ("judge", "index.json"),
    ]


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
@pytest.mark.parametrize(("stage", "name"), damaged_files())
def test_a_byte_that_flipped_is_noticed(copied, stage, name, where):
    path = copied / f"{stage}-0-of-1" / name
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 2))] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFile, match=f"{path.parent.name}.*{name}"):
        load(keep_of(copied))


@pytest.mark.parametrize(("stage", "name"), damaged_files())
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
