"""Corpora, batches and words."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus, collate, evaluation_batches, training_batches
from attnlib.models.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary
from tests.attnlib.refusals import refused

WORDS = st.lists(st.integers(3, 9), max_size=7)
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40)


def corpus_of(pairs):
    return Corpus.from_ids([a for a, _ in pairs], [b for _, b in pairs])


def varied(n=3000):
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 30, size=n)
    sentences = [draw.integers(4, 20, size=length) for length in lengths]
    return Corpus.from_ids(sentences, sentences)


def test_a_batch_worked_by_hand():
    batch = collate(corpus_of([([5, 6, 7], [8]), ([4], [9, 9])]), [0, 1])
    assert batch.source.tolist() == [[5, 6, 7, EOS], [4, EOS, PAD, PAD]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target_input.tolist() == [[BOS, 8, PAD], [BOS, 9, 9]]
    assert batch.target_output.tolist() == [[8, EOS, PAD], [9, 9, EOS]]
    assert batch.target_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.indices.tolist() == [0, 1]


@given(PAIRS, st.data())
def test_a_row_is_its_words_with_one_mark_before_padding(pairs, data):
    indices = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=12))
    batch = collate(corpus_of(pairs), indices)
    assert batch.indices.tolist() == indices
    sources, targets = zip(*(pairs[i] for i in indices), strict=True)
    for sentences, before, after, rows, mask in (
        (sources, [], [EOS], batch.source, batch.source_mask),
        (targets, [], [EOS], batch.target_output, batch.target_mask),
        (targets, [BOS], [], batch.target_input, batch.target_mask),
    ):
        width = 1 + max(map(len, sentences))
        expected = [[*before, *words, *after] for words in sentences]
        assert rows.tolist() == [row + [PAD] * (width - len(row)) for row in expected]
        assert mask.tolist() == [[at < len(row) for at in range(width)] for row in expected]


@given(PAIRS)
def test_a_corpus_gives_back_its_sentences(pairs):
    corpus = corpus_of(pairs)
    assert [(corpus.source(i).tolist(), corpus.target(i).tolist()) for i in range(len(corpus))] == pairs
    assert corpus.source_lengths.tolist() == [len(a) for a, _ in pairs]
    assert corpus.target_lengths.tolist() == [len(b) for _, b in pairs]
    chosen = list(range(len(pairs)))[::-2]
    part = corpus.subset(chosen)
    assert [part.source(i).tolist() for i in range(len(part))] == [pairs[i][0] for i in chosen]


@pytest.mark.signatures
@given(PAIRS, st.integers(1, 9), st.integers(0, 2**32))
def test_an_epoch_visits_every_sample_once(pairs, batch_size, seed):
    corpus = corpus_of(pairs)
    steps = -(-len(pairs) // batch_size)
    stream = training_batches(corpus, batch_size, seed=seed)
    for _ in range(3):
        epoch = list(islice(stream, steps))
        assert sorted(i for batch in epoch for i in batch.indices.tolist()) == list(range(len(pairs)))
        assert all(len(batch) <= batch_size for batch in epoch)


@given(PAIRS, st.integers(1, 9), st.integers(0, 99), st.integers(0, 30))
def test_the_stream_resumed_at_a_step_is_the_stream_from_that_step(pairs, batch_size, seed, step):
    corpus = corpus_of(pairs)
    whole = islice(training_batches(corpus, batch_size, seed=seed), step, step + 6)
    resumed = islice(training_batches(corpus, batch_size, seed=seed, start_step=step), 6)
    for first, other in zip(whole, resumed, strict=True):
        assert all(
            torch.equal(getattr(first, name), getattr(other, name)) for name in first.__dataclass_fields__
        )


@pytest.fixture(scope="module")
def two_epochs():
    """Batches of two epochs of 3,000 samples, and the numbers of their samples."""
    batches = list(islice(training_batches(varied(), 64, seed=0), 94))
    return batches, [batch.indices.tolist() for batch in batches]


def test_epochs_differ(two_epochs):
    _, drawn = two_epochs
    assert drawn[:47] != drawn[47:]


def test_seeds_differ(two_epochs):
    _, drawn = two_epochs
    assert drawn[0] != next(training_batches(varied(), 64, seed=1)).indices.tolist()


def test_batches_by_length_leave_little_padding(two_epochs):
    batches, _ = two_epochs
    padded = sum((~batch.source_mask).sum().item() for batch in batches)
    assert padded < 0.05 * sum(batch.source.numel() for batch in batches)


def test_drawing_batches_leaves_the_global_random_state_alone():
    state = torch.get_rng_state()
    next(training_batches(varied(), 64, seed=0))
    assert torch.equal(state, torch.get_rng_state())


@given(PAIRS, st.integers(1, 9))
def test_evaluation_visits_every_sample_once_by_length(pairs, batch_size):
    order = [i for batch in evaluation_batches(corpus_of(pairs), batch_size) for i in batch.indices.tolist()]
    assert order == sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), len(pairs[i][1]), i))


SENTENCES = [["b", "a", "b"], ["c", "a", "b"], ["d"]]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        pytest.param({}, "bacd", id="by_falling_count_then_by_letter"),
        pytest.param({"min_count": 2}, "ba", id="without_rare_words"),
        pytest.param({"max_words": 3}, "bac", id="at_most_three"),
        pytest.param({"max_words": 1}, "b", id="at_most_one"),
        pytest.param({"min_count": 4}, "", id="all_are_rare"),
    ],
)
def test_words_of_a_vocabulary(options, kept):
    assert Vocabulary.from_sentences(SENTENCES, **options).words == (*MARKS, *kept)


def test_marks_are_spelled_in_angle_brackets():
    vocabulary = Vocabulary.from_sentences(SENTENCES)
    assert vocabulary.decode([PAD, BOS, EOS, UNK]) == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_an_open_vocabulary_reads_unseen_words_as_unk():
    vocabulary = Vocabulary.from_sentences(SENTENCES, min_count=2, open=True)
    assert vocabulary.encode(["a", "c", "b", "zebra"]).tolist() == [5, UNK, 4, UNK]


def test_text_that_spells_a_mark_never_becomes_the_mark():
    sentences = [["<pad>", "a"], ["<pad>", "<eos>", "a"]]
    vocabulary = Vocabulary.from_sentences(sentences, open=True)
    assert vocabulary.words == (*MARKS, "a")
    assert vocabulary.encode(["<pad>", "a", "<eos>"]).tolist() == [UNK, 4, UNK]


@pytest.mark.slow
@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=6), max_size=6))
def test_decoding_undoes_encoding(sentences):
    sentences = [[word for word in sentence if word not in MARKS] for sentence in sentences]
    vocabulary = Vocabulary.from_sentences(sentences)
    for sentence in sentences:
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence
    assert len(vocabulary) == 4 + len({word for sentence in sentences for word in sentence})


def first_batch(corpus, **wrong):
    return next(training_batches(corpus, **{"batch_size": 4, "seed": 0} | wrong))


test_what_makes_no_sense_is_refused = refused(
    *((partial(collate, varied(3), indices), "0…2; got [") for indices in ([], [3], [-1])),
    (lambda: first_batch(corpus_of([])), "without samples"),
    *((partial(first_batch, varied(5), **wrong), "batch_size must be ≥ 1")
      for wrong in ({"batch_size": 0}, {"seed": -1}, {"start_step": -1})),
    (lambda: Vocabulary.of(["walk", "look"]).encode(["look", "wakl"]), "'wakl'; did you mean 'walk'"),
    (lambda: Vocabulary.of(["a"]).encode(["<pad>"]), "no word '<pad>'"),
    (lambda: Vocabulary.of(["a"]).decode([4, 5]), "0…4; got 4…5"),
)  # fmt: skip


# Samples chosen from a corpus.

CORPUS = Corpus.from_ids([[4, 5], [6], [7, 8, 9]], [[5], [4, 4], []])


@pytest.mark.parametrize("indices", [[2, 0, 2], np.array([2, 0, 2]), (2, 0, 2)])
def test_chosen_samples_are_in_the_order_of_their_indices(indices):
    chosen = CORPUS.subset(indices)
    assert [chosen.source(i).tolist() for i in range(3)] == [[7, 8, 9], [4, 5], [7, 8, 9]]
    assert [chosen.target(i).tolist() for i in range(3)] == [[], [5], []]


@pytest.mark.signatures
def test_no_indices_choose_no_samples():
    assert len(CORPUS.subset([])) == 0


def test_a_subset_shares_no_memory_with_its_corpus():
    chosen = CORPUS.subset(range(3))
    assert not np.shares_memory(chosen.source_ids, CORPUS.source_ids)


def test_no_sample_is_read_alone(monkeypatch):
    monkeypatch.setattr(Corpus, "source", None)
    assert len(CORPUS.subset(range(2))) == 2


@pytest.mark.parametrize("indices", [[3], [-1], [0.5], ["a"], [[0, 1]], [True]])
@pytest.mark.parametrize("choose", [Corpus.subset, collate])
def test_indices_that_choose_nothing_are_refused(choose, indices):
    with pytest.raises(BadInput):
        choose(CORPUS, indices)
