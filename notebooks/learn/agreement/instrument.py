"""What the board of the page draws: printed and own numbers of every table, and the courses behind them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from companion.book.numbers import written
from companion.book.project import find_root
from companion.book.scorecard import SIGNS, Answers, answers
from companion.claims.model import Claim, Entry, Paper, load_papers
from companion.claims.verify import ClaimVerdict, verify
from companion.results.result import Result
from notebooks.shared.style import data_name, data_of


@dataclass(frozen=True)
class Choice:
    """Who chooses the checkpoint that a number is of, see the page.

    Attributes:
        words: for readers.
        ending: of the names of numbers that are chosen so, in the values of a result.
    """

    words: str
    ending: str


CHOICES = (Choice("apart", ""), Choice("as in the paper", "_optimistic"))
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
COLUMNS = {
    "alpha_beta_uf": ("𝒜(α, βᵘᶠ)", "attention and the probe at uniform attention"),
    "beta_uf_beta_px": ("𝒜(βᵘᶠ, βᵖˣ)", "the probe at uniform attention and the bag of words"),
    "delta_beta_uf": ("𝒜(Δ, βᵘᶠ)", "saliency and the probe at uniform attention"),
    "alpha_beta": ("𝒜(α, β)", "attention and the probe of another seed"),
    "alpha_alpha_frozen": ("𝒜(α, αᶠʳ)", "attention and attention trained alone"),
}


@dataclass(frozen=True)
class PrintedTable:
    """What a table of the paper is of.

    Attributes:
        title: in words.
        measure: of agreement.
        part: of the data, a key of `PARTS`.
        quality: what performance is, by which checkpoints are best.
    """

    title: str
    measure: str = "agreement"
    part: str = "validation"
    quality: str = "accuracy"

    @property
    def has_courses(self) -> bool:
        """Whether the learning curves of the board are of its numbers."""
        return (self.measure, self.part, self.quality) == ("agreement", "validation", "accuracy")


TABLES = {
    "2": PrintedTable("agreement"),
    "5": PrintedTable("agreement, with decimals and of all sets"),
    "3": PrintedTable("Kendall's τ", measure="kendall"),
    "4": PrintedTable("Kendall's τ, performance as BLEU", measure="kendall", quality="bleu"),
    "6": PrintedTable("agreement, performance as BLEU", quality="bleu"),
    "7": PrintedTable("agreement on training samples", part="training"),
    "8": PrintedTable("agreement on training samples, performance as BLEU", part="training", quality="bleu"),
    "10": PrintedTable("attention trained alone"),
}
ROUNDED = ("2", "10")  # print numbers of Table 5 again
ALL_SETS = ("3", "5", "7")  # have rows of our other sets, too
TITLES = {"agreement": "𝒜", "kendall": "τ"}
INTERVAL = ("value", "low", "high")


def board(result: Result) -> tuple[dict, pd.DataFrame]:
    """Every number in percent, with its interval, and what is printed where a result may be compared with it.

    A row is a data set that is printed, with ours or the reason why there is none, or another of ours.
    """
    compared = result.profile == "paper" and "own" not in result.values
    judged = [row for row in published_numbers() if row.profile == "paper"] if compared else []
    texts = {}
    tables = []
    for number, table in TABLES.items():
        rows = sorted(_rows(number, result, judged), key=lambda row: row["why"] != "")  # what was run first
        if rows:
            tables.append(
                {
                    "name": number,
                    "title": table.title,
                    "measure": table.measure,
                    "course": table.has_courses,
                    "rows": rows,
                }
            )
        for row, place, kind in product(rows, range(len(CHOICES)), ("", "xi ")):
            cells = {heading: row["numbers"].get(kind + name) for name, (heading, _) in COLUMNS.items()}
            cells |= {"chance, ξ*": row["numbers"].get("xi_star" if kind else "chance")}
            shown = {heading: _text(cell, place) for heading, cell in cells.items() if cell}
            # Who chooses matters to our numbers alone, so a row that has none is shown once.
            if shown and (place or any(cell["own"] for cell in row["numbers"].values())):
                symbol = "ξ" if kind else TITLES[table.measure]
                texts[number, row["set"], CHOICES[place].words, symbol] = shown
    if not tables:
        return {}, pd.DataFrame()
    index = pd.MultiIndex.from_tuples(texts, names=["table", "data", "checkpoints", "of"])
    shown = {
        "columns": COLUMNS,
        "choices": [choice.words for choice in CHOICES],
        "tables": tables,
        "courses": _courses(result),
    }
    return shown, pd.DataFrame([*texts.values()], index).fillna("")


def paper() -> Paper:
    """The second paper: its claims and tables."""
    (paper,) = (paper for paper in load_papers(find_root() / "claims") if paper.name == "snell2021")
    return paper


def numbers(*tables: str) -> list[Claim]:
    """The claims about printed numbers, of these tables or of all."""
    claims = [claim for claim in paper().claims if claim.number]
    return [claim for claim in claims if not tables or claim.published.reference.table in tables]


def published_numbers() -> list[ClaimVerdict]:
    """The verdicts on them: on agreements, and on the random baseline, which lengths of texts decide."""
    root = find_root()
    rows = [*verify(root, experiment="agreement"), *verify(root, experiment="dataset_sizes")]
    return [row for row in rows if row.claim.number]


def published_agreement() -> dict[tuple[str, str], float]:
    """What Table 5 has of agreement and of chance, by our name of the data set and column."""
    printed = {}
    for claim in numbers("5"):
        data, *_, column, number = claim.keys[0].split(".")
        if number in ("agreement_optimistic", "chance"):
            printed[data, "chance" if number == "chance" else column] = claim.published.value
    return printed


def _rows(number: str, result: Result, judged: Sequence[ClaimVerdict]) -> Iterator[dict]:
    """The rows of a table, each data set with all that it may mean."""
    entries = paper().tables.table(number)
    verdicts = answers(judged)
    places = list(dict.fromkeys(map(place_of, entries)))

    def row_of(title: str, why: str, name: str, printed: Mapping[str, Entry], reading: str = "") -> dict:
        ours = _our_numbers(result, name, TABLES[number])
        cells = {}
        for place in places:
            entry = printed.get(place)
            verdict = verdicts.get((entry, reading))
            is_baseline = verdict is not None and place == "chance"
            measured = _baseline(verdict) if is_baseline else ours.get(place)
            cells[place] = _printed_cell(entry, verdict) | {"own": measured}
        return {"set": title, "why": why, "numbers": cells}

    names = []
    for dataset in dict.fromkeys(entry.dataset for entry in entries if judged):
        printed = {place_of(entry): entry for entry in entries if entry.dataset == dataset}
        first = next(iter(printed.values()))
        readings = _our_names(verdicts, dataset)
        for reading, name in sorted(readings.items()) or [("", "")]:
            names.append(name)
            title = data_name(name) if name else dataset
            yield row_of(title, first.unavailable or first.not_run, name, printed, reading)
    for name in _other_sets(number, result, is_compared=bool(judged)):
        row = row_of(data_name(name), "", name, {})
        if name not in names and any(cell["own"] for cell in row["numbers"].values()):
            yield row


def _printed_cell(entry: Entry | None, verdict: ClaimVerdict | None) -> dict:
    """What is printed at a place, with the sign of its verdict."""
    if entry is None:
        return {"printed": None, "sign": ""}
    star = "*" if "starred" in entry.note else ""
    return {"printed": entry.value + star, "sign": SIGNS[verdict.verdict] if verdict else ""}


def _baseline(verdict: ClaimVerdict) -> list[list]:
    """Our random baseline, which is the same whoever chooses checkpoints; empty where it is not counted."""
    counted = verdict.judgement.evidence.values()
    baselines = [_as_list({"value": estimate.value, "low": None, "high": None}) for estimate in counted]
    return baselines * len(CHOICES)


def _our_names(verdicts: Answers, dataset: str) -> dict[str, str]:
    """Our name of a printed data set, by reading; saliency, which is of one set, has another chapter."""
    names = {}
    for (entry, reading), row in verdicts.items():
        name, kind, *_ = row.claim.keys[0].split(".")
        if entry.dataset == dataset and kind != "saliency":
            names[reading] = name
    return names


def _other_sets(number: str, result: Result, *, is_compared: bool) -> Sequence[str]:
    """Data sets of ours that a table of the paper may lack."""
    without_others = {*TABLES} - {*ALL_SETS} if is_compared else {*ROUNDED}
    return () if number in without_others else data_of(result)


def place_of(entry: Entry) -> str:
    """Where a printed number goes: ``alpha_beta``, ``xi alpha_beta``, ``chance``, or ``xi_star``."""
    measure, inside = re.fullmatch(r"(A|xi)(?:\((.*)\)|_baseline|_star)", entry.quantity).groups()
    if not inside:
        return "chance" if measure == "A" else "xi_star"
    return ("xi " if measure == "xi" else "") + inside.replace(",", "_")


def _our_numbers(result: Result, name: str, table: PrintedTable) -> dict[str, list]:
    """Our numbers of a data set by place, for either choice of checkpoints.

    Each is a list: value, the ends of its interval, and whether ξ is ξ*.
    """
    of_set = result.values.get(name, {})
    part = next((part for part in PARTS[table.part] if part in of_set), None)
    values = of_set[part].get(table.quality) if part else None
    if not values:
        return {}
    estimates = {
        "chance": [values["chance"]] * len(CHOICES),
        "xi_star": [values[f"final{choice.ending}"] for choice in CHOICES],
    }
    if table.measure == "kendall":
        estimates["chance"] = [{"value": 0.0, "low": None, "high": None}] * len(CHOICES)
    for column in COLUMNS.keys() & values.keys():
        of_column = values[column]
        estimates[column] = [of_column[f"{table.measure}{choice.ending}"] for choice in CHOICES]
        estimates[f"xi {column}"] = [
            of_column[f"{table.measure}_xi{choice.ending}"]
            | {"starred": of_column[f"{table.measure}_starred{choice.ending}"]["value"]}
            for choice in CHOICES
        ]
    return {
        place: [_as_list(estimate) for estimate in of_choices]
        for place, of_choices in estimates.items()
        if all(estimate["value"] is not None for estimate in of_choices)
    }


def _as_list(estimate: Mapping) -> list:
    ends = [estimate[end] and round(estimate[end], 1) for end in INTERVAL]
    is_starred = (estimate.get("starred") or 0) > 0.5
    return [*ends, is_starred]


def _text(cell: dict, choice: int) -> str:
    """``31.2 ± 2.0 ?; 31.02``: ours with its verdict by the paper's choice, and what is printed."""
    ours = "–"
    if cell["own"]:
        *interval, starred = cell["own"][choice]
        ours = written(dict(zip(INTERVAL, interval, strict=True)), ["±", ".1f"])
        if starred:
            ours += "*"
    if not choice:
        return ours
    return f"{ours} {cell['sign']}; {cell['printed'] or '–'}".replace(" ;", ";")


def _courses(result: Result) -> dict[str, dict]:
    """Mean courses along training on held-out samples, by the name of the data set."""
    if not result.tables["courses"]:
        return {}
    rows = pd.DataFrame(result.tables["courses"])
    rows = rows[rows["part"] == "validation"].groupby(["data", "column", "step"])
    means, courses = rows[["agreement", "accuracy"]].mean().round(1), {}
    for name in data_of(result):
        if (name, "alpha_alpha") not in means.index.droplevel("step"):
            continue
        of_set = means.loc[name]
        seeds = of_set.loc["alpha_alpha"].rename(columns={"agreement": "between"}).rename_axis("steps")
        measured = of_set.index.get_level_values("column").unique()
        courses[data_name(name)] = seeds.reset_index().to_dict("list") | {
            "columns": {
                column: of_set.loc[column]["agreement"].tolist() for column in COLUMNS if column in measured
            }
        }
    return courses
