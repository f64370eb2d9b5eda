"""Published data sets: what ``sources.toml`` says of each, where its files are, and how to get them.

Two places are searched: the local mirror that the environment variable ``ATTNLIB_DATA`` names, then the cache
folder that ``attnlib data fetch`` fills (``ATTNLIB_CACHE``, else ``$XDG_CACHE_HOME/attnlib``, else
``~/.cache/attnlib``). Both are laid out alike: ``<data set's folder>/<file name>``, plain or with ``.gz``.
"""

import gzip
import hashlib
import os
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from attnlib.errors import BadInput, CorruptFile, DataUnavailable, check_known
from attnlib.files import atomic_path

_ALL_AT_HAND: ContextVar[bool] = ContextVar("all data sets are taken to be here", default=False)


@contextmanager
def all_at_hand() -> Iterator[None]:
    """Take every data set to be here meanwhile, so that plans that go by what there is name all they want."""
    token = _ALL_AT_HAND.set(True)
    try:
        yield
    finally:
        _ALL_AT_HAND.reset(token)


@dataclass(frozen=True)
class File:
    """One file of a data set: path in its folder, checksum of its content (None if never known), address."""

    name: str
    sha256: str | None
    url: str | None = None

    @property
    def fetchable(self) -> bool:
        """Whether the file can be downloaded and verified."""
        return self.url is not None and self.sha256 is not None

    def packed_as(self, name: str) -> bool:
        """Whether a copy called ``name`` is the file compressed, and not a file that is itself an archive."""
        return name.endswith(".gz") and not self.name.endswith(".gz")


@dataclass(frozen=True)
class Dataset:
    """An entry of ``sources.toml``, which explains the fields; files are sorted by name."""

    name: str
    title: str
    folder: str
    files: tuple[File, ...]
    home: str
    licence: str
    redistribution: Literal["allowed", "forbidden", "unclear"]
    note: str = ""

    def file(self, name: str) -> File:
        """The file called ``name``; raises UnknownName."""
        files = {file.name: file for file in self.files}
        check_known(f"file of data set {self.name}", name, files)
        return files[name]

    def checksums(self, names: Iterable[str]) -> dict[str, str | None]:
        """sha256 of the content of files, by "dataset/file"; nothing is read for it."""
        return {f"{self.name}/{name}": self.file(name).sha256 for name in names}

    def available(self, names: Iterable[str]) -> bool:
        """Whether files are on this machine, unchecked."""
        return _ALL_AT_HAND.get() or all(find(self, self.file(name)) for name in names)


@dataclass(frozen=True)
class FileStatus:
    """What :func:`check` found about one file; ``path`` is None when it is missing."""

    file: File
    state: Literal["ok", "missing", "corrupt", "no checksum known"]
    path: Path | None = None
    detail: str = ""


@cache
def _registry() -> dict[str, Dataset]:
    entries = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
    return {name: _entry(**{"name": name, "folder": name, **entries[name]}) for name in sorted(entries)}


def _entry(*, url: str = "", files: dict | None = None, by_hand: dict | None = None, **entry: str) -> Dataset:
    files = files or {}
    addresses = {name: url.format(name=name, base=Path(name).name) or None for name in files}
    known = (
        File(name, None if sha256 == "unknown" else sha256, addresses.get(name))
        for name, sha256 in sorted((files | (by_hand or {})).items())
    )
    return Dataset(files=tuple(known), **entry)


def names() -> tuple[str, ...]:
    return tuple(_registry())


def dataset(name: str) -> Dataset:
    """The data set ``name``; raises UnknownName."""
    check_known("data set", name, names())
    return _registry()[name]


def mirror_folder() -> Path | None:
    """The local mirror, absolute; None if ``ATTNLIB_DATA`` is not set; raises BadInput if it is no folder."""
    value = os.environ.get("ATTNLIB_DATA")
    folder = Path(value).expanduser().absolute() if value else None
    if folder and not folder.is_dir():
        raise BadInput(f"ATTNLIB_DATA={value} is not a folder; set it to the data sets' folder, or unset it")
    return folder


def cache_folder() -> Path:
    """The folder that downloads go to; it need not exist yet."""
    if folder := os.environ.get("ATTNLIB_CACHE"):
        return Path(folder).expanduser().absolute()
    # The XDG specification says to ignore a relative path here.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache") / "attnlib"


def find(data: Dataset, file: File) -> Path | None:
    """Path of a file, unchecked, in the mirror or else in the cache; None when in neither."""
    places = (root / data.folder for root in (mirror_folder(), cache_folder()) if root is not None)
    paths = (place / name for place in places for name in (file.name, file.name + ".gz"))
    return next(filter(Path.is_file, paths), None)


def locate(data: Dataset, filename: str) -> Path:
    """Path of a file, plain or with ``.gz`` added, after its checksum was found right.

    Raises:
        UnknownName: the data set has no such file.
        DataUnavailable: the file is nowhere; the message says how to get it.
        CorruptFile: its content has another checksum; the message names both.
    """
    status = _status(data, data.file(filename))
    if status.state in ("missing", "corrupt"):
        raise (DataUnavailable if status.path is None else CorruptFile)(status.detail)
    return status.path


