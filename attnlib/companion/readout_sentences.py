"""The readout chapter in words made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_text
from attnlib.decomposition.parts import PART_NAMES
from attnlib.experiments.result import Result
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name

if TYPE_CHECKING:
    import pandas as pd

KNOWN_FROM = {
    "gold": "the task's own links",
    "grammar": "the grammar",
    "dice": "co-occurrence in the training sentences",
}


def readout_sentences(result: Result) -> str:
    """A sentence a kind of network: what its words are read from, and what the decoder's path adds."""
    return "\n".join(f"* {_sentence(task, kind, found)}" for task, kind, found in kinds_of(result))


def _sentence(task: str, kind: str, found: dict) -> str:
    accuracy, lost = found["accuracy"]["zero"], found["lost"]
    best = max(PART_NAMES, key=lambda part: accuracy[f"context_only_{part}"]["value"])
    needed = max(PART_NAMES, key=lambda part: lost[f"context_without_{part}"]["value"])
    right = found["dictionary"]
    lines = (
        f"{task_name(task)}, {kind}: {interval_text(accuracy['full'])} of the tokens are right. Of the "
        f"context, the {best} components alone leave {interval_text(accuracy[f'context_only_{best}'])}, more "
        f"than either other part; dropping the {needed} components costs most "
        f"({interval_text(lost[f'context_without_{needed}'])}). Without the decoder's path "
        f"{interval_text(accuracy['decoder_none'])} stay right, without the context "
        f"{interval_text(accuracy['context_none'])}, and the most frequent word would be right "
        f"{found['chance']:.2f} of the time."
    )
    if right["words"]:
        lines += (
            f" Read out alone, the input component of a source word points at its translation for "
            f"{interval_text(right['accuracy'])} of {right['words']} words."
        )
    return lines


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
