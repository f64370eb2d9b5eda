"""What came out of :mod:`notebooks.attend.without_attention.experiment`, in words made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.tables import interval_text
from companion.results.result import Result
from notebooks.attend.state_components.sentences import said

if TYPE_CHECKING:
    import pandas as pd


def lengths_of(result: Result, kind: str = "VED") -> list[int]:
    """Sentence lengths that were measured, ascending."""
    names = (name for name in result.values[kind] if name.startswith("length_"))
    return sorted(int(name.removeprefix("length_")) for name in names)


def memory_sentences(result: Result) -> str:
    """How additive the last state is, and which end of the sentence it holds."""
    parts = []
    for length in lengths_of(result):
        memory = result.values["VED"][f"length_{length}"]["memory"]
        parts.append(
            f"with {length} words the sum of unrolled components explains {said(memory['held_out'])} of "
            f"the last encoder state's held-out variance; the first word has {said(memory['first'])} "
            f"of it, the last {said(memory['last'])}"
        )
    aed = result.values["AED"]["shortest"]["memory"]
    return (
        f"In VED, {'; '.join(parts)}. In AED, with {lengths_of(result, 'AED')[0]} words, the first has "
        f"{said(aed['first'])} and the last {said(aed['last'])}."
    )


def readout_sentences(result: Result) -> str:
    """Whether an exchanged word is said at its own step, and what reading it does."""
    length = lengths_of(result)[0]
    found, aed = result.values["VED"]["shortest"], result.values["AED"]["shortest"]
    return (
        f"With {length} words, exchanging one word's component makes VED say the new word at that word's own "
        f"step in {said(found['component']['on_time'])} of sentences (the last state of a sentence that "
        f"really has the word: {said(found['real']['on_time'])}; AED, which can look the word up: "
        f"{said(aed['component']['on_time'])}). At other steps predictions move by "
        f"{said(found['component']['elsewhere'])} in total variation while the decoder reads on as "
        f"before, and by {said(found['read_too']['elsewhere'])} when it reads the new word too. The "
        f"component of a source word and that of the same word just read have a cosine of "
        f"{said(found['cancel'])} in VED and {said(aed['cancel'])} in AED: at −1, reading a "
        f"word would take away what was kept of it, and nothing else."
    )


def capacity_sentences(result: Result) -> str:
    """Words right by length, and the same with less training."""
    rows = []
    for length in lengths_of(result):
        full, less = (result.values[kind][f"length_{length}"] for kind in ("VED", "VED_less"))
        rows.append(
            f"{length} words: {said(full['token_accuracy'])} "
            f"(whole sentences {said(full['exact_match'])}; with "
            f"{100 * result.config['less']:.0f} % of the updates {said(less['token_accuracy'])} of words)"
        )
    aed = result.values["AED"]["longest"]["token_accuracy"]
    return f"Words that VED gets right, by length. {'; '.join(rows)}. AED at the longest length: {said(aed)}."


def outcome_sentences(result: Result) -> str:
    """What has happened of that which would change our mind, condition by condition, by intervals."""
    lengths, lines = lengths_of(result), []
    found = {length: result.values["VED"][f"length_{length}"] for length in lengths}
    well = [length for length in lengths if found[length]["token_accuracy"]["value"] > 0.9]
    if well:
        worst = min(well, key=lambda length: found[length]["memory"]["held_out"]["value"])
        share = found[worst]["memory"]["held_out"]
        verb = "has happened" if share["value"] < 0.5 else "has not happened"
        lines.append(
            f"A sum that explains the last state badly where the network copies well {verb}: the lowest R² "
            f"is {said(share)}, at {worst} words."
        )
    first, last = (found[length]["read_too"]["elsewhere"] for length in (lengths[0], lengths[-1]))
    if _below(first, last):
        lines.append(
            "Effects off the diagonal have begun to show in long sentences: when the new word is read too, "
            f"other steps move by {said(first)} with {lengths[0]} words and by {said(last)} with "
            f"{lengths[-1]}."
        )
    else:
        lines.append(
            "Effects off the diagonal do not grow with length: when the new word is read too, other steps "
            f"move by {said(first)} with {lengths[0]} words and by {said(last)} with {lengths[-1]}."
        )
    aed = [
        found["component"]["on_time"]
        for name, found in result.values.get("AED", {}).items()
        if name.startswith("length_")
    ]
    if aed:
        lines.append(f"In AED the exchange is said on time in at most {_most(aed)} of sentences.")
    lifted = [
        f"{length} words from {said(less)} to {said(full)}"
        for length in lengths
        for less, full in [
            [result.values[kind][f"length_{length}"]["token_accuracy"] for kind in ("VED_less", "VED")]
        ]
        if _below(less, full)
    ]
    if lifted:
        lines.append(
            "Longer training lifts long sentences, as far as it has been tried: "
            f"{1 / result.config['less']:g} times the updates bring {', '.join(lifted)}. How far room sets "
            "the limit, and how far training, is open."
        )
    return "\n".join(f"* {line}" for line in lines)


def _below(first: dict, second: dict) -> bool:
    """Whether the first interval lies below the second."""
    ends = first["high"], second["low"]
    return None not in ends and ends[0] < ends[1]


def _most(intervals: list[dict]) -> str:
    return said(max(intervals, key=lambda interval: interval["value"]))


def length_table(result: Result) -> "pd.DataFrame":
    """A row for each kind and length: accuracy, memory and readout as ``value ± half width``."""
    import pandas as pd

    columns = {
        "words right": ("token_accuracy",),
        "R² of the last state": ("memory", "held_out"),
        "position against share": ("memory", "order"),
        "said on time": ("component", "on_time"),
        "elsewhere": ("component", "elsewhere"),
        "elsewhere, read too": ("read_too", "elsewhere"),
        "cosine": ("cancel",),
    }
    rows = {}
    for kind, name in (("VED", "VED"), ("VED_less", "VED, less training"), ("AED", "AED")):
        for length in lengths_of(result, kind) if kind in result.values else ():
            row = {}
            for heading, path in columns.items():
                found = result.values[kind][f"length_{length}"]
                for part in path:
                    found = found[part]
                row[heading] = interval_text(found)
            rows[f"{name}, {length} words"] = row
    return pd.DataFrame.from_dict(rows, orient="index")
