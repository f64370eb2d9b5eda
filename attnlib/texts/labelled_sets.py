"""Labelled texts: the published sets by name, a reader's own by path.

The list is written out, other than that of the data sets: what a recipe trains on is in the hash of its code
only where it is imported.
"""

import hashlib
from pathlib import Path

from attnlib.errors import DataUnavailable, UnknownName
from attnlib.texts import (
    ag_news,
    amazon,
    imdb,
    known_polarity,
    own,
    sms_spam,
    sst,
    twenty_newsgroups,
    yelp,
)
from attnlib.texts.labelled import LabelledTask
from attnlib.texts.prepare import RawTexts, prepare
from attnlib.texts.source import Source
from attnlib.texts.words import Reading
from companion.data.sources import find

SOURCES: dict[str, Source] = {
    **imdb.SOURCES,
    **yelp.SOURCES,
    **ag_news.SOURCES,
    **twenty_newsgroups.SOURCES,
    **sst.SOURCES,
    **amazon.SOURCES,
    **sms_spam.SOURCES,
}
KNOWN_POLARITY = "known_polarity"


def names() -> tuple[str, ...]:
    """The published data sets, then the one made by rule."""
    return (*SOURCES, KNOWN_POLARITY)


def load_labelled(
    data: str | Path,
    *,
    reading: Reading = "cleaned",
    n_train: int | None = None,
    n_validation: int | None = None,
    split_seed: int = 0,
) -> LabelledTask:
    """A classification task.

    Args:
        data: one of :func:`names`, or the path of the reader's own table, ``.tsv`` or ``.csv``; see
            :mod:`attnlib.texts.own`.
        reading, n_train, n_validation, split_seed: see :func:`attnlib.texts.prepare.prepare`.

    Raises:
        UnknownName: there is no such name or reading, and it is no path of a table.
        DataUnavailable, CorruptFile: its files are not at hand, or not what they should be.
        BadInput: an own table that cannot be used, or too few texts.
    """
    raw = _read(str(data))
    return prepare(raw, reading=reading, n_train=n_train, n_validation=n_validation, split_seed=split_seed)


def checksums(data: str | Path) -> dict[str, str]:
    """sha256 of the content of each file that ``data`` reads; published files are not read for it.

    Raises:
        UnknownName, DataUnavailable: as in :func:`load_labelled`.
    """
    name = str(data)
    if name == KNOWN_POLARITY:
        return {}
    return SOURCES[name].checksums() if name in SOURCES else _own_checksum(name)


def at_hand(name: str) -> bool:
    """Whether all files of a set are on this machine, unchecked; a set made by rule has none.

    Raises:
        UnknownName: as in :func:`load_labelled`.
    """
    if name == KNOWN_POLARITY:
        return True
    if name not in SOURCES:
        return _own_path(name).is_file()
    source = SOURCES[name]
    return all(find(source.dataset, source.dataset.file(file)) for file in source.files)


def _read(name: str) -> RawTexts:
    if name == KNOWN_POLARITY:
        return known_polarity.read()
    return SOURCES[name].read() if name in SOURCES else own.read(name, _own_checksum(name))


def _own_checksum(name: str) -> dict[str, str]:
    path = _own_path(name)
    # By name, not by path: where a file lies on one machine is no part of a result.
    try:
        return {f"own/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()}
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror}; check the path") from error


def _own_path(name: str) -> Path:
    path = Path(name)
    if own.kind(path) is None:
        raise UnknownName("set of labelled texts", name, (*names(), "a path ending in .tsv or .csv"))
    return path
