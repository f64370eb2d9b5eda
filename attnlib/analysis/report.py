"""An analysis in files: a page for people, tables for programs."""

import csv
import io
import json
import math
from collections.abc import Collection
from pathlib import Path

import attnlib
from attnlib.analysis.analyse import analyse
from attnlib.analysis.how_to_read import notes
from attnlib.analysis.page import Name, page
from attnlib.analysis.readings import Keep, Progress
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Stream
from attnlib.files import write_text_atomic

TABLES = ("heads", "terms", "states")


def report(
    stream: Stream,
    folder: str | Path,
    *,
    title: str = "How this model attends",
    heads: Collection[int] | None = None,
    every: int = 5,
    name: Name | None = None,
    about: dict[str, str] | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> Analysis:
    """Analyse a model on a corpus and write what was found.

    Args:
        stream: passes of the model, see :class:`~attnlib.analysis.stream.Stream`.
        folder: gets ``index.html``, ``analysis.json``, ``heads.csv``, ``terms.csv`` and ``states.csv``.
        heads, every, about, progress, keep: see :func:`~attnlib.analysis.analyse.analyse`.
        name: the word of an id, given ``"source"`` or ``"target"`` and the id; the id itself by default.
            Whatever it returns is shown as text.

    Raises:
        BadInput: an empty corpus, or a folder that cannot be written.

    >>> import tempfile, torch
    >>> from attnlib import pass_of_tensors
    >>> words, valid = torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)
    >>> tensors = {"source_tokens": words, "source_mask": valid, "encoder_states": torch.eye(3)[None]}
    >>> tensors |= {"target_tokens": words, "target_mask": valid, "cross.0.query_states": torch.eye(3)[None]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = report(Stream(pass_of_tensors, [tensors] * 5), folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['analysis.json', 'heads.csv', 'index.html', 'states.csv', 'terms.csv']
    """
    analysis = analyse(stream, heads=heads, every=every, keep=keep, progress=progress, about=about)
    write_report(analysis, folder, title=title, name=name)
    return analysis


def write_report(
    analysis: Analysis,
    folder: str | Path,
    *,
    title: str = "How this model attends",
    name: Name | None = None,
) -> None:
    """Write the page and the tables of an analysis, see :func:`report`.

    >>> import tempfile
    >>> nothing = Analysis(heads=[], terms=[], states=[], fitted=8, judged=2, held_out=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(nothing, folder, title="Nothing yet")
    ...     "<h1>Nothing yet</h1>" in (Path(folder) / "index.html").read_text(encoding="utf-8")
    True
    """
    folder = Path(folder)
    for table in TABLES:
        write_text_atomic(folder / f"{table}.csv", _csv(getattr(analysis, table)))
    content = {
        "attnlib": attnlib.__version__,
        "about": analysis.about,
        "fitted": analysis.fitted,
        "judged": analysis.judged,
        "held_out": analysis.held_out,
        "left_out": analysis.losses.left_out,
        "cut": analysis.losses.cut,
        "unchecked": list(analysis.unchecked),
        "notes": notes(analysis),
    } | {table: [_plain(row) for row in getattr(analysis, table)] for table in TABLES}
    write_text_atomic(folder / "analysis.json", json.dumps(content, indent=1) + "\n")
    write_text_atomic(folder / "index.html", page(analysis, title, name or (lambda _, token: str(token))))


def _csv(rows: list[dict]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(_plain(row) for row in rows)
    return buffer.getvalue()


def _plain(row: dict) -> dict:
    """Numbers to nine digits; what is undefined is empty."""
    return {key: _rounded(value) if isinstance(value, float) else value for key, value in row.items()}


def _rounded(value: float) -> float | None:
    return float(f"{value:.9g}") if math.isfinite(value) else None
