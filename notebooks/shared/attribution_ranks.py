"""How well attributions of parts predict effects: rank correlations and hits over networks, or over heads.

A *point* is one part of one unit, replaced on one side or both: a row with its attributions and, in columns
``<way>_<outcome>``, its effects. Units are networks, or the heads of one.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from jaxtyping import Float

from attnlib.analysis.interventions import ATTRIBUTIONS, WAYS
from attnlib.analysis.part_shares import FACTOR_SIDES
from attnlib.decomposition.components import STATE_PARTS
from companion.results.frames import Table
from companion.runs.columns import Column, Columns, share
from notebooks.shared.intervals import TAILS, Interval, drawn_rows, interval
from notebooks.shared.summaries import Bootstrap

EVERY = "every"  # the three parts, each a point of its own
SETS = (*STATE_PARTS, EVERY)
# What two attributions are compared by: how much better the first one predicts.
DIFFERENCES = {
    "split_minus_own": ("split", "own"),
    "any_term_minus_split": ("any_term", "split"),
    "mean_absolute_minus_split": ("mean_absolute", "split"),
    "split_minus_substitution": ("split", "substitution"),
    "own_minus_substitution": ("own", "substitution"),
}
RESAMPLES = 2000
AT_ONCE = 200  # resamples that are held in memory together
FEWEST = 3  # units, and groups of them where these are resampled: fewer say nothing of others

WAY_MEANINGS = {
    "exchange": "parts of another sample, at the same positions; of the same sample where they are temporal",
    "resample": "parts of any position of any sample; of the same sample where they are temporal",
}
SIDE_MEANINGS = {"query": "decoder states", "keys": "encoder states", "both": "both"}
ATTRIBUTION_MEANINGS = {
    "own": "covariance share of the product of a part with itself",
    "split": "covariance shares of all terms with a part, mixed terms halved",
    "any_term": "covariance shares of all terms with a part",
    "mean_absolute": "shares of the mean absolute value of terms with a part, mixed terms halved",
    "substitution": "how far attention changes when it is rebuilt without the product of a part with itself",
}
POINT = {
    "side": Column("states in which the part is replaced", categories=SIDE_MEANINGS),
    "part": Column("part of the states that is replaced"),
}
# In the order of the alphabet, as the published table has them.
ATTRIBUTED = {name: Column(ATTRIBUTION_MEANINGS[name]) for name in sorted(ATTRIBUTIONS)}

# Estimates: their columns, whose categories are the names of an axis in its order; and what they estimate.

WAY = {"way": Column("where the other part is taken from", categories=WAY_MEANINGS)}
SIDE = {"side": POINT["side"]}
PARTS = {part: f"{part} parts" for part in STATE_PARTS}
PART = {
    "part": Column("part that is replaced", categories=PARTS | {EVERY: "each of the three parts, together"})
}
DRAWN_PART = {"part": Column("part that is replaced", categories={part: PARTS[part] for part in SETS[1:3]})}
ATTRIBUTION = {"attribution": Column("what a part is said to count for", categories=ATTRIBUTION_MEANINGS)}
DIFFERENCE = {
    "difference": Column(
        "attributions that are compared",
        categories={name: " minus ".join(pair) for name, pair in DIFFERENCES.items()},
    )
}


ATTENTION_MOVED = {"attention": "mean total variation between rows of attention before and after"}


def key_of(statistic: str, axes: Columns) -> str:
    """Return the template of an estimate's key: its statistic, then its name on each axis.

    >>> key_of("missed", WAY | SIDE)
    'missed.{way}.{side}'
    """
    return ".".join([statistic, *(f"{{{axis}}}" for axis in axes)])


def axes_of(outcomes: Mapping[str, str]) -> dict[str, Columns]:
    """Return the columns that name the estimates of each statistic.

    Args:
        outcomes: what effects are on, and what each means; the first is attention.
    """
    outcome = {"outcome": Column("what the effect is on", categories=outcomes)}
    further = {name: meaning for name, meaning in outcomes.items() if name != next(iter(outcomes))}
    further_on = {"outcome": Column("what the effect is on", categories=further)}
    return {
        "rank": WAY | SIDE | outcome | PART | ATTRIBUTION,
        "differences": WAY | SIDE | outcome | PART | DIFFERENCE,
        "fades": WAY | SIDE | further_on | PART | ATTRIBUTION,
        "hits": WAY | SIDE | outcome | ATTRIBUTION,
        "hit_differences": WAY | SIDE | outcome | DIFFERENCE,
        "missed": WAY | SIDE | outcome,
        "ways": SIDE | outcome | DRAWN_PART,
    }


ESTIMATED = {
    "rank": Column("Spearman's correlation of attribution and effect", low=-1, high=1),
    "differences": Column("rank correlation of the first attribution minus that of the second"),
    "fades": Column("rank correlation with the effect on attention minus that with this effect"),
    "hits": share("units whose most effective part has the largest attribution"),
    "hit_differences": Column("share of hits of the first attribution minus that of the second"),
    "missed": share("units whose most effective part no attribution names"),
    "ways": Column("Spearman's correlation of the effects of both ways", low=-1, high=1),
}
RESAMPLED = {
    "low": Column("2.5th percentile over resamples; empty where there are too few units or groups"),
    "high": Column("97.5th percentile over resamples; empty where there are too few units or groups"),
    "n": Column("units that count: networks, or heads", low=0),
}


@dataclass(frozen=True, eq=False)
class Calibrations:
    """Attributions and effects of several units, in the order of the names of each axis."""

    attributions: Float[np.ndarray, "unit side part attribution"]
    effects: Float[np.ndarray, "unit way side part outcome"]

    @classmethod
    def of(cls, points: Table, outcomes: Collection[str]) -> Self:
        """Return the numbers of units.

        Args:
            points: unit after unit, each with a row for every side and part, in the order of their names.
            outcomes: what effects are on.
        """
        shape = (-1, len(FACTOR_SIDES), len(STATE_PARTS))
        shares = points.frame[list(ATTRIBUTIONS)].to_numpy(dtype=np.float64)  # (row, attribution)
        effects = [f"{way}_{outcome}" for way, outcome in product(WAYS, outcomes)]
        moved = points.frame[effects].to_numpy(dtype=np.float64)  # (row, way · outcome)
        by_side = moved.reshape(*shape, len(WAYS), len(outcomes))  # (unit, side, part, way, outcome)
        return cls(shares.reshape(*shape, len(ATTRIBUTIONS)), np.moveaxis(by_side, 3, 1))

    def __len__(self) -> int:
        return len(self.attributions)


Counts = Float[np.ndarray, "resample unit"]  # how often each unit is in a resample


def statistics(calibrations: Calibrations, counts: Counts) -> dict[str, Float[np.ndarray, "resample ..."]]:
    """Return rank correlations and hit rates in each resample of the units, as arrays by name.

    ``rank`` has the axes resample, way, side, outcome, set of parts, attribution; ``hits`` has these without
    the parts; ``missed`` resample, way, side, outcome. ``ways``, the correlation of effects of both ways, has
    resample, side, outcome, and the parts whose donors differ.
    """
    ranks, ways = [], []
    for parts in ([0], [1], [2], [0, 1, 2]):
        shares = _ranks(np.moveaxis(calibrations.attributions[:, :, parts], 2, 1), counts)
        effects = _ranks(np.moveaxis(calibrations.effects[:, :, :, parts], 3, 1), counts)
        ranks.append(np.einsum("rpsa,rpwso->rwsoa", shares, effects))
        ways.append((effects[:, :, 0] * effects[:, :, 1]).sum(1))  # (resample, side, outcome)
    named = calibrations.attributions.argmax(2)  # (unit, side, attribution)
    largest = calibrations.effects.argmax(3)  # (unit, way, side, outcome)
    hits = largest[..., None] == named[:, None, :, None, :]  # (unit, way, side, outcome, attribution)
    weights = counts / counts.sum(1, keepdims=True)  # (resample, unit)
    return {
        "rank": np.stack(ranks, axis=4),
        "hits": np.tensordot(weights, hits, axes=1),
        "missed": np.tensordot(weights, ~hits.any(-1), axes=1),
        "ways": np.stack(ways[1:3], axis=3),
    }


def _ranks(
    values: Float[np.ndarray, "unit part *columns"], counts: Counts
) -> Float[np.ndarray, "resample point *columns"]:
    """Return ranks over units and parts, such that the product of two columns sums to Spearman's correlation.

    A point that is drawn several times is as many ties, which share their mean rank.
    """
    units, parts, *columns = values.shape
    points = values.reshape(units * parts, -1)  # (point, column)
    often = counts.repeat(parts, axis=1)  # (resample, point)
    ranks = np.empty((len(often), *points.shape))
    for column, numbers in enumerate(points.T):
        order = numbers.argsort(kind="stable")
        ordered = numbers[order]
        first, last = ordered.searchsorted(ordered, "left"), ordered.searchsorted(ordered, "right") - 1
        up_to = often[:, order].cumsum(1)  # (resample, point): draws at this place of the order or before
        smaller = up_to[:, first] - often[:, order[first]]
        ranks[:, order, column] = (smaller + 1 + up_to[:, last]) / 2
    mean = (often[..., None] * ranks).sum(1, keepdims=True) / often.sum(1)[:, None, None]
    centred = np.sqrt(often)[..., None] * (ranks - mean)  # (resample, point, column)
    length = np.sqrt((centred**2).sum(1, keepdims=True))
    unit = centred / np.where(length > 0, length, np.nan)
    return unit.reshape(*unit.shape[:2], *columns)


def calibrated(
    points: Table, *, unit: Sequence[str], outcomes: Mapping[str, str], resampled: Bootstrap
) -> dict[str, Table]:
    """Return each statistic with its interval, a row for each combination of names; of too few, no numbers.

    All numbers, and so all differences, see the same draws.

    Args:
        points: of the units that count, as :meth:`Calibrations.of` takes them.
        unit: the columns that name a unit.
        outcomes: what effects are on, and what each means.
        resampled: what the bootstrap draws.
    """
    axes = axes_of(outcomes)
    units = points.frame.drop_duplicates(list(unit))
    names = units[resampled.groups]
    groups = [np.flatnonzero(names == name) for name in names.unique()]
    n_units = len(units)
    if n_units < FEWEST or (resampled.draws_groups and len(groups) < FEWEST):
        return {name: _without_numbers(columns, name, n_units) for name, columns in axes.items()}
    calibrations = Calibrations.of(points, outcomes)
    once = np.ones((1, n_units))
    values = _with_differences(statistics(calibrations, once))
    bounds = _bounds(calibrations, groups, resampled)
    return {
        name: _named(columns, name, values[name][0], bounds[name], n_units) for name, columns in axes.items()
    }


def _with_differences(estimates: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add what attributions differ by; and ``fades``, the rank on attention minus that further on."""
    pairs = [
        (ATTRIBUTIONS.index(first), ATTRIBUTIONS.index(second)) for first, second in DIFFERENCES.values()
    ]
    differences = {}
    for name in ("rank", "hits"):
        of_pairs = [estimates[name][..., first] - estimates[name][..., second] for first, second in pairs]
        differences[name] = np.stack(of_pairs, axis=-1)
    return estimates | {
        "differences": differences["rank"],
        "hit_differences": differences["hits"],
        "fades": estimates["rank"][:, :, :, :1] - estimates["rank"][:, :, :, 1:],  # axis 3 is the outcome
    }


