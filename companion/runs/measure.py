"""Measurements: functions with a name and a version, and one of them asked of one trained network.

.. code-block:: python

    @measure(version=1, columns=READOUT)
    def measure_readout(trained: TrainedModel, fit_samples: int) -> dict: ...

``columns`` says what the numbers of its record are, see :mod:`companion.runs.columns`. The archive holds what
a measurement found under its name, its settings and its version. The version is an integer that its author
raises, with a line in the changelog, when the meaning of the numbers changes. A rename of a variable, a
faster sum or a merge of two modules raises nothing; ``make same`` fails where a digit moved and no version
did.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from companion.runs.columns import Columns
from companion.runs.identity import Spec, digest, plain, run_id

Measure = Callable[..., dict]
_PREFIX = "measure_"


def measure(*, version: int, columns: Columns | None = None) -> Callable[[Measure], Measure]:
    """Make a function a measurement: ``measure_readout`` is called ``readout`` in the archive.

    Args:
        version: raised by hand when the meaning of the numbers changes.
        columns: of the record that it returns, by name. A name with dots leads into nested dictionaries.
    """

    def registered(function: Measure) -> Measure:
        function.version = version
        function.columns = columns or {}
        return function

    return registered


def name_of(function: Measure) -> str:
    return function.__name__.removeprefix(_PREFIX)


def version_of(function: Measure) -> int:
    """Raises TypeError: the function is no measurement."""
    if not hasattr(function, "version"):
        raise TypeError(f"{function.__name__} is no measurement; put @measure(version=1) above it")
    return function.version


@cache
def _settings_of(function: Measure) -> tuple[tuple[str, object], ...]:
    """The settings of a measurement that have a default, with it."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        (parameter.name, parameter.default)
        for parameter in parameters
        if parameter.default is not parameter.empty
    )


class Answering(Protocol):
    """What a measurement asks of a :class:`~companion.runs.store.Store`, which knows measurements itself."""

    def cached(
        self, spec: Spec, measure: Measure, *, other_specs: tuple[Spec, ...] = (), **settings: object
    ) -> dict: ...


@dataclass(frozen=True)
class Measurement:
    """One measurement of one network.

    Attributes:
        spec: the run that made the network.
        measure: the function, of the network, the ``other_specs``' networks and the settings.
        settings: (name, value) pairs, sorted; those that are left out have the function's defaults.
        other_specs: runs of further networks that the function is given after the first.
    """

    spec: Spec
    measure: Measure
    settings: tuple[tuple[str, object], ...] = ()
    other_specs: tuple[Spec, ...] = ()

    @property
    def name(self) -> str:
        """The name in the archive: ``readout`` of ``measure_readout``."""
        return name_of(self.measure)

    @property
    def version(self) -> int:
        return version_of(self.measure)

    @property
    def question(self) -> dict[str, object]:
        """What is measured of a run, without the version: its name, every setting, and the other runs."""
        settings = dict(_settings_of(self.measure)) | dict(self.settings)
        question = {"measure": self.name, "settings": plain(settings)}
        others = [run_id(spec) for spec in self.other_specs]
        if others:
            question["with"] = others
        return question

    @property
    def id(self) -> str:
        """A name for this measurement of this run at today's version."""
        content = {"run": run_id(self.spec), "version": self.version} | self.question
        return f"{self.name}-{digest(content)}"

    def answer(self, store: "Answering") -> dict:
        """Return the measurement, made if need be; see :meth:`companion.runs.store.Store.cached`."""
        together = {"other_specs": self.other_specs} if self.other_specs else {}
        return store.cached(self.spec, self.measure, **together, **dict(self.settings))


def versions(measurements: Iterable[Measurement]) -> dict[str, int]:
    """The version of each kind of measurement, by name."""
    return dict(sorted({(measurement.name, measurement.version) for measurement in measurements}))
