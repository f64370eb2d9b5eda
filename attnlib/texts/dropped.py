"""What the preparation of texts left out, in counts: nothing goes missing in silence."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Dropped:
    """One reason why something of the raw data is not in a corpus.

    Attributes:
        part: ``"train"`` or ``"validation"``; ``"pool"`` for what went before the two were told apart, and
            ``"whole test part"`` where some of it is judged on.
        what: what is counted: ``"texts"``, ``"words"`` that became ``<unk>`` or were of HTML, ``"HTML
            breaks"``.
        why: the reason.
        count: how many, at least 1.
    """

    part: str
    what: str
    why: str
    count: int

    def __str__(self) -> str:
        what = self.what.removesuffix("s") if self.count == 1 else self.what
        return f"{self.part}: {self.count:,} {what} ({self.why})"


class Tally:
    """Counts while texts are read; :meth:`dropped` is the record of it.

    >>> tally = Tally()
    >>> tally.add("train", "texts", "no word in it")
    >>> tally.add("train", "texts", "no word in it", 2)
    >>> print(*tally.dropped())
    train: 3 texts (no word in it)
    """

    def __init__(self):
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, part: str, what: str, why: str, count: int = 1) -> None:
        """Count something that was left out."""
        self._counts[part, what, why] += count

    def dropped(self) -> tuple[Dropped, ...]:
        """The record, sorted; a reason that never came up has no line."""
        return tuple(sorted(Dropped(*reason, count) for reason, count in self._counts.items() if count))
