"""What the board of the page draws: printed and own agreement of every data set, and the courses behind."""

import pandas as pd

from companion.results.result import Result
from notebooks.learn.agreement.tables import CHOICES, HEADS, interval_percent, printed_agreement
from notebooks.shared.data_names import data_name, data_of

PLAIN = {
    "alpha_beta_uf": "attention and the probe at uniform attention",
    "beta_uf_beta_px": "the probe at uniform attention and the bag of words",
    "delta_beta_uf": "saliency and the probe at uniform attention",
    "alpha_beta": "attention and the probe of another seed",
}


def board(result: Result) -> tuple[dict, pd.DataFrame]:
    """Intervals in percent, of the committed result only, whose numbers the paper's may be compared with."""
    if result.profile != "paper":
        return {}, pd.DataFrame()
    printed, courses, sets, rows = printed_agreement(), pd.DataFrame(result.tables["courses"]), [], {}
    courses = courses[courses["part"] == "validation"]
    for name in data_of(result):
        found, own = result.values[name]["validation"]["accuracy"], courses[courses["data"] == name]
        means = own.groupby(["column", "step"])[["agreement", "accuracy"]].mean().round(1)
        cells = [
            {
                "printed": printed.get((name, column)),
                "own": {
                    words: [found[column][f"agreement{choice}"][end] for end in ("value", "low", "high")]
                    for choice, words in CHOICES.items()
                },
                "course": means.loc[column]["agreement"].tolist(),
            }
            for column in HEADS
        ]
        between = means.loc["alpha_alpha"]
        sets.append({
            "name": data_name(name), "chance": found["chance"]["value"], "cells": cells,
            "steps": between.index.tolist(), "accuracy": between["accuracy"].tolist(),
            "between": between["agreement"].tolist(),
        })  # fmt: skip
        rows[data_name(name)] = {
            head: f"{interval_percent(found[column]['agreement'])}; {printed.get((name, column), '–')}"
            for column, head in HEADS.items()
        }
    columns = [[head, PLAIN[column]] for column, head in HEADS.items()]
    return {"columns": columns, "choices": [*CHOICES.values()], "sets": sets}, pd.DataFrame.from_dict(
        rows, "index"
    )
