"""Intervals over seeds held against each other or a threshold, for sentences that say which is larger."""


def above(first: dict, second: dict) -> bool:
    """Whether the whole of the first interval is above the second; False where either has no interval.

    For two numbers of the same networks this is cautious: their difference may be clear of zero all the same.
    """
    known = first["low"] is not None and second["high"] is not None
    return known and first["low"] > second["high"]


def side(interval: dict, threshold: float = 0.0) -> str:
    """``above`` or ``below`` where the whole interval is, else ``open``: too wide, or none at all."""
    if interval["low"] is None or interval["high"] is None:
        return "open"
    if interval["low"] > threshold:
        return "above"
    return "below" if interval["high"] < threshold else "open"


def unless_told(interval: dict) -> str:
    """What to add to a difference that may be none; nothing where the interval is on one side of 0."""
    return " (not to be told from none)" if side(interval) == "open" else ""


def capital(text: str) -> str:
    """The text with its first letter as a capital; ``str.capitalize`` makes the others small, names too."""
    return text[:1].upper() + text[1:]


def listed(parts: list[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
