"""What the instrument of the page draws: attention learned and attention held uniform, task by task."""

import pandas as pd

from companion.results.result import Result
from notebooks.shared.drawn_or_driven import drawn_or_driven

COLUMNS = {"token_accuracy": "accuracy", "on_word": "right", "word_accuracy": "known"}
NAMES = {"learned": "attention learned", "uniform": "attention held uniform"}


def networks(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """Means over the networks of a task; what is left on the right word at the end is the way they go."""
    courses = pd.DataFrame(result.tables.get("courses", []))
    if courses.empty:
        return {}, courses
    courses = courses[courses["quantity"].isin(list(COLUMNS))]
    keys = ["task", "attention", "step"]
    wide = courses.pivot(index=keys, columns="quantity", values="value").rename(columns=COLUMNS).reset_index()
    uniform = wide["attention"] == "uniform"
    wide["right"] /= wide["task"].map(
        {task: own["chance"]["value"] for task, own in result.values["last"].items()}
    )
    wide.loc[uniform, "right"] = 1.0
    ends = wide.groupby(["task", "attention"])["right"].transform("last")
    wide["way"] = (ends >= 1).map({True: "drawn", False: "away"}).mask(uniform)
    wide["name"] = wide["attention"].map(NAMES)
    named = wide.rename(columns={"task": "kind", "step": "steps"})
    return drawn_or_driven(named, kinds, doublings=True, of=f"the mean of {courses['n'].max():.0f} networks")
