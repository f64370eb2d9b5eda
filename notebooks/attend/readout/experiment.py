"""Readout: which component of which path says the word, by dropping the others and retraining nothing."""

from companion.results.config import Task
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from notebooks.attend.readout.measure import ABLATIONS, REPLACEMENTS, measure_readout
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind
from notebooks.shared.plan import picked
from notebooks.shared.suite import DIAL, SuiteConfig, model_specs

SHARES = ("margin_share", "margin_covariance", "logit_share")
DICTIONARIES = ("dictionary", "dictionary_around_mean", "followers")


class Config(SuiteConfig):
    """Settings of the task suite, on fewer tasks; VED has no context to read out."""

    task: tuple[Task, ...] = ("one_to_one", "reordering_50", "scan")


PAPER_TASKS = ("one_to_one", "reversal", *DIAL[2::2], "scan", "scan_extended", "multi30k_en_fr")
PROFILES = {"quick": Config(), "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(model_specs(config), measure_readout, fit_samples=config.fit_samples)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Accuracy with parts dropped, shares of the margin, and the dictionary, judged on held-out samples.

    ``above_chance``, ``lost``: accuracy with dropped parts at zero, less the most frequent word's, and that
    it is less than the whole network's.
    """
    points = answers(measurements(config), store)
    named = [({"task": name["task"], "kind": kind(name), "seed": name["seed"]}, m) for name, m in points]
    accuracy = [
        name
        | {"ablation": ablation, "chance": m["chance"]["all"]}
        | {how: m["accuracy"][how][ablation] for how in REPLACEMENTS}
        | {"words_only": m["word_accuracy"]["zero"][ablation]}
        for name, m in named
        for ablation in ABLATIONS
    ]
    shares = [
        name | {"part": part} | {share: m[share][part] for share in SHARES}
        for name, m in named
        for part in m["margin_share"]
    ]
    words = [
        name | {"table": table} | entry | {"top": " ".join(entry["top"])}
        for name, m in named
        if name["seed"] == 0
        for table in ("dictionary", "followers")
        for entry in m[table]["listed"]
    ]
    return by_kind(points, _summary), {"accuracy": accuracy, "shares": shares, "words": words}


def _summary(group: list[Point]) -> dict:
    first = group[0][1]
    found = each_over_seeds(group, _numbers)
    for name in DICTIONARIES:
        found[name] |= picked(first[name], ("chance", "words"))
    return found | {"chance": first["chance"]["all"], "chance_words": first["chance"]["words"]}


def _numbers(m: dict) -> dict:
    at_zero, chance = m["accuracy"]["zero"], m["chance"]["all"]
    return {
        "accuracy": m["accuracy"],
        "word_accuracy": m["word_accuracy"]["zero"],
        "above_chance": {name: at_zero[name] - chance for name in ABLATIONS},
        "lost": {name: at_zero["full"] - at_zero[name] for name in ABLATIONS},
        **picked(m, SHARES),
        **picked(m, DICTIONARIES, ("accuracy", "frequency_weighted")),
    }
