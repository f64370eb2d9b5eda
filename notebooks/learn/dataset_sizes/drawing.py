"""How far our counts of data sets are from those of Table 9."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from notebooks.shared.marks import Mark, grid, key_above, legend_handles
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, blank, data_name

NUMBER_OF_TEXTS = Mark("number of texts", INK, "o", shift=0.14, ms=6.5)
MEDIAN_LENGTH = Mark("median length", INK, "D", shift=-0.14, ms=5.5)
EXACT, OTHERWISE = Mark("exactly as published", GREEN, "s"), Mark("not", AMBER, "s")


def against_table_9(rows: pd.DataFrame) -> Figure:
    """Draw how far ours are from the published numbers, a row a set; the exact ones in another colour."""
    if len(rows):
        rows = rows[rows["compared"].astype(bool) & (rows["reading"] == "published")]
    if rows.empty:
        return blank()
    names = rows["data"].drop_duplicates().tolist()[::-1]
    with grid(1, 1, size=(4.7, 1.2 + 0.4 * len(names))) as (figure, ((axes,),)):
        axes.axvline(0, color=INK, lw=0.8, zorder=0)
        for (data, equal, texts), same in rows.groupby(["data", "equal", rows["what"] == "texts"]):
            off = (same["found"] / same["printed"] - 1).drop_duplicates()
            mark = NUMBER_OF_TEXTS if texts else MEDIAN_LENGTH
            places = [names.index(data) + mark.shift] * len(off)
            colour = EXACT.colour if equal else OTHERWISE.colour
            axes.plot(off, places, mark.marker, color=colour, ms=mark.ms)
        axes.set_yticks(
            range(len(names)), [data_name(name).replace(" (", "\n(") for name in names], fontsize=9
        )
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xlim(-0.13, 0.42)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("our number minus the published one", fontsize=9)
        annotate_sst(axes, names)
        marks = [NUMBER_OF_TEXTS, MEDIAN_LENGTH, EXACT, OTHERWISE]
        key_above(figure, legend_handles(marks, ms=6), ncols=2, fontsize=9)
    return figure


def annotate_sst(axes: Axes, names: Sequence[str]) -> None:
    """Point at the two readings of the filter of SST, where both were counted."""
    if not {"sst", "sst_as_text"} <= set(names):
        return
    as_text, from_zero = names.index("sst_as_text"), names.index("sst")
    text = "the filter of labels in the text\nleaves a third too many"
    note = {"arrowprops": ARROW, "va": "center", "fontsize": 9}
    axes.annotate(text, (0.345, as_text + 0.14), (0.1, as_text - 1.6), **note)
    axes.annotate("with labels counted\nfrom 0, all fits", (0.004, from_zero), (0.1, from_zero + 0.9), **note)
