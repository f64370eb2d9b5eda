"""Count tables: which words meet in sentence pairs, and what a first snapshot makes of it.

Snell et al. 2021, section 4 and Figures 1, 4, 5 and 8. With L the number of words of source m,

    (16)  C_io = Σ_m Σ_{t in source m} Σ_{s in target m} 1/L · 1[source word t is i] · 1[target word s is o]
    (17)  Trans(o | i) = C_io / Σ_o' C_io'
    (18)  β_st = Trans(target word s | source word t)
    (19)  α_st = β_st / Σ_t' β_st'

C is the table that IBM Model 1 starts from, every target word shared equally by the words of its source,
and the one that the proxy's first gradient follows. Sharing each target word by α instead of equally gives
the next table: expectation-maximisation. This is the paper's Model 1, without the null word that
:class:`~attnlib.probes.ibm_model_1.IBMModel1` has.

Tables are dense, (source words, target words): for vocabularies of up to some thousands.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus

Table = Float[np.ndarray, "source_words target_words"]


def cooccurrence(corpus: Corpus, n_source: int, n_target: int) -> Table:
    """C, equation 16; ids are rows and columns."""
    _check_counts(corpus, n_source, n_target)
    counts = np.zeros((n_source, n_target))
    for i in range(len(corpus)):
        source, target = corpus.source(i), corpus.target(i)
        if len(source):
            np.add.at(counts, (source[:, None], target[None, :]), 1 / len(source))
    return counts


def translation(counts: Table) -> Table:
    """Trans(o | i), equation 17: rows sum to one; a source word that met nothing keeps a row of zeros."""
    totals = counts.sum(1, keepdims=True)
    return np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)


def alignment(table: Table, source, target) -> Float[np.ndarray, "target source"]:
    """α, equation 19, of one sentence pair, by Trans: the share of each source word in each target word.

    Rows of target words that no word of the source translates to are zero.
    """
    probe = table[np.asarray(source)[None, :], np.asarray(target)[:, None]]
    totals = probe.sum(1, keepdims=True)
    return np.divide(probe, totals, out=np.zeros_like(probe), where=totals > 0)


def shared_counts(corpus: Corpus, table: Table) -> Table:
    """The next count table: every target word shared by α among the words of its source."""
    _check_counts(corpus, *table.shape)
    counts = np.zeros_like(table)
    for i in range(len(corpus)):
        source, target = corpus.source(i), corpus.target(i)
        np.add.at(counts, (source[None, :], target[:, None]), alignment(table, source, target))
    return counts


def log_likelihood(corpus: Corpus, table: Table) -> float:
    """Σ_m Σ_s log( 1/L Σ_t Trans(target word s | source word t) ), in nats: what the iterations raise."""
    _check_counts(corpus, *table.shape)
    total = 0.0
    with np.errstate(divide="ignore"):  # a word that nothing translates to makes it minus infinity
        for i in range(len(corpus)):
            probe = table[corpus.source(i)[None, :], corpus.target(i)[:, None]]
            total += float(np.log(probe.mean(1)).sum()) if probe.size else 0.0
    return total


@dataclass(frozen=True, eq=False)
class CountTables:
    """Count tables through expectation-maximisation."""

    counts: tuple[Table, ...]  # C first, then the table after each iteration
    log_likelihood: tuple[float, ...]  # of the translation table made from each of them

    @classmethod
    def of(cls, corpus: Corpus, n_source: int, n_target: int, iterations: int = 0) -> "CountTables":
        """C, and the tables of so many iterations after it."""
        if iterations < 0:
            raise BadInput(f"iterations is {iterations}; it must be at least 0")
        counts = [cooccurrence(corpus, n_source, n_target)]
        for _ in range(iterations):
            counts.append(shared_counts(corpus, translation(counts[-1])))
        found = tuple(log_likelihood(corpus, translation(table)) for table in counts)
        return cls(tuple(counts), found)


def _check_counts(corpus: Corpus, n_source: int, n_target: int) -> None:
    for side, ids, size in (("source", corpus.source_ids, n_source), ("target", corpus.target_ids, n_target)):
        if len(ids) and ids.max() >= size:
            raise BadInput(f"a {side} word has id {ids.max()}, but there are {size} {side} words")
