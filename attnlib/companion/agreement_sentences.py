"""The chapter on agreement in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.claims import load_papers
from attnlib.companion.printed import published_table
from attnlib.companion.project import find_root
from attnlib.companion.verify import verify
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import DATA_NAMES, data_of

if TYPE_CHECKING:
    import pandas as pd

HEADS = {
    "alpha_beta_uf": "𝒜(α, βᵘᶠ)",
    "beta_uf_beta_px": "𝒜(βᵘᶠ, βᵖˣ)",
    "delta_beta_uf": "𝒜(Δ, βᵘᶠ)",
    "alpha_beta": "𝒜(α, β)",
}


def agreement_table(result: Result, *, part: str = "validation", quality: str = "accuracy") -> "pd.DataFrame":
    """A row a data set: the columns of Table 2 with the half widths of their intervals, in percent."""
    import pandas as pd

    rows = {}
    for name in data_of(result):
        found = result.values[name].get(part, {}).get(quality)
        if found:
            row = {head: interval_percent(found[column]["agreement"]) for column, head in HEADS.items()}
            row["chance"] = interval_percent(found["chance"])
            for column in ("alpha_beta_uf", "alpha_beta"):
                star = "*" if (found[column]["agreement_starred"]["value"] or 0) > 0.5 else ""
                row[HEADS[column].replace("𝒜", "ξ")] = interval_percent(found[column]["agreement_xi"]) + star
            rows[DATA_NAMES[name]] = row | {"ξ*": interval_percent(found["final"])}
    return pd.DataFrame.from_dict(rows, orient="index")


def choice_table(result: Result) -> "pd.DataFrame":
    """What the paper's choice of checkpoint adds to the agreement, and how far it rises and falls."""
    import pandas as pd

    rows = {}
    for name in data_of(result):
        found = result.values[name]["validation"]["accuracy"]["alpha_beta_uf"]
        rows[DATA_NAMES[name]] = {
            "chosen on one half, read on the other": interval_percent(found["agreement"]),
            "largest of all checkpoints": interval_percent(found["agreement_optimistic"]),
            "above the first checkpoint": interval_percent(found["rises"]),
            "above the last checkpoint": interval_percent(found["falls"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def frozen_table(result: Result) -> "pd.DataFrame":
    """Attention trained alone and attention of another seed, beside the probe at uniform attention."""
    import pandas as pd

    rows = {}
    for name in data_of(result):
        found = result.values[name]["validation"]["accuracy"]
        if found["alpha_alpha_frozen"]["agreement"]["n"]:
            rows[DATA_NAMES[name]] = {
                "𝒜(α, αᶠʳ)": interval_percent(found["alpha_alpha_frozen"]["agreement"]),
                "𝒜(α, βᵘᶠ)": interval_percent(found["alpha_beta_uf"]["agreement"]),
                "𝒜(α, α of another seed)": interval_percent(found["alpha_alpha"]["agreement"]),
                "τ(α, α of another seed)": interval_percent(found["alpha_alpha"]["kendall"]),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def weakest_sentence(result: Result) -> str:
    """Where each column stands least above chance."""
    parts = []
    for column, head in HEADS.items():
        found = result.values["weakest"][column]
        if found["above_chance"]["n"]:
            name, above = DATA_NAMES[found["data"]], interval_percent(found["above_chance"])
            parts.append(f"{head} on {name}, {above} above it")
    return "Nearest to chance come " + "; ".join(parts) + "."


def printed_tables(result: Result, *tables: str) -> str:
    """Published tables as Markdown, ours below each number that was judged; none beside a reader's data."""
    if "own" in result.values:
        return "These are your own data; the paper prints nothing of them."
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    rows = [row for row in verify(find_root(), experiment="agreement") if row.claim.number]
    return "\n".join(published_table(paper.tables, name, rows) for name in tables)


def printed_agreement(table: str = "5") -> dict[tuple[str, str], float]:
    """What a table has of the columns of Table 2, by our name of the data set and column."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found = {}
    for claim in paper.claims:
        if claim.number and claim.published.reference.table == table:
            data, *_, column, measure = claim.keys[0].split(".")
            if measure == "agreement_optimistic":
                found[data, column] = claim.published.value
    return found


def interval_percent(interval: dict) -> str:
    """``53 ± 2``; a dash where there is no number."""
    if interval["value"] is None:
        return "–"
    text = f"{interval['value']:.0f}".replace("-0", "0")
    if interval["low"] is not None:
        text += f" ± {(interval['high'] - interval['low']) / 2:.0f}"
    return text.replace("-", "−")
