"""The chapter on the locality of the probe in words and a table made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import side, unless_told
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.learn.probe_locality.drawing import LOOKS
from notebooks.learn.probe_locality.experiment import PLACES

if TYPE_CHECKING:
    import pandas as pd

STAGES = {
    "early": "The first time that networks are right for three sequences in four",
    "midway": "Midway",
    "late": "At the end",
}


def locality_table(result: Result) -> "pd.DataFrame":
    """γ at each place, early, midway and late; a stage that no network reached is left out."""
    import pandas as pd

    rows = {
        stage: {"updates": interval_text(found["step"], digits=0)}
        | {LOOKS[place][0]: interval_text(found[place]) for place in PLACES}
        for stage, found in _reached(result)
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def networks_words(result: Result) -> str:
    """How many networks the courses are of, for captions: ``5 networks``."""
    n = len({row["seed"] for row in result.tables["courses"]})
    return f"{n} network{'' if n == 1 else 's'}"


def locality_sentences(result: Result) -> str:
    """A sentence a stage: where the log odds of the right label are large; and whether they still move."""
    lines = [_sentence(stage, found) for stage, found in _reached(result)]
    lines += [_mean(result.values["late"]), _lead(result.values["lead"]), _rest(result.values)]
    return "\n".join(f"* {line}" for line in lines)


def outcome_sentences(result: Result) -> str:
    """Beside what would change our mind: what is largest in the end, and what is there at first."""
    early, late = (result.values[stage] for stage in ("early", "late"))
    largest = max(PLACES, key=lambda place: late[place]["value"])
    lead = late["last_over_keyword"]
    lines = [
        f"Largest in the end: {LOOKS[largest][0]}. The keyword has {interval_text(late['keyword'])}, the "
        f"last position {interval_text(late['last'])}, the mean over positions "
        f"{interval_text(late['mean'])}; the last less the keyword is {interval_range(lead)}"
        f"{unless_told(lead)}."
    ]
    if early["step"]["n"]:
        lines.append(
            "When networks are first right for three sequences in four, γ is "
            f"{interval_text(early['last'])} at the last position, {interval_text(early['keyword'])} at the "
            "keyword."
        )
    return "\n".join(f"* {line}" for line in lines)


def _reached(result: Result) -> list[tuple[str, dict]]:
    return [(stage, result.values[stage]) for stage in STAGES if result.values[stage]["step"]["n"]]


def _sentence(stage: str, found: dict) -> str:
    ordered = sorted(PLACES, key=lambda place: -found[place]["value"])
    numbers = ", ".join(f"{LOOKS[place][0]} {found[place]['value']:z.2f}" for place in PLACES)
    return (
        f"{STAGES[stage]} ({interval_text(found['step'], digits=0)} updates, {found['step']['n']} networks), "
        f"γ is: {numbers.replace('-', '−')}. "
        f"From large to small the places order {', '.join(LOOKS[place][0] for place in ordered)}."
    )


def _mean(late: dict) -> str:
    """Whether the mean over positions is near the keyword in the end, as equation 25 says."""
    apart = late["mean_over_keyword"]
    told = {
        "above": "The mean is above the keyword.",
        "below": "The mean stays below the keyword.",
        "open": "Which of the two is larger cannot be told.",
    }
    return (
        "Equation 25 also says that in the end the mean over positions is about what the keyword has. "
        f"Here the mean is {interval_text(late['mean'])}, the keyword {interval_text(late['keyword'])}; "
        f"the mean less the keyword is {interval_range(apart)}. {told[side(apart)]}"
    )


def _lead(lead: dict) -> str:
    """Where in training the last position is above the keyword, if anywhere."""
    most = f"Largest is its lead after {lead['step']} updates, {interval_range(lead['most'])}."
    if not lead["ahead"]:
        return f"At none of {lead['looks']} looks the last position is above the keyword. {most}"
    between = f"the first after {lead['first']} updates and the last after {lead['final']}"
    return (
        f"The last position is above the keyword, by intervals above 0, at {lead['ahead']} of "
        f"{lead['looks']} looks, {between}, not corrected for looking so often. {most}"
    )


def _rest(values: dict) -> str:
    """Whether the lead of the last position, which equation 25 is about, has come to rest."""
    midway, late, moved = values["midway"], values["late"], values["moved"]["last_over_keyword"]
    text = (
        f"Between {midway['step']['value']:.0f} and {late['step']['value']:.0f} updates the last position's "
        f"lead over the keyword goes from {interval_range(midway['last_over_keyword'])} to "
        f"{interval_range(late['last_over_keyword'])}, "
    )
    told = {
        "above": "It still grows, so these numbers are no limit.",
        "below": "It shrinks again, so these numbers are no limit.",
        "open": "That it has come to rest is not shown, nor that it has not.",
    }
    return f"{text}by {interval_range(moved)}. {told[side(moved)]}"
