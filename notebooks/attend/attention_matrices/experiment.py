"""Attention matrices across tasks: the average, single samples, and how well one stands for the other."""

from typing import TYPE_CHECKING

from companion.results.aggregate import by_kind, kind, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.runs.spec import ModelSpec
from notebooks.shared.ladder import PROFILES, LadderConfig, model_specs
from notebooks.shared.measure import measure_alignment_terms

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Aitken et al. 2021, contribution 2 (the average matrix and a sample's)"
QUESTION = "How well does the average attention matrix stand for one sample's, task by task?"
Config = LadderConfig

__all__ = ["PLACE", "PROFILES", "QUESTION", "Config", "asks", "compute", "models"]


def models(config: LadderConfig) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs."""
    return specs_of(asks(config))


def asks(config: LadderConfig) -> tuple[Ask, ...]:
    """What it asks of each."""
    return ask(model_specs(config), measure_alignment_terms, fit_samples=config.fit_samples)


def compute(config: LadderConfig, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Typicality with its coverage, attention near the diagonal, and quality; matrices of seed 0.

    Returns:
        values ``<task>.<architecture>.{typicality, near_diagonal, token_accuracy, exact_match}`` as
        intervals over seeds, and ``coverage``; tables ``points`` (a row a model), ``average`` and
        ``samples`` (a row a matrix entry).
    """
    points = answers(asks(config), store)
    values = by_kind(
        points,
        lambda group: {
            "typicality": over_seeds(group, lambda m: m["typicality"]["value"]),
            "near_diagonal": over_seeds(group, lambda m: m["near_diagonal"]),
            "token_accuracy": over_seeds(group, lambda m: m["quality"]["token_accuracy"]),
            "exact_match": over_seeds(group, lambda m: m["quality"]["exact_match"]),
            "coverage": group[0][1]["typicality"]["coverage"],
            "cells": group[0][1]["typicality"]["cells"],
            "held_out_samples": group[0][1]["typicality"]["samples"],
        },
    )
    rows = [
        name
        | {"typicality": m["typicality"]["value"], "coverage": m["typicality"]["coverage"]}
        | {"near_diagonal": m["near_diagonal"]}
        | m["quality"]
        for name, m in points
    ]
    first = [(name, m["cell"]) for name, m in points if name["seed"] == 0]
    return values, {
        "points": rows,
        "average": [entry for name, cell in first for entry in _average(name, cell)],
        "samples": [entry for name, cell in first for entry in _samples(name, cell)],
    }


def _average(name: dict, cell: dict) -> list[dict]:
    here = {"task": name["task"], "architecture": kind(name), "samples": cell["samples"]}
    return [
        here | {"target_position": s, "source_position": t, "attention": weight}
        for s, row in enumerate(cell["average"])
        for t, weight in enumerate(row)
    ]


def _samples(name: dict, cell: dict) -> list[dict]:
    return [
        {
            "task": name["task"],
            "architecture": kind(name),
            "sample": index,
            "target_position": s,
            "source_position": t,
        }
        | {"predicted": example["predicted"][s], "source": example["source"][t], "attention": weight}
        for index, example in enumerate(cell["examples"])
        for s, row in enumerate(example["attention"])
        for t, weight in enumerate(row)
    ]
