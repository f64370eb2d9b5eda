"""The chapter on one vector in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.one_vector import NETWORKS
from attnlib.experiments.result import Result
from attnlib.plotting.one_vector import NAMES, tasks_of
from attnlib.plotting.style import task_name

if TYPE_CHECKING:
    import pandas as pd

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


def growth_sentences(result: Result) -> str:
    """What one wrong word does to the rest."""
    lines = [
        f"* **{task_name(task).capitalize()}, {NAMES[network]}** After one word drawn at random, "
        f"{interval_range(found['after_error'])} more of the words that follow go wrong than after the right "
        f"one. In the first third of the places it costs {interval_range(found['early_over_late'])} more "
        "words than in the last."
        for task, network, found in _kinds(result)
    ]
    return "\n".join(lines) or "Nothing of this has been run yet."


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
