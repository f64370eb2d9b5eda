"""The settings of the robustness experiment: factors, their levels, and the models of each."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attnlib.errors import BadInput
from attnlib.experiments.checks import changes_of, check_counts, check_names, take_files
from attnlib.experiments.rungs import spec_of, task_of
from attnlib.training.spec import ModelSpec

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
