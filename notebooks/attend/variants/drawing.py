"""Shares of own terms in networks built differently, each beside the plain one, and the dial of "after"."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.attend.variants.names import KINDS, PLAIN, VARIANT_MEANINGS
from notebooks.shared.marks import Mark, dots, grid, key_above, line_of_dots, rule
from notebooks.shared.style import GREEN, INK, OCHRE, PART_COLOURS, network_name, task_name

WIDTH = 8.6  # inches
NARROW = 3.75  # which a telephone shows whole
TITLE_AT = -0.31  # of a panel's width: above the names of its rows
FOUND, FOUND_IN = "Learned maps give position more", ("one_to_one", "AED")
WITH_AFTER = r"_\d+$"  # ends the name of a task whose lists have "after"
SHARES = {
    "temporal_own": Mark("position", PART_COLOURS["temporal"], shift=-0.12, ms=6),
    "input_delta_own": Mark("words and residuals", "#707070", "D", shift=0.12, filled=False, ms=5),
}
SHORT = {
    PLAIN: "plain",
    "context_readout": "output from\ncontext alone",
    "gated": "gated states",
    "learned_maps": "learned maps",
    "authors_defaults": "authors'\ndefaults",
    "authors_defaults_longer": "the same,\ntrained longer",
}
ON_THE_DIAL = {
    "token_accuracy": ("word accuracy", INK, ":"),
    "typicality": ("typicality", GREEN, "-"),
    "near_diagonal": ("attention near the diagonal", OCHRE, "-"),
    "temporal_own": ("μ·μ", PART_COLOURS["temporal"], "-"),
    "input_delta_own": ("(χ+Δ)·(χ+Δ)", PART_COLOURS["residual"], "-"),
}


def variants_beside_plain(result: Result) -> Figure:
    """Draw shares of own terms, a row for each network, in a panel for each task and kind of network.

    The pale line of a panel is at the plain network's share of μ·μ.

    Args:
        result: of the experiment.
    """
    estimates = pd.DataFrame(result.tables["by_kind"])
    estimates = estimates[~estimates["task"].str.contains(WITH_AFTER)]
    panels_of = {
        (task, kind): of_panel
        for task, of_task in estimates.groupby("task", sort=False)
        for kind, of_panel in sorted(of_task.groupby("kind"), key=lambda panel: panel[0] != "AED")
    }
    heights = [of_panel["variant"].nunique() + 0.5 for of_panel in panels_of.values()]
    size = (NARROW, 0.32 * (sum(heights) + 0.45) + 0.55 * len(heights) + 0.6)
    look = {"sharex": True, "gridspec_kw": {"height_ratios": [heights[0] + 0.45, *heights[1:]]}}
    with grid(len(panels_of), 1, size=size, **look) as (figure, panels):
        for axes, ((task, kind), of_panel) in zip(panels.flat, panels_of.items(), strict=True):
            draw_variants(axes, of_panel)
            title = f"{network_name(kind)}, {task_name(task)}"
            finding = f"{FOUND}\n" if (task, kind) == FOUND_IN else ""
            axes.set_title(f"{finding}{title}", loc="left", x=TITLE_AT, fontsize=9.5, fontweight="bold")
            axes.tick_params(labelbottom=True)
        name_shares(panels[0, 0], next(iter(panels_of.values())))
        panels[-1, 0].set_xlabel("share of the covariance with the score")
    return figure


def draw_variants(axes: Axes, estimates: pd.DataFrame) -> None:
    """Draw both shares of each network of one kind on one task, and a line at that of the plain one."""
    by_variant = {
        variant: rows.set_index("quantity").to_dict("index")
        for variant, rows in estimates.groupby("variant", sort=False)
    }
    shown = [variant for variant in VARIANT_MEANINGS if variant in by_variant]
    for place, variant in enumerate(shown):
        rule(axes, place)
        dots(axes, by_variant[variant], SHARES, place, lw=1.3)
    if PLAIN in by_variant:
        share = by_variant[PLAIN]["temporal_own"]["value"]
        ends = [-0.4, len(shown) - 0.5]
        axes.plot([share, share], ends, color=SHARES["temporal_own"].colour, lw=1, alpha=0.4, zorder=0)
    axes.set_yticks(range(len(shown)), [SHORT[variant] for variant in shown], fontsize=9)
    axes.set_ylim(len(shown) - 0.5, -0.75)
    axes.set_xlim(-0.05, 1.03)


def name_shares(axes: Axes, estimates: pd.DataFrame) -> None:
    """Write above the first row of a panel which mark is which share."""
    first = estimates[estimates["variant"] == estimates["variant"].iloc[0]].set_index("quantity")["value"]
    axes.set_ylim(top=-1.2)
    for quantity, mark in SHARES.items():
        axes.text(first[quantity], -0.65, mark.label, color=mark.colour, ha="center", fontsize=9)


def rows_in(result: Result) -> dict[str, str]:
    """Return the key of each kind of network on each task, by what a table calls it."""
    kinds = dict.fromkeys((row["task"], row["kind"], row["variant"]) for row in result.tables["by_kind"])
    return {
        f"{name_of_task(task)}, {row_name(kind, variant)}": f"{task}.{kind}.{variant}"
        for task, kind, variant in kinds
    }


def name_of_task(task: str) -> str:
    """Return what a task is called; SCAN lists with the percentage that has "after".

    >>> name_of_task("one_to_one"), name_of_task("scan_lists_50")
    ('one-to-one', 'SCAN lists, 50 % with “after”')
    """
    without_percent, _, percent = task.rpartition("_")
    if percent.isdigit():
        return f"{task_name(without_percent)}, {percent} % with “after”"
    return task_name(task)


def row_name(kind: str, variant: str) -> str:
    """Return the name of a kind of network with what is built differently."""
    name = network_name(kind)
    return name if variant == PLAIN else f"{name}, {SHORT[variant].replace(chr(10), ' ')}"


def dial_of_after(result: Result) -> Figure:
    """Draw what becomes of SCAN lists as more of them have "after", a panel for each kind of network.

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
