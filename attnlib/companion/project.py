"""Where the book's sources and products live: the checkout, found from wherever one stands."""

import os
from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import BadInput

PROFILES = ("quick", "paper")


def find_root() -> Path:
    """The checkout: ``ATTNLIB_ROOT``, else the nearest folder upwards, else where attnlib is installed from.

    Raises:
        BadInput: none of the three holds a Snakefile and a notebooks folder.
    """
    if named := os.environ.get("ATTNLIB_ROOT"):
        candidates = [Path(named)]
    else:
        here = Path.cwd()
        candidates = [here, *here.parents, Path(__file__).resolve().parents[2]]
    for folder in candidates:
        if (folder / "Snakefile").is_file() and (folder / "notebooks").is_dir():
            return folder.resolve()
    raise BadInput(
        f"no checkout of the book at {candidates[0]} (looked for a Snakefile beside a notebooks folder); "
        "go into your clone, or set ATTNLIB_ROOT to it"
    )


@dataclass(frozen=True)
class Project:
    """The paths of one checkout; every product lies under ``build/`` but for the committed paper results."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """Sources of the figures, MyST Markdown."""
        return self.root / "notebooks"

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def models(self) -> Path:
        """Trained models, shared by every profile, figure and run."""
        return self.build / "models"

    @property
    def site(self) -> Path:
        """The page to open."""
        return self.build / "_build" / "html" / "index.html"

    def executed(self, profile: str) -> Path:
        """Executed notebooks; the book shows those of the quick profile."""
        return self.build / ("notebooks" if profile == "quick" else f"notebooks-{profile}")

    def results(self, profile: str) -> Path:
        """Results: built for the quick profile, committed for the paper profile."""
        return self.root / "results" / "paper" if profile == "paper" else self.build / "results" / profile


def current_project() -> Project:
    """The project of :func:`find_root`."""
    return Project(find_root())
