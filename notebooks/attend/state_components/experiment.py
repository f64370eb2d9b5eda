"""State components: how much of the states position and word explain, on both sides, and what they look
like."""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, get_args

from attnlib.errors import BadInput
from attnlib.models.config import Architecture
from companion.results.aggregate import Point, by_kind, kind, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.runs.rungs import rung_of, task_of
from companion.runs.spec import ModelSpec
from notebooks.attend.state_components.measure import SIDES, measure_state_components
from notebooks.shared.ladder import PAPER_TASKS, LadderConfig, model_specs

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Aitken et al. 2021, contribution 1 (decomposition of hidden states)"
QUESTION = "How much of the hidden states do position and word explain, together and each by itself?"
SHARES = ("temporal", "input", "additive", "averages", "temporal_unique", "input_unique")
DIFFERENCES = ("temporal", "input", "fit")


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")


@dataclass(frozen=True)
class Config(LadderConfig):
    """Settings of the ladder, on fewer rungs and with VED beside the others.

    Attributes:
        ved_task: those of the rungs on which VED is trained; on long sentences it learns little.
    """

    ARCHITECTURES: ClassVar[tuple[str, ...]] = get_args(Architecture)
    TASKS: ClassVar[tuple[tuple[str, ...], ...]] = (QUICK_TASKS, PAPER_TASKS)

    task: tuple[str, ...] = QUICK_TASKS
    architecture: tuple[str, ...] = ("VED", "AED", "AO")
    fit_samples: int = 2_000
    ved_task: tuple[str, ...] = QUICK_TASKS

    def __post_init__(self) -> None:
        super().__post_init__()
        for rung in self.ved_task:
            task_of(rung)
        if not any(_has_model(self, *pair) for pair in product(self.task, self.architecture)):
            raise BadInput("no model is left: VED is trained on the rungs of ved_task alone, task has none")


def _has_model(config: Config, rung: str, architecture: str) -> bool:
    return architecture != "VED" or rung in config.ved_task


PROFILES = {
    "quick": Config(seeds=2),
    "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What is asked of each model."""
    specs = [spec for spec in model_specs(config) if _has_model(config, rung_of(spec), spec.architecture)]
    return ask(specs, measure_state_components, fit_samples=config.fit_samples)


def models(config: Config) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the variance of held-out states, averages against the exact fit, coordinates for figures.

    Returns:
        values ``<task>.<kind>.<side>.held_out.{temporal, input, additive, averages, temporal_unique,
        input_unique}`` (R² of mu; of the token's mean; of mu + chi by least squares and by averages; unique
        parts), ``….fitted.…`` on the fitting samples, ``….gain`` (R² of the exact fit less that of averages,
        held out), ``….difference.{temporal, input, fit}``, ``….unseen``;
        ``<task>.<kind>.quality.{token_accuracy, exact_match}``: intervals over seeds. Tables: ``variance`` (a
        row a model, side and share), ``difference``, and of seed 0 ``temporal`` (positions on the axes),
        ``input`` (words), ``states``, ``explained`` (axes).
    """
    points = answers(asks(config), store)
    variance = [
        name | {"kind": kind(name), "side": side, "share": share, "r_squared": m[side]["held_out"][share]}
        for name, m in points
        for side in SIDES
        for share in SHARES
    ]
    differences = [
        name | {"kind": kind(name), "side": side} | m[side]["difference"]
        for name, m in points
        for side in SIDES
    ]
    tables = {"variance": variance, "difference": differences, "temporal": [], "input": [], "states": []}
    tables["explained"] = []
    for name, m in points:
        if "pictures" in m:
            for table, records in _drawn(name | {"kind": kind(name)}, m["pictures"]).items():
                tables[table] += records
    return by_kind(points, _summary), tables


def _summary(group: list[Point]) -> dict:
    found: dict = {side: _summary_of_side([(name, m[side]) for name, m in group]) for side in SIDES}
    found["quality"] = {
        name: over_seeds(group, lambda m, n=name: m["quality"][n])
        for name in ("token_accuracy", "exact_match")
    }
    found["seeds"] = len(group)
    return found


def _summary_of_side(group: list[Point]) -> dict:
    shares_fitted = group[0][1]["fitted"]
    return {
        "held_out": {s: over_seeds(group, lambda m, s=s: m["held_out"][s]) for s in SHARES},
        "fitted": {s: over_seeds(group, lambda m, s=s: m["fitted"][s]) for s in shares_fitted},
        "gain": over_seeds(group, lambda m: m["held_out"]["additive"] - m["held_out"]["averages"]),
        "difference": {s: over_seeds(group, lambda m, s=s: m["difference"][s]) for s in DIFFERENCES},
        "unseen": over_seeds(group, lambda m: m["unseen"]),
    }


def _drawn(name: dict, pictures: dict) -> dict[str, list[dict]]:
    """Flat records of one model's pictures."""
    found: dict[str, list[dict]] = {
        "explained": [
            name | {"space": space, "axis": axis, "share": share}
            for space, shares in pictures["explained"].items()
            for axis, share in enumerate(shares)
        ],
        "temporal": [],
        "input": [],
        "states": [],
    }
    for side in SIDES:
        drawn, here = pictures[side], name | {"side": side}
        for table, key, entries in (("temporal", "position", "positions"), ("input", "word", "words")):
            for entry, own, together in zip(
                drawn[entries], drawn[table], drawn[f"{table}_together"], strict=True
            ):
                record = here | {key: entry} | {f"pc{i + 1}": value for i, value in enumerate(own)}
                found[table].append(record | {f"together{i + 1}": value for i, value in enumerate(together)})
        found["states"] += [
            here | {"word": drawn["words"][word], "pc1": x, "pc2": y} for word, x, y in drawn["states"]
        ]
    return found
