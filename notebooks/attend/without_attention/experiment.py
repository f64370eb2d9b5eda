"""Without attention: where a network of one vector keeps the words, when it reads them out, how many fit."""

from dataclasses import replace
from itertools import product
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float

from companion.results.config import BaseConfig, Field, Fraction, Positive, Scale
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.without_attention.measure import EFFECTS, WAYS, measure_memory, measure_swap
from notebooks.shared.intervals import Point, each_over_seeds, paired, spearman
from notebooks.shared.plan import Plan, answered, asked, plan_of
from notebooks.shared.suite import each_planned
from notebooks.shared.summaries import rows_of


class Config(BaseConfig):
    """Settings; a model is an architecture × length × training × seed, on the one-to-one task."""

    scale: Scale = "quick"  #: set by the profile: training settings that are not named here
    #: words of a sentence, one number or several; every model has sentences of one length
    length: tuple[Annotated[int, Field(ge=2)], ...] = (4, 8)
    #: of the vocabulary. A sentence holds length × log2(words) bits; the task's own three words would make
    #: most short sentences the same.
    words: Annotated[int, Field(ge=2)] = 8
    #: the recurrence: gru, vanilla, ugrnn. The vector that an LSTM hands over is two.
    cell: Literal["gru", "vanilla", "ugrnn"] = "gru"
    seeds: Positive | None = None  #: models of each kind; as many as the plan has when None
    width: Positive | None = None  #: of states and embeddings
    steps: Positive | None = None  #: updates of every model
    #: part of the updates that AED and a second VED are trained with. Is it room that VED lacks, or
    #: training?.
    less: Fraction = 0.5
    fit_samples: Positive = 2_000  #: training samples that the components are fitted on, at most


# At paper size the plan's training of the one-to-one task is four times as long: copying without attention is
# learned late, and what is asked is what fits, not what is learned first.
PROFILES = {
    "quick": Config(seeds=3, steps=170),
    "paper": Config(scale="paper", length=(5, 10, 15, 20), seeds=5, steps=4_000, fit_samples=10_000),
}


def _plans(config: Config) -> tuple[Plan, ...]:
    """Memory and readout by (label, length); models of a ``less`` label have a part of the updates."""
    kinds = {"VED": ("VED", 1.0), "VED_less": ("VED", config.less), "AED": ("AED", config.less)}
    groups: dict[tuple[str, int], list[ModelSpec]] = {}
    for (label, (architecture, part)), length in product(kinds.items(), config.length):
        options = {"n_words": config.words, "min_length": length, "max_length": length}
        # few short sentences exist; a third at most is held out
        options["n_held_out"] = min(1_200, max(1, config.words**length // 3))
        planned = each_planned(config, "one_to_one", architecture, cell=config.cell, task_options=options)
        groups[label, length] = [replace(spec, steps=max(1, round(spec.steps * part))) for spec in planned]
    measures = (measure_memory, measure_swap)
    return tuple(plan_of(groups, measure, fit_samples=config.fit_samples) for measure in measures)


measurements = asked(_plans)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Memory by place, readout by step, and accuracy by length, of VED and of AED.

    ``gained``: accuracy of VED beyond that of the same networks after a part, ``less``, of the updates.
    """
    values: dict = {}
    tables: dict[str, list[dict]] = {name: [] for name in ("accuracy", "memory", "decoder", "readout")}
    memories, swaps = (answered(plan, store) for plan in _plans(config))
    for (label, length), memory in memories.items():
        if not (swap := swaps.get((label, length))):
            continue
        summary = each_over_seeds(memory, _memory) | each_over_seeds(swap, _swap) | {"seeds": len(memory)}
        values.setdefault(label, {})[f"length_{length}"] = summary
        name = {"kind": label, "length": length, "seeds": len(memory)}
        for table, found in each_over_seeds(memory, _by_place).items():
            tables[table] += [name | row for row in rows_of(found, "position")]
        shares = {"source": ("crossed", "source"), "read": ("crossed", "read"), "own": ("decoder", "source")}
        tables["decoder"] += _by_pair(name, ("step", "position"), memory, shares)
        for way in WAYS:
            effects = {effect: (way, effect) for effect in EFFECTS}
            tables["readout"] += _by_pair(name | {"way": way}, ("position", "step"), swap, effects)
    for length in config.length:
        if all((kind, length) in memories for kind in ("VED", "VED_less")):
            both = (memories[kind, length] for kind in ("VED", "VED_less"))
            gained = paired(*both, lambda m: _memory(m)["token_accuracy"])
            values["VED"][f"length_{length}"]["gained"] = gained
    for found in values.values():
        measured = [length for length in sorted(config.length) if f"length_{length}" in found]
        found |= {"shortest": found[f"length_{measured[0]}"], "longest": found[f"length_{measured[-1]}"]}
    return values, tables


def _by_place(m: dict) -> dict:
    return {"accuracy": dict(enumerate(m["accuracy"])), "memory": dict(enumerate(m["last"]["share"]))}


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
    found = {}
    for way in WAYS:
        moved = np.asarray(m[way]["variation"])
        elsewhere = (moved.sum() - moved.diagonal().sum()) / (moved.size - len(moved))
        on_time = np.asarray(m[way]["flip"])[:, :-1].diagonal().mean()
        found[way] = {"on_time": float(on_time), "elsewhere": float(elsewhere), "in_turn": _in_turn(moved)}
    return found


def _in_turn(moved: Float[np.ndarray, "position step"]) -> float:
    """Nothing is read anywhere where no effect reaches a hundredth: then no position counts."""
    own = (moved.argmax(1) == np.arange(len(moved))) & (moved.max(1) > 0.01)
    return float(own.mean())


def _by_pair(name: dict, places: tuple[str, str], points: list[Point], columns: dict) -> list[dict]:
    """A row an entry of some matrices, each addressed by two keys and averaged over models."""
    means = {column: np.mean([m[part][key] for _, m in points], 0) for column, (part, key) in columns.items()}
    return [
        name | dict(zip(places, at, strict=True)) | {column: float(of[at]) for column, of in means.items()}
        for at in np.ndindex(next(iter(means.values())).shape)
    ]
