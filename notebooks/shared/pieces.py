"""Sentence pairs as pieces of words: one vocabulary for both sides, and batches as a function of the step.

The vocabulary is SentencePiece's (Snell et al. 2021, section A.8). Its marks have the ids of
:mod:`attnlib.models.vocabulary`, so that pieces go into a :class:`attnlib.models.corpus.Corpus` as words
do.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from jaxtyping import Int

from attnlib.errors import BadInput
from attnlib.files import atomic_path
from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.models.vocabulary import BOS, EOS, MARKS, PAD, UNK
from companion.data.parallel import ParallelText, PieceKind
from companion.data.text import Dropped, Tally

PAPER_SIZE = 8_000  # pieces, marks included
# What the paper does not say stays at SentencePiece's defaults: the unigram model (Kudo 2018), NFKC
# normalisation, 99.95 % of the characters. One thread, so that sums are added up in one order.
_SETTINGS = {
    "normalization_rule_name": "nmt_nfkc",
    "character_coverage": 0.9995,
    "num_threads": 1,
    "pad_id": PAD,
    "bos_id": BOS,
    "eos_id": EOS,
    "unk_id": UNK,
}


class Pieces:
    """A trained vocabulary: text to ids and back. ``proto`` is the model as SentencePiece serialises it."""

    def __init__(self, proto: bytes):
        from sentencepiece import SentencePieceProcessor

        self.proto, self._processor = proto, SentencePieceProcessor(model_proto=proto)

    def __len__(self) -> int:
        """Number of ids, marks included: the height of an embedding table."""
        return self._processor.get_piece_size()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each line, without marks; a character never seen gives ``<unk>``."""
        return self._processor.encode(list(lines))

    def decode(self, ids: Iterable[Iterable[SupportsIndex]]) -> list[str]:
        """Lines of text, spaces where they belong; marks are left out, ``<unk>`` reads ``⁇``."""
        return self._processor.decode([[int(piece) for piece in row] for row in ids])

    def spell(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """The pieces themselves, ``▁`` where a word begins; the marks as :data:`MARKS` spells them."""
        return [MARKS[i] if i < len(MARKS) else self._processor.id_to_piece(int(i)) for i in ids]


def train_pieces(
    lines: Iterable[str], size: int = PAPER_SIZE, folder: Path | None = None, *, kind: PieceKind = "unigram"
) -> Pieces:
    """Train a vocabulary of ``size`` pieces, marks included; equal lines in equal order give equal bytes.

    Trained vocabularies are kept in ``folder``, if any, each under the checksum of what it was made from
    (lines, size, settings, version of SentencePiece). The ``kind`` ``"word"`` makes every word a piece.
    """
    from sentencepiece import SentencePieceTrainer, __version__

    made_from = json.dumps({"size": size, "kind": kind, "version": __version__, **_SETTINGS}, sort_keys=True)
    lines, proto = list(lines), io.BytesIO()
    key = hashlib.sha256("\n".join([made_from, *lines]).encode()).hexdigest()[:16]
    path = None if folder is None else Path(folder) / f"pieces-{key}.model"
    if path is not None and path.is_file():
        return Pieces(path.read_bytes())
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=proto,
            vocab_size=size,
            model_type=kind,
            minloglevel=2,  # errors are raised anyway; nothing is to be printed
            **_SETTINGS,
        )
    except RuntimeError as error:
        raise BadInput(
            f"no vocabulary of {size} pieces from {len(lines)} lines; choose another number. SentencePiece "
            f"says: {str(error).rpartition('] ')[2]}"
        ) from error
    if path is not None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(proto.getvalue())
    return Pieces(proto.getvalue())


_STREAM = 0x9EA1  # tells the order of batches apart from other streams drawn with the same seed
# Within a source length, targets are sorted in windows of so many batches: little padding, changing company.
_WINDOW = 8


@dataclass(frozen=True, eq=False)
class PieceCorpus:
    """A translation set ready for a network, its targets also as text, what BLEU is held against."""

    pieces: Pieces
    train: Corpus
    validation: Corpus
    train_targets: tuple[str, ...]
    validation_targets: tuple[str, ...]
    dropped: tuple[Dropped, ...]


