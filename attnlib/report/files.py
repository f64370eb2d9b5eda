"""Write an analysis to files, a page for people and tables for programs, and read it again."""

import csv
import io
import json
import math
import time
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from attnlib.analysis.heads import Head
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.passes import Keeper
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import CorpusGaps, Stream
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput, CorruptFile, check_known
from attnlib.files import atomic_path, locked, write_json_atomic, write_text_atomic
from attnlib.progress import Progress
from attnlib.report.contents import TITLE, Name, calibration_of, reads_frames, shown_terms
from attnlib.report.exported import parquet_of, sentence_rows
from attnlib.report.findings import findings, notes
from attnlib.report.one_call import analyse
from attnlib.report.page import page
from attnlib.report.views import AnalysisWithViews
from attnlib.sealed import load_file, save_file
from attnlib.version import __version__

TABLES = ("heads", "terms", "states")
FORMS = ("csv", "parquet", "sentences")
KEPT = "analysis.safetensors"  # what read_report reads
RUN = "run.json"  # when it was and how long it took
# Of analysis.json. Schema 4 lacks split shares and interventions, 3 intervals of terms, 1 all intervals;
# 2 has left_out and cut where later ones have losses.
SCHEMA = 5
_AS_IT_IS = ("method", "made", "about", "fitted", "judged", "held_out")
_LISTS = ("unchecked", "no_probe")


def report(
    stream: Stream,
    folder: str | Path,
    *,
    title: str = TITLE,
    name: Name | None = None,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    interventions: bool = False,
    keep: Keeper | None = None,
    progress: Progress | bool | None = None,
    about: dict[str, str] | None = None,
) -> AnalysisWithViews:
    """Analyse a model on a corpus and write what was found.

    Args:
        stream: passes of the model, see :class:`~attnlib.analysis.stream.Stream`.
        folder: gets ``index.html``, ``analysis.json``, ``heads.csv``, ``terms.csv``, ``states.csv``,
            ``parts.csv``, ``run.json``, and ``analysis.safetensors``, which :func:`read_report` reads.
        title: of the page.
        name: the word of an id, given ``"source"`` or ``"target"`` and the id; the id itself by default.
            Whatever it returns is shown as text.
        heads: of every attention; all by default.
        method: of the components, ``"least_squares"`` or ``"means"``.
        every: hold out and judge every n-th batch.
        interventions: also measure how far attention moves when a part of the states is replaced.
        keep: keeps the sums of both passes while they go on.
        progress: True for a bar with the time left, or a function of the stage and the batches read.
        about: what the report says of model and corpus.

    Returns:
        The analysis of :func:`~attnlib.report.one_call.analyse`, which explains the options.

    Raises:
        BadInput: an empty corpus, or a folder that cannot be written.

    Example:
        >>> import tempfile
        >>> from attnlib import zoo
        >>> network, folder = zoo.load("reordering"), Path(tempfile.mkdtemp())
        >>> _ = report(network.stream(batch_size=64), folder, name=network.word)
        >>> sorted(path.name for path in folder.glob("*.csv"))
        ['heads.csv', 'parts.csv', 'states.csv', 'terms.csv']
    """
    with locked(Path(folder), ".report.lock", wait=True):  # a folder that cannot be written is refused first
        began = time.monotonic()
        analysis = analyse(
            stream,
            heads=heads,
            method=method,
            every=every,
            interventions=interventions,
            keep=keep,
            progress=progress,
            about=about,
        )
        write_run(folder, began)
        write_report(analysis, folder, title=title, name=name)
    return analysis


def write_run(folder: str | Path, began: float) -> None:
    """Write when a report was made and how long it took.

    It is a separate file because two reports on one analysis are otherwise the same bytes.

    Args:
        folder: of the report.
        began: what :func:`time.monotonic` returned at the beginning.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_run(folder, time.monotonic())
        >>> sorted(json.loads((folder / RUN).read_text()))
        ['date', 'seconds', 'seeds']
    """
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "seeds": [],  # nothing is drawn at random but by interventions, whose draws depend on the sentences
    }
    write_json_atomic(Path(folder) / RUN, record)


def write_report(
    analysis: Analysis,
    folder: str | Path,
    *,
    title: str = TITLE,
    name: Name | None = None,
    tables: Collection[str] = ("csv",),
) -> None:
    """Write the page and the tables of an analysis.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.
        folder: as of :func:`report`.
        title: of the page.
        name: the word of an id, as for :func:`report`.
        tables: forms of the tables: "csv", which is always written, "parquet", which needs pyarrow; and
            "sentences" for a table of the sentences on the page, see
            :func:`~attnlib.report.exported.sentence_rows`.

    Raises:
        BadInput: pyarrow is not installed.
        UnknownName: there is no such form.

    Example:
        >>> import tempfile
        >>> from attnlib import analyse, zoo
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_report(analyse(zoo.load("reordering").stream(batch_size=64)), folder)
        >>> (folder / "index.html").is_file()
        True
    """
    folder = Path(folder)
    for form in tables:
        check_known("form of tables", form, FORMS)
    rows_of = _tables_of(analysis)
    content = _facts(analysis) | rows_of
    text = json.dumps(content, indent=1)  # before anything is written
    written = dict(rows_of)
    if "sentences" in tables:
        written["sentences"] = [_plain_row(row) for row in sentence_rows(analysis, name)]
    for table, rows in written.items():
        if "parquet" in tables:
            with atomic_path(folder / f"{table}.parquet") as temporary:
                temporary.write_bytes(parquet_of(rows))
        write_text_atomic(folder / f"{table}.csv", csv_of(rows))
    write_text_atomic(folder / "analysis.json", text + "\n")
    with atomic_path(folder / KEPT) as temporary:
        save_file(_tensors_of(analysis), temporary, {"analysis": json.dumps(content)})
    links = [*(f"{table}.csv" for table in written), "analysis.json"]
    if (folder / RUN).is_file():
        links.append(RUN)
    markup = page(analysis, title, name, tables=links, script=True)
    write_text_atomic(folder / "index.html", markup)


