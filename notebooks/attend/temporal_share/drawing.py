"""Networks as points: the figure that README.md shows too, shares against typicality, and the dial.

``python -m notebooks.attend.temporal_share.drawing`` draws README's from the committed result.
"""

from collections.abc import Iterator
from pathlib import Path
from string import ascii_letters, digits

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.decomposition.components import PART_NAMES
from attnlib.files import write_text_atomic
from companion.book.numbers import written
from companion.book.project import current_project
from companion.book.style import INK, PART_COLOURS, as_svg, style, task_name
from companion.results import registry
from companion.results.measurements import answers, measurements_of
from companion.results.result import Result
from companion.runs.answer import ARCHIVE
from companion.runs.store import Store
from notebooks.attend.temporal_share.experiment import PROFILES, family, terms_of
from notebooks.shared.intervals import kind
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.plan import picked
from notebooks.shared.style import ARROW, HALO
from notebooks.shared.suite import DIAL

# What is named in a panel, and how many points from the middle of its networks (GRUs but for AO).
NAMES = {
    "one_to_one": ("one-to-one", (15, -15)), "permutation": ("fixed permutation", (-96, 4)),
    "reversal": ("reversal", (-20, 11)), "scan": ("SCAN", (-46, 4)), "captions": ("translation", (-84, 3)),
    "reordering_0": ("0 %", (9, -6)), "reordering_100": ("100 %", (3, -35)),
    "AO reordering_100": ("reordering,\nattention only", (-93, 2)),
}  # fmt: skip
# Column → part, label of the axis, what is named, and a remark at a place of the axes.
SHARES = {
    "temporal_share": ("temporal", "temporal share μ·μ", tuple(NAMES),
                       ("the dial: where more sentences\nreorder, attention is less typical\n"
                        "and less temporal", (0.49, 0.07))),
    "input_share": ("input", "input share χ·χ", ("scan", "captions"),
                    ("input components explain little\nof tasks made by rule", (0.37, 0.5))),
}  # fmt: skip
GREY = "#777777"
POINTS = (("recurrent", "o", GREY), ("attention only", "s", GREY), ("has not learned its task", "o", "white"))
UNIFORM = {"marker": "_", "ms": 9, "markeredgewidth": 0.8, "color": INK}  # no colour of a part


