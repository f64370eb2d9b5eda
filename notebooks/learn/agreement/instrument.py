"""What the board of the page draws: printed and own numbers of every table, and the courses behind them."""

import re
from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd

from companion.book.numbers import written
from companion.book.project import find_root
from companion.book.scorecard import SIGNS, answers
from companion.claims.model import Claim, Entry, Paper, load_papers
from companion.claims.verify import ClaimVerdict, verify
from companion.results.result import Result
from notebooks.shared.style import data_name, data_of

CHOICES = {"": "apart", "_optimistic": "as in the paper"}  # who chooses the checkpoint, see the page
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
COLUMNS = {
    "alpha_beta_uf": ("𝒜(α, βᵘᶠ)", "attention and the probe at uniform attention"),
    "beta_uf_beta_px": ("𝒜(βᵘᶠ, βᵖˣ)", "the probe at uniform attention and the bag of words"),
    "delta_beta_uf": ("𝒜(Δ, βᵘᶠ)", "saliency and the probe at uniform attention"),
    "alpha_beta": ("𝒜(α, β)", "attention and the probe of another seed"),
    "alpha_alpha_frozen": ("𝒜(α, αᶠʳ)", "attention and attention trained alone"),
}
# Tables of the paper: what they are of, measure, part, and what performance is. Courses are of the first's.
TABLES = {
    "2": ("agreement", "agreement", "validation", "accuracy"),
    "5": ("agreement, with decimals and of all sets", "agreement", "validation", "accuracy"),
    "3": ("Kendall's τ", "kendall", "validation", "accuracy"),
    "4": ("Kendall's τ, performance as BLEU", "kendall", "validation", "bleu"),
    "6": ("agreement, performance as BLEU", "agreement", "validation", "bleu"),
    "7": ("agreement on training samples", "agreement", "training", "accuracy"),
    "8": ("agreement on training samples, performance as BLEU", "agreement", "training", "bleu"),
    "10": ("attention trained alone", "agreement", "validation", "accuracy"),
}
ROUNDED = ("2", "10")  # print numbers of Table 5 again
ALL_SETS = ("3", "5", "7")  # have rows of our other sets, too
TITLES = {"agreement": "𝒜", "kendall": "τ"}
INTERVAL = ("value", "low", "high")


def board(result: Result) -> tuple[dict, pd.DataFrame]:
    """Every number in percent, with its interval, and what is printed where a result may be compared with it.

    A row is a data set that is printed, with ours or the reason why there is none, or another of ours.
    """
    compared, texts = result.profile == "paper" and "own" not in result.values, {}
    judged = [row for row in published_numbers() if row.profile == "paper"] if compared else []
    tables, choices = [], [*CHOICES.values()]
    for number, (title, *of) in TABLES.items():
        rows = sorted(_rows(number, result, judged), key=lambda row: row["why"] != "")  # what was run first
        if rows:
            about = {"name": number, "title": title, "measure": of[0], "course": of == [*TABLES["5"][1:]]}
            tables.append(about | {"rows": rows})
        for row, place, kind in product(rows, range(len(choices)), ("", "xi ")):
            cells = {head: row["numbers"].get(kind + name) for name, (head, _) in COLUMNS.items()}
            cells |= {"chance, ξ*": row["numbers"].get("xi_star" if kind else "chance")}
            shown = {head: _text(cell, place) for head, cell in cells.items() if cell}
            if shown and (place or any(one["own"] for one in row["numbers"].values())):
                texts[number, row["set"], choices[place], "ξ" if kind else TITLES[of[0]]] = shown
    if not tables:
        return {}, pd.DataFrame()
    index = pd.MultiIndex.from_tuples(texts, names=["table", "data", "checkpoints", "of"])
    shown = {"columns": COLUMNS, "choices": choices, "tables": tables, "courses": _courses(result)}
    return shown, pd.DataFrame([*texts.values()], index).fillna("")


