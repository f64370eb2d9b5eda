"""Refuse batches that differ when they are read again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attnlib.analysis.readings import Readings
from attnlib.analysis.stream import Stream


def in_one_order(stream: Stream) -> Stream:
    """Return a stream that refuses to go on where a reading of its batches differs from an earlier one.

    The passes of an analysis hold the last of each ``every`` batches out of the fit. In another order these
    are not the batches that the second pass judges. A digest of each batch tells whether a later reading
    saw the same. Readings of several processes are compared by what their sums keep, see
    :class:`~attnlib.analysis.readings.Readings`.

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
    checked = replace(stream, batches=_CheckedBatches(stream))
    checked.first()
    checked.first()
    return checked


@dataclass(eq=False)
class _CheckedBatches:
    """The batches of a stream, of which every reading must see what the first one saw.

    Attributes:
        stream: whose batches are read.
        readings: what was read of them so far.
    """

    stream: Stream
    readings: Readings = field(default_factory=Readings)

    def __call__(self) -> Iterator[Any]:
        n_read = 0
        for number, batch in self.stream.numbered():
            self.readings.compare(number, batch)
            n_read = number + 1
            yield batch
        self.readings.end(n_read)
