"""What the instrument *drawn or driven away* draws: courses, with the weight on the right word."""

from collections.abc import Mapping

import pandas as pd

CURVES = {
    "accuracy": "words right",
    "right": "weight on the right word",
    "later": "weight on a later one",
    "known": "words known",
}


def of_copying(courses: pd.DataFrame, length: int) -> pd.DataFrame:
    """Courses of networks that copy sentences of a length, in the columns of :data:`CURVES`."""
    weights = {"right": courses["attention_right"] * length, "later": courses["attention_later"] * length}
    return courses.assign(**weights, known=courses["probe_agreement"])


def drawn_or_driven(
    courses: pd.DataFrame, kinds: Mapping[str, str], **more: object
) -> tuple[dict, pd.DataFrame]:
    """Every network's course, and a table of how it ends.

    Args:
        courses: a row a snapshot, with ``kind``, ``name`` and ``way`` of the network, ``steps``, and the
            columns of :data:`CURVES`; weights as multiples of uniform attention.
        kinds: those that are shown, the first at the start, by what a reader calls them.
        more: how it is shown: ``doublings`` of the updates across, what networks that go ``neither`` way do.
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