def paper() -> Paper:
    """The second paper: its claims and tables."""
    (found,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    return found


def numbers(*tables: str) -> list[Claim]:
    """The claims about printed numbers, of these tables or of all."""
    claims = [claim for claim in paper().claims if claim.number]
    return [claim for claim in claims if not tables or claim.published.reference.table in tables]


def published_numbers() -> list[ClaimVerdict]:
    return [row for row in verify(find_root(), experiment="agreement") if row.claim.number]


def published_agreement() -> dict[tuple[str, str], float]:
    """What Table 5 has of agreement and of chance, by our name of the data set and column."""
    found = {}
    for claim in numbers("5"):
        data, *_, column, number = claim.keys[0].split(".")
        if number in ("agreement_optimistic", "chance"):
            found[data, "chance" if number == "chance" else column] = claim.published.value
    return found


def _rows(number: str, result: Result, judged: Sequence[ClaimVerdict]) -> Iterator[dict]:
    """The rows of a table, each data set with all that it may mean."""
    _, measure, part, quality = TABLES[number]
    entries, found = paper().tables.table(number), answers(judged)
    places = list(dict.fromkeys(map(place_of, entries)))
    sets = {(one.dataset, reading): row.claim.keys[0].split(".")[:2] for (one, reading), row in found.items()}

    def cells(name: str, printed: dict[str, Entry], reading: str) -> dict:
        values = result.values.get(name, {})
        there = next((values[own].get(quality) for own in PARTS[part] if own in values), None)
        own = _own(there, measure) if there else {}
        row = {}
        for place in places:
            entry = printed.get(place)
            verdict = found.get((entry, reading)) if entry else None
            star = "*" if entry and "starred" in entry.note else ""
            row[place] = {
                "printed": entry.value + star if entry else None,
                "sign": SIGNS[verdict.verdict] if verdict else "",
                "own": own.get(place),
            }
        return row

    names = []
    for dataset in dict.fromkeys(entry.dataset for entry in entries if judged):
        printed = {place_of(entry): entry for entry in entries if entry.dataset == dataset}
        some = next(iter(printed.values()))
        readings = {r: name for (d, r), (name, kind) in sets.items() if d == dataset and kind != "saliency"}
        for reading, name in sorted(readings.items()) or [("", "")]:
            names.append(name)
            own = {"set": data_name(name) if name else dataset, "why": some.unavailable or some.not_run}
            yield own | {"numbers": cells(name, printed, reading)}
    others = () if number in (ROUNDED if not judged else {*TABLES} - {*ALL_SETS}) else data_of(result)
    for name in others:
        row = cells(name, {}, "")
        if name not in names and any(one["own"] for one in row.values()):
            yield {"set": data_name(name), "why": "", "numbers": row}


def place_of(entry: Entry) -> str:
    """Where a printed number goes: ``alpha_beta``, ``xi alpha_beta``, ``chance``, or ``xi_star``."""
    measure, inside = re.fullmatch(r"(A|xi)(?:\((.*)\)|_baseline|_star)", entry.quantity).groups()
    if not inside:
        return "chance" if measure == "A" else "xi_star"
    return ("xi " if measure == "xi" else "") + inside.replace(",", "_")


def _own(found: dict, measure: str) -> dict[str, list]:
    """Our numbers by place, for either choice of checkpoints: value, its interval, and whether ξ is ξ*."""
    places = {"chance": [found["chance"]] * 2, "xi_star": [found[f"final{choice}"] for choice in CHOICES]}
    if measure == "kendall":
        places["chance"] = [{"value": 0.0, "low": None, "high": None}] * 2
    for column in COLUMNS.keys() & found.keys():
        places[column] = [found[column][f"{measure}{choice}"] for choice in CHOICES]
        places[f"xi {column}"] = [
            found[column][f"{measure}_xi{choice}"]
            | {"starred": found[column][f"{measure}_starred{choice}"]["value"]}
            for choice in CHOICES
        ]
    return {
        place: [
            [*(own[end] and round(own[end], 1) for end in INTERVAL), (own.get("starred") or 0) > 0.5]
            for own in both
        ]
        for place, both in places.items()
        if all(one["value"] is not None for one in both)
    }


def _text(cell: dict, choice: int) -> str:
    """``31.2 ± 2.0 ?; 31.02``: ours with its verdict by the paper's choice, and what is printed."""
    own = "–"
    if cell["own"]:
        *interval, starred = cell["own"][choice]
        own = written(dict(zip(INTERVAL, interval, strict=True)), ["±", ".1f"]) + "*" * starred
    return f"{own} {cell['sign']}; {cell['printed'] or '–'}".replace(" ;", ";") if choice else own


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
        own = means.loc[name]
        seeds = own.loc["alpha_alpha"].rename(columns={"agreement": "between"}).rename_axis("steps")
        there = own.index.get_level_values("column").unique()
        courses[data_name(name)] = seeds.reset_index().to_dict("list") | {
            "columns": {
                column: own.loc[column]["agreement"].tolist() for column in COLUMNS if column in there
            }
        }
    return courses
