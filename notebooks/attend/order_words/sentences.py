"""The chapter on order words in words made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.plots.style import task_name
from companion.book.intervals import above, side
from companion.book.tables import interval_text
from companion.results.result import Result, kinds_of
from notebooks.attend.order_words.drawing import ROUTE_BARS, SWAP_NAMES, fewer, networks_of, swaps_of

if TYPE_CHECKING:
    import pandas as pd

ROUTE_NAMES = {
    "decoder_input": "the input component of the word that the decoder reads",
    "decoder_residual": "the decoder's residual",
    "encoder_input": "the input component of the swapped word",
    "encoder_residual": "the residual of the swapped word's own state",
    "encoder_context": "the residuals of the other words' encoder states",
}
FEW_FLIPS = 0.5  # below it most forks keep their largest weight where it was


def order_sentences(result: Result) -> str:
    """A sentence a kind of network and word of order: whether it flips, and by which route most."""
    lines = []
    for task, kind, found in kinds_of(result):
        for swap in swaps_of(result, task, ("order",)):
            lines.append(f"* {task_name(task)}, {kind}, {SWAP_NAMES[swap]}: {_route_sentence(found[swap])}")
    return "\n".join(lines)


def _route_sentence(found: dict) -> str:
    flips = found["change"]["fork"]["flips"]
    text = (
        f"the network gets {interval_text(found['exact']['first'])} of the sentences and "
        f"{interval_text(found['exact']['second'])} of their partners right, and the largest weight moves at "
        f"{interval_text(flips)} of the forks."
    )
    known = {name: found["routes"]["fork"][name] for name, _, _ in ROUTE_BARS}
    known = {name: interval for name, interval in known.items() if interval["value"] is not None}
    if not known:
        return text
    most, *others = sorted(known, key=lambda name: -known[name]["value"])
    if others and not above(known[most], known[others[0]]):
        named = " or ".join(
            f"{ROUTE_NAMES[name]} ({interval_text(known[name])})" for name in (most, others[0])
        )
        carried = f"which route carries most cannot be told: {named}"
    else:
        carried = f"most is carried by {ROUTE_NAMES[most]} ({interval_text(known[most])})"
    few = fewer(known[most], networks_of(found))
    carried += f" ({few})" if few else ""
    if flips["value"] is not None and flips["value"] < FEW_FLIPS:
        carried = f"though little moves, {carried}"
    return (
        f"{text} Of the change of scores there, {carried}; the two routes through memory, the decoder's "
        f"and that of other words' states, carry {interval_text(found['routes']['fork']['context'])}."
    )


def prediction_sentences(result: Result) -> str:
    """A sentence a kind of network: what swapping χ alone predicts of the rows that change."""
    lines = []
    for task, kind, found in kinds_of(result):
        parts = []
        for swap in swaps_of(result, task, ("order", "count")):
            rows = found[swap]["predictions"]["changed"]
            if rows["none"]["similarity"]["value"] is None:
                parts.append(f"{SWAP_NAMES[swap]}: no row changes")
                continue
            few = fewer(rows["none"]["similarity"], networks_of(found[swap]))
            parts.append(
                f"{SWAP_NAMES[swap]}{f' ({few})' if few else ''}: "
                f"{interval_text(rows['none']['similarity'])} without a change, "
                f"{interval_text(rows['input']['similarity'])} with χ swapped, "
                f"{interval_text(rows['both']['similarity'])} with both mean effects"
            )
        lines.append(f"* {task_name(task)}, {kind}. {'; '.join(parts)}.")
    return "\n".join(lines)


def swap_table(result: Result) -> "pd.DataFrame":
    """A row for each task, network and kind of swap; a dash where a number is undefined or not asked.

    Where fewer networks than the rest have a number, their count stands behind it.
    """
    import pandas as pd

    rows = {}
    for task, kind, found in kinds_of(result):
        for swap in swaps_of(result, task, ("order", "count", "content")):
            own = found[swap]
            routes = own.get("routes", {}).get("fork", {})
            networks = networks_of(own)
            rows[f"{task_name(task)}, {kind}, {SWAP_NAMES[swap]}"] = {
                "partner right": interval_text(own["exact"]["second"]),
                "rows moved": _counted(own["change"]["own"]["flips"], networks),
                "fork moved": _counted(own["change"]["fork"]["flips"], networks),
                "χ routes": _counted(routes["input"], networks) if routes else "–",
                "memory routes": _counted(routes["context"], networks) if routes else "–",
                "gain of χ": _counted(own["predictions"]["changed"]["input"]["gain"], networks),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def _counted(interval: dict, networks: int) -> str:
    few = fewer(interval, networks)
    return f"{interval_text(interval)} (n = {interval['n']})" if few else interval_text(interval)


def outcome_sentences(result: Result, kind: str = "AED") -> str:
    """Which of the outcomes that would change our mind have come about, one line each.

    Args:
        kind: the recurrent networks asked; those without recurrence have a line of their own.
    """
    lines = [_inputs(result, kind), _start(result, kind), _content(result, kind), _without_recurrence(result)]
    return "\n".join(f"* {line}" for line in lines if line)


def _asked(result: Result, kind: str, kinds: tuple[str, ...]) -> list[tuple[str, dict]]:
    """``(words and task, what was found)`` of every swap of some kinds in one kind of network."""
    return [
        (f"{SWAP_NAMES[swap]}, {task_name(task)}", found[swap])
        for task, label, found in kinds_of(result)
        if label == kind
        for swap in swaps_of(result, task, kinds)
    ]


def _named(entries: list[tuple[str, dict]]) -> str:
    return "; ".join(f"{name} ({interval_text(interval)})" for name, interval in entries)


def _inputs(result: Result, kind: str) -> str:
    """Whether input components carry the order: routes, predictions and the patch of the encoder's χ."""
    asked = _asked(result, kind, ("order",))
    if not asked:
        return ""
    routes = [(name, found["routes"]["fork"]["input"]) for name, found in asked]
    carried = [
        f"{words} for {_named(some)}"
        for at, words in (
            ("below", "less than half"),
            ("open", "a share not to be told from half"),
            ("above", "more than half"),
        )
        if (some := [(name, share) for name, share in routes if side(share, 0.5) == at])
    ]
    text = (
        f"**Input components, {kind}.** Of the change at the fork they carry {'. They carry '.join(carried)}."
    )
    rows = [(name, found["predictions"]["changed"]) for name, found in asked]
    behind = [name for name, row in rows if above(row["both"]["similarity"], row["input"]["similarity"])]
    text += (
        f" χ swapped predicts the moved rows worse than both mean effects do in {len(behind)} of "
        f"{len(rows)} cases."
    )
    patches = [
        (name, found["patches"]["fork"]["e_input"]["share"], found["patches"]["fork"]["e_residual"]["share"])
        for name, found in asked
    ]
    known = [entry for entry in patches if entry[1]["value"] is not None]
    if known:
        name, inputs, residual = max(known, key=lambda entry: entry[1]["value"])
        text += (
            f" The encoder's χ alone, taken from the other run, brings about {interval_text(inputs)} of the "
            f"flip at most ({name}), where its Δ alone brings about {interval_text(residual)}."
        )
    return text


