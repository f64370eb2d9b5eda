"""From heads of single networks to the numbers that the predictions on Transformers are judged by."""

import math
from collections.abc import Callable

import numpy as np

from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.measures.repeated_words import READ
from attnlib.experiments.transformer_head_rows import mean
from attnlib.statistics.bootstrap import hierarchical_bootstrap
from attnlib.statistics.spearman import spearman_of_points

BOOTSTRAP_SEED = 20_211_015  # any fixed number: the interval is then a function of the points
AGAINST = {  # name of a correlation with typicality → number of a head
    "temporal": "temporal_share",
    "input": "input_share",
    "mixed": "mixed_share",
    "residual": "residual_share",
    "temporal_rebuilds": "temporal_rebuilds",
    "input_rebuilds": "input_rebuilds",
}


def cross_heads(heads: list[dict], state: str = "trained") -> list[dict]:
    """The rows of cross-attention of networks in this state."""
    return [row for row in heads if row["kind"] == "cross" and row["state"] == state]


def correlations(heads: list[dict]) -> dict[str, dict]:
    """Rank correlations over heads of cross-attention: typicality with each number of :data:`AGAINST`.

    A head without shares counts nowhere, so that all are of the same heads.
    """
    rows = cross_heads(heads)
    return {name: _correlation(rows, number) for name, number in AGAINST.items()}


def _correlation(rows: list[dict], number: str) -> dict:
    """All heads of a network are drawn together: a network is a matrix (heads, 2), NaN where undefined."""
    groups: dict[tuple, dict[int, list]] = {}
    for row in rows:
        point = (row["typicality"], row[number])
        pair = (math.nan, math.nan) if None in point or not row["varies"] else point
        groups.setdefault((row["task"], row["positions"]), {}).setdefault(row["seed"], []).append(pair)
    networks = {str(name): list(own.values()) for name, own in groups.items()}
    defined = sum(not math.isnan(pair[0]) for own in networks.values() for net in own for pair in net)
    counted = {"heads": defined, "left_out": len(rows) - defined}
    if defined < 3:
        return {"value": None, "low": None, "high": None, "n": defined} | counted
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    found = hierarchical_bootstrap(networks, generator, statistic=_spearman_of_networks).as_dict()
    return {key: None if math.isnan(value) else value for key, value in found.items()} | counted


def _spearman_of_networks(networks: np.ndarray) -> float:
    points = networks.reshape(-1, 2)
    points = points[~np.isnan(points).any(1)]
    return spearman_of_points(points) if len(points) > 1 else math.nan


def last_less_first(heads: list[dict], number: str = "residual_share") -> dict:
    """Of the last layer less the first, mean over heads; then over a seed's networks; then over seeds."""
    rows = cross_heads(heads)
    ends = {
        place: pick((row["layer"] for row in rows), default=0)
        for place, pick in (("first", min), ("last", max))
    }

    def of_network(own: list[dict]) -> float | None:
        means = [mean([r for r in own if r["layer"] == ends[place]], number) for place in ("last", "first")]
        return _less(*means)

    def of_seed(own: list[dict]) -> float | None:
        networks = _split(own, lambda row: (row["task"], row["positions"]))
        found = [value for value in map(of_network, networks.values()) if value is not None]
        return float(np.mean(found)) if found else None

    return _over(rows, of_seed)


def one_to_one_less_reordering(heads: list[dict], number: str = "temporal_share") -> dict[str, dict]:
    """One task less the other, by kind of positions, of means over heads; and seed by seed the least."""
    rows = cross_heads(heads)
    kinds = list(dict.fromkeys(row["positions"] for row in rows))

    def differences(own: list[dict]) -> list[float | None]:
        return [
            _less(
                *(
                    mean(_where(own, task=task, positions=kind), number)
                    for task in ("one_to_one", "reordering")
                )
            )
            for kind in kinds
        ]

    def smallest(own: list[dict]) -> float | None:
        found = differences(own)
        return None if None in found or not found else min(found)

    by_kind = {kind: _over(rows, lambda own, i=i: differences(own)[i]) for i, kind in enumerate(kinds)}
    return by_kind | {"smallest": _over(rows, smallest)}


def sinusoidal_less(heads: list[dict], number: str = "temporal_share") -> dict[str, dict]:
    """In one-to-one translation, mean over heads and layers with sinusoidal positions less with others."""
    rows = _where(cross_heads(heads), task="one_to_one")
    kinds = [kind for kind in dict.fromkeys(row["positions"] for row in rows) if kind != "sinusoidal"]

    def of_seed(own: list[dict], kind: str) -> float | None:
        return _less(*(mean(_where(own, positions=one), number) for one in ("sinusoidal", kind)))

    return {kind: _over(rows, lambda own, k=kind: of_seed(own, k)) for kind in kinds}


def anchored_less_free(heads: list[dict], anchored: str, number: str = "temporal_share") -> dict[str, dict]:
    """With a word that always opens less without, word for word both: by kind of positions that has both."""
    rows = cross_heads(heads)

    def of_seed(own: list[dict], kind: str) -> float | None:
        tasks = (anchored, "one_to_one")
        return _less(*(mean(_where(own, task=task, positions=kind), number) for task in tasks))

    kinds = dict.fromkeys(row["positions"] for row in _where(rows, task=anchored))
    return {kind: _over(rows, lambda own, k=kind: of_seed(own, k)) for kind in kinds}


def repeated_values(rows: list[dict]) -> dict:
    """By kind of positions: at words read that the source has once, again, and their difference."""
    values: dict = {}
    for kind, own in _split(rows, lambda row: row["positions"]).items():

        def of_seed(members: list[dict], number: str, read: str) -> float | None:
            return mean(_where(members, read=read), number)

        def less(members: list[dict], number: str) -> float | None:
            return _less(*(of_seed(members, number, read) for read in READ))

        values[kind] = {
            read: {n: _over(own, lambda m, n=n, r=read: of_seed(m, n, r)) for n in ("attention", "accuracy")}
            for read in READ
        } | {"once_less_again": {n: _over(own, lambda m, n=n: less(m, n)) for n in ("attention", "accuracy")}}
    return values


def nested(rows: list[dict], names: tuple[str, ...]) -> dict:
    """Rows of intervals, each of one ``number``, as ``{…: {…: {number: interval}}}``."""
    found: dict = {}
    for row in rows:
        place = found
        for name in names:
            place = place.setdefault(str(row[name]), {})
        place[row["number"]] = {key: row[key] for key in ("value", "low", "high", "n")}
    return found


def _over(rows: list[dict], of_seed: Callable[[list[dict]], float | None]) -> dict:
    return over_seeds([({}, own) for own in _split(rows, lambda row: row["seed"]).values()], of_seed)


def _split(rows: list[dict], by: Callable[[dict], object]) -> dict[object, list[dict]]:
    found: dict[object, list[dict]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _where(rows: list[dict], **columns: str) -> list[dict]:
    return [row for row in rows if all(row[name] == value for name, value in columns.items())]


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second
