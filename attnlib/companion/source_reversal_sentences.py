"""The chapter on reversed sources in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.result import Result
from attnlib.experiments.source_reversal import ONE_LENGTH
from attnlib.plotting.source_reversal import KINDS, LOOKS, kinds_of
from attnlib.plotting.style import task_name

if TYPE_CHECKING:
    import pandas as pd

CELLS = {"gru": "GRU", "lstm": "LSTM"}


def distance_table(result: Result) -> "pd.DataFrame":
    """A row a task: steps between linked words, both ways."""
    import pandas as pd

    rows = {}
    for task, found in result.values["distances"].items():
        row: dict[str, object] = {"sentences": found["sentences"]}
        for order, (label, *_) in LOOKS.items():
            row |= {
                f"{label}, mean": f"{found[order]['mean']:.1f}",
                f"{label}, smallest": f"{found[order]['smallest']:.1f}",
                f"{label}, largest": f"{found[order]['largest']:.1f}",
            }
        rows[task_name(task)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def gain_table(result: Result) -> "pd.DataFrame":
    """A row a kind and cell: token accuracy read backwards less forwards, on the way and in the end."""
    import pandas as pd

    columns = {
        "speed": "on the way",
        "speed_first": "… first third",
        "speed_last": "… last third",
        "token_accuracy": "in the end",
        "first": "… first third ",
        "last": "… last third ",
        "exact_match": "sentences without a fault",
    }
    rows = {
        f"{KINDS[kind]}, {CELLS[cell]}": {
            heading: interval_text(result.values[kind][cell]["gain"][name])
            for name, heading in columns.items()
        }
        for kind in kinds_of(result)
        for cell in result.config["cell"]
        if "gain" in result.values[kind].get(cell, {})
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def counting_sentence(result: Result) -> str:
    """What reading backwards does to attention with lengths mixed, and with one length."""
    kinds = {"attention": "With sentences of several lengths", ONE_LENGTH: "with one length"}
    gains = {
        name: found["gain"]["speed"]
        for kind, name in kinds.items()
        if "gain" in (found := result.values.get(kind, {}).get("main", {}))
    }
    if len(gains) < len(kinds):
        return "This run lacks one of the two."
    parts = (
        f"{name} it is {_better_or_worse(gain)} ({interval_range(gain)})" for name, gain in gains.items()
    )
    return f"{'; '.join(parts)}; words right averaged over the way, backwards less forwards."


def _better_or_worse(gain: dict) -> str:
    if gain["low"] is None or gain["low"] <= 0 <= gain["high"]:
        return "not to be told from idle"
    return "worse" if gain["value"] < 0 else "better"


def gain_sentences(result: Result) -> str:
    """What reading backwards does for each kind of network."""
    lines = []
    for kind in kinds_of(result):
        found = result.values[kind]["main"]
        if "gain" not in found:
            continue
        gain = found["gain"]
        lines.append(
            f"* **{KINDS[kind].capitalize()}.** Averaged over the way, words right: "
            f"{interval_text(found['forward']['speed'])} read forwards, "
            f"{interval_text(found['reversed']['speed'])} read backwards; the difference, paired by seed: "
            f"{interval_range(gain['speed'])}. It is {interval_range(gain['speed_first'])} in the first "
            f"third of a sentence and {interval_range(gain['speed_last'])} in the last."
        )
    return "\n".join(lines) or "Nothing of this has been run yet."
