import os

import pytest
import torch

from companion.results import registry
from companion.runs.store import Store
from notebooks.shared.intervals import hierarchical_bootstrap
from tests.notebooks.figure_builders import tiny


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of trained models: what one test has trained and measured, no other does again.

    Nor in another process of the same session: a store waits for whoever trains.
    """
    torch.set_num_threads(1)
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each has a folder of its own in that of the session
        base = base.parent
    folder = base / "models"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def store(models):
    return Store(models)


@pytest.fixture(scope="module")
def few_resamples():
    """Bootstraps draw a few times where nobody reads how wide they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hierarchical_bootstrap.__kwdefaults__, "resamples", 20)
        yield


@pytest.fixture(scope="module")
def recording(request, store):
    """The first run of the ``FIGURE`` of a module, at its tiny size."""
    name = request.module.FIGURE
    return store.recording(registry.load(name).measurements(tiny(name))[0].spec)
