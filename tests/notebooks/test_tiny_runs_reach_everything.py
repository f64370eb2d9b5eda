"""Tiny runs, which take seconds together, train and measure in every way that the results of the book do.

Whoever compares the numbers of all tiny runs before and after an edit has then compared all that computes.
"""

from functools import cache
from importlib import import_module
from inspect import getmembers, isfunction

import pytest

from attnlib.errors import UnknownName
from companion.book.parameters import cell
from companion.paths import PROFILES, ROOT, TRAININGS, module_of, modules_in
from companion.results import registry
from companion.results.config import plain
from companion.results.measurements import specs_of
from companion.results.request import Request
from companion.runs.identity import Spec
from companion.runs.measure import Measurement
from companion.runs.spec import ModelSpec
from tests.notebooks.figure_builders import tiny, tiny_request

DATA = {"task", "data", "dataset", "weights"}  # settings that name what is read; tests of data cover these


@cache
def measurements(profile: str) -> tuple[Measurement, ...]:
    """Return what all experiments measure at a profile."""
    planned = []
    for name in registry.names():
        experiment = registry.load(name)
        planned += experiment.measurements(experiment.PROFILES[profile])
    return tuple(dict.fromkeys(planned))


def measures(profile: str) -> set[str]:
    return {
        f"{measurement.measure.__module__}.{measurement.measure.__name__}"
        for measurement in measurements(profile)
    }


def kind_of_training(spec: Spec) -> str:
    return "model of the suite" if isinstance(spec, ModelSpec) else spec.procedure


def kinds_of_training(profile: str) -> set[str]:
    return {kind_of_training(spec) for spec in specs_of(measurements(profile))}


def choices(profile: str) -> set[tuple[str, str, object]]:
    """Return the settings of trainings that are names or switches, which may lead to code of their own."""
    chosen = set()
    for spec in specs_of(measurements(profile)):
        settings = spec if isinstance(spec, ModelSpec) else spec.resolved
        for name, value in vars(settings).items():
            if isinstance(value, str | bool) and name not in DATA:
                chosen.add((kind_of_training(spec), name, value))
    return chosen


def defined_measures() -> set[str]:
    """Return all functions that are decorated as measurements, by module and name."""
    defined = set()
    for path in ROOT.glob("notebooks/**/*.py"):
        if "\n@measure(" not in path.read_text(encoding="utf-8"):
            continue
        module = module_of(path)
        for name, function in getmembers(import_module(module), isfunction):
            if function.__module__ == module and hasattr(function, "version"):
                defined.add(f"{module}.{name}")
    return defined


def test_every_measure_is_measured():
    assert measures("tiny") == defined_measures()


def test_networks_are_trained_in_every_way_there_is():
    procedures = {path.stem for path in modules_in(TRAININGS)}
    assert kinds_of_training("tiny") == procedures | {"model of the suite"}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_choice_among_settings_of_trainings_is_made(profile):
    assert choices(profile) - choices("tiny") == set()


@pytest.mark.parametrize("name", registry.names())
def test_the_request_of_a_tiny_run_has_its_settings(name):
    assert plain(tiny_request(name).config) == plain(tiny(name))


def test_the_book_has_no_tiny_results():
    with pytest.raises(UnknownName, match="tiny"):
        Request("temporal_share", "tiny")


@pytest.mark.parametrize("name", registry.names())
def test_parameters_of_a_page_do_not_name_tiny_settings(name):
    experiment = registry.load(name)
    assert set(registry.book_profiles(experiment)) == set(PROFILES)
    assert "tiny: " not in cell(experiment.Config, registry.book_profiles(experiment))
