"""Tell whether two readings of a corpus saw the same batches, in one process or in several."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums

WAYS_OUT = (
    "let the DataLoader keep one order (shuffle=False), or give a list of its batches, list(loader), or a "
    "function that starts anew and returns the same batches"
)


class Readings(StreamingSums):
    """A digest of each batch of a corpus that a first reading saw, which later readings are compared with.

    Sums of the first pass keep them, so that they are saved with the sums: a pass that goes on in another
    process, a second pass and the other shards must see the same batches.

    Attributes:
        digests: of the batches read so far, in order.
        is_whole: whether they were read to their end.

    Example:
        >>> readings = Readings()
        >>> readings.compare(0, {"ids": [1, 2]})
        >>> readings.compare(0, {"ids": [2, 1]})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: batch 0 differs when the batches are read again, ...
    """

    def __init__(self) -> None:
        self.digests: list[int] = []
        self.is_whole = False

    def compare(self, number: int, batch: Any) -> None:
        """Compare a batch with the one of this number that was read before, or take its digest.

        Args:
            number: of the batch, from 0; batches are read in order.
            batch: of any form, see :func:`digest_of_batch`.

        Raises:
            BadInput: it is another batch, or one more than there were.
        """
        digest = int.from_bytes(digest_of_batch(batch)[:8], signed=True)
        if number == len(self.digests):
            if self.is_whole:
                raise BadInput(f"there are more than {number} batches when they are read again: {WAYS_OUT}")
            self.digests.append(digest)
        elif digest != self.digests[number]:
            raise BadInput(_different(number))

    def end(self, n_read: int) -> None:
        """Note that a reading has ended, where an earlier one ended.

        Args:
            n_read: number of its batches.

        Raises:
            BadInput: there were more before.
        """
        if n_read < len(self.digests):
            raise BadInput(
                f"the batches end after {n_read} when they are read again, and there were "
                f"{len(self.digests)}: {WAYS_OUT}"
            )
        self.is_whole = True

    def merge(self, other: "Readings") -> "Readings":
        """Return the digests of both; either may have read less than the other.

        Raises:
            BadInput: the two have read different batches.
        """
        for number, (digest, other_digest) in enumerate(zip(self.digests, other.digests, strict=False)):
            if digest != other_digest:
                raise BadInput(_different(number))
        shorter, longer = sorted((self, other), key=_n_digests)
        if shorter.is_whole:
            longer.end(len(shorter.digests))
        merged = Readings()
        merged.digests = list(longer.digests)
        merged.is_whole = longer.is_whole
        return merged

    def state_dict(self) -> dict[str, Any]:
        """Return the digests as a tensor, and whether they are all."""
        return {"digests": torch.tensor(self.digests, dtype=torch.int64), "is_whole": self.is_whole}

    def load_state_dict(self, state: dict[str, Any]) -> "Readings":
        """Take over what :meth:`state_dict` returned."""
        self.digests = state["digests"].tolist()
        self.is_whole = state["is_whole"]
        return self


def _n_digests(readings: Readings) -> int:
    return len(readings.digests)


def _different(number: int) -> str:
    return (
        f"batch {number} differs when the batches are read again, so that components would be fitted on what "
        f"is judged: {WAYS_OUT}"
    )


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
