"""The chapter on where attention rests in words and tables made from its numbers."""

from statistics import median
from typing import TYPE_CHECKING

from companion.book.intervals import listed
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.learn.resting_attention.drawing import POSITION_NAMES, class_name
from notebooks.shared.agreement_drawing import data_name

if TYPE_CHECKING:
    import pandas as pd

PLACES = {"begin": "the begin mark", "end": "the end mark", "words": "a word", "nowhere": "none of these"}


def resting_table(result: Result) -> "pd.DataFrame":
    """A row a data set and label: where attention is largest, and what the marks say alone."""
    import pandas as pd

    rows = {}
    for name, found in result.values.items():
        for label, of_label in found["labels"].items():
            rows[f"{data_name(name)}, {class_name(name, label)}"] = {
                "n": of_label["begin"]["n"],
                "at the begin mark": interval_text(of_label["begin"], digits=0),
                "at the end mark": interval_text(of_label["end"], digits=0),
                "at a word": interval_text(of_label["words"], digits=0),
                "weight on both marks": _both_marks(of_label),
                "begin mark right": interval_text(of_label["begin_right"], digits=0),
                "end mark right": interval_text(of_label["end_right"], digits=0),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def apart_table(result: Result) -> "pd.DataFrame":
    """Two rows a data set and label: agreement of two seeds over all positions, and among the words alone."""
    import pandas as pd

    rows = {}
    for name, found in result.values.items():
        for label in ("both", *found["labels"]) if found["pairs"] else ():
            what = "all texts" if label == "both" else class_name(name, label)
            for positions, words in POSITION_NAMES.items():
                cell = found["pairs"][positions][label]
                rows[f"{data_name(name)}, {what}", words] = {
                    "agreement": _percent(cell),
                    "single pairs": _ends(cell),
                    "their standard deviation": _spread(cell),
                    "chance": interval_text(cell["chance"], digits=0),
                }
    return pd.DataFrame.from_dict(rows, orient="index") if rows else pd.DataFrame()


def networks_caption(result: Result) -> str:
    """How many networks each data set has, for captions: ``n, networks: 12 on SMS; 4 on SST``."""
    counts = [
        f"{sum(found['resting'].values())} on {data_name(name)}" for name, found in result.values.items()
    ]
    return f"n, networks: {'; '.join(counts)}" if counts else "no networks yet"


def resting_sentences(result: Result) -> str:
    """Where the networks of each data set rest in texts of the commoner label, and how pairs compare."""
    return "\n".join(f"* {_sentence(name, found)}" for name, found in result.values.items())


def outcome_sentences(result: Result) -> str:
    """Beside what would change our mind: pairs on one mark or on two, and what marks rested on say."""
    lines = [
        line
        for name, found in result.values.items()
        for line in (*_parted(name, found["by_mark"]), *_defaults(name, found))
    ]
    return "\n".join(f"* {line}" for line in lines or ["No network rests on a mark."])


def _parted(name: str, by_mark: dict) -> list[str]:
    if set(by_mark) != {"same", "different"}:
        return []
    cells = {
        positions: [
            f"{cell['mean']:.0f} % ({_ends(cell)})"
            for cell in (by_mark[marks][positions] for marks in ("same", "different"))
        ]
        for positions in POSITION_NAMES
    }
    one, two = (by_mark[marks]["all"]["n"] for marks in ("same", "different"))
    return [
        f"{data_name(name)}: pairs that rest on one mark ({one}) agree in {cells['all'][0]} of the texts, "
        f"pairs that rest on two ({two}) in {cells['all'][1]}; among the words alone in "
        f"{cells['words'][0]} and {cells['words'][1]}."
    ]


def _defaults(name: str, found: dict) -> list[str]:
    own = found["own_mark"]
    if not own["n"]:
        return []
    common, n = class_name(name, found["common"]), own["n"]
    parts = [
        f"{_often(list(right.values()))} {'right ' if place == 0 else ''}on {class_name(name, label)} "
        f"({_middle(list(right.values()), first=place == 0)})"
        for place, (label, right) in enumerate(own["right"].items())
    ]
    who = "the network" if n == 1 else f"the median of {n} networks"
    return [
        f"{data_name(name)}: with all attention on the mark that it rests on, {who} is {listed(parts)}. At "
        f"{own['default'] or 'none'} of {n} the mark says {common} in more than half of the texts of either "
        "label."
    ]


def _often(shares: list[float]) -> str:
    """How often the median network is right, in words."""
    middle = median(shares)
    if middle in (0, 50, 100):
        return {0: "never", 50: "as often as not", 100: "always"}[middle]
    if not 5 < middle < 95:
        return "nearly always" if middle > 50 else "nearly never"
    return "more often than not" if middle > 50 else "less often than not"


def _middle(shares: list[float], *, first: bool) -> str:
    """The median, and the lowest and highest where there are several."""
    text = f"{_exact(median(shares))} %"
    if len(shares) == 1:
        return text
    ends = "each" if min(shares) == max(shares) else f"{_exact(min(shares))} to {_exact(max(shares))}"
    return f"{text}, {'single networks ' if first and ends != 'each' else ''}{ends}"


def _exact(percent: float) -> str:
    """Without decimals, but for what would become 0 or 100 and is not."""
    return f"{percent:.0f}" if percent in (0, 100) or 0.5 <= percent < 99.5 else f"{percent:.1f}"


def _sentence(name: str, found: dict) -> str:
    counts = [f"{count} to {PLACES[place]}" for place, count in found["resting"].items() if count]
    text = (
        f"**{data_name(name)}.** {sum(found['resting'].values())} networks, by what they attend to most in "
        f"more than half of the texts that are {class_name(name, found['common'])}, the commoner label: "
        f"{listed(counts)}."
    )
    if not found["pairs"]:
        return text
    everywhere, words = (_agreeing(found["pairs"][positions]["both"]) for positions in POSITION_NAMES)
    chance = found["pairs"]["words"]["both"]["chance"]["value"]
    return (
        f"{text} Two seeds agree in {everywhere}; among the words alone in {words}, where chance has "
        f"{chance:.0f} %."
    )


def _agreeing(cell: dict) -> str:
    spread = f", standard deviation {_spread(cell)}" if cell["spread"]["value"] is not None else ""
    return f"{_percent(cell)} % of all texts ({_ends(cell)}{spread})"


def _spread(cell: dict) -> str:
    """``31 [20, 46]``, for its interval is not even on both sides; a dash of fewer than three networks."""
    return interval_range(cell["spread"], digits=0)


def _both_marks(of_label: dict) -> str:
    """The mean weight on the two marks; each has its interval in the result."""
    return f"{of_label['begin_weight']['value'] + of_label['end_weight']['value']:.0f}"


def _percent(cell: dict) -> str:
    return interval_text(cell["agreement"], digits=0)


def _ends(cell: dict) -> str:
    return f"{cell['lowest']:.0f} to {cell['highest']:.0f}"