def piece_corpus(
    text: ParallelText, *, size: int = PAPER_SIZE, n_train: int | None = None,
    n_validation: int | None = None, longest: int | None = None, folder: Path | None = None,
) -> PieceCorpus:  # fmt: skip
    """Train the vocabulary on the training text, both sides (section A.8), and encode every pair.

    Args:
        size: number of pieces; of a text whose words are the pieces, there are as many as it has words.
        n_train, n_validation: use only so many pairs from the beginning; all when ``None``.
        longest: drop pairs with more pieces on a side, counted; ``None`` keeps all, as the paper does.
        folder: where trained vocabularies are kept; see :func:`train_pieces`.
    """
    tally, corpora, targets = Tally(), [], []
    parts = {"train": text.train[:n_train], "validation": text.validation[:n_validation]}
    for (part, kept), whole in zip(parts.items(), (text.train, text.validation), strict=True):
        if not kept:
            raise BadInput(f"no {part} pair is left of {len(whole)}; ask for at least one")
        tally.add(part, "pairs", "beyond the number asked for", len(whole) - len(kept))
    lines = [line for side in zip(*parts["train"], strict=True) for line in side]
    if text.kind == "word":
        size = len(MARKS) + len({word for line in lines for word in line.split()})
    pieces = train_pieces(lines, size, folder, kind=text.kind)
    for part, pairs in parts.items():
        ids = zip(*(pieces.encode(side) for side in zip(*pairs, strict=True)), strict=True)
        kept = [(*two, target) for two, (_, target) in zip(ids, pairs, strict=True)
                if longest is None or max(map(len, two)) <= longest]  # fmt: skip
        tally.add(part, "pairs", f"a side of more than {longest} pieces", len(pairs) - len(kept))
        if not kept:
            raise BadInput(f"no {part} pair has at most {longest} pieces on a side; allow longer ones")
        *sides, texts = zip(*kept, strict=True)
        corpora.append(Corpus.from_ids(*sides))
        targets.append(texts)
    return PieceCorpus(pieces, *corpora, *targets, tuple(sorted((*text.dropped, *tally.dropped()))))


class EqualLengthBatches:
    """Endless training batches; the batch of a step depends on (corpus, batch size, seed, step) alone.

    Nearly all samples of a batch have sources of one length, so that an encoder meets no padding; targets
    differ a little and are padded. An epoch has every sample once. What is left of a length, fewer samples
    than make a batch, goes into mixed batches, the last of which may be small.
    """

    def __init__(self, corpus: Corpus, batch_size: int, seed: int):
        self.corpus, self.batch_size, self.seed = corpus, batch_size, seed
        self._epoch: tuple[int, list[np.ndarray]] = (-1, [])  # the latest one made: steps come in order

    @property
    def per_epoch(self) -> int:
        counts = np.unique(self.corpus.source_lengths, return_counts=True)[1]
        whole, left = np.divmod(counts, self.batch_size)
        return int(whole.sum()) - int(-left.sum() // self.batch_size)

    def __call__(self, step: int) -> Batch:
        return collate(self.corpus, self.indices(step))

    def indices(self, step: int) -> Int[np.ndarray, " batch"]:
        """Which samples the batch of ``step`` holds, counted from 0."""
        epoch, place = divmod(step, self.per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = epoch, self._order(epoch)
        return self._epoch[1][place]

    def _order(self, epoch: int) -> list[np.ndarray]:
        draw = np.random.default_rng([_STREAM, self.seed, epoch])
        order = draw.permutation(len(self.corpus))
        lengths = self.corpus.source_lengths[order]
        whole, left = [], []
        for length in np.unique(lengths):
            group = order[lengths == length]
            cut = len(group) - len(group) % self.batch_size
            whole += self._cut(self._by_target(group[:cut]))
            left.append(group[cut:])  # by rising length
        batches = [*whole, *self._cut(np.concatenate(left))]
        return [batches[i] for i in draw.permutation(len(batches))]

    def _by_target(self, group: np.ndarray) -> np.ndarray:
        window = np.arange(len(group)) // (_WINDOW * self.batch_size)
        return group[np.lexsort((self.corpus.target_lengths[group], window))]

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        return [order[first : first + self.batch_size] for first in range(0, len(order), self.batch_size)]
