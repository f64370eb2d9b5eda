"""Order words: which words turn the order round, by which parts of states, and swaps that put it to test."""

from collections.abc import Iterator
from typing import Annotated

from attnlib.errors import BadInput
from attnlib.models.config import Cell
from companion.results.config import Attending, Positive, check_width, looked_up
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from companion.runs.suite import task_of
from notebooks.attend.order_words.measure import measure_order_words
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind
from notebooks.shared.plan import picked, settings_of
from notebooks.shared.suite import PlannedConfig, model_specs
from notebooks.shared.summaries import rows_of

PAPER_TASKS = ("reordering_50", "reordering_100", "scan", "scan_extended")
SUMS = {  # name in the values → routes
    "input": ("decoder_input", "encoder_input"),
    "residual": ("decoder_residual", "encoder_residual", "encoder_context"),
    "context": ("decoder_residual", "encoder_context"),
}
FOLLOWED = ("encoder_input", "encoder_residual", "decoder")
PLACES = 16  # lags or steps that the table of memory has


def _turned(task_name: str) -> None:
    name, options = task_of(task_name)
    if name not in ("scan", "scan_extended", "reordering"):
        raise BadInput(
            f"task {task_name!r}: its order words are not known; take scan, scan_extended or reordering_50"
        )
    if name == "reordering" and not options.get("p", 1):
        raise BadInput(
            f"task {task_name!r} has no word that turns the order; take reordering_1 … reordering_100"
        )


class Config(PlannedConfig):
    """Settings; a model is a task × architecture × cell × seed."""

    #: scan, scan_extended, reordering_N with N from 1 to 100
    task: tuple[Annotated[str, looked_up(_turned)], ...] = ("reordering_50", "scan")
    architecture: tuple[Attending, ...] = ("AED", "AO")  #: AED, AO
    cell: tuple[Cell, ...] = ("gru",)  #: the recurrence of AED: gru, lstm, vanilla, ugrnn
    fit_samples: Positive = 1_000
    pairs: Positive = 96  #: held-out pairs of sentences of each kind of swap, at most
    fit_pairs: Positive = 300  #: training pairs of each kind that mean effects are fitted on, at most

    def check(self) -> None:
        check_width(self)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper", task=PAPER_TASKS, cell=("gru", "lstm"), fit_samples=8_000, pairs=256, fit_pairs=1_000
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    settings = settings_of(config, "fit_samples", "pairs", "fit_pairs")
    return measurements_of(model_specs(config), measure_order_words, **settings)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """What each kind of swapped word does to the attention, and through what; intervals over seeds.

    Content words have no routes, terms and patches.
    """
    points = [(name | {"kind": kind(name)}, m) for name, m in answers(measurements(config), store)]
    followed = by_kind(points, lambda group: each_over_seeds(group, _memory))
    memory = rows_of(followed, "task", "kind", "swap", "series", "place")
    swaps = [
        (picked(name, ("task", "kind", "seed")) | {"swap": swap, "swap_kind": found["kind"]}, found)
        for name, m in points
        for swap, found in m.items()
    ]
    order = [(name, found) for name, found in swaps if found["kind"] != "content"]
    tables = {
        "routes": _rows(order, "routes", ("fork", "own")),
        "patches": _rows(order, "patches", ("fork", "own"), "share"),
        "predictions": _rows(swaps, "predictions", ("all", "changed"), "similarity"),
        "memory": [row for row in memory if row["value"] is not None],
        "examples": [row for name, found in swaps if name["seed"] == 0 for row in _examples(name, found)],
    }
    return by_kind(points, _summary), tables


def _rows(swaps: list[Point], what: str, row_sets: tuple[str, ...], score: str | None = None) -> list[dict]:
    """A row a swap and set of rows of attention; of each number its ``score``, where it has several."""
    return [
        name
        | {"rows": rows}
        | {key: each[score] if score else each for key, each in found[what][rows].items()}
        for name, found in swaps
        for rows in row_sets
    ]


def _memory(m: dict) -> dict:
    return {
        swap: {series: dict(enumerate(found["memory"][series][:PLACES])) for series in FOLLOWED}
        for swap, found in m.items()
        if found["kind"] == "order"
    }


def _examples(name: dict[str, object], found: dict) -> Iterator[dict]:
    """A row a step: the word predicted, and its row of attention in one string beside the source's words."""
    for run in ("first", "second") if "example" in found else ():
        own = found["example"][run]
        here = {"position": found["example"]["position"], "source": " ".join(own["source"])}
        for s, row in enumerate(own["attention"]):
            weights = " ".join(f"{thousandths / 1000:g}" for thousandths in row)
            step = {"target_position": s, "predicted": own["target"][s], "attention": weights}
            yield name | {"run": run} | here | step


def _summary(group: list[Point]) -> dict:
    first = group[0][1]
    found = each_over_seeds(group, lambda m: {swap: _of_swap(own) for swap, own in m.items()})
    return {swap: picked(first[swap], ("kind", "pairs")) | found[swap] for swap in first}


def _of_swap(found: dict) -> dict:
    numbers = picked(found, ("change", "outside"))
    for name in ("exact", "attended"):
        numbers[name] = dict(zip(("first", "second"), found[name], strict=True))
    numbers["predictions"] = picked(found["predictions"], ("all", "changed"))
    if found["kind"] == "content":
        return numbers
    numbers["routes"] = {
        rows: routes | {total: _sum([routes[name] for name in names]) for total, names in SUMS.items()}
        for rows, routes in found["routes"].items()
    }
    return numbers | {"patches": found["patches"], "terms": {"fork": found["terms"]["fork"]}}


def _sum(values: list[float | None]) -> float | None:
    return None if None in values else sum(values)