def require(files: Iterable[str]) -> None:
    """Check files of data sets, by "dataset/file"; names of no data set are a reader's own, and passed over.

    Raises DataUnavailable, CorruptFile: as :func:`locate`, for the first that is not as it should be.
    """
    for name in files:
        owner, _, file = name.partition("/")
        if owner in names():
            locate(dataset(owner), file)


def checksum(name: str) -> str:
    """The sha256 of the content of a file that is here, by "dataset/file", where none is published."""
    owner, _, file = name.partition("/")
    path = locate(dataset(owner), file)
    stat = path.stat()
    return _sha256(path, dataset(owner).file(file).packed_as(path.name), stat.st_size, stat.st_mtime_ns)


def check(data: Dataset) -> list[FileStatus]:
    """The state of every file of a data set, nothing raised for a missing or corrupt one."""
    return [_status(data, file) for file in data.files]


def fetch(data: Dataset, *, progress: Callable[[str], Any] | None = None) -> list[FileStatus]:
    """Download what is missing or corrupt; the state of every file afterwards.

    ``progress`` makes a bar of the name of a file, such as :class:`companion.book.download_bar.DownloadBar`.

    A download replaces the old file only after its checksum was found right. Files without an address or a
    known checksum stay "missing". Raises DataUnavailable, CorruptFile, and BadInput: the cache folder cannot
    be written.
    """
    if not any(file.fetchable for file in data.files):
        raise DataUnavailable(
            f"{data.name} cannot be fetched file by file: {data.note} Visit {data.home} and put the files "
            f"into {cache_folder() / data.folder}, or set ATTNLIB_DATA to a folder that holds {data.folder}/"
        )
    for status in check(data):
        if status.state in ("missing", "corrupt") and status.file.fetchable:
            _download(data, status.file, progress)
    return check(data)


def _download(data: Dataset, file: File, progress: Callable[[str], Any] | None) -> None:
    import pooch  # here, because the machines that train do without it

    plain = cache_folder() / data.folder / file.name
    packed = plain.with_name(plain.name + ".gz")
    destination, other = (packed, plain) if file.packed_as(file.url) else (plain, packed)
    bar = False if progress is None else progress(file.name)
    with atomic_path(destination) as temporary:
        try:
            pooch.HTTPDownloader(progressbar=bar)(file.url, str(temporary), None)
        except OSError as error:  # as every error of the requests library is
            raise DataUnavailable(
                f"cannot download {file.url}: {_why_not_downloaded(error)}; try again, or set ATTNLIB_DATA "
                f"to a folder that holds {data.folder}/{file.name}"
            ) from error
        if fault := _fault(file, temporary, destination.name):
            raise CorruptFile(fault)
    other.unlink(missing_ok=True)  # an old corrupt copy in the other form would be found first


def _why_not_downloaded(error: OSError) -> str:
    """What went wrong, in a few words: without a network the library's own line is three long."""
    # By name: the requests library comes with pooch, and no machine that trains needs either.
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "Timeout" in kinds:
        return "the server does not answer"
    if "ConnectionError" in kinds:
        return "no connection to the server, or one that broke"
    return str(error)


def _status(data: Dataset, file: File) -> FileStatus:
    if (path := find(data, file)) is None:
        return FileStatus(file, "missing", detail=_how_to_get(data, file))
    if file.sha256 is None:
        return FileStatus(file, "no checksum known", path)
    fault = _fault(file, path, path.name)
    return FileStatus(file, "corrupt" if fault else "ok", path, fault)


def _fault(file: File, path: Path, name: str) -> str:
    """What is wrong with the content of ``path``, a copy of the file called ``name``; empty if nothing."""
    stat, packed = path.stat(), file.packed_as(name)
    try:
        checksum = _sha256(path, packed, stat.st_size, stat.st_mtime_ns)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return f"{path} is no complete gzip file ({error}); delete it and get it again"
    if checksum == file.sha256:
        return ""
    return (
        f"{path} is not the file it should be: expected sha256 {file.sha256} of its "
        f"{'decompressed ' if packed else ''}content, found {checksum}; delete it and get it again"
    )


# Size and time of change are arguments so that a file that changes is read again.
@lru_cache(maxsize=1024)
def _sha256(path: Path, packed: bool, size: int, changed: int) -> str:
    with gzip.open(path) if packed else path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _how_to_get(data: Dataset, file: File) -> str:
    mirror = mirror_folder()
    place = "ATTNLIB_DATA is not set" if mirror is None else f"not in the mirror {mirror}"
    by_hand = f"it cannot be fetched by itself, see {file.url or data.home}"
    wanted = f"{data.folder}/{file.name}"
    return (
        f"{wanted} is not available here ({place}, not in the cache {cache_folder()}): "
        f"{f'run `attnlib data fetch {data.name}`' if file.fetchable else by_hand}, "
        f"or set ATTNLIB_DATA to a folder that holds {wanted} or {wanted}.gz"
    )
