"""Robustness: one setting of a network is changed at a time, and what other chapters found is asked again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated

from attnlib.errors import NotMeasured
from attnlib.models.config import Cell
from companion.results.aggregate import each_over_seeds, over_seeds
from companion.results.asks import Ask, ask
from companion.results.config import AboveZero, Field, OneOf, Positive, Task, changes_of, take_files
from companion.runs.rungs import spec_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.robustness.measure import EITHER, measure_robustness
from notebooks.shared.ladder import FilesConfig
from notebooks.shared.measure import measure_alignment_terms

FACTORS = ("cell", "width", "weight_decay", "length", "n_words", "embedding_scale", "clip")
ALONE = "one_to_one"  # the task on the fixed diagonal, and the one whose number of words can be set
AGAINST = "scan"
BOTH = (ALONE, AGAINST)


class Config(FilesConfig):
    """Settings; each factor is varied around the plan's setting, the others staying as planned.

    Attributes:
        task: rungs of the ladder; the headline needs one_to_one and scan.
        varied: those of them on which the factors are varied; the others keep the plan's setting.
        factor: which factors: cell, width, weight_decay, length, n_words, embedding_scale, clip.
        seeds: models of each setting; three by default.
        cell: levels of the factor: gru, lstm, vanilla, ugrnn; widths: levels of the factor width.
        weight_decay: levels of the factor; length: levels of the factor, in multiples of the planned updates.
        n_words: levels of the factor, for one-to-one alone; embedding_scale: levels of the factor.
        clip: levels of the factor: largest norm of a gradient.
        samples: training samples, and held-out ones, for free running and memory, at most.
    """

    task: tuple[Task, ...] = BOTH
    varied: tuple[Task, ...] = (ALONE,)
    factor: tuple[Annotated[str, OneOf(FACTORS)], ...] = FACTORS
    cell: tuple[Cell, ...] = ("gru", "vanilla")
    widths: tuple[Positive, ...] = (32,)
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = (1e-3,)
    length: tuple[AboveZero, ...] = ()
    n_words: tuple[Positive, ...] = (10,)
    embedding_scale: tuple[AboveZero, ...] = ()
    clip: tuple[AboveZero, ...] = ()
    samples: Positive = 400

    def check(self) -> None:
        take_files(self, task=(BOTH,), varied=(BOTH, (ALONE,)))


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
    """One level of one factor, and its models of each task in the order of seeds."""

    factor: str
    level: str | float
    planned: bool
    models: dict[str, tuple[ModelSpec, ...]] = field(hash=False)

    @property
    def label(self) -> str:
        """The level as a reader sees it."""
        return self.level if isinstance(self.level, str) else f"{self.level:g}"


def level_key(label: str) -> str:
    """A level as part of a dotted key: ``0p001`` for 0.001."""
    return label.replace(".", "p")


def settings(config: Config) -> tuple[Setting, ...]:
    """Every level of every factor in order, the plan's own among the levels of each."""
    return tuple(setting for factor in config.factor for setting in _levels(config, factor))


def _levels(config: Config, factor: str) -> Iterator[Setting]:
    """The plan's own level changes nothing, so that its models are those that other chapters have."""
    plan = _plan(config)
    planned = {"cell": "gru", "weight_decay": 0.0, "length": 1.0, "n_words": 3, "embedding_scale": 0.3}
    own = (planned | {"clip": 1.0, "width": plan[config.task[0]][0].width})[factor]
    given = getattr(config, "widths" if factor == "width" else factor)
    levels = [own, *(level for level in given if level != own)]
    if len(levels) == 1:
        return
    varied = [
        rung for rung in config.task if rung in config.varied and (factor != "n_words" or rung == ALONE)
    ]
    for level in levels if factor == "cell" else sorted(levels):
        if level == own:
            yield Setting(factor, level, True, plan)
        elif varied:
            yield Setting(factor, level, False, {rung: _at(config, rung, factor, level) for rung in varied})


def _at(config: Config, rung: str, factor: str, level: str | float) -> tuple[ModelSpec, ...]:
    changes = {factor: level}
    if factor == "length":
        changes = {"steps": max(1, round(level * plan_spec(config, rung, 0).steps))}
    if factor == "n_words":
        changes = {"task_options": {"n_words": level}}
    return tuple(plan_spec(config, rung, seed, **changes) for seed in _seeds(config))


def _seeds(config: Config) -> range:
    return range(3 if config.seeds is None else config.seeds)


def _plan(config: Config) -> dict[str, tuple[ModelSpec, ...]]:
    return {rung: tuple(plan_spec(config, rung, seed) for seed in _seeds(config)) for rung in config.task}


def plan_spec(config: Config, rung: str, seed: int, **changes: object) -> ModelSpec:
    """The network as planned, but for these changes."""
    return spec_of(rung, "AED", scale=config.scale, seed=seed, **changes_of(config) | changes)


