"""Weight decay as an axis: how much of the temporal share and of the residuals' part hangs on it."""

from dataclasses import replace
from itertools import product
from typing import Annotated

from companion.results.config import AboveZero, Attending, Field, Positive, Task, changes_of
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.attend.regularisation.measure import SIDES, measure_residual_contents
from notebooks.shared.interchange import measure_interchange
from notebooks.shared.intervals import Point, interval_of, nested
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import DIAL, PlannedConfig
from notebooks.shared.summaries import each_paired, summarised

LEARNED = 0.95  # word accuracy from which on a network has learned a made task
MEASURES = (measure_alignment_terms, measure_residual_contents, measure_interchange)


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
    found = {}
    for seed, architecture in product(range(config.seeds or 3), config.architecture):
        for task, level in product(config.task, config.weight_decay):
            changes = changes_of(config) | {"weight_decay": level}
            spec = spec_of(task, architecture, scale=config.scale, seed=seed, **changes)
            columns = {"task": task, "architecture": architecture, "weight_decay": level, "seed": seed}
            found[spec] = columns
    return found


def others(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """Networks of the first task without decay, of other widths or training lengths, with their columns."""
    found = {}
    for seed in range(config.seeds or 3):
        plan = spec_of(config.task[0], "AED", scale=config.scale, seed=seed, **changes_of(config))
        for width in sorted({plan.width, *config.widths}):
            found[replace(plan, width=width)] = {"factor": "width", "level": width, "seed": seed}
        for length in config.length:
            longer = replace(plan, steps=max(1, round(length * plan.steps)))
            found[longer] = {"factor": "length", "level": length, "seed": seed}
    return found


def measurements(config: Config) -> tuple[Measurement, ...]:
    fit, samples = {"fit_samples": config.fit_samples}, {"samples": config.samples}
    along, rest = axis(config), [spec for spec in others(config) if spec not in axis(config)]
    return (
        *measurements_of((*along, *rest), measure_alignment_terms, **fit),
        *measurements_of(along, measure_residual_contents, **fit, **samples),
        *measurements_of(along, measure_interchange, **fit, **samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Outcomes by task, architecture and level; the change that decay makes; width and training length.

    ``decay`` compares, seed by seed, the strongest level at which every network has learned its task with no
    decay at all. A network of which a measure is missing is left out.
    """
    found: dict[ModelSpec, dict[str, dict]] = {}
    for measurement in measurements(config):
        for _, measured in answers([measurement], store):
            found.setdefault(measurement.spec, {})[measurement.name] = measured
    whole = {spec: own for spec, own in found.items() if len(own) == len(MEASURES)}
    groups: dict[tuple[str, str], dict[float, list[Point]]] = {}
    rows = []
    for spec, columns in axis(config).items():
        if spec in whole:
            rows.append(columns | outcomes(whole[spec]["alignment_terms"]) | contents(whole[spec]))
            own = groups.setdefault((columns["task"], columns["architecture"]), {})
            numbers = {name: value for name, value in rows[-1].items() if name not in columns}
            own.setdefault(columns["weight_decay"], []).append((columns, numbers))
    levels = {(*names, level_key(at)): points for names, own in groups.items() for at, points in own.items()}
    values = {
        "levels": summarised(levels, dict),
        "decay": nested({names: by_decay(own) for names, own in groups.items()}),
        "factors": summarised(_by_factor(config, found), dict),
    }
    return values, {"networks": rows}


def by_decay(levels: dict[float, list[Point]]) -> dict:
    """Every outcome at the strongest level that all networks have learned less that without decay, paired."""
    none = levels.get(0.0, [])
    learned = [level for level, points in levels.items() if level and _all_learned(points)]
    if not learned or not _all_learned(none):
        return {"level": None, **{name: interval_of() for _, numbers in none[:1] for name in numbers}}
    return {"level": max(learned), **each_paired(levels[max(learned)], none, dict)}


def _all_learned(points: list[Point]) -> bool:
    return bool(points) and all(numbers["accuracy"] >= LEARNED for _, numbers in points)


def _by_factor(config: Config, found: dict) -> dict[tuple[str, str], list[Point]]:
    groups: dict[tuple[str, str], list[Point]] = {}
    for spec, columns in others(config).items():
        if "alignment_terms" in found.get(spec, {}):
            point = (columns, outcomes(found[spec]["alignment_terms"]))
            groups.setdefault((columns["factor"], level_key(columns["level"])), []).append(point)
    return groups


def level_key(level: float) -> str:
    """A level as part of a dotted key: ``0p001`` for 0.001."""
    return f"{level:g}".replace(".", "p")


def outcomes(terms: dict) -> dict[str, float | None]:
    """What the nine terms of one network say."""
    shares, rebuilt = terms["covariance_share"], terms["substitution"]
    return {
        "accuracy": terms["quality"]["token_accuracy"],
        "exact_match": terms["quality"]["exact_match"],
        "typicality": terms["typicality"]["value"],
        "temporal_share": shares["temporal_temporal"],
        "input_share": shares["input_input"],
        "residual_share": sum(share for pair, share in shares.items() if "residual" in pair),
        "no_residual": rebuilt["no_residual"]["similarity"],
        "no_residual_argmax": rebuilt["no_residual"]["argmax_agreement"],
        "temporal_only": rebuilt["temporal_only"]["similarity"],
        "temporal_only_argmax": rebuilt["temporal_only"]["argmax_agreement"],
        "uniform": rebuilt["uniform"]["similarity"],
    }


def contents(found: dict[str, dict]) -> dict[str, float | None]:
    """What its residuals hold, and what exchanging parts of the query does to attention."""
    own, exchanged = found["residual_contents"], found["interchange"]["exchanged"]["decoder"]
    names = ("interaction", "clock", "history")
    return {
        **{f"with_{name}": own["rebuilt"].get(name, {}).get("similarity") for name in ("none", *names)},
        "with_temperature": own["rebuilt"]["temperature"]["similarity"],
        "foreign_words": own["foreign"]["similarity"],
        "foreign_words_accuracy": own["foreign"]["accuracy"],
        **{f"{name}_{side}": own["explained"][side].get(name) for name in names for side in SIDES},
        **{f"residual_variance_{side}": own["share"][side] for side in SIDES},
        **{f"scale_{side}": own["scale"][side] for side in (*SIDES, "scores")},
        **{f"exchanged_{part}": exchanged[part]["variation"] for part in ("temporal", "input", "residual")},
    }
