"""The chapter on scoring functions in words and tables made from its numbers."""

import math
from typing import TYPE_CHECKING

from attnlib.plots.style import task_name
from companion.book.intervals import above, capital, listed, side, unless_told
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.primer.scoring_functions.drawing import DECODERS, ENCODERS, NETWORKS, SCORES, kinds_of
from notebooks.primer.scoring_functions.experiment import BEFORE

if TYPE_CHECKING:
    import pandas as pd


EFFECTS = {
    "two_directions": "two directions, against one",
    "bahdanau": "Bahdanau's decoder, against Luong's",
    "luong_feeding": "input feeding, against none",
    "general": "general, against dot",
    "scaled_dot": "scaled dot, against dot",
    "concat": "concat, against dot",
    "additive": "additive, against dot",
    "concat_additive": "concat, against additive",
    "previous_state": "previous state asks, against present",
}
_ROW = ("task", "decoder", "directions", "score")


def scoring_table(result: Result) -> "pd.DataFrame":
    """A row a network: parameters, multiplications for a sentence, quality, and how fast it learns."""
    import pandas as pd

    rows = {}
    for task in result.config["task"]:
        for decoder, direction, scoring in kinds_of(result, task):
            found = result.values[task][decoder][direction][scoring]
            name = (task_name(task), DECODERS[decoder], ENCODERS[direction][0].split()[0], SCORES[scoring][0])
            rows[name] = _cells(found, result.config["threshold"])
    for name, (label, *_) in NETWORKS.items():
        if name in result.values["translation"]:
            found = result.values["translation"][name]
            cells = _cells(found, result.config["text_threshold"])
            rows[task_name(result.config["text"]), label, "", ""] = cells | {"BLEU": _tenths(found["bleu"])}
    table = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    table.index = pd.MultiIndex.from_tuples(list(rows), names=_ROW)
    return table


def _cells(found: dict, threshold: float) -> dict[str, str]:
    late = found["updates"]["n"] - found["reached"]
    speed = _whole(found["updates"]) + (f" ({late} never)" if late else "")
    return {
        "parameters": _count(found, "parameters"),
        "… of the score": _count(found, "score_parameters"),
        "products, score": _count(found, "score"),
        "… all else": _count(found, "rest"),
        "words right": interval_text(found["token_accuracy"]),
        "no fault": interval_text(found["exact_match"]),
        "updates until": f"{100 * threshold:.0f} %: {speed}",
    }


def effects_table(result: Result) -> "pd.DataFrame":
    """A row a choice: what it changes, averaged over all networks that differ in nothing else."""
    import pandas as pd

    rows = {}
    for task in result.config["task"]:
        for name, label in EFFECTS.items():
            found = result.values.get(task, {}).get("effects", {}).get(name)
            if found and found["updates"]["n"]:
                rows[task_name(task), label] = {
                    "words right": interval_range(found["token_accuracy"]),
                    "no fault": interval_range(found["exact_match"]),
                    "updates": _whole_range(found["updates"]),
                }
    table = pd.DataFrame.from_dict(rows, orient="index")
    if rows:
        table.index = pd.MultiIndex.from_tuples(list(rows), names=("task", "choice"))
    return table


def short_of_note(result: Result, task: str) -> str:
    """For a caption: what the label of a network stands for that did not get as far as it should."""
    updates = [result.values[task][decoder][own][score] for decoder, own, score in kinds_of(result, task)]
    if all(found["reached"] == found["updates"]["n"] for found in updates):
        return ""
    return "“2 of 3” says how many networks reach the threshold, the others counting with all their updates. "


