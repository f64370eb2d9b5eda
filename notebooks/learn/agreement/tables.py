"""The tables of the page on agreement: numbers of the result, and of the paper where it prints them."""

import re
from collections.abc import Iterable, Iterator
from itertools import product

import pandas as pd

from companion.book.numbers import written
from companion.book.project import Project, find_root
from companion.claims.model import Claim, load_papers
from companion.claims.verify import ClaimVerdict, verify
from companion.results.result import Result
from notebooks.learn.agreement.published_table import published_table
from notebooks.shared.data_names import data_name, data_of

HEADS = {
    "alpha_beta_uf": "𝒜(α, β<sup>uf</sup>)",
    "beta_uf_beta_px": "𝒜(β<sup>uf</sup>, β<sup>px</sup>)",
    "delta_beta_uf": "𝒜(Δ, β<sup>uf</sup>)",
    "alpha_beta": "𝒜(α, β)",
}
LETTERS = {"agreement": "𝒜", "kendall": "τ"}
CHOICES = {"": "apart", "_optimistic": "as in the paper"}  # who chooses the checkpoint, see the page
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
# What the paper's tables are of: measure, part, quality.
VARIANTS = {
    "Agreement, performance as accuracy (Tables 2 and 5)": ("agreement", "validation", "accuracy"),
    "Kendall's τ, performance as accuracy (Table 3)": ("kendall", "validation", "accuracy"),
    "Kendall's τ, performance as BLEU (Table 4)": ("kendall", "validation", "bleu"),
    "Agreement, performance as BLEU (Table 6)": ("agreement", "validation", "bleu"),
    "Agreement on training samples (Table 7)": ("agreement", "training", "accuracy"),
    "Agreement on training samples, performance as BLEU (Table 8)": ("agreement", "training", "bleu"),
}


def agreement_table(
    result: Result, measure: str = "agreement", part: str = "validation", quality: str = "accuracy"
) -> pd.DataFrame:
    """Two rows a data set, one for either choice of checkpoints: the numbers of Table 5 with half intervals.

    ``quality`` of the networks, ``accuracy`` or ``bleu``, chooses checkpoints, and ξ is in its terms.
    """
    rows = {}
    for (name, found), (choice, words) in product(_of_sets(result, part, quality), CHOICES.items()):
        agreements = {column: found[column][f"{measure}{choice}"] for column in HEADS}
        cells = {"n": runs_behind(agreements.values())}
        for column, head in HEADS.items():
            cells[head.replace("𝒜", LETTERS[measure])] = interval_percent(agreements[column])
        if measure == "agreement":
            cells["chance"] = interval_percent(found["chance"])
        for column, head in HEADS.items():
            star = "*" if (found[column][f"{measure}_starred{choice}"]["value"] or 0) > 0.5 else ""
            cells[head.replace("𝒜", "ξ")] = interval_percent(found[column][f"{measure}_xi{choice}"]) + star
        rows[name, words] = cells | {"ξ*": interval_percent(found[f"final{choice}"])}
    return pd.DataFrame.from_dict(rows, orient="index")


def variants(result: Result) -> str:
    """Tables 3 to 8, folded, as Markdown; what has no row is left out."""
    folded = []
    for title, of in VARIANTS.items():
        table = agreement_table(result, *of)
        if len(table):
            folded.append(f"<details>\n<summary>{title}</summary>\n\n{as_markdown(table)}\n\n</details>\n")
    return "\n".join(folded) or "Nothing of this has been run yet."


def choice_table(result: Result) -> pd.DataFrame:
    """What the paper's choice of checkpoint adds to the agreement, and how far it rises and falls."""
    heads = {
        "agreement": "chosen on one half, read on the other",
        "agreement_optimistic": "largest of all checkpoints",
        "rises": "above the first checkpoint",
        "falls": "above the last checkpoint",
    }
    rows = {}
    for name, found in _of_sets(result):
        own = found["alpha_beta_uf"]
        cells = {head: interval_percent(own[number]) for number, head in heads.items()}
        rows[name] = {"n": runs_behind([own["agreement"]])} | cells
    return pd.DataFrame.from_dict(rows, orient="index")


