"""What an experiment asks of each trained model, as a list: so that each can be asked anywhere, as a job."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import NotMeasured
from attnlib.experiments.rungs import point
from attnlib.training.spec import ModelSpec

if TYPE_CHECKING:
    from attnlib.experiments.aggregate import Point
    from attnlib.training.store import Store


@dataclass(frozen=True)
class Ask:
    """One measure of one model; ``settings`` are its further arguments."""

    spec: ModelSpec
    measure: Callable[..., dict]
    settings: tuple[tuple[str, object], ...] = ()

    def answer(self, store: "Store") -> dict:
        """The measurement, made if need be (see :meth:`attnlib.training.store.Store.kept`)."""
        return store.kept(self.spec, self.measure, **dict(self.settings))


def ask(specs: Iterable[ModelSpec], measure: Callable[..., dict], **settings: object) -> tuple[Ask, ...]:
    """The same question to each of several models."""
    return tuple(Ask(spec, measure, tuple(sorted(settings.items()))) for spec in specs)


def specs_of(asks: Iterable[Ask]) -> tuple[ModelSpec, ...]:
    """The models asked, each once, in order."""
    return tuple(dict.fromkeys(ask.spec for ask in asks))


def answers(asks: Iterable[Ask], store: "Store") -> list["Point"]:
    """(columns that name the model, measurement) of every ask.

    A store that does not train leaves out the models it knows nothing of; ``run`` says which they are.
    """
    found = []
    for asked in asks:
        try:
            found.append((point(asked.spec), asked.answer(store)))
        except NotMeasured:
            continue
    return found


def not_measured(asks: Iterable[Ask], store: "Store") -> tuple[ModelSpec, ...]:
    """The models that lack an answer in a store that does not train."""
    lacking = []
    for asked in asks:
        try:
            asked.answer(store)
        except NotMeasured:
            lacking.append(asked.spec)
    return tuple(dict.fromkeys(lacking))