def order_outcome(result: Result) -> str:
    """Whether a score that is better than dot in one task is worse in another."""
    tasks = result.config["task"]
    if len(tasks) < 2:
        return "One task alone cannot tell whether the order turns round."
    quantities = {"exact_match": "sentences without a fault", "updates": "updates"}
    turned, clear = [], []
    for name in ("scaled_dot", "general", "concat", "additive"):
        for quantity, label in quantities.items():
            found = [result.values[task]["effects"][name][quantity] for task in tasks]
            sides = {side(own) for own in found if own["n"]}
            if {"above", "below"} <= sides:
                turned.append(f"{SCORES[name][0]} ({label})")
            elif sides & {"above", "below"}:
                clear.append(f"{SCORES[name][0]} ({label})")
    if turned:
        return f"Of the first point: it has happened, held against dot, with {listed(turned)}."
    seen = f" Clear of dot in one task at least, and turned round in none: {listed(clear)}." if clear else ""
    return f"Of the first point: held against dot, no score turns round by more than its interval.{seen}"


def context_sentences(result: Result) -> str:
    """What an encoder state knows of its neighbours, in one direction and two."""
    lines = []
    for task in result.config["task"]:
        for direction, found in result.values.get(task, {}).get("context", {}).items():
            bits = {name: interval_range(found[name]) for name in found}
            lines.append(
                f"* **{capital(ENCODERS[direction][0])}** ({task_name(task)}). {bits['before']} bits of "
                f"the word before, {bits['own']} of its own, {bits['after']} of the word after."
            )
    return "\n".join(lines) or "No encoder state was read."


def translation_sentences(result: Result) -> str:
    """BLEU of the networks with names, what attention adds, and what it was computed by."""
    values = result.values["translation"]
    if not has_names(result):
        return (
            "This result has none of them: they belong to the paper profile. `-p named=cho,bahdanau` trains "
            "two."
        )
    labels = {
        "bahdanau_over_cho": "Bahdanau's over Cho's",
        "luong_over_sutskever": "Luong's over Sutskever's",
    }
    gains = [
        f"{label}, {interval_range(found)}{unless_told(found)}"
        for gain, label in labels.items()
        if (found := values["gains"][gain]["bleu"])["n"]
    ]
    text = f" What attention adds in BLEU: {'; '.join(gains)}." if gains else ""
    named = [(label, values[name]) for name, (label, *_) in NETWORKS.items() if name in values]
    each = [
        f"{label}, {listed([f'{bleu:.1f}' for bleu in sorted(found['bleu_of_each'])])}"
        for label, found in named
        if len(found["bleu_of_each"]) > 1
    ]
    text += f" Network by network it is: {'; '.join(each)}." if each else ""
    rising = [f"{label}, {interval_range(found['late_rise'])}" for label, found in named]
    return (
        f"BLEU is of greedy translations of the {values['sentences']:,} validation sentences, on lower-cased "
        "words, and is not comparable with published numbers on raw text "
        f"(`{values['signature']}`).{text}\n\n"
        "Each name is a bundle. What the cell, the layers or the direction do on their own, they do not say. "
        f"All are trained alike, for {result.config['text_epochs']} passes over the captions, which need "
        "not be enough for each to learn all it can. In the last quarter of the updates words right still "
        f"rise by: {'; '.join(rising)}."
    )


def has_names(result: Result) -> bool:
    """Whether the result has networks with names on captions, translations and all."""
    return "signature" in result.values["translation"]


def _count(found: dict, name: str) -> str:
    return f"{found[name]:,}" if name in found else "–"


def _whole(interval: dict) -> str:
    """Updates are whole numbers."""
    if interval["value"] is None or interval["low"] is None:
        return "–" if interval["value"] is None else f"{interval['value']:.0f}"
    return f"{interval['value']:.0f} ± {interval['high'] - interval['value']:.0f}"


def _whole_range(interval: dict) -> str:
    if interval["low"] is None:
        return _whole(interval).replace("-", "−")
    value, low, high = (round(interval[name]) for name in ("value", "low", "high"))  # no −0
    return f"{value} [{low}, {high}]".replace("-", "−")


def _tenths(interval: dict) -> str:
    if interval["low"] is None:
        return "–" if interval["value"] is None else f"{interval['value']:.1f}"
    return f"{interval['value']:.1f} ± {interval['high'] - interval['value']:.1f}"


# Which state asks, in words: the part of the chapter on scoring functions about the second primer's line.

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
