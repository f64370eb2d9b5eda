"""Weight decay as an axis: how much of the temporal share and of the residuals' part hangs on it."""

from typing import Annotated

from companion.results.config import Attending, Field, Positive, Task, changes_of
from companion.results.measurements import Measurement
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.attend.interchange.measure import measure_interchange
from notebooks.attend.regularisation.measure import measure_residual_contents
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import DIAL, PlannedConfig

PLACE = "Aitken et al. 2021, contribution 1 (the text at hand does not give the regularisation)"
QUESTION = "How much of what residuals do hangs on weight decay?"


class Config(PlannedConfig):
    """Settings; a network is a task × architecture × level of weight decay × seed.

    Attributes:
        architecture: AED, AO.
        weight_decay: levels; the plan's own is 0.
        samples: samples that the contents of residuals are fitted on, and as many to judge them on, at most.
    """

    task: tuple[Task, ...] = ("one_to_one",)
    architecture: tuple[Attending, ...] = ("AED",)
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = (0.0, 1e-3)
    seeds: Positive | None = 3
    samples: Positive = 400


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper",
        task=("one_to_one", "reversal", *DIAL[::2], "scan", "multi30k_en_fr"),
        architecture=("AED", "AO"),
        weight_decay=(0.0, 1e-4, 1e-3, 3e-3, 1e-2),
        fit_samples=25_000,
        samples=1_500,
    ),
}


def spec(config: Config, task: str, architecture: str, level: float, seed: int) -> ModelSpec:
    changes = changes_of(config) | {"weight_decay": level}
    return spec_of(task, architecture, scale=config.scale, seed=seed, **changes)


def specs(config: Config) -> tuple[ModelSpec, ...]:
    return tuple(
        spec(config, task, architecture, level, seed)
        for seed in range(config.seeds or 3)
        for architecture in config.architecture
        for task in config.task
        for level in config.weight_decay
    )


def measurements(config: Config) -> tuple[Measurement, ...]:
    fit, samples = ("fit_samples", config.fit_samples), ("samples", config.samples)
    asked = (
        (measure_alignment_terms, (fit,)),
        (measure_residual_contents, (fit, samples)),
        (measure_interchange, (fit, samples)),
    )
    return tuple(Measurement(own, measure, given) for own in specs(config) for measure, given in asked)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    raise NotImplementedError
