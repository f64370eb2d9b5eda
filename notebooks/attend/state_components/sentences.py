"""What came out of :mod:`notebooks.attend.state_components.experiment`, in words made from its numbers."""

import math

from attnlib.plots.style import task_name
from companion.book.tables import interval_range
from companion.results.result import Result, kinds_of

SIDES = ("encoder", "decoder")
LEARNED = 0.9  # of the words right
LITTLE = 0.05  # of the variance


def said(interval: dict) -> str:
    """``0.77 [0.70, 0.84]``, or the number alone where one seed gives no interval."""
    low = interval["low"]
    if interval["value"] is not None and (low is None or math.isnan(low)):
        return f"{interval['value']:.2f}".replace("-", "−")
    return interval_range(interval)


def variance_sentences(result: Result) -> str:
    """Where position and word explain most and least, and which of them leads where."""
    rows = [
        (f"{side} of {kind} on {task_name(task)}", found[side]["held_out"])
        for task, kind, found in kinds_of(result)
        for side in SIDES
    ]
    most = max(rows, key=lambda row: row[1]["additive"]["value"])
    least = min(rows, key=lambda row: row[1]["additive"]["value"])
    leads = [_clear_lead(shares) for _, shares in rows]
    return (
        f"Position and word together explain most in the {most[0]} "
        f"({said(most[1]['additive'])} of the held-out variance) and least in the {least[0]} "
        f"({said(least[1]['additive'])}). Of {len(rows)} sides of networks, what is unique to "
        f"position is larger than what is unique to the word in {leads.count('temporal')}, smaller in "
        f"{leads.count('input')}, and not to be told apart (intervals overlap) in {leads.count(None)}."
    )


def _clear_lead(shares: dict) -> str | None:
    """The unique part that is larger, interval against interval; None where they overlap or are missing."""
    temporal, inputs = shares["temporal_unique"], shares["input_unique"]
    if None in (temporal["low"], inputs["low"]):
        return None
    if temporal["low"] > inputs["high"]:
        return "temporal"
    return "input" if inputs["low"] > temporal["high"] else None


def exact_sentences(result: Result) -> str:
    """What the exact fit changes, and where most."""
    rows = [
        (f"{side} of {kind} on {task_name(task)}", found[side])
        for task, kind, found in kinds_of(result)
        for side in SIDES
    ]
    where, most = max(rows, key=lambda row: row[1]["gain"]["value"])
    gains = [found["gain"]["value"] for _, found in rows]
    small = sum(gain < 0.01 for gain in gains)
    return (
        f"Least squares in place of averages explains more than a hundredth more of the held-out variance in "
        f"{len(gains) - small} of {len(gains)} sides of networks. It gains most in the {where}: "
        f"{said(most['gain'])}, where averages are {said(most['difference']['temporal'])} "
        f"standard deviations off in μ and {said(most['difference']['input'])} in χ."
    )


def outcome_sentences(result: Result) -> str:
    """What has happened of that which would change our mind: sides that the sum leaves, and idle pieces."""
    sides = [
        (f"{side} of {kind} on {task_name(task)}", found[side]["held_out"], found["quality"])
        for task, kind, found in kinds_of(result)
        for side in SIDES
    ]
    learned = [side for side in sides if side[2]["token_accuracy"]["value"] > LEARNED]
    left = [
        f"{name} ({said(shares['additive'])})"
        for name, shares, _ in learned
        if shares["additive"]["value"] < 0.5
    ]
    idle = {
        symbol: [
            f"{name} ({said(shares[f'{part}_unique'])})"
            for name, shares, _ in sides
            if shares[f"{part}_unique"]["value"] < LITTLE
        ]
        for part, symbol in (("temporal", "μ"), ("input", "χ"))
    }
    idle_text = "; ".join(f"{symbol} in the {', '.join(names)}" for symbol, names in idle.items() if names)
    return (
        f"* Less than half of the variance explained, where more than {100 * LEARNED:.0f} % of the words are "
        f"right: {_counted(left, len(learned))}.\n"
        f"* A unique part under {LITTLE:.2f}: {idle_text or 'nowhere here'}."
    )


def _counted(names: list[str], of: int) -> str:
    return f"{', '.join(names)}; {len(names)} of {of} sides" if names else "nowhere here"
