"""Without attention: where a network of one vector keeps the words, when it reads them out, how many fit."""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from attnlib.errors import BadInput
from companion.results.aggregate import Point, each_over_seeds, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.results.checks import check_counts, check_names
from companion.results.spearman import spearman
from companion.runs.rungs import seeds_of, spec_of
from companion.runs.spec import ModelSpec
from notebooks.attend.without_attention.measure import EFFECTS, WAYS, measure_memory, measure_swap

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Aitken et al. 2021, contribution 3 (architectures with attention and/or recurrence)"
QUESTION = "Without attention: where are the words kept, when are they read out, and how many fit?"
REFERENCE = "AED"
TASK = "one_to_one"


@dataclass(frozen=True)
class Config:
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

    scale: str = "quick"
    length: tuple[int, ...] = (4, 8)
    words: int = 8
    cell: str = "gru"
    seeds: int | None = None
    width: int | None = None
    steps: int | None = None
    less: float = 0.5
    fit_samples: int = 2_000

    def __post_init__(self) -> None:
        check_names(self)
        check_counts(self, "words")
        if not self.length or min(self.length) < 2:
            raise BadInput(f"length is {self.length}; it takes one number or several, each at least 2")
        if not 0 < self.less <= 1:
            raise BadInput(f"less is {self.less}; it must be above 0 and at most 1")
        if self.words < 2:
            raise BadInput("words is 1; with one word there is nothing to keep")


# At paper size the plan's training of the one-to-one task is four times as long: copying without attention is
# learned late, and what is asked is what fits, not what is learned first.
PROFILES = {
    "quick": Config(seeds=2),
    "paper": Config(scale="paper", length=(5, 10, 15, 20), seeds=5, steps=4_000, fit_samples=10_000),
}


def _spec(config: Config, architecture: str, length: int, seed: int, part: float) -> ModelSpec:
    changes = {"width": config.width} if config.width is not None else {}
    spec = spec_of(
        TASK,
        architecture,
        scale=config.scale,
        cell=config.cell,
        seed=seed,
        task_options={"n_words": config.words, "min_length": length, "max_length": length}
        | _held_out(config.words, length),
        **changes,
    )
    steps = spec.steps if config.steps is None else config.steps
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return ModelSpec(**fields | {"steps": max(1, round(steps * part))})


def _held_out(words: int, length: int) -> dict[str, int]:
    """Few short sentences exist; a third at most is held out."""
    return {"n_held_out": min(1_200, max(1, words**length // 3))}


def _kinds(config: Config) -> list[tuple[str, str, float]]:
    """(label, architecture, part of the updates)."""
    return [("VED", "VED", 1.0), ("VED_less", "VED", config.less), (REFERENCE, REFERENCE, config.less)]


def _groups(config: Config) -> dict[tuple[str, int], tuple[ModelSpec, ...]]:
    planned = (
        seeds_of(config.scale, TASK, "VED", config.cell) if config.seeds is None else range(config.seeds)
    )
    return {
        (label, length): tuple(_spec(config, architecture, length, seed, part) for seed in planned)
        for (label, architecture, part), length in product(_kinds(config), config.length)
    }


def asks(config: Config) -> tuple[Ask, ...]:
    """What is asked of each model: where words are, and when they are read out."""
    specs = dict.fromkeys(spec for group in _groups(config).values() for spec in group)
    return tuple(
        asked
        for measure in (measure_memory, measure_swap)
        for asked in ask(specs, measure, fit_samples=config.fit_samples)
    )


def models(config: Config) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Memory by place, readout by step, and accuracy by length, of VED and of AED.

    Returns:
        values, intervals over seeds by kind (VED, VED_less, AED) and length, the ``shortest`` and ``longest``
        again: see :func:`_memory` and :func:`_swap`. Tables ``accuracy``, ``memory``, ``decoder``,
        ``readout``: means over seeds by place, with intervals where they are drawn.
    """
    values: dict = {}
    tables: dict[str, list[dict]] = {name: [] for name in ("accuracy", "memory", "decoder", "readout")}
    for (label, length), specs in _groups(config).items():
        memory, swap = (
            answers(ask(specs, measure, fit_samples=config.fit_samples), store)
            for measure in (measure_memory, measure_swap)
        )
        if not memory or not swap:
            continue
        summary = each_over_seeds(memory, _memory) | each_over_seeds(swap, _swap) | {"seeds": len(memory)}
        values.setdefault(label, {})[f"length_{length}"] = summary
        name = {"kind": label, "length": length, "seeds": len(memory)}
        tables["accuracy"] += _by_place(name, memory, lambda m: m["accuracy"], "position")
        tables["memory"] += _by_place(name, memory, lambda m: m["last"]["share"], "position")
        tables["decoder"] += _decoder_records(name, memory)
        tables["readout"] += _readout_records(name, swap)
    for found in values.values():
        measured = [length for length in sorted(config.length) if f"length_{length}" in found]
        found |= {"shortest": found[f"length_{measured[0]}"], "longest": found[f"length_{measured[-1]}"]}
    return values, tables


def _memory(m: dict) -> dict:
    """What is kept: R² of the last encoder state on its words, and the share of each.

    ``memory.order`` is the rank correlation of share and position, −1 where the earlier is the louder.
    """
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
    """What exchanging a word does, by way.

    ``on_time``: the prediction of the right step is exchanged; ``elsewhere``: mean over the other steps;
    ``in_turn``: share of positions whose largest effect is at their own step.
    """
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


def _by_place(name: dict, points: list[Point], measured, place: str) -> list[dict]:
    """A row for each place of a list, with the interval over seeds."""
    places = range(len(measured(points[0][1])))
    return [
        name | {place: i} | over_seeds(points, lambda m, i=i: measured(m)[i]) for i in places
    ]  # value, low, high, n


def _mean(points: list[Point], measured) -> np.ndarray:
    return np.mean([measured(m) for _, m in points], axis=0)


def _decoder_records(name: dict, points: list[Point]) -> list[dict]:
    """Mean over seeds of the share of h^D_s that each source word and each word read explains."""
    source, read, own = (
        _mean(points, lambda m, k=keys: m[k[0]][k[1]])
        for keys in (("crossed", "source"), ("crossed", "read"), ("decoder", "source"))
    )
    return [
        name
        | {"step": step, "position": position, "source": float(source[step, position])}
        | {"read": float(read[step, position]), "own": float(own[step, position])}
        for step, position in np.ndindex(source.shape)
    ]


def _readout_records(name: dict, points: list[Point]) -> list[dict]:
    """Mean over seeds of each effect of exchanging source position t on decoder step s."""
    records = []
    for way in WAYS:
        effects = {effect: _mean(points, lambda m, e=effect: m[way][e]) for effect in EFFECTS}  # noqa: B023
        records += [
            name
            | {"way": way, "position": t, "step": s}
            | {effect: float(matrix[t, s]) for effect, matrix in effects.items()}
            for t, s in np.ndindex(effects["margin"].shape)
        ]
    return records
