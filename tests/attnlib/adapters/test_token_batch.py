"""Batches of tokens: padding of either side, and sentences through a tokenizer."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import TokenBatch, text_batches
from attnlib.adapters.token_batch import line_batches
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
    [([[1], []], [[2], [3]], "source row 1 is all padding"), ([], [], "no rows")],
)
def test_rows_that_make_no_batch_are_refused(sources, targets, message):
    with pytest.raises(BadInput, match=message):
        TokenBatch.of_rows(sources, targets)


# Text.


class Counting:
    """A tokenizer: the lengths of the words, then a mark, 1 of a source, 2 of a target; it counts."""

    def __init__(self):
        self.lines = 0

    def __call__(self, text=None, text_target=None, *, truncation, max_length):
        assert truncation
        lines, mark = (text_target, 2) if text is None else (text, 1)
        self.lines += len(lines)
        words = [line.split()[: max_length - 1] for line in lines]
        return {"input_ids": [[*map(len, line), mark] for line in words]}


PAIRS = [
    ("", "a"), ("aaa bbbb", "ccccc"), ("dddddd", "eee ffff ggggg"), (" ", "lost"), ("lost", ""),
    ("hhh", "iiii"), ("h", ""),
]  # fmt: skip


def test_sentences_go_through_the_tokenizer_each_side_with_its_own_marks():
    first, second = text_batches(Counting(), PAIRS, batch_size=2)
    assert first.source.tolist() == [[3, 4, 1], [6, 1, 0]]
    assert first.target.tolist() == [[5, 2, 0, 0], [3, 4, 5, 2]]
    # Pairs with an empty line are left out: the next batch is the last pair.
    assert (second.source.tolist(), second.target.tolist()) == ([[3, 1]], [[4, 2]])
    (cut,) = text_batches(Counting(), PAIRS, longest=3, prefix="x ")
    assert cut.source.tolist() == [[1, 3, 1], [1, 6, 1], [1, 3, 1]]
    assert cut.target.tolist() == [[5, 2, 0], [3, 4, 2], [4, 2, 0]]


def test_pairs_left_out_and_cut_are_counted():
    """Four sides are empty, the last behind all batches; with its mark, one side has four pieces."""
    for longest, cut in ((3, 1), (4, 0)):
        found = list(line_batches(Counting(), PAIRS, batch_size=2, longest=longest))
        assert [(own.left_out, own.cut) for own in found] == [(3, cut), (1, 0)]
    assert list(line_batches(Counting(), PAIRS[:1])) == []


def test_only_what_is_used_is_tokenized():
    tokenizer, pairs = Counting(), iter(PAIRS)
    first = next(line_batches(tokenizer, pairs, batch_size=1))
    assert tokenizer.lines == 0
    assert first.tokens is first.tokens
    assert first.cut == 0
    assert tokenizer.lines == 2  # a source and a target
    assert next(pairs) == PAIRS[3]  # one whole pair is read ahead


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"longest": 0}])
def test_sizes_start_at_1(changes):
    with pytest.raises(BadInput, match="both must be at least 1"):
        next(text_batches(Counting(), PAIRS, **changes))
