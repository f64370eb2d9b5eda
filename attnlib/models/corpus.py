"""Hold pairs of sentences, and make batches of them: the one place for padding, end marks and masks.

A corpus stores the words alone, ragged. :func:`collate` adds the marks::

    source         the  cat  sat  <eos>  <pad>
    target_input   <bos>  le  chat           what the decoder reads at each step
    target_output  le  chat  <eos>           what it is to predict there

so that both target rows have one entry more than the target has words, and share one mask.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.models.vocabulary import BOS, EOS, PAD, UNK

# Batches are made by length inside windows of this many batches: nearly as little padding as sorting a whole
# epoch, but a sample still meets other company in each.
_WINDOW = 32
# Tells the stream of batches apart from the other streams drawn with the same seed.
_STREAM = 0xBA7C


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(ShowsShapes):
    """Sentence pairs as flat word ids without marks; sample i is ``ids[offsets[i]:offsets[i+1]]``.

    Attributes:
        source_ids: of all sources, one after the other.
        source_offsets: where each source begins, and where the last ends.
        target_ids: of all targets.
        target_offsets: where each target begins, and where the last ends.

    Example:
        >>> corpus = Corpus.from_ids([[4, 5], [6]], [[7], [8, 9]])
        >>> len(corpus), corpus.target(1).tolist()
        (2, [8, 9])
    """

    source_ids: Int[np.ndarray, " source_words"]
    source_offsets: Int[np.ndarray, " samples_and_one"]
    target_ids: Int[np.ndarray, " target_words"]
    _: KW_ONLY
    target_offsets: Int[np.ndarray, " samples_and_one"]

    @classmethod
    def from_ids(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "Corpus":
        """Pack sentences of word ids.

        Args:
            sources: ids of each source, without marks.
            targets: ids of each target.

        Returns:
            The corpus.

        Raises:
            BadInput: there are not as many sources as targets, or an id is not that of a word
                (``<unk>`` or ≥ 4).
        """
        if len(sources) != len(targets):
            raise BadInput(f"{len(sources)} sources but {len(targets)} targets; each source needs one")
        source_ids, source_offsets = pack(sources)
        target_ids, target_offsets = pack(targets)
        return cls(source_ids, source_offsets, target_ids, target_offsets=target_offsets)

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def source(self, i: int) -> Int[np.ndarray, " words"]:
        """Return the word ids of a source, without its end mark.

        Args:
            i: number of the sample, from 0.

        Returns:
            A view of the ids.
        """
        return self.source_ids[self.source_offsets[i] : self.source_offsets[i + 1]]

    def target(self, i: int) -> Int[np.ndarray, " words"]:
        """Return the word ids of a target, without its end mark.

        Args:
            i: number of the sample, from 0.

        Returns:
            A view of the ids.
        """
        return self.target_ids[self.target_offsets[i] : self.target_offsets[i + 1]]

    @property
    def source_lengths(self) -> Int[np.ndarray, " samples"]:
        """Words in each source, without the end mark."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> Int[np.ndarray, " samples"]:
        """Words in each target, without the end mark."""
        return np.diff(self.target_offsets)

    def subset(self, indices: Sequence[int] | Int[np.ndarray, " chosen"]) -> "Corpus":
        """Return the corpus of some samples.

        Args:
            indices: their numbers, in the order that they have afterwards.

        Raises:
            BadInput: an index is outside the corpus, or no whole number.
        """
        rows = _checked_indices(indices, len(self))
        source_ids, source_offsets = _chosen(self.source_ids, self.source_offsets, rows)
        target_ids, target_offsets = _chosen(self.target_ids, self.target_offsets, rows)
        return Corpus(source_ids, source_offsets, target_ids, target_offsets=target_offsets)


