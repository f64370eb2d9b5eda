"""Gold links of sentence pairs, and the files that they come in.

Three forms are read, and recognised by their content:

* **Pharaoh**, a line for each pair: ``0-0 1-2 3p4``, source-target, ``-`` sure and ``p`` possible. A line
  without links says that nothing is known of its pair, which is then not judged.
* **NAACL 2003** (Mihalcea & Pedersen 2003), a line for each link: sentence, source word, target word, and
  ``S`` for sure or ``P`` for possible; sure by default. Sentences are counted from 1. Where words are as
  well, a word 0 stands for no word, and its links are left out.
* **JSON**, a line for each pair with ``alignment``, a list of ``[source, target]``, and perhaps ``possible``
  likewise, and the words ``src_words`` and ``tgt_words``, which have to be those of the text.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput
from attnlib.probes.alignment_error import Link
from attnlib.text_files import decode, read_bytes

_PHARAOH = re.compile(r"(\d+)([-p])(\d+)")
_NAACL = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SPsp]))?(?:\s+[\d.]+)?")
MOST_OUTSIDE = 0.01  # of the links of a file, at most, that may lead outside their sentences


@dataclass(frozen=True)
class Gold:
    """Gold links of one sentence pair, (source word, target word) from 0.

    Attributes:
        sure: links that have to be made.
        possible: links that may be made; the sure ones are among them whether they are given here or not.

    Example:
        >>> Gold([(0, 0)], [(0, 1)]).possible == {(0, 0), (0, 1)}
        True
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def flipped(self) -> "Gold":
        """Return the links of the other direction.

        Returns:
            Links with source and target exchanged.
        """
        return Gold(_flipped(self.sure), _flipped(self.possible))

    def within(self, n_source: int, n_target: int) -> "Gold":
        """Return the links that lie inside a sentence pair.

        Args:
            n_source: number of source words.
            n_target: number of target words.

        Returns:
            The links, without those of a word that the pair does not have.
        """
        inside = frozenset(
            (source, target) for source, target in self.possible if source < n_source and target < n_target
        )
        return Gold(self.sure & inside, inside)


def _flipped(links: Iterable[Link]) -> frozenset[Link]:
    return frozenset((target, source) for source, target in links)


GoldOfText = tuple[Gold | None, ...]  # of each line; None where nothing is known


@dataclass(frozen=True)
class GoldFile:
    """The gold links of a text, line by line.

    Attributes:
        links: of each line; None where nothing is known.
        words: of each line those of the source and of the target, where the file has them.

    Example:
        >>> GoldFile((Gold([(0, 0)]), None)).links[1] is None
        True
    """

    links: GoldOfText
    words: tuple[tuple[list[str], list[str]] | None, ...] = ()

    def __repr__(self) -> str:
        n_linked = sum(links is not None for links in self.links)
        return f"GoldFile({len(self.links):,} lines, {n_linked:,} of them with links)"


def read_gold(gold: str | Path | Iterable[str | Gold | None], *, first: int | None = None) -> GoldFile:
    """Read gold links.

    Args:
        gold: a file of any of the three forms; or for each sentence pair a line of it, a :class:`Gold`, or
            None.
        first: the number that words are counted from, 0 or 1. By default JSON and Pharaoh count from 0, and
            NAACL from 1 unless a link 0 0 is in the file.

    Returns:
        The links, counted from 0.

    Raises:
        BadInput: a file that is not there or of no such form; a Pharaoh or JSON file that may count from 1,
            as it has no 0, or a NAACL file whose 0 may be a word or none, where ``first`` does not say; a
            number below ``first``.

    Example:
        >>> (links,) = read_gold(["0-0 1p2"]).links
        >>> sorted(links.sure), sorted(links.possible)
        ([(0, 0)], [(0, 0), (1, 2)])
    """
    if first not in (None, 0, 1):
        raise BadInput(f"words are counted from {first}; expected 0 or 1")
    if isinstance(gold, str | Path):
        lines: list[str] = _lines_of(Path(gold))
        return _parsed(lines, str(gold), first=first)
    entries = list(gold)
    if all(isinstance(entry, str) for entry in entries):
        return _parsed([str(entry) for entry in entries], "gold", first=first)
    for number, entry in enumerate(entries):
        if not isinstance(entry, Gold | None):
            raise BadInput(
                f"gold {number} is {type(entry).__name__}; expected attnlib.alignment.Gold or None for each "
                "sentence pair, or lines such as '0-0 1p2' for all of them"
            )
    return GoldFile(tuple(entry for entry in entries if not isinstance(entry, str)))


