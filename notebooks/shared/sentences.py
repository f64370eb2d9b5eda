"""Kinds of network sorted by what their intervals say, and named in a sentence."""

import math

from attnlib.plots.style import task_name
from companion.book.intervals import capital, side
from companion.book.tables import interval_range, interval_text, share_text
from companion.results.statistics import mean_interval

Kind = tuple[str, str, dict]  # task, kind of network, interval


def over_models(values: list[float | None]) -> dict[str, float | int | None]:
    """Mean and Student's 95 % interval in the form of a result; None where too few models are defined."""
    defined = [value for value in values if value is not None]
    if not defined:
        return {"value": None, "low": None, "high": None, "n": 0}
    found = mean_interval(defined).as_dict()
    return {key: None if math.isnan(number) else number for key, number in found.items()}


def on_side(kinds: list[Kind], which: str, threshold: float = 0.0) -> list[Kind]:
    """Those of the kinds whose interval is on that side; kinds without a number are left out."""
    return [kind for kind in kinds if kind[2]["value"] is not None and side(kind[2], threshold) == which]


def named(kinds: list[Kind]) -> str:
    """``one-to-one (AED, AO), SCAN (AO)``."""
    by_task: dict[str, list[str]] = {}
    for task, kind, _ in kinds:
        by_task.setdefault(task_name(task), []).append(kind)
    return ", ".join(f"{task} ({', '.join(found)})" for task, found in by_task.items())


def named_with_values(kinds: list[Kind]) -> str:
    """``one-to-one, AO: −0.40 [−0.45, −0.35]; SCAN, AO: …``."""
    return "; ".join(f"{task_name(task)}, {kind}: {interval_range(found)}" for task, kind, found in kinds)


# Times to learn in words: a network that never learned has none, and a mean over it is a lower bound.


def updates_cell(found: dict, steps: int) -> str:
    """The mean time to 95 % for a table: ``97 ± 8``, ``> 300``, ``≥ 160 (2 not by 200)``, or –.

    Args:
        found: what :func:`notebooks.shared.copying.outcome` gives.
        steps: updates of the whole course.
    """
    if not found["n"]:
        return "–"
    if found["never"] == found["n"]:
        return f"> {steps}"
    if found["never"]:
        return f"≥ {found['steps_to_learn']['value']:.0f} ({found['never']} not by {steps})"
    return interval_text(found["steps_to_learn"], digits=0)


def updates_words(found: dict, steps: int) -> str:
    """The same as a clause; arguments as in :func:`updates_cell`, with at least one network."""
    if found["never"] == found["n"]:
        return f"95 % are not reached within {steps} updates"
    if found["never"]:
        return (
            f"{found['never']} of {found['n']} do not reach 95 % within {steps} updates, so that the mean "
            f"time to it is at least {found['steps_to_learn']['value']:.0f}"
        )
    return f"95 % are reached after {interval_text(found['steps_to_learn'], digits=0)} updates"


# Which way networks that failed to copy use their attention, in words.

HARDLY = 0.1  # of the words shown: a network that says no more of them has hardly begun
TURNED = (
    "So attention was learned, and turned round: it keeps away from the word that is due, more than from "
    "others still to come, and the network says a word that it does not see more often than one that it sees."
)


def turned_sentences(found: dict[str, dict], steps: int) -> str:
    """Where the attention of failed networks stands, and what they say of words shown or left out.

    Args:
        found: by name of the networks, what :func:`notebooks.shared.copying.turned_away` gives.
        steps: updates after which that is.

    Returns:
        an item a kind of networks and side on which some failed; nothing where none did.
    """
    return "\n".join(
        f"* {capital(name)}, {_SIDES[way]} after {steps} updates, failures: {group['n']}. "
        f"{_sentence(group)} {_told(way, group)}"
        for name, own in found.items()
        for way, group in own.items()
        if group["n"]
    )


def sides_sentence(found: dict) -> str:
    """When it shows which way the attention of a network goes.

    Args:
        found: what :func:`notebooks.shared.copying.sides` gives, of heads in bodies of their own: the
            probe before training is the body's, whatever the head.
    """
    if not found["n"]:
        return ""
    return (
        f"After {found['end']} updates {found['drawn']} of {found['n']} single heads, each in a body of its "
        f"own, have more weight on the word to be said than uniform attention, "
        f"{found['n'] - found['drawn']} less. "
        f"On the side where they end are, before training, {share_text(found['same_at_first'])}, and after "
        f"{found['step']} updates {share_text(found['same'])}. The probe is larger at the right place than "
        f"elsewhere where they end drawn, and smaller where they end driven away, for "
        f"{share_text(found['probe_at_first'])} before training and for {share_text(found['probe'])} after "
        f"{found['step']} updates."
    )


_SIDES = {
    "drawn": "with more weight on the word to be said than at uniform attention",
    "away": "with less weight on the word to be said than at uniform attention",
}


def _sentence(group: dict) -> str:
    return (
        f"The word to be said has {interval_text(group['weight'])} times the weight that uniform attention "
        f"would give it, a word that is to be said later {interval_text(group['later'])} times. Attention "
        f"moved to one single later word makes them say it in {interval_text(group['says_shown'])} of the "
        f"cases, attention spread over all words but that one in "
        f"{interval_text(group['says_left_out'])}. Spread over all words but the one that is due, it lets "
        f"them say {interval_text(group['right_without'])} of the words right, spread over all "
        f"{interval_text(group['right_at_uniform'])}."
    )


def _told(way: str, group: dict) -> str:
    says, misses = (side(group[name]) for name in ("left_out_less_shown", "without_less_uniform"))
    if way == "drawn" and says == "below":
        if group["says_shown"]["value"] < HARDLY:
            return (
                "They say what they see a little more often than what they do not, and seldom: attention has "
                "hardly begun to count."
            )
        return "They say what they see."
    if way == "away" and says == misses == side(group["later_less_weight"]) == "above":
        return TURNED
    return "That attention is of use to them, either way, is not shown."
