"""How many of many verdicts are expected to be wrong, and which stand if their rate of error is held down."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEVEL = 0.05


@dataclass(frozen=True)
class Chance:
    """Of verdicts that rest on intervals, at most one in twenty is expected to be wrong.

    ``limit`` is the largest p at which a verdict survives a false discovery rate of as much.
    """

    verdicts: int
    surviving: int
    limit: float

    @property
    def wrong(self) -> float:
        return LEVEL * self.verdicts

    def survives(self, p: float | None) -> bool:
        return p is not None and p <= self.limit


def discovered(ps: Sequence[float], level: float = LEVEL) -> float:
    """The largest p that survives (Benjamini and Hochberg 1995): the k-th of n that is at most level · k/n.

    >>> discovered([0.01, 0.02, 0.9, 0.04])
    0.02
    """
    ranked = enumerate(sorted(ps), start=1)
    return max((p for rank, p in ranked if p <= level * rank / len(ps)), default=0.0)


def chance_of(judged: Iterable[tuple[float | None, bool]]) -> Chance:
    """Of the p of each judged claim (None where no interval decides), and whether it is decided."""
    known = [(p, decided) for p, decided in judged if p is not None]
    limit = discovered([p for p, _ in known]) if known else 0.0
    ours = [p for p, decided in known if decided]
    return Chance(len(ours), sum(p <= limit for p in ours), limit)
