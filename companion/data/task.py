"""What a task is: samples to train on, samples to judge on, and the words behind their ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from companion.data.own_text import TextFacts

Links = frozenset[tuple[int, int]]  # (source position, target position) of words, end marks left out


def links_of_order(order: Sequence[int]) -> Links:
    """Return the links of a translation word for word, from the source position of each target word.

    >>> sorted(links_of_order([1, 0, 2]))
    [(0, 1), (1, 0), (2, 2)]
    """
    return frozenset((source, target) for target, source in enumerate(order))


@dataclass(frozen=True, eq=False)
class Task:
    """A sequence-to-sequence task: what to train on, what to judge on, and what the ids mean."""

    name: str  #: by which messages and results call it
    source_vocabulary: Vocabulary  #: of the encoder
    target_vocabulary: Vocabulary  #: of the decoder
    train: Corpus  #: samples that models and components are fitted on
    held_out: Corpus  #: samples that they are judged on
    #: sha256 of the content of each data file read, by "dataset/file"; empty if the task is synthetic
    checksums: dict[str, str] = field(default_factory=dict)
    #: word alignments of the first ``len(gold)`` held-out samples; None where none are known
    gold: tuple[Links, ...] | None = None
    #: what was made of a reader's own text; None of every other task
    text: TextFacts | None = None