def _lines_of(path: Path) -> list[str]:
    if not path.is_file():
        raise BadInput(f"gold {path} is not there")
    text = decode(read_bytes(path), path)
    if "\n" not in text:
        text = text.replace("\r", "\n")  # line ends of old Macs
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def _parsed(lines: Sequence[str], name: str, *, first: int | None) -> GoldFile:
    shown = next((line for line in lines if line.strip()), "")
    if shown.startswith("{"):
        return _of_json(lines, name, first=first)
    if _NAACL.fullmatch(shown.strip()):
        return GoldFile(_of_naacl(lines, name, first=first))
    return GoldFile(_of_pharaoh(lines, name, first=first))


def _of_pharaoh(lines: Sequence[str], name: str, *, first: int | None) -> GoldOfText:
    rows: list[list[tuple[int, str, int]]] = []
    for number, line in enumerate(lines, start=1):
        row = []
        for word in line.split():
            match = _PHARAOH.fullmatch(word)
            if match is None:
                raise BadInput(
                    f"{name}, line {number}: {word!r} is not a link; expected source-target such as 0-0, or "
                    "0p1 for a possible one"
                )
            row.append((int(match[1]), match[2], int(match[3])))
        rows.append(row)
    if first is None:
        _require_zero([(source, target) for row in rows for source, _, target in row], name)
        first = 0
    gold: list[Gold | None] = []
    for number, row in enumerate(rows, start=1):
        sure, possible = set(), set()
        for source, kind, target in row:
            link = _from_zero(source, target, first=first, location=f"{name}, line {number}")
            (sure if kind == "-" else possible).add(link)
        gold.append(Gold(frozenset(sure), frozenset(possible)) if row else None)
    return tuple(gold)


_HOW_TO_SAY = "(--gold-first on the command line, gold_first= in Python)"


def _require_zero(links: Sequence[Link], name: str) -> None:
    """Refuse a file whose words may be counted from 1: its links would all be wrong by one, unnoticed."""
    numbers = {number for link in links for number in link}
    if numbers and 0 not in numbers:
        raise BadInput(
            f"{name} has no link of a word 0: say whether words are counted from 0 or from 1 {_HOW_TO_SAY}"
        )


