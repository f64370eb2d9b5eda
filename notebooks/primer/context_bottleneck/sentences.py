"""The chapter on the bottleneck in words and a table made from its numbers."""

import math
from typing import TYPE_CHECKING

from companion.book.intervals import above, capital, listed, side, unless_told
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.primer.context_bottleneck.drawing import LINKS

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
                f"* **{capital(LINKS[link][0])}, width {width}.** Of the {_a_word(result):.2f} bits of a "
                f"word, {interval_text(found['shortest']['bits_of_word'])} arrive in the shortest quarter of "
                f"the lengths and {interval_text(found['longest']['bits_of_word'])} in the longest. The most "
                f"that arrives of any sentence is {_bits(found['capacity'])} bits. Over the longer half of "
                f"the lengths the bits of a word go with length to the power of "
                f"{interval_range(found['slope'])}.{_of_each(found['of_each'])}"
            )
    return "\n".join(lines) or "Nothing of this has been run yet."


def _of_each(each: dict[str, list]) -> str:
    """Network by network, where there are several: one of three can make an interval of any width."""
    if len(each["capacity"]) < 2:
        return ""
    bits = listed([f"{bits:.0f}" for bits in each["capacity"]])
    slopes = listed([interval_range({"value": own, "low": None, "high": None}) for own in each["slope"]])
    return f" Network by network the most is {bits} bits, the power {slopes}."


def wider_sentence(result: Result) -> str:
    """What a wider vector adds to the most that arrives."""
    narrow, wide = min(result.config["width"]), max(result.config["width"])
    parts = [
        f"{LINKS[link][0]}, {interval_range(found)} bits{unless_told(found)}"
        for link, found in result.values["wider"].items()
        if found["value"] is not None
    ]
    if not parts:
        return "One width alone was run."
    grows = f"From width {narrow} to width {wide} the most that arrives grows by: {'; '.join(parts)}."
    return f"{grows} {_longest_by_width(result)}".strip()


def _longest_by_width(result: Result) -> str:
    """Whether more width goes on to help attention in the longest sentences."""
    right = {
        width: found["longest"]["exact_match"]
        for link, width, found in _kinds(result)
        if link == "attention" and found["longest"]["exact_match"]["value"] is not None
    }
    if len(right) < 2:
        return ""
    each = listed([f"{interval_text(found)} (width {width})" for width, found in right.items()])
    widest = right.pop(max(right))
    better = [width for width, found in right.items() if above(widest, found)]
    worse = [width for width, found in right.items() if above(found, widest)]
    told = [
        *([f"the widest is better than {listed([f'width {width}' for width in better])}"] if better else []),
        *([f"the widest is worse than {listed([f'width {width}' for width in worse])}"] if worse else []),
    ]
    end = " and ".join(told) or "the widest cannot be told from any other"
    return f"With attention, {each} of the sentences in the longest quarter are without a fault: {end}."


def slopes_sentence(result: Result) -> str:
    """In how many kinds of one vector the bits of a word fall with length for certain."""
    found = {(link, width): own["slope"] for link, width, own in _kinds(result) if link != "attention"}
    if not found:
        return ""
    clear = [name for name, slope in found.items() if side(slope) == "below"]
    unsure = [f"{LINKS[link][0]}, width {width}" for link, width in found if (link, width) not in clear]
    text = (
        f"Of {len(found)} kinds of one vector, {len(clear)} have a slope whose interval is below 0"
        + (f"; not so: {'; '.join(unsure)}" if unsure else "")
        + "."
    )
    return f"{text} The scorecard judges the widest vector at the start alone."


def judged_sentence(result: Result) -> str:
    """How many sentences a point of the curves is made from."""
    config = result.config
    lengths = config["longest"] - config["shortest"] + 1
    return (
        f"The {config['judged']:,} held-out sentences have {lengths} lengths, so about "
        f"{config['judged'] / lengths:.0f} judge each."
    )


def read_sentences(result: Result) -> str:
    """Which words a probe reads off the widest vector at the longest probed length; how low a bound it is."""
    length = max(result.config["probed"])
    lines = [
        f"* **{capital(LINKS[link][0])}, {length} words.** The probe reads "
        f"{interval_range(found['first'])} bits of the first word, {interval_range(found['last'])} of the "
        f"last and {interval_range(found['middle'])} of one in the middle half; "
        f"{_bits(found['together'])} bits together. {_ends(found)} {_bound(result, found)}"
        for link, found in result.values["read"].items()
    ]
    return "\n".join(lines) or "No vector was probed."


def _ends(found: dict) -> str:
    """Whether the ends of a sentence are kept better than its middle."""
    said = {
        "above": "more is read of {} than of one in the middle",
        "below": "less is read of {} than of one in the middle",
        "open": "whether more is read of {} than of one in the middle cannot be told",
    }
    parts = [
        said[side(found[f"{end}_over_middle"])].format(f"the {end} word")
        + f" ({interval_range(found[f'{end}_over_middle'])} bits)"
        for end in ("first", "last")
    ]
    text = "; ".join(parts)
    return f"{capital(text)}."


def _bound(result: Result, found: dict) -> str:
    """How far the bound may be from what is kept: with fewer samples to fit on, and beside the decoder."""
    samples, more, decoder = result.config["samples"], found["more"], found["decoder_over_probe"]
    parts = []
    if more["value"] is not None:
        end = {
            "above": "so this is a lower bound that still more sentences would raise",
            "below": "so more sentences do not raise this bound",
            "open": "so whether more sentences would raise this bound cannot be told",
        }
        parts.append(
            f"Together they are {interval_range(more)} bits more than with half of the {samples:,} sentences "
            f"to fit the probe on, {end[side(more)]}."
        )
    if decoder["value"] is not None:
        end = {
            "above": "which unpacks what the probe does not find",
            "below": "which uses less than the probe finds",
            "open": "too uncertain to say which of them finds more",
        }
        parts.append(
            f"What reaches the decoder is {interval_range(decoder)} bits more, {end[side(decoder)]}."
        )
    return " ".join(parts)


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
