"""What would change our mind on copying permutations, and whether it has happened."""

from attnlib.companion.sentences.permutation_copying import failures
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name, kinds_shown


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
