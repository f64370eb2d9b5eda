"""Count tables of natural text: which words meet in sentence pairs, and what Model 1 makes of it.

Snell et al. 2021, Figure 1 and section 4.2, on real sentences in place of the drawn ones, and section 4.1 at
the width and with the number of words of a real network. Nothing is trained by gradients. Words beyond the
most frequent ones are one word, ``<unk>``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from attnlib.errors import check_at_least
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from attnlib.training.corpus import Task
from attnlib.training.course import Report
from attnlib.training.vocabulary import UNK
from companion.data import registry
from companion.runs.procedure import Recording
from notebooks.learn.early_dynamics import derivative
from notebooks.learn.early_dynamics.count_tables import CountTables, Table, alignment, translation
from notebooks.shared.snapshots import Tensors

TOP = 4  # target words kept for each source word


@dataclass(frozen=True)
class Settings:
    """The text, and how far to iterate."""

    task: str = "multi30k_en_de"  # of sentence pairs, one that takes ``max_words``
    n_train: int = 0  # pairs counted, from the beginning; 0 for all
    max_words: int = 1_500  # of each side, the most frequent ones
    iterations: int = 10  # of expectation-maximisation, after the count table
    listed: int = 100  # source words whose rows are recorded, the most frequent ones
    judged: int = 1_000  # held-out pairs on which links are compared
    width: int = 256  # of a bag-of-words proxy drawn at random, whose first derivative is held against C
    derived: int = 2_000  # training pairs from which that derivative is taken
    seed: int = 0  # draws the proxy

    def __post_init__(self) -> None:
        check_at_least(1, self, "max_words", "iterations", "listed", "judged", "width", "derived")
        check_at_least(0, self, "n_train")


def text_of(settings: Settings) -> Task:
    """The sentence pairs. Raises DataUnavailable where they are not available here."""
    options: dict[str, object] = {"max_words": settings.max_words}
    if settings.n_train:
        options["n_train"] = settings.n_train
    return registry.load(settings.task, **options)


def builders(settings: Settings) -> tuple[Callable[..., Task], ...]:
    return (registry.builder(settings.task),)


def checksums(settings: Settings) -> dict[str, str]:
    return dict(text_of(settings).checksums)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Count, iterate, and compare the links that follow.

    ``words``: ids of the listed source words; ``counted_words`` and ``counted`` (listed, 4): the target words
    that C gives most to and Trans from C; ``iterated_words`` and ``iterated``: the same after the iterations;
    ``log_likelihood`` by table; ``agreement`` and ``chance``: 𝒜 of the alignment after the iterations with
    that from C (equation 10) on held-out pairs, and its chance; ``derivative_error`` and
    ``derivative_correlation``: of the measured derivative of the proxy's logits with equation 54.
    """
    text = text_of(settings)
    tables = CountTables.of(
        text.train, len(text.source_vocabulary), len(text.target_vocabulary), settings.iterations
    )
    first, last = (translation(tables.counts[place]) for place in (0, -1))
    words = np.arange(UNK + 1, min(UNK + 1 + settings.listed, len(text.source_vocabulary)))
    agreed, chance = _links(text, first, last, settings.judged)
    return {
        "words": torch.from_numpy(words),
        **_top("counted", first, words),
        **_top("iterated", last, words),
        "log_likelihood": torch.tensor(tables.log_likelihood, dtype=torch.float64),
        "agreement": torch.tensor(agreed.value),
        "chance": torch.tensor(chance.value),
        **_derivative(text, settings),
    }


def _derivative(text: Task, settings: Settings) -> Tensors:
    """Measured against theory, over words that are not marks."""
    pairs = text.train.subset(range(min(settings.derived, len(text.train))))
    whole = derivative.Bags.of(pairs, len(text.source_vocabulary), len(text.target_vocabulary))
    bags = derivative.Bags(whole.source[:, UNK:], whole.target[:, UNK:])
    measured = derivative.derivative_at_random(bags, settings.width, settings.seed)
    found = derivative.compare(measured.logits, derivative.derivative_in_theory(bags).logits)
    numbers = {"error": found.error, "correlation": found.correlation}
    return {f"derivative_{name}": torch.tensor(number) for name, number in numbers.items()}


def _top(name: str, table: Table, words: np.ndarray) -> Tensors:
    """The most probable target words of each row, without <unk>."""
    rows = torch.from_numpy(table[words])
    rows[:, : UNK + 1] = 0
    values, ids = rows.topk(TOP)
    return {f"{name}_words": ids, name: values}


def _links(text: Task, first: Table, last: Table, judged: int) -> tuple[RowMean, RowMean]:
    """Agreement of the last alignment with the first, over target words of held-out pairs."""
    agreed, chance = RowMean(), RowMean()
    for i in range(min(judged, len(text.held_out))):
        source, target = text.held_out.source(i), text.held_out.target(i)
        counted, iterated = (torch.from_numpy(alignment(table, source, target)) for table in (first, last))
        met = (counted.sum(1) > 0) & (iterated.sum(1) > 0)
        agreed += RowMean.of(agreement(iterated[met], counted[met]))
        chance += RowMean.of(chance_agreement(counted[met]))
    return agreed, chance


NUMBERS = ("agreement", "chance", "derivative_error", "derivative_correlation")


def measure_word_counts(recording: Recording) -> dict:
    """The recording with words in place of ids: for each listed source word its best target words."""
    text = text_of(recording.spec.resolved)
    source, target = text.source_vocabulary.words, text.target_vocabulary.words
    rows = [
        {"source": source[word]}
        | {
            name: [
                [target[other], value]
                for other, value in zip(
                    recording[f"{name}_words"][i].tolist(), recording[name][i].tolist(), strict=True
                )
            ]
            for name in ("counted", "iterated")
        }
        for i, word in enumerate(recording["words"].tolist())
    ]
    numbers = {name: recording[name].item() for name in NUMBERS}
    return {"rows": rows, "log_likelihood": recording["log_likelihood"].tolist()} | numbers
