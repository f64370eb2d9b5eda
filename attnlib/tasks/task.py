"""What an experiment is told about a task."""

from dataclasses import dataclass, field

from attnlib.tasks.corpus import Corpus
from attnlib.tasks.vocabulary import Vocabulary

Links = frozenset[tuple[int, int]]  # (target position, source position) of words, end marks left out


@dataclass(frozen=True, eq=False)
class Task:
    """A sequence-to-sequence task: what to train on, what to judge on, and what the ids mean.

    Args:
        name: as in :func:`companion.data.registry.names`.
        source_vocabulary: of the encoder.
        target_vocabulary: of the decoder.
        train: samples that models and components are fitted on.
        held_out: samples that they are judged on.
        checksums: sha256 of the content of each data file read, by "dataset/file"; empty when made by rule.
        gold: word alignments of the first ``len(gold)`` held-out samples; None where none are known.
    """

    name: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    train: Corpus
    held_out: Corpus
    checksums: dict[str, str] = field(default_factory=dict)
    gold: tuple[Links, ...] | None = None
