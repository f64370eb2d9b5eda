"""Tables of the chapter on Transformers: a row a head, and means over heads with intervals over seeds."""

from collections.abc import Callable, Iterable

import numpy as np

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.measures.task_patterns import STATES
from attnlib.experiments.measures.transformer_heads import NUMBERS, VARIANCE

NAMES = ("task", "positions", "seed")
SHARES = tuple(name for name in NUMBERS if name.endswith("_share"))


def head_table(points: list[Point], least_spread: float) -> list[dict]:
    """A row a head of every network and state, layers and heads counted from 1.

    Shares of a head whose scores vary less than ``least_spread`` are None, and ``varies`` is 0.
    """
    rows = []
    for name, measured in points:
        for state in STATES:
            for head in measured[state]["heads"]:
                varies = head["spread"] is not None and head["spread"] >= least_spread
                shares = {share: head[share] if varies else None for share in SHARES}
                counted = {place: head[place] + 1 for place in ("layer", "head")}
                rows.append(
                    _named(name) | {"state": state} | head | counted | shares | {"varies": int(varies)}
                )
    return rows


def layer_rows(heads: list[dict]) -> list[dict]:
    """A row a task, positions, kind of attention, layer, state and number: means over heads."""
    rows = []
    for group, own in _groups(heads, ("task", "positions", "kind", "layer", "state")):
        for number in NUMBERS:
            by_seed = [({}, {number: mean(members, number)}) for _, members in _groups(own, ("seed",))]
            interval = over_seeds(by_seed, lambda m, n=number: m[n])
            rows.append(group | {"layer": f"layer_{group['layer']}", "number": number} | interval)
    return rows


def network_rows(points: list[Point]) -> list[dict]:
    """What the networks can do, a row a task, positions and number."""
    of: dict[str, Callable[[dict], float]] = {
        "token_accuracy": lambda m: m["token_accuracy"][-1],
        "exact_match": lambda m: m["exact_match"],
        "parameters": lambda m: m["parameters"],
    }
    return [
        group | {"number": number} | over_seeds([(one["named"], one["measured"]) for one in own], value)
        for group, own in _groups(_flat(points), ("task", "positions"))
        for number, value in of.items()
    ]


def state_table(points: list[Point]) -> list[dict]:
    """Shares of the variance of states, a row a task, positions, site, state and share."""
    rows = [
        _named(name) | {"state": state} | row
        for name, measured in points
        for state in STATES
        for row in measured[state]["states"]
    ]
    return [
        group | {"number": share} | over_seeds([({}, row) for row in own], lambda row, s=share: row[s])
        for group, own in _groups(rows, ("task", "positions", "site", "state"))
        for share in VARIANCE
    ]


def term_table(points: list[Point]) -> list[dict]:
    """Covariance shares of the nine terms of the trained cross-attention, means over heads."""
    rows = [_named(name) | row for name, measured in points for row in measured["terms"]]
    found = []
    for group, own in _groups(rows, ("task", "positions", "layer", "term")):
        by_seed = [({}, mean(members, "share")) for _, members in _groups(own, ("seed",))]
        found.append(group | {"layer": group["layer"] + 1} | over_seeds(by_seed, lambda share: share))
    return found


def repeated_rows(points: list[Point]) -> list[dict]:
    """A row a network and reading, see :mod:`attnlib.experiments.measures.repeated_words`."""
    return [
        {"positions": name["positions"], "seed": name["seed"], "read": read} | numbers
        for name, measured in points
        for read, numbers in measured.items()
    ]


def mean(rows: Iterable[dict], number: str) -> float | None:
    """Over the rows that have this number; None where none has."""
    found = [row[number] for row in rows if row[number] is not None]
    return float(np.mean(found)) if found else None


def _groups(rows: list[dict], names: tuple[str, ...]) -> list[tuple[dict, list[dict]]]:
    """Rows with the same values of these columns, in the order of their first appearance."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return [(dict(zip(names, key, strict=True)), own) for key, own in found.items()]


def _flat(points: list[Point]) -> list[dict]:
    return [_named(name) | {"named": name, "measured": measured} for name, measured in points]


def _named(name: dict[str, object]) -> dict[str, object]:
    return {column: name[column] for column in NAMES}
