"""Find the files of a data set on this machine, and check that they are what they should be.

Two places are searched: the local mirror that the environment variable ``ATTNLIB_DATA`` names, then the cache
folder that ``attnlib data fetch`` fills (``ATTNLIB_CACHE``, else ``$XDG_CACHE_HOME/attnlib``, else
``~/.cache/attnlib``). Both are laid out alike: ``<data set's folder>/<file name>``, plain or with ``.gz``.
"""

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from attnlib.datasets.base import Dataset, File
from attnlib.errors import BadInput, CorruptFile, DataUnavailable

_BLOCK = 1 << 20


@dataclass(frozen=True)
class FileStatus:
    """What :func:`check` found about one file; ``path`` is None when it is missing."""

    file: File
    state: Literal["ok", "missing", "corrupt", "no checksum known"]
    path: Path | None = None
    detail: str = ""


def mirror_folder() -> Path | None:
    """The local mirror, absolute; None when ``ATTNLIB_DATA`` is not set.

    Raises:
        BadInput: ``ATTNLIB_DATA`` does not name a folder.
    """
    value = os.environ.get("ATTNLIB_DATA")
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"ATTNLIB_DATA={value} is not a folder; set it to the data sets' folder, or unset it")
    return folder


def cache_folder() -> Path:
    """The folder that downloads go to; it need not exist yet."""
    if own := os.environ.get("ATTNLIB_CACHE"):
        return Path(own).expanduser().absolute()
    # The XDG specification says to ignore a relative path here.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache") / "attnlib"


def locate(dataset: Dataset, filename: str) -> Path:
    """Path of a file, plain or with ``.gz`` added, after its checksum was found right.

    Raises:
        UnknownName: the data set has no such file.
        DataUnavailable: the file is nowhere; the message says how to get it.
        CorruptFile: its content has another checksum; the message names both.
    """
    file = dataset.file(filename)
    path = find(dataset, file)
    if path is None:
        raise DataUnavailable(_how_to_get(dataset, file))
    if file.sha256 is not None:
        verify(file, path, compressed=is_added_gzip(file, path.name))
    return path


def find(dataset: Dataset, file: File) -> Path | None:
    """Path of a file, unchecked, in the mirror or else in the cache; None when in neither."""
    for root in (mirror_folder(), cache_folder()):
        if root is not None:
            plain = root / dataset.folder / file.name
            for path in (plain, plain.with_name(plain.name + ".gz")):
                if path.is_file():
                    return path
    return None


def verify(file: File, path: Path, *, compressed: bool) -> None:
    """Check the content of ``path``, decompressed first if ``compressed``, against the checksum of ``file``.

    Raises:
        CorruptFile: they differ, or ``path`` is a broken gzip file.
    """
    stat = path.stat()
    found = _sha256(path, compressed, stat.st_size, stat.st_mtime_ns)
    if found != file.sha256:
        raise CorruptFile(
            f"{path} is not the file it should be: expected sha256 {file.sha256} of its "
            f"{'decompressed ' if compressed else ''}content, found {found}; delete it and get it again"
        )


def is_added_gzip(file: File, name: str) -> bool:
    """Whether a copy called ``name`` is the file compressed, and not a file that is an archive by itself."""
    return name.endswith(".gz") and not file.name.endswith(".gz")


def check(dataset: Dataset) -> list[FileStatus]:
    """The state of every file of a data set, nothing raised for a missing or corrupt one."""
    return [_status(dataset, file) for file in dataset.files]


def _status(dataset: Dataset, file: File) -> FileStatus:
    path = find(dataset, file)
    if path is None:
        return FileStatus(file, "missing", detail=_how_to_get(dataset, file))
    if file.sha256 is None:
        return FileStatus(file, "no checksum known", path)
    try:
        verify(file, path, compressed=is_added_gzip(file, path.name))
    except CorruptFile as error:
        return FileStatus(file, "corrupt", path, str(error))
    return FileStatus(file, "ok", path)


def _how_to_get(dataset: Dataset, file: File) -> str:
    mirror = mirror_folder()
    place = "ATTNLIB_DATA is not set" if mirror is None else f"not in the mirror {mirror}"
    if file.fetchable:
        first = f"run `attnlib data fetch {dataset.name}`"
    else:
        first = f"it cannot be fetched by itself, see {file.url or dataset.home}"
    wanted = f"{dataset.folder}/{file.name}"
    return (
        f"{wanted} is not at hand ({place}, not in the cache {cache_folder()}): {first}, "
        f"or set ATTNLIB_DATA to a folder that holds {wanted} or {wanted}.gz"
    )


# Size and time of change are arguments so that a file that changes is read again.
@lru_cache(maxsize=1024)
def _sha256(path: Path, compressed: bool, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    try:
        with gzip.open(path) if compressed else path.open("rb") as content:
            while block := content.read(_BLOCK):
                digest.update(block)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFile(f"{path} is no complete gzip file ({error}); delete it and get it again") from error
    return digest.hexdigest()
