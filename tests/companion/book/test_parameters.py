"""Parameters cells are those that the settings make, and words of the command line become typed values."""

from contextlib import nullcontext
from dataclasses import dataclass, make_dataclass
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from companion.book.parameters import CELL, cell, check_parallel, documented, split_assignments, written
from companion.book.project import Project, discover


@dataclass(frozen=True)
class Base:
    seeds: int = 3  #: networks of each kind
    #: of ``states``. The smaller,
    #: the faster.
    width: int = 8  # not a help: this
    height: int | None = None  #: of ``states``


@dataclass(frozen=True)
class Config(Base):
    scale: str = "quick"  #: set by the profile: sizes.
    task: tuple[str, ...] = ("scan", "reversal")  #: see :func:`~attnlib.training.names`


def test_help_is_read_from_the_comments_and_the_cell_has_its_first_sentence():
    assert documented(Config) == {
        "seeds": "networks of each kind",
        "width": "of states. The smaller, the faster",
        "height": "of states",
        "scale": "set by the profile: sizes",
        "task": "see attnlib.training.names",
    }
    assert cell(Config, {"quick": Config(), "paper": Config(seeds=5, task=())}) == (
        'profile = "quick"\n'
        "seeds = None   # networks of each kind [quick: 3; paper: 5]\n"
        "width = None   # of states [8]\n"
        "height = None  # of states\n"
        "task = None    # see attnlib.training.names [quick: scan, reversal; paper: none]\n"
    )

    silent = make_dataclass("Silent", [("steps", int)], bases=(Base,), frozen=True, kw_only=True)
    with pytest.raises(BadInput, match="Silent: no help for steps in a comment `#:`"):
        documented(silent)


def test_notebooks_have_the_parameters_of_their_experiments():
    """`python -m companion.book.parameters` writes them."""
    for figure in discover(Project(Path(__file__).parents[3])).values():
        assert figure.path.read_text(encoding="utf-8") == written(figure), figure.id
        # Papermill warns of an unknown parameter where a line has a second equals sign, be it in a comment.
        lines = CELL.search(written(figure))["source"].splitlines()
        assert [line for line in lines if line.count("=") > 1] == [], figure.id


def test_assignments():
    assert split_assignments(["task=scan", "path=a=b"]) == {"task": "scan", "path": "a=b"}
    for words, message in ("task", "expected name=value"), ("=1", "expected"), ("a=1 a=2", "given twice"):
        with pytest.raises(BadInput, match=message):
            split_assignments(words.split())


def test_text_files_with_next_to_nothing_in_them_are_refused_by_name(tmp_path):
    source, target = tmp_path / "my.en", tmp_path / "my.fr"
    for text, pairs in [("", 0), ("\n \n", 0), ("one\n" * 9 + "\n", 9), ("one\n" * 10, 10)]:
        source.write_text(text)
        target.write_text(text)
        message = rf"my\.en and .*my\.fr have {pairs} pairs .* at least 10"
        with pytest.raises(BadInput, match=message) if pairs < 10 else nullcontext():
            check_parallel(source, target)
        source.write_text(text + "one\n")
        with pytest.raises(BadInput, match=r"line \d+ of"):
            check_parallel(source, target)
