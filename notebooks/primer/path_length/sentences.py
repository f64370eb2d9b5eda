"""The chapter on path length in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import capital, side
from companion.book.tables import interval_range, interval_text
from companion.claims import Estimate
from companion.results.result import Result
from notebooks.primer.path_length.drawing import LOOKS, TITLES, kinds_of
from notebooks.primer.path_length.experiment import STAGES

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "decay": "decades a step",
    "aligned": "share on the aligned word",
    "apart": "most over least, decades",
    "first_over_last": "first pair over last, decades",
}
ALIKE = 0.01  # decades a step: a factor of 2.4 over the 38 steps from the nearest of 20 words to the farthest


def decay_table(result: Result) -> "pd.DataFrame":
    """A row a kind, cell and stage."""
    import pandas as pd

    rows = {}
    for kind in kinds_of(result):
        for cell in result.config["cell"]:
            for stage in STAGES:
                found = result.values[kind].get(cell, {}).get(stage)
                if found:
                    rows[f"{LOOKS[kind][0]}, {cell.upper()}, {TITLES[stage]}"] = {
                        heading: interval_text(found[name]) for name, heading in COLUMNS.items()
                    }
    return pd.DataFrame.from_dict(rows, orient="index")


def decay_sentences(result: Result) -> str:
    """How fast gradients decay, before and after training, with one vector and with attention."""
    lines = []
    for stage in STAGES:
        parts = [
            f"{LOOKS[kind][0]} {interval_range(result.values[kind]['main'][stage]['decay'])}"
            for kind in kinds_of(result)
        ]
        flatter = result.values["flatter"][stage]
        difference = (
            f" Attention less one vector: {interval_range(flatter)}." if flatter["value"] is not None else ""
        )
        lines.append(f"* **{capital(TITLES[stage])}**, decades a step: {'; '.join(parts)}.{difference}")
    return "\n".join(lines)


def alike_sentences(result: Result) -> str:
    """Whether gradients rise or fall with distance with attention, before and after training."""
    lines = []
    for kind in (own for own in kinds_of(result) if own.startswith("attention")):
        for stage in STAGES:
            slope = result.values[kind]["main"][stage]["decay"]
            lines.append(
                f"* **{capital(LOOKS[kind][0])}, {TITLES[stage]}**: {_alike(slope)} "
                f"({Estimate.of(slope, 'decay')}; decades a step). {_extremes(result, kind, stage)}"
            )
    return "\n".join(lines) or "No network with attention has been run."


def _extremes(result: Result, kind: str, stage: str) -> str:
    """What a straight line does not see: how far apart the most and the least reached distances are."""
    of = {"kind": kind, "cell": result.config["cell"][0], "stage": stage}
    rows = sorted(
        (row for row in result.tables["decay"] if of.items() <= row.items()), key=lambda row: row["value"]
    )
    least, most = rows[0], rows[-1]
    return (
        f"Most reaches words {most['distance']} steps away, least those {least['distance']} away, "
        f"{most['value'] - least['value']:.2f} decades less (network by network, "
        f"{interval_range(result.values[kind]['main'][stage]['apart'])})."
    )


def _alike(slope: dict) -> str:
    if side(slope, -ALIKE) == "above" and side(slope, ALIKE) == "below":
        return f"a straight line over distance is level, to {ALIKE:g}"
    if side(slope, ALIKE) == "above":
        return "a straight line over distance rises"
    if side(slope, -ALIKE) == "below":
        return "a straight line over distance falls"
    return "it cannot be told whether a straight line over distance is level"
