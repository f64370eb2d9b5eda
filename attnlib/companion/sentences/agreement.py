"""The chapter on agreement in words and tables made from its numbers."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attnlib.companion.intervals import listed
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name, data_of

if TYPE_CHECKING:
    import pandas as pd

HEADS = {
    "alpha_beta_uf": "𝒜(α, βᵘᶠ)",
    "beta_uf_beta_px": "𝒜(βᵘᶠ, βᵖˣ)",
    "delta_beta_uf": "𝒜(Δ, βᵘᶠ)",
    "alpha_beta": "𝒜(α, β)",
}
LETTERS = {"agreement": "𝒜", "kendall": "τ"}
CHOICES = {"": "apart", "_optimistic": "as in the paper"}  # who chooses the checkpoint, see the page
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
NEWS_COMMENTARY = "News Commentary It–Pt, En–Nl and En–Pt (*cannot be run: data*)"
# What the paper's tables beyond the first are of: measure, part, quality.
VARIANTS = {
    "Kendall's τ, performance as accuracy (Table 3)": ("kendall", "validation", "accuracy"),
    "Kendall's τ, performance as BLEU (Table 4)": ("kendall", "validation", "bleu"),
    "Agreement, performance as BLEU (Table 6)": ("agreement", "validation", "bleu"),
    "Agreement on training samples (Table 7)": ("agreement", "training", "accuracy"),
    "Agreement on training samples, performance as BLEU (Table 8)": ("agreement", "training", "bleu"),
}


def agreement_table(
    result: Result,
    *,
    measure: str = "agreement",
    part: str = "validation",
    quality: str = "accuracy",
    choice: str = "",
) -> "pd.DataFrame":
    """A row a data set that has such numbers: those of Table 5 with the half widths of their intervals.

    Args:
        measure: ``agreement`` or ``kendall``, in percent.
        part: ``validation`` or ``training``.
        quality: of the networks, ``accuracy`` or ``bleu``; it chooses checkpoints, and ξ is in its terms.
        choice: of checkpoints, one of :data:`CHOICES`.
    """

    def row(found: dict) -> dict[str, str]:
        agreements = {HEADS[column]: found[column][f"{measure}{choice}"] for column in HEADS}
        cells = {"n": runs_behind(agreements.values())}
        for head, interval in agreements.items():
            cells[head.replace("𝒜", LETTERS[measure])] = interval_percent(interval)
        if measure == "agreement":
            cells["chance"] = interval_percent(found["chance"])
        for column, head in HEADS.items():
            star = "*" if (found[column][f"{measure}_starred{choice}"]["value"] or 0) > 0.5 else ""
            cells[head.replace("𝒜", "ξ")] = interval_percent(found[column][f"{measure}_xi{choice}"]) + star
        return cells | {"ξ*": interval_percent(found[f"final{choice}"])}

    return _table(result, part, quality, row)


def both_choices(result: Result, **of: str) -> "pd.DataFrame":
    """:func:`agreement_table` with two rows a data set, one for either choice of checkpoints."""
    tables = {words: agreement_table(result, choice=choice, **of) for choice, words in CHOICES.items()}
    return _interleaved(tables)


def variants(result: Result) -> str:
    """:func:`both_choices` for Tables 3, 4 and 6 to 8, folded, as Markdown; what has no row is left out."""
    folded = []
    for title, (measure, part, quality) in VARIANTS.items():
        table = both_choices(result, measure=measure, part=part, quality=quality)
        if len(table):
            folded.append(f"<details>\n<summary>{title}</summary>\n\n{_markdown(table)}\n\n</details>\n")
    return "\n".join(folded) or "Nothing of this has been run yet."


def choice_table(result: Result) -> "pd.DataFrame":
    """What the paper's choice of checkpoint adds to the agreement, and how far it rises and falls."""

    def row(found: dict) -> dict[str, str]:
        own = found["alpha_beta_uf"]
        return {
            "n": runs_behind([own["agreement"]]),
            "chosen on one half, read on the other": interval_percent(own["agreement"]),
            "largest of all checkpoints": interval_percent(own["agreement_optimistic"]),
            "above the first checkpoint": interval_percent(own["rises"]),
            "above the last checkpoint": interval_percent(own["falls"]),
        }

    return _table(result, "validation", "accuracy", row)


