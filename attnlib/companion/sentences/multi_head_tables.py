"""The scenarios of the chapter on several heads in tables: how many networks fail, and after how long."""

from typing import TYPE_CHECKING

from attnlib.companion.sentences.copying_times import updates_cell
from attnlib.companion.tables import counted
from attnlib.experiments.copying_courses import enough
from attnlib.experiments.result import Result
from attnlib.plotting.multi_head import SCENARIO_LOOKS

if TYPE_CHECKING:
    import pandas as pd

ELSEWHERE = {
    "elsewhere_good": "good heads alone, in other bodies",
    "elsewhere_bad": "bad heads alone, in other bodies",
}
LOOKS = (0.6, 0.8, 0.9, 1, 1.2, 2)  # of the updates that networks are judged by


def scenarios_table(result: Result) -> "pd.DataFrame":
    """A row for each scenario: how many networks failed, of how many sets of heads, and how long it took."""
    import pandas as pd

    names = {scenario: label for scenario, (label, _) in SCENARIO_LOOKS.items()} | ELSEWHERE
    rows = {}
    for scenario, label in names.items():
        found = result.values[scenario]
        if found["n"]:
            share = found["failed"]
            rows[label] = {
                "failed, share": (f"{counted(share)}, {share['low']:.2f} to {share['high']:.2f}"),
                "sets of heads": found["head_sets"],
                "updates to 95 %": updates_cell(found, result.config["steps"]),
                f"accuracy after {result.config['steps']}": (
                    f"{found['lowest_accuracy']:.2f} to {found['highest_accuracy']:.2f}"
                ),
            }
            later = found["followed"]
            if later["steps"] > result.config["steps"]:
                rows[label][f"accuracy after {later['steps']}"] = (
                    f"{later['lowest_accuracy']:.2f} to {later['highest_accuracy']:.2f}"
                )
    return pd.DataFrame.from_dict(rows, orient="index")


def bounds_table(result: Result) -> "pd.DataFrame":
    """How many networks of each scenario are below 95 % at looks around the one that judges them."""
    import pandas as pd

    looks = sorted({row["steps"] for row in result.tables["courses"]})
    at = sorted({min(looks, key=lambda look: abs(look - part * result.config["steps"])) for part in LOOKS})
    rows: dict[str, dict[str, str]] = {}
    for scenario, (label, _) in SCENARIO_LOOKS.items():
        own = [row for row in result.tables["courses"] if row["scenario"] == scenario]
        for look in at if own else ():
            accuracy = [row["accuracy"] for row in own if row["steps"] == look]
            below = sum(not enough(one) for one in accuracy)
            rows.setdefault(label, {})[f"after {look}"] = f"{below} of {len(accuracy)}"
    return pd.DataFrame.from_dict(rows, orient="index")