def _bounds(
    calibrations: Calibrations, groups: Sequence[np.ndarray], resampled: Bootstrap
) -> dict[str, Float[np.ndarray, "2 ..."]]:
    """Return both ends of the percentile interval of each statistic, along the first axis."""
    generator = np.random.default_rng(resampled.seed)
    drawn: dict[str, list[np.ndarray]] = {}
    for _ in range(0, RESAMPLES, AT_ONCE):
        samples = [drawn_rows(groups, generator, nested=resampled.draws_groups) for _ in range(AT_ONCE)]
        counts = [np.bincount(sample, minlength=len(calibrations)) for sample in samples]
        counted = np.stack(counts).astype(float)  # (resample, unit)
        for name, statistic in _with_differences(statistics(calibrations, counted)).items():
            drawn.setdefault(name, []).append(statistic)
    return {name: _quantiles(np.concatenate(statistic)) for name, statistic in drawn.items()}


def _quantiles(drawn: Float[np.ndarray, "resample ..."]) -> Float[np.ndarray, "2 ..."]:
    """Of the resamples where a number exists; NaN where it does in none."""
    never = np.isnan(drawn).all(0)
    filled = np.where(never, 0.0, drawn)
    quantiles = np.nanquantile(filled, TAILS, axis=0)  # (2, ...)
    # What is zero but for rounding is zero on every processor.
    return np.where(never, np.nan, np.round(quantiles, 12) + 0.0)


def _named(
    axes: Columns, name: str, values: np.ndarray, bounds: Float[np.ndarray, "2 ..."], n_units: int
) -> Table:
    """Return a statistic as a table, with a row for each of its numbers."""
    numbers = zip(values.ravel(), bounds[0].ravel(), bounds[1].ravel(), strict=True)
    return _estimates(axes, name, [interval(*map(_number, ends), n_units) for ends in numbers])


def _without_numbers(axes: Columns, name: str, n_units: int) -> Table:
    """Return the rows of a statistic of which too few units say nothing."""
    n_rows = math.prod(len(column.categories) for column in axes.values())
    return _estimates(axes, name, [interval(None, None, None, n_units)] * n_rows)


def _estimates(axes: Columns, name: str, intervals: Sequence[Interval]) -> Table:
    """Return intervals as a table, in the order of the names of the statistic's axes."""
    combinations = product(*(column.categories for column in axes.values()))
    records = [
        dict(zip(axes, names, strict=True)) | estimate
        for names, estimate in zip(combinations, intervals, strict=True)
    ]
    columns = {**axes, "value": ESTIMATED[name], **RESAMPLED}
    return Table.of(records, columns, "an estimate")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
