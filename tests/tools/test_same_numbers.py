"""Whole comparisons of two commits, in a repository of its own, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from tests.companion.book.book_builders import copied, output_of
from tools.same_numbers import checkout, commit_of

COMMAND = [sys.executable, "-m", "tools.same_numbers", "HEAD"]


def test_an_unknown_base_is_refused_with_the_way_out():
    with pytest.raises(BadInput, match="git fetch --unshallow"):
        commit_of("0" * 40)


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, input="").stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """A repository whose one commit is the base, and whose checkout has the same code."""
    folder = tmp_path_factory.mktemp("repository")
    copied(folder, ".gitignore", "attnlib", "companion", "notebooks", "tools")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "base")
    return folder


def compared(repository: Path, experiment: str, code: int) -> str:
    """Compare an experiment with the base, and check that the worktree of the base is gone."""
    variables = {"PYTHONPATH": str(repository), "ATTNLIB_ROOT": str(repository)}
    output = output_of([*COMMAND, "--experiment", experiment], repository, code=code, **variables)
    assert list((repository / ".git").glob("worktrees/*")) == []
    return output


@pytest.mark.slow
def test_equal_code_is_not_run(repository):
    assert "the code is that of" in compared(repository, "readout", code=0)


BREAKS = [
    pytest.param(
        "readout", "companion/runs/spec.py", "clip: float = 1.0", "clip: float = 0.9",
        "other default: encoder_decoder (version 1): clip was 1.0 and is 0.9", id="a default",
    ),
    pytest.param(
        "temporal_formation", "attnlib/models/encoder_decoder.py",
        "end > TABLE_ROWS", "end > TABLE_ROWS // 6",
        "differs: temporal_formation of", id="a limit that is caught",
    ),
    pytest.param(
        "readout", "attnlib/models/encoder_decoder.py",
        "weights @ encoder_states", "weights.flip(-1) @ encoder_states.flip(-2)",
        "differs: network", id="an order of summing",
    ),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("experiment", "file", "old", "new", "expected"), BREAKS)
def test_code_that_is_broken_on_purpose_fails(repository, experiment, file, old, new, expected):
    path = repository / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    try:
        assert expected in compared(repository, experiment, code=1)
    finally:
        path.write_text(text, encoding="utf-8")


@pytest.mark.long
def test_an_edit_that_moves_nothing_passes(repository):
    path = repository / "notebooks" / "shared" / "intervals.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\nUNUSED = 1\n", encoding="utf-8")
    try:
        assert "all is well" in compared(repository, "readout", code=0)
    finally:
        path.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_a_commit_without_tiny_runs_is_refused(repository, monkeypatch):
    monkeypatch.setattr("tools.same_numbers.ROOT", repository)
    empty = git(repository, "mktree").strip()
    commit = git(repository, "commit-tree", empty, "-m", "early").strip()
    with pytest.raises(BadInput, match="has no tiny runs"), checkout(commit):
        pass
