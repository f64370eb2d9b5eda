"""Refuse batches that differ when they are read again."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from attnlib.analysis.stream import Stream
from attnlib.errors import BadInput

_WAYS_OUT = (
    "let the DataLoader keep one order (shuffle=False), or give a list of its batches, list(loader), or a "
    "function that starts anew and returns the same batches"
)


def in_one_order(stream: Stream) -> Stream:
    """Return a stream that refuses to go on where a reading of its batches differs from an earlier one.

    The passes of an analysis hold the last of each ``every`` batches out of the fit. In another order these
    are not the batches that the second pass judges. A digest of each batch tells whether a later reading
    saw the same.

    Args:
        stream: passes of a model; a list of batches is always the same, and is not looked at.

    Returns:
        A stream of the same passes.

    Raises:
        BadInput: the first batch differs when it is read twice; so do later ones, while the stream is read.

    Example:
        >>> from attnlib import zoo
        >>> stream = in_one_order(zoo.load("reordering").stream())
        >>> len(list(stream.numbered())) == len(list(stream.numbered()))
        True
    """
    if isinstance(stream.batches, Sequence):
        return stream
    checked = replace(stream, batches=_Readings(stream))
    checked.first()
    checked.first()
    return checked


@dataclass(eq=False)
class _Readings:
    """The batches of a stream, of which every reading must see what the first one saw.

    Attributes:
        stream: whose batches are read.
        seen: digests of its batches, as far as it was read.
        is_whole: whether it was read to its end.
    """

    stream: Stream
    seen: list[bytes] = field(default_factory=list)
    is_whole: bool = False

    def __call__(self) -> Iterator[Any]:
        n_read = 0
        for number, batch in self.stream.numbered():
            digest = digest_of_batch(batch)
            if number < len(self.seen) and digest != self.seen[number]:
                raise BadInput(
                    f"batch {number} differs when the batches are read again, so that components would be "
                    f"fitted on what is judged: {_WAYS_OUT}"
                )
            if number == len(self.seen):
                self._require_unfinished(number + 1)
                self.seen.append(digest)
            n_read = number + 1
            yield batch
        if n_read < len(self.seen):
            raise BadInput(
                f"the batches end after {n_read} when they are read again, and there were {len(self.seen)}: "
                f"{_WAYS_OUT}"
            )
        self.is_whole = True

    def _require_unfinished(self, n_read: int) -> None:
        if self.is_whole:
            raise BadInput(f"there are more than {n_read - 1} batches when they are read again: {_WAYS_OUT}")


def digest_of_batch(batch: Any) -> bytes:
    """Return the SHA-256 of the numbers and words of a batch, whatever it is made of.

    Args:
        batch: tensors, arrays, texts and numbers, in dataclasses, mappings and sequences. Anything else
            counts by its class alone.

    Returns:
        32 bytes.

    Example:
        >>> digest_of_batch({"ids": [1, 2]}) == digest_of_batch({"ids": [1, 2]})
        True
        >>> digest_of_batch({"ids": [1, 2]}) == digest_of_batch({"ids": [2, 1]})
        False
    """
    digest = hashlib.sha256()
    for part in _parts_of(batch):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def _parts_of(value: Any) -> Iterator[bytes]:
    """Yield the numbers and words that a value is made of, in order."""
    yield type(value).__name__.encode()
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.dtype.is_floating_point:
            value = value.double()  # NumPy has no bfloat16
        value = value.numpy()
    if isinstance(value, np.ndarray):
        yield str(value.shape).encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, str | bytes | int | float):
        yield repr(value).encode()
    elif isinstance(value, Mapping):
        for key in value:
            yield repr(key).encode()
            yield from _parts_of(value[key])
    elif isinstance(value, Sequence):
        for item in value:
            yield from _parts_of(item)
    elif is_dataclass(value):
        for attribute in fields(value):
            yield from _parts_of(getattr(value, attribute.name))
