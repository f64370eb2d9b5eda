"""What the instrument of the page draws: the course of every network that learns to attend."""

import pandas as pd

from companion.results.result import Result

WAYS = {"drawn": "drawn to the word", "away": "driven away", None: "neither"}


def networks(result: Result) -> tuple[dict, pd.DataFrame]:
    """Every network's course, the weight on the right word times the length, and a table of how it ends."""
    length, courses = result.config["length"], pd.DataFrame(result.tables["courses"])
    courses = courses[courses["network"] == "learned"]
    found = []
    for outcome in result.tables["outcomes"]:
        own = courses[(courses["kind"] == outcome["kind"]) & (courses["seed"] == outcome["seed"])]
        if outcome["network"] == "learned":
            curves = {
                "accuracy": own["accuracy"],
                "right": own["attention_right"] * length,
                "later": own["attention_later"] * length,
                "known": own["probe_agreement"],
            }
            rounded = {name: [float(f"{value:.3g}") for value in curve] for name, curve in curves.items()}
            found.append({"kind": outcome["kind"], "seed": outcome["seed"], "way": outcome["way"]} | rounded)
    steps = {kind: own["steps"].unique().tolist() for kind, own in courses.groupby("kind", sort=False)}
    ends = [
        {"sentences": own["kind"], "attention is": WAYS[own["way"]]}
        | {
            "accuracy": own["accuracy"][-1],
            "weight × length": own["right"][-1],
            "words known": own["known"][-1],
        }
        for own in found
    ]
    groups = pd.DataFrame(ends).groupby(["sentences", "attention is"], sort=False)
    table = groups.mean().round(2).assign(networks=groups.size())
    return {"length": length, "judged": result.config["steps"], "steps": steps, "networks": found}, table