@dataclass(frozen=True, eq=False, repr=False)
class Batch(ShowsShapes):
    """Samples as padded tensors, with the marks shown in the module.

    The networks of the library read these at every update of a training, so that nothing is checked and
    padding is always at the right. :class:`attnlib.TokenBatch` is what a user gives to a model of any kind:
    it is checked, padded on either side, and may leave it to the model what the decoder reads.

    Attributes:
        source: ids of the source tokens.
        source_mask: True at words and end marks.
        target_input: what the decoder reads.
        target_output: what it is to predict.
        target_mask: True at words and end marks of ``target_output``, and so at what is read there.
        indices: numbers of the samples in their corpus.

    Example:
        >>> collate(Corpus.from_ids([[4, 5], [6]], [[7], [8, 9]]), [0, 1]).target_input.tolist()
        [[1, 7, 0], [1, 8, 9]]
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_input: Int[Tensor, "batch target"]
    _: KW_ONLY
    target_output: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    indices: Int[Tensor, " batch"]  # of the samples in their corpus

    def __len__(self) -> int:
        return len(self.indices)

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device.

        Args:
            device: as torch names it, such as ``"cuda"``.

        Returns:
            A new batch.
        """
        return Batch(
            source=self.source.to(device),
            source_mask=self.source_mask.to(device),
            target_input=self.target_input.to(device),
            target_output=self.target_output.to(device),
            target_mask=self.target_mask.to(device),
            indices=self.indices.to(device),
        )


def collate(corpus: Corpus, indices: Sequence[int] | Int[np.ndarray, " batch"]) -> Batch:
    """Pad samples to one length and add the marks.

    Args:
        corpus: the sentence pairs.
        indices: numbers of the samples.

    Returns:
        The batch, in this order.

    Raises:
        BadInput: no index is given, or one is outside the corpus.

    Example:
        >>> batch = collate(Corpus.from_ids([[4, 5], [6]], [[7], [8, 9]]), [1, 0])
        >>> batch.source.tolist(), batch.source_mask.tolist()
        ([[6, 2, 0], [4, 5, 2]], [[True, True, False], [True, True, True]])
    """
    indices = _checked_indices(indices, len(corpus))
    if not len(indices):
        raise BadInput(f"a batch takes at least one index in 0…{len(corpus) - 1}; got []")
    source, source_lengths = _rectangle(corpus.source_ids, corpus.source_offsets, indices)
    target, target_lengths = _rectangle(corpus.target_ids, corpus.target_offsets, indices)
    start = np.full((len(indices), 1), BOS)
    target_input = np.concatenate([start, target[:, :-1]], axis=1)  # before the end marks are written
    source_mask = _close(source, source_lengths)
    target_mask = _close(target, target_lengths)
    return Batch(
        source=torch.from_numpy(source),
        source_mask=torch.from_numpy(source_mask),
        target_input=torch.from_numpy(target_input),
        target_output=torch.from_numpy(target),
        target_mask=torch.from_numpy(target_mask),
        indices=torch.from_numpy(indices),
    )


def training_batches(corpus: Corpus, batch_size: int, *, seed: int, start_step: int = 0) -> Iterator[Batch]:
    """Yield batches for training without end.

    Batch ``k`` depends on (corpus, batch_size, seed, k) alone, so that a training that stopped after k steps
    goes on with ``start_step=k`` as if it never stopped. An epoch visits every sample once; one of its
    batches may be smaller.

    Args:
        corpus: the sentence pairs.
        batch_size: samples at once.
        seed: of the order.
        start_step: number of the first batch.

    Yields:
        Batches.

    Raises:
        BadInput: the corpus is empty, ``batch_size`` is below 1, or ``seed`` or ``start_step`` is negative.

    Example:
        >>> corpus = Corpus.from_ids([[4], [5], [6]], [[7], [8], [9]])
        >>> from itertools import islice
        >>> [len(batch) for batch in islice(training_batches(corpus, batch_size=2, seed=0), 4)]
        [1, 2, 1, 2]
    """
    if not len(corpus):
        raise BadInput("cannot draw batches from a corpus without samples")
    if batch_size < 1 or seed < 0 or start_step < 0:
        raise BadInput(
            f"batch_size must be ≥ 1, seed and step ≥ 0; got {batch_size}, {seed} and {start_step}"
        )
    epoch, first = divmod(start_step, _batches_per_epoch(corpus, batch_size))
    while True:
        for indices in epoch_batches(corpus, batch_size, seed=seed, epoch=epoch)[first:]:
            yield collate(corpus, indices)
        epoch, first = epoch + 1, 0


