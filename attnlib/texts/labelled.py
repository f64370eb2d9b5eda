"""Texts with one of two labels, and batches of them.

Texts are stored ragged, words alone. :func:`collate_labelled` adds the marks and the padding::

    tokens   <bos>  a  fine  film  <eos>  <pad>
    mask       1    1    1     1     1      0

The marks are positions like any other: the network may attend to them. That the paper's inputs carry two of
them shows in its random baseline for SST, 8.39 and 8.48 % (validation and training, Tables 5 and 7): the mean
of ⌈5 % L⌉ / L is 8.36 and 8.48 % with two marks to a sentence, 9.86 and 10.29 % with none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.tasks.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from attnlib.texts.dropped import Dropped

MARKS = 2  # positions that collate_labelled adds to the words of a text
_WINDOW = 32  # batches: texts of about the same length are put together inside windows of this many
# Tells the stream of batches apart from other streams drawn with the same seed.
_STREAM = 0x1ABE


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts as flat word ids without marks; text i is ``ids[offsets[i]:offsets[i+1]]``, its label 0 or 1.

    Raises:
        BadInput: the three do not fit together, a text is empty, an id is a mark, or a label is not 0 or 1.
    """

    ids: Int[np.ndarray, " words"]
    offsets: Int[np.ndarray, " texts_and_one"]
    labels: Int[np.ndarray, " texts"]

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.labels) + 1 or self.offsets[-1] != len(self.ids):
            raise BadInput(
                f"{len(self.labels)} labels, {len(self.offsets)} offsets, {len(self.ids)} words; "
                "expected an offset more than labels, the last one the number of words"
            )
        if (np.diff(self.offsets) < 1).any():
            raise BadInput("a text without words; drop it and say so")
        if len(self.ids) and self.ids.min() < UNK:
            raise BadInput(f"texts hold words only, ids ≥ {UNK}; got {self.ids.min()}, which collate adds")
        if not np.isin(self.labels, (0, 1)).all():
            raise BadInput(f"labels must be 0 or 1; got {np.unique(self.labels)[:5].tolist()}")

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], labels: Sequence[int]) -> "LabelledTexts":
        """Pack texts of word ids."""
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        ids = np.concatenate([np.asarray(text, dtype=np.int64) for text in texts] or [np.zeros(0, np.int64)])
        return cls(ids, offsets, np.asarray(labels, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def text(self, i: int) -> Int[np.ndarray, " words"]:
        """Word ids of text ``i``, without marks."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> Int[np.ndarray, " texts"]:
        """Words in each text, marks not counted."""
        return np.diff(self.offsets)

    def subset(self, indices: Sequence[int] | Int[np.ndarray, " chosen"]) -> "LabelledTexts":
        """The texts ``indices``, in that order."""
        return LabelledTexts.of([self.text(i) for i in indices], self.labels[np.asarray(indices, np.int64)])


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """A binary classification task.

    Attributes:
        name: as in :func:`attnlib.texts.labelled_sets.names`.
        classes: what label 0 and label 1 stand for.
        vocabulary: of the training texts; other words are read as ``<unk>``.
        train: texts to train on.
        validation: texts to judge on.
        dropped: what the preparation left out, and why.
        checksums: sha256 of the content of each file read, by "dataset/file"; empty when made by rule.
    """

    name: str
    classes: tuple[str, str]
    vocabulary: Vocabulary
    train: LabelledTexts
    validation: LabelledTexts
    dropped: tuple[Dropped, ...]
    checksums: dict[str, str]


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Texts as padded tensors with their marks; the mask is true on words and marks."""

    tokens: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]
    labels: Int[Tensor, " batch"]
    indices: Int[Tensor, " batch"]  # of the texts among theirs

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "LabelledBatch":
        """The same batch on another device."""
        return LabelledBatch(*(getattr(self, field.name).to(device) for field in fields(self)))


def collate_labelled(
    texts: LabelledTexts, indices: Sequence[int] | Int[np.ndarray, " batch"]
) -> LabelledBatch:
    """Put marks around the texts ``indices`` and pad them to one length.

    Raises:
        BadInput: no index is given, or one is outside.
    """
    indices = np.asarray(indices, dtype=np.int64)
    if not len(indices) or indices.min() < 0 or indices.max() >= len(texts):
        raise BadInput(f"a batch takes at least one index in 0…{len(texts) - 1}; got {indices.tolist()[:8]}")
    lengths = texts.lengths[indices] + MARKS
    tokens = np.full((len(indices), int(lengths.max())), PAD, dtype=np.int64)
    for row, i in enumerate(indices):
        words = texts.text(i)
        tokens[row, 0], tokens[row, 1 : len(words) + 1], tokens[row, len(words) + 1] = BOS, words, EOS
    mask = np.arange(tokens.shape[1]) < lengths[:, None]
    return LabelledBatch(*(torch.from_numpy(a) for a in (tokens, mask, texts.labels[indices], indices)))


class LabelledBatches:
    """Training batches as a pure function of (texts, batch size, seed, step), so that a training can resume.

    Every epoch visits each text once: shuffled, put in order of length inside windows of 32 batches so that a
    batch has little padding, and the batches shuffled again. The last window may end in a smaller batch.

    Raises:
        BadInput: no texts, a batch size below 1, or a negative seed.
    """

    def __init__(self, texts: LabelledTexts, batch_size: int, *, seed: int):
        if not len(texts) or batch_size < 1 or seed < 0:
            raise BadInput(
                f"{len(texts)} texts in batches of {batch_size} with seed {seed}; expected at least one "
                "text, a batch size of at least 1, a seed of at least 0"
            )
        self.texts, self.batch_size, self.seed = texts, batch_size, seed
        # Only remembers: the order of an epoch is the same whenever it is asked for.
        self._epoch = lru_cache(maxsize=1)(self._draw)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.texts) // self.batch_size)

    def __call__(self, step: int) -> LabelledBatch:
        """The batch of update ``step`` (0, 1, …)."""
        return collate_labelled(self.texts, self.indices(step))

    def indices(self, step: int) -> Int[np.ndarray, " batch"]:
        """Indices of the texts in the batch of update ``step``."""
        epoch, place = divmod(step, len(self))
        return self._epoch(epoch)[place]

    def _draw(self, epoch: int) -> list[Int[np.ndarray, " batch"]]:
        draw = np.random.default_rng([_STREAM, self.seed, epoch])
        order = draw.permutation(len(self.texts))
        window = np.arange(len(order)) // (_WINDOW * self.batch_size)
        order = order[np.lexsort((self.texts.lengths[order], window))]
        batches = np.split(order, range(self.batch_size, len(order), self.batch_size))
        return [batches[i] for i in draw.permutation(len(batches))]


def judging_batches(texts: LabelledTexts, *, positions: int) -> Iterator[LabelledBatch]:
    """Every text once, in order of length, as many at a time as fit into ``positions`` with their padding.

    Raises:
        BadInput: ``positions`` is below 1. A text longer than that comes alone.
    """
    if positions < 1:
        raise BadInput(f"positions must be at least 1; got {positions}")
    order = np.argsort(texts.lengths, kind="stable")
    first = 0
    while first < len(order):
        lengths = texts.lengths[order[first:]] + MARKS  # ascending, so the last of a batch is its longest
        fits = int(np.searchsorted(lengths * np.arange(1, len(lengths) + 1), positions, side="right"))
        last = first + max(1, fits)
        yield collate_labelled(texts, order[first:last])
        first = last
