"""Word alignment: attention against gold links, whole and by its terms; and which tokens attend by what."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from companion.results.config import Attending, Positive, Task, check_width
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.word_alignment import measure
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, grouped, kind
from notebooks.shared.plan import picked, settings_of
from notebooks.shared.suite import DIAL, FilesConfig, each_planned
from notebooks.shared.summaries import all_wide, less, rows_of

QUALITIES = ("error_rate", "precision", "recall", "agreement", "mass_on_gold")
RULES_SHOWN = ("full", "temporal_only", "input_only", "no_residual", "ibm_model_1")  # judged by every rule
JUDGED = (*measure.SHARES, *measure.ALONE)  # of tokens
SHOWN_FROM = 0.01  # weights in the example that an eye can see
TEXT = "europarl_de_en"  # the one task of natural text with gold links


class Config(FilesConfig):
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent."""

    #: tasks of the suite that have gold links: reordering_50, europarl_de_en, reversal, …
    task: tuple[Task, ...] = ("reordering_50", TEXT)
    #: tasks whose tokens are looked at one by one: multi30k_en_fr, scan, …
    tokens_of: tuple[Task, ...] = ("reordering_50", "scan")
    architecture: tuple[Attending, ...] = ("AED", "AO")  #: AED, AO
    text_seeds: Positive | None = None  #: models of each kind for Europarl alone
    text_steps: Positive | None = None  #: updates there, where steps is None
    #: pairs of Europarl to train on beside those with gold links; all when None
    n_train: Positive | None = None
    #: words of such a pair on either side, at most; the task's own limit when None
    max_length: Positive | None = None
    judged_samples: Positive = 400  #: samples with gold links that are judged, at most
    iterations: Positive = 10  #: of expectation-maximisation in IBM Model 1
    listed: Positive = 60  #: tokens in the table, the most frequent ones of each role
    #: a third file with word alignments of some of their lines, "0-0 1-2"; without it only tokens are looked
    #: at
    links: Path | None = None

    def check(self) -> None:
        self.take_files("task", "tokens_of")
        if self.source is not None and self.links is None:
            object.__setattr__(self, "task", ())  # nothing says which words belong together
        check_width(self)


PROFILES = {
    # Enough of Europarl to run through every line of this; its attention has not formed by then.
    "quick": Config(text_steps=60, n_train=1_600, max_length=12),
    "paper": Config(
        scale="paper", task=("one_to_one", "reversal", *DIAL[::2], TEXT),
        tokens_of=("reordering_50", "scan", "multi30k_en_fr", TEXT), fit_samples=10_000, judged_samples=2_000,
    ),
}  # fmt: skip


def _specs(config: Config, task_names: tuple[str, ...]) -> list[ModelSpec]:
    options = {n: own for n, own in settings_of(config, "n_train", "max_length").items() if own is not None}
    of_text: dict[str, Any] = {"task_options": options, "seeds": config.text_seeds}
    if steps := config.steps or config.text_steps:
        of_text["steps"] = steps
    kinds = product(task_names, config.architecture)
    return [s for own in kinds for s in each_planned(config, *own, **(of_text if own[0] == TEXT else {}))]


def measurements(config: Config) -> tuple[Measurement, ...]:
    return sum(_measurements(config), ())