def epoch_batches(
    corpus: Corpus, batch_size: int, *, seed: int, epoch: int
) -> list[Int[np.ndarray, " batch"]]:
    """Return the batches of an epoch: samples shuffled, sorted by length in windows, batches shuffled.

    Args:
        corpus: the sentence pairs.
        batch_size: samples at once.
        seed: of the training.
        epoch: its number, from 0.

    Returns:
        Numbers of the samples of each batch.

    Example:
        >>> corpus = Corpus.from_ids([[4], [5], [6]], [[7], [8], [9]])
        >>> sorted(len(batch) for batch in epoch_batches(corpus, batch_size=2, seed=0, epoch=0))
        [1, 2]
    """
    draw = np.random.default_rng([_STREAM, seed, epoch])
    order = draw.permutation(len(corpus))
    # The recurrent loops run over both lengths; their sum is what a batch costs.
    cost = (corpus.source_lengths + corpus.target_lengths)[order]
    window = np.arange(len(order)) // (_WINDOW * batch_size)
    order = order[np.lexsort((cost, window))]
    batches = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return [batches[i] for i in draw.permutation(len(batches))]


def evaluation_batches(corpus: Corpus, batch_size: int) -> Iterator[Batch]:
    """Yield every sample once, ordered by source length, then target length, then number.

    Args:
        corpus: the sentence pairs.
        batch_size: samples at once.

    Yields:
        Batches; the last may be smaller.

    Raises:
        BadInput: ``batch_size`` is below 1.

    Example:
        >>> corpus = Corpus.from_ids([[4, 5], [6]], [[7], [8, 9]])
        >>> [batch.indices.tolist() for batch in evaluation_batches(corpus, batch_size=1)]
        [[1], [0]]
    """
    if batch_size < 1:
        raise BadInput(f"batch_size must be at least 1; got {batch_size}")
    order = np.lexsort((corpus.target_lengths, corpus.source_lengths))
    for first in range(0, len(order), batch_size):
        yield collate(corpus, order[first : first + batch_size])


def _batches_per_epoch(corpus: Corpus, batch_size: int) -> int:
    return -(-len(corpus) // batch_size)


def pack(sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Put the word ids of sentences one after the other.

    Args:
        sentences: ids of each.

    Returns:
        All ids, and where each sentence begins and the last ends.

    Raises:
        BadInput: an id is that of a mark other than ``<unk>``.

    Example:
        >>> ids, offsets = pack([[4, 5], [6]])
        >>> ids.tolist(), offsets.tolist()
        ([4, 5, 6], [0, 2, 3])
    """
    offsets = np.zeros(len(sentences) + 1, dtype=np.int64)
    np.cumsum([len(sentence) for sentence in sentences], out=offsets[1:])
    pieces = [np.asarray(sentence, dtype=np.int64) for sentence in sentences]
    ids = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
    if len(ids) and ids.min() < UNK:
        raise BadInput(f"a corpus holds words only, ids ≥ {UNK}; got {ids.min()}: marks are added by collate")
    return ids, offsets


def _checked_indices(indices: Sequence[int] | np.ndarray, samples: int) -> Int[np.ndarray, " chosen"]:
    """Return indices as an array; raise BadInput for one outside the corpus, or no whole number."""
    rows = np.asarray(indices)
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise BadInput(f"indices are {rows.dtype} of shape {rows.shape}; expected whole numbers in a row")
    if rows.min() < 0 or rows.max() >= samples:
        raise BadInput(f"a sample has an index in 0…{samples - 1}; got {rows.tolist()[:8]}")
    return rows.astype(np.int64, copy=False)


def _chosen(ids: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of some sentences in a row, and where each begins and the last ends."""
    lengths = offsets[rows + 1] - offsets[rows]  # (sentences,)
    bounds = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    shift = offsets[rows] - bounds[:-1]  # (sentences,), from the place among the chosen words to that in ids
    places = np.arange(bounds[-1]) + np.repeat(shift, lengths)  # (chosen words,)
    return ids[places], bounds


def _rectangle(ids: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return words padded to (rows, longest + 1), the last column free, and the words in each row."""
    words, ends = _chosen(ids, offsets, rows)
    lengths = np.diff(ends)
    padded = np.full((len(rows), int(lengths.max()) + 1), PAD, dtype=np.int64)
    filled = np.arange(padded.shape[1]) < lengths[:, None]
    padded[filled] = words
    return padded, lengths


def _close(padded: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Write the end mark after the words of each row, in place, and return the mask of words and end mark."""
    padded[np.arange(len(padded)), lengths] = EOS
    return np.arange(padded.shape[1]) <= lengths[:, None]
