"""Name the heads of a model: by attention and number, as a key of files, and as columns of tables."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from attnlib.trace import KINDS


class Head(NamedTuple):
    """A head of a model. It equals the pair of its two fields, which may be used in its place.

    Attributes:
        attention: name of its attention, such as "cross.0".
        number: of the head, from 0.

    Example:
        >>> head = Head("cross.0", 3)
        >>> head.key, head.columns
        ('cross.0/3', {'kind': 'cross', 'layer': 0, 'head': 3})
        >>> Head.of_key(head.key) == Head.of_row(head.columns) == head
        True
    """

    attention: str
    number: int

    @classmethod
    def of_key(cls, key: str) -> "Head":
        """Return the head that a key such as ``"cross.0/3"`` names."""
        attention, _, number = key.rpartition("/")
        return cls(attention, int(number))

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Head":
        """Return the head that a row of a table is about, by its columns ``kind``, ``layer`` and ``head``."""
        return cls(f"{row['kind']}.{row['layer']}", row["head"])

    @property
    def key(self) -> str:
        """Its name in files, such as ``"cross.0/3"``."""
        return f"{self.attention}/{self.number}"

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that name it in a table: ``kind``, ``layer`` and ``head``."""
        kind, layer = kind_and_layer(self.attention)
        return {"kind": kind, "layer": layer, "head": self.number}

    @property
    def rank(self) -> tuple[int, int, int]:
        """Its place in the order of kinds, layers and numbers, to sort heads by."""
        return *attention_rank(self.attention), self.number


def kind_and_layer(attention: str) -> tuple[str, int]:
    """Return the kind and the layer of an attention.

    Args:
        attention: its name.

    Example:
        >>> kind_and_layer("encoder_self.2")
        ('encoder_self', 2)
    """
    kind, layer = attention.split(".")
    return kind, int(layer)


def attention_rank(attention: str) -> tuple[int, int]:
    """Return the place of an attention in the order of kinds and layers, to sort attentions by.

    Args:
        attention: its name.

    Example:
        >>> sorted(["decoder_self.0", "cross.1", "cross.0"], key=attention_rank)
        ['cross.0', 'cross.1', 'decoder_self.0']
    """
    kind, layer = kind_and_layer(attention)
    return KINDS.index(kind), layer