def _tables_of(analysis: Analysis) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table that a report has, by its name."""
    tables = {table: getattr(analysis, table) for table in TABLES}
    tables["parts"] = part_rows(analysis.heads, analysis.terms)
    tables["terms"] = shown_terms(analysis, analysis.terms)
    if analysis.interventions:
        tables["interventions"] = analysis.interventions
        tables["calibration"] = calibration_of(analysis)
    return {table: [_plain_row(row) for row in rows] for table, rows in tables.items()}


def _facts(analysis: Analysis) -> dict[str, Any]:
    """Return what ``analysis.json`` holds besides the tables."""
    facts = {"schema": SCHEMA, "attnlib": __version__}
    for name in (*_AS_IT_IS, *_LISTS):
        facts[name] = getattr(analysis, name)
    if analysis.one_sequence:
        facts["one_sequence"] = True
    facts["learned"] = _plain_row(analysis.learned)
    facts["findings"] = findings(analysis)
    facts["source"] = "frames" if reads_frames(analysis) else "words"
    facts["losses"] = asdict(analysis.losses)
    facts["unknown_pieces"] = _plain_row(analysis.losses.unknown)
    facts["notes"] = notes(analysis)
    return facts


def _tensors_of(analysis: Analysis) -> dict[str, Tensor]:
    """Return the sums that a comparison needs, by the names that they have in a file."""
    tensors = {}
    for (attention, head), sums in analysis.blocks.items():
        tensors[f"blocks/{attention}/{head}"] = sums
    if analysis.keys is not None:
        tensors["keys"] = analysis.keys
    return tensors


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {column: _plain(value) for column, value in row.items()}


def _plain(value: object) -> object:
    """Return a number to nine digits, and None if it is undefined."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.9g}") if math.isfinite(value) else None


def csv_of(rows: list[dict]) -> str:
    r"""Return rows as a table of comma-separated values, with the names of its columns.

    Args:
        rows: with one set of columns.

    Returns:
        Lines, each of which ends; empty without rows.

    Example:
        >>> csv_of([{"layer": 0, "share": 0.5}])
        'layer,share\n0,0.5\n'
    """
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


def read_report(folder: str | Path) -> AnalysisWithViews:
    """Read the analysis that a report was written of, for tables, figures and comparisons.

    Args:
        folder: of a report, as :func:`report` or ``attnlib analyse`` wrote it.

    Returns:
        The analysis without its samples, which a report keeps on its page alone.

    Raises:
        BadInput: the folder has no ``analysis.safetensors``.
        CorruptFile: that file is not as it was written.

    Example:
        >>> import tempfile
        >>> from attnlib import zoo
        >>> folder = tempfile.mkdtemp()
        >>> analysis = report(zoo.load("reordering").stream(batch_size=64), folder)
        >>> read_report(folder).heads[0]["head"] == analysis.heads[0]["head"]
        True
    """
    path = Path(folder) / KEPT
    if not path.is_file():
        raise BadInput(f"{folder} holds no {KEPT}: give a folder that attnlib analyse or report wrote")
    tensors = load_file(path)
    content = _content_of(path)
    keys = tensors.pop("keys", None)
    blocks = {Head.of_key(name.removeprefix("blocks/")): sums for name, sums in tensors.items()}
    fields: dict[str, Any] = {name: content[name] for name in (*_AS_IT_IS, "learned")}
    for table in TABLES:
        fields[table] = [_with_undefined(row) for row in content[table]]
    for name in _LISTS:
        fields[name] = tuple(content.get(name, ()))
    return AnalysisWithViews(
        **fields,
        losses=CorpusGaps(**content.get("losses", {})),
        one_sequence=content.get("one_sequence", False),
        interventions=[_with_undefined(row) for row in content.get("interventions", ())],
        blocks=blocks,
        keys=keys,
    )


def _content_of(path: Path) -> dict[str, Any]:
    """Return what ``analysis.json`` holds, which is saved with the tensors as well."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    if "analysis" not in metadata:
        raise CorruptFile(f"{path} was written by something else: make the report again")
    return json.loads(metadata["analysis"])


def _with_undefined(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as it was before :func:`_plain_row`: what is empty is undefined."""
    return {column: math.nan if value is None else value for column, value in row.items()}