def _start(result: Result, kind: str) -> str:
    """Whether the decoder's start carries the flip: of order, and of counts."""
    shares = {
        kinds: [
            (name, share)
            for name, found in _asked(result, kind, (kinds,))
            if (share := found["patches"]["fork"]["S"]["share"])["value"] is not None
        ]
        for kinds in ("order", "count")
    }
    if not shares["order"]:
        return ""
    name, most = max(shares["order"], key=lambda entry: entry[1]["value"])
    text = (
        f"**The decoder's start, {kind}.** Alone it brings about {interval_text(most)} of the flip at the "
        f"fork at most where words change places ({name})"
    )
    large = [entry for entry in shares["count"] if side(entry[1], 0.5) == "above"]
    if large and side(most, 0.5) == "below":
        return (
            f"{text}, but more than half where they come oftener: {_named(large)}. There the start keeps the "
            "count."
        )
    if shares["count"]:
        name, most = max(shares["count"], key=lambda entry: entry[1]["value"])
        return f"{text}, and {interval_text(most)} at most where they come oftener ({name})."
    return f"{text}."


def _content(result: Result, kind: str) -> str:
    """Rows moved by words of content, the most, against those moved by words of order, the fewest."""
    parts, reached = [], False
    for task, label, _ in kinds_of(result):
        if label != kind:
            continue
        moved = {
            kinds: [result.values[task][kind][swap]["change"]["own"]["flips"] for swap in swaps]
            for kinds in ("content", "order")
            if (swaps := swaps_of(result, task, (kinds,)))
        }
        if len(moved) < 2:
            continue
        content = max(moved["content"], key=lambda flips: flips["value"])
        order = min(moved["order"], key=lambda flips: flips["value"])
        reached = reached or not above(order, content)
        parts.append(f"{interval_text(content)} against {interval_text(order)} ({task_name(task)})")
    if not parts:
        return ""
    told = "In some task the two cannot be told apart." if reached else "In no task do they move as many."
    return (
        f"**Words of content, {kind}.** The most rows that one of them moves, against the fewest that a word "
        f"of order moves: {'; '.join(parts)}. {told}"
    )


def _without_recurrence(result: Result) -> str:
    """What χ swapped predicts in AO, and how well those networks do the task."""
    parts = []
    for name, found in _asked(result, "AO", ("order",)):
        if not name.startswith(SWAP_NAMES["modifier"]):
            continue
        gain, right = found["predictions"]["changed"]["input"]["gain"], found["exact"]["second"]
        if side(gain) == "above":
            parts.append(
                f"{name}, gain {interval_text(gain)}, by networks that get {interval_text(right)} of the "
                "partners right"
            )
    if not parts:
        return ""
    return (
        "**Without recurrence (AO)** χ swapped predicts moved rows better than no change does: "
        f"{'; '.join(parts)}."
    )
