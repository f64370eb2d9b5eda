"""The chapter on permutation copying in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import capital
from attnlib.companion.sentences.copying_times import updates_cell, updates_words
from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name, kinds_shown

if TYPE_CHECKING:
    import pandas as pd


def outcomes_table(result: Result) -> "pd.DataFrame":
    """A row for each kind of sentences: how many networks failed, how long it took, where they look."""
    import pandas as pd

    rows = {}
    for kind in kinds_shown(result):
        found = result.values[kind]
        learned = [row for row in result.tables["outcomes"] if _learned(row, kind)]
        rows[kind_name(kind, result.config["length"])] = {
            "networks": found["n"],
            "failed": "–" if found["failed"]["value"] is None else f"{failures(found)} of {found['n']}",
            "95 % interval": _bounds(found["failed"]),
            "updates to 95 %": updates_cell(found, result.config["steps"]),
            "accuracy then": _range([row["accuracy"] for row in learned]),
            "attention accuracy": _range([row["attention_accuracy"] for row in learned]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def copying_sentences(result: Result) -> str:
    """A sentence a kind: what was learned with attention, and what can be known of single words before it."""
    return "\n".join(
        f"* {_sentence(kind, result.values[kind], result.config)}{_halves(result, kind)}"
        for kind in kinds_shown(result)
        if result.values[kind]["failed"]["value"] is not None
    )


def _halves(result: Result, kind: str) -> str:
    """Networks on two sets that end with attention in place for about half of the words."""
    ends = [
        row["attention_accuracy"]
        for row in result.tables["courses"]
        if _learned(row, kind) and row["steps"] == result.values[kind]["followed"]["steps"]
    ]
    half = sum(0.4 <= end <= 0.6 for end in ends)
    if kind != "mixture" or not half:
        return ""
    return (
        f" In the end {half} of {len(ends)} have their largest weight at the word to be said for 0.4 to 0.6 "
        "of the words, as if for one of the two sets; which words they are is not measured."
    )


def _sentence(kind: str, found: dict, config: dict) -> str:
    name = kind_name(kind, config["length"])
    words = (
        f"{capital(name)}: {failures(found)} of {found['n']} networks are below 95 % accuracy "
        f"after {config['steps']} updates; {updates_words(found, config['steps'])}."
    )
    if found["followed"]["steps"] > config["steps"]:
        words += followed_sentence(found["followed"], failures(found), config["steps"])
    proxy, uniform = found["proxy"], found["uniform"]
    if uniform["accuracy"]["value"] is not None:
        words += (
            f" Held at uniform attention {uniform['accuracy']['n']} networks say "
            f"{interval_text(uniform['accuracy'])} of the words right."
        )
    if proxy["probe_gain"]["value"] is not None:
        words += (
            f" The bag of words ({proxy['probe_gain']['n']} of them) gives the right word "
            f"{_ratio(proxy['probe_gain'])} times the probability "
            f"from its own source word as from the others; the network at uniform attention gives it "
            f"{_ratio(uniform['probe_gain'])} times. The largest β of the latter stands at the right "
            f"position for {interval_text(uniform['probe_agreement'])} of the words (chance is "
            f"{1 / config['length']:.2f})."
        )
    return words


def followed_sentence(followed: dict, failed: int, judged: int) -> str:
    """What became of networks in the updates after those that they are judged by: were failures slow?

    Args:
        followed: what :func:`attnlib.experiments.copying_courses.followed` gives.
        failed: networks below 95 % after ``judged`` updates.

    Returns:
        sentences with a space in front; nothing where no network failed, then or later.
    """
    steps, late, still = followed["steps"], followed["late"], failures(followed)
    if not failed and not still:
        return ""
    words = (
        f" Followed to {steps} updates, {still} of {followed['n']} are below 95 % (interval of the share "
        f"{_bounds(followed['failed'])}); {updates_words(followed, steps)}."
    )
    if not failed:
        return words
    told = {0: "None", failed: "All"}.get(late, f"{late}")
    words += f" {told} of the {failed} that were below it after {judged} updates had then learned to copy"
    if not late:
        return f"{words}."
    attending = {0: "none", late: "all"}.get(followed["late_attending"], f"{followed['late_attending']}")
    return f"{words}, {attending} of {late} with an attention accuracy of 95 % or more."


def _ratio(interval: dict) -> str:
    """Two digits after the point, and none of a ratio in the hundreds."""
    if interval["low"] is None:
        return interval_text(interval)
    if interval["value"] < 100:
        return interval_range(interval)
    value, low, high = (f"{interval[end]:,.0f}".replace("-", "−") for end in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "–"


def _learned(row: dict, kind: str) -> bool:
    return (row["kind"], row["network"]) == (kind, "learned")


def failures(found: dict) -> int:
    """How many networks failed."""
    return round(found["failed"]["value"] * found["n"])


def _bounds(share: dict) -> str:
    return "–" if share["value"] is None else f"{share['low']:.2f} to {share['high']:.2f}"