PLACE = "Aitken et al. 2021, contributions 2 and 3 (does it hold for other networks?)"
QUESTION = "Where does the finding weaken when cell, size, training or task vocabulary change?"
RESIDUAL = ("temporal_residual", "input_residual", "residual_temporal", "residual_input", "residual_residual")


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each: the shares that other chapters ask for too, then free running and memory."""
    every = [*(setting.models for setting in settings(config)), _plan(config)]
    specs = dict.fromkeys(spec for models in every for own in models.values() for spec in own)
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


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Outcomes of every setting, free running against teacher forcing, and whether the headline holds.

    Returns:
        values by factor, level and task (:data:`OUTCOMES`), of both ways of running, what moves the residual
        share (:func:`_governs`) and the :func:`headline`; tables ``points`` (a row a model and setting),
        ``settings`` (a row a setting and half of the headline) and ``running``.
    """
    found = _found(config, store)
    outcomes = {spec: {name: of(pair) for name, of in OUTCOMES.items()} for spec, pair in found.items()}
    factors: dict[str, dict] = {}
    points = []
    for setting in settings(config):
        named = {"factor": setting.factor, "level": setting.label, "planned": setting.planned}
        levels = factors.setdefault(setting.factor, {}).setdefault(level_key(setting.label), {})
        for rung, specs in setting.models.items():
            known = [spec for spec in specs if spec in found]
            levels[rung] = {name: _interval([outcomes[spec][name] for spec in known]) for name in OUTCOMES}
            points += [
                named
                | {"task": rung, "seed": spec.seed, "width": spec.width, "steps": spec.steps}
                | outcomes[spec]
                for spec in known
            ]
    free = {spec: _way(own["free_running"]) for spec, (_, own) in found.items()}
    conditions = list(_conditions(config, outcomes, free))
    running = {
        rung: _running([found[spec][1] for spec in specs if spec in found])
        for rung, specs in _plan(config).items()
    }
    values = {
        "factors": factors,
        "running": running,
        "governs": {
            factor: _governs([row for row in points if row["factor"] == factor])
            for factor in dict.fromkeys(row["factor"] for row in points)
        },
        "headline": headline(conditions),
    }
    ways = [
        {"task": rung, "way": way, "outcome": outcome} | interval
        for rung, both in running.items()
        for way in EITHER
        for outcome, interval in both[way].items()
    ]
    return values, {"points": points, "settings": conditions, "running": ways}


def _found(config: Config, store: Store) -> dict[ModelSpec, Found]:
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


def _way(found: dict) -> dict[str, float | None]:
    """The outcomes that either way of running has."""
    pairs = {"temporal_share": "temporal_temporal", "input_share": "input_input"}
    pairs |= {"residual_residual": "residual_residual"}
    return (
        {"typicality": found["typicality"]}
        | {name: found["covariance_share"][pair] for name, pair in pairs.items()}
        | {name: found["substitution"][name] for name in ("temporal_only", "input_only", "no_residual")}
    )


def _running(measured: list[dict]) -> dict:
    points = [({}, {way: _way(m[way]) for way in EITHER} | {"same_words": m["same_words"]}) for m in measured]
    return each_over_seeds(points) if points else {}


def _governs(points: list[dict]) -> dict[str, dict]:
    """How far the residual-residual share moves along a factor, for each task.

    Returns:
        the levels with the smallest and the largest mean (``lowest``, ``highest``), and the interval of their
        difference paired by seed. Extremes are picked after the fact, which flatters every factor alike.
    """
    found = {}
    for rung in dict.fromkeys(row["task"] for row in points):
        by_level: dict[str, dict[int, float]] = {}
        for row in points:
            if row["task"] == rung:
                by_level.setdefault(row["level"], {})[row["seed"]] = row["residual_residual"]
        if len(by_level) < 2:
            continue
        ranked = sorted(by_level, key=lambda level: fmean(by_level[level].values()))
        low, high = by_level[ranked[0]], by_level[ranked[-1]]
        differences = [high[seed] - low[seed] for seed in high if seed in low]
        found[rung] = {"lowest": ranked[0], "highest": ranked[-1], **_interval(differences)}
    return found


def _conditions(config: Config, outcomes: dict, free: dict) -> Iterator[dict]:
    """Both halves of the headline at every setting, as differences paired by seed; the plan's own once."""
    if not set(BOTH) <= set(config.task):
        return
    plan = _plan(config)
    asked = [("plan", "plan", plan, outcomes)]
    asked += [(s.factor, s.label, s.models, outcomes) for s in settings(config) if not s.planned]
    for factor, level, specs, found in [*asked, ("running", "free", plan, free)]:
        both = zip(specs.get(ALONE, ()), specs.get(AGAINST, plan[AGAINST]), strict=ALONE in specs)
        pairs = [(found[a], found[b]) for a, b in both if a in found and b in found]
        halves = {
            "temporal_share_leads_scan": [a["temporal_share"] - b["temporal_share"] for a, b in pairs],
            "temporal_beats_input": [a["temporal_only"] - a["input_only"] for a, _ in pairs],
        }
        for half, differences in halves.items() if ALONE in specs else ():
            row = {"factor": factor, "level": level, "half": half, "scan_varied": AGAINST in specs}
            interval = _interval(differences)
            signs = {"holds": interval["value"], "clearly": interval["low"]}
            yield row | interval | {name: None if end is None else end > 0 for name, end in signs.items()}


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
