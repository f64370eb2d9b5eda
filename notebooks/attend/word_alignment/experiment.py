"""Word alignment: attention against gold links, whole and by its terms; and which tokens attend by what."""

from itertools import product
from pathlib import Path
from typing import ClassVar

from companion.results.config import Attending, Positive, Task, changes_of, check_width, take_files
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import seeds_of, spec_of
from notebooks.attend.word_alignment.measure import (
    ALONE,
    ROLES,
    RULES,
    SHARES,
    SUBSETS,
    measure_token_parts,
    measure_word_alignment,
)
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind, over_seeds
from notebooks.shared.suite import FilesConfig
from notebooks.shared.summaries import less, wide

QUALITIES = ("error_rate", "precision", "recall", "agreement", "mass_on_gold")
RULES_SHOWN = ("full", "temporal_only", "input_only", "no_residual", "ibm_model_1")  # judged by every rule
JUDGED = (*SHARES, *ALONE)  # of tokens
SHOWN_FROM = 0.01  # weights in the example that an eye can see


def example_rows(name: dict, example: dict) -> list[dict]:
    return [
        {"task": name["task"], "kind": kind(name), "links_from": source}
        | {"target_position": s, "source_position": t}
        | {"target": example["target"][s], "source": example["source"][t]}
        | {"attention": weight, "gold": example["gold"][s][t]}
        for source, matrix in example["attention"].items()
        for s, row in enumerate(matrix)
        for t, weight in enumerate(row)
        if source == "full" or weight >= SHOWN_FROM
    ]


def summary_of_links(group: list[Point]) -> dict:
    first = group[0][1]
    settled = {"gold": first["gold"], "fitted_on": first["fitted_on"]}  # the same for every seed
    return each_over_seeds(group, _links_of) | settled


def _links_of(m: dict) -> dict:
    attention, references = m["attention"], m["references"]
    both = attention | references
    rates = {name: rules["words"]["error_rate"] for name, rules in both.items()}
    agreement = {name: attention[name]["words"]["agreement"] for name in ("input_only", "temporal_only")}
    return {
        "attention": {name: _qualities(attention[name]["words"]) for name in SUBSETS},
        "rise_without": {
            name.removeprefix("without_"): less(rates[name], rates["full"])
            for name in SUBSETS
            if name.startswith("without_")
        },
        "references": {name: _qualities(rules["words"]) for name, rules in references.items()},
        "rules": {
            rule: {name: _qualities(both[name][rule]) for name in RULES_SHOWN if rule in both[name]}
            for rule in RULES
        },
        **{f"better_than_{name}": less(rates[name], rates["full"]) for name in references},
        "input_over_temporal": agreement["input_only"] - agreement["temporal_only"],
        "by_prediction": {outcome: found["agreement"] for outcome, found in m["by_prediction"].items()},
        "quality": {name: m["quality"][name] for name in ("token_accuracy", "perplexity", "loss")},
        "quality_of_judged": {name: m["quality_of_judged"][name] for name in ("token_accuracy", "loss")},
    }


def _qualities(found: dict) -> dict:
    return {quality: found[quality] for quality in QUALITIES}


def alignment_rows(name: dict, found: dict) -> list[dict]:
    """Every subset by the rule of the page, those of the page by every rule."""
    judged = [(source, rule) for source in found["references"] for rule in found["references"][source]]
    judged += [(s, rule) for s in SUBSETS for rule in RULES if rule == "words" or s in RULES_SHOWN]
    both = found["references"] | found["attention"]
    return [
        name | {"kind": kind(name), "links_from": source, "rule": rule} | both[source][rule]
        for source, rule in judged
    ]


def summary_of_classes(group: list[Point]) -> dict:
    def numbers(m: dict) -> dict:
        return {
            role: {
                label.replace(" ", "_"): {share: own[share] for share in JUDGED}
                for label, own in m["classes"][role].items()
            }
            for role in ROLES
        }

    found = each_over_seeds(group, numbers)
    for role in ROLES:
        for label, own in group[0][1]["classes"][role].items():
            found[role][label.replace(" ", "_")]["rows"] = own["rows"]
    return {"classes": found}


def token_rows(points: list[Point], listed: int) -> list[dict]:
    """The most frequent tokens of each role, with intervals over the models of a kind."""
    groups: dict[tuple, list[Point]] = {}
    for name, found in points:
        groups.setdefault((name["task"], name["architecture"], kind(name)), []).append((name, found))
    rows = []
    for (named, group), role in product(groups.items(), ROLES):
        columns = group[0][1]["tokens"][role]  # held-out samples are the same for every seed
        for i, token in enumerate(columns["token"][:listed]):
            row = dict(zip(("task", "architecture", "kind"), named, strict=True))
            row |= {"role": role, "token": token, "class": columns["class"][i], "rows": columns["rows"][i]}
            for share in JUDGED:
                row |= wide(share, over_seeds(group, lambda m, r=role, s=share, i=i: m["tokens"][r][s][i]))
            rows.append(row | {"seeds": len(group)})
    return rows


