"""Times to learn in words: a network that never learned has none, and a mean over it is a lower bound."""

from attnlib.companion.tables import interval_text


def updates_cell(found: dict, steps: int) -> str:
    """The mean time to 95 % for a table: ``97 ± 8``, ``> 300``, ``≥ 160 (2 not by 200)``, or –.

    Args:
        found: what :func:`attnlib.experiments.copying_courses.outcome` gives.
        steps: updates of the whole course.
    """
    if not found["n"]:
        return "–"
    if found["never"] == found["n"]:
        return f"> {steps}"
    if found["never"]:
        return f"≥ {found['steps_to_learn']['value']:.0f} ({found['never']} not by {steps})"
    return interval_text(found["steps_to_learn"], digits=0)


def updates_words(found: dict, steps: int) -> str:
    """The same as a clause; arguments as in :func:`updates_cell`, with at least one network."""
    if found["never"] == found["n"]:
        return f"95 % are not reached within {steps} updates"
    if found["never"]:
        return (
            f"{found['never']} of {found['n']} do not reach 95 % within {steps} updates, so that the mean "
            f"time to it is at least {found['steps_to_learn']['value']:.0f}"
        )
    return f"95 % are reached after {interval_text(found['steps_to_learn'], digits=0)} updates"
