"""Readout: which component of which path says the word, by dropping the others and retraining nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from companion.results.aggregate import by_kind, kind, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.runs.spec import ModelSpec
from notebooks.attend.readout.measure import ABLATIONS, REPLACEMENTS, measure_readout
from notebooks.shared.ladder import LadderConfig, model_specs

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Aitken et al. 2021, contributions 1 and 4 (what the input components are for)"
QUESTION = (
    "Do the input components that attention brings select the right word, and does the decoder's path matter?"
)
SHARES = ("margin_share", "margin_covariance", "logit_share")
DICTIONARIES = ("dictionary", "dictionary_around_mean", "followers")


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")
PAPER_TASKS = (
    "one_to_one",
    "reversal",
    "reordering_50",
    "reordering_100",
    "scan",
    "scan_extended",
    "multi30k_en_fr",
)


@dataclass(frozen=True)
class Config(LadderConfig):
    """Settings of the ladder, on fewer rungs; VED has no context to read out."""

    TASKS: ClassVar[tuple[tuple[str, ...], ...]] = (QUICK_TASKS, PAPER_TASKS)

    task: tuple[str, ...] = QUICK_TASKS
    fit_samples: int = 2_000


PROFILES = {
    "quick": Config(),
    "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each model."""
    return ask(model_specs(config), measure_readout, fit_samples=config.fit_samples)


def models(config: Config) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Accuracy with parts dropped, shares of the margin, and the dictionary, judged on held-out samples.

    Returns:
        values ``<task>.<kind>.accuracy.<zero | mean>.<ablation>`` as intervals over seeds; with dropped parts
        at zero also ``….word_accuracy.<ablation>`` (end mark left out), ``….above_chance.<ablation>``
        (accuracy − chance) and ``….lost.<ablation>`` (accuracy of the whole network − this);
        ``….<share>.<part>``; ``….{dictionary, dictionary_around_mean, followers}.{accuracy, …}``;
        tables ``accuracy``, ``shares`` (a row a model and ablation or part) and ``words`` (the most frequent
        tokens of each kind's first model with the words their components point at).
    """
    points = answers(asks(config), store)
    accuracy = [
        _named(name)
        | {"ablation": ablation, "chance": m["chance"]["all"]}
        | {how: m["accuracy"][how][ablation] for how in REPLACEMENTS}
        | {"words_only": m["word_accuracy"]["zero"][ablation]}
        for name, m in points
        for ablation in ABLATIONS
    ]
    shares = [
        _named(name) | {"part": part} | {share: m[share][part] for share in SHARES}
        for name, m in points
        for part in m["margin_share"]
    ]
    words = [
        _named(name) | {"table": table} | entry | {"top": " ".join(entry["top"])}
        for name, m in points
        if name["seed"] == 0
        for table in ("dictionary", "followers")
        for entry in m[table]["listed"]
    ]
    return by_kind(points, _summary), {"accuracy": accuracy, "shares": shares, "words": words}


def _named(name: dict[str, object]) -> dict[str, object]:
    return {"task": name["task"], "kind": kind(name), "seed": name["seed"]}


def _summary(group: list[tuple[dict, dict]]) -> dict:
    first = group[0][1]

    def intervals(asked) -> dict:
        return {name: over_seeds(group, lambda m, n=name: asked(m, n)) for name in ABLATIONS}

    whole = "full"
    return {
        "accuracy": {how: intervals(lambda m, n, h=how: m["accuracy"][h][n]) for how in REPLACEMENTS},
        "word_accuracy": intervals(lambda m, n: m["word_accuracy"]["zero"][n]),
        "above_chance": intervals(lambda m, n: m["accuracy"]["zero"][n] - m["chance"]["all"]),
        "lost": intervals(lambda m, n: m["accuracy"]["zero"][whole] - m["accuracy"]["zero"][n]),
        "chance": first["chance"]["all"],
        "chance_words": first["chance"]["words"],
        **{
            share: {part: over_seeds(group, lambda m, s=share, p=part: m[s][p]) for part in first[share]}
            for share in SHARES
        },
        **{name: _dictionary(group, name) for name in DICTIONARIES},
    }


def _dictionary(group: list[tuple[dict, dict]], name: str) -> dict:
    first = group[0][1][name]
    return {
        "accuracy": over_seeds(group, lambda m: m[name]["accuracy"]),
        "frequency_weighted": over_seeds(group, lambda m: m[name]["frequency_weighted"]),
        "chance": first["chance"],
        "words": first["words"],
    }
