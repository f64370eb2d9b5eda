"""What is known about a data set: where it comes from, what it must contain, and what may be done with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attnlib.errors import UnknownName


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Args:
        name: path inside the data set's folder; a copy compressed with gzip is called ``name + ".gz"``.
        sha256: of the content, after decompression where the copy is compressed and ``name`` is not; None
            where we never held the file and so cannot know it.
        url: canonical or pinned address of this very content, ``.gz`` or not; None where there is none (a
            file cut out of a larger archive, or an address that now serves a newer edition).
    """

    name: str
    sha256: str | None
    url: str | None = None

    @property
    def fetchable(self) -> bool:
        """Whether the file can be downloaded and verified."""
        return self.url is not None and self.sha256 is not None


@dataclass(frozen=True)
class Dataset:
    """A data set.

    Args:
        name: as in :func:`attnlib.datasets.registry.names`.
        title: for people.
        folder: folder of the files, in a local mirror and in the cache alike.
        files: the files we read or may come to read.
        home: the page to visit, or the canonical archive.
        licence: as its publisher states it.
        redistribution: whether its text may be passed on: "forbidden" text is never shown in the book.
        note: what a user should know before relying on these copies.
    """

    name: str
    title: str
    folder: str
    files: tuple[File, ...]
    home: str
    licence: str
    redistribution: Literal["allowed", "forbidden", "unclear"]
    note: str = ""

    def file(self, name: str) -> File:
        """The file called ``name``.

        Raises:
            UnknownName: the data set has no such file.
        """
        for file in self.files:
            if file.name == name:
                return file
        raise UnknownName(f"file of data set {self.name}", name, [file.name for file in self.files])


def files_at(
    base: str, checksums: Mapping[str, str | None], *, under: str = "", suffix: str = ""
) -> tuple[File, ...]:
    """Files ``under + name`` of a data set whose addresses are ``base + name + suffix``."""
    return tuple(
        File(f"{under}{name}", sha256, f"{base}{name}{suffix}") for name, sha256 in checksums.items()
    )


def files_by_hand(checksums: Mapping[str, str | None], *, under: str = "") -> tuple[File, ...]:
    """Files ``under + name`` that have no address of their own."""
    return tuple(File(f"{under}{name}", sha256) for name, sha256 in checksums.items())
