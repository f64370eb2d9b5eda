"""The chapter on permutation copying in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import capital, side
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.learn.permutation_copying.experiment import HALF
from notebooks.shared.copying_drawing import kind_name, kinds_shown
from notebooks.shared.sentences import updates_cell, updates_words

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
        followed: what :func:`notebooks.shared.copying.followed` gives.
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


# What would change our mind on copying permutations, and whether it has happened.


def what_changed(result: Result) -> str:
    """An answer to each point of what would change our mind, in their order."""
    answers = (_attention_first(result), _as_often(result), late_outcome(result))
    return "\n".join(
        f"* Of the {place} point: {answer}"
        for place, answer in zip(("first", "second", "last"), answers, strict=True)
    )


def _attention_first(result: Result) -> str:
    """Whether attention got to the right place before the network's own β."""
    drawn = [result.values[kind]["ways"]["drawn"] for kind in kinds_shown(result)]
    there = sum(group["there"]["n"] for group in drawn)
    if not there:
        return "the attention of no network has got there, so it cannot be told."
    words = sum(group["first"] for group in drawn)
    if words == there:
        return f"it has not happened. In all of {there} networks whose attention got there, words came first."
    return (
        f"words came first in {words} of {there} networks whose attention got there, and not in "
        f"{there - words}."
    )


def _as_often(result: Result) -> str:
    """Whether the probe at uniform attention finds the right position on permutations, too."""
    if not {"sample", "permutation"} <= set(kinds_shown(result)):
        return "it takes networks on samples and on permutations to tell."
    sample, permutation = (
        result.values[kind]["uniform"]["probe_agreement"] for kind in ("sample", "permutation")
    )
    if sample["low"] is None or permutation["low"] is None:
        return "it takes two networks of either kind to tell."
    fewer = permutation["high"] < sample["low"]
    text = "it has not happened" if fewer else "it has happened, as far as the intervals tell"
    text += (
        f". The probe finds the right position for {interval_text(permutation)} of the words after "
        f"permutations, for {interval_text(sample)} after samples."
    )
    chance = 1 / result.config["length"]
    if fewer and permutation["low"] > 2 * chance:
        text += (
            f" But on permutations, too, it finds it more often than by chance, {chance:.2f}: the network is "
            "no bag of words, and comes to know some of what a bag of words cannot."
        )
    return text


def late_outcome(result: Result) -> str:
    """Whether failures went away with more updates, kind by kind."""
    parts = []
    for kind in kinds_shown(result):
        found, later = result.values[kind], result.values[kind]["followed"]
        if found["failed"]["value"] and later["steps"] > result.config["steps"]:
            name = kind_name(kind, result.config["length"])
            parts.append(
                f"{later['late']} of {failures(found)} failures on {name} had gone after "
                f"{later['steps']} updates"
            )
    return f"{'; '.join(parts)}." if parts else "no failure was followed."


# Which comes first, words or attention: a table, and what it says, made from the same numbers.

WAYS = {"drawn": "drawn", "away": "driven away"}


def ways_table(result: Result) -> "pd.DataFrame":
    """A row a kind of sentences and way that attention goes: when words are known and attention there."""
    import pandas as pd

    rows = {}
    for kind in kinds_shown(result):
        ways, name = result.values[kind]["ways"], kind_name(kind, result.config["length"])
        for way, told in WAYS.items():
            if ways[way]["n"]:
                rows[f"{name}, {told}"] = _row(ways[way])
        if ways["stays"]:
            rows[f"{name}, near uniform attention"] = {"networks": str(ways["stays"])}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("–")


def order_sentences(result: Result) -> str:
    """An item a kind of sentences on which some attention was drawn: which came first, what others know."""
    return "\n".join(
        f"* {text}"
        for kind in kinds_shown(result)
        if (text := _order(kind_name(kind, result.config["length"]), result.values[kind]["ways"]["drawn"]))
    )


def _order(name: str, drawn: dict) -> str:
    lead, held, there = drawn["lead"], drawn["held"], drawn["there"]["n"]
    if not lead["n"]:
        return ""
    both = "" if lead["n"] == there else f", in the {lead['n']} that have both"
    text = (
        f"On {name} words come first in {drawn['first']} of {there} networks: their own largest β stands "
        f"at the right place for half of the words {interval_range(lead, digits=0)} updates before their "
        f"largest weight does{both}."
    )
    if held["value"] is None:
        return text
    text += (
        f" When it does, networks held at uniform attention have their largest β there for "
        f"{interval_text(held)} of the words."
    )
    return text + (_held_or_not(held, drawn["first"] == there) if held["low"] is not None else "")


def _held_or_not(held: dict, words_first: bool) -> str:
    """Whether words could have been learned without attending by then, by the interval."""
    where = side(held, HALF)
    if where == "above":
        return " So these words can be learned while attention is uniform."
    if where == "below" and words_first:
        return (
            " So words come first here, too, but not while attention is uniform: what is known of them is "
            "learned as attention moves."
        )
    return ""


def _row(group: dict) -> dict[str, str]:
    return {
        "networks": str(group["n"]),
        "leaves after": interval_text(group["left"], digits=0),
        "β right after": _some(group, "known"),
        "attention right": _some(group, "there"),
        "β of held ones": _held(group),
        "copies after": _learns(group),
    }


def _some(group: dict, name: str) -> str:
    """A time, and how many networks have it where not all do."""
    text = interval_text(group[name], digits=0)
    return f"{text} ({group[name]['n']})" if 0 < group[name]["n"] < group["n"] else text


def _held(group: dict) -> str:
    text = interval_text(group["held"])
    return f"{text} ({group['n_held']})" if 0 < group["n_held"] < group["there"]["n"] else text


def _learns(group: dict) -> str:
    """From the first to the last that learns, and how many do where not all do."""
    if group["soonest"] is None:
        return "none does"
    first, last, learn = group["soonest"], group["latest"], group["steps_to_learn"]["n"]
    text = f"{first}" if first == last else f"{first} to {last}"
    return text if learn == group["n"] else f"{text} ({learn})"
