"""What is learned before attention: count tables, IBM Model 1, and the first derivative of the proxy."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from attnlib.errors import BadInput
from companion.data import parallel as translation_sets
from companion.results.config import BaseConfig, NotNegative, Positive, setting
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.early_dynamics.trainings import word_counts
from notebooks.learn.early_dynamics.trainings.word_counts import (
    CountCorpus,
    CountTables,
    alignment,
    translation,
)
from notebooks.shared.summaries import summarise

STAGES = {"counted": 0, "iterated": -1}  # which of the count tables
INFORMATIVE = ("lexicon", "sample", "mixture", "polarity")  # permutations: the derivative in theory is zero
EQUAL_COUNTS = ("permutation", "mixture")  # all entries of C that are not zero should be equal
CORPORA = {
    "lexicon": "sentences of two languages",
    "permutation": "all words, in any order",
    "sample": "some of the words, in any order",
    "mixture": "one half of the words or the other, in any order",
    "polarity": "reviews, with one polar word, and their label",
}


class Config(BaseConfig):
    """Settings. Nothing here is trained by gradients."""

    sentences: Positive = setting(120, "pairs in each corpus")
    seeds: Positive = setting(5, "corpora and bags of words drawn of each kind")
    iterations: Positive = setting(10, "of expectation-maximisation, after the count table")
    widths: tuple[Positive, ...] = setting(
        (64, 256, 1024, 4096), "of the bags of words whose derivative is measured"
    )
    text: str = setting(
        "multi30k_en_de", "natural sentences to count as well (multi30k_en_de, tatoeba_en_fr), or none"
    )
    pairs: NotNegative = setting(2_000, "of them, from the beginning; 0 for all")
    absent: Literal["skip", "stop"] = setting("skip", "where Multi30k is not on this machine: skip or stop")

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


CORPUS = {"corpus": Column("kind of sentence pairs", categories=CORPORA)}
SEED = {"seed": Column("random seed of the corpus, and of the bag of words")}
STAGE = {
    "stage": Column(
        "which count table", categories={"counted": "the counts", "iterated": "after all iterations"}
    )
}
JUDGED = {
    "right": share("Trans of the correct translation, mean over words that have one"),
    "first": share("words whose translation is the most probable; tied words share"),
    "aligned": share("α on the correct source word, mean over target words"),
}
NEUTRAL = {"neutral": Column("how far Trans of neutral words is from one half, on average", low=0)}
OF_CORPUS = {
    "chance": share("one over the number of words of a source, on average"),
    "spread": Column(
        "largest difference between entries of C that should be equal, over their mean; else empty", low=0
    ),
    "outputs": Column("target words; empty where no derivative is measured", "words", low=0),
}
CELL = {
    "table": Column("counts, or Trans of them (translation) or after all iterations (iterated)"),
    "source": Column("source word"),
    "target": Column("target word"),
    "value": Column("count, or probability", low=0),
}
LINK = {
    "table": Column("Trans that α is made of: of the counts, or after all iterations"),
    "target_position": Column("position of the target word, from 0"),
    "target": Column("target word"),
    "source_position": Column("position of the source word, from 0"),
    "source": Column("source word"),
    "value": share("α of the source word"),
}
WIDTH = {"width": Column("width of the bag of words", low=1)}
AGAINST = {  # what is measured, and what that is compared with
    "logits": ("logits", "logits"),
    "derived": ("probabilities", "probabilities"),
    "printed": ("probabilities", "logits"),
}
COMPARISON = {
    "error": Column("norm of the difference, over that of the theory"),
    "slope": Column("slope of the line through the origin, measured over theory"),
    "correlation": Column("correlation of the entries"),
}
IN_WORDS = {
    "logits": "logits against 2 (C − mean C)",
    "derived": "probabilities against 2/N (C − mean C)",
    "printed": "probabilities against 2 (C − mean C)",
}
DERIVATIVE = {
    f"{against}_{field}": Column(f"{column.meaning}; {IN_WORDS[against]}")
    for against in AGAINST
    for field, column in COMPARISON.items()
}
RATE = {"rate": Column("exponent of the logits' error in the width")}
AT_LARGEST = {f"{against}.{field}": f"{against}_{field}" for against in AGAINST for field in COMPARISON}
WORDS = {
    "counted": Column("target words that are likeliest by the counts, with their probabilities"),
    "iterated": Column("target words that are likeliest after all iterations, with their probabilities"),
    "source": Column("source word"),
}
TEXT = {
    "agreement": share("target words that are linked with one source word by both tables"),
    "chance": share("one over the number of words of a source, on average"),
    "derivative_error": Column("norm of the difference of the derivative from C, over that of C"),
    "derivative_correlation": Column("correlation of the derivative with C"),
    "listed": Column("source words that are listed", "words", low=0),
    "counted_words": Column("different words that are likeliest by the counts", "words", low=0),
    "iterated_words": Column("different words that are likeliest after all iterations", "words", low=0),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return count tables of five small corpora, and the derivative at initialisation over widths.

    Tables ``counts`` and ``alignments`` are the first seed's, and of its first pair.
    """
    drawn = {name: _counted(name, config) for name in word_counts.CORPORA}
    first = {name: corpora[0] for name, corpora in drawn.items()}
    counts = chain.from_iterable(_cells(name, counted) for name, counted in first.items())
    links = chain.from_iterable(_links(name, counted) for name, counted in first.items())
    derivatives = [_derivatives(name, drawn[name], config.widths) for name in INFORMATIVE]
    by_width = Table.of(
        chain.from_iterable(derivatives), CORPUS | WIDTH | SEED | DERIVATIVE, "a bag of words drawn at random"
    )
    of_corpora = [{"corpus": name} | _of_corpus(name, corpora) for name, corpora in drawn.items()]
    judged = chain.from_iterable(_judged_stages(name, corpora) for name, corpora in drawn.items())
    stages = Table.of(judged, CORPUS | SEED | STAGE | JUDGED, "a count table of a corpus")
    neutral = Table.of(_neutral_words(drawn["polarity"]), CORPUS | SEED | NEUTRAL, "a corpus")
    convergence = _convergence(by_width, config.widths)
    answers = [measurement.answer(store) for measurement in measurements(config)]
    return {
        "counts": Table.of(counts, CORPUS | CELL, "a pair of words"),
        "alignments": Table.of(links, CORPUS | LINK, "a pair of positions"),
        "derivative": by_width,
        "words": Table.of(_words(answers), WORDS, "a frequent source word"),
        "corpora": Table.of(of_corpora, CORPUS | OF_CORPUS, "a kind of corpus").whole_numbers("outputs"),
        "judged": stages,
        "judged_by_corpus": summarise(stages, ["corpus", "stage"], JUDGED),
        "neutral": summarise(neutral, ["corpus"], NEUTRAL),
        "convergence": convergence,
        "convergence_by_corpus": summarise(convergence, ["corpus"], ["rate", *AT_LARGEST]),
        "text": Table.of([_text(answer) for answer in answers], TEXT, "a text"),
    }


