"""Which state asks, in words: the part of the chapter on scoring functions about the second primer's line."""

import math

from attnlib.companion.intervals import above, listed
from attnlib.companion.sentences.scoring_functions import EFFECTS, effects_table
from attnlib.companion.tables import interval_range
from attnlib.experiments.result import Result
from attnlib.experiments.scoring_settings import BEFORE
from attnlib.plotting.scoring_functions import SCORES
from attnlib.plotting.style import task_name

BOTH = ("luong", BEFORE)


def asking_sentences(result: Result) -> str:
    """Which state the scores come from, and where attention falls when the other one asks."""
    asked = _asked(result)
    lines = [_whose_scores(found) for _, _, found in asked[:1] if {"luong", "bahdanau"} <= set(found)]
    for task, scoring, found in asked:
        if set(BOTH) <= set(found):
            own, before = (interval_range(found[name]["weight_on_gold"]) for name in BOTH)
            lines.append(
                f"* **Where they look** ({task_name(task)}, {SCORES[scoring][0]}). On the source word "
                f"of the word to be written falls {own} of the weight if the present state asks, "
                f"{before} if the previous one does. {_sentences_right(result, task, scoring)}"
            )
    return "\n".join(lines) or "Nothing of this has been run."


def effect_sentence(result: Result) -> str:
    """Where the table of effects says what it changes that the previous state asks."""
    label, rows = EFFECTS["previous_state"], effects_table(result).index
    if not any(choice == label for _, choice in rows):
        return "In this result no network is asked by the other state."
    return (
        f"What it does to words right, sentences and updates, task by task, stands in the table above as "
        f"“{label}”: averages over the scores, of which each has its own numbers here. {_carried_by(result)}"
    )


def _carried_by(result: Result) -> str:
    """With which scores sentences without a fault are fewer, by intervals that lie apart."""
    tried = [
        (task, scoring, [result.values[task].get(name, {}).get("one", {}).get(scoring) for name in BOTH])
        for task, scoring, _ in _asked(result)
    ]
    known = [(task, scoring, pair) for task, scoring, pair in tried if None not in pair]
    lower = [
        f"{SCORES[scoring][0]} in {task_name(task)}"
        for task, scoring, (present, before) in known
        if above(present["exact_match"], before["exact_match"])
    ]
    if not lower:
        return "With no score do the intervals of sentences without a fault lie apart."
    rest = "; everywhere else the two intervals meet" if len(lower) < len(known) else ""
    return f"Sentences without a fault are fewer, by intervals that lie apart, with {listed(lower)}{rest}."


def _whose_scores(found: dict) -> str:
    luong, bahdanau = (
        {name: _small(found[own][name]) for name in found[own]} for own in ("luong", "bahdanau")
    )
    return (
        "* **Whose scores.** Computed again from the present state, the scores of Luong's network are off by "
        f"{luong['present']} of their standard deviation, from the previous state by {luong['previous']}. In "
        f"Bahdanau's it is {bahdanau['present']} and {bahdanau['previous']}."
    )


def _sentences_right(result: Result, task: str, scoring: str) -> str:
    """What becomes of the sentences, where both states were tried."""
    both = [result.values[task].get(name, {}).get("one", {}).get(scoring) for name in BOTH]
    if None in both:
        return ""
    present, previous = (interval_range(found["exact_match"]) for found in both)
    return f"Written without a fault are {present} and {previous} of the sentences."


def _asked(result: Result) -> list[tuple[str, str, dict]]:
    return [
        (task, scoring, result.values[task]["who_asks"][scoring])
        for task in result.config["task"]
        for scoring in SCORES
        if scoring in result.values.get(task, {}).get("who_asks", {})
    ]


def _small(interval: dict) -> str:
    """Two digits after the point; what is below that, the next power of ten."""
    value = interval["value"]
    if value is None:
        return "–"
    if value >= 0.005:
        return interval_range(interval)
    return "0" if value == 0 else f"less than $10^{{{math.ceil(math.log10(value))}}}$"
