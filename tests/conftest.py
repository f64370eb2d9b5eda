"""How often properties are tried, what is compared, which files come first, and what nobody waits for."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine and run; a time limit per example only measures how busy the machine is.
# Nothing fails for being slow: other machines may be at work on the same cores.
settings.register_profile(
    "full", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)  # for make check
settings.register_profile("few", settings.get_profile("full"), max_examples=3)  # where calls are what counts
settings.load_profile("full")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Compare figures with their pictures in every run: without this option pytest-mpl only draws them."""
    config.option.mpl = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Look for garbage in what tests make alone: modules and ten thousand tests are none, and take long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


RANKS = {"long": 0, "slow": 1}  # of a file, by the marks of its tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the files that take longest: none is then at work long after all others are done."""
    ranks = {}
    for item in items:
        marked = [RANKS[mark.name] for mark in item.iter_markers() if mark.name in RANKS]
        ranks[item.path] = min([*marked, ranks.get(item.path, len(RANKS))])
    items.sort(key=lambda item: ranks[item.path])


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk():
    """What a test writes need not outlive a power cut; to wait until it would takes longer than to write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


# Variables that change while a test runs, without its doing.
NOT_OF_TESTS = {
    "PYTEST_CURRENT_TEST": "pytest says there which test is at which phase",
    "TORCHINDUCTOR_CACHE_DIR": "torch names the folder of its compiler when a model class is first imported",
}


@pytest.fixture(autouse=True)
def environment_is_left_as_it_was():
    """What outlives its test would decide what later tests of the same process find."""
    variables, folder = variables_of_tests(), Path.cwd()
    yield
    changed = variables_of_tests().items() ^ variables.items()
    assert not {name for name, _ in changed}
    assert Path.cwd() == folder


def variables_of_tests() -> dict[str, str]:
    """Return all variables but those that others set."""
    return {name: value for name, value in os.environ.items() if name not in NOT_OF_TESTS}
