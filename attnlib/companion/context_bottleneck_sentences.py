"""The chapter on the bottleneck in words and a table made from its numbers."""

import math
from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.context_bottleneck import LINKS

if TYPE_CHECKING:
    import pandas as pd


def bottleneck_table(result: Result) -> "pd.DataFrame":
    """A row a link and width: parameters, quality at both ends of the lengths, capacity and slope."""
    import pandas as pd

    rows = {}
    for link, width, found in _kinds(result):
        rows[f"{LINKS[link][0]}, width {width}"] = {
            "parameters": f"{found['parameters']:,}",
            "no fault, short": interval_text(found["shortest"]["exact_match"]),
            "no fault, long": interval_text(found["longest"]["exact_match"]),
            "bits of a word, short": interval_text(found["shortest"]["bits_of_word"]),
            "bits of a word, long": interval_text(found["longest"]["bits_of_word"]),
            "most bits of a sentence": _bits(found["capacity"]),
            "slope": interval_text(found["slope"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def bottleneck_sentences(result: Result) -> str:
    """What arrives of long sentences through one vector and through attention, at the largest width."""
    width = max(result.config["width"])
    lines = []
    for link, own, found in _kinds(result):
        if own == width:
            lines.append(
                f"* **{LINKS[link][0].capitalize()}, width {width}.** Of the {_a_word(result):.2f} bits of a "
                f"word, {interval_text(found['shortest']['bits_of_word'])} arrive in the shortest quarter of "
                f"the lengths and {interval_text(found['longest']['bits_of_word'])} in the longest. The most "
                f"that arrives of any sentence is {_bits(found['capacity'])} bits. Over the longer half of "
                f"the lengths the bits of a word go with length to the power of "
                f"{interval_range(found['slope'])}."
            )
    return "\n".join(lines) or "Nothing of this has been run yet."


def wider_sentence(result: Result) -> str:
    """What a wider vector adds to the most that arrives."""
    narrow, wide = min(result.config["width"]), max(result.config["width"])
    parts = [
        f"{LINKS[link][0]}, {interval_range(found)} bits"
        for link, found in result.values["wider"].items()
        if found["value"] is not None
    ]
    if not parts:
        return "One width alone was run."
    return f"From width {narrow} to width {wide} the most that arrives grows by: {'; '.join(parts)}."


def even_sentence(result: Result) -> str:
    """Whether the words share the vector evenly, at the longest probed length and the largest width."""
    rows = [row for row in result.tables["probe"] if row["width"] == max(result.config["width"])]
    if not rows:
        return "No vector was probed."
    length = max(row["length"] for row in rows)
    lines = []
    for link in dict.fromkeys(row["link"] for row in rows):
        bits = [row["value"] for row in rows if (row["link"], row["length"]) == (link, length)]
        middle = bits[length // 4 : length - length // 4]
        lines.append(
            f"* **{LINKS[link][0].capitalize()}, {length} words.** The probe reads {bits[0]:.2f} bits of the "
            f"first word, {bits[-1]:.2f} of the last, and {sum(middle) / len(middle):.2f} of those in the "
            f"middle half on average; {sum(bits):.0f} bits together."
        )
    return "\n".join(lines)


def _kinds(result: Result) -> list[tuple[str, int, dict]]:
    return [
        (link, width, result.values[link][f"width_{width}"])
        for link in LINKS
        if link in result.values
        for width in result.config["width"]
        if f"width_{width}" in result.values[link]
    ]


def _a_word(result: Result) -> float:
    return math.log2(result.config["words"])


def _bits(interval: dict) -> str:
    if interval["low"] is None:
        return f"{interval['value']:.0f}"
    return f"{interval['value']:.0f} ± {interval['high'] - interval['value']:.0f}"
