"""Batches that differ when they are read again are refused, so that nothing that is judged was fitted on."""

import random

import pytest
import torch
from torch.utils.data import DataLoader

from attnlib import HuggingFace, Stream, TokenBatch, analyse
from attnlib.analysis.passes import fit_shard, judge_shard
from attnlib.analysis.stream import HoldOut, Shard
from attnlib.errors import BadInput
from attnlib.report import PartialSums
from attnlib.report.resume import merged_fit
from tests.situations.builders import family

PAIRS = [([5 + number % 40, 6, 7], [8 + number % 40, 9, 1]) for number in range(64)]


def batch_of(pairs):
    sources, targets = zip(*pairs, strict=True)
    return TokenBatch.of_rows(sources, targets)


BATCHES = [batch_of(PAIRS[start : start + 8]) for start in range(0, 64, 8)]


def analysed(batches):
    return analyse(Stream(HuggingFace(family("T5")).trace, batches, probed=0))


class Readings:
    """Batches of a function, which knows the number of the reading."""

    def __init__(self, batches_of):
        self.batches_of, self.number = batches_of, 0

    def __call__(self):
        self.number += 1
        return iter(self.batches_of(self.number))


def loader(**options):
    return DataLoader(PAIRS, batch_size=8, collate_fn=batch_of, **options)


def shuffled_after_the_first(number):
    later = BATCHES[1:]
    random.Random(number).shuffle(later)
    return [BATCHES[0], *later]


def with_another_word(number):
    changed = batch_of([([5, 6, 7 + number], [8, 9, 1])] * 8)
    return [*BATCHES[:-1], changed]


def fewer_each_time(number):
    return BATCHES[: len(BATCHES) - number + 2]


def more_each_time(number):
    return BATCHES[: 2 + number]


def used_up():
    batches = iter(BATCHES)
    return lambda: batches


DIFFERENT = [
    pytest.param(lambda: loader(shuffle=True), id="loader that shuffles"),
    pytest.param(lambda: Readings(shuffled_after_the_first), id="first batch the same, others shuffled"),
    pytest.param(lambda: Readings(with_another_word), id="one word of the last batch"),
    pytest.param(lambda: Readings(fewer_each_time), id="fewer batches"),
    pytest.param(lambda: Readings(more_each_time), id="more batches"),
    pytest.param(used_up, id="generator used up"),
    pytest.param(lambda: iter(BATCHES), id="iterator"),
]


@pytest.mark.parametrize("batches", DIFFERENT)
def test_readings_that_differ_are_refused(batches):
    torch.manual_seed(0)
    with pytest.raises(BadInput, match=r"list|read only once"):
        analysed(batches())


SAME = [
    pytest.param(lambda: BATCHES, id="list"),
    pytest.param(loader, id="loader in one order"),
    pytest.param(lambda: Readings(lambda _: BATCHES), id="function that starts anew"),
    pytest.param(lambda: lambda: ({"input_ids": batch.source, "labels": batch.target} for batch in BATCHES),
                 id="dictionaries made anew"),
]  # fmt: skip


@pytest.mark.parametrize("batches", SAME)
def test_readings_that_are_the_same_are_analysed(batches):
    assert analysed(batches()).held_out


# -- readings of several processes --


def stream_of(batches):
    return Stream(HuggingFace(family("T5")).trace, batches, probed=0)


def kept(batches, folder):
    """What another process goes on with: the same folder, other batches."""
    stream = stream_of(batches)
    fit_shard(stream, Shard(), method="means", keep=PartialSums(folder, {}))
    fit = merged_fit(PartialSums(folder, {}), Shard())
    return judge_shard(stream, fit, Shard(), keep=PartialSums(folder, {}))


@pytest.mark.parametrize("later", [
    pytest.param(BATCHES[::-1], id="another order"),
    pytest.param([*BATCHES[:-1], batch_of([([5, 6], [7, 1])] * 8)], id="one batch changed"),
    pytest.param(BATCHES[:-1], id="a batch less"),
    pytest.param([*BATCHES, BATCHES[0]], id="a batch more"),
])  # fmt: skip
def test_a_second_process_that_reads_other_batches_is_refused(later, tmp_path):
    fit_shard(stream_of(BATCHES), method="means", keep=PartialSums(tmp_path, {}))
    with pytest.raises(BadInput, match="read again"):
        kept(later, tmp_path)


def test_a_second_process_that_reads_the_same_batches_goes_on(tmp_path):
    fit_shard(stream_of(BATCHES), method="means", keep=PartialSums(tmp_path, {}))
    assert kept([batch_of(PAIRS[start : start + 8]) for start in range(0, 64, 8)], tmp_path).samples == 8


class Killed(Exception):
    pass


def killed_after_four():
    yield from BATCHES[:4]
    raise Killed


def test_a_pass_that_goes_on_with_other_batches_is_refused(tmp_path):
    keep = PartialSums(tmp_path, {}, seconds=0)
    with pytest.raises(Killed):
        fit_shard(stream_of(killed_after_four), method="means", keep=keep)
    with pytest.raises(BadInput, match="batch 0 differs"):
        fit_shard(stream_of(BATCHES[::-1]), method="means", keep=keep)


def test_shards_of_other_batches_are_not_merged(tmp_path):
    keep = PartialSums(tmp_path, {})
    for number, batches in enumerate((BATCHES, BATCHES[::-1])):
        fit_shard(stream_of(batches), Shard(number, 2, HoldOut(2)), method="means", keep=keep)
    with pytest.raises(BadInput, match="batch 0 differs"):
        merged_fit(keep, Shard(0, 2, HoldOut(2)))
