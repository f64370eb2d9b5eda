"""Shares of own terms in networks built differently, each beside the plain one, and the dial of "after"."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.attend.variants.names import KINDS, PLAIN, VARIANT_MEANINGS
from notebooks.shared.marks import Mark, dots, grid, key_above, legend_of, line_of_dots, rule
from notebooks.shared.style import GREEN, INK, OCHRE, PART_COLOURS, network_name, task_name

WIDTH = 8.6  # inches
NARROW = 6.2
WITH_AFTER = r"_\d+$"  # ends the name of a task whose lists have "after"
SHARES = {
    "temporal_own": Mark("μ·μ", PART_COLOURS["temporal"], shift=-0.2),
    "input_own": Mark("χ·χ", PART_COLOURS["input"], "s"),
    "input_delta_own": Mark("(χ+Δ)·(χ+Δ)", PART_COLOURS["residual"], "D", shift=0.2, filled=False),
}
SHORT = {
    PLAIN: "plain",
    "context_readout": "output from context alone",
    "gated": "gated states",
    "learned_maps": "learned maps",
    "authors_defaults": "authors' defaults",
}
ON_THE_DIAL = {
    "token_accuracy": ("word accuracy", INK, ":"),
    "typicality": ("typicality", GREEN, "-"),
    "near_diagonal": ("attention near the diagonal", OCHRE, "-"),
    "temporal_own": ("μ·μ", PART_COLOURS["temporal"], "-"),
    "input_delta_own": ("(χ+Δ)·(χ+Δ)", PART_COLOURS["residual"], "-"),
}


def variants_beside_plain(result: Result) -> Figure:
    """Draw shares of own terms, a row for each network, in a panel for each task.

    A pale line from top to bottom of a kind's rows is the plain network's share of μ·μ.

    Args:
        result: of the experiment.
    """
    estimates = pd.DataFrame(result.tables["by_kind"])
    estimates = estimates[~estimates["task"].str.contains(WITH_AFTER)]
    by_task = dict(list(estimates.groupby("task", sort=False)))
    rows = {
        task: rows_of(set(zip(of_task["kind"], of_task["variant"], strict=True)))
        for task, of_task in by_task.items()
    }
    heights = [len(of_task) + 1 for of_task in rows.values()]
    size = (NARROW, 0.34 * sum(heights) + 1.5)
    with grid(len(rows), 1, size=size, sharex=True, gridspec_kw={"height_ratios": heights}) as (
        figure,
        panels,
    ):
        for axes, (task, of_task) in zip(panels[:, 0], by_task.items(), strict=True):
            draw_task(axes, of_task, rows[task])
            axes.set_title(task_name(task), loc="left", fontsize=10)
            axes.set_yticks(range(len(rows[task])), [name_of(*row) for row in rows[task]], fontsize=9)
            axes.set_ylim(len(rows[task]) - 0.5, -0.5)
        panels[-1, 0].set_xlabel("share of the covariance with the score")
        legend_of(figure, SHARES.values(), ncols=3)
    return figure


def rows_of(measured: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return kinds and variants that were measured, attention only first, each kind's plain network on top.

    >>> rows_of({("AED", "plain"), ("AO", "gated"), ("AO", "plain")})
    [('AO', 'plain'), ('AO', 'gated'), ('AED', 'plain')]
    """
    rows = []
    for kind in ("AO", "AED"):
        rows += [(kind, name) for name in VARIANT_MEANINGS if (kind, name) in measured]
    return rows


def name_of(kind: str, variant: str) -> str:
    """Return what a row is called; only the plain network's has the name of its kind."""
    return network_name(kind) if variant == PLAIN else SHORT[variant]


def rows_in(result: Result) -> dict[str, str]:
    """Return the key of each kind of network on each task, by what a table calls it."""
    kinds = dict.fromkeys((row["task"], row["kind"], row["variant"]) for row in result.tables["by_kind"])
    return {
        f"{name_of_task(task)}, {row_name(kind, variant)}": f"{task}.{kind}.{variant}"
        for task, kind, variant in kinds
    }


def name_of_task(task: str) -> str:
    """Return what a task is called; lists of SCAN with the percentage that has "after".

    >>> name_of_task("one_to_one"), name_of_task("scan_lists_50")
    ('one-to-one', 'lists of SCAN, 50 % with “after”')
    """
    without_percent, _, percent = task.rpartition("_")
    if percent.isdigit():
        return f"{task_name(without_percent)}, {percent} % with “after”"
    return task_name(task)


def row_name(kind: str, variant: str) -> str:
    """Return the name of a kind of network with what is built differently."""
    return network_name(kind) if variant == PLAIN else f"{network_name(kind)}, {SHORT[variant]}"


def draw_task(axes: Axes, estimates: pd.DataFrame, rows: list[tuple[str, str]]) -> None:
    """Draw both shares of each network on one task, and lines at those of the plain ones."""
    by_row = dict(list(estimates.groupby(["kind", "variant"], sort=False)))
    for place, row in enumerate(rows):
        rule(axes, place)
        if row in by_row:
            by_quantity = by_row[row].set_index("quantity").to_dict("index")
            dots(axes, by_quantity, SHARES, place, lw=1.3)
    for kind in KINDS:
        places = [place for place, (of_kind, _) in enumerate(rows) if of_kind == kind]
        if places and (kind, PLAIN) in by_row:
            share = by_row[kind, PLAIN].set_index("quantity")["value"]["temporal_own"]
            ends = [places[0] - 0.4, places[-1] + 0.4]
            axes.plot([share, share], ends, color=SHARES["temporal_own"].colour, lw=1, alpha=0.4, zorder=0)
    axes.set_xlim(-0.05, 1.03)


def dial_of_after(result: Result) -> Figure:
    """Draw what becomes of lists of SCAN as more of them have "after", a panel for each kind of network.

    Args:
        result: of the experiment.
    """
    estimates = pd.DataFrame(result.tables["by_kind"])
    on_dial = estimates[(estimates["variant"] == PLAIN) & estimates["task"].str.startswith("scan_lists")]
    percents = on_dial["task"].str.extract(r"_(\d+)$")[0].fillna("0").astype(int)
    on_dial = on_dial.assign(percent=percents).sort_values("percent", kind="stable")
    with grid(1, 2, size=(WIDTH, 3.4), sharey=True) as (figure, (panels,)):
        for axes, kind in zip(panels, KINDS, strict=True):
            of_kind = on_dial[on_dial["kind"] == kind]
            for quantity, (label, colour, line) in ON_THE_DIAL.items():
                rows = of_kind[of_kind["quantity"] == quantity]
                line_of_dots(
                    axes, rows["percent"], rows.to_dict("records"), colour, ls=line, ms=4, label=label
                )
            axes.set_title(network_name(kind), loc="left", fontsize=10)
            axes.set_xlabel('lists with "after", in percent')
            axes.set_xticks(sorted(set(of_kind["percent"])))
            axes.set_ylim(-0.05, 1.05)
        handles, _ = panels[0].get_legend_handles_labels()
        key_above(figure, handles, ncols=5, columnspacing=1.2)
    return figure
