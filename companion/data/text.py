"""Read text files, plain, compressed or in archives, and count what is left out of them.

An error names the file and the line.
"""

import csv
import gzip
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import BadInput, CorruptFile, DataUnavailable


def read_text(path: str | Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The whole file as text, decompressed if it is gzip by its first bytes, without a byte-order mark."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise DataUnavailable(f"cannot read {path}: it is no file; check the path")
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFile(f"{path} is not a complete gzip file ({error}); get it again") from error
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror}; check the path") from error
    try:
        return content.decode(encoding, errors).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; "
            "convert the file, say with `iconv -f latin1 -t utf-8`"
        ) from error


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file without their ends; errors as in :func:`read_text`.

    Only a newline ends a line: ``str.splitlines`` also splits at the odd U+2028 inside a sentence, and the
    lines of two parallel files would no longer correspond.
    """
    lines = read_text(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_parallel(source: str | Path, target: str | Path) -> tuple[list[str], list[str]]:
    """The lines of two files of which line i of one translates line i of the other."""
    if not (str(source) and str(target)):
        raise BadInput(f"two files are needed, source=PATH and target=PATH; got {source!r} and {target!r}")
    sources, targets = read_lines(source), read_lines(target)
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
    found = {}
    for role, path in ((role, Path(path)) for role, path in paths.items()):
        try:
            found[f"{role}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise DataUnavailable(f"cannot read {path}: {error.strerror}; check the path") from error
    return found


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

    def dropped(self) -> tuple[Dropped, ...]:
        """The record, sorted; a reason that never came up has no line."""
        return tuple(sorted(Dropped(*reason, count) for reason, count in self._counts.items() if count))
