"""IBM Model 1 by hand, and against dictionaries."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.probes import ibm_model_1
from attnlib.probes.ibm_model_1 import NO_LINK, NULL, IBMModel1
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import Vocabulary

GERMAN = Vocabulary.of(["das", "Haus", "Buch", "ein"])
ENGLISH = Vocabulary.of(["the", "house", "book", "a"])
PAIRS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]


def fitted(pairs, *iterations) -> IBMModel1:
    sources, targets = zip(*pairs, strict=True)
    sides = (
        [GERMAN.encode(line.split()) for line in sources],
        [ENGLISH.encode(line.split()) for line in targets],
    )
    return IBMModel1.fit(Corpus.from_ids(*sides), len(GERMAN), len(ENGLISH), *iterations)


def naive(pairs, n_target: int, iterations: int) -> tuple[dict, dict]:
    """The algorithm as textbooks print it, word by word over dictionaries."""
    table = defaultdict(lambda: 1 / n_target)
    counts: dict = {}
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for words, targets in pairs:
            source = [NULL, *words]
            for target in targets:
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
    assert len(fitted(PAIRS).log_likelihood) == 11  # before each of ten iterations, and after
    entry = np.flatnonzero((model.sources == das) & (model.targets == the))
    assert model.counts[entry] == pytest.approx(2 / 3)
    assert model.cooccurrences[entry] == 2


def test_the_classic_corpus_finds_its_dictionary():
    """das explains the better than Haus does, since it stands with it twice: so house is left to Haus."""
    model = fitted(PAIRS, 50)
    for source, target in [("das", "the"), ("Haus", "house"), ("Buch", "book"), ("ein", "a")]:
        assert model.probability(GERMAN.encode([source]), ENGLISH.encode([target])) > 0.9
    links = model.best_links(GERMAN.encode(["das", "Haus"]), ENGLISH.encode(["the", "house"]))
    assert links.tolist() == [0, 1]


WORDS = st.integers(4, 11)
SENTENCES = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=6)), min_size=1
)


@given(SENTENCES.filter(lambda pairs: any(target for _, target in pairs)), st.sampled_from([1, 50, 10**6]))
def test_it_is_the_plain_algorithm_and_climbs(pairs, block):
    corpus = Corpus.from_ids(*zip(*pairs, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ibm_model_1, "_BLOCK", block)
        model = IBMModel1.fit(corpus, 12, 12, iterations=4)
    table, counts = naive(pairs, 12, iterations=4)
    entries = list(zip(model.sources.tolist(), model.targets.tolist(), strict=True))
    assert dict(zip(entries, model.probabilities, strict=True)) == pytest.approx(table)
    assert dict(zip(entries, model.counts, strict=True)) == pytest.approx(counts)
    assert len(model.log_likelihood) == 5
    assert (np.diff(model.log_likelihood) >= -1e-9).all()
    for source, target in pairs:
        weights = np.array([[table[word, own] for word in (NULL, *source)] for own in target])
        if target:
            expected = weights[:, 1:] / weights.sum(1, keepdims=True)
            assert model.posteriors(source, target) == pytest.approx(expected)


@pytest.mark.parametrize(("pairs", "source", "target"), [(PAIRS, "ein", "house"), (PAIRS[:1], "das", "book")])
def test_a_word_that_only_null_explains_or_nothing_has_no_link(pairs, source, target):
    """house and ein never stand in one sentence, but every word stands with null; book is not seen at all."""
    model, sides = fitted(pairs, 3), (GERMAN.encode([source]), ENGLISH.encode([target]))
    assert model.best_links(*sides).tolist() == [NO_LINK]
    assert model.posteriors(*sides).tolist() == [[0.0]]
    assert NO_LINK == -1
    assert model.probability(len(GERMAN), 0) == 0  # of a word behind all others
