"""Several heads make learning likelier: one good first query map among bad ones is enough."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments.aggregate import Point
from attnlib.experiments.asks import Ask, ask, specs_of
from attnlib.experiments.copying_courses import LEARNED, outcome, tables
from attnlib.experiments.measures.copying import measure_copying
from attnlib.recipes.recipe import RecipeSpec
from attnlib.tasks.copying import words_of

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, Figure 6; section 5.2"
QUESTION = "Do several heads help because one of them is likely to start well?"
SCENARIOS = ("all_bad", "one_good", "random")
BAD = 0.6  # accuracy under which a single head's course ends on all data seeds (the authors' configuration)
UNSEEN = 100_000  # heads of the random scenario are numbered from here, beyond all candidates


@dataclass(frozen=True)
class Config:
    """Settings.

    Attributes:
        candidates: heads that are tried alone, numbered from 0.
        trials: data seeds that each is tried on.
        seeds: networks of each scenario.
        heads: heads of each.
        length: words of a permutation.
        width: of embeddings and states.
        steps: updates; every: updates between two looks.
    """

    candidates: int = 16
    trials: int = 1
    seeds: int = 3
    heads: int = 4
    length: int = 12
    width: int = 32
    steps: int = 200
    every: int = 10

    def __post_init__(self) -> None:
        words_of("permutation", self.length)
        for name in ("candidates", "trials", "seeds", "heads", "width", "steps", "every"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.candidates >= UNSEEN:
            raise BadInput(f"{self.candidates} candidates; expected fewer than {UNSEEN}")


PROFILES = {
    "quick": Config(),
    "paper": Config(candidates=40, trials=3, seeds=20, heads=8, length=40, width=256),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of the networks that are known before any is trained: single heads, and random ones.

    Networks of good and bad heads are named by the outcome of the single ones; :func:`compute` asks them.
    """
    single = [spec for _, spec in _singles(config)]
    random = [spec for _, spec in _scenario("random", config, [], [])]
    return ask([*single, *random], measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that are known before any is made, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Which single heads are good or bad, and what becomes of networks that combine them.

    A head is *good* when, alone, it reaches 95 % accuracy on every data seed, *bad* when it ends under 60 %
    on every one. Heads of a network are drawn among them without repetition; where there are too few, as many
    as there are stand in it, and without any good or bad head its scenario has no networks.

    Returns:
        values ``<scenario>.{n, failed, lowest_accuracy, …}``, see
        :func:`~attnlib.experiments.copying_courses.outcome`; ``single`` the same of single heads;
        ``heads.{tried, good, bad}``, counts; tables as in
        :func:`~attnlib.experiments.copying_courses.tables`, ``single`` being a scenario there too.
    """
    singles = list(_measured(_singles(config), store))
    good, bad = _screened(singles, config.trials)
    found = {"single": singles}
    for scenario in SCENARIOS:
        found[scenario] = list(_measured(_scenario(scenario, config, good, bad), store))
    values: dict[str, dict] = {name: outcome(points, config.steps) for name, points in found.items()}
    tried = {name["heads"] for name, _ in singles}
    values["heads"] = {"tried": len(tried), "good": len(good), "bad": len(bad)}
    return values, tables([point for points in found.values() for point in points])


def _screened(singles: list[Point], trials: int) -> tuple[list[int], list[int]]:
    """Numbers of the good and of the bad heads among those with all their trials."""
    courses: dict[int, list[list[float]]] = {}
    for name, course in singles:
        courses.setdefault(int(name["heads"]), []).append(course["accuracy"])
    whole = {head: own for head, own in courses.items() if len(own) == trials}
    good = [head for head, own in whole.items() if all(max(accuracy) >= LEARNED for accuracy in own)]
    bad = [head for head, own in whole.items() if all(accuracy[-1] < BAD for accuracy in own)]
    return good, bad


def _singles(config: Config) -> Iterator[tuple[dict, RecipeSpec]]:
    for head in range(config.candidates):
        for seed in range(config.trials):
            yield _named("single", config, (head,), seed)


def _scenario(
    scenario: str, config: Config, good: list[int], bad: list[int]
) -> Iterator[tuple[dict, RecipeSpec]]:
    for seed in range(config.seeds):
        generator = np.random.default_rng(seed)
        drawn_bad = [bad[place] for place in generator.permutation(len(bad))]
        if scenario == "random":
            first = UNSEEN + seed * config.heads
            heads = list(range(first, first + config.heads))
        elif scenario == "all_bad":
            heads = drawn_bad[: config.heads]
        else:
            heads = [good[generator.integers(len(good))], *drawn_bad[: config.heads - 1]] if good else []
        if heads:
            yield _named(scenario, config, tuple(heads), seed)


def _named(scenario: str, config: Config, heads: tuple[int, ...], seed: int) -> tuple[dict, RecipeSpec]:
    settings = {name: getattr(config, name) for name in ("length", "width", "steps", "every")}
    spec = RecipeSpec.of("multi_head", heads=heads, seed=seed, **settings)
    return {"scenario": scenario, "heads": " ".join(map(str, heads)), "seed": seed}, spec


def _measured(planned: Iterator[tuple[dict, RecipeSpec]], store: "Store") -> Iterator[Point]:
    """The course of every network that the store knows or may train."""
    for name, spec in planned:
        try:
            (asked,) = ask([spec], measure_copying)
            yield name, asked.answer(store)
        except NotMeasured:
            continue
