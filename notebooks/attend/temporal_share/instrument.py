"""What the dial of the page draws: every network as a point, and the attention and shares of each kind."""

import pandas as pd

from attnlib.decomposition.components import PART_NAMES
from companion.book.project import current_project
from companion.results.result import Result
from notebooks.attend.temporal_share.experiment import family
from notebooks.shared.style import task_name

KIND = ["task", "architecture"]
MATRIX = ["target_position", "source_position"]
MEANS = ["typicality", "temporal_share", "input_share", "token_accuracy"]


def dial(result: Result) -> tuple[dict, pd.DataFrame]:
    """Points, and of each task and architecture the average and one sample's matrix and the nine shares.

    These are of committed results; a run of the reader's own has none of them, and no dial.
    """
    if result.profile != "paper":
        return {}, pd.DataFrame()
    matrices, breakdown = (
        Result.load(current_project().results("paper") / f"{name}.json")
        for name in ("attention_matrices", "alignment_breakdown")
    )
    points = pd.DataFrame(result.tables["points"])
    columns = points[[*KIND, "cell", "seed", *MEANS]].round(3).astype(object)
    columns = columns.where(columns.notna(), None).to_dict("list")
    average, samples = (pd.DataFrame(matrices.tables[name]) for name in ("average", "samples"))
    first = samples[samples["sample"] == 0].groupby(KIND)
    kinds = []
    for (task, architecture), own in average.groupby(KIND, sort=False):
        sample = first.get_group((task, architecture))
        shares = breakdown.values[task][architecture]["covariance_share"]
        kinds.append({
            "task": task,
            "architecture": architecture,
            "average": _matrix(own),
            "sample": _matrix(sample),
            "rows": sample.groupby("target_position")["predicted"].first().tolist(),
            "columns": sample.groupby("source_position")["source"].first().tolist(),
            "shares": [[_rounded(shares[f"{d}_{e}"]["value"]) for e in PART_NAMES] for d in PART_NAMES],
        })  # fmt: skip
    names = {task: [task_name(task), family(task)] for task in dict.fromkeys(points["task"])}
    table = points.assign(task=points["task"].map(task_name)).groupby([*KIND, "cell"], sort=False)[MEANS]
    return {"points": columns, "kinds": kinds, "tasks": names}, table.mean().round(2)


def _matrix(rows: pd.DataFrame) -> list[list[float]]:
    return rows.pivot(index=MATRIX[0], columns=MATRIX[1], values="attention").round(2).to_numpy().tolist()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
