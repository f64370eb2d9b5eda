"""What an experiment asks of each trained model, as a list: so that each can be asked anywhere, as a job."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from random import sample
from typing import TYPE_CHECKING

from attnlib.errors import NotMeasured
from companion.runs.identity import Spec
from companion.runs.measure import Measurement
from companion.runs.spec import ModelSpec
from companion.runs.suite import point

if TYPE_CHECKING:  # it loads torch, which cells that only draw do without
    from companion.runs.store import Store


def measurements_of(
    specs: Iterable[Spec], measure: Callable[..., dict], **settings: object
) -> tuple[Measurement, ...]:
    """The same question to each of several models."""
    return tuple(Measurement(spec, measure, tuple(sorted(settings.items()))) for spec in specs)


def specs_of(measurements: Iterable[Measurement]) -> tuple[Spec, ...]:
    """The models asked, each once, in order."""
    return tuple(
        dict.fromkeys(
            spec for measurement in measurements for spec in (measurement.spec, *measurement.other_specs)
        )
    )


def columns_of(spec: Spec) -> dict[str, object]:
    return point(spec) if isinstance(spec, ModelSpec) else asdict(spec.resolved)


def answers(measurements: Iterable[Measurement], store: "Store") -> list[tuple[dict, dict]]:
    """(columns that name the model, measurement) of every ask, in order; without what is not measured where
    the store does not train. They are asked in random order: experiments that ask the same models at the same
    time then seldom wait for each other.
    """
    listed = list(measurements)
    by_place: dict[int, tuple[dict, dict]] = {}
    for place in sample(range(len(listed)), len(listed)):
        try:
            by_place[place] = (columns_of(listed[place].spec), listed[place].answer(store))
        except NotMeasured:
            continue
    return [by_place[place] for place in sorted(by_place)]
