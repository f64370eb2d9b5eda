"""Batches of labelled texts: marks, masks, epochs that visit every text once, resumption."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.training.vocabulary import BOS, EOS, PAD
from companion.data.labelled import LabelledBatches, LabelledTexts, collate_labelled, judging_batches


def texts_of(lengths):
    return LabelledTexts.of([[5] * length for length in lengths], [i % 2 for i in range(len(lengths))])


def test_marks_and_padding_by_hand():
    texts = LabelledTexts.of([[7, 8], [9], [4, 5, 6]], [1, 0, 1])
    batch = collate_labelled(texts, [1, 0])
    assert batch.tokens.tolist() == [[BOS, 9, EOS, PAD], [BOS, 7, 8, EOS]]
    assert batch.mask.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.labels.tolist() == [0, 1]
    assert batch.indices.tolist() == [1, 0]
    assert texts.subset([2, 1]).text(0).tolist() == [4, 5, 6]
    assert texts.subset([2, 1]).labels.tolist() == [1, 0]


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_an_epoch_visits_every_text_once(lengths, batch_size, seed):
    batches = LabelledBatches(texts_of(lengths), batch_size, seed=seed)
    for epoch in (0, 2):
        first = epoch * len(batches)
        seen = [batches.indices(step) for step in range(first, first + len(batches))]
        assert sorted(np.concatenate(seen).tolist()) == list(range(len(lengths)))
        assert max(map(len, seen)) <= batch_size


def test_a_batch_is_a_function_of_step_and_seed_alone():
    texts = texts_of(np.random.default_rng(0).integers(1, 40, size=100))
    forwards, backwards = (LabelledBatches(texts, 8, seed=3) for _ in range(2))
    ahead = [forwards.indices(step).tolist() for step in range(40)]
    assert [backwards.indices(step).tolist() for step in reversed(range(40))][::-1] == ahead
    assert LabelledBatches(texts, 8, seed=4).indices(0).tolist() != ahead[0]
    assert ahead[:13] != ahead[13:26]  # the next epoch has another order


def test_texts_of_a_batch_have_about_the_same_length():
    lengths = np.random.default_rng(1).integers(1, 200, size=640)
    batches = LabelledBatches(texts_of(lengths), 16, seed=0)
    padded = sum(len(batches.indices(step)) * lengths[batches.indices(step)].max() for step in range(40))
    assert padded < 1.1 * lengths.sum()


@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40), positions=st.integers(1, 200))
def test_judging_visits_every_text_once_within_the_positions(lengths, positions):
    batches = list(judging_batches(texts_of(lengths), positions=positions))
    assert sorted(i for batch in batches for i in batch.indices.tolist()) == list(range(len(lengths)))
    assert all(batch.tokens.numel() <= positions or len(batch) == 1 for batch in batches)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ([[5], []], [0, 1], "without words"),
        ([[5], [2]], [0, 1], "words only"),
        ([[5], [5]], [0, 2], "labels must be 0 or 1"),
        ([[5], [5]], [0], "1 labels, 3 offsets"),
    ],
)
def test_texts_that_do_not_fit_are_refused(texts, labels, message):
    with pytest.raises(BadInput, match=message):
        LabelledTexts.of(texts, labels)


def test_batches_that_cannot_be_made_are_refused():
    texts = texts_of([2, 3])
    for call in (
        lambda: LabelledBatches(texts, 0, seed=0),
        lambda: LabelledBatches(texts.subset([]), 4, seed=0),
        lambda: collate_labelled(texts, [2]),
        lambda: collate_labelled(texts, []),
        lambda: next(judging_batches(texts, positions=0)),
    ):
        with pytest.raises(BadInput):
            call()
