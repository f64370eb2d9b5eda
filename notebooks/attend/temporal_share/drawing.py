"""The figure that README.md shows too, shares against typicality, a point for each network.

``python -m notebooks.attend.temporal_share.drawing`` draws README's from the committed result.
"""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.files import write_text_atomic
from companion.book.numbers import written
from companion.book.project import current_project
from companion.book.style import INK, PART_COLOURS, as_svg, style
from companion.results.result import Result
from notebooks.attend.temporal_share.experiment import family
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
    """Two panels over typicality, the temporal quantity in blue and the input one in vermillion."""
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


def readme_figure(folder: Path) -> tuple[Path, str]:
    drawn = against_typicality(Result.load(folder / "temporal_share.json"))
    return folder / "temporal_share.svg", as_svg(drawn, "path")


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