def frozen_table(result: Result) -> "pd.DataFrame":
    """Attention trained alone and attention of another seed, beside the probe at uniform attention."""

    def row(found: dict, choice: str) -> dict[str, str]:
        if not found["alpha_alpha_frozen"]["agreement"]["n"]:
            return {}
        alone, uniform, other = (
            found[column][f"agreement{choice}"]
            for column in ("alpha_alpha_frozen", "alpha_beta_uf", "alpha_alpha")
        )
        return {
            "n": runs_behind([alone, uniform, other]),
            "𝒜(α, αᶠʳ)": interval_percent(alone),
            "𝒜(α, βᵘᶠ)": interval_percent(uniform),
            "𝒜(α, α of another seed)": interval_percent(other),
            "τ(α, α of another seed)": interval_percent(found["alpha_alpha"][f"kendall{choice}"]),
        }

    return _interleaved(
        {
            words: _table(result, "validation", "accuracy", lambda found, choice=choice: row(found, choice))
            for choice, words in CHOICES.items()
        }
    )


def _table(result: Result, part: str, quality: str, row: Callable[[dict], dict[str, str]]) -> "pd.DataFrame":
    """A row a data set that has numbers of the part and quality; none where ``row`` gives nothing."""
    import pandas as pd

    rows = {}
    for name in data_of(result):
        of_part = next((result.values[name][own] for own in PARTS[part] if own in result.values[name]), {})
        if quality in of_part and (cells := row(of_part[quality])):
            rows[data_name(name)] = cells
    return pd.DataFrame.from_dict(rows, orient="index")


def _interleaved(tables: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """Tables of equal rows as one: each row once of every table, named by it."""
    import pandas as pd

    rows = {
        (name, words): dict(zip(table.columns, table.loc[name], strict=True))
        for name in next(iter(tables.values())).index
        for words, table in tables.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index") if rows else pd.DataFrame()


def _markdown(table: "pd.DataFrame") -> str:
    """A table whose rows are named by data set and choice."""
    lines = [f"| | checkpoints | {' | '.join(table.columns)} |", "|---" * (2 + len(table.columns)) + "|"]
    before = None
    for (name, words), cells in zip(table.index, table.to_numpy(), strict=True):
        lines.append(f"| {'' if name == before else name} | {words} | {' | '.join(cells)} |")
        before = name
    return "\n".join(lines).replace("*", "\\*")


def runs_behind(intervals: Iterable[dict]) -> str:
    """How many networks of a kind are behind a row's numbers, ``3``, or ``2–4`` where that differs."""
    counts = sorted({interval["n"] for interval in intervals if interval["n"]})
    return "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "–"


def networks_caption(result: Result, names: Iterable[str] | None = None) -> str:
    """How many networks a set has, for captions: ``n, networks of each kind: 4 on SST; 2–4 on SMS``."""
    counts = []
    for name in data_of(result) if names is None else names:
        found = result.values[name]["validation"]["accuracy"]
        counts.append(f"{runs_behind(found[column]['agreement'] for column in HEADS)} on {data_name(name)}")
    return f"n, networks of each kind: {'; '.join(counts)}" if counts else "no networks yet"


def weakest_sentence(result: Result) -> str:
    """Where each column stands least above chance."""
    parts = []
    for column, head in HEADS.items():
        found = result.values["weakest"][column]
        if found["above_chance"]["n"]:
            name, above = data_name(found["data"]), interval_percent(found["above_chance"])
            parts.append(f"{head} on {name}, {above}")
    if not parts:
        return ""
    return f"Least above chance, by the lower ends of the intervals of all sets above: {'; '.join(parts)}."


def absent_sentence(result: Result) -> str:
    """The sets of the settings that have no numbers, of texts and of pairs, and what is not at hand."""
    config, shown = result.config, data_of(result)
    if config.get("data") or config.get("source"):  # in place of all the sets
        return ""
    parts = []
    for what, field in (("of labelled texts", "classification"), ("of sentence pairs", "translation")):
        names = [data_name(name) for name in config.get(field, ()) if name not in shown]
        names += [NEWS_COMMENTARY] if field == "translation" and len(config.get(field, ())) > 1 else []
        if names:
            parts.append(f"{what} {listed(names)}")
    return f"Without numbers here: {'; '.join(parts)}." if parts else ""


def interval_percent(interval: dict) -> str:
    """``53 ± 2``; a dash where there is no number."""
    return interval_text(interval, digits=0)
