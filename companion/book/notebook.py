"""What a figure's notebook calls: open its results, show a figure, leave its files.

Whoever executes the notebook says in the environment where things go: ``ATTNLIB_ROOT`` (the checkout) and
``ATTNLIB_FIGURE_FILES`` (the figure's svg, png and csv). Without them (plain papermill, or Jupyter) the
checkout is found from the working folder and nothing of the book is touched.
"""

import gc
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pandas as pd

from attnlib.errors import DataUnavailable
from attnlib.files import atomic_path, write_text_atomic
from attnlib.models.config import Architecture
from companion.book.parameters import typed_request
from companion.book.project import current_project
from companion.book.style import as_images, task_name
from companion.claims.verdicts import in_short
from companion.results import registry
from companion.results.config import plain
from companion.results.request import Request
from companion.results.result import Result, as_csv, kinds_of
from companion.results.run import code_of, run
from companion.runs.keys import model_key

Records = list[dict] | pd.DataFrame


def networks_note(result: Result) -> str:
    """``Networks a task and architecture: 10 (one-to-one, SCAN), 5 (reversal).``

    Kinds of network with other numbers are named apart. Empty where the numbers do not stand under
    ``<task>.<kind>`` for an architecture of ours, or where the settings give one number for all.
    """
    if result.config.get("seeds") or "task" not in result.config:
        return ""
    by_kind: dict[str, dict[str, int]] = {}  # kind → task → the most networks that a number rests on
    for task, kind, values in kinds_of(result, result.values.get("by_task", result.values)):
        if kind.partition("-")[0] in get_args(Architecture) and (n := _networks(values)):
            by_kind.setdefault(kind, {})[task_name(task)] = n
    alike: dict[str, list[str]] = {}  # what is said of several kinds
    for kind, counts in by_kind.items():
        alike.setdefault(_listed(counts), []).append(kind)
    if len(alike) < 2:
        return "".join(f"Networks a task and architecture: {text}." for text in alike)
    parts = [f"{', '.join(kinds)}: {text}" for text, kinds in alike.items()]
    return f"Networks a task and kind. {'; '.join(parts)}."


def _networks(values: object) -> int:
    """The most networks that a number below rests on."""
    if not isinstance(values, dict):
        return 0
    return values["n"] if {"value", "n"} <= set(values) else max(map(_networks, values.values()), default=0)


def _listed(counts: Mapping[str, int]) -> str:
    """``10 (one-to-one, reordering 0, 50 %), 5 (reversal)``: marks of the dial stand in one entry."""
    if len(counts) > 1 and len(set(counts.values())) == 1:
        return f"{next(iter(counts.values()))} (each of {len(counts)} tasks)"
    parts = []
    for n in sorted(set(counts.values()), reverse=True):
        own = [task for task in counts if counts[task] == n]
        tasks = [task for task in own if not task.startswith("reordering ")]
        if marks := [task.split()[1] for task in own if task.startswith("reordering ")]:
            tasks.append(f"reordering {', '.join(marks)} %")
        parts.append(f"{n} ({', '.join(tasks)})")
    return ", ".join(parts)


@dataclass(frozen=True)
class Page:
    """The results behind one figure, and the place for its files.

    Attributes:
        figure: id, such as ``attend/alignment_breakdown``.
        result: made by this run; None where its data is not at hand (``missing`` says which).
        paper: the committed result at paper size; None if there is none, or if this run has its own
            parameters.
        text_of: of a run with parameters of its own, the profile that numbers in the prose are of, which are
            the book's; empty where all is of one piece.
    """

    figure: str
    result: Result | None
    paper: Result | None
    files: Path
    missing: str = ""
    text_of: str = ""

    @property
    def leading(self) -> Result:
        """The result to show first: the paper-sized one in the book, else this run's.

        Raises DataUnavailable: this run could not be made, and no committed result stands in.
        """
        found = self.paper or self.result
        if found is None:
            raise DataUnavailable(self.missing)
        return found

    @property
    def second(self) -> Result | None:
        """This run's result, where the paper-sized one leads."""
        return self.result if self.paper is not None else None

    def note(self) -> str:
        """What the reader is looking at, and how many networks stand behind what is shown first."""
        if self.paper is None:
            shown = f"Shown: {described(self.leading)}."
        elif self.result is None:
            shown = f"Shown: {described(self.paper)}. Cannot be run here: data. {self.missing}"
        else:
            shown = f"Shown first: {described(self.paper)}; at the end: {described(self.result)}."
        text = self.text_of and (
            f"Numbers in the text are the book's, at the {self.text_of} profile; the tables and figures "
            "below are of this run."
        )
        return "\n".join(filter(None, [shown, networks_note(self.leading), text]))

    def frame(self, table: str, result: Result | None = None) -> pd.DataFrame:
        """A tidy table of the leading result, or of another; no rows where it has none."""
        return pd.DataFrame((result or self.leading).tables.get(table, []))

    def show(self, figure, name: str, *, alt: str, caption: str, data: Records | None = None) -> None:
        """Save a matplotlib figure as SVG and PNG, the ``data`` drawn as CSV, and display it with its texts.

        ``name`` is that of the files and of the figure in the book, ``alt`` tells it to who cannot see it.
        """
        from IPython.display import display

        svg, png = as_images(figure)
        for suffix, content in ((".svg", svg.encode()), (".png", png)):
            with atomic_path(self.files / f"{name}{suffix}") as temporary:
                temporary.write_bytes(content)
        if isinstance(data, pd.DataFrame):
            data = data.astype(object).where(data.notna(), None).to_dict("records")
        if data is not None:
            write_text_atomic(self.files / f"{name}.csv", as_csv(data))
        shown = {"image/svg+xml": svg, "image/png": png, "text/plain": f"<figure {name}>"}
        display(shown, raw=True, metadata={"alt": alt, "caption": caption, "name": name})


