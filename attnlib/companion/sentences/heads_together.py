"""Whether several heads are several chances, in a table and in words."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import side
from attnlib.companion.tables import counted, interval_range
from attnlib.experiments.result import Result
from attnlib.plotting.multi_head import SCENARIO_LOOKS

if TYPE_CHECKING:
    import pandas as pd


def together_table(result: Result) -> "pd.DataFrame":
    """A row for each scenario: in how many networks all heads go one way, and which; a single head always."""
    import pandas as pd

    return pd.DataFrame.from_dict(
        {
            SCENARIO_LOOKS[name][0]: {
                "networks": found["n"],
                "all heads drawn": found["all_drawn"],
                "all driven away": found["none_drawn"],
                "some of each": found["mixed"],
                f"settled after {found['step']} updates": counted(found["same"]),
            }
            for name, found in result.values["together"].items()
            if found["n"]
        },
        orient="index",
    )


def chances_sentence(result: Result) -> str:
    """Whether more heads at random make it likelier that one of them is drawn to the word to be said."""
    found, heads = result.values["chances"], result.config["heads"]
    alone, several, apart = (found[name] for name in ("alone", "several", "several_less_alone"))
    if not (alone["n"] and several["n"]):
        return ""
    told = {
        "above": "More heads make it likelier.",
        "below": "More heads make it less likely.",
        "open": "That more heads make it likelier is not shown.",
    }[side(apart)]
    return (
        f"Of networks of {heads} random heads {counted(several)} have a head that is drawn "
        f"to the word to be said, of the first of their heads alone {counted(alone)}. In the "
        f"same body on the same data it is both {found['both']} times, neither {found['neither']} times, the "
        f"network's alone {found['several_only']} times and the single head's alone {found['alone_only']} "
        f"times; the difference of the shares is {interval_range(apart)} (Newcombe's interval). {told}"
    )