def frozen_table(result: Result) -> pd.DataFrame:
    """Attention trained alone and attention of another seed, with the probe at uniform attention."""
    heads = {
        "𝒜(α, α<sup>fr</sup>)": ("alpha_alpha_frozen", "agreement"),
        "𝒜(α, β<sup>uf</sup>)": ("alpha_beta_uf", "agreement"),
        "𝒜(α, α of another seed)": ("alpha_alpha", "agreement"),
        "τ(α, α of another seed)": ("alpha_alpha", "kendall"),
    }
    rows = {}
    for (name, found), (choice, words) in product(_of_sets(result), CHOICES.items()):
        if found["alpha_alpha_frozen"]["agreement"]["n"]:
            shown = {head: found[column][f"{measure}{choice}"] for head, (column, measure) in heads.items()}
            cells = {head: interval_percent(own) for head, own in shown.items()}
            rows[name, words] = {"n": runs_behind([*shown.values()][:-1])} | cells
    return pd.DataFrame.from_dict(rows, orient="index")


def _of_sets(result: Result, part: str = "validation", quality: str = "accuracy") -> Iterator[tuple]:
    """Every data set that has numbers of the part and quality, by the name it is shown under."""
    for name in data_of(result):
        for own in PARTS[part]:
            if found := result.values[name].get(own, {}).get(quality):
                yield data_name(name), found


def as_markdown(table: pd.DataFrame) -> str:
    """A table whose rows are named by data set, or by data set and what is said of it."""
    keys = [key if isinstance(key, tuple) else (key,) for key in table.index]
    heads = [*[" "] * len(keys[0]), *table.columns]
    lines, before = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"], None
    for (name, *words), cells in zip(keys, table.astype(str).to_numpy(), strict=True):
        lines.append(f"| {' | '.join(['' if name == before else name, *words, *cells])} |")
        before = name
    return "\n".join(lines).replace("*", "\\*")


def runs_behind(intervals: Iterable[dict]) -> str:
    """How many networks of a kind are behind a row's numbers, ``3``, or ``2–4`` where that differs."""
    counts = sorted({interval["n"] for interval in intervals if interval["n"]})
    return "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "–"


def networks_caption(result: Result, names: Iterable[str] | None = None) -> str:
    """How many networks are behind the numbers of a figure, for captions: ``2–4 networks of each kind``."""
    found = (result.values[name]["validation"]["accuracy"] for name in names or data_of(result))
    agreements = (own[column]["agreement"] for own in found for column in HEADS)
    return f"{runs_behind(agreements)} networks of each kind"


def interval_percent(interval: dict) -> str:
    """``53 ± 2``; a dash where there is no number."""
    return written(interval, ["±", ".0f"])


def _tenths(interval: dict) -> str:
    return written(interval, ["±", ".1f"])


# What ties in the lexical probe and readings of saliency do to sentence pairs.


def ties_table(result: Result) -> pd.DataFrame:
    """A row a set of pairs and column of the tables, and one for chance; empty where no run was asked."""
    printed, rows = printed_agreement(), {}
    ways = {"ties agree": "counted", "ties broken": "broken"}
    for name in sets_with_ties(result):
        found = result.values[name]["ties"]
        for column, head in HEADS.items():
            rows[data_name(name), head] = (
                {words: _tenths(found[column][way]["largest"]) for words, way in ways.items()}
                | {"printed": _printed(printed.get((name, column)))}
                | {f"{w}, above the last": _tenths(found[column][way]["falls"]) for w, way in ways.items()}
            )
        rows[data_name(name), "chance, at the end"] = {
            "ties agree": _tenths(found["chance"]),
            "ties broken": f"{found['chance_broken']:.1f}",
            "printed": _printed(printed.get((name, "chance"))),
        }
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def sets_with_ties(result: Result) -> list[str]:
    """The sets of sentence pairs whose runs have been asked for their ties."""
    asked = {row["data"] for row in result.tables.get("ties", ())}
    return [name for name in data_of(result) if name in asked]


READINGS_OF_SALIENCY = {
    "logit": "derivative of the logit, as in the tables",
    "log_probability": "derivative of the log-probability",
    "gradient_norm": "length of its gradient",
}
# Heading, table that prints it.
COLUMNS = {"agreement": ("𝒜(Δ, β<sup>uf</sup>)", "5"), "kendall": ("τ(Δ, β<sup>uf</sup>)", "3")}


