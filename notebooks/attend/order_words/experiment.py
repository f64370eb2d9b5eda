"""Order words: which words turn the order round, by which parts of states, and swaps that put it to test."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from attnlib.errors import BadInput
from companion.results.aggregate import Point, by_kind, each_over_seeds, kind, over_seeds
from companion.results.asks import Ask, answers, ask
from companion.results.checks import changes_of, check_counts, check_names
from companion.runs.rungs import seeds_of, spec_of, task_of
from companion.runs.store import Store
from notebooks.attend.order_words.measure import measure_order_words

PLACE = "Aitken et al. 2021, contributions 3 and 4 (the mechanism behind sample-dependent attention)"
QUESTION = "Which words turn the order of attention round, and through which part of which states?"
KNOWN = ("scan", "scan_extended")  # and the marks of the dial above 0
SUMS = {  # name in the values → routes
    "input": ("decoder_input", "encoder_input"),
    "residual": ("decoder_residual", "encoder_residual", "encoder_context"),
    "context": ("decoder_residual", "encoder_context"),
}

FOLLOWED = ("encoder_input", "encoder_residual", "decoder")
PLACES = 16  # lags or steps that the table of memory has


@dataclass(frozen=True)
class Config:
    """Settings; a model is a task × architecture × cell × seed.

    Attributes:
        scale: set by the profile: sizes and training settings.
        task: scan, scan_extended, reordering_N with N from 1 to 100.
        architecture: AED, AO; cell: the recurrence of AED: gru, lstm, vanilla, ugrnn.
        seeds: models of each kind; as many as the plan has when None.
        width: of states and embeddings; steps: updates of every model.
        fit_samples: training samples that the components are fitted on, at most.
        pairs: held-out pairs of sentences of each kind of swap, at most.
        fit_pairs: training pairs of each kind that mean effects are fitted on, at most.
    """

    scale: str = "quick"
    task: tuple[str, ...] = ("reordering_50", "scan")
    architecture: tuple[str, ...] = ("AED", "AO")
    cell: tuple[str, ...] = ("gru",)
    seeds: int | None = None
    width: int | None = None
    steps: int | None = None
    fit_samples: int = 1_000
    pairs: int = 96
    fit_pairs: int = 300

    def __post_init__(self) -> None:
        for rung in self.task:
            name, options = task_of(rung)
            if name not in (*KNOWN, "reordering"):
                raise BadInput(
                    f"task {rung!r}: its order words are not known; take scan, scan_extended or reordering_50"
                )
            if name == "reordering" and not options.get("p", 1):
                raise BadInput(
                    f"task {rung!r} has no word that turns the order; take reordering_1 … reordering_100"
                )
        check_names(self)
        check_counts(self, "pairs", "fit_pairs")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper",
        task=("reordering_50", "reordering_100", "scan", "scan_extended"),
        cell=("gru", "lstm"),
        fit_samples=8_000,
        pairs=256,
        fit_pairs=1_000,
    ),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each model."""
    changes = changes_of(config)
    specs = {}
    for rung, architecture, cell in product(config.task, config.architecture, config.cell):
        planned = seeds_of(config.scale, rung, architecture, cell)
        for seed in planned if config.seeds is None else range(config.seeds):
            specs[spec_of(rung, architecture, scale=config.scale, cell=cell, seed=seed, **changes)] = None
    settings = {name: getattr(config, name) for name in ("fit_samples", "pairs", "fit_pairs")}
    return ask(specs, measure_order_words, **settings)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """What each kind of swapped word does to the attention, and through what.

    Returns:
        values, intervals over seeds by task, kind and swap; of content words no routes, terms and patches.
        Tables ``routes``, ``predictions`` and ``patches`` (a row a model, swap and set of rows), ``memory``
        (a row a kind of model, swap and place) and ``examples`` (a row a step of the first model's pair).
    """
    points = answers(asks(config), store)
    tables = {
        "routes": list(_rows(points, "routes", ("fork", "own"))),
        "patches": list(_rows(points, "patches", ("fork", "own"), "share")),
        "predictions": list(_rows(points, "predictions", ("all", "changed"), "similarity", content=True)),
        "memory": list(_memory(points)),
        "examples": [row for name, m in points if name["seed"] == 0 for row in _examples(name, m)],
    }
    return by_kind(points, _summary), tables


def _named(name: dict[str, object], swap: str, found: dict) -> dict[str, object]:
    named = {"task": name["task"], "kind": kind(name), "seed": name["seed"]}
    return named | {"swap": swap, "swap_kind": found["kind"]}


def _rows(
    points: list[Point], what: str, row_sets: tuple[str, ...], score: str | None = None, content: bool = False
) -> Iterator[dict]:
    """A row a model, swap and set of rows of attention; swaps of content words only where asked for."""
    for name, m in points:
        for swap, found in m.items():
            for rows in row_sets if content or found["kind"] != "content" else ():
                values = found[what][rows]
                if score is not None:
                    values = {key: entry[score] for key, entry in values.items()}
                yield _named(name, swap, found) | {"rows": rows} | values


def _memory(points: list[Point]) -> Iterator[dict]:
    """Means over seeds of the series of :data:`FOLLOWED`, for words of order."""
    groups = by_kind(points, list)
    for task, label in [(task, label) for task, kinds in groups.items() for label in kinds]:
        group = groups[task][label]
        for swap, series in product(group[0][1], FOLLOWED):
            found = group[0][1][swap]
            for place in range(min(len(found["memory"][series]), PLACES)) if found["kind"] == "order" else ():
                interval = over_seeds(group, lambda m, s=swap, r=series, p=place: m[s]["memory"][r][p])
                if interval["value"] is not None:
                    named = {"task": task, "kind": label, "swap": swap, "series": series, "place": place}
                    yield named | interval


def _examples(name: dict[str, object], m: dict) -> Iterator[dict]:
    """A row a step: the word predicted, and its row of attention in one string beside the source's words."""
    for swap, found in m.items():
        for run in ("first", "second") if "example" in found else ():
            own = found["example"][run]
            for s, row in enumerate(own["attention"]):
                yield _named(name, swap, found) | {
                    "run": run,
                    "position": found["example"]["position"],
                    "target_position": s,
                    "predicted": own["target"][s],
                    "source": " ".join(own["source"]),
                    "attention": " ".join(f"{thousandths / 1000:g}" for thousandths in row),
                }


def _summary(group: list[Point]) -> dict:
    first = group[0][1]
    found = each_over_seeds(group, lambda m: {swap: _of_swap(own) for swap, own in m.items()})
    return {swap: {name: first[swap][name] for name in ("kind", "pairs")} | found[swap] for swap in first}


def _of_swap(found: dict) -> dict:
    """What is averaged over seeds, of one model and swap."""
    numbers: dict = {name: found[name] for name in ("change", "outside")}
    for name in ("exact", "attended"):
        numbers[name] = dict(zip(("first", "second"), found[name], strict=True))
    numbers["predictions"] = {rows: found["predictions"][rows] for rows in ("all", "changed")}
    if found["kind"] == "content":
        return numbers
    numbers["routes"] = {
        rows: routes | {total: _sum([routes[name] for name in names]) for total, names in SUMS.items()}
        for rows, routes in found["routes"].items()
    }
    return numbers | {"patches": found["patches"], "terms": {"fork": found["terms"]["fork"]}}


def _sum(values: list[float | None]) -> float | None:
    return None if None in values else sum(values)
