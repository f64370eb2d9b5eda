"""IBM Model 1 by hand, against dictionaries, and by what must hold of any run."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.probes.ibm_model_1 import NO_LINK, NULL, IBMModel1
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import Vocabulary

GERMAN = Vocabulary.of(["das", "Haus", "Buch", "ein"])
ENGLISH = Vocabulary.of(["the", "house", "book", "a"])
PAIRS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]


def corpus_of(pairs) -> Corpus:
    sources, targets = zip(*pairs, strict=True)
    return Corpus.from_ids(
        [GERMAN.encode(line.split()) for line in sources], [ENGLISH.encode(line.split()) for line in targets]
    )


def fitted(pairs, iterations) -> IBMModel1:
    return IBMModel1.fit(corpus_of(pairs), len(GERMAN), len(ENGLISH), iterations)


def random_corpus(seed: int, samples: int = 40) -> Corpus:
    draw = np.random.default_rng(seed)
    sides = ([draw.integers(4, 12, size=draw.integers(1, 7)) for _ in range(samples)] for _ in range(2))
    return Corpus.from_ids(*sides)


def naive(corpus: Corpus, n_target: int, iterations: int) -> tuple[dict, dict]:
    """The algorithm as textbooks print it, word by word over dictionaries."""
    table = defaultdict(lambda: 1 / n_target)
    counts: dict = {}
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for i in range(len(corpus)):
            source = [NULL, *corpus.source(i).tolist()]
            for target in corpus.target(i).tolist():
                all_of_it = sum(table[word, target] for word in source)
                for word in source:
                    counts[word, target] += table[word, target] / all_of_it
                    totals[word] += table[word, target] / all_of_it
        table = {pair: count / totals[pair[0]] for pair, count in counts.items()}
    return table, counts


def test_one_iteration_by_hand():
    """das, Haus, null start equal: a third of a link each. das meets the twice, house and book once."""
    model = fitted(PAIRS, 1)
    das, haus = GERMAN.encode(["das", "Haus"])
    the, house, book, a = ENGLISH.encode(["the", "house", "book", "a"])
    words = np.array([the, house, book, a])
    assert model.probability(das, words) == pytest.approx([1 / 2, 1 / 4, 1 / 4, 0])
    assert model.probability(haus, the) == pytest.approx(1 / 2)
    assert model.probability(NULL, words) == pytest.approx([1 / 3, 1 / 6, 1 / 3, 1 / 6])
    entry = np.flatnonzero((model.sources == das) & (model.targets == the))
    assert model.counts[entry] == pytest.approx(2 / 3)
    assert model.cooccurrences[entry] == 2


def test_the_classic_corpus_finds_its_dictionary():
    """das explains the better than Haus does, since it stands with it twice: so house is left to Haus."""
    model = fitted(PAIRS, 50)
    for source, target in [("das", "the"), ("Haus", "house"), ("Buch", "book"), ("ein", "a")]:
        german, english = GERMAN.encode([source])[0], ENGLISH.encode([target])[0]
        rivals = model.probability(np.full(8, german), np.arange(8))
        assert rivals.argmax() == english
        assert rivals[english] > 0.9
    links = model.best_links(GERMAN.encode(["das", "Haus"]), ENGLISH.encode(["the", "house"]))
    assert links.tolist() == [0, 1]


@pytest.mark.parametrize(("seed", "block"), [(0, None), (1, None), (2, 50)])
def test_the_table_and_its_counts_are_those_of_the_plain_algorithm(monkeypatch, seed, block):
    if block:
        monkeypatch.setattr("attnlib.probes.ibm_model_1._BLOCK", block)
    corpus = random_corpus(seed)
    model = IBMModel1.fit(corpus, 12, 12, iterations=4)
    table, counts = naive(corpus, 12, iterations=4)
    found = {
        (int(s), int(t)): (p, c)
        for s, t, p, c in zip(model.sources, model.targets, model.probabilities, model.counts, strict=True)
    }
    assert set(found) == set(table)
    for pair, both in found.items():
        assert both == pytest.approx((table[pair], counts[pair]))
    assert model.log_likelihood[-1] > model.log_likelihood[1] > model.log_likelihood[0]


SENTENCES = st.lists(st.integers(4, 11), min_size=1, max_size=6)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=12))
def test_the_likelihood_never_falls_and_probabilities_sum_to_one(pairs):
    sources, targets = ([np.array(sentence) for sentence in side] for side in zip(*pairs, strict=True))
    corpus = Corpus.from_ids(sources, targets)
    model = IBMModel1.fit(corpus, 12, 12, iterations=25)
    assert len(model.log_likelihood) == 26
    assert (np.diff(model.log_likelihood) >= -1e-9).all()
    sums = np.bincount(model.sources, weights=model.probabilities)
    assert sums[sums > 0] == pytest.approx(1)
    assert model.counts.sum() == pytest.approx(len(corpus.target_ids))  # each target word is one link


def test_posteriors_are_shares_and_null_takes_the_rest():
    model = fitted(PAIRS, 3)
    source, target = GERMAN.encode(["das", "Buch"]), ENGLISH.encode(["the", "book"])
    rows, null = model.posteriors(source, target), model.probability(NULL, target)
    assert rows.shape == (2, 2)
    for s in range(2):
        words = model.probability(source, target[[s, s]])
        assert rows[s] == pytest.approx(words / (words.sum() + null[s]))


@pytest.mark.parametrize(("pairs", "source", "target"), [(PAIRS, "ein", "house"), (PAIRS[:1], "das", "book")])
def test_a_word_that_only_null_explains_or_nothing_has_no_link(pairs, source, target):
    """house and ein never stand in one sentence, but every word stands with null; book is not seen at all."""
    model, sides = fitted(pairs, 3), (GERMAN.encode([source]), ENGLISH.encode([target]))
    assert model.best_links(*sides).tolist() == [NO_LINK]
    assert model.posteriors(*sides).tolist() == [[0.0]]


def test_an_empty_target_is_passed_over():
    model = IBMModel1.fit(Corpus.from_ids([[4], [4, 5]], [[], [4, 4]]), 6, 6, iterations=2)
    assert model.counts.sum() == pytest.approx(2)


@pytest.mark.parametrize(
    ("corpus", "sizes", "iterations", "message"),
    [
        (Corpus.from_ids([], []), (6, 6), 1, "at least one sentence pair"),
        (Corpus.from_ids([[4]], [[]]), (6, 6), 1, "at least one sentence pair"),
        (Corpus.from_ids([[4]], [[4]]), (6, 6), 0, "iterations is 0"),
        (Corpus.from_ids([[7]], [[4]]), (6, 6), 1, "a source word has id 7, but n_source is 6"),
        (Corpus.from_ids([[4]], [[6]]), (6, 6), 1, "a target word has id 6, but n_target is 6"),
    ],
)
def test_what_cannot_be_fitted_is_said(corpus, sizes, iterations, message):
    with pytest.raises(BadInput, match=message):
        IBMModel1.fit(corpus, *sizes, iterations=iterations)
