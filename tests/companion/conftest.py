"""What the tests of this room share."""

import pytest
import torch

from companion.book.project import Project


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout without figures, which the commands find."""
    root = tmp_path / "checkout"
    (root / "notebooks" / "attend").mkdir(parents=True)
    (root / "Snakefile").touch()
    monkeypatch.setenv("ATTNLIB_ROOT", str(root))
    return Project(root)
