"""Table 9 with our numbers in it."""

import pandas as pd

from companion.results.result import Result
from notebooks.learn.dataset_sizes.experiment import PRINTED

SET_NAMES = {
    "imdb": "IMDB",
    "ag_news": "AG News",
    "twenty_newsgroups": "20 NG",
    "sst": "SST, labels from 0",
    "sst_as_text": "SST, labels from 1",
    "amazon": "Amazon",
    "yelp": "Yelp",
    "sms_spam": "SMS",
    "iwslt14_de_en": "IWSLT14 De–En",
    "multi30k_de_en": "Multi30k De–En",
    "multi30k_en_de": "Multi30k En–De",
    "news_en_nl": "News En–Nl",
    "news_en_pt": "News En–Pt",
    "news_it_pt": "News It–Pt",
    "known_polarity": "made by rule, labelled",
    "known_lexicon": "made by rule, pairs",
}
WAYS = {"published": "as published", "cleaned": "cleaned"}
HEADINGS = ("texts", "median length")


def sizes_table(result: Result, part: str) -> pd.DataFrame:
    """A row for each set and reading of one part: texts, and median length (source / target of pairs).

    A number that is equal to the printed one has ✓; another one has the printed one with it; what rests on
    a part of the data says so. News sets that were not counted close the table, with what is printed alone.
    """
    rows: dict[str, dict[str, list[str]]] = {}
    for row in result.tables["sizes"]:
        if row["part"] == part:
            name = f"{SET_NAMES.get(row['data'], row['data'])}, {WAYS[row['reading']]}"
            rows.setdefault(name, {}).setdefault(HEADINGS[row["what"] != "texts"], []).append(_cell(row))
    for printed in PRINTED:
        ours = printed.title.lower().replace(" ", "_").replace("-", "_")  # news_en_nl
        if printed.title.startswith("News") and "published" not in result.values.get(ours, {}):
            texts, medians = (getattr(printed, f"{part}_{what}") for what in ("texts", "median"))
            missing = f"cannot be run: data (printed {texts:,})"
            cells = [missing], [f"(printed {median})" for median in medians]
            rows[printed.title.replace("-", "–")] = dict(zip(HEADINGS, cells, strict=True))
    joined = {name: [" / ".join(row[heading]) for heading in HEADINGS] for name, row in rows.items()}
    return pd.DataFrame.from_dict(joined, orient="index", columns=HEADINGS)


def _cell(row: dict) -> str:
    found, printed = number(row["found"]), number(row["printed"])
    if row["printed"] is None:
        return found
    if not row["compared"]:
        part = row["what"] == "texts" and row["found"] < row["printed"]
        return f"{found} of {printed}" if part else f"{found} (part; printed {printed})"
    return f"{found} ✓" if row["equal"] else f"{found} (printed {printed})"


def number(value: float | None) -> str:
    """``25,000``; halves keep their decimal; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