@dataclass(frozen=True, eq=False)
class Counted:
    """A corpus of one seed, and its count tables."""

    corpus: CountCorpus
    tables: CountTables


def _counted(name: str, config: Config) -> list[Counted]:
    """Draw and count a corpus of each seed."""
    counted = []
    for seed in range(config.seeds):
        corpus = word_counts.draw(name, config.sentences, seed)
        counted.append(Counted(corpus, CountTables.of(corpus.corpus, *corpus.sizes, config.iterations)))
    return counted


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by corpus, the ``derivative`` at the largest width, and those of the ``text``.

    Words without a translation are left out of ``right``, ``first`` and ``aligned``.
    """
    corpora = tables["corpora"]
    informative = corpora.query("corpus in @names", names=INFORMATIVE)
    equal = corpora.query("corpus in @names", names=EQUAL_COUNTS)
    return view(
        keyed(tables["judged_by_corpus"], "{corpus}.{stage}.{quantity}"),
        keyed(tables["neutral"], "{corpus}.{quantity}"),
        keyed(corpora, "{corpus}.{column}", ["chance"]),
        keyed(equal, "{corpus}.{column}", ["spread"]),
        keyed(tables["convergence_by_corpus"], "derivative.{corpus}.{quantity}"),
        keyed(informative, "derivative.{corpus}.{column}", ["outputs"]),
        keyed(tables["text"], "text.{column}", TEXT),
    )


def _of_corpus(name: str, corpora: list[Counted]) -> dict:
    first = corpora[0].corpus
    numbers: dict[str, float] = {"chance": float(np.mean(1 / first.corpus.source_lengths))}
    if name in EQUAL_COUNTS:
        numbers["spread"] = max(_spread(counted) for counted in corpora)
    if name in INFORMATIVE:
        numbers["outputs"] = len(first.target_words)
    return numbers


def _spread(counted: Counted) -> float:
    """Return the largest difference between counts that are not zero, over their mean."""
    counts = counted.corpus.without_marks(counted.tables.counts[0])
    present = counts[counts > 0]
    return float(np.ptp(present) / present.mean())


def _judged_stages(name: str, corpora: list[Counted]) -> Iterator[dict]:
    """Yield how good each count table of each seed is."""
    for seed, counted in enumerate(corpora):
        for stage, place in STAGES.items():
            judged = _judged(counted.corpus, counted.tables.counts[place])
            yield {"corpus": name, "seed": seed, "stage": stage, **judged}


def _neutral_words(corpora: list[Counted]) -> Iterator[dict]:
    for seed, counted in enumerate(corpora):
        neutral = _neutral(counted.corpus, counted.tables.counts[0])
        yield {"corpus": "polarity", "seed": seed, "neutral": neutral}


def _neutral(corpus: CountCorpus, counts: np.ndarray) -> float:
    """Return how far Trans of words without a translation is from one half, on average."""
    table = corpus.without_marks(translation(counts))
    of_neutral_words = table[corpus.right == word_counts.NO_TRANSLATION]
    return float(np.abs(of_neutral_words - 0.5).mean())


def _judged(corpus: CountCorpus, counts: np.ndarray) -> dict[str, float]:
    whole = translation(counts)
    known = np.flatnonzero(corpus.right != word_counts.NO_TRANSLATION)
    right = corpus.right[known]
    table = corpus.without_marks(whole)[known]  # (source words that have a translation, target words)
    is_largest = np.isclose(table, table.max(1, keepdims=True), rtol=1e-9, atol=0)
    rows = np.arange(len(known))
    first = is_largest[rows, right] / is_largest.sum(1)  # tied words share
    return {
        "right": float(table[rows, right].mean()),
        "first": float(first.mean()),
        "aligned": float(np.mean(_aligned(corpus, whole))),
    }


def _aligned(corpus: CountCorpus, whole: np.ndarray) -> list[float]:
    """Return α on the source words that translate to each target word."""
    weights = []
    for pair in range(len(corpus.corpus)):
        source, target = corpus.corpus.source(pair), corpus.corpus.target(pair)
        translations = corpus.right[source - corpus.marks]
        translates = translations[None, :] == (target - corpus.marks)[:, None]  # (target, source)
        on_right = (alignment(whole, source, target) * translates).sum(1)
        weights += on_right.tolist()
    return weights


def _cells(name: str, counted: Counted) -> Iterator[dict]:
    corpus = counted.corpus
    first, *_, last = counted.tables.counts
    stages = {"counts": first, "translation": translation(first), "iterated": translation(last)}
    for stage, table in stages.items():
        for (row, column), value in np.ndenumerate(corpus.without_marks(table)):
            yield {
                "corpus": name,
                "table": stage,
                "source": corpus.source_words[row],
                "target": corpus.target_words[column],
                "value": float(value),
            }


def _links(name: str, counted: Counted) -> Iterator[dict]:
    corpus = counted.corpus
    source, target = corpus.corpus.source(0), corpus.corpus.target(0)
    source_words = [corpus.source_words[word - corpus.marks] for word in source]
    target_words = [corpus.target_words[word - corpus.marks] for word in target]
    for stage, place in STAGES.items():
        links = alignment(translation(counted.tables.counts[place]), source, target)
        for (row, column), value in np.ndenumerate(links):
            yield {
                "corpus": name,
                "table": stage,
                "target_position": row,
                "target": target_words[row],
                "source_position": column,
                "source": source_words[column],
                "value": float(value),
            }


def _derivatives(name: str, corpora: list[Counted], widths: tuple[int, ...]) -> Iterator[dict]:
    for seed, counted in enumerate(corpora):
        bags = counted.corpus.bags
        theory = word_counts.derivative_in_theory(bags)
        for width in widths:
            measured = word_counts.derivative_at_random(bags, width, seed)
            record: dict = {"corpus": name, "width": width, "seed": seed}
            for against, (ours, theirs) in AGAINST.items():
                comparison = word_counts.compare(getattr(measured, ours), getattr(theory, theirs))
                for field in COMPARISON:
                    record[f"{against}_{field}"] = getattr(comparison, field)
            yield record


def _convergence(by_width: Table, widths: tuple[int, ...]) -> Table:
    """Return what is found at the largest width, and how fast the logits' error falls up to it."""
    errors = by_width.frame["logits_error"].to_numpy().reshape(-1, len(widths))  # (corpora, widths)
    slopes, _ = np.polyfit(np.log(widths), np.log(errors).T, 1)
    largest = by_width.query("width == @width", width=max(widths))
    by_field = largest.rename(**{column: name for name, column in AT_LARGEST.items()})
    return by_field.assign(RATE, rate=slopes).select(*CORPUS, *SEED, *RATE, *AT_LARGEST)


def _words(answers: list[dict]) -> Iterator[dict]:
    """Yield each listed source word with its best target words and their probabilities."""
    for answer in answers:
        for row in answer["rows"]:
            yield {
                "source": row["source"],
                "counted": _listed(row["counted"]),
                "iterated": _listed(row["iterated"]),
            }


def _listed(words: list[tuple[str, float]]) -> str:
    return ", ".join(f"{word} {probability:.2f}" for word, probability in words)


def _text(answer: dict) -> dict:
    numbers = {name: answer[name] for name in word_counts.NUMBERS}
    numbers["listed"] = len(answer["rows"])
    for stage in STAGES:
        likeliest = {row[stage][0][0] for row in answer["rows"]}
        numbers[f"{stage}_words"] = len(likeliest)
    return numbers