def _measurements(config: Config) -> tuple[tuple[Measurement, ...], tuple[Measurement, ...]]:
    links, tokens = _specs(config, config.task), _specs(config, config.tokens_of)
    settings = settings_of(config, "fit_samples", "judged_samples", "iterations")
    return (
        measurements_of(links, measure.measure_word_alignment, **settings),
        measurements_of(tokens, measure.measure_token_parts, fit_samples=config.fit_samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Alignment error against gold links by subset of terms, and parts token by token.

    The table ``example`` has the matrices of one sentence, for the first model of each kind on the last two
    tasks.
    """
    links, tokens = (
        [(name | {"kind": kind(name)}, m) for name, m in answers(own, store)] for own in _measurements(config)
    )
    tables = {
        "alignment": [row for point in links for row in _alignment_rows(*point)],
        "classes": [name | row for name, m in tokens for row in rows_of(m["classes"], "role", "class")],
        "tokens": _token_rows(tokens, config.listed),
        "example": [
            {"task": name["task"], "kind": name["kind"]} | row
            for name, found in links
            if name["task"] in config.task[-2:] and name["seed"] == 0
            for row in _example_rows(found["example"])
        ],
    }
    settled = ("gold", "fitted_on")  # the same for every seed
    values = by_kind(links, lambda group: each_over_seeds(group, _links_of) | picked(group[0][1], settled))
    return values | {"tokens": by_kind(tokens, _summary_of_classes)}, tables


def _links_of(m: dict) -> dict:
    attention, references = m["attention"], m["references"]
    both = attention | references
    rates = {name: rules["words"]["error_rate"] for name, rules in both.items()}
    agreement = {name: attention[name]["words"]["agreement"] for name in ("input_only", "temporal_only")}
    return {
        "attention": {name: picked(attention[name]["words"], QUALITIES) for name in measure.SUBSETS},
        "rise_without": {
            name.removeprefix("without_"): less(rates[name], rates["full"])
            for name in measure.SUBSETS
            if name.startswith("without_")
        },
        "references": {name: picked(rules["words"], QUALITIES) for name, rules in references.items()},
        "rules": {
            rule: {name: picked(both[name][rule], QUALITIES) for name in RULES_SHOWN if rule in both[name]}
            for rule in measure.RULES
        },
        **{f"better_than_{name}": less(rates[name], rates["full"]) for name in references},
        "input_over_temporal": agreement["input_only"] - agreement["temporal_only"],
        "by_prediction": {outcome: found["agreement"] for outcome, found in m["by_prediction"].items()},
        "quality": picked(m["quality"], ("token_accuracy", "perplexity", "loss")),
        "quality_of_judged": picked(m["quality_of_judged"], ("token_accuracy", "loss")),
    }


def _alignment_rows(name: dict, found: dict) -> Iterator[dict]:
    """Every subset by the rule of the page, those of the page by every rule."""
    judged = [(source, rule) for source in found["references"] for rule in found["references"][source]]
    judged += [(s, r) for s in measure.SUBSETS for r in measure.RULES if r == "words" or s in RULES_SHOWN]
    both = found["references"] | found["attention"]
    for source, rule in judged:
        yield name | {"links_from": source, "rule": rule} | both[source][rule]


def _example_rows(example: dict) -> Iterator[dict]:
    for source, matrix in example["attention"].items():
        for (s, t), weight in np.ndenumerate(matrix):
            if source == "full" or weight >= SHOWN_FROM:
                row = {"links_from": source, "target_position": s, "source_position": t}
                row |= {"target": example["target"][s], "source": example["source"][t]}
                yield row | {"attention": float(weight), "gold": example["gold"][s][t]}


def _summary_of_classes(group: list[Point]) -> dict:
    def classes(m: dict) -> dict:
        return {r: {k.replace(" ", "_"): own for k, own in m["classes"][r].items()} for r in measure.ROLES}

    found = each_over_seeds(group, classes)
    for role, own in classes(group[0][1]).items():
        for label in own:
            found[role][label]["rows"] = own[label]["rows"]
    return {"classes": found}


def _token_rows(points: list[Point], listed: int) -> list[dict]:
    """The most frequent tokens of each role, with intervals over the models of a kind."""
    rows = []
    for group, role in product(grouped(points, "task", "kind").values(), measure.ROLES):
        name, first = group[0]
        columns = first["tokens"][role]  # held-out samples are the same for every seed
        for i, token in enumerate(columns["token"][:listed]):
            row = picked(name, ("task", "architecture", "kind")) | {"role": role, "token": token}
            row |= {column: columns[column][i] for column in ("class", "rows")}
            found = each_over_seeds(group, lambda m, r=role, i=i: {s: m["tokens"][r][s][i] for s in JUDGED})
            rows.append(row | all_wide(found) | {"seeds": len(group)})
    return rows
