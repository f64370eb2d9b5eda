"""The report on a model of the reader's own, made of a Transformer of this book."""

from typing import Annotated

from attnlib.errors import check_known
from companion.results.config import BaseConfig, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.your_own_model.measure import ROWS, measure_report


class Config(BaseConfig):
    """Settings."""

    #: profile of the chapter on Transformers whose first network is looked at
    like: Annotated[str, OneOf(experiment.PROFILES)] = "quick"
    task: str = "reordering"  #: what that network was trained on, such as one_to_one or reordering
    positions: str = "sinusoidal"  #: how it knows positions, such as sinusoidal, relative or rotary
    samples: Positive = 960  #: sentences that go through the model
    batch_size: Positive = 32  #: how many at once

    def check(self) -> None:
        for field in ("task", "positions"):
            check_known(field, getattr(self, field), getattr(experiment.PROFILES[self.like], field))


PROFILES = {"quick": Config(), "paper": Config(like="paper", samples=9_600)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = experiment.specs(experiment.PROFILES[config.like], config.task, config.positions)
    return measurements_of(specs[:1], measure_report, samples=config.samples, batch_size=config.batch_size)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """What the report says: values and tables as in `measure_report`; nothing without its network."""
    measured = next((dict(found) for _, found in answers(measurements(config), store)), {})
    return measured, {name: measured.pop(name, []) for name in ROWS}
