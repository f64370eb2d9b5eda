"""Table 9 with our numbers in it."""

import pandas as pd

from companion.results.result import Result
from notebooks.learn.dataset_sizes.experiment import TITLES, printed
from notebooks.shared.data_names import data_name

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
            name = f"{data_name(row['data'])}, {WAYS[row['reading']]}"
            rows.setdefault(name, {}).setdefault(HEADINGS[row["what"] != "texts"], []).append(_cell(row))
    for data in TITLES:
        if data.startswith("news") and "published" not in result.values.get(data, {}):
            texts, medians = (getattr(printed(data), f"{part}_{what}") for what in ("texts", "median"))
            cells = ([f"cannot be run: data (printed {texts:,})"], [f"(printed {m})" for m in medians])
            rows[data_name(data)] = dict(zip(HEADINGS, cells, strict=True))
    joined = {name: [" / ".join(row[heading]) for heading in HEADINGS] for name, row in rows.items()}
    return pd.DataFrame.from_dict(joined, orient="index", columns=HEADINGS)


def _cell(row: dict) -> str:
    found, told = number(row["found"]), number(row["printed"])
    if row["printed"] is None:
        return found
    if not row["compared"]:
        part = row["what"] == "texts" and row["found"] < row["printed"]
        return f"{found} of {told}" if part else f"{found} (part; printed {told})"
    return f"{found} ✓" if row["equal"] else f"{found} (printed {told})"


def number(value: float | None) -> str:
    """``25,000``; halves keep their decimal; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
