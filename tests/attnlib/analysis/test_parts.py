"""Passes in parts: each batch once; cut short, in shards or damaged: the same numbers, or an error."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis import Keep, Losses, Part, Stream
from attnlib.analysis.analyse import STAGES, fit_part, judge_part, merged_fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.stored import write_sums
from attnlib.errors import BadInput, CorruptFile
from tests.attnlib.analysis.analysis_builders import ALL, Toy, assert_same_rows, fit_of, judged, rows_of

TOY = Toy(ALL, ignored=(3,), bias=True)
ASKED = {"model": "toy", "layers": (0,)}
shards, every = st.integers(1, 9), st.integers(1, 9)


# Parts of a stream.


@given(shards, every)
def test_batches_are_dealt_to_one_stage_of_one_shard(shards, every):
    """Where nothing is held out, to both stages; judged ones are ranked over all shards."""
    several, judged = Part(0, shards, every).all_shards(), 0
    for number in range(shards * every * 3):
        found = [(own.shard, stage) for own in several for stage in STAGES if own.is_of(stage, number)]
        held_out = number % every == every - 1
        stages = STAGES if every == 1 else STAGES[held_out : held_out + 1]
        assert found == [(number // every % shards, stage) for stage in stages]
        if "judge" in stages:
            assert several[0].judged_before(number) == judged
            judged += 1


# Cut short.


class Killed(Exception):
    """What ends a process in the middle."""


def stream_of(batches=20, killed_at=None, seen=None):
    def trace(number):
        if number == killed_at:
            raise Killed
        if seen is not None:
            seen.append(number)
        return TOY(number)

    return Stream(trace, range(batches), TOY.probe, probed=2, losses=lambda number: Losses(number, 1))


def keep_of(folder, seconds=0.0, **asked):
    return Keep(Path(folder), ASKED | asked, seconds)


def read(keep, part=None, **stream):
    """Both readings of a corpus in one part, kept."""
    stream, part = stream_of(**stream), part or Part()
    fit = fit_part(stream, part, keep=keep)
    return fit, judge_part(stream, fit, part, keep=keep)


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """What passes that nothing disturbed leave behind."""
    folder = tmp_path_factory.mktemp("finished")
    read(keep_of(folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed_at", "seconds"),
    [((0,), 0), ((18,), 0), ((4,), 0), ((19,), 0), ((3,), 3600), ((14,), 3600), ((2, 7, 11, 4, 9, 14), 0)],
)  # 4, 9, 14 and 19 are judged
def test_a_pass_that_was_killed_goes_on_to_the_same_bytes(tmp_path, finished, killed_at, seconds):
    for number in killed_at:
        with pytest.raises(Killed):
            read(keep_of(tmp_path, seconds), killed_at=number)
    fit, judgement = read(keep_of(tmp_path))
    assert files_of(tmp_path) == files_of(finished)
    assert (fit.losses, judgement.losses) == (Losses(144, 16), Losses(4 + 9 + 14 + 19, 4))


def test_what_was_read_is_not_read_again_and_progress_counts_from_the_start(tmp_path):
    with pytest.raises(Killed):
        read(keep_of(tmp_path), killed_at=7)
    seen, told = [], []
    fit_part(stream_of(seen=seen), keep=keep_of(tmp_path), progress=lambda *one: told.append(one))
    assert told == [("fit", number) for number in range(7, 17)]  # six of sixteen were read before
    read(keep_of(tmp_path), seen=seen)
    assert seen == [7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 4, 9, 14, 19]
    read(keep_of(tmp_path), killed_at=seen[0])  # finished: nothing is


def test_a_failed_write_leaves_the_part_as_it_was(tmp_path, monkeypatch):
    fit, path = fit_of([TOY(0)]), tmp_path / "part.safetensors"
    write_sums(path, fit, {"done": 1})
    before = files_of(tmp_path)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("attnlib.analysis.stored.save_file", full)
    with pytest.raises(OSError, match="no space"):
        write_sums(path, fit + fit, {"done": 2})
    assert files_of(tmp_path) == before


# In shards.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "batches", "order"),
    [(Part(0, 3, 4), 34, (0, 1, 2)), (Part(0, 3, 4), 34, (2, 0, 1)), (Part(0, 5, 1), 3, range(5))],
    ids=["in order", "in another", "more shards than batches"],
)
def test_shards_in_any_order_come_to_what_one_process_sums(tmp_path, parts, batches, order):
    keep, stream, several = keep_of(tmp_path), stream_of(batches), parts.all_shards()
    for shard in order:
        fit_part(stream, several[shard], keep=keep)
    fit = merged_fit(keep, parts)
    for shard in reversed(order):
        judge_part(stream, fit, several[shard], keep=keep)
    found = keep.merged("judge", parts, lambda: Judgement(fit))

    fitted, held_out = (
        [n for n in range(batches) if any(own.is_of(stage, n) for own in several)] for stage in STAGES
    )
    whole = fit_of(map(TOY, fitted))
    expected = judged(whole, map(TOY, held_out[:2]), TOY.probe)  # two batches are probed in all
    expected += judged(whole, map(TOY, held_out[2:]))
    assert found.samples == expected.samples > 0
    assert_same_rows(rows_of(found), rows_of(expected))


def test_shards_that_are_missing_are_listed(tmp_path):
    keep, parts = keep_of(tmp_path), Part(0, 4).all_shards()
    for _ in range(2):
        assert fit_part(stream_of(), parts[1], heads=[1], keep=keep).heads == (1,)
    with pytest.raises(Killed):
        fit_part(stream_of(killed_at=3), parts[0], keep=keep)  # begun is not finished
    assert keep.lacking("fit", parts[0]) == [0, 2, 3]
    with pytest.raises(BadInput, match=r"shards 0, 2, 3 of 4 have no finished fit"):
        merged_fit(keep, parts[0])


# Another analysis in the same folder, and damage.


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


def flipped(where):
    def damage(content):
        content = bytearray(content)
        content[where if where >= 1 else int(where * (len(content) - 2))] ^= 1
        return bytes(content)

    return damage


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "damage",
    [
        *map(flipped, (9, 12, 40, 200, 900, 0.3, 0.6, 0.999)),
        lambda content: b"",
        lambda content: content[:-5],
        lambda content: content.replace(b'\\\\\\"samples\\\\\\": ', b'\\\\\\"samples\\\\\\":1', 1),
    ],
)
def test_a_file_that_was_flipped_cut_or_changed_is_noticed(tmp_path, finished, stage, damage):
    keep = keep_of(shutil.copytree(finished, tmp_path / "copied"))
    path = keep.path(stage, Part())
    before = path.read_bytes()
    path.write_bytes(damage(before))
    assert path.read_bytes() != before
    with pytest.raises(CorruptFile, match=rf"{stage}-0-of-1.sums\.safetensors is not what .*make this part"):
        read(keep)
