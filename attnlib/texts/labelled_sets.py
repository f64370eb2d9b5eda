"""Labelled texts by name.

The list is written out, other than that of the data sets: what a recipe trains on is in the hash of its code
only where it is imported.
"""

import hashlib
from pathlib import Path

from attnlib.errors import BadInput, DataUnavailable, UnknownName
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

SOURCES: dict[str, Source] = {
    **imdb.SOURCES,
    **yelp.SOURCES,
    **ag_news.SOURCES,
    **twenty_newsgroups.SOURCES,
    **sst.SOURCES,
    **amazon.SOURCES,
    **sms_spam.SOURCES,
}
KNOWN_POLARITY, OWN = "known_polarity", "own"


def names() -> tuple[str, ...]:
    """The published data sets, then the one made by rule, then ``own``, which needs a path."""
    return (*SOURCES, KNOWN_POLARITY, OWN)


def load_labelled(
    name: str,
    *,
    path: str | Path = "",
    reading: Reading = "cleaned",
    n_train: int | None = None,
    n_validation: int | None = None,
    split_seed: int = 0,
) -> LabelledTask:
    """A classification task.

    Args:
        name: one of :func:`names`.
        path: of the reader's own table, for ``own`` alone; see :mod:`attnlib.texts.own`.
        reading, n_train, n_validation, split_seed: see :func:`attnlib.texts.prepare.prepare`.

    Raises:
        UnknownName: there is no such name or reading.
        DataUnavailable, CorruptFile: its files are not at hand, or not what they should be.
        BadInput: a path is missing or not wanted, an own table that cannot be used, or too few texts.
    """
    raw = _read(name, path)
    return prepare(raw, reading=reading, n_train=n_train, n_validation=n_validation, split_seed=split_seed)


def checksums(name: str, path: str | Path = "") -> dict[str, str]:
    """sha256 of the content of each file that ``name`` reads; published files are not read for it.

    Raises:
        UnknownName, DataUnavailable, BadInput: as in :func:`load_labelled`.
    """
    _check(name, path)
    if name == KNOWN_POLARITY:
        return {}
    return SOURCES[name].checksums() if name in SOURCES else _own_checksum(Path(path))


def _read(name: str, path: str | Path) -> RawTexts:
    _check(name, path)
    if name == KNOWN_POLARITY:
        return known_polarity.read()
    return SOURCES[name].read() if name in SOURCES else own.read(path, _own_checksum(Path(path)))


def _check(name: str, path: str | Path) -> None:
    if name not in names():
        raise UnknownName("set of labelled texts", name, names())
    if bool(str(path)) != (name == OWN):
        raise BadInput(
            f"data {name!r} with path {str(path)!r}; a path goes with data {OWN!r}, which needs one"
        )


def _own_checksum(path: Path) -> dict[str, str]:
    # By name, not by path: where a file lies on one machine is no part of a result.
    try:
        return {f"own/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()}
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror}; check the path") from error
