"""Attention matrices across tasks: the average, single samples, and how well one stands for the other."""

from companion.results.measurements import answers
from companion.runs.store import Store
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind
from notebooks.shared.plan import picked
from notebooks.shared.suite import PROFILES, measurements, outcomes
from notebooks.shared.suite import SuiteConfig as Config
from notebooks.shared.summaries import rows_of

POINT = ("typicality", "near_diagonal")

__all__ = ["PROFILES", "Config", "compute", "measurements"]


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    points = answers(measurements(config), store)
    rows = [name | picked(outcomes(m), (*POINT, *m["quality"], "coverage")) for name, m in points]
    average, samples = [], []
    for name, m in points:
        if name["seed"] == 0:
            here, cell = {"task": name["task"], "architecture": kind(name)}, m["cell"]
            average += _entries(here | {"samples": cell["samples"]}, cell["average"])
            for index, example in enumerate(cell["examples"]):
                samples += _entries(here | {"sample": index}, example["attention"], example)
    return by_kind(points, _summary), {"points": rows, "average": average, "samples": samples}


def _summary(group: list[Point]) -> dict:
    first = group[0][1]["typicality"]
    settled = picked(first, ("coverage", "cells")) | {"held_out_samples": first["samples"]}
    names = (*POINT, "token_accuracy", "exact_match")
    return each_over_seeds(group, lambda m: picked(outcomes(m), names)) | settled


def _entries(columns: dict, matrix: list[list[float]], words: dict | None = None) -> list[dict]:
    """A row for each entry of a matrix, with the words of its row and column where they are given."""
    rows = [columns | row for row in rows_of(matrix, "target_position", "source_position", "attention")]
    for row in rows if words else ():
        weight = row.pop("attention")
        row |= {"predicted": words["predicted"][row["target_position"]]}
        row |= {"source": words["source"][row["source_position"]], "attention": weight}
    return rows
