"""What is learned before attention: count tables, IBM Model 1, and the first derivative of the proxy."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from attnlib.errors import BadInput
from companion.data import parallel as translation_sets
from companion.results.config import BaseConfig, NotNegative, Positive
from companion.results.measurements import Measurement, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.early_dynamics.count_tables import CountTables, alignment, translation
from notebooks.learn.early_dynamics.derivative import compare, derivative_at_random, derivative_in_theory
from notebooks.learn.early_dynamics.measure import (
    CORPORA,
    NO_TRANSLATION,
    NUMBERS,
    CountCorpus,
    draw,
    measure_word_counts,
)
from notebooks.shared.intervals import each_over_seeds

PLACE = "Snell et al. 2021, section 4, appendix A.2; equations 15, 16 and 54; Figures 1, 4, 5 and 8"
QUESTION = "Does co-occurrence say which word translates which, and is that what a network learns first?"
PLACES = {"counted": 0, "iterated": -1}  # of the stages among the count tables
INFORMATIVE = ("lexicon", "sample", "mixture", "polarity")  # permutations: the derivative in theory is zero


class Config(BaseConfig):
    """Settings. Nothing here is trained by gradients.

    Attributes:
        sentences: pairs in each corpus.
        seeds: corpora and bags of words drawn of each kind.
        iterations: of expectation-maximisation, after the count table.
        widths: of the bags of words whose derivative is measured.
        text: natural sentences to count as well (multi30k_en_de, tatoeba_en_fr), or none.
        pairs: of them, from the beginning; 0 for all.
        absent: where Multi30k is not on this machine: skip or stop.
    """

    sentences: Positive = 120
    seeds: Positive = 5
    iterations: Positive = 10
    widths: tuple[Positive, ...] = (64, 256, 1024, 4096)
    text: str = "multi30k_en_de"
    pairs: NotNegative = 2_000
    absent: Literal["skip", "stop"] = "skip"

    def check(self) -> None:
        if self.sentences % 2:
            raise BadInput(
                f"sentences is {self.sentences}; halves of some corpora are equal, so give an even number"
            )
        if len(self.widths) < 2 or list(self.widths) != sorted(set(self.widths)):
            raise BadInput(f"widths are {self.widths}; give at least two, in increasing order")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        sentences=400, seeds=20, widths=tuple(2**power for power in range(6, 13)), pairs=0, absent="stop"
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    absent = config.text in translation_sets.NAMES and not translation_sets.available(config.text)
    if config.text == "none" or (config.absent == "skip" and absent):
        return ()
    spec = RunSpec.of("word_counts", task=config.text, n_train=config.pairs, iterations=config.iterations)
    return measurements_of([spec], measure_word_counts)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Count tables of five small corpora, and the derivative at initialisation over widths.

    Values by corpus: Trans of the ``right`` translation, the share of words whose translation is the most
    probable (``first``; tied words share) and α on the right source word (``aligned``), words without a
    translation left out; ``spread``, the largest difference between entries of C that should be equal, over
    their mean; ``neutral``, how far Trans of neutral words is from one half. ``derivative`` is at the largest
    width: ``logits`` against 2 (C − mean C), probabilities against 2/N (C − mean C) as ``derived`` and
    2 (C − mean C) as ``printed``, ``rate``, the exponent of the logits' error in the width, and N,
    ``outputs``. Tables ``counts`` and ``alignments`` are the first seed's, and of its first pair.
    """
    values: dict = {"derivative": {}}
    tables: dict[str, list[dict]] = {"counts": [], "alignments": [], "derivative": [], "words": []}
    for name in CORPORA:
        corpora = [draw(name, config.sentences, seed) for seed in range(config.seeds)]
        found = [CountTables.of(c.corpus, *c.sizes, config.iterations) for c in corpora]
        values[name] = _summary(name, corpora, found)
        tables["counts"] += _cells(name, corpora[0], found[0])
        tables["alignments"] += _links(name, corpora[0], found[0])
        if name in INFORMATIVE:
            rows, over_corpora = _derivatives(name, corpora, config.widths)
            values["derivative"][name] = over_corpora | {"outputs": len(corpora[0].target_words)}
            tables["derivative"] += rows
    for asked in measurements(config):
        answer = asked.answer(store)
        rows = answer["rows"]
        values["text"] = {name: answer[name] for name in NUMBERS} | {"listed": len(rows)}
        for stage in PLACES:
            values["text"][f"{stage}_words"] = len({row[stage][0][0] for row in rows})
        tables["words"] = [row | {stage: _best(row[stage]) for stage in PLACES} for row in rows]
    return values, tables


