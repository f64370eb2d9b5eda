"""Whether words are known before attention goes to them, in sentences made from the numbers."""

from attnlib.companion.intervals import capital, listed
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name, kinds_shown

KNOWN = 1.1  # β at the right word over β elsewhere from which a network knows anything, as claims judge it
WAYS = {"drawn": "drawn to the word to be said", "away": "driven away from it"}


def first_sentences(result: Result) -> str:
    """An item a kind of sentences: which way attention goes, when, and what is known of words by then."""
    return "\n".join(
        f"* {capital(kind_name(kind, result.config['length']))}: {_sentence(result.values[kind]['ways'])}"
        for kind in kinds_shown(result)
        if _gone(result.values[kind]["ways"])
    )


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


def _gone(ways: dict) -> int:
    return sum(ways[way]["n"] for way in WAYS)


def _sentence(ways: dict) -> str:
    of = _gone(ways) + ways["stays"]
    counts = [f"{ways[way]['n']} {{}}{told}" for way, told in WAYS.items() if ways[way]["n"]]
    counts += [f"{ways['stays']} {{}}left near uniform attention"] if ways["stays"] else []
    first, *others = counts
    words = [first.format(f"of {of} networks attention is "), *(f"in {other.format('')}" for other in others)]
    text = f"in {listed(words)}."
    return text + "".join(_of_way(way, ways[way]) for way in WAYS if ways[way]["n"])


def _of_way(way: str, group: dict) -> str:
    """When it goes and what is known by then; how long those networks take to copy."""
    who = {"drawn": "Where it is drawn", "away": "Where it is driven away"}[way]
    text = f" {who}, it leaves uniform attention after {interval_text(group['left'], digits=0)} updates"
    if group["known"]["value"] is None:
        text += f", and β at this word is then {interval_text(group['own'])} times what it is elsewhere."
    else:
        text += (
            f"; β at this word is then {interval_text(group['own'])} times what it is elsewhere, in networks "
            f"held at uniform attention {interval_text(group['known'])} times."
        )
    if group["known_at_half"]["value"] is not None:
        text += (
            f" After {interval_text(group['half'], digits=0)} updates the largest weight stands at this word "
            f"for half of the words, and networks held at uniform attention have a ratio of "
            f"{interval_text(group['known_at_half'])}."
        )
    return f"{text} {_learns(group)}"


def _learns(group: dict) -> str:
    if group["soonest"] is None:
        return "None of them learns to copy."
    learn = group["steps_to_learn"]["n"]
    who = "They learn" if learn == group["n"] else f"Of {group['n']}, {learn} learn{'s' * (learn == 1)}"
    when = (
        f"{group['soonest']}"
        if group["soonest"] == group["latest"]
        else f"{group['soonest']} to {group['latest']}"
    )
    return f"{who} to copy, after {when} updates."
