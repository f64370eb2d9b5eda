"""Temporal share against typicality: the first paper's headline, a point for each trained network."""

from operator import itemgetter

from attnlib.decomposition.components import STATE_PARTS
from attnlib.models.config import Cell
from companion.results.config import Positive, Task
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from companion.runs.suite import task_name_of
from notebooks.shared.intervals import correlated, grouped, kind, last_minus_first
from notebooks.shared.measure import ACROSS_SAMPLES as QUANTITIES
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.plan import picked
from notebooks.shared.readings import effects_of_exchange, exchange_measurements, readings
from notebooks.shared.suite import (
    CELL_TASKS,
    DIAL,
    PAPER_TASKS,
    SuiteConfig,
    family,
    model_specs,
    model_specs_and_cells,
    outcomes,
)
from notebooks.shared.summaries import summarised
from notebooks.shared.translators import has_learned, translator_measurements, translators_that_count

COORDINATES = ("typicality", *QUANTITIES, "uniform", "residual_share", "token_accuracy", "coverage")
# How far attention moves when a part is exchanged: in the queries, in the keys, and the mean of both.
EFFECTS = tuple(f"{side}{part}_moves" for side in ("", "query_", "keys_") for part in STATE_PARTS)
SPLIT = tuple(f"{part}_split" for part in STATE_PARTS)
# What is compared with typicality beside own terms, and what along the dial.
FURTHER = (*SPLIT, "temporal_any", "input_any", "input_delta_own", "temporal_input_delta", *EFFECTS[:3])
SIDES = tuple(f"{side}_{part}" for side in ("query", "keys") for part in STATE_PARTS)
ALONG_DIAL = (*FURTHER, *SIDES, "temporal_query_minus_keys")


class Config(SuiteConfig):
    """The task suite's settings, and recurrent cells beside the GRU."""

    more_cells: tuple[Cell, ...] = ()  #: cells of AED that are added on some tasks only
    cells_on: tuple[Task, ...] = CELL_TASKS  #: the tasks on which they are
    #: held-out sentences that each translator writes, which tell whether it counts
    translated: Positive = 200
    #: networks of each kind whose parts are exchanged in the forward pass, seeds 0 … n − 1
    exchange_seeds: Positive = 3
    dial_seeds: Positive = 3  #: the same of recurrent networks along the dial
    samples: Positive = 200  #: held-out samples in whose forward pass parts are exchanged, at most


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=PAPER_TASKS,
        scale="paper",
        fit_samples=25_000,
        more_cells=("lstm", "vanilla", "ugrnn"),
        translated=1_000,
        dial_seeds=10,
        samples=1_500,
    ),
    "tiny": Config(
        task=("reordering_0", "reordering_100"), seeds=1, width=8, steps=3, fit_samples=100, samples=60
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    translators = translator_measurements(model_specs(config), config.translated)
    return (*terms_of(config), *exchanges_of(config), *translators)


def terms_of(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs_and_cells(config)
    return measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)


def exchanges_of(config: Config) -> tuple[Measurement, ...]:
    """What exchanging parts does, asked of the first networks of each kind."""
    specs = []
    for spec in model_specs(config):
        along = spec.architecture == "AED" and task_name_of(spec) in DIAL
        if spec.seed < (config.dial_seeds if along else config.exchange_seeds):
            specs.append(spec)
    return exchange_measurements(specs, config.fit_samples, config.samples)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Spearman correlations; ``learned``: of the networks that have learned their task as far as they can."""
    exchanges = {tuple(name.items()): found for name, found in answers(exchanges_of(config), store)}
    points = []
    for name, terms in answers(terms_of(config), store):
        points.append((name, terms | {"exchange": exchanges.get(tuple(name.items()))}))
    counting = translators_that_count(model_specs(config), config.translated, store)
    rows, kinds = [], {}
    for name, m in points:
        learned = has_learned(name, m["quality"]["token_accuracy"], counting)
        rows.append(name | {"kind": kind(name), "learned": learned} | _coordinates(m))
        kinds.setdefault(kind(name), []).append(rows[-1])
    learned = {label: [row for row in own if row["learned"]] for label, own in kinds.items()}
    values = {
        "learned": _of_families([row for row in rows if row["learned"]], (*QUANTITIES, *FURTHER))
        | {"by_architecture": {label: _of_families(own) for label, own in learned.items()}}
        | {"dial": {label: _along_dial(own, ALONG_DIAL) for label, own in learned.items()}},
        "families": _of_families(rows),
        "spearman": _correlations(rows, QUANTITIES),
        "by_architecture": {n: {"spearman": _correlations(own, QUANTITIES)} for n, own in kinds.items()},
        "by_task": summarised(grouped(points, "task", kind), _coordinates),
        "across_samples": summarised(grouped(points, "task", kind), itemgetter("across_samples"), (-1, 1)),
        "dial": {label: _along_dial(own) if _marks(own) > 2 else {} for label, own in kinds.items()},
        "tasks": len({row["task"] for row in rows}),
    }
    return values, {"points": rows}


def _coordinates(m: dict) -> dict[str, float | None]:
    """Readings of one network's nine terms, and effects of exchange, None where nothing was exchanged."""
    found = picked(outcomes(m), COORDINATES) | readings(m["covariance_share"])
    found["temporal_query_minus_keys"] = found["query_temporal"] - found["keys_temporal"]
    effects = effects_of_exchange(m["exchange"]) if m["exchange"] else {}
    return found | {name: effects.get(name.removesuffix("_moves")) for name in EFFECTS}


def _of_families(rows: list[dict], names: tuple[str, ...] = QUANTITIES) -> dict:
    """Correlations whose intervals resample families of tasks."""
    own = [row | {"task": family(row["task"])} for row in rows]
    counts = {"networks": len(own), "families": len({row["task"] for row in own})}
    return {"spearman": _correlations(own, names)} | counts


def _along_dial(rows: list[dict], further: tuple[str, ...] = ()) -> dict[str, dict]:
    """Correlation of the dial with each quantity; ``ends``: mean at the last mark less at the first."""
    marks = [row | {"dial": DIAL.index(row["task"])} for row in rows if row["task"] in DIAL]
    marks = marks if _marks(rows) > 2 else []
    names, along = (
        ("typicality", *QUANTITIES, "residual_share", *further),
        {"against": "dial", "nested": False},
    )
    ends = _correlations(marks, names, statistic=last_minus_first, **along)
    return _correlations(marks, names, **along) | {"ends": ends, "marks": _marks(rows)}


def _marks(rows: list[dict]) -> int:
    return len({row["task"] for row in rows} & set(DIAL))


def _correlations(rows: list[dict], names: tuple[str, ...], against: str = "typicality", **how) -> dict:
    return {name: correlated(rows, against, name, **how) for name in names}
