"""What the instrument of the page draws: the course of every network that learns to attend."""

import pandas as pd

from companion.results.result import Result

CURVES = {
    "accuracy": "accuracy",
    "right": "attention_right",
    "later": "attention_later",
    "known": "probe_agreement",
}


def networks(result: Result) -> tuple[dict, pd.DataFrame]:
    """Every network's course, weights times the length, and a table of how it ends."""
    if not result.tables.get("outcomes"):
        return {}, pd.DataFrame()
    length, courses = result.config["length"], pd.DataFrame(result.tables["courses"])
    ways = pd.DataFrame(result.tables["outcomes"])[["kind", "network", "seed", "way"]]
    courses = courses[courses["network"] == "learned"].merge(ways)
    courses[["attention_right", "attention_later"]] *= length
    steps, found = {}, []
    for (kind, seed, way), own in courses.groupby(["kind", "seed", "way"], sort=False, dropna=False):
        steps[kind] = own["steps"].tolist()
        rounded = {name: [float(f"{value:.3g}") for value in own[column]] for name, column in CURVES.items()}
        found.append({"kind": kind, "seed": seed, "way": way if isinstance(way, str) else None} | rounded)
    ends = courses.groupby(["kind", "seed"], sort=False).last().fillna({"way": "neither"}).reset_index()
    groups = ends.groupby(["kind", "way"], sort=False)
    table = groups[[*CURVES.values()]].mean().round(2).assign(networks=groups.size())
    return {"length": length, "steps": steps, "networks": found}, table
