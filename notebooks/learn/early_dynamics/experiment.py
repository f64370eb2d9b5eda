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
from notebooks.learn.early_dynamics import word_counts
from notebooks.learn.early_dynamics.word_counts import CountCorpus, CountTables, alignment, translation
from notebooks.shared.intervals import each_over_seeds

STAGES = {"counted": 0, "iterated": -1}  # which of the count tables
AGAINST = {  # what is measured, and what that is compared with
    "logits": ("logits", "logits"),
    "derived": ("probabilities", "probabilities"),
    "printed": ("probabilities", "logits"),
}
FIELDS = ("error", "slope", "correlation")
INFORMATIVE = ("lexicon", "sample", "mixture", "polarity")  # permutations: the derivative in theory is zero


class Config(BaseConfig):
    """Settings. Nothing here is trained by gradients."""

    sentences: Positive = 120  #: pairs in each corpus
    seeds: Positive = 5  #: corpora and bags of words drawn of each kind
    iterations: Positive = 10  #: of expectation-maximisation, after the count table
    widths: tuple[Positive, ...] = (64, 256, 1024, 4096)  #: of the bags of words whose derivative is measured
    #: natural sentences to count as well (multi30k_en_de, tatoeba_en_fr), or none
    text: str = "multi30k_en_de"
    pairs: NotNegative = 2_000  #: of them, from the beginning; 0 for all
    absent: Literal["skip", "stop"] = "skip"  #: where Multi30k is not on this machine: skip or stop

    def check(self) -> None:
        if self.sentences % 2:
            raise BadInput(f"sentences is {self.sentences}; give an even number: some corpora have halves")
        if len(self.widths) < 2 or list(self.widths) != sorted(set(self.widths)):
            raise BadInput(f"widths are {self.widths}; give at least two, in increasing order")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        sentences=400, seeds=20, widths=tuple(2**power for power in range(6, 13)), pairs=0, absent="stop"
    ),
    "tiny": Config(sentences=40, seeds=2, iterations=3, widths=(64, 512), pairs=100, absent="stop"),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    absent = config.text in translation_sets.NAMES and not translation_sets.available(config.text)
    if config.text == "none" or (config.absent == "skip" and absent):
        return ()
    spec = RunSpec.of("word_counts", task=config.text, n_train=config.pairs, iterations=config.iterations)
    return measurements_of([spec], word_counts.measure_word_counts)


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
    tables: dict = {"counts": [], "alignments": [], "derivative": [], "words": []}
    for name in word_counts.CORPORA:
        corpora = [word_counts.draw(name, config.sentences, seed) for seed in range(config.seeds)]
        found = [CountTables.of(c.corpus, *c.sizes, config.iterations) for c in corpora]
        values[name] = _summary(name, corpora, found)
        tables["counts"] += _cells(name, corpora[0], found[0])
        tables["alignments"] += _links(name, corpora[0], found[0])
        if name in INFORMATIVE:
            rows = list(_derivatives(name, corpora, config.widths))
            values["derivative"][name] = _convergence(rows, config.widths)
            values["derivative"][name]["outputs"] = len(corpora[0].target_words)
            tables["derivative"] += rows
    for measurement in measurements(config):
        answer = measurement.answer(store)
        rows = answer["rows"]
        values["text"] = {name: answer[name] for name in word_counts.NUMBERS} | {"listed": len(rows)}
        for stage in STAGES:
            values["text"][f"{stage}_words"] = len({row[stage][0][0] for row in rows})
        for row in rows:  # the best target words with their probabilities
            best = {stage: ", ".join(f"{word} {value:.2f}" for word, value in row[stage]) for stage in STAGES}
            tables["words"].append(row | best)
    return values, tables


