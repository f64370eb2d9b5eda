"""Claims as they are written, for tests."""

READINGS = {
    "readings": {"labels as the text says": {"SST": "sst_as_text"}},
    "starred": {"xi_star": "starred"},
}


def claim(name, **fields):
    return {
        "id": name, "place": "Section 1", "says": "It is above five.", "experiment": "toy", "keys": ["x"],
        "judge": {"kind": "inequality", "relation": ">", "threshold": 5}, "profiles": ["quick", "paper"],
    } | fields  # fmt: skip


def rule(**fields):
    """A rule of numbers for Table 2."""
    return {
        "tables": [2], "experiment": "agreement", "key": "{dataset}.validation.{quantity}",
        "datasets": {"SST": "sst"}, "quantities": {"xi_star": "final"},
        "judge": {"kind": "tolerance", "absolute": 5}, "profiles": ["paper"],
    } | fields  # fmt: skip
