"""Word alignment: attention against gold links, whole and by its terms; and which tokens attend by what."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.aggregate import Point, by_kind, kind, over_seeds
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.measures.token_parts import ALONE, ROLES, SHARES, measure_token_parts
from attnlib.experiments.measures.word_alignment import RULES, SUBSETS, measure_word_alignment
from attnlib.experiments.rungs import scales, seeds_of, spec_of, task_of
from attnlib.models.config import Architecture
from attnlib.training.spec import ModelSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Aitken et al. 2021, introduction (attention aligns words), abstract (tasks decide which components)"
QUESTION = "Does attention align words, through which terms, and which tokens attend by time, which by input?"
TEXT = "europarl_de_en"  # the one task of natural text with gold links
QUALITIES = ("error_rate", "precision", "recall", "agreement", "mass_on_gold")
RULES_SHOWN = ("full", "temporal_only", "input_only", "no_residual")  # subsets judged by every rule


@dataclass(frozen=True)
class Config:
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent.

    Attributes:
        scale: ``quick`` or ``paper``: sizes and training settings.
        task: rungs of the ladder that have gold links.
        tokens_of: rungs whose tokens are looked at one by one.
        architecture: ``AED``, ``AO``; VED has no attention.
        seeds: models of each kind; as many as the plan has when None.
        text_seeds: the same for Europarl alone; as ``seeds`` when None.
        width: of states and embeddings; the plan's when None.
        steps: updates of every model; the plan's when None.
        text_steps: the same for Europarl alone, where ``steps`` is None.
        n_train: pairs of Europarl to train on beside those with gold links; all when None.
        max_length: words of such a pair on either side, at most; the task's own limit when None.
        fit_samples: training samples that the components are fitted on, at most.
        judged_samples: samples with gold links that are judged, at most.
        iterations: of expectation-maximisation in IBM Model 1.
        listed: tokens in the table, the most frequent ones of each role.
    """

    scale: str = "quick"
    task: tuple[str, ...] = ("reordering_50", TEXT)
    tokens_of: tuple[str, ...] = ("reordering_50", "scan")
    architecture: tuple[str, ...] = ("AED", "AO")
    seeds: int | None = None
    text_seeds: int | None = None
    width: int | None = None
    steps: int | None = None
    text_steps: int | None = None
    n_train: int | None = None
    max_length: int | None = None
    fit_samples: int = 2_000
    judged_samples: int = 400
    iterations: int = 10
    listed: int = 80

    def __post_init__(self) -> None:
        for rung in (*self.task, *self.tokens_of):
            task_of(rung)
        with_attention = [name for name in get_args(Architecture) if name != "VED"]
        for name, given, known in (
            ("architecture", self.architecture, with_attention),
            ("scale", (self.scale,), scales()),
        ):
            for entry in given:
                if entry not in known:
                    raise UnknownName(name, entry, known)
        counts = ("seeds", "text_seeds", "width", "steps", "text_steps", "n_train", "max_length")
        for name in (*counts, "fit_samples", "judged_samples", "iterations", "listed"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if (self.width or 0) % 2 and "AO" in self.architecture:
            raise BadInput(f"width {self.width} is odd; the sinusoidal positions of AO need an even one")


PROFILES = {
    # Enough of Europarl to run through every line of this; its attention has not formed by then.
    "quick": Config(text_seeds=2, text_steps=100, n_train=2_000, max_length=12),
    "paper": Config(
        scale="paper",
        task=("one_to_one", "reversal", "reordering_0", "reordering_50", "reordering_100", TEXT),
        tokens_of=("reordering_50", "scan", "multi30k_en_fr", TEXT),
        fit_samples=10_000,
        judged_samples=2_000,
    ),
}


def _specs(config: Config, rungs: tuple[str, ...]) -> tuple[ModelSpec, ...]:
    specs = []
    for rung, architecture in product(rungs, config.architecture):
        text = rung == TEXT
        changes: dict[str, object] = {} if config.width is None else {"width": config.width}
        steps = config.steps or (config.text_steps if text else None)
        if steps is not None:
            changes["steps"] = steps
        options = {"n_train": config.n_train, "max_length": config.max_length}
        if text:
            changes["task_options"] = {name: value for name, value in options.items() if value is not None}
        wanted = (config.text_seeds if text else None) or config.seeds
        for seed in range(wanted) if wanted else seeds_of(config.scale, rung, architecture):
            specs.append(spec_of(rung, architecture, scale=config.scale, seed=seed, **changes))
    return tuple(specs)


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each model."""
    links, tokens = _asks(config)
    return links + tokens


def _asks(config: Config) -> tuple[tuple[Ask, ...], tuple[Ask, ...]]:
    """What is asked about links, and about tokens."""
    links = ask(
        _specs(config, config.task),
        measure_word_alignment,
        fit_samples=config.fit_samples,
        judged_samples=config.judged_samples,
        iterations=config.iterations,
    )
    return links, ask(_specs(config, config.tokens_of), measure_token_parts, fit_samples=config.fit_samples)


def models(config: Config) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Alignment error against gold links by subset of terms, and parts token by token.

    Returns:
        values, intervals over seeds, for each task and architecture ``<task>.<kind>.``:
        ``attention.<subset>.<quality>`` and ``references.{ibm_model_1, diagonal}.<quality>``, qualities being
        those of :class:`~attnlib.probes.alignment_error.AlignmentQuality`; ``rules.<rule>.<subset or
        ibm_model_1>.<quality>``; ``better_than_diagonal`` and ``better_than_ibm_model_1`` (their error rate −
        that of the full attention), ``input_over_temporal`` (agreement of attention from χ·χ alone − from
        μ·μ alone); ``by_prediction.{right, wrong}``; ``quality.{token_accuracy, perplexity, loss}``;
        ``gold`` (what the links are like). ``tokens.<task>.<kind>.classes.<role>.<class>.<share>``.
        Tables: ``alignment`` (a row a model, subset and rule), ``classes`` (a row a model, role and class),
        ``tokens`` (a row a kind, role and token, with intervals over seeds), ``example`` (a row an entry of
        the matrices of one sentence, for the first model of each kind on the last two tasks).
    """
    links, tokens = (answers(asked, store) for asked in _asks(config))
    values = by_kind(links, _links) | {"tokens": by_kind(tokens, _classes)}
    tables = {
        "alignment": [row for name, found in links for row in _alignment_rows(name, found)],
        "classes": [
            name | {"kind": kind(name), "role": role, "class": label} | entry
            for name, found in tokens
            for role in ROLES
            for label, entry in found["classes"][role].items()
        ],
        "tokens": _token_rows(tokens, config.listed),
        "example": [
            row
            for name, found in links
            if name["task"] in config.task[-2:] and name["seed"] == 0
            for row in _example_rows(name, found["example"])
        ],
    }
    return values, tables


def _example_rows(name: dict, example: dict) -> list[dict]:
    return [
        {"task": name["task"], "kind": kind(name), "links_from": source}
        | {"target_position": s, "source_position": t}
        | {"target": example["target"][s], "source": example["source"][t]}
        | {"attention": weight, "gold": example["gold"][s][t]}
        for source, matrix in example["attention"].items()
        for s, row in enumerate(matrix)
        for t, weight in enumerate(row)
    ]


def _links(group: list[Point]) -> dict:
    def over(get: Callable[[dict], float | None]) -> dict:
        return over_seeds(group, get)

    def qualities(get: Callable[[dict], dict]) -> dict:
        return {quality: over(lambda m, q=quality: get(m)[q]) for quality in QUALITIES}

    first = group[0][1]
    return {
        "attention": {s: qualities(lambda m, s=s: m["attention"][s]["words"]) for s in SUBSETS},
        "references": {
            name: qualities(lambda m, n=name: m["references"][n]["words"]) for name in first["references"]
        },
        "rules": {
            rule: {s: qualities(lambda m, s=s, r=rule: m["attention"][s][r]) for s in RULES_SHOWN}
            | (
                {}
                if rule == "read"
                else {"ibm_model_1": qualities(lambda m, r=rule: m["references"]["ibm_model_1"][r])}
            )
            for rule in RULES
        },
        **{
            f"better_than_{name}": over(
                lambda m, n=name: _less(m["references"][n]["words"], m["attention"]["full"]["words"])
            )
            for name in first["references"]
        },
        "input_over_temporal": over(
            lambda m: (
                m["attention"]["input_only"]["words"]["agreement"]
                - m["attention"]["temporal_only"]["words"]["agreement"]
            )
        ),
        "by_prediction": {
            outcome: over(lambda m, o=outcome: m["by_prediction"][o]["agreement"])
            for outcome in first["by_prediction"]
        },
        "quality": {
            name: over(lambda m, n=name: m["quality"][n]) for name in ("token_accuracy", "perplexity", "loss")
        },
        "quality_of_judged": {
            name: over(lambda m, n=name: m["quality_of_judged"][n]) for name in ("token_accuracy", "loss")
        },
        "gold": first["gold"],
        "fitted_on": first["fitted_on"],
    }


def _less(reference: dict, attention: dict) -> float | None:
    """How much lower the error rate of the attention is; None where either is undefined."""
    rates = reference["error_rate"], attention["error_rate"]
    return None if None in rates else rates[0] - rates[1]


def _alignment_rows(name: dict, found: dict) -> list[dict]:
    """Every subset by the rule of the page, those of the page by every rule."""
    judged = [(source, rule) for source in found["references"] for rule in found["references"][source]]
    judged += [(s, rule) for s in SUBSETS for rule in RULES if rule == "words" or s in RULES_SHOWN]
    return [
        name | {"kind": kind(name), "links_from": source, "rule": rule} | both[source][rule]
        for both in [found["references"] | found["attention"]]
        for source, rule in judged
    ]


def _classes(group: list[Point]) -> dict:
    first = group[0][1]["classes"]
    return {
        "classes": {
            role: {
                label.replace(" ", "_"): {
                    share: over_seeds(group, lambda m, r=role, c=label, s=share: m["classes"][r][c][s])
                    for share in (*SHARES, *ALONE)
                }
                | {"rows": first[role][label]["rows"]}
                for label in first[role]
            }
            for role in ROLES
        }
    }


def _token_rows(points: list[Point], listed: int) -> list[dict]:
    """The most frequent tokens of each role, with intervals over the models of a kind."""
    groups: dict[tuple, list[Point]] = {}
    for name, found in points:
        groups.setdefault((name["task"], name["architecture"], kind(name)), []).append((name, found))
    rows = []
    for (task, architecture, label), group in groups.items():
        for role in ROLES:
            columns = group[0][1]["tokens"][role]  # held-out samples are the same for every seed
            for i, token in enumerate(columns["token"][:listed]):
                row = {"task": task, "architecture": architecture, "kind": label, "role": role}
                row |= {"token": token, "class": columns["class"][i], "rows": columns["rows"][i]}
                for share in (*SHARES, *ALONE):
                    interval = over_seeds(group, lambda m, r=role, s=share, i=i: m["tokens"][r][s][i])
                    row |= {share: interval["value"]}
                    row |= {f"{share}_{end}": interval[end] for end in ("low", "high")}
                rows.append(row | {"seeds": len(group)})
    return rows
