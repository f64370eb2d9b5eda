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


@pytest.fixture
def kill_at():
    """A report that ends a run at an update, by a KeyboardInterrupt."""

    def kill_at(update):
        def report(*told):
            if told[-3] == update:  # (spec,) step, steps, loss
                raise KeyboardInterrupt

        return report

    return kill_at
