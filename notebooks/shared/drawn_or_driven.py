"""What the instrument *drawn or driven away* draws on three pages: courses, with weights on words."""

from collections.abc import Mapping

import pandas as pd

from companion.results.result import Result

CURVES = {
    "accuracy": "words right",
    "right": "weight on the right word",
    "later": "weight on a later one",
    "known": "words known",
}


def drawn_or_driven(
    courses: pd.DataFrame, kinds: Mapping[str, str], **more: object
) -> tuple[dict, pd.DataFrame]:
    """Every network's course, and a table of how it ends.

    ``courses``: a row a snapshot, with ``kind``, ``name`` and ``way`` of the network, ``steps``, and columns
    of :data:`CURVES`, weights as multiples of uniform attention. ``kinds`` are those shown, by what a reader
    calls them. ``more``: ``doublings`` of the updates across, what networks that go ``neither`` way do.
    """
    shown = courses[courses["kind"].isin(list(kinds))] if len(courses) else courses
    if shown.empty:
        return {}, pd.DataFrame()
    steps, found = {}, []
    for (kind, name, way), own in shown.groupby(["kind", "name", "way"], sort=False, dropna=False):
        steps[kind] = own["steps"].tolist()
        rounded = {curve: [_short(value) for value in own[curve]] for curve in CURVES if curve in own}
        found.append({"kind": kind, "name": name, "way": way if isinstance(way, str) else None} | rounded)
    ends = shown.groupby(["kind", "name"], sort=False).last().fillna({"way": "neither"}).reset_index()
    groups = ends.replace({"kind": dict(kinds)}).groupby(["kind", "way"], sort=False)
    table = groups[[curve for curve in CURVES if curve in ends]].mean().round(2).rename(columns=CURVES)
    names = {kind: kinds[kind] for kind in kinds if kind in steps}
    return {"kinds": names, "steps": steps, "networks": found} | more, table.assign(networks=groups.size())


def _short(value: float) -> float | None:
    return None if pd.isna(value) else float(f"{value:.3g}")


def of_sentences(result: Result) -> tuple[dict, pd.DataFrame]:
    """The courses of networks that learn to copy, by kind of sentences."""
    if not result.tables.get("outcomes"):
        return {}, pd.DataFrame()
    courses = _copying(result)
    ways = pd.DataFrame(result.tables["outcomes"])[["kind", "network", "seed", "way"]]
    learned = courses[courses["network"] == "learned"].merge(ways).rename(columns={"seed": "name"})
    kinds = {
        "permutation": f"permutations of {result.config['length']} words",
        "sample": "samples of a larger set",
        "mixture": "one of two sets",
    }
    return drawn_or_driven(learned, kinds)


def of_heads(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """By scenario, networks named by number; one goes the way on whose side of uniform attention it ends."""
    if not result.tables.get("courses"):
        return {}, pd.DataFrame()
    courses = _copying(result)
    own = courses.groupby(["scenario", "heads", "body", "seed"], sort=False)
    numbers = own.ngroup()
    courses["name"] = numbers - numbers.groupby(courses["scenario"]).transform("min")
    courses["way"] = _way(own["right"].transform("last"))
    return drawn_or_driven(courses.rename(columns={"scenario": "kind"}), kinds)


def _copying(result: Result) -> pd.DataFrame:
    """Courses of networks that copy, in the columns of :data:`CURVES`."""
    names = {"attention_right": "right", "attention_later": "later", "probe_agreement": "known"}
    courses = pd.DataFrame(result.tables["courses"]).rename(columns=names)
    courses[["right", "later"]] *= result.config["length"]
    return courses


def _way(ends: pd.Series) -> pd.Series:
    return (ends >= 1).map({True: "drawn", False: "away"})


def of_tasks(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """By task: those that learn go the way on whose side of even attention they end; the others neither."""
    names = {"task": "kind", "step": "steps", "token_accuracy": "accuracy", "word_accuracy": "known"}
    courses = pd.DataFrame(result.tables.get("snapshots", [])).rename(columns=names)
    if courses.empty:
        return {}, courses
    uniform = courses["attention"] == "uniform"
    courses["right"] = (courses["on_word"] / courses["chance"]).mask(uniform, 1.0)
    ends = courses.groupby(["kind", "attention", "seed"])["right"].transform("last")
    courses["way"] = _way(ends).mask(uniform)
    courses["name"] = courses["seed"].astype(str) + uniform.map({True: ", held uniform", False: ""})
    return drawn_or_driven(courses, kinds, doublings=True, neither="with attention held uniform")
