"""Pieces of words: one SentencePiece vocabulary for both languages (Snell et al. 2021, section A.8).

The ids of the marks are those of :mod:`attnlib.tasks.vocabulary`, so that pieces go into a
:class:`attnlib.tasks.corpus.Corpus` as words do.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsIndex

from attnlib.errors import BadInput
from attnlib.files import atomic_path
from attnlib.tasks.vocabulary import BOS, EOS, MARKS, PAD, UNK

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

Kind = Literal["unigram", "word"]
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
    """A trained vocabulary: text to ids and back. Equal ``proto`` means equal vocabularies.

    Args:
        proto: the model as SentencePiece serialises it.
    """

    def __init__(self, proto: bytes):
        self.proto = proto

    @cached_property
    def _processor(self) -> "SentencePieceProcessor":
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_proto=self.proto)

    def __len__(self) -> int:
        """Number of ids, marks included: the height of an embedding table."""
        return self._processor.get_piece_size()

    @property
    def sha256(self) -> str:
        """Checksum of the serialised model."""
        return hashlib.sha256(self.proto).hexdigest()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each line, without marks; a character never seen gives ``<unk>``."""
        return self._processor.encode(list(lines))

    def decode(self, ids: Iterable[Iterable[SupportsIndex]]) -> list[str]:
        """Lines of text, spaces where they belong; marks are left out, ``<unk>`` reads ``⁇``."""
        return self._processor.decode([[int(one) for one in row] for row in ids])

    def spell(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """The pieces themselves, ``▁`` where a word begins; the marks as :data:`MARKS` spells them."""
        return [MARKS[i] if i < len(MARKS) else self._processor.id_to_piece(int(i)) for i in ids]


def train_pieces(
    lines: Iterable[str], size: int = PAPER_SIZE, folder: Path | None = None, *, kind: Kind = "unigram"
) -> Pieces:
    """Train a vocabulary of ``size`` pieces; equal lines in equal order give equal bytes.

    Args:
        lines: the training text, both languages.
        size: number of pieces, the four marks included.
        folder: where trained vocabularies are kept, each under the checksum of what it was made from (lines,
            size, settings, version of SentencePiece), and found again; ``None`` keeps nothing.
        kind: ``"word"`` makes every word a piece of its own.

    Raises:
        BadInput: the text is too small for so many pieces (or too rich for so few).
    """
    lines = list(lines)
    path = None if folder is None else Path(folder) / f"pieces-{_key(lines, size, kind)}.model"
    if path is not None and path.is_file():
        return Pieces(path.read_bytes())
    pieces = Pieces(_trained(lines, size, kind))
    if path is not None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(pieces.proto)
    return pieces


def _trained(lines: list[str], size: int, kind: Kind) -> bytes:
    from sentencepiece import SentencePieceTrainer

    proto = io.BytesIO()
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
    return proto.getvalue()


def _key(lines: list[str], size: int, kind: Kind) -> str:
    from sentencepiece import __version__

    made_from = json.dumps({"size": size, "kind": kind, "version": __version__, **_SETTINGS}, sort_keys=True)
    digest = hashlib.sha256(made_from.encode())
    for line in lines:
        digest.update(b"\n" + line.encode())
    return digest.hexdigest()[:16]
