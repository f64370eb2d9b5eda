"""Parts of states exchanged in the forward pass: do attention and output follow as the shares say?"""

import numpy as np

from companion.results.config import Positive
from companion.results.measurements import Measurement, measurements_of
from companion.runs.store import Store
from companion.runs.suite import point
from notebooks.shared.intervals import by_kind, correlated, each_over_seeds
from notebooks.shared.measure import SIDES, measure_alignment_terms, measure_interchange
from notebooks.shared.plan import by_spec
from notebooks.shared.suite import PAPER_TASKS, SuiteConfig, family, model_specs
from notebooks.shared.translators import has_learned, translator_measurements, translators_that_count

PARTS = ("temporal", "input", "residual")
MOVED = 0.3  # attention that moves by less costs little by construction: nothing else is exchanged


class Config(SuiteConfig):
    """Settings of the task suite, and how much is exchanged."""

    #: held-out samples of each network in whose forward pass parts are exchanged, at most
    samples: Positive = 200
    #: held-out sentences that each translator writes, which tell whether it counts
    translated: Positive = 200


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")
PAPER = {"scale": "paper", "seeds": 3, "fit_samples": 25_000, "samples": 1_500, "translated": 1_000}
PROFILES = {
    "quick": Config(task=QUICK_TASKS),
    "paper": Config(task=PAPER_TASKS, **PAPER),
    "tiny": Config(task=("one_to_one",), seeds=1, width=8, steps=3, fit_samples=100, samples=60),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*_exchanges(config), *translator_measurements(model_specs(config), config.translated))


def _exchanges(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs(config)
    return (
        *measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *measurements_of(specs, measure_interchange, fit_samples=config.fit_samples, samples=config.samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``follows``: Spearman correlations over networks that learned their task, of a part's covariance share
    with what exchanging the part does to attention, and of that with the accuracy that it costs. Intervals
    resample families of tasks."""
    found = by_spec(_exchanges(config), store)
    points = [(point(spec), effects(*both.values())) for spec, both in found.items()]
    counting = translators_that_count(model_specs(config), config.translated, store)
    rows = [
        {**name, "part": part, "accuracy": own["accuracy"]}
        | {"learned": has_learned(name, own["accuracy"], counting)}
        | {what: own[what][part] for what in ("share", "moves", "costs")}
        for name, own in points
        for part in PARTS
    ]
    learned = [row | {"family": family(row["task"])} for row in rows if row["learned"]]
    of_part = {part: [row for row in learned if row["part"] == part] for part in PARTS}
    follows = {part: correlated(own, "share", "moves", by="family") for part, own in of_part.items()}
    moved = [row for row in learned if row["moves"] > MOVED]
    follows |= {
        "output": correlated(learned, "moves", "costs", by="family"),
        "output_where_moved": correlated(moved, "moves", "costs", by="family"),
        "networks": len(learned) // len(PARTS),
    }
    return {"by_task": by_kind(points, each_over_seeds), "follows": follows}, {"effects": rows}


def effects(terms: dict, found: dict) -> dict:
    """One network: a part's share of its own term; how far its exchange moves attention; what it costs."""

    def both(part: str, what: str) -> float:
        return float(np.mean([found["exchanged"][side][part][what] for side in SIDES]))

    names, ways = (*PARTS, "state"), {"exchanged": (*PARTS, "state"), "removed": PARTS}
    return {
        "accuracy": terms["quality"]["token_accuracy"],
        "share": {part: terms["covariance_share"][f"{part}_{part}"] for part in PARTS},
        "moves": {part: both(part, "variation") for part in names},
        "costs": {part: found["accuracy"] - both(part, "accuracy") for part in names},
        **{
            way: {side: {part: found[way][side][part]["variation"] for part in parts} for side in SIDES}
            for way, parts in ways.items()
        },
        "next_step": found["next_step"],
    }
