"""Batches of texts and of pairs: every sample once an epoch, as a function of the step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import BOS, EOS, PAD
from companion.data.labelled import LabelledBatches, LabelledTexts, collate_labelled, judging_batches
from companion.data.pieces import EqualLengthBatches


def texts_of(lengths):
    return LabelledTexts.of([[5] * length for length in lengths], [i % 2 for i in range(len(lengths))])


def pairs_of(lengths):
    draw = np.random.default_rng(0)
    return Corpus.from_ids(*([draw.integers(4, 20, size=n + side) for n in lengths] for side in (0, 1)))


def of_texts(lengths, batch_size, seed):
    batches = LabelledBatches(texts_of(lengths), batch_size, seed=seed)
    return batches, len(batches)


def of_pairs(lengths, batch_size, seed):
    batches = EqualLengthBatches(pairs_of(lengths), batch_size, seed)
    return batches, batches.per_epoch


@pytest.mark.parametrize("made", [of_texts, of_pairs])
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 3),
)
@settings(max_examples=60)
def test_an_epoch_has_every_sample_once(made, lengths, batch_size, seed):
    batches, per_epoch = made(lengths, batch_size, seed)
    for epoch in (0, 2):
        seen = [batches.indices(step) for step in range(epoch * per_epoch, (epoch + 1) * per_epoch)]
        assert sorted(np.concatenate(seen).tolist()) == list(range(len(lengths)))
        assert max(map(len, seen)) <= batch_size
        assert [len(rows) < batch_size for rows in seen].count(True) == (len(lengths) % batch_size > 0)
        if made is of_pairs:
            mixed = sum(len({lengths[row] for row in rows}) > 1 for rows in seen)
            assert mixed <= len(set(lengths)) - 1


@pytest.mark.parametrize("made", [of_texts, of_pairs])
def test_a_batch_is_a_function_of_seed_and_step_whatever_was_asked_before(made):
    lengths = np.random.default_rng(0).integers(1, 5, size=100).tolist()
    (forwards, n), (backwards, _), (other, _) = (made(lengths, 8, seed) for seed in (3, 3, 4))
    ahead = [forwards(step).indices.tolist() for step in range(3 * n)]
    assert [backwards(step).indices.tolist() for step in reversed(range(3 * n))][::-1] == ahead
    assert other.indices(0).tolist() != ahead[0]
    assert ahead[:n] != ahead[n : 2 * n], "every epoch is shuffled anew"


def test_marks_and_padding_by_hand():
    texts = LabelledTexts.of([[7, 8], [9], [4, 5, 6]], [1, 0, 1])
    batch = collate_labelled(texts, [1, 0])
    assert batch.tokens.tolist() == [[BOS, 9, EOS, PAD], [BOS, 7, 8, EOS]]
    assert batch.mask.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.labels.tolist() == [0, 1]
    assert batch.indices.tolist() == [1, 0]
    assert texts.subset([2, 1]).text(0).tolist() == [4, 5, 6]
    assert texts.subset([2, 1]).labels.tolist() == [1, 0]


def test_texts_of_a_batch_have_about_the_same_length():
    lengths = np.random.default_rng(1).integers(1, 200, size=640)
    batches, _ = of_texts(lengths, 16, 0)
    padded = sum(len(batches.indices(step)) * lengths[batches.indices(step)].max() for step in range(40))
    assert padded < 1.1 * lengths.sum()


def test_sources_of_a_batch_are_of_one_length_but_for_what_is_left():
    batches, per_epoch = of_pairs([1 + i % 3 for i in range(96)], 16, 0)  # 32 sources of each length
    assert per_epoch == 6
    for batch in map(batches, range(6)):
        assert batch.source_mask.all()
        assert (batch.source[:, -1] == EOS).all()
        assert (batch.target_input[:, 0] == BOS).all()


@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40), positions=st.integers(1, 200))
def test_judging_visits_every_text_once_within_the_positions(lengths, positions):
    batches = list(judging_batches(texts_of(lengths), positions=positions))
    assert sorted(i for batch in batches for i in batch.indices.tolist()) == list(range(len(lengths)))
    assert all(batch.tokens.numel() <= positions or len(batch) == 1 for batch in batches)
