"""What the dial of the page draws: every network as a point, and the attention and shares of each kind."""

import pandas as pd

from attnlib.decomposition.components import PART_NAMES
from companion.book.project import current_project
from companion.results.result import Result
from notebooks.attend.temporal_share.experiment import family
from notebooks.shared.style import task_name

KIND, PLACES = ["task", "architecture"], ["target_position", "source_position"]
MEANS = ["typicality", "temporal_share", "input_share", "token_accuracy"]


def dial(result: Result) -> tuple[dict, pd.DataFrame]:
    """Points, and of each task and architecture the average and one sample's matrix and the nine shares.

    These are of committed results; a run of the reader's own has none of them, and no dial.
    """
    if result.profile != "paper":
        return {}, pd.DataFrame()
    folder, points = current_project().results("paper"), pd.DataFrame(result.tables["points"])
    matrices, breakdown = (
        Result.load(folder / f"{name}.json") for name in ("attention_matrices", "alignment_breakdown")
    )
    columns = points[[*KIND, "cell", "seed", "learned", *MEANS]].round(3).astype(object)
    rows, kinds = pd.DataFrame(matrices.tables["samples"]).query("sample == 0"), []
    for (task, kind), average in pd.DataFrame(matrices.tables["average"]).groupby(KIND, sort=False):
        sample = rows[(rows["task"] == task) & (rows["architecture"] == kind)]
        own = {name: _matrix(table) for name, table in (("average", average), ("sample", sample))}
        own["rows"] = sample.groupby(PLACES[0])["predicted"].first().tolist()
        own["columns"] = sample.groupby(PLACES[1])["source"].first().tolist()
        shares = breakdown.values[task][kind]["covariance_share"]
        own["shares"] = [[shares[f"{d}_{e}"]["value"] for e in PART_NAMES] for d in PART_NAMES]
        kinds.append({"task": task, "architecture": kind} | own)
    names = {task: [task_name(task), family(task)] for task in dict.fromkeys(points["task"])}
    table = points.assign(task=points["task"].map(task_name)).groupby([*KIND, "cell"], sort=False)[MEANS]
    columns = columns.where(columns.notna(), None).to_dict("list")
    table = table.mean().round(2).rename(columns=lambda name: name.replace("_", " "))
    return {"points": columns, "kinds": kinds, "tasks": names}, table


def _matrix(rows: pd.DataFrame) -> list[list[float]]:
    return rows.pivot(index=PLACES[0], columns=PLACES[1], values="attention").round(2).to_numpy().tolist()
