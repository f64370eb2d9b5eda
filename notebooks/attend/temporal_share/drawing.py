"""Networks as points, shares against typicality, and the dial; the figure that README.md shows.

``python -m notebooks.attend.temporal_share.drawing`` draws README's from the committed result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, digits

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.decomposition.components import STATE_PARTS
from attnlib.files import write_text_atomic
from companion.book.numbers import written
from companion.book.project import current_project
from companion.book.style import INK, PART_COLOURS, as_svg, style, task_name
from companion.claims.presupposed import holds
from companion.paths import ARCHIVE
from companion.results import registry
from companion.results.measurements import answers, measurements_of
from companion.results.result import Result
from companion.runs.store import Store
from notebooks.attend.temporal_share.along_the_dial import by_exchange
from notebooks.attend.temporal_share.experiment import PROFILES, terms_of
from notebooks.shared.families import family
from notebooks.shared.intervals import kind
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.plan import picked
from notebooks.shared.readings import readings
from notebooks.shared.style import HALO
from notebooks.shared.suite import DIAL, outcomes

# What is named in a panel, and how many points from the middle of its networks (GRUs but for AO).
NAMES = {
    "one_to_one": ("one-to-one", (-20, -19)), "permutation": ("fixed permutation", (-96, 4)),
    "scan": ("SCAN", (-42, 3)), "captions": ("translation", (-66, 4)),
    "reordering_0": ("0 %", (8, -8)), "reordering_100": ("100 %", (-46, 3)),
}  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """One reading of one part against typicality."""

    column: str
    part: str
    label: str  # of the axis
    named: tuple[str, ...] = ("reordering_0", "reordering_100", "scan", "captions")


INPUT_NAMES = ("reordering_0", "scan", "captions")
BY_EXCHANGE = (
    (
        Panel(
            "temporal_moves",
            "temporal",
            "moved by another temporal part",
            ("reordering_0", "reordering_100", "scan", "captions", "one_to_one"),
        ),
        Panel(
            "input_moves",
            "input",
            "moved by another input part",
            ("reordering_0", "scan", "captions", "one_to_one"),
        ),
    ),
)
# Rows are parts, columns are readings: a part's own term and its split share.
BY_SHARES = (
    (
        Panel("temporal_share", "temporal", "own term of the temporal part, μ·μ"),
        Panel(
            "temporal_split",
            "temporal",
            "split share of the temporal part",
            ("reordering_0", "scan", "captions"),
        ),
    ),
    (
        Panel("input_share", "input", "own term of the input part, χ·χ", INPUT_NAMES),
        Panel("input_split", "input", "split share of the input part", INPUT_NAMES),
    ),
)
ALONE_LABEL = "similarity of attention from {} alone"
ALONE = (
    (
        Panel("temporal_only", "temporal", ALONE_LABEL.format("μ·μ"), ("permutation", *INPUT_NAMES)),
        Panel("input_only", "input", ALONE_LABEL.format("χ·χ"), ("scan",)),
    ),
)
GREY = "#777777"
POINTS = (("recurrent", "o", GREY), ("attention only", "s", GREY), ("has not learned its task", "o", "white"))
UNIFORM = {"marker": "_", "ms": 9, "markeredgewidth": 0.8, "color": INK}  # no colour of a part


def against_typicality(result: Result, panels: tuple[tuple[Panel, ...], ...] = BY_EXCHANGE) -> Figure:
    rows = pd.DataFrame(result.tables["points"]).dropna(subset=["typicality"])
    correlations = result.values["learned"]["spearman"]
    with style():
        rows_of_panels, columns = len(panels), len(panels[0])
        size = (8.6, 6.2)
        if len(panels) == 1:  # one below the other, which a telephone shows whole
            rows_of_panels, columns, size = columns, 1, (4.7, 7.6)
        figure = Figure(figsize=size)
        grid = figure.subplots(rows_of_panels, columns, squeeze=False)
        for axes, panel in zip(grid.flat, (panel for row in panels for panel in row), strict=True):
            _scatter(axes, rows.dropna(subset=[panel.column]), panel)
            axes.set_title(f"rank correlation {written(correlations[panel.column])}", loc="left", fontsize=9)
            if axes.get_subplotspec().is_last_row():
                axes.set_xlabel("typicality of the attention matrix", fontsize=9)
        last = figure.axes[-1]
        for label, marker, face in POINTS:
            last.plot([], [], marker, color=GREY, mfc=face, label=label)
        if panels is ALONE:
            last.plot([], [], ls="", label="uniform attention", **UNIFORM)
        figure.legend(loc="outside upper center", ncols=2 * columns, frameon=False, fontsize=9)
    return figure


def _scatter(axes: Axes, rows: pd.DataFrame, panel: Panel) -> None:
    column, colour = panel.column, PART_COLOURS[panel.part]
    axes.set(xticks=[0, 0.25, 0.5, 0.75, 1], xticklabels=["0", "", "0.5", "", "1"])
    axes.set_ylabel(panel.label, fontsize=9.5)
    axes.set_xlim(0, 1.17)  # room for a name
    axes.set_ylim(min([-0.08, *(rows[column] - 0.05)]), 1.06)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    if rows.empty:
        axes.text(0.5, 0.5, "nothing was\nmeasured", ha="center", transform=axes.transAxes)
    for row in rows.sort_values("token_accuracy").to_dict("records"):
        if column.endswith("_only"):
            axes.plot(row["typicality"], row["uniform"], ls="", **UNIFORM)
        marker = "s" if row["architecture"] == "AO" else "o"
        face = {"mfc": colour, "alpha": 0.8} if row["learned"] else {"mfc": "white", "alpha": 0.55}
        axes.plot(row["typicality"], row[column], marker, ms=4.5, mew=0.9, mec=colour, **face)
    recurrent = rows[rows["kind"] == "AED"]
    name = recurrent["task"].map(lambda task: task if task in DIAL else family(task))
    middles = recurrent.groupby(name)[["typicality", column]].mean()
    dial = middles.reindex([mark for mark in DIAL if mark in middles.index])
    axes.plot(*dial.to_numpy().T, color=INK, lw=1, zorder=3)
    for task in panel.named:
        if task in middles.index:
            text, away = NAMES[task]
            place = middles.loc[task]
            axes.annotate(text, place, away, "data", "offset points", fontsize=9, path_effects=[HALO])


MEANS = ["typicality", "temporal_share", "input_share", "token_accuracy"]
EFFECTS = ["temporal_moves", "input_moves"]
READ = ["temporal_split", "input_split", *EFFECTS]  # in the scatter beside own terms
STEPS = 36  # weights in so many steps, a letter each: the matrices of all networks have to fit into the page
LETTERS = (digits + ascii_letters)[: STEPS + 1]
DECAY = registry.load("regularisation")  # the experiment whose networks have weight decay


def dial(result: Result) -> tuple[dict, pd.DataFrame]:
    """Return points with their matrices, and a table of means, from committed results and the archive alone.

    Args:
        result: of the paper profile; any other one has no archive behind it, and nothing is returned.
    """
    if result.profile != "paper":
        return {}, pd.DataFrame()
    committed = {(row["task"], row["kind"], row["seed"]): row for row in result.tables["points"]}
    rows: list[dict] = []
    without_decay: dict[tuple[str, str], list[dict]] = {}
    for name, decay, terms in _networks():
        task, kind_of_network = name["task"], kind(name)
        # With weight decay no parts were exchanged, and nobody asked whether translators count.
        known = {} if decay else committed[task, kind_of_network, name["seed"]]
        rows.append(
            {"task": task, "kind": kind_of_network, "seed": name["seed"], "decay": decay}
            | _readings_of(terms)
            | {"learned": _has_learned(terms, known)}
            | {effect: known.get(effect) for effect in EFFECTS}
        )
        if not decay:
            without_decay.setdefault((task, kind_of_network), []).append(terms)
    points = pd.DataFrame(rows)
    points[READ] = points[READ].astype(float)
    # The other readings are in the table of all numbers: with them this one would not fit the page.
    table = points.groupby(["task", "kind", "decay"], sort=False)[MEANS].mean().round(2)
    table = table.rename(index=task_name, level="task").rename(columns=lambda name: name.replace("_", " "))
    return {
        "points": _plain(points.round(dict.fromkeys([*MEANS, *READ], 2))),
        "letters": LETTERS,
        "kinds": [_kind(names, of_kind) for names, of_kind in without_decay.items()],
        "tasks": {task: [task_name(task), family(task)] for task in points["task"].unique()},
    }, table.rename_axis(["task", "network", "weight decay"])


def _has_learned(terms: dict, known: dict) -> bool:
    """Return True if a network gets its words right, or is known as a translator that counts."""
    if holds("learned", token_accuracy=terms["quality"]["token_accuracy"]):
        return True
    return bool(known.get("learned"))


def _readings_of(terms: dict) -> dict[str, object]:
    """Return what a point shows of one network: numbers, and its average matrix in letters."""
    split = readings(terms["covariance_share"])
    average = terms["cell"]["average"]
    return picked(outcomes(terms), MEANS) | {
        "temporal_split": split["temporal_split"],
        "input_split": split["input_split"],
        "across": len(average[0]),
        "average": _letters(average),
    }


def _plain(points: pd.DataFrame) -> dict[str, list]:
    """Columns as lists, None where a number is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("list")


