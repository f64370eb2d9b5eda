"""Robustness: one setting of a network is changed at a time, and what other chapters found is asked again."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, NotMeasured
from companion.results.aggregate import over_seeds
from companion.results.asks import Ask, ask, specs_of
from companion.results.checks import changes_of, check_counts, check_names, take_files
from companion.runs.rungs import spec_of, task_of
from companion.runs.spec import ModelSpec
from notebooks.attend.robustness.measure import EITHER, measure_robustness
from notebooks.shared.measure import measure_alignment_terms

if TYPE_CHECKING:
    from companion.runs.store import Store


# The settings of the robustness experiment: factors, their levels, and the models of each.

FACTORS = ("cell", "width", "weight_decay", "length", "n_words", "embedding_scale", "clip")
ALONE = "one_to_one"  # the task on the fixed diagonal, and the one whose number of words can be set
AGAINST = "scan"
BOTH = (ALONE, AGAINST)


@dataclass(frozen=True)
class Config:
    """Settings; each factor is varied around the plan's setting, the others staying as planned.

    Attributes:
        scale: ``quick`` or ``paper``: which training settings are the plan's.
        task: rungs that are looked at.
        varied: those of them on which the factors are varied; the others keep the plan's setting.
        factor: which factors, of :data:`FACTORS`.
        seeds: models of each setting; three by default.
        width, steps: in place of the plan's, for every setting.
        cell, widths, weight_decay, length, n_words, embedding_scale, clip: the levels of the factors;
            ``length`` in multiples of the plan's updates, ``n_words`` for one-to-one alone.
        fit_samples: training samples that the shares' components are fitted on, at most.
        samples: training samples, and held-out ones, for free running and memory, at most.
        source, target: two line-parallel text files to use as the task (both or neither).
    """

    scale: str = "quick"
    task: tuple[str, ...] = BOTH
    varied: tuple[str, ...] = (ALONE,)
    factor: tuple[str, ...] = FACTORS
    seeds: int | None = None
    width: int | None = None
    steps: int | None = None
    cell: tuple[str, ...] = ("gru", "vanilla")
    widths: tuple[int, ...] = (32,)
    weight_decay: tuple[float, ...] = (1e-3,)
    length: tuple[float, ...] = ()
    n_words: tuple[int, ...] = (10,)
    embedding_scale: tuple[float, ...] = ()
    clip: tuple[float, ...] = ()
    fit_samples: int = 2_000
    samples: int = 400
    source: Path | None = None
    target: Path | None = None

    def __post_init__(self) -> None:
        take_files(self, task=(BOTH,), varied=(BOTH, (ALONE,)))
        check_names(self, factor=FACTORS)
        for rung in self.varied:
            task_of(rung)
        check_counts(self, "samples")
        for name in ("widths", "length", "n_words", "embedding_scale", "clip"):
            if not all(0 < level < math.inf for level in getattr(self, name)):
                raise BadInput(f"{name} is {getattr(self, name)}; levels must be positive and finite")
        if any(level < 0 for level in self.weight_decay):
            raise BadInput(f"weight_decay is {self.weight_decay}; levels must not be negative")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper",
        varied=BOTH,
        cell=("gru", "lstm", "vanilla", "ugrnn"),
        widths=(32, 64, 128, 256, 512),
        weight_decay=(0.0, 1e-5, 1e-4, 1e-3),
        length=(0.25, 0.5, 1.0, 2.0),
        n_words=(3, 10, 26),
        embedding_scale=(0.1, 0.3, 1.0),
        clip=(0.1, 1.0, 10.0),
        fit_samples=25_000,
        samples=1_500,
    ),
}


@dataclass(frozen=True)
class Setting:
    """One level of one factor: a key without dots, and the models of each task, in the order of seeds."""

    factor: str
    level: str | float
    planned: bool
    models: dict[str, tuple[ModelSpec, ...]] = field(hash=False)

    @property
    def key(self) -> str:
        """``0p001`` for 0.001: keys of a result have no dots."""
        return level_key(self.level)

    @property
    def label(self) -> str:
        """The level as a reader sees it."""
        return self.level if isinstance(self.level, str) else f"{self.level:g}"


def level_key(level: str | float) -> str:
    """A level as part of a dotted key.

    >>> level_key(0.25), level_key(1e-5), level_key("gru"), level_key(512)
    ('0p25', '1e-05', 'gru', '512')
    """
    return (level if isinstance(level, str) else f"{level:g}").replace(".", "p")


def settings(config: Config) -> tuple[Setting, ...]:
    """Every level of every factor in order, the plan's own among the levels of each."""
    return tuple(setting for factor in config.factor for setting in _levels(config, factor))


def _levels(config: Config, factor: str) -> Iterator[Setting]:
    planned = {"cell": "gru", "weight_decay": 0.0, "length": 1.0, "n_words": 3, "embedding_scale": 0.3}
    own = planned | {"clip": 1.0, "width": plan_spec(config, config.task[0], 0).width}
    given = getattr(config, "widths" if factor == "width" else factor)
    levels = [own[factor], *(level for level in given if level != own[factor])]
    if len(levels) == 1:
        return
    for level in levels if factor == "cell" else sorted(levels):
        models = {}
        for rung in config.task:
            varies = rung in config.varied and (factor != "n_words" or rung == ALONE)
            if level == own[factor] or varies:
                models[rung] = tuple(
                    spec_at(config, rung, seed, factor, level, own) for seed in seeds_of(config)
                )
        if models:
            yield Setting(factor, level, level == own[factor], models)


def seeds_of(config: Config) -> range:
    """Seeds of every setting."""
    return range(3 if config.seeds is None else config.seeds)


def plan_spec(config: Config, rung: str, seed: int, **changes: object) -> ModelSpec:
    return spec_of(rung, "AED", scale=config.scale, seed=seed, **changes_of(config) | changes)


def spec_at(config: Config, rung: str, seed: int, factor: str, level: str | float, own: dict) -> ModelSpec:
    """The plan's own level changes nothing, so that the model is the one that other chapters have."""
    if level == own[factor]:
        return plan_spec(config, rung, seed)
    if factor == "length":
        steps = plan_spec(config, rung, seed).steps
        return plan_spec(config, rung, seed, steps=max(1, round(level * steps)))
    if factor == "n_words":
        return plan_spec(config, rung, seed, task_options={"n_words": level})
    return plan_spec(config, rung, seed, **{factor: level})


PLACE = "Aitken et al. 2021, contributions 2 and 3 (does it hold for other networks?)"
QUESTION = "Where does the finding weaken when cell, size, training or task vocabulary change?"
RESIDUAL = ("temporal_residual", "input_residual", "residual_temporal", "residual_input", "residual_residual")


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
