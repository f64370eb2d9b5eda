"""Fit IBM Model 1: which source word each target word translates, learned from sentence pairs alone.

Brown et al. 1993, "The mathematics of statistical machine translation", section 4.1. Every target word comes
from one source word of its sentence or from the null word, all equally likely beforehand:

    p(target | source) = prod_s 1 / (L + 1) sum_{t = 0..L} t(target_s | source_t)        source_0 = null

up to a constant for the length of the target. The likelihood is concave, so that the expectation-maximisation
algorithm climbs to its maximum from the uniform table, and the log-likelihood never falls on the way.

The table is sparse: it has an entry for each pair of words that occur in one sentence pair, null
included, and no other entry can ever be positive.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import PAD

NULL = PAD  # no word of a corpus has this id
NO_LINK = -1  # of a target word that comes from the null word

# Links (target occurrence, source occurrence) worked on at once: a few tens of MB, whatever the corpus.
_BLOCK = 1_000_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IBMModel1(ShowsShapes):
    """A fitted translation table, entry by entry in the order of (source word, target word).

    Attributes:
        n_source: size of the source's vocabulary.
        n_target: size of the target's vocabulary.
        sources: word id of each entry; :data:`NULL` is the null word.
        targets: word id of each entry.
        probabilities: t(target | source); those of one source word sum to one.
        counts: expected number of links of each entry, the table that the last maximisation normalised.
        cooccurrences: number of (target occurrence, source occurrence) pairs of each entry. The first
            expectation gives each of them 1 / (source length + 1).
        log_likelihood: of the corpus, in nats, before each iteration and after the last one.

    Example:
        >>> corpus = Corpus.from_ids([[4, 5], [4, 6]], [[7, 8], [7, 9]])  # the house, the book
        >>> model = IBMModel1.fit(corpus, n_source=7, n_target=10, iterations=20)
        >>> model.best_links([4, 5], [7, 8]).tolist()
        [0, 1]
    """

    n_source: int
    n_target: int
    sources: Int[np.ndarray, " entries"]
    targets: Int[np.ndarray, " entries"]
    probabilities: Float[np.ndarray, " entries"]
    counts: Float[np.ndarray, " entries"]
    cooccurrences: Int[np.ndarray, " entries"]
    log_likelihood: tuple[float, ...]

    @classmethod
    def fit(cls, corpus: Corpus, n_source: int, n_target: int, *, iterations: int = 10) -> "IBMModel1":
        """Fit a table by expectation-maximisation from the uniform one, ``1 / n_target``.

        Args:
            corpus: the sentence pairs.
            n_source: size of the source's vocabulary.
            n_target: size of the target's vocabulary.
            iterations: how often the table is estimated again.

        Returns:
            The model.

        Raises:
            BadInput: there is no sample or no iteration, or an id is beyond its vocabulary.
        """
        _check(corpus, n_source, n_target, iterations=iterations)
        blocks = list(_blocks(corpus, n_target))
        keys = np.unique(np.concatenate([block.keys for block in blocks]))
        blocks = [block.numbered_by(keys) for block in blocks]
        sources, targets = np.divmod(keys, n_target)
        cooccurrences = np.zeros(len(keys), np.int64)
        for block in blocks:
            cooccurrences += np.bincount(block.entries, minlength=len(keys))
        table = np.full(len(keys), 1 / n_target)
        counts = np.zeros(len(keys))
        log_likelihoods = []
        for _ in range(iterations):
            counts, log_likelihood = _expectation(table, blocks)
            log_likelihoods.append(log_likelihood)
            totals = np.bincount(sources, weights=counts, minlength=n_source)[sources]
            # A word that others explain away in all its sentences can lose its last count to underflow.
            table = np.divide(counts, totals, out=table, where=totals > 0)
        log_likelihoods.append(_expectation(table, blocks)[1])
        return cls(
            n_source=n_source,
            n_target=n_target,
            sources=sources,
            targets=targets,
            probabilities=table,
            counts=counts,
            cooccurrences=cooccurrences,
            log_likelihood=tuple(log_likelihoods),
        )

    @cached_property
    def _keys(self) -> Int[np.ndarray, " entries"]:
        return self.sources * self.n_target + self.targets

    def probability(
        self, source: Int[np.ndarray, "*shape"] | int, target: Int[np.ndarray, "*shape"] | int
    ) -> Float[np.ndarray, "*shape"]:
        """Return t(target | source), element by element; zero for words that never occurred together.

        Args:
            source: word ids.
            target: word ids, of the same shape.

        Returns:
            Probabilities.
        """
        sources = np.asarray(source, np.int64)
        targets = np.asarray(target, np.int64)
        keys = sources * self.n_target + targets
        last_entry = len(self._keys) - 1
        entries = np.searchsorted(self._keys, keys).clip(max=last_entry)
        has_entry = self._keys[entries] == keys
        return np.where(has_entry, self.probabilities[entries], 0.0)

    def posteriors(self, source, target) -> Float[np.ndarray, "target source"]:
        """Return the probability that each target word comes from each source word.

        Null has the rest of a row. Rows of words that never occurred with a word of this source, nor with
        null, are zero.

        Args:
            source: word ids of one sentence, without its end mark.
            target: those of the other.

        Returns:
            A row for each target word.
        """
        rows = self._with_null(source, target)
        return rows[:, 1:]

    def best_links(self, source, target) -> Int[np.ndarray, " target"]:
        """Return the most probable source position of each target word, the first of equally probable ones.

        Args:
            source: word ids of one sentence, without its end mark.
            target: those of the other.

        Returns:
            Positions, or :data:`NO_LINK`.
        """
        rows = self._with_null(source, target)
        of_null, of_words = rows[:, :1], rows[:, 1:]
        # Null comes last here: a word as probable as null is linked.
        best = np.concatenate([of_words, of_null], axis=1).argmax(1)  # (target,)
        is_null = best == len(source)
        is_known = rows.sum(1) > 0
        return np.where(is_known & ~is_null, best, NO_LINK)

    def _with_null(self, source, target) -> Float[np.ndarray, "target source_and_null"]:
        """Return the probability of each source word for each target word; null is the first column."""
        with_null = np.concatenate([[NULL], np.asarray(source, np.int64)])
        sources, targets = np.broadcast_arrays(with_null[None, :], np.asarray(target, np.int64)[:, None])
        rows = self.probability(sources, targets)  # (target, source and null)
        total = rows.sum(1, keepdims=True)  # (target, 1)
        return np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Block(ShowsShapes):
    """Links of some samples: every target occurrence with null and each source occurrence of its sample.

    Attributes:
        keys: source · n_target + target of the pairs of words in here, sorted.
        entries: place in `keys` of each link, by target occurrence.
        starts: first link of each target occurrence.
        lengths: links of each target occurrence.
    """

    keys: Int[np.ndarray, " pairs"]
    entries: Int[np.ndarray, " links"]
    starts: Int[np.ndarray, " rows"]
    lengths: Int[np.ndarray, " rows"]

    def numbered_by(self, keys: Int[np.ndarray, " all_pairs"]) -> "_Block":
        """Return the same links as indices into the pairs of the whole corpus."""
        places = np.searchsorted(keys, self.keys).astype(np.int32)
        return replace(self, keys=keys, entries=places[self.entries])


def _blocks(corpus: Corpus, n_target: int) -> Iterator[_Block]:
    links = np.cumsum((corpus.source_lengths + 1) * corpus.target_lengths)
    first = 0
    while first < len(corpus):
        done = links[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(links, done + _BLOCK, side="right")))
        keys, lengths = [], []
        for i in range(first, last):
            source = np.concatenate([[NULL], corpus.source(i)])
            target = corpus.target(i)
            keys.append((source[None, :] * n_target + target[:, None]).ravel())
            lengths.append(np.full(len(target), len(source)))
        lengths = np.concatenate(lengths)
        pairs, entries = np.unique(np.concatenate(keys), return_inverse=True)
        yield _Block(
            keys=pairs, entries=entries.astype(np.int32), starts=np.cumsum(lengths) - lengths, lengths=lengths
        )
        first = last


def _expectation(
    table: Float[np.ndarray, " entries"], blocks: list[_Block]
) -> tuple[Float[np.ndarray, " entries"], float]:
    """Return the expected links of each entry under the table, and the log-likelihood of the corpus."""
    counts, likelihood = np.zeros(len(table)), 0.0
    for block in blocks:
        if not len(block.lengths):  # only empty targets
            continue
        weights = table[block.entries]
        totals = np.add.reduceat(weights, block.starts)
        weights /= np.repeat(totals, block.lengths)
        counts += np.bincount(block.entries, weights=weights, minlength=len(table))
        likelihood += float(np.log(totals / block.lengths).sum())
    return counts, likelihood


def _check(corpus: Corpus, n_source: int, n_target: int, *, iterations: int) -> None:
    if not len(corpus) or not len(corpus.target_ids):
        raise BadInput("IBM Model 1 needs at least one sentence pair with a target word")
    if iterations < 1:
        raise BadInput(f"iterations is {iterations}; expectation-maximisation takes at least 1")
    for side, ids, size in (("source", corpus.source_ids, n_source), ("target", corpus.target_ids, n_target)):
        if len(ids) and ids.max() >= size:
            raise BadInput(f"a {side} word has id {ids.max()}, but n_{side} is {size}; ids end at {size - 1}")
