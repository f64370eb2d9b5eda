"""The ladder: tasks from a fixed diagonal to attention that depends on the sample, and their training."""

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.models.config import Architecture, Cell
from attnlib.tasks import registry
from attnlib.training.spec import ModelSpec


@dataclass(frozen=True)
class Training:
    """How a task's models are trained at one profile, and what of the task is used."""

    steps: int
    batch_size: int = 128
    learning_rate: float = 2e-3
    task_options: tuple[tuple[str, object], ...] = ()


# Quick models are small and stop early, but after attention has taken its form. The text at hand gives no
# sizes or steps: these are our choice. 2,000 steps are ten epochs of Multi30k; a vocabulary of 3,000 words
# keeps the readout, most of the cost, affordable on two cores.
TRAINING: dict[str, dict[str, Training]] = {
    "quick": {
        "one_to_one": Training(400, learning_rate=5e-3),
        "scan": Training(500, learning_rate=5e-3),
        "multi30k_en_fr": Training(800, 64, 5e-3, task_options=(("max_words", 2_000),)),
    },
    "paper": {
        "one_to_one": Training(2_000),
        "scan": Training(3_000),
        "scan_extended": Training(3_000),
        "multi30k_en_fr": Training(2_000, task_options=(("max_words", 3_000),)),
    },
}
# Tasks not named above, such as the reader's own text.
OTHER = {"quick": Training(500, learning_rate=5e-3), "paper": Training(2_000)}


PAPER_TASKS = ("one_to_one", "scan", "scan_extended", "multi30k_en_fr")


@dataclass(frozen=True)
class LadderConfig:
    """Settings of an experiment over the ladder. A point is a task × architecture × cell × seed.

    Attributes:
        task: rungs of the ladder, by name.
        architecture: ``AED``, ``AO``; VED has no attention to analyse.
        cell: recurrent cells of AED; AO has none.
        seeds: models of each kind, seeds 0 … seeds − 1.
        width: of states and embeddings.
        scale: ``quick`` or ``paper``: which training settings and data sizes are used.
        steps: updates of every model, in place of the task's own number.
        embedding_scale: standard deviation of the embeddings at the start of training.
        fit_samples: training samples that the components are fitted on, at most.
        source, target: two line-parallel text files to use as the task (both or neither).
    """

    task: tuple[str, ...] = ("one_to_one", "scan", "multi30k_en_fr")
    architecture: tuple[str, ...] = ("AED", "AO")
    cell: tuple[str, ...] = ("gru",)
    seeds: int = 3
    width: int = 64
    scale: str = "quick"
    steps: int | None = None
    embedding_scale: float = 0.3
    fit_samples: int = 4_000
    source: Path | None = None
    target: Path | None = None

    def __post_init__(self) -> None:
        if (self.source is None) != (self.target is None):
            raise BadInput(
                "parameters source and target go together: two text files, line by line translations"
            )
        if self.source is not None:
            if self.task not in (LadderConfig.task, PAPER_TASKS, ("parallel",)):
                raise BadInput(
                    f"parameters source and target are a task of their own; leave out task={self.task}"
                )
            object.__setattr__(self, "task", ("parallel",))
        for kind, given, known in (
            ("task", self.task, registry.names()),
            ("architecture", self.architecture, [name for name in get_args(Architecture) if name != "VED"]),
            ("cell", self.cell, get_args(Cell)),
            ("scale", (self.scale,), tuple(TRAINING)),
        ):
            for name in given:
                if name not in known:
                    raise UnknownName(kind, name, known)
        if self.task == ("parallel",) and self.source is None:
            raise BadInput("task 'parallel' needs two files: source=my.en and target=my.fr")
        for name in ("seeds", "width", "fit_samples", "steps"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.width % 2 and "AO" in self.architecture:
            raise BadInput(f"width {self.width} is odd; the sinusoidal positions of AO need an even one")
        if not 0 < self.embedding_scale < math.inf:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive and finite")


PROFILES = {
    "quick": LadderConfig(),
    "paper": LadderConfig(
        task=PAPER_TASKS,
        seeds=3,
        width=128,
        scale="paper",
        fit_samples=25_000,
    ),
}


def model_specs(config: LadderConfig) -> tuple[ModelSpec, ...]:
    """The models behind an experiment, each once, in the order of task, architecture, cell, seed."""
    specs = {}
    for task, architecture, cell, seed in product(
        config.task, config.architecture, config.cell, range(config.seeds)
    ):
        training = TRAINING[config.scale].get(task, OTHER[config.scale])
        options = dict(training.task_options)
        if config.source is not None:
            options |= {"source": str(config.source.resolve()), "target": str(config.target.resolve())}
        spec = ModelSpec(
            task=task,
            architecture=architecture,
            steps=training.steps if config.steps is None else config.steps,
            cell="gru"
            if architecture == "AO"
            else cell,  # AO has no cell: one model, whatever the cells asked for
            width=config.width,
            batch_size=training.batch_size,
            learning_rate=training.learning_rate,
            embedding_scale=config.embedding_scale,
            seed=seed,
            task_options=tuple(sorted(options.items())),
        )
        specs[spec] = None
    return tuple(specs)


def point(spec: ModelSpec) -> dict[str, object]:
    """The columns that name a point in a table."""
    cell = "none" if spec.architecture == "AO" else spec.cell
    return {"task": spec.task, "architecture": spec.architecture, "cell": cell, "seed": spec.seed}
