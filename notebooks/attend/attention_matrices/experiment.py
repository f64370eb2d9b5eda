"""Attention matrices across tasks: the average, single samples, and how well one stands for the other."""

from companion.results.frames import Table, keyed, view
from companion.runs.columns import NETWORK, Column, share
from companion.runs.store import Store
from notebooks.shared.suite import BY_KIND, OUTCOMES, PROFILES, SUITE, measurements, outcomes, suite_frame
from notebooks.shared.suite import SuiteConfig as Config
from notebooks.shared.summaries import rows_of, summarise

ESTIMATED = ("typicality", "near_diagonal", "token_accuracy", "exact_match")
JUDGED = {
    "cells": Column("groups of held-out samples of the same lengths that are large enough for a typicality"),
    "held_out_samples": Column("held-out samples", "samples"),
}
ENTRY = {
    "target_position": Column("row of the attention matrix: target position, from 0"),
    "source_position": Column("column of the attention matrix: source position, from 0"),
    "attention": share("weight of the source position at this target position"),
}
AVERAGE = {"samples": Column("samples that are averaged, all of the same lengths", "samples")} | ENTRY
SAMPLE = {
    "sample": Column("number of the sample within its kind"),
    "target_position": ENTRY["target_position"],
    "source_position": ENTRY["source_position"],
    "predicted": Column("target word that is predicted at the target position"),
    "source": Column("source word at the source position"),
    "attention": ENTRY["attention"],
}

__all__ = ["PROFILES", "Config", "compute", "measurements", "values"]


def compute(config: Config, store: Store) -> dict[str, Table]:
    asked = measurements(config)
    networks = suite_frame(asked, store, records=_numbers, columns=OUTCOMES | JUDGED)
    first = [measurement for measurement in asked if measurement.spec.seed == 0]
    of_entries = {"names": {name: SUITE[name] for name in BY_KIND}, "row": "an entry of an attention matrix"}
    average = suite_frame(first, store, records=_average, columns=AVERAGE, **of_entries)
    samples = suite_frame(first, store, records=_samples, columns=SAMPLE, **of_entries)
    return {
        "points": networks.select(*NETWORK, *OUTCOMES),
        "average": average.rename(kind="architecture"),
        "samples": samples.rename(kind="architecture"),
        "estimates": summarise(networks, BY_KIND, ESTIMATED),
        "judged": networks.query("seed == 0").select(*BY_KIND, "coverage", *JUDGED),
    }


def _numbers(terms: dict) -> dict:
    typicality = terms["typicality"]
    return outcomes(terms) | {"cells": typicality["cells"], "held_out_samples": typicality["samples"]}


def _average(terms: dict) -> list[dict]:
    cell = terms["cell"]
    return [{"samples": cell["samples"]} | entry for entry in _entries(cell["average"])]


def _samples(terms: dict) -> list[dict]:
    return [
        {"sample": number, "predicted": example["predicted"][entry["target_position"]]}
        | {"source": example["source"][entry["source_position"]]}
        | entry
        for number, example in enumerate(terms["cell"]["examples"])
        for entry in _entries(example["attention"])
    ]


def _entries(matrix: list[list[float]]) -> list[dict]:
    return rows_of(matrix, "target_position", "source_position", "attention")


def values(config: Config, tables: dict[str, Table]) -> dict:
    estimates = keyed(tables["estimates"], "{task}.{kind}.{quantity}")
    return view(estimates, keyed(tables["judged"], "{task}.{kind}.{column}", ["coverage", *JUDGED]))
