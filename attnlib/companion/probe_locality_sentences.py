"""The chapter on the locality of the probe in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_text
from attnlib.experiments.probe_locality import PLACES
from attnlib.experiments.result import Result
from attnlib.plotting.probe_locality import LOOKS

if TYPE_CHECKING:
    import pandas as pd

STAGES = {"early": "The first time that networks are right for three sequences in four", "late": "At the end"}


def locality_table(result: Result) -> "pd.DataFrame":
    """γ at each place, early and late; a stage that no network reached is left out."""
    import pandas as pd

    rows = {
        stage: {"updates": _whole(found["step"])}
        | {LOOKS[place][0]: interval_text(found[place]) for place in PLACES}
        for stage, found in _reached(result)
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def locality_sentences(result: Result) -> str:
    """A sentence a stage: where the log odds of the right label are large, in falling order."""
    return "\n".join(f"* {_sentence(stage, found)}" for stage, found in _reached(result))


def _reached(result: Result) -> list[tuple[str, dict]]:
    return [(stage, result.values[stage]) for stage in STAGES if result.values[stage]["step"]["n"]]


def _sentence(stage: str, found: dict) -> str:
    ordered = sorted(PLACES, key=lambda place: -found[place]["value"])
    numbers = ", ".join(f"{LOOKS[place][0]} {found[place]['value']:.2f}" for place in PLACES)
    return (
        f"{STAGES[stage]} ({_whole(found['step'])} updates, {found['step']['n']} networks), γ is: {numbers}. "
        f"From large to small the places order {', '.join(LOOKS[place][0] for place in ordered)}."
    )


def _whole(interval: dict) -> str:
    """Updates are whole numbers."""
    if interval["low"] is None:
        return f"{interval['value']:.0f}"
    return f"{interval['value']:.0f} ± {interval['high'] - interval['value']:.0f}"
