"""The chapter on order words in words made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.order import kinds_of
from attnlib.plotting.order_words import ROUTE_BARS, SWAP_NAMES, swaps_of
from attnlib.plotting.style import task_name

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
    most = max(known, key=lambda name: known[name]["value"])
    carried = f"most is carried by {ROUTE_NAMES[most]} ({interval_text(known[most])})"
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
            parts.append(
                f"{SWAP_NAMES[swap]}: {interval_text(rows['none']['similarity'])} without a change, "
                f"{interval_text(rows['input']['similarity'])} with χ swapped, "
                f"{interval_text(rows['both']['similarity'])} with both mean effects"
            )
        lines.append(f"* {task_name(task)}, {kind}. {'; '.join(parts)}.")
    return "\n".join(lines)


def swap_table(result: Result) -> "pd.DataFrame":
    """A row for each task, network and kind of swap; a dash where a number is undefined or not asked."""
    import pandas as pd

    rows = {}
    for task, kind, found in kinds_of(result):
        for swap in swaps_of(result, task, ("order", "count", "content")):
            own = found[swap]
            routes = own.get("routes", {}).get("fork", {})
            rows[f"{task_name(task)}, {kind}, {SWAP_NAMES[swap]}"] = {
                "partner right": interval_text(own["exact"]["second"]),
                "rows moved": interval_text(own["change"]["own"]["flips"]),
                "fork moved": interval_text(own["change"]["fork"]["flips"]),
                "χ routes": interval_text(routes["input"]) if routes else "–",
                "memory routes": interval_text(routes["context"]) if routes else "–",
                "gain of χ": interval_text(own["predictions"]["changed"]["input"]["gain"]),
            }
    return pd.DataFrame.from_dict(rows, orient="index")
