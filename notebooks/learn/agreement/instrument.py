"""What the board of the page draws: printed and own agreement of every data set, and the courses behind."""

import pandas as pd

from companion.results.result import Result
from notebooks.learn.agreement.tables import CHOICES, interval_percent, printed_agreement
from notebooks.shared.data_names import data_name, data_of

COLUMNS = {
    "alpha_beta_uf": ("𝒜(α, βᵘᶠ)", "attention and the probe at uniform attention"),
    "beta_uf_beta_px": ("𝒜(βᵘᶠ, βᵖˣ)", "the probe at uniform attention and the bag of words"),
    "delta_beta_uf": ("𝒜(Δ, βᵘᶠ)", "saliency and the probe at uniform attention"),
    "alpha_beta": ("𝒜(α, β)", "attention and the probe of another seed"),
}


def board(result: Result) -> tuple[dict, pd.DataFrame]:
    """Intervals in percent, of the committed result only, whose numbers the paper's may be compared with."""
    if result.profile != "paper":
        return {}, pd.DataFrame()
    printed, courses, sets, rows = printed_agreement(), pd.DataFrame(result.tables["courses"]), [], {}
    courses = courses[courses["part"] == "validation"].groupby(["data", "column", "step"])
    means = courses[["agreement", "accuracy"]].mean().round(1)
    for name in data_of(result):
        found, between, cells, texts = result.values[name]["validation"]["accuracy"], means.loc[name], [], {}
        for column, (head, _) in COLUMNS.items():
            own = {said: found[column][f"agreement{choice}"] for choice, said in CHOICES.items()}
            shown = {said: [one["value"], one["low"], one["high"]] for said, one in own.items()}
            course = between.loc[column]["agreement"].tolist()
            cells.append({"printed": printed.get((name, column)), "own": shown, "course": course})
            texts[head] = f"{interval_percent(own['as in the paper'])}; {printed.get((name, column), '–')}"
        seeds = between.loc["alpha_alpha"].rename(columns={"agreement": "between"}).rename_axis("steps")
        about = {"name": data_name(name), "chance": found["chance"]["value"], "cells": cells}
        sets.append(about | seeds.reset_index().to_dict("list"))
        rows[data_name(name)] = texts
    table = pd.DataFrame.from_dict(rows, "index").rename_axis("ours ± half interval; printed")
    return {"columns": [*COLUMNS.values()], "choices": [*CHOICES.values()], "sets": sets}, table
