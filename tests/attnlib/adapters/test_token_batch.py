"""Batches of tokens: padding of either side, and sentences through a tokenizer."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import TokenBatch, text_batches
from attnlib.errors import BadInput

BATCH = TokenBatch.of_rows([[5, 6, 7], [8]], [[3], [4, 2]])


def test_packed_hand_worked():
    # Padding (9) at the left, at the right, in between, and a last column that is padding alone.
    source = torch.tensor([[9, 1, 2, 9], [3, 9, 4, 9]])
    target = torch.tensor([[9, 5], [6, 7]])
    read = torch.tensor([[9, 50], [60, 70]])
    packed = TokenBatch(source, source != 9, target, target != 9, read).packed()
    assert packed.source.tolist() == [[1, 2], [3, 4]]
    assert packed.source_mask.all()
    assert packed.target.tolist() == [[5, 9], [6, 7]]
    assert packed.target_mask.tolist() == [[True, False], [True, True]]
    assert packed.read.tolist() == [[50, 9], [60, 70]]


def test_labels_that_do_not_count_are_0_at_padding():
    ids = torch.tensor([[5, -100], [6, 7]])
    batch = replace(BATCH, target=ids, target_mask=ids >= 0, read=ids)
    assert batch.packed().target.tolist() == batch.packed().read.tolist() == [[5, 0], [6, 7]]
    for name in ("target", "read"):
        with pytest.raises(BadInput, match=rf"{name} hold -100 at valid position 1 of row 0: ids start at 0"):
            replace(BATCH, target_mask=torch.ones(2, 2, dtype=torch.bool), **{name: ids})
    with pytest.raises(BadInput, match="source hold -1 at valid position 0 of row 0"):
        replace(BATCH, source=BATCH.source - 6)


def test_a_batch_moves_with_all_that_it_has():
    for batch in (BATCH, replace(BATCH, read=BATCH.target)):
        moved = vars(batch.to("cpu"))
        assert {name: value is None for name, value in moved.items()} == {
            name: value is None for name, value in vars(batch).items()
        }
    with pytest.raises(RuntimeError, match="meta"):  # every tensor has left: there is no data to check
        BATCH.to("meta")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"source": torch.ones(2, 4)},
            r"source of shape \(2, 4\) with a mask of shape \(2, 3\)",
        ),
        ({"target": torch.ones(2), "target_mask": torch.ones(2).bool()}, r"expected \(batch, length\)"),
        ({"target_mask": torch.ones(2, 2)}, r"mask of shape \(2, 2\) and torch\.float32"),
        ({"source_mask": torch.tensor([[True] * 3, [False] * 3])}, "source row 1 is all padding"),
        ({"target": torch.ones(3, 2), "target_mask": torch.ones(3, 2).bool()}, "2 sources with 3 targets"),
        ({"read": torch.ones(2, 3)}, r"read of shape \(2, 3\) with a mask of shape \(2, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        replace(BATCH, **changes)


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ([[1], []], [[2], [3]], "source row 1 is all padding"),
        ([[1], [2]], [[3]], "2 sources with 1 targets"),
        ([], [], "no rows"),
    ],
)
def test_rows_that_make_no_batch_are_refused(sources, targets, message):
    with pytest.raises(BadInput, match=message):
        TokenBatch.of_rows(sources, targets)


# Text.


class Lengths:
    """A tokenizer: the lengths of the words, then a mark, 1 at a source and 2 at a target."""

    def __init__(self):
        self.asked = 0

    def __call__(self, text=None, text_target=None, *, truncation, max_length):
        assert truncation
        self.asked += 1
        lines, mark = (text_target, 2) if text is None else (text, 1)
        words = [line.split()[: max_length - 1] for line in lines]
        return {"input_ids": [[*map(len, line), mark] for line in words]}


PAIRS = [("aaa bbbb", "ccccc"), ("dddddd", "eee ffff ggggg"), (" ", "lost"), ("lost", ""), ("hhh", "iiii")]


def test_sentences_go_through_the_tokenizer_each_side_with_its_own_marks():
    first, second = text_batches(Lengths(), PAIRS, batch_size=2)
    assert first.source.tolist() == [[3, 4, 1], [6, 1, 0]]
    assert first.target.tolist() == [[5, 2, 0, 0], [3, 4, 5, 2]]
    # Pairs with an empty line are left out: the next batch is the last pair.
    assert (second.source.tolist(), second.target.tolist()) == ([[3, 1]], [[4, 2]])


def test_long_sentences_are_cut():
    (batch,) = text_batches(Lengths(), PAIRS, longest=3)
    assert batch.target.tolist() == [[5, 2, 0], [3, 4, 2], [4, 2, 0]]


def test_no_more_is_read_than_asked_for():
    tokenizer, pairs = Lengths(), iter(PAIRS)
    next(text_batches(tokenizer, pairs, batch_size=1))
    assert tokenizer.asked == 2  # a source and a target
    assert next(pairs) == PAIRS[1]


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"longest": 0}])
def test_sizes_start_at_1(changes):
    with pytest.raises(BadInput, match="both must be at least 1"):
        next(text_batches(Lengths(), PAIRS, **changes))
