"""The readout chapter in words made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import task_name
from companion.book.intervals import side
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.sentences import over_models

if TYPE_CHECKING:
    import pandas as pd

SOURCES = {  # where translations are known from → tasks, by the beginnings of their names
    "the task's own links": ("one_to_one", "permutation", "reversal", "reordering_"),
    "the grammar": ("scan",),
    "co-occurrence in the training sentences": ("multi30k", "tatoeba", "europarl", "parallel"),
}
ALL = 1 - 1e-6  # of the words
FAILS = 0.1  # of the tokens lost


def readout_sentences(result: Result) -> str:
    """A sentence a kind of network: what its words are read from, and what the decoder's path adds."""
    return "\n".join(f"* {_sentence(result, task, kind, found)}" for task, kind, found in kinds_of(result))


def _sentence(result: Result, task: str, kind: str, found: dict) -> str:
    accuracy, lost = found["accuracy"]["zero"], found["lost"]
    best = max(PART_NAMES, key=lambda part: accuracy[f"context_only_{part}"]["value"])
    needed = max(PART_NAMES, key=lambda part: lost[f"context_without_{part}"]["value"])
    right = found["dictionary"]
    more = _tied(result, task, kind, "context_only", best)
    costly = _tied(result, task, kind, "context_without", needed)
    lines = (
        f"{task_name(task)}, {kind}: {interval_text(accuracy['full'])} of the tokens are right. Of the "
        f"context, the {best} components alone leave {interval_text(accuracy[f'context_only_{best}'])}, "
        + (_cannot_be_told(more, accuracy, "context_only") if more else "more than either other part")
        + f"; dropping the {needed} components costs most "
        f"({interval_text(lost[f'context_without_{needed}'])})"
        + (f", {_cannot_be_told(costly, lost, 'context_without')}" if costly else "")
        + ". Without the decoder's path "
        f"{interval_text(accuracy['decoder_none'])} stay right, without the context "
        f"{interval_text(accuracy['context_none'])}, and the most frequent word would be right "
        f"{found['chance']:.2f} of the time."
    )
    if right["words"]:
        lines += (
            f" Read out alone, the input component of a source word points at its translation for "
            f"{interval_text(right['accuracy'])} of {right['words']:,} words."
        )
    return lines


def _tied(result: Result, task: str, kind: str, ablation: str, first: str) -> list[str]:
    """The parts that the first one cannot be told from, by the differences within each network."""
    return [
        part
        for part in PART_NAMES
        if part != first
        and side(_difference(result, task, kind, (f"{ablation}_{first}", f"{ablation}_{part}"))) == "open"
    ]


def _difference(result: Result, task: str, kind: str, ablations: tuple[str, str]) -> dict:
    """Accuracy with the first ablation less that with the second, paired by seed."""
    one, other = (
        {
            row["seed"]: row["zero"]
            for row in result.tables["accuracy"]
            if (row["task"], row["kind"], row["ablation"]) == (task, kind, name)
        }
        for name in ablations
    )
    return over_models([one[seed] - other[seed] for seed in one if seed in other])


def _cannot_be_told(parts: list[str], values: dict, ablation: str) -> str:
    named = " and ".join(f"{part} ones ({interval_text(values[f'{ablation}_{part}'])})" for part in parts)
    return f"though the {named} cannot be told apart from them"


def dictionary_sentence(result: Result) -> str:
    """How many words of each task are judged, and where their translations are known from."""
    words: dict[str, list[str]] = {}
    for task in tasks_of(result):
        counts = {found["dictionary"]["words"] for found in result.values[task].values()}
        number = " or ".join(f"{count:,}" for count in sorted(counts))
        words.setdefault(_known_from(task), []).append(f"{number} of {task_name(task)}")
    said = (f"{', '.join(found)} ({source})" for source, found in words.items())
    return f"Words judged: {'; '.join(said)}."


def _known_from(task: str) -> str:
    return next((source for source, tasks in SOURCES.items() if task.startswith(tasks)), "links or words")


def falsifier_sentence(result: Result) -> str:
    """Where the dictionary has every word right and input components alone lose a tenth of the tokens."""
    happened, undecided = [], []
    for task, kind, found in kinds_of(result):
        known, lost = found["dictionary"]["accuracy"]["value"], found["lost"]["context_only_input"]
        if known is None or known < ALL or (at := side(lost, FAILS)) == "below":
            continue
        left = (f"{part} {interval_range(found['accuracy']['zero'][f'context_only_{part}'])}"
                for part in ("input", "residual", "temporal"))  # fmt: skip
        text = f"{task_name(task)}, {kind} (one part of the context kept: {', '.join(left)})"
        (happened if at == "above" else undecided).append(text)
    where = f"has happened in {'; '.join(happened)}" if happened else "has not happened"
    open_ = f" It cannot be told in {'; '.join(undecided)}." if undecided else ""
    return (
        f"The first of these, with more than a tenth of the tokens lost to count as failing, {where}.{open_}"
    )


def words_table(result: Result, table: str, task: str, kind: str, rows: int = 12) -> "pd.DataFrame":
    """The most frequent tokens of one network and the words their components point at.

    Args:
        table: ``dictionary`` (source words through W_C) or ``followers`` (words read through W_D).
        kind: ``AED``, ``AO``; the first network of the kind.
    """
    import pandas as pd

    expected = "translation" if table == "dictionary" else "most frequent next word"
    records = [
        {"token": row["token"], "points at": row["top"], expected: row["expected"] or "–"}
        for row in result.tables["words"]
        if (row["table"], row["task"], row["kind"]) == (table, task, kind)
    ]
    if not records:
        return pd.DataFrame()
    table = pd.DataFrame(records[:rows]).set_index("token")
    return table if (table[expected] != "–").any() else table.drop(columns=expected)
