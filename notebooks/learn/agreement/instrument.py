"""What the board of the page draws: printed and own agreement of every data set, and the courses behind."""

import pandas as pd

from companion.book.numbers import written
from companion.results.result import Result
from notebooks.learn.agreement.published_table import published_agreement
from notebooks.shared.data_names import data_name, data_of

CHOICES = {"": "apart", "_optimistic": "as in the paper"}  # who chooses the checkpoint, see the page
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
COLUMNS = {
    "alpha_beta_uf": ("𝒜(α, βᵘᶠ)", "attention and the probe at uniform attention"),
    "beta_uf_beta_px": ("𝒜(βᵘᶠ, βᵖˣ)", "the probe at uniform attention and the bag of words"),
    "delta_beta_uf": ("𝒜(Δ, βᵘᶠ)", "saliency and the probe at uniform attention"),
    "alpha_beta": ("𝒜(α, β)", "attention and the probe of another seed"),
}


# What the board can show: measure, part, and the table that prints it. The courses are of the first.
TABLES = {
    "agreement (Table 5)": ("agreement", "validation", "5"),
    "Kendall's τ (Table 3)": ("kendall", "validation", "3"),
    "agreement on training samples (Table 7)": ("agreement", "training", "7"),
}


def board(result: Result) -> tuple[dict, pd.DataFrame]:
    """Intervals in percent, of the committed result only, whose numbers the paper's may be compared with."""
    if result.profile != "paper":
        return {}, pd.DataFrame()
    courses, sets, rows = pd.DataFrame(result.tables["courses"]), [], {}
    courses = courses[courses["part"] == "validation"].groupby(["data", "column", "step"])
    means = courses[["agreement", "accuracy"]].mean().round(1)
    tables = {title: (of, *_published(of)) for title, of in TABLES.items()}
    for name in data_of(result):
        between, texts = means.loc[name], {}
        cells = [{"course": between.loc[column]["agreement"].tolist(), "of": []} for column in COLUMNS]
        chances = []
        for (measure, part, _), numbers, accuracies in tables.values():
            there = next(each for each in PARTS[part] if each in result.values[name])
            found = result.values[name][there]["accuracy"]
            chances.append(found["chance"]["value"] if measure == "agreement" else 0.0)
            for column, cell in zip(COLUMNS, cells, strict=True):
                published = {
                    "printed": numbers.get((name, column)),
                    "printedXi": accuracies.get((name, column)),
                }
                own = {"own": measure, "xi": f"{measure}_xi"}
                cell["of"].append(published | {key: _by_choice(found[column], own[key]) for key in own})
        for column, (head, _) in COLUMNS.items():
            own = result.values[name]["validation"]["accuracy"][column]["agreement_optimistic"]
            texts[head] = f"{interval_percent(own)}; {published_agreement().get((name, column), '–')}"
        seeds = between.loc["alpha_alpha"].rename(columns={"agreement": "between"}).rename_axis("steps")
        about = {"name": data_name(name), "chance": chances, "cells": cells}
        sets.append(about | seeds.reset_index().to_dict("list"))
        rows[data_name(name)] = texts
    table = pd.DataFrame.from_dict(rows, "index").rename_axis("ours ± half interval; printed")
    shown = {
        "columns": [*COLUMNS.values()],
        "measures": [measure for measure, _, _ in TABLES.values()],
        "choices": [*CHOICES.values()],
        "tables": [*TABLES],
        "sets": sets,
    }
    return shown, table


def interval_percent(interval: dict) -> str:
    """``53 ± 2``; a dash where there is no number."""
    return written(interval, ["±", ".0f"])


def _published(of: tuple[str, str, str]) -> tuple[dict, dict]:
    measure, _, table = of
    return published_agreement(table, measure), published_agreement(table, f"{measure}_xi")


def _by_choice(found: dict, number: str) -> dict[str, list]:
    own = {said: found[f"{number}{choice}"] for choice, said in CHOICES.items()}
    return {said: [one["value"], one["low"], one["high"]] for said, one in own.items()}
