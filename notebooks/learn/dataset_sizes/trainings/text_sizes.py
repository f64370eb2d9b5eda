"""How many texts a data set has, how long they are, and how many words it knows (Snell et al. 2021, Table 9).

Nothing is trained but the pieces of a translation set. A recording holds, as ``<part>.<side>``, lengths of
the texts of ``train`` and ``validation`` without marks: side ``words`` of labelled texts, ``source`` and
``target`` of sentence pairs in pieces; ``kept``, rows of the embedding table, four marks among them: words
seen three times in training, or all pieces; ``different``, of labelled texts alone, all words of the training
texts (of the pool, where the set has no test part of its own) and the marks: the paper's vocabulary has words
known to GloVe besides the ones kept, and so lies between the two; and ``dropped``, what was left out, as JSON
in UTF-8: a list of [part, what, why, count].
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import check_at_least, check_known
from attnlib.models.vocabulary import MARKS
from attnlib.probes.agreement import places
from companion.data import labelled_sets
from companion.data.labelled import RawTexts, Reading, is_masked_integer, prepare, without_html
from companion.data.parallel import NAMES, OWN, read_translation, translation_checksums
from companion.data.parallel import available as available_pairs
from companion.data.sources import cache_folder
from companion.data.text import Dropped, Tally
from companion.runs.loop import Report
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.pieces import PAPER_SIZE, piece_corpus
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

PAIRS = tuple(name for name in NAMES if name != OWN)


@dataclass(frozen=True)
class Settings:
    """A set and how it is read."""

    data: str = "known_polarity"  # of :func:`companion.data.labelled_sets.names` or :data:`PAIRS`
    reading: str = "published"  # of labelled texts (:mod:`companion.data.labelled`); sentence pairs have one
    n_validation: int = 0  # labelled texts to judge on, at most; 0 for the set's own number
    pieces: int = PAPER_SIZE  # of the vocabulary of pairs, marks included
    seed: int = 0  # draws the texts to judge on, where the set is split here

    def __post_init__(self) -> None:
        check_known("set of texts", self.data, (*labelled_sets.names(), *PAIRS))
        check_known("reading", self.reading, get_args(Reading))
        check_at_least(0, self, "n_validation")
        check_at_least(1, self, "pieces")


def available(data: str) -> bool:
    """Whether all files of a set are on this machine, unchecked; errors as :class:`Settings`."""
    return available_pairs(data) if Settings(data).data in PAIRS else labelled_sets.available(data)


def checksums(settings: Settings) -> dict[str, str]:
    """sha256 of each file read, by "dataset/file"; of News Commentary alone the file must be there for it."""
    data = settings.data
    return translation_checksums(data) if data in PAIRS else labelled_sets.checksums(data)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Read the set and count; see the module for what is returned."""
    return _pairs(settings) if settings.data in PAIRS else _labelled(settings)


def _labelled(settings: Settings) -> Tensors:
    if settings.data == labelled_sets.KNOWN_POLARITY:
        raw = labelled_sets.read_known_polarity()
    else:
        raw = labelled_sets.SOURCES[settings.data].read()
    n_validation = settings.n_validation or None
    task = prepare(raw, reading=settings.reading, n_validation=n_validation, split_seed=settings.seed)
    is_cleaned = settings.reading == "cleaned"
    different = len(MARKS) + len(_different(raw, is_cleaned))
    dropped = (*task.dropped, *_words_of_html(raw, is_cleaned))
    return {
        "train.words": torch.from_numpy(task.train.lengths),
        "validation.words": torch.from_numpy(task.validation.lengths),
        "kept": torch.tensor(len(task.vocabulary)),
        "different": torch.tensor(different),
        "dropped": _as_bytes(dropped),
    }


