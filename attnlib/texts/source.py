"""A source of labelled texts: which files it needs, and how they are read."""

import csv
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import CorruptFile
from attnlib.texts.prepare import RawTexts
from companion.data.sources import Dataset, locate


@dataclass(frozen=True)
class Source:
    """A data set as :func:`attnlib.texts.labelled_sets.load_labelled` finds it, by its name.

    Attributes:
        dataset: where the files belong.
        files: the ones that ``read`` reads.
        read: the raw texts; raises DataUnavailable or CorruptFile where a file is not as it should be.
    """

    dataset: Dataset
    files: tuple[str, ...]
    read: Callable[[], RawTexts]

    def checksums(self) -> dict[str, str]:
        """sha256 of the content of each file, by "dataset/file"; nothing is read for it."""
        return checksums(self.dataset, self.files)


def checksums(dataset: Dataset, files: Sequence[str]) -> dict[str, str]:
    """sha256 of the content of each of these files, by "dataset/file"."""
    return {f"{dataset.name}/{name}": dataset.file(name).sha256 for name in files}


def archived_texts(dataset: Dataset, file: str, encoding: str) -> Iterator[tuple[str, str]]:
    """Path and text of every file in a tar archive, sorted by path.

    Raises:
        DataUnavailable, CorruptFile: see :func:`~companion.data.sources.locate`; also CorruptFile where the
            archive cannot be read.
    """
    path = locate(dataset, file)
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


def csv_rows(text: str, path: str | Path) -> list[list[str]]:
    """The rows of comma-separated text (RFC 4180), quoted line breaks inside fields included.

    Raises:
        CorruptFile: not well-formed; the message names the line.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        raise CorruptFile(f"{path}, line {reader.line_num}: {error}; get the file again") from error
