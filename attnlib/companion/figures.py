"""The figures of the book: one notebook each, found by where they lie."""

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attnlib.companion.project import Project
from attnlib.errors import BadInput, UnknownName


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
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                return line[2:].strip()
        return self.id


def discover(project: Project) -> dict[str, Figure]:
    """Every figure by id, in the order of their ids.

    Raises:
        BadInput: two figures end in the same name, and so would share an experiment's results.
    """
    figures: dict[str, Figure] = {}
    owner: dict[str, str] = {}
    for path in sorted(project.notebooks.rglob("*.md")):
        if any(part.startswith(".") for part in path.relative_to(project.notebooks).parts):
            continue
        figure = Figure(path.relative_to(project.notebooks).with_suffix("").as_posix(), path)
        if figure.experiment in owner:
            raise BadInput(
                f"{owner[figure.experiment]} and {figure.id} both end in {figure.experiment!r}, the name of "
                "an experiment; rename one of the notebooks"
            )
        owner[figure.experiment] = figure.id
        figures[figure.id] = figure
    return figures


def find(project: Project, name: str) -> Figure:
    """The figure called ``name``; its last part, or the path of its notebook, will do as well.

    Raises:
        UnknownName: there is none; the message offers the nearest.
    """
    figures = discover(project)
    wanted = name.removeprefix("notebooks/").removesuffix(".md")
    for figure in figures.values():
        if wanted in (figure.id, figure.experiment):
            return figure
    raise UnknownName("figure", name, figures)


def check_profile(name: str, options: Iterable[str]) -> str:
    """``name`` itself when it is one of ``options``.

    Raises:
        UnknownName: it is not.
    """
    options = tuple(options)
    if name not in options:
        raise UnknownName("profile", name, options)
    return name


def place_in_paper(figure: Figure, project: Project) -> str:
    """The experiment's ``PLACE``, read from its source: importing it would wait for torch.

    >>> # PLACE = "Aitken et al. 2021, Figure 2" in attnlib/experiments/alignment_breakdown.py
    """
    module = project.root / "attnlib" / "experiments" / f"{figure.experiment}.py"
    if not module.is_file():
        return ""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(isinstance(target, ast.Name) and target.id == "PLACE" for target in targets):
            return str(ast.literal_eval(node.value))
    return ""


def minutes(folder: Path, experiment: str) -> float | None:
    """Minutes that a result took, training included, from the provenance beside it.

    Returns:
        None when it has not run, or its provenance does not say.
    """
    path = folder / f"{experiment}.provenance.json"
    if not path.is_file():
        return None
    provenance = json.loads(path.read_text(encoding="utf-8"))
    computing, training = provenance.get("seconds"), provenance.get("training_seconds", 0.0)
    if computing is None:
        return None
    # A process that trained and computed has counted its trainings already.
    return (computing if computing >= training else computing + training) / 60
