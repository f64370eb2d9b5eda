"""Read the texts that a model is analysed on: two files, line by line, or two lists."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnlib.analysis.samples import MOST
from attnlib.errors import BadInput
from attnlib.text_files import Location, checksum, read_pairs
from attnlib.text_traces import undone

_LOOKED_AT = 1_000  # lines of a side, for what other tools left in them


@dataclass(frozen=True)
class ParallelText:
    r"""Two files, line by line translations of each other, which are read as needed; or the source alone.

    :mod:`attnlib.text_files` says which files are read, and how a side of a table, a translation memory or an
    archive is named.

    Attributes:
        source: path of the file.
        target: path of the file of translations; None for the source alone.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "source.txt"
        >>> _ = path.write_text("one\ntwo\n")
        >>> list(ParallelText(path).pairs())
        [('one', ''), ('two', '')]
    """

    source: Path | str
    target: Path | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", Path(self.source))
        if self.target is not None:
            object.__setattr__(self, "target", Path(self.target))

    @property
    def about(self) -> dict[str, str]:
        """Facts that a report states about the text: its files, and what other tools have left in it."""
        facts = {"Corpus": ", ".join(path.name for path in self._files().values())}
        if traces := self.traces():
            facts["Not plain text"] = "; ".join(traces)
        return facts

    def traces(self) -> list[str]:
        """Return what tools of machine translation left in the first lines, in words.

        Returns:
            A sentence for each trace and side; none for plain text.
        """
        first = list(islice(self.pairs(), _LOOKED_AT))
        sides = {"source": [source for source, _ in first], "target": [target for _, target in first]}
        described = []
        for side, lines in sides.items():
            _, counts = undone(lines)
            for what, count in counts.items():
                described.append(f"{count:,} of the first {len(lines):,} {side} lines have {what}")
        return described

    def checked(self) -> tuple[int, dict[str, str]]:
        """Read both files once, and check that they belong together.

        Returns:
            The number of lines, and the SHA-256 of each file by side.

        Raises:
            BadInput: the files differ in length, or are empty.
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
        """Yield the lines, without their ends.

        Yields:
            Source and target; the target is empty if there is the source alone.

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
            _require_file(side, Location.of(path).path)
        return files


def _require_file(side: str, path: Path) -> None:
    """Refuse what cannot be read twice, as every text is.

    Raises:
        BadInput: the path is a folder, a pipe or a link that leads nowhere, or does not exist.
    """
    if path.is_file():
        return
    if path.is_dir():
        raise BadInput(f"{side} {path} is a folder; give a file in it")
    if path.exists() or str(path) == "-":
        raise BadInput(
            f"{side} {path} is not a file, and a text is read more than once: save it to one first (packed "
            "files are read as they are)"
        )
    if path.is_symlink():
        raise BadInput(f"{side} {path} is a link to {path.readlink()}, which does not exist")
    raise BadInput(f"{side} {path} does not exist")


@dataclass(frozen=True)
class Sentences:
    """Sentences and their translations in lists; or the sources alone.

    Attributes:
        source: sentences.
        target: their translations; None for the sources alone.

    Raises:
        BadInput: there is no sentence, one is not a text, or the lists differ in length.

    Example:
        >>> list(Sentences(["one", "two"], ["un", "deux"]).pairs())
        [('one', 'un'), ('two', 'deux')]
    """

    source: Sequence[str]
    target: Sequence[str] | None = None

    def __repr__(self) -> str:
        translations = "without translations" if self.target is None else "with translations"
        return f"Sentences({len(self.source):,} {translations})"

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
        """Facts that a report states about the text: its number of sentences."""
        return {"Corpus": f"{len(self.source):,} sentences given in a list"}

    def checked(self) -> tuple[int, dict[str, str]]:
        """Return the number of sentences, and the SHA-256 of each side.

        Returns:
            Both, the latter by side.
        """
        digests = {"source": _digest(self.source)}
        if self.target is not None:
            digests["target"] = _digest(self.target)
        return len(self.source), digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return the sentences with their translations.

        Returns:
            An iterator over source and target; the target is empty if there are the sources alone.
        """
        targets = self.target or [""] * len(self.source)
        return zip(self.source, targets, strict=True)


def own_sentences(
    sentence: str | Iterable[str] | None, translation: str | Iterable[str] | None = None
) -> Sentences | None:
    """Return the sentences that a reader wants to see besides those of a text.

    Args:
        sentence: one source, or several; None for none.
        translation: of each; None where the model writes them, or reads one text.

    Returns:
        The sentences; None where there are none.

    Raises:
        BadInput: a sentence or a translation is empty, there are more than a page shows, or there are
            translations of another number.

    Example:
        >>> list(own_sentences("one", "un").pairs())
        [('one', 'un')]
    """
    if sentence is None:
        if translation is not None:
            raise BadInput("translation belongs to a sentence: give sentence as well")
        return None
    sources = (sentence,) if isinstance(sentence, str) else tuple(sentence)
    targets = None
    if translation is not None:
        targets = (translation,) if isinstance(translation, str) else tuple(translation)
    if targets is not None and len(targets) != len(sources):
        raise BadInput(
            f"sentence and translation differ in number ({len(sources)} and {len(targets)}); give one "
            "translation for each sentence"
        )
    sentences = Sentences(sources, targets)
    if len(sources) > MOST:
        raise BadInput(f"{len(sources)} sentences are given; a page shows {MOST} of them at most")
    for text in (*sources, *(targets or ())):
        if not text.strip():
            raise BadInput("a sentence or a translation is empty; give some words")
    return sentences


def about_own(sentences: Sentences, *, one_text: bool = False) -> dict[str, str]:
    """Return what a report states about sentences of a reader's own.

    Args:
        sentences: that are shown besides those of the text.
        one_text: whether the model reads one text and writes none.

    Returns:
        The fact by its name.

    Example:
        >>> about_own(Sentences(["one"]))
        {'Own sentences': '1, shown first, neither fitted on nor judged; the model wrote the target'}
    """
    writer = ""
    if sentences.target is None and not one_text:
        writer = "; the model wrote the target"
    return {"Own sentences": f"{len(sentences.source)}, shown first, neither fitted on nor judged{writer}"}


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
    """Return a text, from two files or two lists of sentences.

    Args:
        source: a file, sentences, or a text, which is returned as it is.
        target: the translations, likewise; None for the source alone.

    Returns:
        A text that can be read again and again.

    Raises:
        BadInput: one side is a file and the other a list.

    Example:
        >>> text_of(["one"], ["un"])
        Sentences(1 with translations)
    """
    if isinstance(source, ParallelText | Sentences):
        return source
    if isinstance(source, str | Path) and (target is None or isinstance(target, str | Path)):
        return ParallelText(source, target)
    if isinstance(source, str | Path) or isinstance(target, str | Path):
        raise BadInput("one side is a file and the other is not; give two files, or two lists of sentences")
    return Sentences(tuple(source), None if target is None else tuple(target))
