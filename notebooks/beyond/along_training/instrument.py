"""What the instrument of the page draws: every network's course, attention learned or held uniform."""

import pandas as pd

from companion.results.result import Result
from notebooks.shared.drawn_or_driven import drawn_or_driven

COLUMNS = {"task": "kind", "step": "steps", "token_accuracy": "accuracy", "word_accuracy": "known"}


def networks(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """Those that learn go the way on whose side of uniform attention they end; the others neither."""
    courses = pd.DataFrame(result.tables.get("snapshots", []))
    if courses.empty:
        return {}, courses
    uniform = courses["attention"] == "uniform"
    courses["right"] = (courses["on_word"] / courses["chance"]).mask(uniform, 1.0)
    ends = courses.groupby(["task", "attention", "seed"])["right"].transform("last")
    courses["way"] = (ends >= 1).map({True: "drawn", False: "away"}).mask(uniform)
    courses["name"] = courses["seed"].astype(str) + uniform.map({True: ", held uniform", False: ""})
    named = courses.rename(columns=COLUMNS)
    return drawn_or_driven(named, kinds, doublings=True, neither="with attention held uniform")
