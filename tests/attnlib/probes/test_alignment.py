"""Links of words: error rates by hand and against a loop, the diagonal, IBM Model 1 against dictionaries."""

import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.probes import ibm_model_1
from attnlib.probes.alignment_error import AlignmentSums, diagonal, gold_links, words_only
from attnlib.probes.ibm_model_1 import NO_LINK, NULL, IBMModel1
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import Vocabulary
from tests.attnlib.refusals import refused

WORKED = {
    # Three rows link to 0, 1, 1; of the four gold links two are hit.
    "links that are right and links that are not": (
        [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.5, 0.4]], {(0, 0), (1, 1), (1, 2), (2, 2)},
        {"made": 3, "gold": 4, "rows": 3, "precision": 2 / 3, "recall": 2 / 4, "error_rate": 1 - 4 / 7,
         "agreement": 2 / 3, "mass_on_gold": (0.8 + 0.5 + 0.3 + 0.4) / 3},
    ),
    "ties share their link": ([[0.5, 0.5]], {(0, 1)}, {"precision": 0.5}),
    "a near tie is none": ([[0.5, 0.499]], {(0, 1)}, {"precision": 0}),
    # All of its weight is on the end mark: not a link made and missed, but none.
    "a word that attends to no word": (
        [[0.0, 0.0], [0.5, 0.0]], {(0, 0), (1, 0)}, {"made": 1, "precision": 1.0, "recall": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKED)
def test_error_rates_by_hand(case):
    attention, gold, expected = WORKED[case]
    attention = torch.tensor([attention])
    masks = (torch.ones(1, length, dtype=torch.bool) for length in attention.shape[1:])
    found = AlignmentSums().update(attention, gold_links([gold], *attention.shape[1:]), *masks).result()
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_two_batches_come_to_what_a_loop_counts(seed, batch, with_null):
    """Weights that are often tied or zero, rows below null, rows without gold, anything outside the words."""
    rng = np.random.default_rng(seed)
    attention, null = rng.choice([0.0, 0.25, 0.5, 1.0], (batch, 4, 5)), rng.choice([0.25, 0.5], (batch, 4))
    rows, columns = (np.arange(n) < rng.integers(0, n + 1, (batch, 1)) for n in (4, 5))
    inside = rows[:, :, None] & columns[:, None, :]
    gold = inside & (rng.random(inside.shape) < 0.2)
    hits = made = 0
    for n, s in np.argwhere(rows):
        row, best = attention[n, s][columns[n]], attention[n, s][columns[n]].max(initial=0)
        if best > 0 and not (with_null and best < null[n, s]):
            made += 1
            hits += gold[n, s][columns[n]][row == best].mean()
    attention[~inside] = 9.0
    given = list(map(torch.from_numpy, (attention, gold, rows, columns, *[null] * with_null)))
    sums = [AlignmentSums().update(*(own[part] for own in given)) for part in (slice(2), slice(2, None))]
    found, linked = (sums[0] + sums[1]).result(), int(gold.any(-1).sum())
    assert (found.made, found.gold, found.rows) == (made, gold.sum(), linked)
    expected = {"precision": (hits, made), "recall": (hits, gold.sum()), "agreement": (hits, linked)}
    expected |= {"mass_on_gold": (attention[gold].sum(), linked)}
    for name, (part, whole) in expected.items():
        assert getattr(found, name) == pytest.approx(part / whole if whole else math.nan, nan_ok=True)
    if made + gold.sum():
        assert found.error_rate == pytest.approx(1 - 2 * hits / (made + gold.sum()))


def test_the_diagonal_stretches_to_the_longer_side():
    """Two target words halve four source words, whose middles are 1 and 3; four halve two the other way.

    The middle of four is 2.
    """
    expected = {(3, 3): [0, 1, 2], (2, 2): [0, 1], (2, 4): [1, 3], (4, 2): [0, 0, 1, 1], (1, 4): [2]}
    rows, columns = (torch.arange(4) < torch.tensor(side)[:, None] for side in zip(*expected, strict=True))
    found = diagonal(rows, columns)
    for own, places in zip(found, expected.values(), strict=True):
        assert own[: len(places)].argmax(-1).tolist() == places
    assert float(found.sum()) == int(rows.sum())  # none at padding


def test_a_mask_without_end_marks():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert words_only(mask).tolist() == [[True, True, False], [False, False, False]]


# IBM Model 1.

GERMAN = Vocabulary.of(["das", "Haus", "Buch", "ein"])
ENGLISH = Vocabulary.of(["the", "house", "book", "a"])
PAIRS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]


def fitted(pairs, *iterations) -> IBMModel1:
    lines = zip((GERMAN, ENGLISH), zip(*pairs, strict=True), strict=True)
    sides = [[words.encode(line.split()) for line in side] for words, side in lines]
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


def test_one_iteration_of_ibm_model_1_by_hand():
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
    assert (model.counts[entry], model.cooccurrences[entry]) == (pytest.approx(2 / 3), 2)


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


BOTH = torch.ones(1, 2, dtype=torch.bool)


def align(links, length, target_words):
    AlignmentSums().update(torch.ones(1, 2, length), gold_links([links], 2, length), target_words, BOTH)


def fit(sources, targets, iterations=1):
    IBMModel1.fit(Corpus.from_ids(sources, targets), 6, 6, iterations=iterations)


test_what_cannot_be_is_refused = refused(
    (lambda: align({(1, 0)}, 2, torch.tensor([[True, False]])), "outside the words"),
    (lambda: align(set(), 3, BOTH), "give all three as"),
    (lambda: fit([], []), "at least one sentence pair"),
    (lambda: fit([[4]], [[]]), "at least one sentence pair"),
    (lambda: fit([[4]], [[4]], 0), "iterations is 0"),
    (lambda: fit([[7]], [[4]]), "a source word has id 7, but n_source is 6; ids end at 5"),
    (lambda: fit([[4]], [[6]]), "a target word has id 6, but n_target is 6"),
)