PLACE = "Aitken et al. 2021, introduction (attention aligns words), abstract (tasks decide which components)"
QUESTION = "Does attention align words, through which terms, and which tokens attend by time, which by input?"
TEXT = "europarl_de_en"  # the one task of natural text with gold links
QUICK_TASKS = ("reordering_50", TEXT)
PAPER_TASKS = ("one_to_one", "reversal", "reordering_0", "reordering_50", "reordering_100", TEXT)
QUICK_TOKENS_OF = ("reordering_50", "scan")
PAPER_TOKENS_OF = ("reordering_50", "scan", "multi30k_en_fr", TEXT)


class Config(FilesConfig):
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent.

    Attributes:
        task: tasks of the suite that have gold links: reordering_50, europarl_de_en, reversal, …
        tokens_of: tasks whose tokens are looked at one by one: multi30k_en_fr, scan, …
        architecture: AED, AO.
        text_seeds: models of each kind for Europarl alone; text_steps: updates there, where steps is None.
        n_train: pairs of Europarl to train on beside those with gold links; all when None.
        max_length: words of such a pair on either side, at most; the task's own limit when None.
        judged_samples: samples with gold links that are judged, at most.
        iterations: of expectation-maximisation in IBM Model 1.
        listed: tokens in the table, the most frequent ones of each role.
        links: a third file with word alignments of some of their lines, "0-0 1-2"; without it only tokens are
            looked at.
    """

    TASKS: ClassVar[tuple[tuple[str, ...], ...]] = (QUICK_TASKS, PAPER_TASKS)  # of the profiles
    TOKENS_OF: ClassVar[tuple[tuple[str, ...], ...]] = (QUICK_TOKENS_OF, PAPER_TOKENS_OF)

    task: tuple[Task, ...] = QUICK_TASKS
    tokens_of: tuple[Task, ...] = QUICK_TOKENS_OF
    architecture: tuple[Attending, ...] = ("AED", "AO")
    text_seeds: Positive | None = None
    text_steps: Positive | None = None
    n_train: Positive | None = None
    max_length: Positive | None = None
    judged_samples: Positive = 400
    iterations: Positive = 10
    listed: Positive = 60
    links: Path | None = None

    def check(self) -> None:
        take_files(self, task=self.TASKS, tokens_of=self.TOKENS_OF)
        if self.source is not None and self.links is None:
            object.__setattr__(self, "task", ())  # nothing says which words belong together
        check_width(self)


PROFILES = {
    # Enough of Europarl to run through every line of this; its attention has not formed by then.
    "quick": Config(text_steps=60, n_train=1_600, max_length=12),
    "paper": Config(
        scale="paper",
        task=PAPER_TASKS,
        tokens_of=PAPER_TOKENS_OF,
        fit_samples=10_000,
        judged_samples=2_000,
    ),
}


def _specs(config: Config, task_names: tuple[str, ...]) -> tuple[ModelSpec, ...]:
    specs = []
    for task_name, architecture in product(task_names, config.architecture):
        text = task_name == TEXT
        changes = changes_of(config)
        if text:
            if config.text_steps is not None:
                changes.setdefault("steps", config.text_steps)
            options = {"n_train": config.n_train, "max_length": config.max_length}
            changes["task_options"] = {name: value for name, value in options.items() if value is not None}
        wanted = (config.text_seeds if text else None) or config.seeds
        for seed in range(wanted) if wanted else seeds_of(config.scale, task_name, architecture):
            specs.append(spec_of(task_name, architecture, scale=config.scale, seed=seed, **changes))
    return tuple(specs)


def measurements(config: Config) -> tuple[Measurement, ...]:
    return sum(_measurements(config), ())


def _measurements(config: Config) -> tuple[tuple[Measurement, ...], tuple[Measurement, ...]]:
    links = measurements_of(
        _specs(config, config.task),
        measure_word_alignment,
        fit_samples=config.fit_samples,
        judged_samples=config.judged_samples,
        iterations=config.iterations,
    )
    return links, measurements_of(
        _specs(config, config.tokens_of), measure_token_parts, fit_samples=config.fit_samples
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Alignment error against gold links by subset of terms, and parts token by token.

    Returns:
        values, intervals over seeds by task and kind, of tokens by role and class below ``tokens``; tables
        ``alignment`` (a row a model, subset and rule), ``classes`` (a row a model, role and class),
        ``tokens`` (a row a kind, role and token) and ``example`` (a row an entry of the matrices of one
        sentence, for the first model of each kind on the last two tasks).
    """
    links, tokens = (answers(asked, store) for asked in _measurements(config))
    values = by_kind(links, summary_of_links) | {"tokens": by_kind(tokens, summary_of_classes)}
    tables = {
        "alignment": [row for name, found in links for row in alignment_rows(name, found)],
        "classes": [
            name | {"kind": kind(name), "role": role, "class": label} | entry
            for name, found in tokens
            for role in ROLES
            for label, entry in found["classes"][role].items()
        ],
        "tokens": token_rows(tokens, config.listed),
        "example": [
            row
            for name, found in links
            if name["task"] in config.task[-2:] and name["seed"] == 0
            for row in example_rows(name, found["example"])
        ],
    }
    return values, tables
