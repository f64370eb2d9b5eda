import pytest
import torch

from companion.runs.store import Store


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of trained models: what one test has trained and measured, no other does again."""
    torch.set_num_threads(1)
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def store(models):
    return Store(models)
