"""Leftovers of tools of machine translation in a text, and how to take them back.

Texts that were prepared for training come cut into pieces (``lei@@ sur@@ ely``) or with characters written
as entities (``we &apos;re``). A word rule, or a tokenizer of plain text, takes both for words.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from html import unescape

_SPACE = "▁"


@dataclass(frozen=True)
class _Leftover:
    """Traces of a tool in every text that it made, and how to take them back.

    Attributes:
        name: in words, for the lines that have it.
        sign: matches somewhere in each line that has the leftover.
        undo: returns a line without the leftover.
        least: share of the lines that must have it; fewer may be meant as they are.
    """

    name: str
    sign: re.Pattern[str]
    undo: Callable[[str], str]
    _: KW_ONLY
    least: float = 0.01


_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,8}|#\d{1,6}|#[xX][0-9A-Fa-f]{1,5});")
_BPE = re.compile(r"(?<=\S)@@(?: +|$)")
_WORDPIECE = re.compile(r" +##(?=\w)")
_JOINER = re.compile(r" *￭ *")
_MOSES = re.compile(r"(?<=\S) @([^\w\s]{1,2})@ (?=\S)")
_TAG = re.compile(r"</?(?:[abiu]|br|em|font|p|span|strong|sub|sup)(?: [^<>]*)?/?>", re.IGNORECASE)
_BREAK = re.compile(r" *</?(?:br|p)(?: [^<>]*)?/?> *", re.IGNORECASE)
_FACTORED = r"[^\s|￨]+(?:[|￨][^\s|￨]+)+"  # house|NN; OpenNMT has a wider bar
_FACTORS = re.compile(rf"{_FACTORED}(?: {_FACTORED})*")
# Bytes 80 to BF of UTF-8 as Windows-1252 reads them.
_LATER = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_TWICE_ENCODED = re.compile(f"Ã{_LATER}|Â[\xa0-\xbf]|â€{_LATER}|(?:[ÐÑ]{_LATER}){{2,}}")


def _read_entities(line: str) -> str:
    return _ENTITY.sub(_read_entity, line)


def _read_entity(entity: re.Match[str]) -> str:
    return unescape(entity[0])


def _joined_spaces(line: str) -> str:
    return " ".join(line.replace(" ", "").replace(_SPACE, " ").split())


def _without_tags(line: str) -> str:
    return _TAG.sub("", _BREAK.sub(" ", line)).strip()


def _first_factors(line: str) -> str:
    return " ".join(re.split("[|￨]", token, maxsplit=1)[0] for token in line.split())


def _read_as_utf_8(line: str) -> str:
    """Return a line of UTF-8 that was read as Windows-1252; any other line as it is."""
    try:
        content = b"".join(map(_byte_of, line))
        return content.decode()
    except UnicodeError:
        return line


def _byte_of(letter: str) -> bytes:
    if ord(letter) < 0xA0:  # five bytes have no letter in Windows-1252
        return letter.encode("latin-1")
    return letter.encode("cp1252")


_LEFTOVERS = (
    _Leftover("letters that were encoded twice (Ã¤)", _TWICE_ENCODED, _read_as_utf_8),
    _Leftover("factors (house|NN)", _FACTORS, _first_factors, least=0.5),
    _Leftover("pieces of BPE (@@)", _BPE, partial(_BPE.sub, "")),
    _Leftover("pieces of WordPiece (##)", _WORDPIECE, partial(_WORDPIECE.sub, "")),
    _Leftover("pieces of SentencePiece (▁)", re.compile("(?:^| )▁"), _joined_spaces, least=0.5),
    _Leftover("joiners of OpenNMT (￭)", _JOINER, partial(_JOINER.sub, "")),
    _Leftover("hyphens of Moses (@-@)", _MOSES, partial(_MOSES.sub, r"\1")),
    _Leftover("tags such as <i>", _TAG, _without_tags),
    _Leftover("entities such as &apos;", _ENTITY, _read_entities, least=0.0),
)


def undone(lines: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Remove the leftovers of tools of machine translation from a text, and count the lines with them.

    Args:
        lines: of one side of a text.

    Returns:
        The lines without leftovers, and how many lines have each of them, by its name in words; one that was
        found in no line is left out.

    Example:
        >>> lines, counts = undone(["we &apos;re lei@@ sur@@ ely"])
        >>> lines
        ["we 're leisurely"]
        >>> counts
        {'pieces of BPE (@@)': 1, 'entities such as &apos;': 1}
    """
    result = list(lines)
    counts = {}
    for leftover in _LEFTOVERS:
        marked = [number for number, line in enumerate(result) if leftover.sign.search(line)]
        if marked and len(marked) >= leftover.least * len(result):
            counts[leftover.name] = len(marked)
            for number in marked:
                result[number] = leftover.undo(result[number])
    return result, counts
