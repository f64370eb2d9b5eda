"""The chapter on several heads in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.multi_head import SCENARIO_LOOKS

if TYPE_CHECKING:
    import pandas as pd


def scenarios_table(result: Result) -> "pd.DataFrame":
    """A row for each scenario: how many networks failed, and how long it took."""
    import pandas as pd

    rows = {}
    for scenario, (label, _) in SCENARIO_LOOKS.items():
        found = result.values[scenario]
        if found["n"]:
            share = found["failed"]
            rows[label] = {
                "networks": found["n"],
                "failed": f"{round(share['value'] * found['n'])} of {found['n']}",
                "95 % interval": f"{share['low']:.2f} to {share['high']:.2f}",
                "updates to 95 %": interval_text(found["steps_to_learn"]),
                "accuracy at the end": f"{found['lowest_accuracy']:.2f} to {found['highest_accuracy']:.2f}",
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def screening_sentence(result: Result) -> str:
    """How many heads were tried alone, and how many of them are good and bad; a warning where too few are."""
    heads, config = result.values["heads"], result.config
    if not heads["tried"]:
        return "No head has been tried alone yet."
    text = (
        f"Of {heads['tried']} heads tried alone on {config['trials']} "
        f"set{'' if config['trials'] == 1 else 's'} of data, {heads['good']} are good and {heads['bad']} bad."
    )
    if heads["bad"] < config["heads"]:
        text += (
            f" Bad ones are fewer than the {config['heads']} heads of a network, so a network of bad heads "
            f"has {heads['bad']}."
        )
    return text
