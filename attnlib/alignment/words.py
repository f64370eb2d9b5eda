r"""Pieces joined to words, and attention between pieces to attention between words.

Tokenizers mark in one of a few ways where words begin or end:

===========  =================================  ==================================================
marking      pieces of ``the lowest``           tokenizers
===========  =================================  ==================================================
``"▁"``      ``▁the ▁low est``                  SentencePiece: T5, mBART, Marian, M2M100, NLLB
``"Ġ"``      ``the Ġlow est``                   byte-level BPE: BART, GPT-2, Llama 3
``"##"``     ``the low ##est``                  WordPiece: BERT
``"@@"``     ``the low@@ est``                  subword-nmt: fairseq, CTRL
``"</w>"``   ``the</w> low est</w>``            BPE of Sennrich et al.: FSMT, XLM
``" "``      ``t h e · l o w e s t`` (a space)  bytes or characters: ByT5
``""``       ``the lowest``                     a piece is a word
===========  =================================  ==================================================

Each piece stands for some bytes of the text, in which words are what is between white space. One rule says
which word a piece is of, whether these bytes come from the marking or from a tokenizer that knows where in
the line each piece was: the word that contains its first character other than white space.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput

Marking = Literal["▁", "Ġ", "##", "@@", "</w>", " ", ""]
Span = tuple[int, int]  # where something begins, and where it has ended

NO_WORD = -1  # of a piece that is of no word
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # how SentencePiece writes a byte that it has no piece for


@dataclass(frozen=True)
class Words:
    """The words of one side of a sentence, and the word that each of its pieces is of.

    Attributes:
        words: as a reader sees them. A word that was cut off has no pieces.
        of_piece: of each piece the number of its word, from 0; :data:`NO_WORD` for none.

    Raises:
        BadInput: a piece is of a word that is not there.

    Example:
        >>> Words(("the", "lowest"), (0, 1, 1)).has_pieces()
        [True, True]
    """

    words: tuple[str, ...]
    of_piece: tuple[int, ...]

    def __post_init__(self) -> None:
        wrong = [number for number in self.of_piece if not NO_WORD <= number < len(self.words)]
        if wrong:
            raise BadInput(f"a piece is of word {wrong[0]}; there are {len(self.words)}, counted from 0")

    def has_pieces(self) -> list[bool]:
        """Return for each word whether it has a piece.

        Returns:
            True for a word with a piece, in the order of the words.
        """
        present = set(self.of_piece)
        return [number in present for number in range(len(self.words))]


def join_pieces(
    pieces: Sequence[str], marking: Marking, *, special: Collection[int] = (), keep_special: bool = False
) -> Words:
    """Join the pieces of one side of a sentence to words.

    Args:
        pieces: as the tokenizer writes them.
        marking: how it marks words, see :func:`marking_of`.
        special: places of the pieces that are not text, such as end marks and marks of languages.
        keep_special: make each of these a separate word; by default they are of no word.

    Returns:
        The words, in the script of the reader: bytes are decoded as UTF-8.

    Example:
        >>> join_pieces(["▁the", "▁low", "est", "</s>"], "▁", special=[3])
        Words(words=('the', 'lowest'), of_piece=(0, 1, 1, -1))
        >>> join_pieces(["Ġо", "Ð", "½", "Ġhe"], "Ġ").words
        ('он', 'he')
    """
    text = bytearray()
    spans: list[Span] = []
    for index, piece in enumerate(pieces):
        if index in special:
            content = _apart(piece) if keep_special else b" "
        else:
            content = _bytes_of(piece, marking)
            if keep_special and not content.strip() and content != b" ":  # a line break, or several blanks
                content = _apart(content.decode("ascii", "replace"))
        spans.append((len(text), len(text) + len(content)))
        text += content
    line = bytes(text)
    of_piece = words_at(line, spans)
    if not keep_special:
        for index in special:
            of_piece[index] = NO_WORD
    words = [word.decode("utf-8", "backslashreplace") for word in re.findall(rb"\S+", line)]
    return Words(tuple(words), tuple(of_piece))


def split_words(line: str) -> list[str]:
    """Return the words of a line as word alignments count them: what is between white space.

    Args:
        line: of a text.

    Returns:
        The words, without white space.

    Example:
        >>> split_words(" das  Haus ")
        ['das', 'Haus']
    """
    return re.findall(r"\S+", line)


def words_at(text: str | bytes, spans: Iterable[Span]) -> list[int]:
    """Return the number of the word that each stretch of a text is in.

    That is the word of its first character other than white space. White space alone goes with the word that
    follows, or at the end with the last one.

    Args:
        text: words are what is between white space.
        spans: where each stretch begins and has ended, in characters (or bytes) of the text.

    Returns:
        Numbers from 0; :data:`NO_WORD` in a text without words.

    Example:
        >>> words_at("the lowest", [(0, 3), (3, 7), (7, 10)])
        [0, 1, 1]
    """
    if isinstance(text, bytes):
        ends = [match.end() for match in re.finditer(rb"\S+", text)]
    else:
        ends = [match.end() for match in re.finditer(r"\S+", text)]
    last = len(ends) - 1  # NO_WORD where there are none
    return [min(bisect_right(ends, start), last) for start, _ in spans]


def marking_of(pieces: Iterable[str]) -> Marking:
    """Return how a tokenizer marks words, by its vocabulary.

    Args:
        pieces: the whole vocabulary, or as many pieces as are known.

    Returns:
        The marking that most pieces have; ``""`` where none has any.

    Example:
        >>> marking_of(["the", "low", "##est"]), marking_of(["the", "lowest"])
        ('##', '')
    """
    counts: Counter[Marking] = Counter()
    has_space = False
    for piece in pieces:
        if piece.startswith("▁"):
            counts["▁"] += 1
        elif piece.startswith(("Ġ", "Ċ")):
            counts["Ġ"] += 1
        elif piece.startswith("##") and len(piece) > 2:
            counts["##"] += 1
        elif piece.endswith("@@") and len(piece) > 2:
            counts["@@"] += 1
        elif piece.endswith("</w>"):
            counts["</w>"] += 1
        has_space = has_space or piece == " "
    if counts:
        ((marking, _),) = counts.most_common(1)
        return marking
    return " " if has_space else ""


def readable(piece: str, marking: Marking) -> str:
    r"""Return a piece in the script of the reader, where a tokenizer writes letters that stand for bytes.

    Args:
        piece: as the tokenizer writes it.
        marking: of the tokenizer, see :func:`marking_of`.

    Returns:
        The text of a byte-level piece, with the numbers of bytes that do not make a whole letter. Any other
        piece as it is.

    Example:
        >>> readable("Ġthe", "Ġ"), readable("Ð½", "Ġ"), readable("Ð", "Ġ"), readable("▁the", "▁")
        (' the', 'н', '\\xd0', '▁the')
    """
    if marking != "Ġ":
        return piece
    return _bytes_of(piece, marking).decode("utf-8", "backslashreplace")


def join_attention(
    weights: Float[Tensor, "*maps queries keys"], query_words: Words, key_words: Words
) -> Float[Tensor, "*maps query_words key_words"]:
    """Turn attention between pieces into attention between words.

    It is *summed* over the pieces of the word that is attended to, and the *mean* is taken over the pieces of
    the word that attends. So a row that sums to one over the pieces sums to one over the words, unless pieces
    of no word receive attention.

    Args:
        weights: from each piece to each piece; NaN where a place is left out.
        query_words: the words of the rows.
        key_words: the words of the columns.

    Returns:
        NaN where nothing is known of either word: all of its pieces are left out, or it has none.

    Raises:
        BadInput: weights of another number of pieces.

    Example:
        >>> rows, columns = Words(("a", "b"), (0, 1, 1)), Words(("c", "d"), (0, 0, 1))
        >>> weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
        >>> join_attention(weights, rows, columns).tolist()
        [[0.75, 0.25], [0.5, 0.5]]
    """
    expected = len(query_words.of_piece), len(key_words.of_piece)
    if tuple(weights.shape[-2:]) != expected:
        raise BadInput(
            f"attention of shape {tuple(weights.shape)} between {expected} pieces; expected as many"
        )
    of_query = _membership(query_words, weights)  # (queries, query_words)
    of_key = _membership(key_words, weights)  # (keys, key_words)
    known = ~weights.isnan()  # (*maps, queries, keys)
    summed = weights.masked_fill(~known, 0) @ of_key  # (*maps, queries, key_words)
    attends = known.any(-1, keepdim=True).to(weights.dtype)  # (*maps, queries, 1), 0 if it is left out
    total = of_query.T @ summed  # (*maps, query_words, key_words)
    n_pieces = of_query.T @ attends  # (*maps, query_words, 1)
    n_known = of_query.T @ known.to(weights.dtype) @ of_key  # (*maps, query_words, key_words)
    return (total / n_pieces.clamp(min=1)).masked_fill(n_known == 0, torch.nan)


def _membership(words: Words, like: Tensor) -> Float[Tensor, "pieces words"]:
    """Return 1 where a piece is of a word, else 0."""
    of_piece = torch.tensor(words.of_piece, dtype=torch.int64, device=like.device)
    numbers = torch.arange(len(words.words), device=like.device)
    return (of_piece[:, None] == numbers).to(like.dtype)


# -- the bytes that a piece stands for --


def _bytes_of(piece: str, marking: Marking) -> bytes:
    """Return the text that a piece stands for, with a blank where a word begins or has ended."""
    match marking:
        case "Ġ":
            return b"".join(_BYTE_OF_LETTER.get(letter) or _encoded(letter) for letter in piece)
        case "▁":
            byte = _BYTE.fullmatch(piece)
            return bytes.fromhex(byte[1]) if byte else _encoded(piece.replace("▁", " "))
        case " ":
            is_byte = len(piece) == 1 and ord(piece) < 256
            return bytes([ord(piece)]) if is_byte else _encoded(piece)
        case "##":
            text = piece.removeprefix("##") if piece.startswith("##") else f" {piece}"
        case "@@":
            text = piece.removesuffix("@@") if piece.endswith("@@") else f"{piece} "
        case "</w>":
            text = piece.removesuffix("</w>") + " " if piece.endswith("</w>") else piece
        case _:
            return _apart(piece)
    return _encoded(text)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _apart(piece: str) -> bytes:
    """Return a piece as a separate word, with signs for its white space."""
    signs = {space: chr(0x2400 + ord(space)) for space in "\t\n\v\f\r"} | {" ": "␣"}
    return _encoded(f" {piece.translate(str.maketrans(signs))} ")


def _letters_of_bytes() -> dict[str, bytes]:
    """Return the byte behind each letter of byte-level pieces (Radford et al. 2019, ``bytes_to_unicode``).

    Bytes that can be printed stand for themselves; the others, in their order, are the letters from U+0100.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): bytes([byte]) for byte in printable}
    letters |= {chr(0x100 + number): bytes([byte]) for number, byte in enumerate(others)}
    return letters


_BYTE_OF_LETTER = _letters_of_bytes()
