"""Weight decay as an axis: how much of the temporal share and of the residuals' part hangs on it."""

from dataclasses import replace
from itertools import product
from typing import Annotated

from companion.results.config import AboveZero, Attending, Field, Positive, Task, changes_of
from companion.results.measurements import Measurement, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.attend.regularisation.measure import SIDES, measure_residual_contents
from notebooks.shared.intervals import Point, grouped, interval_of, nested
from notebooks.shared.measure import measure_alignment_terms, measure_interchange
from notebooks.shared.plan import by_spec, picked
from notebooks.shared.suite import DIAL, PlannedConfig, each_planned, outcomes
from notebooks.shared.summaries import each_paired, level_of, summarised

LEARNED = 0.95  # word accuracy from which on a network has learned a made task
OUTCOMES = ("accuracy", "exact_match", "typicality", "temporal_share", "input_share", "residual_share")
OUTCOMES += ("no_residual", "no_residual_argmax", "temporal_only", "temporal_only_argmax", "uniform")


class Config(PlannedConfig):
    """Settings; a network is a task × architecture × level of weight decay × seed."""

    task: tuple[Task, ...] = ("one_to_one",)
    architecture: tuple[Attending, ...] = ("AED",)  #: AED, AO
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = (0.0, 1e-3)  #: levels; the plan's own is 0
    #: of states and embeddings, for the first task without weight decay, beside the plan's
    widths: tuple[Positive, ...] = (32,)
    length: tuple[AboveZero, ...] = ()  #: multiples of the planned updates, likewise
    seeds: Positive | None = 3
    #: samples that the contents of residuals are fitted on, and as many to judge them on, at most
    samples: Positive = 200


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper",
        task=("one_to_one", "reversal", *DIAL[::2], "scan", "multi30k_en_fr"),
        architecture=("AED", "AO"),
        weight_decay=(0.0, 1e-4, 1e-3, 3e-3, 1e-2),
        widths=(32, 64, 256, 512),
        length=(0.5, 2.0),
        fit_samples=25_000,
        samples=1_500,
    ),
}


def axis(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """The networks along the axis, with the columns that name them."""
    found, changes = {}, changes_of(config)
    along = product(range(config.seeds or 3), config.architecture, config.task, config.weight_decay)
    for seed, architecture, task, level in along:
        spec = spec_of(task, architecture, scale=config.scale, seed=seed, weight_decay=level, **changes)
        found[spec] = {"task": task, "architecture": architecture, "weight_decay": level, "seed": seed}
    return found


def others(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """Networks of the first task without decay, of other widths or training lengths, with their columns."""
    found = {}
    for plan in each_planned(config, config.task[0], "AED", config.seeds or 3):
        for width in sorted({plan.width, *config.widths}):
            found[replace(plan, width=width)] = {"factor": "width", "level": width, "seed": plan.seed}
        for length in config.length:
            longer = replace(plan, steps=max(1, round(length * plan.steps)))
            found[longer] = {"factor": "length", "level": length, "seed": plan.seed}
    return found


def measurements(config: Config) -> tuple[Measurement, ...]:
    fit, samples = {"fit_samples": config.fit_samples}, {"samples": config.samples}
    along = axis(config)
    return (
        *measurements_of(dict.fromkeys((*along, *others(config))), measure_alignment_terms, **fit),
        *measurements_of(along, measure_residual_contents, **fit, **samples),
        *measurements_of(along, measure_interchange, **fit, **samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Outcomes by task, architecture and level; the change that decay makes; width and training length.

    ``decay`` compares, seed by seed, the strongest level at which every network has learned its task with no
    decay at all. A network of which a measure is missing is left out.
    """
    found = by_spec(measurements(config), store)
    points = [(name, _numbers(**found[spec])) for spec, name in axis(config).items() if spec in found]
    factors = [
        (name, picked(outcomes(found[spec]["alignment_terms"]), OUTCOMES))
        for spec, name in others(config).items()
        if spec in found
    ]
    decay = {
        names: by_decay({level: own for (level,), own in grouped(points, "weight_decay").items()})
        for names, points in grouped(points, "task", "architecture").items()
    }
    values = {
        "levels": summarised(grouped(points, "task", "architecture", level_of("weight_decay")), dict),
        "decay": nested(decay),
        "factors": summarised(grouped(factors, "factor", level_of("level")), dict),
    }
    return values, {"networks": [name | numbers for name, numbers in points]}


def by_decay(levels: dict[float, list[Point]]) -> dict:
    """Every outcome at the strongest level that all networks have learned less that without decay, paired."""
    none = levels.get(0.0, [])
    learned = [level for level, points in levels.items() if level and _all_learned(points)]
    if not learned or not _all_learned(none):
        return {"level": None, **{name: interval_of() for _, numbers in none[:1] for name in numbers}}
    return {"level": max(learned), **each_paired(levels[max(learned)], none, dict)}


def _all_learned(points: list[Point]) -> bool:
    return bool(points) and all(numbers["accuracy"] >= LEARNED for _, numbers in points)


def _numbers(alignment_terms: dict, residual_contents: dict, interchange: dict) -> dict[str, float | None]:
    """What the nine terms of one network say, what its residuals hold, and what exchanging parts does."""
    own, exchanged = residual_contents, interchange["exchanged"]["decoder"]
    names = ("interaction", "clock", "history")
    return {
        **picked(outcomes(alignment_terms), OUTCOMES),
        **{f"with_{name}": own["rebuilt"].get(name, {}).get("similarity") for name in ("none", *names)},
        "with_temperature": own["rebuilt"]["temperature"]["similarity"],
        "foreign_words": own["foreign"]["similarity"],
        "foreign_words_accuracy": own["foreign"]["accuracy"],
        **{f"{name}_{side}": own["explained"][side].get(name) for name in names for side in SIDES},
        **{f"residual_variance_{side}": own["share"][side] for side in SIDES},
        **{f"scale_{side}": own["scale"][side] for side in (*SIDES, "scores")},
        **{f"exchanged_{part}": exchanged[part]["variation"] for part in ("temporal", "input", "residual")},
    }