def _summary(name: str, corpora: list[CountCorpus], found: list[CountTables]) -> dict:
    each = []
    for corpus, tables in zip(corpora, found, strict=True):
        each.append({stage: _judged(corpus, tables.counts[place]) for stage, place in STAGES.items()})
        if name == "polarity":
            whole = corpus.without_marks(translation(tables.counts[0]))
            neutral = whole[corpus.right == word_counts.NO_TRANSLATION]
            each[-1]["neutral"] = float(np.abs(neutral - 0.5).mean())
    summary = each_over_seeds([({}, one) for one in each])
    if name in ("permutation", "mixture"):
        counts = [c.without_marks(tables.counts[0]) for c, tables in zip(corpora, found, strict=True)]
        summary["spread"] = max(float(np.ptp(table[table > 0]) / table[table > 0].mean()) for table in counts)
    return summary | {"chance": float(np.mean(1 / corpora[0].corpus.source_lengths))}


def _judged(corpus: CountCorpus, counts: np.ndarray) -> dict[str, float]:
    whole, marks = translation(counts), corpus.marks
    table, known = corpus.without_marks(whole), np.flatnonzero(corpus.right != word_counts.NO_TRANSLATION)
    largest = np.isclose(table[known], table[known].max(1, keepdims=True), rtol=1e-9, atol=0)
    shares = []  # α on the source words that translate to each target word
    for i in range(len(corpus.corpus)):
        source, target = corpus.corpus.source(i), corpus.corpus.target(i)
        right = corpus.right[source - marks][None, :] == (target - marks)[:, None]
        shares += (alignment(whole, source, target) * right).sum(1).tolist()
    right = corpus.right[known]
    return {
        "right": float(table[known, right].mean()),
        "first": float((largest[np.arange(len(known)), right] / largest.sum(1)).mean()),
        "aligned": float(np.mean(shares)),
    }


def _cells(name: str, corpus: CountCorpus, found: CountTables) -> Iterator[dict]:
    first, *_, last = found.counts
    stages = {"counts": first, "translation": translation(first), "iterated": translation(last)}
    for stage, table in stages.items():
        for (row, column), value in np.ndenumerate(corpus.without_marks(table)):
            words = {"source": corpus.source_words[row], "target": corpus.target_words[column]}
            yield {"corpus": name, "table": stage} | words | {"value": float(value)}


def _links(name: str, corpus: CountCorpus, found: CountTables) -> Iterator[dict]:
    source, target = corpus.corpus.source(0), corpus.corpus.target(0)
    for stage, place in STAGES.items():
        links = alignment(translation(found.counts[place]), source, target)
        for (row, column), value in np.ndenumerate(links):
            here = {"target_position": row, "target": corpus.target_words[target[row] - corpus.marks]}
            there = {"source_position": column, "source": corpus.source_words[source[column] - corpus.marks]}
            yield {"corpus": name, "table": stage} | here | there | {"value": float(value)}


def _derivatives(name: str, corpora: list[CountCorpus], widths: tuple[int, ...]) -> Iterator[dict]:
    for seed, corpus in enumerate(corpora):
        bags = corpus.bags
        theory = word_counts.derivative_in_theory(bags)
        for width in widths:
            measured = word_counts.derivative_at_random(bags, width, seed)
            row: dict = {"corpus": name, "width": width, "seed": seed}
            for against, (ours, theirs) in AGAINST.items():
                compared = word_counts.compare(getattr(measured, ours), getattr(theory, theirs))
                row |= {f"{against}_{field}": value for field, value in vars(compared).items()}
            yield row


def _convergence(rows: list[dict], widths: tuple[int, ...]) -> dict:
    """What is found at the largest width, and how fast the logits' error falls up to it."""
    errors = np.reshape([row["logits_error"] for row in rows], (-1, len(widths)))  # (seed, width)
    rates = np.polyfit(np.log(widths), np.log(errors).T, 1)[0].tolist()
    each = [
        {"rate": rate}
        | {against: {field: row[f"{against}_{field}"] for field in FIELDS} for against in AGAINST}
        for rate, row in zip(rates, rows[len(widths) - 1 :: len(widths)], strict=True)
    ]
    return each_over_seeds([({}, one) for one in each])
