"""Parts of a corpus: every batch is read once in one stage of one shard; and a corpus can be read again."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnlib.analysis import Part, Stream
from attnlib.errors import BadInput

numbers, shards, every = st.integers(0, 500), st.integers(1, 9), st.integers(2, 9)


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


def test_all_shards():
    assert Part(2, 3, 7).all_shards() == [Part(0, 3, 7), Part(1, 3, 7), Part(2, 3, 7)]


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
def test_numbers_start_again_with_every_reading(batches):
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
