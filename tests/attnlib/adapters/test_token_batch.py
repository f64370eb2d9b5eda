"""Batches of tokens: padding of either side, and sentences through a tokenizer."""

import torch

from attnlib.adapters import TokenBatch, text_batches
from attnlib.adapters.token_batch import line_batches


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
    packed = TokenBatch(ids, ids >= 0, ids, ids >= 0, ids).packed()
    assert packed.source.tolist() == packed.target.tolist() == packed.read.tolist() == [[5, 0], [6, 7]]


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