def _best(words: list[list]) -> str:
    """The best target words with their probabilities, in one string."""
    return ", ".join(f"{word} {value:.2f}" for word, value in words)


def _summary(name: str, corpora: list[CountCorpus], found: list[CountTables]) -> dict:
    summary: dict = {"chance": float(np.mean(1 / corpora[0].corpus.source_lengths))}
    pairs = list(zip(corpora, found, strict=True))
    for stage, place in PLACES.items():
        summary[stage] = _over_seeds([_judged(corpus, tables.counts[place]) for corpus, tables in pairs])
    if name in ("permutation", "mixture"):
        met = [counts[counts > 0] for counts in (c.without_marks(tables.counts[0]) for c, tables in pairs)]
        summary["spread"] = max(float((counts.max() - counts.min()) / counts.mean()) for counts in met)
    if name == "polarity":
        neutral = corpora[0].right == NO_TRANSLATION
        first = [corpus.without_marks(translation(tables.counts[0])) for corpus, tables in pairs]
        summary |= _over_seeds([{"neutral": float(np.abs(table[neutral] - 0.5).mean())} for table in first])
    return summary


def _over_seeds(rows: list[dict]) -> dict[str, dict]:
    return each_over_seeds([({}, row) for row in rows])


def _judged(corpus: CountCorpus, counts: np.ndarray) -> dict[str, float]:
    whole = translation(counts)
    table = corpus.without_marks(whole)
    known = np.flatnonzero(corpus.right != NO_TRANSLATION)
    right = corpus.right[known]
    largest = np.isclose(table[known], table[known].max(1, keepdims=True), rtol=1e-9, atol=0)
    first = largest[np.arange(len(known)), right] / largest.sum(1)
    shares = [share for i in range(len(corpus.corpus)) for share in _aligned(corpus, whole, i)]
    return {
        "right": float(table[known, right].mean()),
        "first": float(first.mean()),
        "aligned": float(np.mean(shares)),
    }


def _aligned(corpus: CountCorpus, table: np.ndarray, i: int) -> Iterator[float]:
    """α on the source words that translate to each target word of pair i."""
    source, target = corpus.corpus.source(i), corpus.corpus.target(i)
    marks = len(table) - len(corpus.source_words)
    rows = alignment(table, source, target)
    yield from (rows * (corpus.right[source - marks][None, :] == (target - marks)[:, None])).sum(1)


def _cells(name: str, corpus: CountCorpus, found: CountTables) -> Iterator[dict]:
    first, *_, last = found.counts
    stages = {"counts": first, "translation": translation(first), "iterated": translation(last)}
    for stage, table in stages.items():
        for (row, column), value in np.ndenumerate(corpus.without_marks(table)):
            words = {"source": corpus.source_words[row], "target": corpus.target_words[column]}
            yield {"corpus": name, "table": stage, **words, "value": float(value)}


def _links(name: str, corpus: CountCorpus, found: CountTables) -> Iterator[dict]:
    source, target = corpus.corpus.source(0), corpus.corpus.target(0)
    marks = corpus.sizes[0] - len(corpus.source_words)
    for stage, place in PLACES.items():
        links = alignment(translation(found.counts[place]), source, target)
        for (row, column), value in np.ndenumerate(links):
            yield {
                "corpus": name,
                "table": stage,
                "target_position": row,
                "target": corpus.target_words[target[row] - marks],
                "source_position": column,
                "source": corpus.source_words[source[column] - marks],
                "value": float(value),
            }


def _derivatives(name: str, corpora: list[CountCorpus], widths: tuple[int, ...]) -> tuple[list[dict], dict]:
    """Rows by seed and width; over seeds, what is found at the largest width and the ``rate`` up to it."""
    rows, found = [], []
    for seed, corpus in enumerate(corpora):
        bags, errors = corpus.bags, []
        theory = derivative_in_theory(bags)
        for width in widths:
            measured = derivative_at_random(bags, width, seed)
            compared = {
                "logits": vars(compare(measured.logits, theory.logits)),
                "derived": vars(compare(measured.probabilities, theory.probabilities)),
                "printed": vars(compare(measured.probabilities, theory.logits)),
            }
            errors.append(compared["logits"]["error"])
            flat = {
                f"{against}_{key}": value for against, of in compared.items() for key, value in of.items()
            }
            rows.append({"corpus": name, "width": width, "seed": seed} | flat)
        rate = np.polyfit(np.log(widths), np.log(errors), 1)[0]
        found.append(compared | {"rate": float(rate)})
    return rows, _over_seeds(found)
