"""Where the book's sources and products live: the checkout, found from wherever one stands."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, UnknownName
from companion.paths import RESULTS

if TYPE_CHECKING:
    from companion.results.request import Request


AUDIT_ENDS = "_audit"


def audit_of(figure: str) -> str:
    """Return the page of the audit part that a chapter's own notebook draws.

    Example:
        >>> audit_of("primer/one_step")
        'primer/one_step_audit'
    """
    return f"{figure}{AUDIT_ENDS}"


def figure_of(page: str) -> str:
    """Return the figure whose notebook makes a page: of a page that `audit_of` names, its chapter's.

    Example:
        >>> figure_of("primer/one_step_audit"), figure_of("primer/one_step")
        ('primer/one_step', 'primer/one_step')
    """
    return page.removesuffix(AUDIT_ENDS)


def find_root() -> Path:
    """The checkout: ``ATTNLIB_ROOT``, else the nearest folder upwards, else where attnlib is installed from.

    Raises BadInput: none of the three holds a Snakefile and a notebooks folder.
    """
    named, here = os.environ.get("ATTNLIB_ROOT"), Path.cwd()
    candidates = [Path(named)] if named else [here, *here.parents, Path(__file__).resolve().parents[2]]
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
    notebooks = property(lambda self: self.root / "notebooks")
    build = property(lambda self: self.root / "build")
    models = property(lambda self: self.build / "models")
    site = property(lambda self: self.build / "_build" / "html" / "index.html")

    def executed(self, profile: str) -> Path:
        """Executed notebooks; the book shows those of the quick profile."""
        return self.build / ("notebooks" if profile == "quick" else f"notebooks-{profile}")

    def results(self, profile: str) -> Path:
        """Results: built for the quick profile, committed for the paper profile."""
        return self.root / RESULTS[profile]

    def notebook_of(self, request: "Request") -> Path:
        if request.parameters:
            return self.root / request.folder / f"{request.experiment}.ipynb"
        return self.executed(request.profile) / f"{request.figure}.ipynb"


def current_project() -> Project:
    return Project(find_root())


def folder_to_write(folder: Path) -> Path:
    """The folder, made where it was not. Raises BadInput: it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = "permission denied"
    except OSError as error:
        reason = error.strerror
    raise BadInput(f"cannot write into {folder}: {reason}; the book is built there")


# The figures of the book: one notebook each, found by where they lie.


@dataclass(frozen=True)
class Figure:
    """A notebook below ``notebooks/``: ``attend/temporal_share``, from experiment ``temporal_share``."""

    id: str
    path: Path

    @property
    def experiment(self) -> str:
        return self.id.rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        """The first heading of the notebook, or its id."""
        return self._said(r"^# +(.*\S)") or self.id

    @property
    def place(self) -> str:
        """Where in the papers its question comes from, as the front matter says it."""
        return self._said(r"^place: +(.*\S)").strip('"')

    @property
    def part(self) -> str:
        """The part of the book that it belongs to, such as ``II``."""
        return self._said(r"^part: +(.*\S)")

    def _said(self, line: str) -> str:
        match = re.search(line, self.path.read_text(encoding="utf-8"), re.MULTILINE)
        return match[1] if match else ""


def discover(project: Project) -> dict[str, Figure]:
    """Every figure by id, in the order of their ids.

    Raises BadInput: two figures end in the same name, and so would share an experiment's results.
    """
    by_experiment: dict[str, Figure] = {}
    for path in sorted(project.notebooks.rglob("*.md")):
        place = path.relative_to(project.notebooks).with_suffix("").as_posix()
        if place.startswith(".") or "/." in place:
            continue
        figure = Figure(place, path)
        other = by_experiment.setdefault(figure.experiment, figure)
        if other is not figure:
            both = f"{other.id} and {figure.id} both end in {figure.experiment!r}, the name of an experiment"
            raise BadInput(f"{both}; rename one of the notebooks")
    return {figure.id: figure for figure in by_experiment.values()}


def find(project: Project, name: str) -> Figure:
    """The figure called ``name``; its last part, or the path of its notebook, will do as well.

    Raises UnknownName: there is none; the message offers the nearest.
    """
    figures = discover(project)
    wanted = name.removeprefix("notebooks/").removesuffix(".md")
    for figure in figures.values():
        if wanted in (figure.id, figure.experiment):
            return figure
    raise UnknownName("figure", name, figures)


def find_all(project: Project, names: Iterable[str]) -> list[Figure]:
    """The figures with these names or patterns, such as ``attend/*``, each once.

    Raises UnknownName: nothing has the name; no figure fits the pattern.
    """
    figures = discover(project)
    chosen: dict[str, Figure] = {}
    for name in names:
        if not re.search(r"[*?\[]", name):
            figure = find(project, name)
            chosen[figure.id] = figure
            continue
        matching = {
            figure.id: figure
            for figure in figures.values()
            if fnmatchcase(figure.id, name) or fnmatchcase(figure.experiment, name)
        }
        if not matching:
            raise UnknownName("figure", name, figures)
        chosen |= matching
    return list(chosen.values())


def minutes(folder: Path, experiment: str) -> float | None:
    """Minutes that a result took, training included; None when it has not run or does not say."""
    path = folder / f"{experiment}.provenance.json"
    try:
        provenance = json.loads(path.read_text(encoding="utf-8"))
        computing, training = provenance["seconds"], provenance.get("training_seconds", 0.0)
        # A process that trained and computed has counted its trainings already.
        return (computing if computing >= training else computing + training) / 60
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
