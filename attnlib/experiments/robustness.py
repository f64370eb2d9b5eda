"""Robustness: one setting of a network is changed at a time, and what other chapters found is asked again."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from attnlib.errors import NotMeasured
from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.asks import Ask, ask, specs_of
from attnlib.experiments.measure import measure_alignment_terms
from attnlib.experiments.measures.robustness import EITHER, measure_robustness
from attnlib.experiments.robustness_settings import (
    AGAINST,
    ALONE,
    PROFILES,
    Config,
    Setting,
    plan_spec,
    seeds_of,
    settings,
)
from attnlib.training.spec import ModelSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Aitken et al. 2021, contributions 2 and 3 (does it hold for other networks?)"
QUESTION = "Where does the finding weaken when cell, size, training or task vocabulary change?"
RESIDUAL = ("temporal_residual", "input_residual", "residual_temporal", "residual_input", "residual_residual")

__all__ = ["PLACE", "PROFILES", "QUESTION", "Config", "asks", "compute", "models"]


def models(config: Config) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs, each once."""
    return specs_of(asks(config))


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each: the shares that other chapters ask for too, then free running and memory."""
    specs = [spec for setting in settings(config) for own in setting.models.values() for spec in own]
    specs += [plan_spec(config, rung, seed) for rung, seed in product(config.task, seeds_of(config))]
    specs = tuple(dict.fromkeys(specs))
    return (
        *ask(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *ask(specs, measure_robustness, samples=config.samples),
    )


Found = tuple[dict, dict]  # of one model: what `measure_alignment_terms` found, and `measure_robustness`

OUTCOMES: dict[str, Callable[[Found], float | None]] = {
    "typicality": lambda found: found[0]["typicality"]["value"],
    "temporal_share": lambda found: found[0]["covariance_share"]["temporal_temporal"],
    "input_share": lambda found: found[0]["covariance_share"]["input_input"],
    "residual_share": lambda found: sum(found[0]["covariance_share"][pair] for pair in RESIDUAL),
    "residual_residual": lambda found: found[0]["covariance_share"]["residual_residual"],
    "remembered": lambda found: found[1]["memory"]["share"],
    "temporal_only": lambda found: found[0]["substitution"]["temporal_only"]["similarity"],
    "input_only": lambda found: found[0]["substitution"]["input_only"]["similarity"],
    "no_residual": lambda found: found[0]["substitution"]["no_residual"]["similarity"],
    "uniform": lambda found: found[0]["substitution"]["uniform"]["similarity"],
    "accuracy": lambda found: found[0]["quality"]["token_accuracy"],
    "memory_encoder": lambda found: found[1]["memory"]["encoder"],
    "memory_decoder": lambda found: found[1]["memory"]["decoder"],
    "residual_variance_encoder": lambda found: found[1]["variance"]["encoder"]["residual"],
    "residual_variance_decoder": lambda found: found[1]["variance"]["decoder"]["residual"],
}


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Outcomes of every setting, free running against teacher forcing, and whether the headline holds.

    Returns:
        values ``factors.<factor>.<level>.<task>.<outcome>`` (names of :data:`OUTCOMES`),
        ``running.<task>.{teacher_forced, free_running}.<outcome>`` with ``same_words``,
        ``governs.<factor>.<task>`` (see :func:`_governs`) and ``headline`` (see :func:`headline`), intervals
        over seeds; tables ``points`` (a row a model and setting), ``settings`` (a row a setting and half of
        the headline) and ``running``.
    """
    found = _found(config, store)
    factors: dict[str, dict] = {}
    points, all_settings = [], settings(config)
    for setting in all_settings:
        for rung, specs in setting.models.items():
            known = [(spec, found[spec]) for spec in specs if spec in found]
            outcomes = {name: _interval([of(pair) for _, pair in known]) for name, of in OUTCOMES.items()}
            factors.setdefault(setting.factor, {}).setdefault(setting.key, {})[rung] = outcomes
            points += [
                {"factor": setting.factor, "level": setting.label, "planned": setting.planned}
                | {"task": rung, "seed": spec.seed, "width": spec.width, "steps": spec.steps}
                | {name: of(pair) for name, of in OUTCOMES.items()}
                for spec, pair in known
            ]
    plan = {rung: [plan_spec(config, rung, seed) for seed in seeds_of(config)] for rung in config.task}
    conditions = list(_conditions(config, all_settings, plan, found))
    running = {rung: _running([found[spec][1] for spec in plan[rung] if spec in found]) for rung in plan}
    values = {
        "factors": factors,
        "running": running,
        "governs": {factor: _governs(rows) for factor, rows in _by_factor(points).items()},
        "headline": headline(conditions),
    }
    ways = [
        {"task": rung, "way": way, "outcome": outcome} | interval
        for rung, found_ways in running.items()
        for way, outcomes in found_ways.items()
        if way != "same_words"
        for outcome, interval in outcomes.items()
    ]
    return values, {"points": points, "settings": conditions, "running": ways}


def _found(config: Config, store: "Store") -> dict[ModelSpec, Found]:
    """What is known of each model; one of which something is missing is left out (``run`` says which)."""
    answered: dict[ModelSpec, dict[str, dict]] = {}
    for asked in asks(config):
        try:
            answered.setdefault(asked.spec, {})[asked.measure.__name__] = asked.answer(store)
        except NotMeasured:
            continue
    return {
        spec: (given["measure_alignment_terms"], given["measure_robustness"])
        for spec, given in answered.items()
        if len(given) == 2
    }


