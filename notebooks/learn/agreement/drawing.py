"""Agreement along training with the ties of the probe counted as agreement and with them broken."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.shared.agreement_drawing import COLUMN_LOOKS, data_name, data_of, pair_curves

SHOWN = ("alpha_beta_uf", "beta_uf_beta_px", "alpha_beta")
LOOKS = {
    "counted": ("agreement, ties agree", INK, "-"),
    "broken": ("agreement, ties broken at random", "#d55e00", "--"),
    "tied": ("words whose largest β is tied", "#999999", "-"),
}


def sets_with_ties(result: Result) -> list[str]:
    """The sets of sentence pairs whose runs have been asked for their ties."""
    asked = {row["data"] for row in result.tables.get("ties", ())}
    return [name for name in data_of(result) if name in asked]


def ties_along_training(result: Result) -> Figure:
    """A row a set of pairs, a panel a column: means over pairs of runs, range of pairs as bands."""
    names = sets_with_ties(result)
    with style():
        figure = Figure(figsize=(8.8, 0.8 + 2.6 * len(names)))
        panels = figure.subplots(len(names), len(SHOWN), squeeze=False, sharey="row")
        for row, name in zip(panels, names, strict=True):
            for axes, column in zip(row, SHOWN, strict=True):
                _draw(axes, [line for line in result.tables["ties"] if line["data"] == name], column)
            row[0].set_ylim(bottom=0)
            row[0].set_ylabel(f"{data_name(name)}\n% of target words")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw(axes: Axes, rows: list[dict], column: str) -> None:
    for key, (label, colour, line) in LOOKS.items():
        steps, values = pair_curves((row for row in rows if row["column"] == column), key)
        if len(steps):
            axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.12, lw=0)
            axes.plot(steps, values.mean(0), color=colour, ls=line, lw=1.6, label=label)
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(COLUMN_LOOKS[column][0].replace(", ", ",\n"), loc="left")
    axes.set_xlabel("updates of the second run")
