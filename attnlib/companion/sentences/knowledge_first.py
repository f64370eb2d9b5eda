"""Which comes first, words or attention: a table, and what it says, made from the same numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import side
from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.knowledge_first import HALF
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name, kinds_shown

if TYPE_CHECKING:
    import pandas as pd

WAYS = {"drawn": "drawn", "away": "driven away"}


def ways_table(result: Result) -> "pd.DataFrame":
    """A row a kind of sentences and way that attention goes: when words are known and attention there."""
    import pandas as pd

    rows = {}
    for kind in kinds_shown(result):
        ways, name = result.values[kind]["ways"], kind_name(kind, result.config["length"])
        for way, told in WAYS.items():
            if ways[way]["n"]:
                rows[f"{name}, {told}"] = _row(ways[way])
        if ways["stays"]:
            rows[f"{name}, near uniform attention"] = {"networks": str(ways["stays"])}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("–")


def order_sentences(result: Result) -> str:
    """An item a kind of sentences on which some attention was drawn: which came first, what others know."""
    return "\n".join(
        f"* {text}"
        for kind in kinds_shown(result)
        if (text := _order(kind_name(kind, result.config["length"]), result.values[kind]["ways"]["drawn"]))
    )


def _order(name: str, drawn: dict) -> str:
    lead, held, there = drawn["lead"], drawn["held"], drawn["there"]["n"]
    if not lead["n"]:
        return ""
    both = "" if lead["n"] == there else f", in the {lead['n']} that have both"
    text = (
        f"On {name} words come first in {drawn['first']} of {there} networks: their own largest β stands "
        f"at the right place for half of the words {interval_range(lead, digits=0)} updates before their "
        f"largest weight does{both}."
    )
    if held["value"] is None:
        return text
    text += (
        f" When it does, networks held at uniform attention have their largest β there for "
        f"{interval_text(held)} of the words."
    )
    return text + (_held_or_not(held, drawn["first"] == there) if held["low"] is not None else "")


def _held_or_not(held: dict, words_first: bool) -> str:
    """Whether words could have been learned without attending by then, by the interval."""
    where = side(held, HALF)
    if where == "above":
        return " So these words can be learned while attention is uniform."
    if where == "below" and words_first:
        return (
            " So words come first here, too, but not while attention is uniform: what is known of them is "
            "learned as attention moves."
        )
    return ""


def _row(group: dict) -> dict[str, str]:
    return {
        "networks": str(group["n"]),
        "leaves after": interval_text(group["left"], digits=0),
        "β right after": _some(group, "known"),
        "attention right": _some(group, "there"),
        "β of held ones": _held(group),
        "copies after": _learns(group),
    }


def _some(group: dict, name: str) -> str:
    """A time, and how many networks have it where not all do."""
    text = interval_text(group[name], digits=0)
    return f"{text} ({group[name]['n']})" if 0 < group[name]["n"] < group["n"] else text


def _held(group: dict) -> str:
    text = interval_text(group["held"])
    return f"{text} ({group['n_held']})" if 0 < group["n_held"] < group["there"]["n"] else text


def _learns(group: dict) -> str:
    """From the first to the last that learns, and how many do where not all do."""
    if group["soonest"] is None:
        return "none does"
    first, last, learn = group["soonest"], group["latest"], group["steps_to_learn"]["n"]
    text = f"{first}" if first == last else f"{first} to {last}"
    return text if learn == group["n"] else f"{text} ({learn})"
