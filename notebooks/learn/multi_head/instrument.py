"""What the instrument of the page draws: the course of every network, by the heads that it begins with."""

import pandas as pd

from companion.results.result import Result
from notebooks.shared.drawn_or_driven import drawn_or_driven, of_copying


def networks(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """The courses of each scenario; a network goes the way on whose side of uniform attention it ends."""
    courses = pd.DataFrame(result.tables.get("courses", []))
    if courses.empty:
        return {}, courses
    own = courses.groupby(["scenario", "heads", "body", "seed"], sort=False)
    numbers = own.ngroup()
    courses = of_copying(courses, result.config["length"]).assign(
        kind=courses["scenario"],
        name=numbers - numbers.groupby(courses["scenario"]).transform("min"),
        way=(own["attention_right"].transform("last") * result.config["length"] >= 1).map(
            {True: "drawn", False: "away"}
        ),
    )
    return drawn_or_driven(courses, kinds)
