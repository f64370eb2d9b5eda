"""The chapter on where attention rests in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import listed
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name
from attnlib.plotting.resting_attention import POSITION_LOOKS, class_name

if TYPE_CHECKING:
    import pandas as pd

MARKS = {"begin": "the begin mark", "end": "the end mark", "words": "a word"}


def resting_table(result: Result) -> "pd.DataFrame":
    """A row a data set and label: where attention is largest, and what the marks say alone."""
    import pandas as pd

    rows = {}
    for name, found in result.values.items():
        for label, of_label in found["labels"].items():
            rows[f"{data_name(name)}, {class_name(name, label)}"] = {
                "texts": f"{of_label['texts']:,}",
                "n": of_label["begin"]["n"],
                "at the begin mark": interval_text(of_label["begin"], digits=0),
                "at the end mark": interval_text(of_label["end"], digits=0),
                "at a word": interval_text(of_label["words"], digits=0),
                "begin mark right": interval_text(of_label["begin_right"], digits=0),
                "end mark right": interval_text(of_label["end_right"], digits=0),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def apart_table(result: Result) -> "pd.DataFrame":
    """Two rows a data set and label: agreement of two seeds over all positions, and among the words alone."""
    import pandas as pd

    rows = {}
    for name, found in result.values.items():
        for label in ("both", *found["labels"]) if found["pairs"] else ():
            what = "all texts" if label == "both" else class_name(name, label)
            for positions, (words, _) in POSITION_LOOKS.items():
                cell = found["pairs"][positions][label]
                rows[f"{data_name(name)}, {what}", words] = {
                    "agreement": _percent(cell),
                    "single pairs": _ends(cell),
                    "their standard deviation": interval_text(cell["spread"], digits=0),
                    "chance": interval_text(cell["chance"], digits=0),
                }
    return pd.DataFrame.from_dict(rows, orient="index") if rows else pd.DataFrame()


def resting_sentences(result: Result) -> str:
    """Where the networks of each data set rest in texts of the commoner label, and how pairs compare."""
    return "\n".join(f"* {_sentence(name, found)}" for name, found in result.values.items())


def outcome_sentences(result: Result) -> str:
    """Beside what would change our mind: how far pairs lie apart, and under which labels a mark is right."""
    return "\n".join(
        f"* {data_name(name)}: {'; '.join([*_spans(found['pairs']), *_rightness(name, found)])}."
        for name, found in result.values.items()
    )


def _spans(pairs: dict) -> list[str]:
    if not pairs:
        return []
    spread = {
        positions: interval_text(cells["both"]["spread"], digits=0) for positions, cells in pairs.items()
    }
    return [
        f"agreement of pairs of seeds has a standard deviation of {spread['all']} over all positions, and "
        f"of {spread['words']} among the words alone"
    ]


def _rightness(name: str, found: dict) -> list[str]:
    of_labels = {class_name(name, label): of_label for label, of_label in found["labels"].items()}
    return [
        f"{MARKS[mark]} alone is right in "
        + listed(
            [
                f"{interval_text(of_label[f'{mark}_right'], digits=0)} % ({label})"
                for label, of_label in of_labels.items()
            ]
        )
        for mark in ("begin", "end")
    ]


def _sentence(name: str, found: dict) -> str:
    common = class_name(name, found["common"])
    counts = [f"{count} at {MARKS[place]}" for place, count in found["resting"].items() if count]
    text = (
        f"**{data_name(name)}.** In most texts that are {common}, the commoner label, attention is largest: "
        f"{listed(counts)}, of {sum(found['resting'].values())} networks."
    )
    if not found["pairs"]:
        return text
    everywhere, words = (found["pairs"][positions]["both"] for positions in ("all", "words"))
    return (
        f"{text} Two seeds agree in {_percent(everywhere)} % of all texts, single pairs in "
        f"{_ends(everywhere)} %; among the words alone in {_percent(words)} %, single pairs in "
        f"{_ends(words)} %, where chance has {words['chance']['value']:.0f} %."
    )


def _percent(cell: dict) -> str:
    return interval_text(cell["agreement"], digits=0)


def _ends(cell: dict) -> str:
    return f"{cell['lowest']:.0f} to {cell['highest']:.0f}"
