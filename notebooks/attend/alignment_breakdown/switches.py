"""What the page with nine switches is told of its networks, which :mod:`.networks` makes; without torch."""

import json
from pathlib import Path

import pandas as pd

from notebooks.shared.thresholds import enough

NETWORKS = {"AED": "GRU with attention", "AO": "attention only"}
ABOUT = Path(__file__).with_name("networks.json")
TASK_LINES = {
    "scan": "Task: write the actions of a command (SCAN), such as “jump jump” for “jump twice”.",
    "reordering_50": "Task: translate into an invented language; half of the sentences may reorder words.",
    "one_to_one": "Task: translate letters one by one, in order.",
}
SUBSETS = {"temporal_only": "μμ", "input_only": "χχ", "no_residual": "no Δ", "uniform": "none"}


def nine_switches() -> tuple[dict, pd.DataFrame]:
    """What the page is told of the networks, and how close subsets of terms come on held-out sentences."""
    networks = json.loads(ABOUT.read_text(encoding="utf-8"))
    rows = [
        {"task": network["name"], "network": NETWORKS[network["architecture"]]}
        | {f"similarity, {label}": network["similarity"][subset] for subset, label in SUBSETS.items()}
        | {"word accuracy": network["held_out"]["token_accuracy"]}
        for network in networks
    ]
    table = pd.DataFrame(rows).set_index(["task", "network"]).round(2)
    return {"networks": [_introduced(network) for network in networks]}, table


def _introduced(network: dict) -> dict:
    """Return what the page says of a network: its task, its examples, and whether it has learned the task."""
    accuracy = network["held_out"]["token_accuracy"]
    return {key: network[key] for key in ("task", "architecture", "name", "examples")} | {
        "about": TASK_LINES[network["task"]],
        "accuracy": round(accuracy, 4),
        "learned": enough(accuracy),
    }


def challenge() -> tuple[dict, pd.DataFrame]:
    """Return the network in which readers look for commands that break without Δ, and its averages."""
    data, table = nine_switches()
    (network,) = (
        network
        for network in data["networks"]
        if (network["task"], network["architecture"]) == ("scan", "AED")
    )
    chosen = table.loc[[(network["name"], NETWORKS["AED"])]]
    return {"network": "scan-AED", "about": network["about"], "start": "walk"}, chosen
