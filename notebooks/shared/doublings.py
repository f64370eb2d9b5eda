"""How many times as many updates a fixed order takes as copying, and between which numbers the truth lies."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from companion.results.frames import Table
from companion.runs.columns import Column
from notebooks.shared import copying
from notebooks.shared.intervals import interval_of

DOUBLINGS = {
    "doublings": Column("log2 of the updates to 95 % in the fixed order over those in copying", "doublings"),
    "least": Column("what it is at least, between snapshots", "doublings"),
    "most": Column("what it is at most; empty where the fixed order is never learned", "doublings"),
}
AT_LEAST = {"at_least": Column("whether the number is a lower bound: some network is never seen to learn")}


def before_learning(course: dict) -> int:
    """Return the last snapshot before the network has learned, the first or last of all if there is none."""
    learned, snapshots = copying.steps_to_learn(course), course["steps"]
    if learned is None:
        return snapshots[-1]
    return snapshots[max(snapshots.index(learned) - 1, 0)]


def doublings(
    networks: Table, by: str = "network", *, reached: str = "steps_to_learn", before: str = "before"
) -> Table:
    """Return log2 of the updates that the fixed order takes over those of copying, by pair of one seed.

    Networks that never get there count with all their updates; ``most`` is infinite then. A snapshot after 0
    updates counts as one after 1.

    Args:
        networks: a row for each, of one kind, with its ``order`` and ``steps``, all updates.
        by: column that names the kind.
        reached: column of the updates until then, empty where a network never gets there.
        before: column of the last snapshot before.
    """
    frame = networks.frame
    times = frame[[by, "seed"]].assign(
        learned=frame[reached].astype(float).fillna(np.inf).clip(lower=1),
        before=frame[before].astype(float).clip(lower=1),
        updates=frame["steps"].astype(float),
    )
    permuted, copy = (times[frame["order"] == order] for order in ("permuted", "copy"))
    pairs = permuted.merge(copy, on=[by, "seed"], suffixes=("_permuted", "_copy"))
    slow = pairs[["learned_permuted", "updates_permuted"]].min(axis=1)  # (pairs,)
    fast = pairs[["learned_copy", "updates_copy"]].min(axis=1)  # (pairs,)
    counted = pairs[[by, "seed"]].assign(
        doublings=np.log2(slow / fast),
        least=np.log2(pairs["before_permuted"] / fast),
        most=np.log2(pairs["learned_permuted"] / pairs["before_copy"]),
    )
    columns = {name: networks.columns[name] for name in (by, "seed")} | DOUBLINGS
    return Table(counted, columns, "a network of each order, with one seed")


def doublings_less(first: Table, second: Table, by: str = "network") -> Table:
    """Return the first minus the second doublings, of pairs of one seed, named as the second."""
    both = first.frame.merge(second.frame, on="seed", suffixes=("", "_second"))
    subtracted = {
        by: both[f"{by}_second"],
        "doublings": both["doublings"] - both["doublings_second"],
        "least": both["least"] - both["most_second"],
        "most": both["most"] - both["least_second"],
    }
    return first.with_rows(both.assign(**subtracted)[list(first.frame)])


def without_infinities(pairs: Table) -> Table:
    """Return the table with empty cells where a number is infinite."""
    return pairs.with_rows(pairs.frame.replace([math.inf, -math.inf], math.nan))


def between_snapshots(spans: Sequence[tuple[float, float, float]]) -> dict:
    """Return Student's interval over pairs, widened to what snapshots leave open.

    Networks that are always seen at one snapshot would have an interval of no length, which is resolution and
    not certainty. Where a network never gets there the interval has no upper end: the number is ``at_least``.
    A difference of doublings that are both without an upper end has no interval.

    Args:
        spans: of each pair the doublings at snapshots, and what they are at least and at most.
    """
    estimate: dict = interval_of(at_snapshots for at_snapshots, _, _ in spans)
    if not spans or math.isnan(estimate["low"]):
        return estimate
    least = fmean(least for _, least, _ in spans)
    most = fmean(most for _, _, most in spans)
    estimate["low"] = min(estimate["low"], least)
    if math.isinf(least):
        return estimate | {"low": None, "high": None}
    if math.isinf(most):
        return estimate | {"high": None, "at_least": True}
    return estimate | {"high": max(estimate["high"], most)}
