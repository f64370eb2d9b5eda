"""Parameters cells are those that the settings of the experiments make."""

from pathlib import Path

import pytest

from attnlib.errors import BadInput
from companion.book.parameters import cell, documented, takes_globals, written
from companion.book.project import Project, discover
from companion.results.config import BaseConfig

FIGURES = discover(Project(Path(__file__).parents[3]))


class Base(BaseConfig):
    """Settings.

    Attributes:
        seeds: networks of each kind; width,
            height: of ``states``. The smaller, the faster.
    """

    seeds: int = 3
    width: int = 8
    height: int | None = None


class Config(Base):
    """More settings.

    Attributes:
        scale: set by the profile: sizes.
        task: see :func:`~attnlib.training.names`.

    Not a setting: this.
    """

    scale: str = "quick"
    task: tuple[str, ...] = ("scan", "reversal")


def test_help_is_read_from_the_docstring_and_the_cell_has_its_first_sentence():
    assert documented(Config) == {
        "seeds": "networks of each kind",
        "width": "of states. The smaller, the faster",
        "height": "of states. The smaller, the faster",
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


def test_a_setting_without_help_is_refused():
    class Silent(Base):
        steps: int = 1

    with pytest.raises(BadInput, match="Silent: no help for steps under `Attributes:`"):
        documented(Silent)


@pytest.mark.parametrize("figure", [figure for figure in FIGURES.values() if takes_globals(figure.path)])
def test_a_notebook_has_the_parameters_of_its_experiment(figure):
    """`python -m companion.book.parameters --write` writes them."""
    assert figure.path.read_text(encoding="utf-8") == written(figure)