def _networks() -> Iterator[tuple[dict, float, dict]]:
    """Yield every network of the page, then those with weight decay: name, level, and its nine terms."""
    store = Store(ARCHIVE, archive=ARCHIVE, trains=False)
    config = DECAY.PROFILES["paper"]
    for name, terms in answers(terms_of(PROFILES["paper"]), store):
        yield name, 0, terms
    for spec, columns in DECAY.axis(config).items():
        level = columns["weight_decay"]
        if level:
            asked = measurements_of([spec], measure_alignment_terms, fit_samples=config.fit_samples)
            for name, terms in answers(asked, store):
                yield name, level, terms


def _kind(names: tuple[str, str], networks: list[dict]) -> dict:
    """Return one sample and the mean shares of the nine terms of a kind of network, by their measurements."""
    task, kind_of_network = names
    sample = networks[0]["cell"]["examples"][0]
    shares = pd.DataFrame([terms["covariance_share"] for terms in networks]).mean()
    return {
        "task": task,
        "kind": kind_of_network,
        "sample": _letters(sample["attention"]),
        "rows": sample["predicted"],
        "columns": sample["source"],
        "shares": [
            [round(shares[f"{decoder}_{encoder}"], 4) for encoder in STATE_PARTS] for decoder in STATE_PARTS
        ],
    }


def _letters(matrix: list[list[float]]) -> str:
    return "".join(LETTERS[round(STEPS * weight)] for row in matrix for weight in row)


def readme_figure(folder: Path) -> tuple[Path, str]:
    names = {"temporal": "another position", "input": "another word", "residual": "another memory"}
    title = "The freer the order, the less attention another position moves"
    drawn = by_exchange(Result.load(folder / "temporal_share.json"), names, title=title, width=6.4, right=135)
    return folder / "temporal_share.svg", as_svg(drawn, "path")


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