def saliency_table(result: Result) -> pd.DataFrame:
    """A row a set of pairs and reading, and one for what is printed; empty where no network was asked."""
    rows, printed = {}, {(c.published.reference.table, c.keys[0]): c.published.value for c in _numbers()}
    for name in data_of(result):
        found, key = result.values[name].get("saliency"), f"{name}.validation.accuracy.delta_beta_uf"
        if not found or not found["logit"]["agreement"]["n"]:
            continue
        for reading, title in READINGS_OF_SALIENCY.items():
            cells = {head: _tenths(found[reading][measure]) for measure, (head, _) in COLUMNS.items()}
            rows[data_name(name), title] = cells
        own = {h: printed.get((table, f"{key}.{m}_optimistic")) for m, (h, table) in COLUMNS.items()}
        if any(own.values()):
            rows[data_name(name), "printed"] = {head: _printed(number) for head, number in own.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


# What the second paper prints, with ours: tables, readings of a name, and how near is near.

# A printed name, and our two sets with what tells them apart.
READINGS = {
    "SST": {"sst": "the filter of labels that gives Table 9's counts", "sst_as_text": "the text's filter"},
    "Multi30k": {"multi30k_en_de": "English to German", "multi30k_de_en": "German to English"},
}
ROUNDED = ("2", "10")  # tables that print numbers of Table 5 again, rounded
# The proxy writes no sentences, so that in the tables by BLEU, too, its checkpoint is the most accurate one:
# what they print of two probes is printed again. ξ is of a network that has its BLEU.
PROXY_BY_BLEU = re.compile(r"\.bleu\.beta_uf_beta_px\.(?!.*_xi)")


def distances_table(rows: Iterable[ClaimVerdict]) -> pd.DataFrame:
    """How far ours are from the printed numbers under either reading; a name without both is left out.

    Each number of ours counts once, where both readings have it, with what is printed to most digits.
    """
    found = []
    for row in sorted(rows, key=lambda row: row.claim.published.reference.table in ROUNDED):
        ours = row.judgement.evidence.get(key := row.claim.keys[0])
        if ours is not None and ours.defined and not PROXY_BY_BLEU.search(key):
            found.append((*key.split(".", 1), abs(ours.value - row.claim.published.value)))
    apart = pd.DataFrame(found, columns=["data", "number", "apart"]).drop_duplicates(["data", "number"])
    apart = apart.pivot(index="number", columns="data", values="apart")
    lines = []
    for printed, sets in READINGS.items():
        both = apart.reindex(columns=[*sets]).dropna()
        for data, other in zip(both, reversed(both.columns), strict=True) if len(both) else ():
            nearer = int((both[data] < both[other]).sum())
            lines.append((printed, sets[data], len(both), f"{both[data].mean():.1f}", nearer))
    columns = ["read as", "printed numbers", "ours are away, on average", "nearer than the other"]
    return pd.DataFrame(lines, columns=["printed name", *columns]).set_index("printed name")


def two_readings(result: Result) -> pd.DataFrame:
    """:func:`distances_table` of the book; empty with a reader's data."""
    return distances_table([] if "own" in result.values else _printed_numbers())


def baselines_table(result: Result) -> pd.DataFrame:
    """How often the commonest answer is right in each printed set that was run, and how near is near then.

    The tables judge the paper profile, whichever is shown; empty with a reader's data or before any run.
    """
    path, rows = Project(find_root()).results("paper") / "agreement.json", {}
    judges = [claim.judge for claim in _numbers("5") if claim.judge.unrelated]
    judges = sorted(judges, key=lambda judge: judge.published, reverse=True)
    lowest = {judge.unrelated.partition(".")[0]: judge for judge in judges}
    judged = Result.load(path) if "own" not in result.values and path.is_file() else None
    for name in data_of(judged) if judged else ():
        common = judged.values[name]["validation"]["accuracy"]["majority"]
        if name in lowest and common is not None:
            met = f"{lowest[name].published:g} ± {lowest[name].short_of(common).allowed:.2g}"
            rows[data_name(name)] = {"commonest answer, %": f"{common:.1f}", "lowest printed accuracy": met}
    return pd.DataFrame.from_dict(rows, orient="index")


def printed_tables(result: Result, *tables: str) -> str:
    """Published tables as Markdown, ours below each number that was judged; none with a reader's data."""
    if "own" in result.values:
        return "These are your own data; the paper prints nothing of them."
    rows = _printed_numbers()
    return "\n".join(published_table(_paper().tables, name, rows) for name in tables)


def printed_agreement(table: str = "5", measure: str = "agreement") -> dict[tuple[str, str], float]:
    """What a table has of a measure and of chance, by our name of the data set and column."""
    found = {}
    for claim in _numbers(table):
        data, *_, column, number = claim.keys[0].split(".")
        if number in (f"{measure}_optimistic", "chance"):
            found[data, "chance" if number == "chance" else column] = claim.published.value
    return found


def _printed_numbers() -> list[ClaimVerdict]:
    return [row for row in verify(find_root(), experiment="agreement") if row.claim.number]


def _paper():
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    return paper


def _numbers(*tables: str) -> list[Claim]:
    """The claims about printed numbers, of these tables or of all."""
    claims = [claim for claim in _paper().claims if claim.number]
    return [claim for claim in claims if not tables or claim.published.reference.table in tables]


def _printed(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"