def _of_naacl(lines: Sequence[str], name: str, *, first: int | None) -> GoldOfText:
    rows: list[tuple[int, int, int, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _NAACL.fullmatch(line.strip())
        if match is None:
            raise BadInput(
                f"{name}, line {number}: {line!r} is not a link; expected sentence, source word, target "
                "word, and S or P"
            )
        rows.append((int(match[1]), int(match[2]), int(match[3]), (match[4] or "S").upper()))
    if first is None:
        first = _first_of_naacl([(source, target) for _, source, target, _ in rows], name)
    n_sentences = max(sentence for sentence, *_ in rows)
    sure: list[set[Link]] = [set() for _ in range(n_sentences)]
    possible: list[set[Link]] = [set() for _ in range(n_sentences)]
    for sentence, source, target, kind in rows:
        if sentence < 1:
            raise BadInput(f"{name} has a sentence {sentence}; expected numbers from 1")
        if 0 in (source, target) and first == 1:  # a word that is linked to none
            continue
        link = _from_zero(source, target, first=first, location=f"{name}, sentence {sentence}")
        (sure if kind == "S" else possible)[sentence - 1].add(link)
    gold: list[Gold | None] = []
    for sure_links, possible_links in zip(sure, possible, strict=True):
        is_known = bool(sure_links or possible_links)
        gold.append(Gold(frozenset(sure_links), frozenset(possible_links)) if is_known else None)
    return tuple(gold)


def _first_of_naacl(links: Sequence[Link], name: str) -> int:
    """Return the number of the first word, which is 0 where the first words of both sides are linked.

    Raises:
        BadInput: a 0 is on one side of a link only: it is the first word, or no word at all.
    """
    if (0, 0) in links:
        return 0
    if any(0 in link for link in links):
        raise BadInput(
            f"{name} has links of a word 0, which is the first word or, in NAACL 2003, none: say whether "
            f"words are counted from 0 or from 1 {_HOW_TO_SAY}"
        )
    return 1


def _of_json(lines: Sequence[str], name: str, *, first: int | None) -> GoldFile:
    if first is None:
        first = 0
        _require_zero([link for line in lines for link in _numbers_of_json(line)], name)
    gold: list[Gold | None] = []
    words = []
    for number, line in enumerate(lines, start=1):
        location = f"{name}, line {number}"
        try:
            row = json.loads(line)
            sure = _links_of_json(row["alignment"], location, first=first)
            possible = _links_of_json(row.get("possible", ()), location, first=first)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(
                f'{location} is not of the form {{"alignment": [[0, 0], [1, 2]]}}: {error}'
            ) from error
        gold.append(Gold(sure, possible) if sure or possible else None)
        has_words = "src_words" in row and "tgt_words" in row
        words.append((row["src_words"], row["tgt_words"]) if has_words else None)
    return GoldFile(tuple(gold), tuple(words))


def _numbers_of_json(line: str) -> list[Link]:
    """Return the links of a line as they are written; none where it is not of the form."""
    try:
        row = json.loads(line)
        links = [(source, target) for source, target in [*row["alignment"], *row.get("possible", ())]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [link for link in links if all(type(number) is int for number in link)]


def _links_of_json(links: Any, location: str, *, first: int) -> frozenset[Link]:
    from_zero = set()
    for source, target in links:
        if type(source) is not int or type(target) is not int:
            raise TypeError(f"[{source!r}, {target!r}] is not a pair of whole numbers")
        from_zero.add(_from_zero(source, target, first=first, location=location))
    return frozenset(from_zero)


def _from_zero(source: int, target: int, *, first: int, location: str) -> Link:
    if min(source, target) < first:
        raise BadInput(f"{location}: link {source}-{target}, though words are counted from {first}")
    return source - first, target - first


def gold_of_text(
    file: GoldFile, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]
) -> tuple[GoldOfText, int]:
    """Return the gold links between the words of a text, and how many lead outside and are left out.

    Args:
        file: the gold links of the text, line by line.
        source: the words of each line.
        target: the words of each line of the translation.

    Returns:
        The links inside the sentences, line by line, and the number of links left out.

    Raises:
        BadInput: more or fewer lines than the text has; other words; more than one link in a hundred that
            leads outside its sentence.

    Example:
        >>> links, n_outside = gold_of_text(read_gold(["0-0 1-1"]), [["das", "Haus"]], [["house"]])
        >>> sorted(links[0].sure), n_outside
        ([(0, 0)], 1)
    """
    links = file.links
    if len(links) < len(source):  # of NAACL, whose last sentences may have no link
        raise BadInput(
            f"gold links of {len(links):,} lines for a text of {len(source):,}; expected a line for each "
            "sentence pair, empty where nothing is known"
        )
    if len(links) > len(source):
        raise BadInput(f"gold links of {len(links):,} lines for a text of {len(source):,}; expected as many")
    for number, words in enumerate(file.words):
        if words is not None:
            _require_words(number, words, (source[number], target[number]))
    inside: list[Gold | None] = []
    n_links = n_outside = 0
    for gold, source_words, target_words in zip(links, source, target, strict=True):
        if gold is None:
            inside.append(None)
            continue
        kept = gold.within(len(source_words), len(target_words))
        n_links += len(gold.possible)
        n_outside += len(gold.possible) - len(kept.possible)
        inside.append(kept)
    if not n_links:
        raise BadInput("there are no gold links; expected lines such as 0-0 1-2")
    if n_outside > MOST_OUTSIDE * n_links and n_outside > 1:
        raise BadInput(
            f"{n_outside:,} of {n_links:,} gold links lead outside their sentences: are they of this text, "
            "split at spaces as it is here, source-target, and counted from 0?"
        )
    return tuple(inside), n_outside


def _require_words(number: int, words: tuple[list[str], list[str]], text: tuple) -> None:
    for side, of_gold, of_text in zip(("source", "target"), words, text, strict=True):
        if len(of_gold) != len(of_text):
            raise BadInput(
                f"line {number + 1}: the {side} has {len(of_text)} words, and its gold links are of "
                f"{len(of_gold)}: give the text as it was aligned, {' '.join(map(str, of_gold))[:80]!r}"
            )
