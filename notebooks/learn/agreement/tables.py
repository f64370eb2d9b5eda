"""How the page writes its tables: rows by data set, in Markdown."""

from collections.abc import Iterable, Iterator

import pandas as pd
from IPython.display import Markdown

from companion.book.numbers import written
from companion.claims.verify import ClaimVerdict
from companion.results.result import Result
from notebooks.learn.agreement.instrument import PARTS
from notebooks.shared.marks import Estimate
from notebooks.shared.style import data_name, data_of

HEADS = {
    "alpha_beta_uf": "𝒜(α, β<sup>uf</sup>)",
    "beta_uf_beta_px": "𝒜(β<sup>uf</sup>, β<sup>px</sup>)",
    "delta_beta_uf": "𝒜(Δ, β<sup>uf</sup>)",
    "alpha_beta": "𝒜(α, β)",
}
LONG_REVIEWS = ("amazon", "imdb", "yelp")
LATE = 500  # updates
COMPARED = {
    ("alpha_beta_uf", "agreement"): HEADS["alpha_beta_uf"],
    ("alpha_beta", "agreement"): HEADS["alpha_beta"],
    ("delta_beta_uf", "agreement"): HEADS["delta_beta_uf"],
    ("beta_uf_beta_px", "agreement"): HEADS["beta_uf_beta_px"],
    ("alpha_beta_uf", "kendall"): "τ(α, β<sup>uf</sup>)",
}


def of_sets(
    result: Result, part: str = "validation", quality: str = "accuracy"
) -> Iterator[tuple[str, dict]]:
    """Yield every data set that has numbers of the part and quality, by the name it is shown under."""
    for name in data_of(result):
        for spelled in PARTS[part]:
            columns = result.values[name].get(spelled, {}).get(quality)
            if columns:
                yield data_name(name), columns


def lacking_sets(result: Result) -> list[str]:
    """Names of data sets that were asked for and have no numbers; none where the data is the reader's own."""
    if "own" in result.values:
        return []
    asked = [*result.config.get("classification", []), *result.config.get("translation", [])]
    return [data_name(name) for name in asked if name not in data_of(result)]


def shown(table: pd.DataFrame, otherwise: str) -> Markdown:
    """Return a table in Markdown, or a sentence where it has no row."""
    return Markdown(as_markdown(table) if len(table) else otherwise)


def as_markdown(table: pd.DataFrame) -> str:
    """Write a table whose rows are named by data set, or by data set and more words.

    The name of a data set is in the first of its rows alone.
    """
    keys = [key if isinstance(key, tuple) else (key,) for key in table.index]
    heads = [*[" "] * len(keys[0]), *table.columns]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    before = None
    for (name, *words), cells in zip(keys, table.astype(str).to_numpy(), strict=True):
        first = "" if name == before else name
        lines.append(f"| {' | '.join([first, *words, *cells])} |")
        before = name
    return "\n".join(lines).replace("*", "\\*")


def long_reviews(result: Result, courses: pd.DataFrame, published: Iterable[ClaimVerdict]) -> pd.DataFrame:
    """Return a row for each quantity of Tables 3 and 5, and a column for each set of long reviews.

    Args:
        result: of the experiment.
        courses: agreement by pair of runs and checkpoint.
        published: numbers of the paper with what they are judged by.
    """
    names = [name for name in LONG_REVIEWS if name in data_of(result)]
    printed = {row.claim.keys[0]: row.claim.published.value for row in published}
    table: dict[str, dict[str, str]] = {}
    for name in names:
        for (column, measure), head in COMPARED.items():
            key = f"{name}.validation.accuracy.{column}.{measure}_optimistic"
            ours = result.values[name]["validation"]["accuracy"][column][f"{measure}_optimistic"]
            theirs = f"{printed[key]:.0f}" if key in printed else "–"
            table.setdefault(head, {})[data_name(name)] = f"{written(ours, ['±', '.0f'])}; {theirs}"
        late = courses[
            (courses["data"] == name) & (courses["part"] == "validation") & (courses["step"] >= LATE)
        ]
        lowest = late.loc[late["column"] == "alpha_beta_uf", "agreement"].min()
        table.setdefault(f"lowest {HEADS['alpha_beta_uf']}", {})[data_name(name)] = f"{lowest:.0f}"
    return pd.DataFrame.from_dict(table, orient="index")


def runs_behind(estimates: Iterable[Estimate]) -> str:
    """Return how many networks of a kind are behind a row's numbers, ``3``, or ``2–4`` where that differs."""
    counts = sorted({estimate["n"] for estimate in estimates if estimate["n"]})
    if not counts:
        return "–"
    fewest, most = counts[0], counts[-1]
    return str(fewest) if fewest == most else f"{fewest}–{most}"
