"""Count tables by hand, against Model 1 with a null word, and by what must hold of any corpus."""

import numpy as np
import pytest

from attnlib.errors import BadInput
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.training.corpus import Corpus
from notebooks.learn.early_dynamics.count_tables import (
    CountTables,
    alignment,
    cooccurrence,
    log_likelihood,
    shared_counts,
    translation,
)

SIZE = 12


def random_corpus(seed: int, samples: int = 30) -> Corpus:
    draw = np.random.default_rng(seed)
    sides = ([draw.integers(4, SIZE, size=draw.integers(1, 7)) for _ in range(samples)] for _ in range(2))
    return Corpus.from_ids(*sides)


def test_by_hand():
    """Sources 4 5 and 4; 4 meets 6 twice, for half and for a whole."""
    corpus = Corpus.from_ids([[4, 5], [4]], [[6, 7], [6]])
    counts = cooccurrence(corpus, 6, 8)
    assert counts[4, [6, 7]].tolist() == [1.5, 0.5]
    assert counts[5, [6, 7]].tolist() == [0.5, 0.5]
    assert counts.sum() == 3  # each target word is handed out whole
    table = translation(counts)
    assert table[4, [6, 7]].tolist() == [0.75, 0.25]
    assert alignment(table, [4, 5], [6, 7]) == pytest.approx(np.array([[0.6, 0.4], [1 / 3, 2 / 3]]))
    again = shared_counts(corpus, table)
    assert again[4, [6, 7]] == pytest.approx([1.6, 1 / 3])
    assert again[5, [6, 7]] == pytest.approx([0.4, 2 / 3])


@pytest.mark.parametrize("seed", range(3))
def test_with_null_written_into_every_source_it_is_ibm_model_1(seed):
    corpus = random_corpus(seed)
    null = 3  # <unk>, a word like any other here
    sources = [np.concatenate(([null], corpus.source(i))) for i in range(len(corpus))]
    written = Corpus.from_ids(sources, [corpus.target(i) for i in range(len(corpus))])
    ours = CountTables.of(written, SIZE, SIZE, 20)
    for iterations in (1, 5):
        theirs = IBMModel1.fit(corpus, SIZE, SIZE, iterations)
        rows = np.where(theirs.sources == 0, null, theirs.sources)
        assert ours.counts[iterations - 1][rows, theirs.targets] == pytest.approx(theirs.counts)
    # the likelihood never falls, and no target word is lost
    assert len(ours.counts) == len(ours.log_likelihood) == 21
    assert (np.diff(ours.log_likelihood) >= -1e-9).all()
    assert ours.log_likelihood[-1] > ours.log_likelihood[0]
    for counts in ours.counts:
        assert counts.sum() == pytest.approx(len(corpus.target_ids))
        assert translation(counts).sum(1) == pytest.approx((counts.sum(1) > 0).astype(float))


def test_words_that_meet_nothing_have_empty_rows():
    corpus = Corpus.from_ids([[4], [], [5]], [[4], [5], []])
    counts = cooccurrence(corpus, 6, 6)
    assert counts.sum() == 1  # an empty source hands nothing out
    assert translation(counts)[5].sum() == 0
    assert alignment(translation(counts), [5], [4]).tolist() == [[0.0]]
    assert log_likelihood(corpus, translation(counts)) == 0
    assert log_likelihood(Corpus.from_ids([[5]], [[4]]), translation(counts)) == -np.inf


SEVEN = Corpus.from_ids([[7]], [[4]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cooccurrence(SEVEN, 6, 6), "a source word has id 7, but there are 6"),
        (lambda: shared_counts(SEVEN, np.ones((8, 4))), "a target word has id 4, but there are 4"),
        (lambda: CountTables.of(SEVEN, 8, 8, -1), "iterations is -1"),
    ],
)
def test_what_cannot_be_counted_is_said(call, message):
    with pytest.raises(BadInput, match=message):
        call()
