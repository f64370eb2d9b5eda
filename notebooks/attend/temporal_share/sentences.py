"""The chapter on temporal share and typicality in words made from its numbers."""

from attnlib.plots.style import task_name
from companion.book.intervals import side
from companion.book.tables import interval_range
from companion.results.result import Result, kinds_of
from notebooks.shared.ladder import DIAL
from notebooks.shared.sentences import Kind, named, named_with_values, on_side

CELLS = {"gru": "GRU", "lstm": "LSTM", "vanilla": "vanilla", "ugrnn": "UGRNN"}
DIRECTIONS = {"above": "rise together", "below": "go against each other"}
SHARES = {  # column → its name, and the side of 0 that speaks against the claim
    "temporal_share": ("temporal share", "below"),
    "input_share": ("input share", "above"),
}


def cells_note(result: Result) -> str:
    """Which recurrent cells the filled points have, on how many tasks; empty for the GRU alone."""
    tasks: dict[str, set[str]] = {}
    for row in result.tables["points"]:
        if row["architecture"] == "AED":
            tasks.setdefault(row["cell"], set()).add(row["task"])
    if set(tasks) <= {"gru"}:
        return ""
    listed = (f"{name} ({len(tasks[cell])})" for cell, name in CELLS.items() if cell in tasks)
    return f" Filled points look alike whatever the cell; cells and on how many tasks: {', '.join(listed)}."


def residual_sentence(result: Result) -> str:
    """The share of all terms with a residual at the far end of the dial, by kind of network."""
    by_task = result.values["by_task"]
    marks = [task for task in DIAL if task in by_task]
    if not marks:
        return ""
    parts = [
        f"{interval_range(found['residual_share'])} in {kind}" for kind, found in by_task[marks[-1]].items()
    ]
    return f"On {task_name(marks[-1])} the terms with a residual have a share of {' and '.join(parts)}."


def across_samples_sentences(result: Result) -> str:
    """Where the correlation among samples is above 0, where it is open, and where it is below."""
    return "\n".join(f"* {_signs(result, column)}" for column in SHARES)


def _signs(result: Result, column: str) -> str:
    name, against = SHARES[column]
    kinds, claimed = _among_samples(result, column), {"above": "below", "below": "above"}[against]
    parts = [
        f"{DIRECTIONS[claimed]}, as the claim has it, in {named(on_side(kinds, claimed)) or 'none'}",
        f"cannot be told from unrelated in {named(on_side(kinds, 'open')) or 'none'}",
        f"{DIRECTIONS[against]} in {named_with_values(on_side(kinds, against)) or 'none'}",
    ]
    return f"Typicality and {name}: they {'; they '.join(parts)}."


def _among_samples(result: Result, column: str) -> list[Kind]:
    found = kinds_of(result, result.values["across_samples"])
    return [(task, kind, values[column]) for task, kind, values in found]


def falsifier_sentences(result: Result) -> str:
    """Whether what would change our mind has happened: the dial, the samples, each architecture."""
    stuck = [
        kind
        for kind, found in result.values["dial"].items()
        if found and side(found["typicality"]) == "below" and side(found["temporal_share"]) != "below"
    ]
    lines = [
        f"The dial lowers typicality and not the temporal share: {_happened(', '.join(stuck))}.",
        *(
            f"Among samples, the correlation with the {name} points the other way: "
            f"{_happened(named(on_side(_among_samples(result, column), against)))}."
            for column, (name, against) in SHARES.items()
        ),
    ]
    for column, (name, against) in SHARES.items():
        other = [
            kind
            for kind, found in result.values["by_architecture"].items()
            if side(found["spearman"][column]) == against
        ]
        lines.append(
            f"Within one kind of network, the correlation with the {name} points the other way: "
            f"{_happened(', '.join(other))}."
        )
    return "\n".join(f"* {line}" for line in lines)


def _happened(where: str) -> str:
    return f"this has happened, in {where}" if where else "this has not happened"
