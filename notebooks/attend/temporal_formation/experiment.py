"""How temporal components form, by recurrence or from position codes, and what moves when clocks shift."""

from itertools import product

from attnlib.models.config import Cell, Positions
from companion.results.config import Attending, Positive, Task
from companion.results.measurements import Measurement, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import point
from notebooks.attend.temporal_formation.measure import measure_temporal_formation
from notebooks.shared.intervals import Point, each_over_seeds, grouped, kind
from notebooks.shared.plan import by_spec, picked
from notebooks.shared.suite import FilesConfig, each_planned
from notebooks.shared.summaries import all_wide, summarised

MOVED = ("expected", "largest", "centre", "followed", "similarity")
FOLLOWED = ("word_accuracy", "in_place", "temporal_in_place", "speed")  # by position
LONGER = ("length", "word_accuracy", "in_place", "leaves")


class Config(FilesConfig):
    """Settings; a model is a task × (AED × cell | AO × positions) × seed."""

    task: tuple[Task, ...] = ("one_to_one",)
    architecture: tuple[Attending, ...] = ("AED", "AO")  #: AED, AO
    cell: tuple[Cell, ...] = ("gru",)  #: the recurrence of AED: gru, lstm, vanilla, ugrnn
    #: the position code of AO: sinusoidal, learned, shuffled, none
    positions: tuple[Positions, ...] = ("sinusoidal", "learned", "shuffled", "none")
    #: models of each kind; as many as the plan has when None, of other codes at most 5
    seeds: Positive | None = 3


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper", task=("one_to_one", "reversal", "scan"), cell=("gru", "lstm", "vanilla", "ugrnn"),
        seeds=None, fit_samples=25_000,
    ),
}  # fmt: skip
_FEWER_SEEDS = 5  # of position codes other than the sinusoidal one


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs: list[ModelSpec] = []
    for kind_of in product(config.task, config.architecture):
        own = "cell" if kind_of[1] == "AED" else "positions"
        for variant in getattr(config, own):
            fewer = config.seeds is None and own == "positions" and variant != "sinusoidal"
            specs += each_planned(config, *kind_of, **{own: variant})[: _FEWER_SEEDS if fewer else None]
    return measurements_of(dict.fromkeys(specs), measure_temporal_formation, fit_samples=config.fit_samples)


def name_of(spec: ModelSpec) -> dict[str, object]:
    """The columns that name a model; ``kind`` is ``AED``, ``AED-lstm``, ``AO``, ``AO-learned``."""
    name, code = point(spec), spec.positions if spec.architecture == "AO" else "recurrent"
    label = kind(name) + (f"-{code}" if code not in ("recurrent", "sinusoidal") else "")
    return name | {"positions": code, "kind": label}


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Temporal components without words, rebuilt, shifted, and past the lengths trained on."""
    found = by_spec(measurements(config), store)
    points = [(name_of(spec), own["temporal_formation"]) for spec, own in found.items()]
    groups = grouped(points, "task", "kind")
    tables = {
        "models": [name | _coordinates(m) for name, m in points],
        "positions": [row for named, group in groups.items() for row in _positions(*named, group)],
        "courses": [
            {"task": name["task"], "kind": name["kind"]}
            | {"side": side, "course": course, "position": t, "first": x, "second": y}
            for name, m in points
            if name["seed"] == 0 and name["kind"] in ("AED", "AO")
            for side, found in m["courses"].items()
            for course, places in found.items()
            for t, (x, y) in enumerate(places)
        ],
    }
    return summarised(groups, _summary), tables


def _summary(m: dict) -> dict:
    longer = m["longer"] or {"lengths": []}
    return {
        "token_accuracy": m["quality"]["token_accuracy"],
        **picked(m, ("attention", "wordless", "rebuilt", "state_share", "temporal_variance")),
        "offsets": {
            name: picked(found, ("slope", "centre_slope"))
            | {f"by_{record['offset']}": picked(record, MOVED) for record in found["by_offset"]}
            for name, found in m["offsets"].items()
        },
        "longer": {
            f"times_{record['factor']:g}".replace(".", "_"): picked(record, LONGER)
            for record in longer["lengths"]
        },
        "beyond": longer.get("average_input") or {},
    }


def _coordinates(m: dict) -> dict[str, float | None]:
    average = {side: m["wordless"][side]["average"] for side in ("encoder", "decoder")}
    longest = (m["longer"] or {"lengths": []})["lengths"][-1:] or [{}]
    return {
        "token_accuracy": m["quality"]["token_accuracy"],
        **m["attention"],
        **{f"{side}_{k}": found[k] for side, found in average.items() for k in ("r2_centred", "cosine")},
        "rebuilt_average": m["rebuilt"]["average"]["both"]["similarity"],
        "rebuilt_constant": m["rebuilt"]["constant"]["both"]["similarity"],
        **{f"slope_{name}": found["slope"] for name, found in m["offsets"].items()},
        "longest": longest[0].get("length"),
        "word_accuracy_at_longest": longest[0].get("word_accuracy"),
    }


def _positions(task_name: str, label: str, group: list[Point]) -> list[dict]:
    """A row a position of the longest sentences, with intervals over the models of a kind."""
    if not (first := group[0][1]["longer"]):
        return []
    found = each_over_seeds(
        group, lambda m: {own["position"]: picked(own, FOLLOWED) for own in m["longer"]["positions"]}
    )
    here = {"task": task_name, "kind": label, "trained_up_to": first["trained_up_to"]}
    return [here | {"position": place} | all_wide(own) for place, own in found.items()]
