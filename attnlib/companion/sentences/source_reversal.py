"""The chapter on reversed sources in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import above, capital, listed, side
from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.result import Result
from attnlib.experiments.source_reversal import ONE_LENGTH
from attnlib.plotting.source_reversal import KINDS, LOOKS, counted, kinds_of
from attnlib.plotting.style import task_name
from companion.claims import Estimate

if TYPE_CHECKING:
    import pandas as pd

CELLS = {"gru": "GRU", "lstm": "LSTM"}
ONE_VECTOR = ("initial", "every_step")
HALF = 0.5  # of a place or a step: the coarsest that still rounds to none
TRADES = {  # sides of 0 on which the first third and the last third are
    ("above", "below"): "That is the trade that the primer describes",
    ("above", "above"): "That is a gain for both, and no trade",
    ("above", "open"): "Whether the last words pay for what the first ones gain cannot be told",
    ("open", "below"): "Whether the first words gain what the last ones lose cannot be told",
    ("below", "above"): "That is a trade, but the other way round than the primer has it",
    ("open", "above"): "The last words gain, and that the first ones pay does not show: no such trade",
    ("open", "open"): "Whether there is a trade cannot be told",
}


def distance_table(result: Result) -> "pd.DataFrame":
    """A row a task: steps between linked words, both ways."""
    import pandas as pd

    rows = {}
    for task, found in counted(result).items():
        row: dict[str, object] = {"sentences": found["sentences"]}
        for order, (label, *_) in LOOKS.items():
            row |= {
                f"{label}, mean": f"{found[order]['mean']:.1f}",
                f"{label}, smallest": f"{found[order]['smallest']:.1f}",
                f"{label}, largest": f"{found[order]['largest']:.1f}",
            }
        rows[task_name(task)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def distance_sentences(result: Result) -> str:
    """Where a word and its translation keep their places, and what becomes of the average distance there."""
    groups: dict[bool | None, list[tuple[str, dict]]] = {True: [], None: [], False: []}
    for task, found in counted(result).items():
        groups[_within_half(found["offset"])].append((task_name(task), found))
    holds = {
        True: "To half a place it holds in",
        None: "Whether it holds to half a place cannot be told in",
        False: "It does not hold in",
    }
    lines = [
        f"* {text} {listed([_moved(*own) for own in groups[own]])}."
        for own, text in holds.items()
        if groups[own]
    ]
    at = {name: _within_half(found["change"]) for own in (True, None) for name, found in groups[own]}
    said = {
        True: "unchanged, to half a step, in",
        None: "not to be told from unchanged to half a step in",
        False: "changed all the same in",
    }
    parts = [
        f"{text} {listed([name for name in at if at[name] is own])}"
        for own, text in said.items()
        if own in at.values()
    ]
    if parts:
        lines.append(f"* Where it holds, or may, the average is {'; '.join(parts)}.")
    return "\n".join(lines) or "No distances were counted."


def _moved(name: str, found: dict) -> str:
    offset, change = interval_range(found["offset"]), interval_range(found["change"])
    return f"{name} (a translation stands {offset} places further on; the average changes by {change})"


def _within_half(moved: dict) -> bool | None:
    """Whether an interval is within half a step or place of none; None where only a part of it is."""
    low, high = (moved["value"] if moved[end] is None else moved[end] for end in ("low", "high"))
    if low >= -HALF and high <= HALF:
        return True
    return False if low > HALF or high < -HALF else None


def gain_table(result: Result) -> "pd.DataFrame":
    """A column a kind and cell: words right, read backwards less forwards, on the way and in the end."""
    import pandas as pd

    rows = {
        "speed": ("on the way", "all words"),
        "speed_first": ("on the way", "first third"),
        "speed_last": ("on the way", "last third"),
        "token_accuracy": ("in the end", "all words"),
        "first": ("in the end", "first third"),
        "last": ("in the end", "last third"),
        "exact_match": ("in the end", "sentences without a fault"),
        "long_first": ("longest sentences", "first third"),
        "long_last": ("longest sentences", "last third"),
    }
    columns = {
        f"{KINDS[kind]}, {CELLS[cell]}": [interval_text(found["gain"][name]) for name in rows]
        for kind in kinds_of(result)
        for cell in result.config["cell"]
        if "gain" in (found := result.values[kind].get(cell, {}))
    }
    return pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(rows.values()))


def counting_sentence(result: Result) -> str:
    """What reading backwards does to attention with lengths mixed, and with one length."""
    kinds = {"attention": "With sentences of several lengths", ONE_LENGTH: "with one length"}
    gains = {
        name: found["gain"]["speed"]
        for kind, name in kinds.items()
        if "gain" in (found := result.values.get(kind, {}).get("main", {}))
    }
    if len(gains) < len(kinds):
        return "This run lacks one of the two."
    parts = (f"{name} it is {_better_or_worse(gain)} ({_as_judged(gain)})" for name, gain in gains.items())
    told = {
        "above": "With one length there is no cost.",
        "below": "With one length the cost is smaller and has not vanished, so counting is not all of it.",
        "open": "With one length no cost is seen.",
    }
    several, one = gains.values()
    if side(one) == "below" and one["value"] <= several["value"]:
        told["below"] = "With one length the cost is as large, so it is not counting."
    return (
        f"{'; '.join(parts)}; words right averaged over the way, backwards less forwards. {told[side(one)]}"
    )


def trade_sentences(result: Result) -> str:
    """What the first and the last words of the longest sentences gain or lose, in networks of one vector."""
    lines = []
    for kind, gain in _gains_of_one_vector(result):
        both = gain["long_first"], gain["long_last"]
        told = TRADES.get(tuple(map(side, both)), "That is not the trade that the primer describes")
        first, last = (_as_judged(own) for own in both)
        lines.append(
            f"* **{capital(KINDS[kind])}**{_cell(result)}, sentences of "
            f"{result.values[kind]['main']['long_from']} words and more, in the end. Words right, "
            "backwards less forwards: "
            f"{first} in the first third, {last} in the last. {told}.{_at_one_distance(result.values[kind])}"
        )
    return "\n".join(lines) or "No network of one vector has been run in both orders."


def _at_one_distance(found: dict) -> str:
    """Whether words differ that are all equally far from their translations: those read forwards."""
    forward = found["main"]["forward"]
    first, last = forward["long_first"], forward["long_last"]
    if not above(first, last):
        return ""
    return (
        " Read forwards all words are equally far from their translations, and still "
        f"{interval_text(first)} are right in the first third and {interval_text(last)} in the last: "
        "distance is not all that counts."
    )


def _cell(result: Result) -> str:
    """Of which cell the numbers are, where several were run; the table has the others."""
    cells = result.config.get("cell", ())
    return f" ({CELLS[cells[0]]})" if len(cells) > 1 else ""


def _gains_of_one_vector(result: Result) -> list[tuple[str, dict]]:
    kinds = [kind for kind in kinds_of(result) if kind in ONE_VECTOR]
    return [(k, found["gain"]) for k in kinds if "gain" in (found := result.values[k]["main"])]


def falsifier_sentences(result: Result) -> str:
    """What would speak against the primer and against the page, and whether it has happened."""
    paid = [
        _both_gain(KINDS[kind], gain["long_first"], gain["long_last"])
        for kind, gain in _gains_of_one_vector(result)
    ]
    control = result.values.get(ONE_LENGTH, {}).get("main", {}).get("gain")
    lines = {
        "Networks of one vector whose **last** words in long sentences gain by reading backwards, as the "
        "**first** do: then it would be a gain, and not the trade that the primer has.": paid,
        "A gain from reading backwards with attention where all sentences have one length.": [
            _outcome(control["speed"])
        ]
        if control
        else [],
    }
    return "\n".join(f"* {' '.join([what, *outcomes])}" for what, outcomes in lines.items())


def _both_gain(name: str, first: dict, last: dict) -> str:
    """Whether both ends gain, which is no trade."""
    sides = {side(first), side(last)}
    if sides == {"above"}:
        told = "it has happened"
    elif "below" in sides:
        told = "it has not happened"
    else:
        told = "it cannot be told"
    return capital(f"{name}: {told} (first {_as_judged(first)}; last {_as_judged(last)}).")


def _outcome(gain: dict) -> str:
    """A gain is what speaks against."""
    happened = {"above": "it has happened", "below": "it has not happened", "open": "it cannot be told"}
    return capital(f"{happened[side(gain)]} ({_as_judged(gain)}).")


def _as_judged(interval: dict) -> str:
    """With the scorecard's digits, where a hair decides on which side of 0 an interval is."""
    return str(Estimate.of(interval, "gain"))


def _better_or_worse(gain: dict) -> str:
    if gain["low"] is None or gain["low"] <= 0 <= gain["high"]:
        return "not to be told from idle"
    return "worse" if gain["value"] < 0 else "better"


def gain_sentences(result: Result) -> str:
    """What reading backwards does for each kind of network."""
    lines = []
    for kind in kinds_of(result):
        found = result.values[kind]["main"]
        if "gain" not in found:
            continue
        gain = found["gain"]
        lines.append(
            f"* **{capital(KINDS[kind])}**{_cell(result)}. Averaged over the way, words right: "
            f"{interval_text(found['forward']['speed'])} read forwards, "
            f"{interval_text(found['reversed']['speed'])} read backwards; the difference, paired by seed: "
            f"{_as_judged(gain['speed'])}. It is {_as_judged(gain['speed_first'])} in the first "
            f"third of a sentence and {_as_judged(gain['speed_last'])} in the last."
        )
    return "\n".join(lines) or "Nothing of this has been run yet."
