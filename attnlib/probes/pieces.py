"""From pieces of words to words: attention of subword models made comparable with links of words."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput


def word_of_piece(pieces: Sequence[str], mark: str = "\N{LOWER ONE EIGHTH BLOCK}") -> list[int]:
    """The word that each piece belongs to, counted from 0.

    Args:
        mark: the sign of the segmentation. ``▁`` (SentencePiece) opens a word; ``@@`` (subword-nmt) ends a
            piece that the next one continues; ``##`` (WordPiece) begins a piece that continues the one
            before; an empty mark makes every piece a word of its own.

    >>> word_of_piece(["▁align", "ment", "▁error"])
    [0, 0, 1]
    >>> word_of_piece(["align@@", "ment", "error"], "@@")
    [0, 0, 1]
    >>> word_of_piece(["align", "##ment", "error"], "##")
    [0, 0, 1]

    Raises:
        BadInput: a mark that is not among these.
    """
    if mark == "":
        return list(range(len(pieces)))
    if mark == "@@":
        opens = [not pieces[i - 1].endswith(mark) for i in range(1, len(pieces))]
    elif mark == "##":
        opens = [not piece.startswith(mark) for piece in pieces[1:]]
    elif mark == "\N{LOWER ONE EIGHTH BLOCK}":
        opens = [piece.startswith(mark) for piece in pieces[1:]]
    else:
        raise BadInput(f"no segmentation into pieces is known by the mark {mark!r}; there are ▁, @@ and ##")
    words = [0] * bool(pieces)
    for new in opens:
        words.append(words[-1] + new)
    return words


def over_words(
    attention: Float[Tensor, "target_pieces source_pieces"],
    target_words: Sequence[int],
    source_words: Sequence[int],
) -> Float[Tensor, "target_words source_words"]:
    """Attention of words: summed over the pieces of a source word, averaged over those of a target word.

    Rows stay distributions. With words for pieces the attention comes back as it was.

    Args:
        target_words, source_words: the word of each piece, as :func:`word_of_piece` gives them.

    Raises:
        BadInput: not one word a piece, or words that do not count up from 0 without a gap.
    """
    sides = []
    for side, words, pieces in zip(
        ("target", "source"), (target_words, source_words), attention.shape, strict=True
    ):
        if len(words) != pieces or sorted(set(words)) != list(range(len(set(words)))):
            raise BadInput(
                f"{len(words)} {side} words {list(words)[:8]} for {pieces} pieces; give each piece the "
                "number of its word, from 0 without a gap"
            )
        belongs = torch.zeros(len(set(words)), pieces, dtype=attention.dtype, device=attention.device)
        belongs[list(words), range(pieces)] = 1
        sides.append(belongs)
    target, source = sides
    return (target / target.sum(1, keepdim=True)) @ attention @ source.T
