"""Traces that tools of machine translation leave in a text, and how to take them back.

Texts that were prepared for training come cut into pieces (``lei@@ sur@@ ely``) or with characters written
as entities (``we &apos;re``). A word rule, or a tokenizer of plain text, takes both for words.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import unescape

_SPACE = "▁"


@dataclass(frozen=True)
class _Trace:
    """A trace that a tool leaves in every text that it made, and how to take it back.

    Attributes:
        what: the trace, in words, as many lines have it.
        sign: matches somewhere in each line that has the trace.
        undo: returns a line without the trace.
        least: share of the lines that must have it; fewer may be meant as they are.
    """

    what: str
    sign: re.Pattern[str]
    undo: Callable[[str], str]
    least: float = 0.01


_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,8}|#\d{1,6}|#[xX][0-9A-Fa-f]{1,5});")
_BPE = re.compile(r"(?<=\S)@@(?: +|$)")
_WORDPIECE = re.compile(r" +##(?=\w)")
_JOINER = re.compile(r" *￭ *")
_MOSES = re.compile(r"(?<=\S) @([^\w\s]{1,2})@ (?=\S)")


def _read_entities(line: str) -> str:
    return _ENTITY.sub(_read_entity, line)


def _read_entity(entity: re.Match[str]) -> str:
    return unescape(entity[0])


def _joined_spaces(line: str) -> str:
    return " ".join(line.replace(" ", "").replace(_SPACE, " ").split())


_TRACES = (
    _Trace("pieces of BPE (@@)", _BPE, partial(_BPE.sub, "")),
    _Trace("pieces of WordPiece (##)", _WORDPIECE, partial(_WORDPIECE.sub, "")),
    _Trace("pieces of SentencePiece (▁)", re.compile("(?:^| )▁"), _joined_spaces, least=0.5),
    _Trace("joiners of OpenNMT (￭)", _JOINER, partial(_JOINER.sub, "")),
    _Trace("hyphens of Moses (@-@)", _MOSES, partial(_MOSES.sub, r"\1")),
    _Trace("entities such as &apos;", _ENTITY, _read_entities, least=0.0),
)


def undone(lines: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Remove the traces of tools of machine translation from a text, and count the lines with them.

    Args:
        lines: of one side of a text.

    Returns:
        The lines without the traces, and how many lines have each trace, by its name in words; a trace that
        was found in none is left out.

    Example:
        >>> lines, counts = undone(["we &apos;re lei@@ sur@@ ely"])
        >>> lines
        ["we 're leisurely"]
        >>> counts
        {'pieces of BPE (@@)': 1, 'entities such as &apos;': 1}
    """
    result = list(lines)
    counts = {}
    for trace in _TRACES:
        marked = [place for place, line in enumerate(result) if trace.sign.search(line)]
        if marked and len(marked) >= trace.least * len(result):
            counts[trace.what] = len(marked)
            for place in marked:
                result[place] = trace.undo(result[place])
    return result, counts
