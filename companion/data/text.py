"""Read text files, plain, compressed or in archives, and count what is left out of them.

An error names the file and the line.
"""

import csv
import io
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnlib import text_files
from attnlib.errors import BadInput, CorruptFile


def read_text(path: str | Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The whole file as text, unpacked if it is packed, without a byte-order mark; UTF-16 with one is read as
    such.

    Raises:
        DataUnavailable, CorruptFile, BadInput: as :func:`attnlib.text_files.read_lines`.
    """
    content = text_files.read_bytes(path)
    if (encoding, errors) == ("utf-8", "strict"):
        return text_files.decode(content, path)
    return content.decode(encoding, errors).removeprefix("\ufeff")


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file; see :func:`attnlib.text_files.read_lines`."""
    return list(text_files.read_lines(path))


def read_parallel(source: str | Path, target: str | Path) -> tuple[list[str], list[str]]:
    """The lines of two files of which line i of one translates line i of the other, or of both sides of one
    file.

    Raises:
        BadInput: a file is missing, or they have different numbers of lines.
        DataUnavailable, CorruptFile, BadInput: as :func:`attnlib.text_files.read_pairs`.
    """
    if not (str(source) and str(target)):
        raise BadInput(f"two files are needed, source=PATH and target=PATH; got {source!r} and {target!r}")
    pairs = list(text_files.read_pairs(source, target))
    sources = [line for line, _ in pairs if line is not None]
    targets = [line for _, line in pairs if line is not None]
    if len(sources) != len(targets):
        longer, shorter = (source, target) if len(sources) > len(targets) else (target, source)
        line = min(len(sources), len(targets)) + 1
        raise BadInput(
            f"parallel files must have as many lines: {source} has {len(sources)}, "
            f"{target} has {len(targets)}; line {line} of {longer} has no counterpart in {shorter}"
        )
    return sources, targets


def own_checksums(**paths: str | Path) -> dict[str, str]:
    """Of a reader's own files, by role and name: where they lie on one machine is no part of a result."""
    return {f"{role}/{Path(path).name}": text_files.checksum(path) for role, path in paths.items()}


def archived_texts(path: Path, encoding: str) -> Iterator[tuple[str, str]]:
    """Path and text of every file in a tar archive, sorted by path; CorruptFile where it cannot be read."""
    try:
        with tarfile.open(path) as archive:
            # In the order of the archive, which is the fast one.
            contents = {
                member.name: archive.extractfile(member).read() for member in archive if member.isfile()
            }
        for name in sorted(contents):
            yield name, contents[name].decode(encoding)
    except (tarfile.TarError, EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} is no readable archive of texts ({error}); get it again") from error


def unzipped(path: Path, *members: str) -> list[str]:
    """The texts of these files in a zip archive; CorruptFile where they cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name).decode("utf-8-sig") for name in members]
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} holds no readable {members[0]} ({error}); get it again") from error


def csv_rows(text: str, path: str | Path) -> list[list[str]]:
    """The rows of comma-separated text (RFC 4180); CorruptFile, naming the line, where it has none."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        raise CorruptFile(f"{path}, line {reader.line_num}: {error}; get the file again") from error


@dataclass(frozen=True, order=True)
class Dropped:
    """One reason why something of the raw data is not in a corpus."""

    part: str  # "train", "validation", "pool" for what went before they were told apart, "whole test part"
    what: str  # "texts", "words" that became <unk> or were of HTML, "HTML breaks", …
    why: str
    count: int

    def __str__(self) -> str:
        what = self.what.removesuffix("s") if self.count == 1 else self.what
        return f"{self.part}: {self.count:,} {what} ({self.why})"


class Tally:
    """Counts while texts are read; :meth:`dropped` is the record of it."""

    def __init__(self):
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, part: str, what: str, why: str, count: int = 1) -> None:
        self._counts[part, what, why] += count

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self._counts.total()

    def dropped(self) -> tuple[Dropped, ...]:
        """The record, sorted; a reason that never came up has no line."""
        return tuple(sorted(Dropped(*reason, count) for reason, count in self._counts.items() if count))