def _interval(numbers: list[float | None]) -> dict[str, float | int]:
    return over_seeds([({}, {"x": number}) for number in numbers], lambda m: m["x"])


def _running(measured: list[dict]) -> dict:
    def shares(way: str, name: str) -> list[float | None]:
        return [found[way]["covariance_share"][name] for found in measured]

    def similarity(way: str, name: str) -> list[float | None]:
        return [found[way]["substitution"][name] for found in measured]

    ways = {
        way: {
            "typicality": _interval([found[way]["typicality"] for found in measured]),
            "temporal_share": _interval(shares(way, "temporal_temporal")),
            "input_share": _interval(shares(way, "input_input")),
            "residual_residual": _interval(shares(way, "residual_residual")),
            "temporal_only": _interval(similarity(way, "temporal_only")),
            "input_only": _interval(similarity(way, "input_only")),
            "no_residual": _interval(similarity(way, "no_residual")),
        }
        for way in EITHER
    }
    return ways | {"same_words": _interval([found["same_words"] for found in measured])}


def _by_factor(points: list[dict]) -> dict[str, list[dict]]:
    return {factor: [row for row in points if row["factor"] == factor] for factor in _names(points, "factor")}


def _names(points: list[dict], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in points))


def _governs(points: list[dict]) -> dict[str, dict]:
    """How far the residual-residual share moves along a factor, for each task.

    Returns:
        the levels with the smallest and the largest mean (``lowest``, ``highest``), and the interval of their
        difference paired by seed. Extremes are picked after the fact, which flatters every factor alike.
    """
    found = {}
    for rung in _names(points, "task"):
        by_level: dict[str, dict[int, float]] = {}
        for row in points:
            if row["task"] == rung:
                by_level.setdefault(row["level"], {})[row["seed"]] = row["residual_residual"]
        if len(by_level) < 2:
            continue
        ranked = sorted(by_level, key=lambda level: sum(by_level[level].values()) / len(by_level[level]))
        low, high = by_level[ranked[0]], by_level[ranked[-1]]
        differences = [high[seed] - low[seed] for seed in high if seed in low]
        found[rung] = {"lowest": ranked[0], "highest": ranked[-1], **_interval(differences)}
    return found


def _conditions(
    config: Config, all_settings: tuple[Setting, ...], plan: dict, found: dict[ModelSpec, Found]
) -> Iterator[dict]:
    """Both halves of the headline at every setting, as differences paired by seed; the plan's own once.

    Where a factor is not varied on the other task, that task stands at the plan's setting. Running free is
    one more setting, with components of free-running states.
    """
    if not {ALONE, AGAINST} <= set(config.task):
        return
    planned = Setting("plan", "plan", True, {rung: tuple(specs) for rung, specs in plan.items()})
    for setting in (planned, *(setting for setting in all_settings if not setting.planned)):
        if ALONE in setting.models:
            own, other = setting.models[ALONE], setting.models.get(AGAINST, tuple(plan[AGAINST]))
            pairs = [(_halves(found.get(a)), _halves(found.get(b))) for a, b in zip(own, other, strict=True)]
            yield from _compared(setting.factor, setting.label, AGAINST in setting.models, pairs)
    pairs = [
        (_halves(found.get(a), free=True), _halves(found.get(b), free=True))
        for a, b in zip(plan[ALONE], plan[AGAINST], strict=True)
    ]
    yield from _compared("running", "free", True, pairs)


Halves = tuple[float, float] | None  # temporal share; what μ·μ alone rebuilds more than χ·χ alone


def _halves(found: Found | None, *, free: bool = False) -> Halves:
    if found is None:
        return None
    if free:
        own = found[1]["free_running"]
        alone = own["substitution"]
        return own["covariance_share"]["temporal_temporal"], alone["temporal_only"] - alone["input_only"]
    of = {name: OUTCOMES[name](found) for name in ("temporal_share", "temporal_only", "input_only")}
    return of["temporal_share"], of["temporal_only"] - of["input_only"]


def _compared(factor: str, level: str, varied: bool, pairs: list[tuple[Halves, Halves]]) -> Iterator[dict]:
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    halves = {
        "temporal_share_leads_scan": [a[0] - b[0] for a, b in known],
        "temporal_beats_input": [a[1] for a, _ in known],
    }
    for half, differences in halves.items():
        interval = _interval(differences)
        yield {
            "factor": factor, "level": level, "half": half, "scan_varied": varied, **interval,
            "holds": None if interval["value"] is None else interval["value"] > 0,
            "clearly": None if interval["low"] is None else interval["low"] > 0,
        }  # fmt: skip


def headline(conditions: list[dict]) -> dict:
    """Over the settings, the share at which each half of the headline holds, and those at which it does not.

    Returns:
        by half: ``settings`` (their number), ``holds`` and ``clearly`` (share with a positive mean
        difference, and with a whole interval above zero), ``smallest`` mean difference, ``fails`` and
        ``unclear`` (the settings without, in words).
    """
    found = {}
    for half in dict.fromkeys(row["half"] for row in conditions):
        rows = [row for row in conditions if row["half"] == half and row["holds"] is not None]
        if rows:
            found[half] = {
                "settings": len(rows),
                "holds": sum(row["holds"] for row in rows) / len(rows),
                "clearly": sum(bool(row["clearly"]) for row in rows) / len(rows),
                "smallest": min(row["value"] for row in rows),
                "fails": [f"{row['factor']} {row['level']}" for row in rows if not row["holds"]],
                "unclear": [f"{r['factor']} {r['level']}" for r in rows if r["holds"] and not r["clearly"]],
            }
    return found
