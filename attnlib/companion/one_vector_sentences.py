"""The chapter on one vector in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import side
from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.measures.error_growth import BEAMS
from attnlib.experiments.one_vector import NETWORKS
from attnlib.experiments.result import Result
from attnlib.plotting.one_vector import NAMES, tasks_of
from attnlib.plotting.style import task_name

if TYPE_CHECKING:
    import pandas as pd

TOLD = {  # after a difference that a statement is about
    "above": "",
    "below": ", that is, less",
    "open": " (not to be told from none)",
}
COLUMNS = {
    "token_accuracy": "words right, read right",
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
            f"{NAMES[network]}, {interval_range(found['length_over_guess'])} more often"
            + TOLD[side(found["length_over_guess"])]
            for own, network, found in _kinds(result)
            if own == task
        ]
        lines.append(
            f"* **{task_name(task).capitalize()}.** The number of words of the source alone tells that of "
            f"the target for {min(guessed):.2f} of the held-out samples (by the one most frequent with "
            "it in training). The networks end where they should: "
            f"{'; '.join(networks)}."
        )
    return "\n".join(lines) or "Nothing of this has been run yet."


def beam_sentence(result: Result) -> str:
    """What beam search finds beyond greedy decoding."""
    parts = [
        f"{interval_range(found['beam_gain']['exact_match'])} of the sentences and "
        f"{interval_range(found['beam_gain']['bleu'])} BLEU for {NAMES[network]} on {task_name(task)}"
        + TOLD[side(found["beam_gain"]["exact_match"])]
        for task, network, found in _kinds(result)
    ]
    if not parts:
        return ""
    return (
        f"Beam search of width {BEAMS}, which keeps the {BEAMS} likeliest beginnings in place of one, gains "
        f"sentences without a fault, and BLEU: {'; '.join(parts)}."
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
        f"* **{task_name(task).capitalize()}, {NAMES[network]}** After one word drawn at random, "
        f"{interval_range(found['after_error'])} more of the words that follow go wrong than after the right "
        f"one{TOLD[side(found['after_error'])]}. {_early(found['early_over_late'])}"
        for task, network, found in _kinds(result)
    ]
    return "\n".join(lines) or "Nothing of this has been run yet."


def _early(difference: dict) -> str:
    places = (
        "an error in the first third of the places spoils a {} share of what follows than one in the last"
    )
    said = {"above": places.format("larger"), "below": places.format("smaller")}
    text = said.get(side(difference), f"whether {places.format('larger')} cannot be told")
    return f"{text[0].upper()}{text[1:]} ({interval_range(difference)})."


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
