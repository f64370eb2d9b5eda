"""The chapter on one vector in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.plots.style import task_name
from companion.book.intervals import capital, side, unless_told
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.primer.one_vector.drawing import NAMES, tasks_of
from notebooks.primer.one_vector.experiment import NETWORKS
from notebooks.primer.one_vector.measure import BEAMS

if TYPE_CHECKING:
    import pandas as pd

AS_OFTEN = "as often, as far as can be told (a difference of {})"
COLUMNS = {
    "token_accuracy": "words right, after right ones",
    "exact_match": "sentences without a fault",
    "length_right": "right length",
    "own_hand": "lost by reading its own words",
}


def quality_table(result: Result) -> "pd.DataFrame":
    """A row a task and network."""
    import pandas as pd

    rows = {}
    for task, network, found in _kinds(result):
        bleu = found["bleu"]
        rows[f"{task_name(task)}, {NAMES[network]}"] = (
            {"parameters": f"{found['parameters']:,}"}
            | {heading: interval_text(found[name]) for name, heading in COLUMNS.items()}
            | {"BLEU": f"{bleu['value']:.1f}" + _half(bleu)}
        )
    return pd.DataFrame.from_dict(rows, orient="index")


def length_sentences(result: Result) -> str:
    """Whether networks know the length of the target better than the length of the source tells it."""
    lines = []
    for task in tasks_of(result):
        guessed = {found["length_guessed"] for own, _, found in _kinds(result) if own == task}
        networks = [
            f"{NAMES[network]}, "
            + _told(found["length_over_guess"], "{} more often", "{} less often", even=AS_OFTEN)
            for own, network, found in _kinds(result)
            if own == task
        ]
        lines.append(
            f"* **{capital(task_name(task))}.** The number of words of the source alone tells that of "
            f"the target for {min(guessed):.2f} of the held-out samples (by the one most frequent with "
            "it in training). The networks end where they should: "
            f"{'; '.join(networks)}."
        )
    return "\n".join(lines) or "Nothing of this has been run yet."


def beam_sentence(result: Result) -> str:
    """What beam search finds beyond greedy decoding."""
    lines = []
    for task in tasks_of(result):
        parts = [
            f"{NAMES[network]}, {_told(gain['exact_match'], '{} of the sentences', '{} fewer of them')} and "
            f"{_told(gain['bleu'], '{} BLEU', '{} BLEU less')}"
            for own, network, found in _kinds(result)
            if own == task
            for gain in (found["beam_gain"],)
        ]
        lines.append(f"* **{capital(task_name(task))}.** {'; '.join(parts)}.")
    if not lines:
        return ""
    return (
        f"Beam search of width {BEAMS}, which keeps the {BEAMS} likeliest beginnings in place of one, gains "
        "sentences without a fault, and BLEU:\n\n" + "\n".join(lines)
    )


def of_one_length(result: Result) -> str:
    """The sentences that the figures by place are about: ``number words: 96 of 6 words``."""
    parts = {}
    for task, _, found in _kinds(result):
        parts.setdefault(task, f"{task_name(task)}: {found['of_length']} of {found['length']} words")
    return "; ".join(parts.values()) or "none yet"


def growth_sentences(result: Result) -> str:
    """What one wrong word does to the rest, and whether an early one does more of it."""
    lines = [
        f"* **{capital(task_name(task))}, {NAMES[network]}** After one word drawn at random, "
        f"{_told(found['after_error'], '{} more', '{} fewer')} of the words that follow go wrong than after "
        f"the right one. {_early(found['early_over_late'])} {_worst(result, task, network)}"
        for task, network, found in _kinds(result)
    ]
    return "\n".join(lines) or "Nothing of this has been run yet."


def _early(difference: dict) -> str:
    places = (
        "an error in the first third of the places spoils a {} share of what follows than one in the last"
    )
    said = {"above": places.format("larger"), "below": places.format("smaller")}
    text = said.get(side(difference), f"whether {places.format('larger')} cannot be told")
    return f"{capital(text)} ({interval_range(difference)})."


def early_outcomes(result: Result) -> str:
    """On which tasks early errors spoil no larger share, network by network."""
    happened = {"above": "it has not happened", "below": "it has happened", "open": "it cannot be told"}
    parts = [
        f"{NAMES[network]} on {task_name(task)}, {happened[side(found['early_over_late'])]}"
        for task, network, found in _kinds(result)
    ]
    return f"Of that: {'; '.join(parts)}." if parts else "Nothing of this has been run yet."


def _worst(result: Result, task: str, network: str) -> str:
    """The place where an error spoils the largest share."""
    kind = {"task": task, "network": network, "quantity": "share"}
    own = [row for row in result.tables["damage"] if kind.items() <= row.items()]
    worst = max(own, key=lambda row: row["value"])
    return f"The largest share is spoilt after place {worst['place']} of {len(own)}, {interval_range(worst)}."


def _told(difference: dict, more: str, less: str, even: str = "") -> str:
    """A difference with its sign in words: ``0.01 [0.00, 0.02] less often``; ``even`` where it has none."""
    known = difference["low"] is not None
    if known and max(abs(difference["low"]), abs(difference["high"])) < 0.005:
        return more.format("0.00")
    if known and side(difference) == "open":
        return (even or f"{more}{unless_told(difference)}").format(interval_range(difference))
    if difference["value"] >= 0:
        return more.format(interval_range(difference))
    ends = {"low": -difference["high"], "high": -difference["low"]} if known else {"low": None, "high": None}
    return less.format(interval_range({"value": -difference["value"], **ends}))


def bleu_signature() -> str:
    """sacreBLEU's own words on how BLEU was computed."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(force=True)
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


def _kinds(result: Result) -> list[tuple[str, str, dict]]:
    return [
        (task, network, result.values[task][network])
        for task in tasks_of(result)
        for network in NETWORKS
        if network in result.values[task]
    ]


def _half(interval: dict) -> str:
    return "" if interval["low"] is None else f" ± {interval['high'] - interval['value']:.1f}"
