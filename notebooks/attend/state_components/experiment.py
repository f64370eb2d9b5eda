"""State components: how much of the states position and word explain, and what they look like."""

from collections.abc import Iterator
from itertools import product

from attnlib.errors import BadInput
from attnlib.models.config import Architecture, Cell
from companion.results.config import Task
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from companion.runs.suite import task_name_of
from notebooks.attend.state_components.measure import SIDES, measure_state_components
from notebooks.shared.intervals import by_kind, each_over_seeds, kind
from notebooks.shared.plan import picked
from notebooks.shared.suite import PAPER_TASKS, SuiteConfig, model_specs

SHARES = ("temporal", "input", "additive", "averages", "temporal_unique", "input_unique")
QUICK_TASKS = ("one_to_one", "reordering_50", "scan")


class Config(SuiteConfig):
    """Settings of the task suite, on fewer tasks and with VED beside the others."""

    task: tuple[Task, ...] = QUICK_TASKS
    #: VED, recurrent without attention, AED with it, AO, attention only
    architecture: tuple[Architecture, ...] = ("VED", "AED", "AO")
    cell: tuple[Cell, ...] = ("gru",)  #: recurrence of VED and AED: gru, lstm, vanilla, ugrnn. AO has none.
    #: tasks on which VED is trained. On long sentences it learns little.
    ved_task: tuple[Task, ...] = QUICK_TASKS

    def check(self) -> None:
        super().check()
        if not any(_has_model(self, *pair) for pair in product(self.task, self.architecture)):
            raise BadInput("no model is left: VED is trained on the tasks of ved_task alone, task has none")


def _has_model(config: Config, task_name: str, architecture: str) -> bool:
    return architecture != "VED" or task_name in config.ved_task


PROFILES = {"quick": Config(seeds=2), "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = (s for s in model_specs(config) if _has_model(config, task_name_of(s), s.architecture))
    return measurements_of(specs, measure_state_components, fit_samples=config.fit_samples)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the variance of held-out states, averages against the exact fit, coordinates for figures.

    Of each side R² of position, word, both by least squares (``additive``) and by averages, and what is
    unique to each; ``gain`` is what least squares explains more, held out.
    """
    points = [(name | {"kind": kind(name)}, m) for name, m in answers(measurements(config), store)]
    sides = [(name | {"side": side}, m[side]) for name, m in points for side in SIDES]
    pictures = [(name, m["pictures"]) for name, m in points if "pictures" in m]
    drawn = [(name | {"side": side}, own[side]) for name, own in pictures for side in SIDES]
    return by_kind(points, lambda group: each_over_seeds(group, _numbers) | {"seeds": len(group)}), {
        "variance": [
            name | {"share": share, "r_squared": explained}
            for name, own in sides
            for share, explained in picked(own["held_out"], SHARES).items()
        ],
        "difference": [name | own["difference"] for name, own in sides],
        "explained": [
            name | {"space": space, "axis": axis, "share": share}
            for name, own in pictures
            for space, shares in own["explained"].items()
            for axis, share in enumerate(shares)
        ],
        "temporal": [row for each in drawn for row in _places(*each, "temporal", "position")],
        "input": [row for each in drawn for row in _places(*each, "input", "word")],
        "states": [
            name | {"word": own["words"][word], "pc1": x, "pc2": y}
            for name, own in drawn
            for word, x, y in own["states"]
        ],
    }


def _places(name: dict, drawn: dict, part: str, entry: str) -> Iterator[dict]:
    """A row for each position or word of a side: where it lies in the space of its part, and of both."""
    columns = drawn[f"{entry}s"], drawn[part], drawn[f"{part}_together"]
    for what, own, together in zip(*columns, strict=True):
        places = {f"pc{i}": at for i, at in enumerate(own, 1)}
        yield name | {entry: what} | places | {f"together{i}": at for i, at in enumerate(together, 1)}


def _numbers(m: dict) -> dict:
    found = picked(m, SIDES, ("held_out", "fitted", "difference", "unseen"))
    for own in found.values():
        own["gain"] = own["held_out"]["additive"] - own["held_out"]["averages"]
        own["held_out"] = picked(own["held_out"], SHARES)
        own["difference"] = picked(own["difference"], ("temporal", "input", "fit"))
    return found | {"quality": picked(m["quality"], ("token_accuracy", "exact_match"))}
