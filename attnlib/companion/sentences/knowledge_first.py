"""Whether words are known before attention goes to them: a table, and a sentence made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import listed
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name, kinds_shown

if TYPE_CHECKING:
    import pandas as pd

KNOWN = 1.1  # β at the right word over β elsewhere from which a network knows anything, as claims judge it
WAYS = {"drawn": "drawn", "away": "driven away"}


def ways_table(result: Result) -> "pd.DataFrame":
    """A row a kind of sentences and way that attention goes: when, and what is known of words by then."""
    import pandas as pd

    rows = {}
    for kind in kinds_shown(result):
        ways, name = result.values[kind]["ways"], kind_name(kind, result.config["length"])
        for way, told in WAYS.items():
            if ways[way]["n"]:
                rows[f"{name}, {told}"] = _row(ways[way])
        if ways["stays"]:
            rows[f"{name}, near uniform attention"] = {"networks": str(ways["stays"])}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def order_outcome(result: Result) -> str:
    """Whether attention waits for knowledge: what is known when it stands at the word for half of them."""
    early = [kind for kind in kinds_shown(result) if _comes_before(result.values[kind]["ways"]["drawn"])]
    if not early:
        return ""
    names = listed([kind_name(kind, result.config["length"]) for kind in early])
    return (
        f"On {names} attention came before what it is said to wait for: it stood at the word to be said for "
        f"half of the words when networks that never attend knew next to nothing of words (a ratio below "
        f"{KNOWN}). What these networks came to know of words they learned together with where to look."
    )


def _comes_before(drawn: dict) -> bool:
    """Whether networks that never attend still know next to nothing, by the whole interval."""
    known = drawn["known_at_half"]
    return known["high"] is not None and known["high"] < KNOWN


def _row(group: dict) -> dict[str, str]:
    half = interval_text(group["half"], digits=0)
    if 0 < group["n_half"] < group["n"]:
        half += f" ({group['n_half']} of them)"
    return {
        "networks": str(group["n"]),
        "leaves after": interval_text(group["left"], digits=0),
        "its ratio then": interval_text(group["own"]),
        "held: ratio then": interval_text(group["known"]),
        "half after": half,
        "held: ratio at half": interval_text(group["known_at_half"]),
        "copies after": _learns(group),
    }


def _learns(group: dict) -> str:
    """From the first to the last that learns, and how many do where not all do."""
    if group["soonest"] is None:
        return "none does"
    first, last, learn = group["soonest"], group["latest"], group["steps_to_learn"]["n"]
    text = f"{first}" if first == last else f"{first} to {last}"
    return text if learn == group["n"] else f"{text} ({learn} of them)"
