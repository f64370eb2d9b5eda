"""What the dial of the page draws: networks as points with their matrices, and what each kind has."""

from collections.abc import Iterator
from string import ascii_letters, digits

import pandas as pd

from attnlib.decomposition.components import PART_NAMES
from companion.results import registry
from companion.results.measurements import answers, measurements_of
from companion.results.result import Result
from companion.runs.answer import ARCHIVE
from companion.runs.store import Store
from notebooks.attend.temporal_share.experiment import PROFILES, family, measurements
from notebooks.shared.intervals import kind
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.style import task_name

NETWORK = ["task", "kind", "decay"]
MEANS = ["typicality", "temporal_share", "input_share", "token_accuracy"]
STEPS = 36  # weights in so many steps, a letter each: the matrices of all networks have to fit into the page
DECAY = registry.load("regularisation")  # the experiment whose networks have weight decay
LETTERS = (digits + ascii_letters)[: STEPS + 1]


def dial(result: Result) -> tuple[dict, pd.DataFrame]:
    """Points with their average matrices, and of each kind one sample and the mean shares of the nine terms.

    These are of committed results and the archive behind them; a run of the reader's own has no dial.
    """
    if result.profile != "paper":
        return {}, pd.DataFrame()
    learned = {
        tuple(point[name] for name in ("task", "kind", "seed")): point for point in result.tables["points"]
    }
    points, kinds = [], {}
    for name, level, found in _networks():
        own = name["task"], kind(name), name["seed"]
        outcomes = DECAY.outcomes(found)
        point = {"task": own[0], "kind": own[1], "seed": own[2], "decay": level}
        # Whether a translator counts was asked of those without decay.
        counts = outcomes["accuracy"] >= DECAY.LEARNED or (not level and learned[own]["learned"])
        point |= {"learned": counts, **{mean: outcomes[mean.removeprefix("token_")] for mean in MEANS}}
        average = found["cell"]["average"]
        points.append(point | {"across": len(average[0]), "average": _letters(average)})
        if not level:
            kinds.setdefault(own[:2], []).append(found)
    points = pd.DataFrame(points)
    names = {task: [task_name(task), family(task)] for task in dict.fromkeys(points["task"])}
    table = (
        points.assign(task=points["task"].map(task_name)).groupby(NETWORK, sort=False)[MEANS].mean().round(2)
    )
    table = table.rename(columns=lambda name: name.replace("_", " ")).rename_axis(
        ["task", "network", "weight decay"]
    )
    columns = {name: column.tolist() for name, column in points.round(dict.fromkeys(MEANS, 3)).items()}
    return {
        "points": columns,
        "letters": LETTERS,
        "kinds": [*map(_kind, kinds.items())],
        "tasks": names,
    }, table


def _networks() -> Iterator[tuple[dict, float, dict]]:
    """Every network of the page, then those with weight decay: its name, the level, and what was measured."""
    store, own = Store(ARCHIVE, archive=ARCHIVE, trains=False), DECAY.PROFILES["paper"]
    for measurement in measurements(PROFILES["paper"]):
        if measurement.measure is measure_alignment_terms:
            yield from ((name, 0, found) for name, found in answers([measurement], store))
    for spec, columns in DECAY.axis(own).items():
        if level := columns["weight_decay"]:
            asked = measurements_of([spec], measure_alignment_terms, fit_samples=own.fit_samples)
            yield from ((name, level, found) for name, found in answers(asked, store))


def _kind(entry: tuple[tuple[str, str], list[dict]]) -> dict:
    """One sample of the first network of a kind, and shares over all."""
    (task, own), found = entry
    sample = found[0]["cell"]["examples"][0]
    shares = pd.DataFrame([each["covariance_share"] for each in found]).mean()
    return {
        "task": task,
        "kind": own,
        "sample": _letters(sample["attention"]),
        "rows": sample["predicted"],
        "columns": sample["source"],
        "shares": [[round(shares[f"{d}_{e}"], 4) for e in PART_NAMES] for d in PART_NAMES],
    }


def _letters(matrix: list[list[float]]) -> str:
    return "".join(LETTERS[round(STEPS * weight)] for row in matrix for weight in row)
