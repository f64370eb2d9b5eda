"""Texts to analyse a model on: two files, line by line translations of each other, or two lists."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnlib.errors import BadInput
from attnlib.text_files import Location, checksum, read_pairs
from attnlib.text_traces import undone

_LOOKED_AT = 1_000  # lines of a side, for what other tools left in them


@dataclass(frozen=True)
class ParallelText:
    """Two files, line by line translations of each other, read as they are needed; or the source alone.

    :mod:`attnlib.text_files` says which files are read, and how a side of a table, a translation memory or an
    archive is named.
    """

    source: Path | str
    target: Path | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", Path(self.source))
        if self.target is not None:
            object.__setattr__(self, "target", Path(self.target))

    @property
    def about(self) -> dict[str, str]:
        """What a report says of the text: the names of its files, and what other tools have left in it."""
        facts = {"Corpus": ", ".join(path.name for path in self._files().values())}
        if traces := self.traces():
            facts["Not plain text"] = "; ".join(traces)
        return facts

    def traces(self) -> list[str]:
        """Return what tools of machine translation left in the first lines, in words; none for plain text."""
        first = list(islice(self.pairs(), _LOOKED_AT))
        sides = {"source": [source for source, _ in first], "target": [target for _, target in first]}
        described = []
        for side, lines in sides.items():
            _, counts = undone(lines)
            for what, count in counts.items():
                described.append(f"{count:,} of the first {len(lines):,} {side} lines have {what}")
        return described

    def checked(self) -> tuple[int, dict[str, str]]:
        """Return the number of lines, and the checksum of each side.

        Raises:
            BadInput: the files are no translations of each other: their lengths differ, or they are empty.
            CorruptFile: a packed file is cut off or broken.
        """
        files = self._files()
        n_source = n_target = 0
        for source, target in read_pairs(*files.values()):
            n_source += source is not None
            n_target += target is not None
        if self.target is not None and n_source != n_target:
            raise BadInput(
                f"{self.source} has {n_source:,} lines, {self.target} {n_target:,}: line n of one "
                "must be the translation of line n of the other"
            )
        if not n_source:
            names = " and ".join(str(path) for path in files.values())
            verb = "is" if self.target is None else "are"
            raise BadInput(f"{names} {verb} empty")
        digests = {side: checksum(path) for side, path in files.items()}
        if digests["source"] == digests.get("target"):  # two sides of one file differ in their names
            digests = {side: f"{digest} {side} {files[side].name}" for side, digest in digests.items()}
        return n_source, digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the lines, without their ends; the target of a source alone is empty.

        Raises:
            BadInput: a line is in another encoding, or is missing on one side.
            CorruptFile: a packed file is cut off or broken.
        """
        files = self._files()
        for number, lines in enumerate(read_pairs(*files.values()), start=1):
            for path, line in zip(files.values(), lines, strict=False):
                if line is None:
                    raise BadInput(f"{path} ends before line {number:,}, which the other file has")
            source, target = lines
            yield source or "", target or ""

    def _files(self) -> dict[str, Path]:
        """Return the file of each side that there is.

        Raises:
            BadInput: one does not exist.
        """
        files = {"source": Path(self.source)}
        if self.target is not None:
            files["target"] = Path(self.target)
        for side, path in files.items():
            if not Location.of(path).path.is_file():
                raise BadInput(f"{side} {path} is not there")
        return files


@dataclass(frozen=True)
class Sentences:
    """Sentences and their translations in lists; or the sources alone.

    Raises:
        BadInput: no sentence, what is no text, or lists of different lengths.

    >>> list(Sentences(["one", "two"], ["un", "deux"]).pairs())
    [('one', 'un'), ('two', 'deux')]
    """

    source: Sequence[str]
    target: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _sentences("source", self.source))
        if self.target is not None:
            object.__setattr__(self, "target", _sentences("target", self.target))
        if not self.source:
            raise BadInput("source is empty: give at least one sentence")
        if self.target is not None and len(self.target) != len(self.source):
            raise BadInput(
                f"{len(self.source):,} sources with {len(self.target):,} targets; expected one of each"
            )

    @property
    def about(self) -> dict[str, str]:
        """What a report says of the text: how many sentences it has."""
        return {"Corpus": f"{len(self.source):,} sentences given in a list"}

    def checked(self) -> tuple[int, dict[str, str]]:
        """Return the number of sentences, and the checksum of each side."""
        digests = {"source": _digest(self.source)}
        if self.target is not None:
            digests["target"] = _digest(self.target)
        return len(self.source), digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return the sentences with their translations; the target of a source alone is empty."""
        targets = self.target or [""] * len(self.source)
        return zip(self.source, targets, strict=True)


def _sentences(side: str, sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the sentences of a side, each of which is a text.

    Raises:
        BadInput: one is something else.
    """
    sentences = tuple(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise BadInput(f"{side} {number} is {type(sentence).__name__}; expected a sentence, a str")
    return sentences


def _digest(sentences: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(sentences).encode()).hexdigest()


Text = ParallelText | Sentences


def text_of(
    source: Text | str | Path | Iterable[str], target: str | Path | Iterable[str] | None = None
) -> Text:
    """Return a text, whatever it is given as: two files, or two lists of sentences.

    Raises:
        BadInput: a file on one side and a list on the other; a file that is not there.
    """
    if isinstance(source, ParallelText | Sentences):
        return source
    if isinstance(source, str | Path) and (target is None or isinstance(target, str | Path)):
        return ParallelText(source, target)
    if isinstance(source, str | Path) or isinstance(target, str | Path):
        raise BadInput("one side is a file and the other is not; give two files, or two lists of sentences")
    return Sentences(tuple(source), None if target is None else tuple(target))
