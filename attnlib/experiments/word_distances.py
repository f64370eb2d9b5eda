"""Recurrent steps between words that translate each other, counted on a task's known links."""

import numpy as np

from attnlib.errors import BadInput, DataUnavailable
from attnlib.probes.distances import link_distances
from attnlib.statistics.student import mean_interval
from companion.data import registry

ORDERS = ("forward", "reversed")


def count_distances(name: str) -> tuple[dict, list[dict]]:
    """Distances of linked words on the held-out samples with known links, both ways.

    Returns:
        values, in steps, means over sentences: ``{forward, reversed}.{mean, smallest, largest}``; ``cut`` (of
        the smallest, forward less reversed); ``sentences``, how many; and with intervals over sentences
        ``change`` (of the mean, reversed less forward) and ``offset``, by how many places a target word
        stands further on than its source word. Or ``cannot_be_run`` with the reason, where the data is not at
        hand. And rows ``task``, ``order``, ``distance``, ``share`` of the links.

    Raises:
        BadInput: the task has no known links.
    """
    try:
        task = registry.load(name)
    except DataUnavailable:
        return {"cannot_be_run": f"data: {name} is not at hand"}, []
    if not task.gold:
        raise BadInput(f"task {name!r} has no known links; distances cannot be counted")
    lengths = task.held_out.source_lengths.tolist()
    linked = [(links, lengths[i]) for i, links in enumerate(task.gold) if links]
    values: dict = {}
    means, shares = {}, []
    for order in ORDERS:
        rows = [link_distances(links, n, reverse=order == "reversed") for links, n in linked]
        means[order] = [np.mean(row) for row in rows]
        values[order] = {
            "mean": float(np.mean(means[order])),
            "smallest": float(np.mean([min(row) for row in rows])),
            "largest": float(np.mean([max(row) for row in rows])),
        }
        counts = np.bincount(np.concatenate(rows))
        shares += [
            {"task": name, "order": order, "distance": d, "share": float(n / counts.sum())}
            for d, n in enumerate(counts)
            if n
        ]
    offsets = [np.mean([target - source for target, source in links]) for links, _ in linked]
    return values | {
        "change": mean_interval(np.subtract(means["reversed"], means["forward"])).as_dict(),
        "cut": values["forward"]["smallest"] - values["reversed"]["smallest"],
        "offset": mean_interval(offsets).as_dict(),
        "sentences": len(linked),
    }, shares
