"""Where two contents of plain JSON differ, number by number."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

ABSENT = "nothing"


@dataclass(frozen=True)
class Difference:
    """One place at which two contents differ, say ``heads[2].share``, with both values."""

    path: str
    before: object
    now: object

    def __str__(self) -> str:
        return f"{self.path} was {self.before} and is {self.now}"


def differences(before: object, now: object, path: str = "") -> Iterator[Difference]:
    """Yield every place at which two contents differ, in order.

    >>> [str(each) for each in differences({"a": [1, 2.5]}, {"a": [1, 2.25], "b": 3})]
    ['a[1] was 2.5 and is 2.25', 'b was nothing and is 3']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            below = f"{path}.{name}" if path else str(name)
            yield from differences(before.get(name, ABSENT), now.get(name, ABSENT), below)
    elif isinstance(before, list) and isinstance(now, list):
        for place in range(max(len(before), len(now))):
            old = before[place] if place < len(before) else ABSENT
            new = now[place] if place < len(now) else ABSENT
            yield from differences(old, new, f"{path}[{place}]")
    elif not equal(before, now):
        yield Difference(path, before, now)


def equal(before: object, now: object) -> bool:
    """Return True for equal values; a NaN equals a NaN, and True is not 1."""
    if isinstance(before, bool) != isinstance(now, bool):
        return False
    both_nan = before != before and now != now
    return before == now or both_nan


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def difference_of_tensors(before: Tensor, now: Tensor, name: str) -> Difference | None:
    """Return the first place at which two tensors differ; None if they are equal.

    >>> import torch
    >>> print(difference_of_tensors(torch.tensor([[1, 2]]), torch.tensor([[1, 3]]), "weight"))
    weight[0, 1] was 2 and is 3
    """
    if before.shape != now.shape:
        return Difference(f"{name}.shape", list(before.shape), list(now.shape))
    both_nan = before.isnan() & now.isnan()
    places = ((before != now) & ~both_nan).nonzero()
    if not len(places):
        return None
    place = tuple(places[0].tolist())
    return Difference(f"{name}[{', '.join(map(str, place))}]", before[place].item(), now[place].item())
