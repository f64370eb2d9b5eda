"""Without attention: where a network of one vector keeps the words, when it reads them out, how many fit."""

from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np

from attnlib.errors import BadInput
from attnlib.models.config import Cell
from companion.results.config import BaseConfig, Field, Fraction, Positive, Scale
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import seeds_of, spec_of
from notebooks.attend.without_attention.measure import EFFECTS, WAYS, measure_memory, measure_swap
from notebooks.shared.intervals import Point, each_over_seeds
from notebooks.shared.spearman import spearman
from notebooks.shared.summaries import rows_of

PLACE = "Aitken et al. 2021, contribution 3 (architectures with attention and/or recurrence)"
QUESTION = "Without attention: where are the words kept, when are they read out, and how many fit?"
REFERENCE = "AED"
TASK = "one_to_one"


class Config(BaseConfig):
    """Settings; a model is an architecture × length × training × seed, on the one-to-one task.

    Attributes:
        scale: set by the profile: training settings that are not named here.
        length: words of a sentence, one number or several; every model has sentences of one length.
        words: of the vocabulary. A sentence holds length × log2(words) bits; the task's own three words would
            make most short sentences the same.
        cell: the recurrence: gru, lstm, vanilla, ugrnn.
        seeds: models of each kind; as many as the plan has when None.
        width: of states and embeddings; steps: updates of every model.
        less: part of the updates that AED and a second VED are trained with. Is it room that VED lacks, or
            training?
        fit_samples: training samples that the components are fitted on, at most.
    """

    scale: Scale = "quick"
    length: tuple[Annotated[int, Field(ge=2)], ...] = (4, 8)
    words: Positive = 8
    cell: Cell = "gru"
    seeds: Positive | None = None
    width: Positive | None = None
    steps: Positive | None = None
    less: Fraction = 0.5
    fit_samples: Positive = 2_000

    def check(self) -> None:
        if self.words < 2:
            raise BadInput("words is 1; with one word there is nothing to keep")


# At paper size the plan's training of the one-to-one task is four times as long: copying without attention is
# learned late, and what is asked is what fits, not what is learned first.
PROFILES = {
    "quick": Config(seeds=2),
    "paper": Config(scale="paper", length=(5, 10, 15, 20), seeds=5, steps=4_000, fit_samples=10_000),
}


def _groups(config: Config) -> dict[tuple[str, int], tuple[ModelSpec, ...]]:
    """(label, length) → models of every seed; those of a ``less`` label have a part of the updates."""
    kinds = {"VED": ("VED", 1.0), "VED_less": ("VED", config.less), REFERENCE: (REFERENCE, config.less)}
    planned = seeds_of(config.scale, TASK, "VED", config.cell)
    seeds = planned if config.seeds is None else range(config.seeds)
    return {
        (label, length): tuple(_spec(config, architecture, length, seed, part) for seed in seeds)
        for (label, (architecture, part)), length in product(kinds.items(), config.length)
    }


def _spec(config: Config, architecture: str, length: int, seed: int, part: float) -> ModelSpec:
    options = {"n_words": config.words, "min_length": length, "max_length": length}
    # few short sentences exist; a third at most is held out
    options["n_held_out"] = min(1_200, max(1, config.words**length // 3))
    changes = {"width": config.width} if config.width is not None else {}
    named = {"scale": config.scale, "cell": config.cell, "seed": seed}
    spec = spec_of(TASK, architecture, task_options=options, **named, **changes)
    return replace(spec, steps=max(1, round((config.steps or spec.steps) * part)))


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = dict.fromkeys(spec for group in _groups(config).values() for spec in group)
    samples = config.fit_samples
    return measurements_of(specs, measure_memory, fit_samples=samples) + measurements_of(
        specs, measure_swap, fit_samples=samples
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Memory by place, readout by step, and accuracy by length, of VED and of AED."""
    values: dict = {}
    tables: dict[str, list[dict]] = {name: [] for name in ("accuracy", "memory", "decoder", "readout")}
    for (label, length), specs in _groups(config).items():
        memory, swap = (
            answers(measurements_of(specs, measure, fit_samples=config.fit_samples), store)
            for measure in (measure_memory, measure_swap)
        )
        if not memory or not swap:
            continue
        summary = each_over_seeds(memory, _memory) | each_over_seeds(swap, _swap) | {"seeds": len(memory)}
        values.setdefault(label, {})[f"length_{length}"] = summary
        name = {"kind": label, "length": length, "seeds": len(memory)}
        by_place = {"accuracy": lambda m: m["accuracy"], "memory": lambda m: m["last"]["share"]}
        for table, of in by_place.items():
            found = each_over_seeds(memory, lambda m, of=of: dict(enumerate(of(m))))
            tables[table] += [name | row for row in rows_of(found, "position")]
        shares = {"source": ("crossed", "source"), "read": ("crossed", "read"), "own": ("decoder", "source")}
        shares = {column: _mean(memory, *keys) for column, keys in shares.items()}
        tables["decoder"] += _by_pair(name, ("step", "position"), shares)
        for way in WAYS:
            effects = {effect: _mean(swap, way, effect) for effect in EFFECTS}
            tables["readout"] += _by_pair(name | {"way": way}, ("position", "step"), effects)
    for found in values.values():
        measured = [length for length in sorted(config.length) if f"length_{length}" in found]
        found |= {"shortest": found[f"length_{measured[0]}"], "longest": found[f"length_{measured[-1]}"]}
    return values, tables


def _memory(m: dict) -> dict:
    share = m["last"]["share"]
    return {
        "token_accuracy": float(np.mean(m["accuracy"][:-1])),  # without the end mark, which is always last
        "exact_match": m["quality"]["exact_match"],
        "memory": {
            "fitted": m["last"]["fitted"],
            "held_out": m["last"]["held_out"],
            "first": share[0],
            "last": share[-1],
            "order": float(spearman(list(range(len(share))), share)),
        },
        "cancel": float(np.mean(m["crossed"]["cancel"])),
    }


def _swap(m: dict) -> dict:
    return {
        way: {
            "on_time": float(np.asarray(m[way]["flip"])[:, :-1].diagonal().mean()),
            "elsewhere": _elsewhere(m[way]["variation"]),
            "in_turn": _in_turn(m[way]["variation"]),
        }
        for way in WAYS
    }


def _elsewhere(matrix: list[list[float]]) -> float:
    values = np.asarray(matrix)
    return float((values.sum() - values.diagonal().sum()) / (values.size - len(values)))


def _in_turn(matrix: list[list[float]]) -> float:
    """Nothing is read anywhere where no effect reaches a hundredth: then no position counts."""
    values = np.asarray(matrix)
    own = (values.argmax(1) == np.arange(len(values))) & (values.max(1) > 0.01)
    return float(own.mean())


def _mean(points: list[Point], part: str, name: str) -> np.ndarray:
    return np.mean([m[part][name] for _, m in points], axis=0)


def _by_pair(name: dict, places: tuple[str, str], matrices: dict[str, np.ndarray]) -> list[dict]:
    shape = next(iter(matrices.values())).shape
    return [
        name | dict(zip(places, at, strict=True)) | {column: float(of[at]) for column, of in matrices.items()}
        for at in np.ndindex(shape)
    ]
