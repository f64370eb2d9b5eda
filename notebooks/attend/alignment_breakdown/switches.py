"""What the page with nine switches is told of its networks, which :mod:`.networks` makes; without torch."""

import json
from pathlib import Path

import pandas as pd

NETWORKS = {"AED": "GRU with attention", "AO": "attention only"}
ABOUT = Path(__file__).with_name("networks.json")
SUBSETS = {"temporal_only": "μμ", "input_only": "χχ", "no_residual": "no Δ", "uniform": "none"}


def nine_switches() -> tuple[dict, pd.DataFrame]:
    """What the page is told of the networks, and how close subsets of terms come on held-out sentences."""
    networks = json.loads(ABOUT.read_text(encoding="utf-8"))
    rows = [
        {"task": network["name"], "network": NETWORKS[network["architecture"]]}
        | {f"similarity, {label}": network["similarity"][subset] for subset, label in SUBSETS.items()}
        | {"words right": network["held_out"]["token_accuracy"]}
        for network in networks
    ]
    shown = [
        {key: network[key] for key in ("task", "architecture", "name", "examples")} for network in networks
    ]
    return {"networks": shown}, pd.DataFrame(rows).set_index(["task", "network"]).round(2)
