"""The chapter on the data sets in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from companion.results.result import Result
from notebooks.learn.dataset_sizes.drawing import SET_NAMES
from notebooks.learn.dataset_sizes.experiment import PRINTED

if TYPE_CHECKING:
    import pandas as pd

READINGS = {"published": "as published", "cleaned": "cleaned"}
HEADINGS = ("texts", "median length")
WHAT = {
    "texts": "texts",
    "median": "median length",
    "source_median": "median length of sources",
    "target_median": "median length of targets",
}
OTHER_READINGS = ("sst_as_text", "multi30k_en_de")  # of a printed name, whose first reading is counted
# Parts drawn here at random from more texts: their number is ours to choose, their median the draw's.
DRAWN = {("imdb", "validation"), ("sms_spam", "train"), ("sms_spam", "validation")}


def sizes_table(result: Result, part: str) -> "pd.DataFrame":
    """A row for each set and reading of one part: texts, and median length (source / target of pairs).

    A number that is equal to the printed one has ✓; another one has the printed one beside it; what rests on
    a part of the data says so. News sets that were not counted close the table, with what is printed alone.
    """
    import pandas as pd

    rows: dict[str, dict[str, list[str]]] = {}
    for row in result.tables["sizes"]:
        if row["part"] == part:
            heading = HEADINGS[row["what"] != "texts"]
            rows.setdefault(_named(row), {}).setdefault(heading, []).append(_cell(row))
    for printed in PRINTED:
        if printed.title.startswith("News") and not _counted(result, printed.title):
            texts, medians = (getattr(printed, f"{part}_{what}") for what in ("texts", "median"))
            rows[printed.title.replace("-", "–")] = {
                HEADINGS[0]: [f"cannot be run: data (printed {texts:,})"],
                HEADINGS[1]: [f"(printed {median})" for median in medians],
            }
    joined = {
        name: {heading: " / ".join(cells) for heading, cells in row.items()} for name, row in rows.items()
    }
    return pd.DataFrame.from_dict(joined, orient="index", columns=HEADINGS)


def words_table(result: Result) -> "pd.DataFrame":
    """Vocabularies: words seen three times, all words, and what the paper prints or its parameters give."""
    import pandas as pd

    headings = {
        "kept": "seen three times",
        "printed": "printed",
        "by_parameters": "from the parameters",
        "different": "all words of training",
    }
    return pd.DataFrame.from_dict(
        {
            _named(row): {heading: _number(row[name]) for name, heading in headings.items()}
            for row in result.tables["words"]
            if row["different"] is not None
        },
        orient="index",
    )


def dropped_table(result: Result) -> "pd.DataFrame":
    """What the preparation left out, one line a reason, the number in either reading."""
    import pandas as pd

    pd.set_option("display.max_colwidth", None)  # else the end of a long reason becomes dots
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in result.tables["dropped"]:
        key = (SET_NAMES.get(row["data"], row["data"]), row["part"], f"{row['what']}: {row['why']}")
        rows.setdefault(key, {})[READINGS[row["reading"]]] = f"{row['count']:,}"
    records = [
        {"data": data, "part": part, "what and why": why} | dict.fromkeys(READINGS.values(), "") | counts
        for (data, part, why), counts in rows.items()
    ]
    return pd.DataFrame(records).set_index("data") if records else pd.DataFrame()


def sizes_sentence(result: Result) -> str:
    """How many of the printed counts and medians come out in the first reading, and which do not.

    Numbers of texts that are ours to choose are left out; medians of our own draws stand apart.
    """
    sizes = result.tables["sizes"]
    if not any(row["printed"] is not None for row in sizes):
        return "No set that the paper used is on this machine; shown are the sets made by rule."
    rows = [
        row
        for row in sizes
        if row["compared"] and row["reading"] == "published" and row["data"] not in OTHER_READINGS
    ]
    drawn = [row for row in rows if (row["data"], row["part"]) in DRAWN]
    whole = [row for row in rows if row not in drawn]
    other = [row for row in whole if not row["equal"]]
    text = (
        "No printed count or median is counted here: what is shown rests on a part of the data, on our own "
        "draw, or on another reading."
    )
    if whole:
        text = (
            f"Of {len(whole)} printed counts and medians that rest on data we have whole, "
            f"{len(whole) - len(other)} come out exactly; a number of texts that is ours to choose is not "
            "among them."
        )
    if other:
        text += f" Different: {'; '.join(map(_differing, other))}."
    if medians := [row for row in drawn if row["what"] != "texts"]:
        text += f" Of our own draws, so no test: {'; '.join(map(_differing, medians))}."
    return text


def whole_test_sentence(result: Result) -> str:
    """The median of a test part as a whole, where the paper and we judge on some of it."""
    sentences = []
    for name, found in result.values.items():
        if {"whole_test", "published"} <= found.keys():
            row = next(
                row
                for row in result.tables["sizes"]
                if (row["data"], row["reading"], row["part"], row["what"])
                == (name, "published", "validation", "median")
            )
            whole = found["whole_test"]
            sentences.append(
                f"Which texts of the test part of {SET_NAMES[name]} the paper drew is not known: over all "
                f"{whole['texts']:,} of them the median is {_number(whole['median'])}, over those drawn here "
                f"{_number(row['found'])}; {_number(row['printed'])} is printed."
            )
    return " ".join(sentences)


def _differing(row: dict) -> str:
    return (
        f"{SET_NAMES[row['data']]}, {WHAT[row['what']]} "
        f"{'trained on' if row['part'] == 'train' else 'judged on'}, "
        f"{_number(row['found'])} where {_number(row['printed'])} is printed"
    )


def _named(row: dict) -> str:
    return f"{SET_NAMES.get(row['data'], row['data'])}, {READINGS[row['reading']]}"


def _cell(row: dict) -> str:
    found, printed = _number(row["found"]), _number(row["printed"])
    if row["printed"] is None:
        return found
    if not row["compared"]:
        part = row["what"] == "texts" and row["found"] < row["printed"]
        return f"{found} of {printed}" if part else f"{found} (part; printed {printed})"
    return f"{found} ✓" if row["equal"] else f"{found} (printed {printed})"


def _number(value: float | None) -> str:
    """``25,000``; halves keep their decimal; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _counted(result: Result, title: str) -> bool:
    """Whether the set with a title such as ``News En-Nl`` is in the result, as ``news_en_nl``."""
    found = result.values.get(title.lower().replace(" ", "_").replace("-", "_"), {})
    return "published" in found
