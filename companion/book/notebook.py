"""What a figure's notebook calls: open its results, show a figure, leave its files.

Whoever executes the notebook says in the environment where things go: ``ATTNLIB_ROOT`` (the checkout) and
``ATTNLIB_FIGURE_FILES`` (the figures' svg, png and csv). Without them (plain papermill, or Jupyter) the
checkout is found from the working folder and nothing of the book is touched.
"""

import gc
import html
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pandas as pd

from attnlib.errors import AttnlibError, CorruptFile, DataUnavailable
from attnlib.files import atomic_path, write_text_atomic
from companion.book.picture import for_pages
from companion.book.project import Project, current_project
from companion.book.style import as_png, as_svg
from companion.results import registry
from companion.results.request import Request
from companion.results.result import Result, as_csv
from companion.rounding import rounded

if TYPE_CHECKING:
    from companion.runs.identity import Spec
    from companion.runs.store import Store

Records = list[dict] | pd.DataFrame
PAGE = Path(__file__).with_name("instrument.html.jinja")
# The line of a note that pages of the book leave out: their end says where each number is from.
BOTH_PROFILES = re.compile(r"^Shown: the paper profile .* Computed with this page: .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """The results behind one figure, and the place for its files."""

    figure: str  #: id, such as ``attend/alignment_breakdown``
    #: made by this run; None where its data is not available here (``missing`` says which)
    result: Result | None
    #: the committed result at paper size; None if there is none, or if this run has its own parameters
    paper: Result | None
    files: Path
    missing: str = ""
    #: of a run with parameters of its own, the profile that numbers in the prose are of, which are the
    #: book's; empty where all is of one piece
    text_of: str = ""
    quality: str = ""  #: how well networks have learned the reader's own text
    own_text: str = ""  #: what was made of the reader's own text
    parameters: Mapping[str, object] = field(default_factory=dict)  #: of a run with its own
    drawn: list[str] = field(default_factory=list)  #: names of the figures shown so far

    @property
    def leading(self) -> Result:
        """The result to show first: the paper-sized one in the book, else this run's.

        Raises DataUnavailable: this run could not be made, and no committed result stands in.
        """
        result = self.paper or self.result
        if result is None:
            raise DataUnavailable(self.missing)
        return result

    @property
    def second(self) -> Result | None:
        """This run's result, where the paper-sized one leads."""
        return self.result if self.paper is not None else None

    def note(self) -> str:
        """What the reader is looking at."""
        if self.paper is None:
            shown = f"Shown: {described(self.leading, self.parameters)}."
        elif self.result is None:
            shown = f"Shown: {described(self.paper)}. Cannot be run here: data. {self.missing}"
        else:
            shown = f"Shown: {described(self.paper)}. Computed with this page: {described(self.result)}."
        text = self.text_of and (
            f"Numbers in the text are the book's, at the {self.text_of} profile; the tables and figures "
            "below are of this run."
        )
        return "\n".join(filter(None, [shown, self.own_text, self.quality, text]))

    def frame(self, table: str, result: Result | None = None) -> pd.DataFrame:
        """A tidy table of the leading result, or of another; no rows where it has none."""
        return pd.DataFrame((result or self.leading).tables.get(table, []))

    def show(
        self, figure, name: str, *, alt: str, caption: str, finding: str = "", data: Records | None = None
    ) -> None:
        """Save a matplotlib figure as SVG, the ``data`` drawn as CSV, and display it with its texts.

        In the book a page's first figure is a PNG as well, for previews of the page. A PNG takes another
        drawing, an eighth of all the time of drawing; a run with its own parameters has one of each figure.

        ``name`` is that of the files and of the figure in the book, ``alt`` tells it to who cannot see it.
        ``caption`` says what is drawn, and ``finding`` what follows in the book, of its tasks: a run with its
        own parameters has neither this nor ``alt`` nor notes with arrows, and its captions are marked.
        """
        from IPython.display import display

        if self.text_of:
            alt = f"{name.replace('_', ' ').capitalize()}, drawn of this run; the caption says what is shown."
            caption += " Outcomes named here are the book's; the plot is of this run."
            for note in figure.findobj(lambda artist: getattr(artist, "arrow_patch", None)):
                note.remove()
        elif finding:
            caption = f"{caption} {finding}"
        svg = for_pages(as_svg(figure))
        shown = {"image/svg+xml": svg, "text/plain": f"<figure {name}>"}
        files = {".svg": svg.encode()}
        if self.parameters or not self.drawn:
            figure.set_layout_engine("none")  # it is laid out
            files[".png"] = shown["image/png"] = as_png(figure)
        self.drawn.append(name)
        for suffix, content in files.items():
            with atomic_path(self.files / f"{name}{suffix}") as temporary:
                temporary.write_bytes(content)
        if isinstance(data, pd.DataFrame):
            data = data.astype(object).where(data.notna(), None).to_dict("records")
        if data is not None:
            write_text_atomic(self.files / f"{name}.csv", as_csv(rounded(data)))
        display(shown, raw=True, metadata={"alt": alt, "caption": caption, "name": name})

    def instrument(self, name: str, data: object, table: pd.DataFrame, *, label: str) -> None:
        """Display an :func:`instrument`; without data, nothing."""
        from IPython.display import HTML, display

        if data:
            display(HTML(instrument(name, data, table, label=label)))


def instrument(name: str, data: object, table: pd.DataFrame, *, label: str) -> str:
    """The HTML of an instrument. Scripts run where they are, so that nothing below it moves afterwards."""
    from companion.book.markup import template  # with claims and their rules, which few pages need

    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    encoded = encoded.replace("<", "\\u003c")
    shown = table.reset_index().to_html(index=False, border=0, na_rep="–")
    shown = re.sub(r"<td>-(?=0\.?0*</td>)", "<td>", shown).replace("<td>-", "<td>−")  # none before a zero
    return template(PAGE).render(name=name, label=html.escape(label), table=shown, data=encoded)


def open_page(figure: str, names: Mapping[str, object]) -> Page:
    """Open the results of a figure's experiment; compute them if they are not there.

    Args:
        figure: its id, such as ``attend/alignment_breakdown``.
        names: the ``globals()`` of a notebook whose parameters cell assigns ``profile`` and the settings of
            the experiment; None leaves the profile's own. Where ``attnlib`` runs the notebook, it has checked
            the parameters and hands them down, and names are not looked at.

    Raises UnknownName, BadInput: a setting that the experiment cannot use.
    """
    project = current_project()
    if str(project.root) not in sys.path:  # for the cells that follow
        sys.path.insert(0, str(project.root))
    handed_down = os.environ.get("ATTNLIB_REQUEST")
    if handed_down:
        _collect_garbage_seldom()
    request = Request.of_text(handed_down) if handed_down else _request_of_cell(figure, names)
    name, folder = request.experiment, project.root / request.folder
    paper = project.results("paper") / f"{name}.json"
    result, missing = None, ""
    try:
        result = _opened(folder / f"{name}.json", trusted=bool(handed_down)) or _computed(project, request)
    except DataUnavailable as error:
        missing = str(error)
    is_the_book = not request.parameters and folder != paper.parent
    shown = Result.load(paper) if is_the_book and paper.is_file() else None
    profile_of_text = "paper" if paper.is_file() else "quick"
    text_of = profile_of_text if request.parameters else ""
    files = os.environ.get("ATTNLIB_FIGURE_FILES", folder / f"{name}.files")
    learned = _learned(project, request, result) if result and request.parameters.get("source") else ""
    return Page(
        figure,
        result,
        shown,
        Path(files),
        missing,
        text_of,
        quality=learned,
        own_text=_own_text(request),
        parameters=request.parameters,
    )


def _collect_garbage_seldom() -> None:
    """Let a kernel that lives for seconds search for garbage seldom, and not among its modules.

    By default each of a drawing's many small objects brings the next search nearer, a tenth of its time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _request_of_cell(figure: str, names: Mapping[str, object]) -> Request:
    """What a parameters cell asks for, typed and checked: of plain papermill and Jupyter."""
    from companion.book.parameters import typed

    standard = Request(figure, str(names["profile"]))
    settings = [field.name for field in fields(standard.standard)]
    given = {name: names[name] for name in settings if names.get(name) is not None}
    return typed(standard, given) if given else standard


def _opened(path: Path, *, trusted: bool) -> Result | None:
    """A result that is there; one that is not trusted has to rest on today's runs and versions."""
    if not path.is_file():
        return None
    result = Result.load(path)
    return result if trusted or result.current else None


def _computed(project: Project, request: Request) -> Result:
    from companion.results.run import run

    return run(request, out=project.root / request.folder, models=project.models, report=_report)


def _own_text(request: Request) -> str:
    from companion.book.parameters import own_text_sentences

    with suppress(AttnlibError):  # the result was made of it; the files may have changed since
        return " ".join(own_text_sentences(request))
    return ""


def _learned(project: Project, request: Request, result: Result) -> str:
    from companion.runs.store import Store

    specs = registry.load(request.experiment).models(request.config)
    return quality(result, specs, Store(project.models))


def quality(result: Result, specs: Iterable["Spec"], store: "Store") -> str:
    """How well networks predict held-out sentences, means by kind; empty where no training recorded it."""
    rows = []
    for spec in specs:
        with suppress(CorruptFile):  # it was deleted since
            if held_out := store.history(spec).get("held_out"):
                bleu = result.values.get(spec.task, {}).get(spec.architecture, {}).get("bleu", {})
                rows.append(held_out | {"kind": spec.setting.split()[1], "bleu": bleu.get("value", nan)})
    if not rows:
        return ""
    sentences = [
        f"{kind} predicts {row.token_accuracy:.0%} of the words, with a loss of {row.loss:.2f} nats"
        + (f" and a BLEU of {row.bleu:.1f}" if row.bleu > 0 else "")
        for kind, row in pd.DataFrame(rows).groupby("kind", sort=False).mean().iterrows()
    ]
    return f"Of held-out sentences, given the words before, {'; '.join(sentences)}."


def described(result: Result, parameters: Mapping[str, object] = MappingProxyType({})) -> str:
    """Profile, size, and what differs from it: ``the quick profile (3 seeds, width 64; steps = 50)``."""
    seeds, width = result.config.get("seeds"), result.config.get("width")
    if seeds:
        size = f"{seeds} seed{'' if seeds == 1 else 's'}"
    else:
        size = f"{len(result.models)} trained network{'' if len(result.models) == 1 else 's'}"
    if width:
        size += f", width {_shown(width)}"
    parts = [size, *(f"{name} = {_shown(result.config[name])}" for name in parameters)]
    if result.missing:
        from companion.claims.verdicts import in_short  # with pydantic's rules, which most pages do without

        parts.append(f"not run yet: {in_short(result.missing)}")
    return f"the {result.profile} profile ({'; '.join(parts)})"


def _shown(value: object) -> str:
    """A setting in a sentence: names without brackets, files without their folders."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return Path(value).name if isinstance(value, str) else str(value)


def _report(spec, step: int, steps: int, loss: float) -> None:
    """A line on standard error for each model trained inside a notebook."""
    if step == steps:
        print(f"trained {spec.setting}: {steps} steps, loss {loss:.3f}", file=sys.stderr)
