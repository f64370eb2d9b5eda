import pytest
import torch

from companion.runs.store import Store


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of trained models for the tests of one file."""
    torch.set_num_threads(1)
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def store(models):
    return Store(models)