def _words_of_html(raw: RawTexts, cleaned: bool) -> tuple[Dropped, ...]:
    """Words that tags, entities and breaks leave in texts as published and not in cleaned ones."""
    tally = Tally()
    if not (cleaned and raw.rules.html):
        return tally.dropped()
    parts = {"pool": raw.train} if raw.test is None else {"train": raw.train, "whole test part": raw.test}
    for part, texts in parts.items():
        for text, _ in texts:
            without, _ = without_html(text)
            gone = len(raw.rules.words(text)) - len(raw.rules.words(without))
            tally.add(part, "words", "of HTML tags, entities and breaks", gone)
    return tally.dropped()


def _different(raw: RawTexts, cleaned: bool) -> set[str]:
    """All words of the training texts, but for the integers that are read as ``<unk>``."""
    rules = raw.rules
    words: set[str] = set()
    for text, _ in raw.train:
        if cleaned and rules.html:
            text, _ = without_html(text)
        words.update(rules.words(text))
    if not rules.mask_integers:
        return words
    return {word for word in words if not is_masked_integer(word)}


def _pairs(settings: Settings) -> Tensors:
    text = read_translation(settings.data)
    data = piece_corpus(text, size=settings.pieces, folder=cache_folder() / "pieces")
    return {
        "train.source": torch.from_numpy(data.train.source_lengths),
        "train.target": torch.from_numpy(data.train.target_lengths),
        "validation.source": torch.from_numpy(data.validation.source_lengths),
        "validation.target": torch.from_numpy(data.validation.target_lengths),
        "kept": torch.tensor(len(data.pieces)),
        "dropped": _as_bytes(data.dropped),
    }


def _as_bytes(dropped: tuple[Dropped, ...]) -> Tensor:
    lines = [[line.part, line.what, line.why, line.count] for line in dropped]
    text = json.dumps(lines, ensure_ascii=False)
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


# A network reads a text, or a source, with a mark at either end, and writes an end mark after a target.
MARKS_READ = 2
MARKS_WRITTEN = 1


def chances(lengths: Int[Tensor, " texts"], marks: int = MARKS_READ) -> Float[Tensor, " texts"]:
    """Return how often a position drawn at random agrees, by text, in percent.

    That is ⌈5 % L⌉ / L of the L positions of a text, marks included: the random baseline of the agreement is
    "close to but not exactly 5 % because of integer rounding" (Snell et al. 2021, section 3.1).

    Args:
        lengths: of the texts, without marks.
        marks: that each of them has.

    >>> chances(torch.tensor([8, 18, 19])).tolist()
    [10.0, 5.0, 9.523809523809524]
    """
    positions = lengths + marks
    return 100 * places(positions).double() / positions


def _chance(of_part: dict[str, Int[Tensor, " texts"]]) -> float:
    """Return the mean over what is predicted: one label a text, or the words of its translation."""
    if "words" in of_part:
        return chances(of_part["words"]).mean().item()
    rows = of_part["target"] + MARKS_WRITTEN
    return ((chances(of_part["source"]) * rows).sum() / rows.sum()).item()


@measure(version=2)
def measure_text_sizes(recording: Recording) -> dict:
    """Counts, medians and quantiles of what :func:`record` returns, and what agrees by chance."""
    lengths_of: dict[str, dict[str, Tensor]] = {}
    parts: dict[str, dict] = {}
    for name, tensor in sorted(recording.tensors.items()):
        part, dot, side = name.partition(".")
        if dot:
            lengths_of.setdefault(part, {})[side] = tensor
            lengths = np.asarray(tensor.tolist())
            sizes = parts.setdefault(part, {"texts": len(lengths)})
            sizes[side] = {
                "median": float(np.median(lengths)),
                "quantiles": np.quantile(lengths, QUANTILES).tolist(),
            }
    for part, lengths_by_side in lengths_of.items():
        parts[part]["chance"] = _chance(lengths_by_side)
    different = recording.tensors.get("different")
    return {
        "parts": parts,
        "kept": recording["kept"].item(),
        "different": None if different is None else different.item(),
        "dropped": json.loads(bytes(recording["dropped"].tolist())),
    }