def open_page(figure: str, names: Mapping[str, object]) -> Page:
    """The results of a figure's experiment, computed now if they are not there or not current.

    ``names`` are the ``globals()`` of a notebook whose parameters cell assigns ``profile`` and the settings
    of the experiment; None leaves the profile's own.

    Raises UnknownName, BadInput: a setting that the experiment cannot use.
    """
    gc.freeze()  # what has been imported stays: looking through it took a tenth of the time of drawing
    project = current_project()
    if str(project.root) not in sys.path:  # for the cells that follow
        sys.path.insert(0, str(project.root))
    profile = str(names["profile"])
    settings = [field.name for field in fields(Request(figure, profile).standard)]
    given = {name: names[name] for name in settings if names.get(name) is not None}
    request = typed_request(figure, profile, given)
    name, folder = request.experiment, project.folder_of(request)
    paper = project.results("paper") / f"{name}.json"
    result, missing = None, ""
    try:
        result = _current(folder, request) or run(request, out=folder, models=project.models, report=_told)
    except DataUnavailable as error:
        missing = str(error)
    shown = None if given or profile == "paper" or not paper.is_file() else Result.load(paper)
    source = project.notebooks / f"{figure}.md"
    text_of = ""
    if given and source.is_file() and "{num}" in source.read_text(encoding="utf-8"):
        text_of = "paper" if paper.is_file() else "quick"
    files = os.environ.get("ATTNLIB_FIGURE_FILES", folder / f"{name}.files")
    return Page(figure, result, shown, Path(files), missing, text_of)


def described(result: Result) -> str:
    """Profile, size, and what differs from it: ``the quick profile (3 seeds, width 64; steps = 50)``."""
    config = result.config
    seeds, width = config.get("seeds"), config.get("width")
    count, of = (seeds, "seed") if seeds else (len(result.models), "trained network")
    size = f"{count} {of}{'' if count == 1 else 's'}" + (f", width {width}" if width else "")
    standard = plain(Request(result.experiment, result.profile).standard)
    own = [f"{name} = {_shown(value)}" for name, value in config.items() if value != standard.get(name)]
    states = ["stale: its code has changed since"] if result.stale else []
    if result.missing:
        states.append(f"not run yet: {in_short(result.missing)}")
    return f"the {result.profile} profile ({'; '.join([size, *own, *states])})"


def _shown(value: object) -> str:
    """A setting in a sentence: names without brackets, files without their folders."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return Path(value).name if isinstance(value, str) else str(value)


def _current(folder: Path, request: Request) -> Result | None:
    """The result in a folder, if it was made by today's code with these settings from the same data."""
    path = folder / f"{request.experiment}.json"
    if not path.is_file():
        return None
    result = Result.load(path)
    specs = registry.load(request.experiment).models(request.config)
    found = (result.config, result.provenance.get("code"), result.models)
    today = (plain(request.config), code_of(request.experiment), [model_key(spec) for spec in specs])
    return result if found == today else None


def _told(spec, step: int, steps: int, loss: float) -> None:
    """A line on standard error for each model trained inside a notebook."""
    if step == steps:
        print(f"trained {spec.setting}: {steps} steps, loss {loss:.3f}", file=sys.stderr)
