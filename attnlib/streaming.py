"""Sums over a corpus that is read batch by batch, or in parts that are merged to the whole."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, is_dataclass
from typing import Any, ClassVar, Self, cast

from torch import Tensor

from attnlib.errors import BadInput


class StreamingSums:
    """Base of sums that are updated with batches, merged over parts of a corpus, and saved.

    Attributes:
        SUMS: names of the attributes that are summed: numbers, tensors, counters, sets, dataclasses with
            ``+``, other streaming sums, and dictionaries of these by name.
        SAVED_AS: the key of a sum in a saved state, by its name, where the key is another.

    A subclass defines ``settings``, the arguments that make empty sums of its kind, and, if it sums a
    dictionary of streaming sums, ``empty_entry``.

    Example:
        >>> class Mean(StreamingSums):
        ...     SUMS = ("total", "count")
        ...
        ...     def __init__(self):
        ...         self.total, self.count = 0.0, 0
        ...
        ...     def update(self, numbers):
        ...         self.total += sum(numbers)
        ...         self.count += len(numbers)
        ...         return self
        >>> whole = Mean().update([1, 2]) + Mean().update([3])
        >>> whole.state_dict()
        {'total': 6.0, 'count': 3}
        >>> Mean().load_state_dict(whole.state_dict()).count
        3
    """

    SUMS: ClassVar[tuple[str, ...]] = ()
    SAVED_AS: ClassVar[dict[str, str]] = {}

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make empty sums of this kind; sums of others cannot be merged."""
        return {}

    def empty(self) -> Self:
        """Return empty sums that can be merged with these."""
        return type(self)(**self.settings())

    def empty_entry(self, table: str, state: dict) -> Any:
        """Return empty sums into which the state of an entry of a dictionary is loaded.

        Args:
            table: name of the attribute that is a dictionary.
            state: of the entry.

        Raises:
            TypeError: a subclass sums a dictionary without defining this method.
        """
        raise TypeError(f"{type(self).__name__} has {table} among its SUMS and no empty_entry for it")

    def merge(self, other: Self) -> Self:
        """Return new sums of both parts, which share no memory with their addends.

        Args:
            other: sums with the same settings.

        Raises:
            BadInput: the two have different settings.
        """
        self._require_same_settings(other)
        merged = self.empty()
        for name in self.SUMS:
            setattr(merged, name, _added(getattr(self, name), getattr(other, name)))
        return merged

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def state_dict(self) -> dict[str, Any]:
        """Return all sums, as tensors and as values that JSON can hold."""
        return {self._key(name): _state_of(getattr(self, name)) for name in self.SUMS}

    def load_state_dict(self, state: dict[str, Any]) -> Self:
        """Replace all sums by those that :meth:`state_dict` returned, and return these sums.

        Args:
            state: of sums with the same settings.
        """
        for name in self.SUMS:
            setattr(self, name, self._loaded(name, state[self._key(name)]))
        return self

    def _key(self, name: str) -> str:
        """Return the key of a sum in a saved state."""
        return self.SAVED_AS.get(name, name)

    def _loaded(self, name: str, state: Any) -> Any:
        value = getattr(self, name)
        if isinstance(value, Tensor):
            return state.clone()
        if isinstance(value, Counter):
            return Counter({key: count for key, count in state})
        if isinstance(value, dict):
            return {key: self.empty_entry(name, entry).load_state_dict(entry) for key, entry in state.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return type(value)(**state)
        if isinstance(value, StreamingSums):
            return value.empty().load_state_dict(state)
        constructor = cast("Callable[[Any], Any]", type(value))  # of a number, or of a set
        return constructor(state)

    def _require_same_settings(self, other: "StreamingSums") -> None:
        settings, others = self.settings(), other.settings()
        different = [name for name, value in settings.items() if others[name] != value]
        if different:
            name = different[0]
            raise BadInput(
                f"cannot merge sums of {name} {_as_text(settings[name])} with those of "
                f"{_as_text(others[name])}: make both with the same {' and '.join(different)}"
            )


def _added(first: Any, second: Any) -> Any:
    """Return a sum that shares no memory with its addends."""
    if isinstance(first, frozenset):
        return first | second
    if isinstance(first, dict) and not isinstance(first, Counter):
        return _added_entries(first, second)
    return first + second


def _added_entries(first: dict, second: dict) -> dict:
    total = deepcopy(first)
    for key, addend in second.items():
        if key in total:
            total[key] = _added(total[key], addend)
        else:
            total[key] = deepcopy(addend)
    return total


def _state_of(value: Any) -> Any:
    if isinstance(value, Tensor | int | float):
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Counter):
        return sorted(value.items())
    if isinstance(value, dict):
        return {key: _state_of(entry) for key, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return cast(Any, value).state_dict()  # of other streaming sums, or of components


def _as_text(value: object) -> str:
    """Return the sorted keys of a dictionary, or the value itself."""
    if isinstance(value, dict):
        return str(sorted(value))
    return str(value)