def against_typicality(result: Result, columns: dict[str, tuple] = SHARES) -> Figure:
    rows = pd.DataFrame(result.tables["points"]).dropna(subset=["typicality"])
    with style():
        figure = Figure(figsize=(8.6, 4.2))
        for axes, (column, props) in zip(figure.subplots(1, 2), columns.items(), strict=True):
            _scatter(axes, rows.dropna(subset=[column]), column, props)
            found = result.values["learned"]["spearman"][column]
            axes.set_title(f"rank correlation {written(found)}", loc="left", fontsize=10)
        last = figure.axes[-1]
        for label, marker, face in POINTS:
            last.plot([], [], marker, color=GREY, mfc=face, label=label)
        if columns is not SHARES:
            last.plot([], [], ls="", label="uniform attention", **UNIFORM)
        figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _scatter(axes: Axes, rows: pd.DataFrame, column: str, props: tuple) -> None:
    part, label, named, remark = props
    colour = PART_COLOURS[part]
    axes.set(xlabel="typicality of the attention matrix", ylabel=label, xticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_xlim(0, 1.17)  # room for a name
    axes.set_ylim(min([-0.08, *(rows[column] - 0.05)]), 1.06)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    if rows.empty:
        axes.text(0.5, 0.5, "no cell of 30 samples: no typicality", ha="center", transform=axes.transAxes)
    for row in rows.sort_values("token_accuracy").to_dict("records"):
        if column.endswith("_only"):
            axes.plot(row["typicality"], row["uniform"], ls="", **UNIFORM)
        marker = "s" if row["architecture"] == "AO" else "o"
        props = {"mfc": colour, "alpha": 0.8} if row["learned"] else {"mfc": "white", "alpha": 0.55}
        axes.plot(row["typicality"], row[column], marker, ms=5, mew=0.9, mec=colour, **props)
    own = rows[rows["kind"].isin(rows.drop_duplicates("architecture")["kind"])]  # the first cell
    name = own["task"].map(lambda task: task if task in DIAL else family(task))
    name = name.where(own["architecture"] != "AO", "AO " + name)
    middles = own.groupby(name)[["typicality", column]].mean()
    dial = middles.reindex([mark for mark in DIAL if mark in middles.index])
    axes.plot(*dial.to_numpy().T, color=INK, lw=1, zorder=3)
    for each in filter(middles.index.__contains__, named):
        text, away = NAMES[each]
        axes.annotate(text, middles.loc[each], away, "data", "offset points", fontsize=9, path_effects=[HALO])
    if remark and len(dial) > 1:
        axes.annotate(remark[0], dial.iloc[1], remark[1], "data", "axes fraction", ARROW, fontsize=9)


MEANS = ["typicality", "temporal_share", "input_share", "token_accuracy"]
STEPS = 36  # weights in so many steps, a letter each: the matrices of all networks have to fit into the page
LETTERS = (digits + ascii_letters)[: STEPS + 1]
DECAY = registry.load("regularisation")  # the experiment whose networks have weight decay


def dial(result: Result) -> tuple[dict, pd.DataFrame]:
    """Points with their matrices, of committed results and the archive behind them alone."""
    if result.profile != "paper":
        return {}, pd.DataFrame()
    learned = {(row["task"], row["kind"], row["seed"]): row["learned"] for row in result.tables["points"]}
    rows, kinds = [], {}
    for name, level, found in _networks():
        outcomes, average = DECAY.outcomes(found), found["cell"]["average"]
        row = {"task": name["task"], "kind": kind(name), "seed": name["seed"]}
        # Whether a translator counts was asked of those without decay.
        counts = outcomes["accuracy"] >= DECAY.LEARNED or (not level and learned[tuple(row.values())])
        row |= {"decay": level, "learned": counts, **picked(outcomes, MEANS)}
        rows.append(row | {"across": len(average[0]), "average": _letters(average)})
        if not level:
            kinds.setdefault((row["task"], row["kind"]), []).append(found)
    points = pd.DataFrame(rows)
    table = points.groupby(["task", "kind", "decay"], sort=False)[MEANS].mean().round(2)
    table = table.rename(index=task_name, level="task").rename(columns=lambda name: name.replace("_", " "))
    return {
        "points": points.round(dict.fromkeys(MEANS, 3)).to_dict("list"),
        "letters": LETTERS,
        "kinds": [_kind(*each) for each in kinds.items()],
        "tasks": {task: [task_name(task), family(task)] for task in points["task"].unique()},
    }, table.rename_axis(["task", "network", "weight decay"])


def _networks() -> Iterator[tuple[dict, float, dict]]:
    """Every network of the page, then those with weight decay: its name, the level, and what was measured."""
    store, own = Store(ARCHIVE, archive=ARCHIVE, trains=False), DECAY.PROFILES["paper"]
    asked = [(0, each) for each in terms_of(PROFILES["paper"])]
    for spec, columns in DECAY.axis(own).items():
        if level := columns["weight_decay"]:
            terms = measurements_of([spec], measure_alignment_terms, fit_samples=own.fit_samples)
            asked += [(level, each) for each in terms]
    return ((name, level, found) for level, each in asked for name, found in answers([each], store))


def _kind(names: tuple[str, str], found: list[dict]) -> dict:
    sample = found[0]["cell"]["examples"][0]
    shares = pd.DataFrame([each["covariance_share"] for each in found]).mean()
    return {
        "task": names[0],
        "kind": names[1],
        "sample": _letters(sample["attention"]),
        "rows": sample["predicted"],
        "columns": sample["source"],
        "shares": [[round(shares[f"{d}_{e}"], 4) for e in PART_NAMES] for d in PART_NAMES],
    }


def _letters(matrix: list[list[float]]) -> str:
    return "".join(LETTERS[round(STEPS * weight)] for row in matrix for weight in row)


def readme_figure(folder: Path) -> tuple[Path, str]:
    drawn = against_typicality(Result.load(folder / "temporal_share.json"))
    return folder / "temporal_share.svg", as_svg(drawn, "path")


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
