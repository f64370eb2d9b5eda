"""What the instrument of the page draws: the course of every network that learns to attend."""

import pandas as pd

from companion.results.result import Result
from notebooks.shared.drawn_or_driven import drawn_or_driven, of_copying


def networks(result: Result) -> tuple[dict, pd.DataFrame]:
    """The courses of networks that learn attention, by kind of sentences."""
    if not result.tables.get("outcomes"):
        return {}, pd.DataFrame()
    length, courses = result.config["length"], pd.DataFrame(result.tables["courses"])
    ways = pd.DataFrame(result.tables["outcomes"])[["kind", "network", "seed", "way"]]
    learned = courses[courses["network"] == "learned"].merge(ways).rename(columns={"seed": "name"})
    kinds = {
        "permutation": f"permutations of {length} words",
        "sample": "samples of a larger set",
        "mixture": "one of two sets",
    }
    return drawn_or_driven(of_copying(learned, length), kinds)
