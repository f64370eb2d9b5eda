"""What became of each point that would change our mind about agreement."""

from attnlib.companion.sentences.agreement import HEADS, interval_percent
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name, data_of

Outcome = tuple[str, str]  # a word of OUTCOMES, and the numbers it rests on
OUTCOMES = ("happened", "not ruled out", "not happened")


def outcome_sentences(result: Result) -> str:
    """What became of each point of what would change our mind, where one half chose the checkpoints."""
    points = {
        "Agreement of α and βᵘᶠ at chance": _at_chance,
        "Frozen networks that attend as usual": _as_usual,
        "Intervals as wide as the differences": _wide,
    }
    lines = []
    for title, judge in points.items():
        told: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
        for name in data_of(result):
            if judged := judge(result.values[name]["validation"]["accuracy"]):
                told[judged[0]].append(f"{data_name(name)} ({judged[1]})")
        parts = [f"  * *{outcome}*: {'; '.join(sets)}" for outcome, sets in told.items() if sets]
        lines += [f"* **{title}**", *parts] if parts else []
    return "\n".join(lines) or "No set has been run yet."


def _at_chance(found: dict) -> Outcome | None:
    """Not ruled out where the interval of the difference from chance holds 0."""
    above = found["alpha_beta_uf"]["above_chance"]
    if above["value"] is None:
        return None
    numbers = f"{interval_percent(above)} above"
    if above["low"] is None or above["low"] <= 0 <= above["high"]:
        return "not ruled out", numbers
    return "not happened" if above["low"] > 0 else "happened", numbers


def _as_usual(found: dict) -> Outcome | None:
    """Not ruled out where the intervals of a frozen with a free network and of two free ones overlap."""
    frozen, free = (found[column]["agreement"] for column in ("alpha_alpha_frozen", "alpha_alpha"))
    if frozen["value"] is None or free["value"] is None:
        return None
    numbers = f"{interval_percent(frozen)} % with a free one, two free ones {interval_percent(free)} %"
    if frozen["high"] is None or free["low"] is None:
        return "not ruled out", numbers
    if frozen["high"] < free["low"]:
        return "not happened", numbers
    return "happened" if frozen["low"] > free["high"] else "not ruled out", numbers


def _wide(found: dict) -> Outcome | None:
    """By the widest interval of the first table's agreements, and how far these lie apart."""
    columns = [found[column]["agreement"] for column in HEADS]
    values = [one["value"] for one in columns if one["value"] is not None]
    widest = max((one["high"] - one["low"] for one in columns if one["low"] is not None), default=0.0)
    if not widest or min(values) == max(values):
        return None
    low, high = min(values), max(values)
    numbers = f"between {low:.0f} and {high:.0f}, the widest interval {widest:.0f} from end to end"
    return "happened" if widest >= high - low else "not happened", numbers
