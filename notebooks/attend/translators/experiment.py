"""The translation networks of the task suite: how well they translate, and whether longer training helps."""

from dataclasses import replace
from itertools import product
from pathlib import Path

from companion.data.words import TokenizerName
from companion.results import config as settings
from companion.results.config import AboveZero, Attending, BaseConfig, Positive, Scale, Task
from companion.results.measurements import Measurement, measurements_of
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import point
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, grouped, interval_of
from notebooks.shared.plan import by_spec
from notebooks.shared.suite import TRANSLATIONS, each_planned
from notebooks.shared.summaries import level_key
from notebooks.shared.translators import TWICE, gain, measure_translation

QUICK_TASKS = ("multi30k_en_fr",)
PAPER_TASKS = (*TRANSLATIONS, "europarl_de_en")


class Config(BaseConfig):
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent."""

    #: set by the profile: which training settings and data sizes are used, ``quick`` or ``paper``
    scale: Scale = "quick"
    task: tuple[Task, ...] = QUICK_TASKS  #: tasks of natural text
    #: AED, recurrent with attention, or AO, attention only
    architecture: tuple[Attending, ...] = ("AED", "AO")
    seeds: Positive | None = None  #: models of each kind, seeds 0 … seeds − 1; the plan's number by default
    width: Positive | None = None  #: of states and embeddings; the plan's by default
    steps: Positive | None = None  #: updates of every model; the plan's number by default
    #: multiples of the planned updates that the first network of each kind is trained for besides
    length: tuple[AboveZero, ...] = (TWICE,)
    learning_rate: tuple[AboveZero, ...] = ()  #: what the first network of all is trained with besides
    samples: Positive = 200  #: held-out sentences that each network translates, at most
    source: Path | None = None  #: text file of your own, one sentence a line, as the task. Needs ``target``.
    target: Path | None = None  #: the same sentences in the other language, line by line
    #: how your text becomes words: words, spaces, unicode, characters or sentencepiece; words by default
    tokenizer: TokenizerName | None = None

    def check(self) -> None:
        settings.take_files(self, task=(QUICK_TASKS, PAPER_TASKS))
        settings.check_width(self)


PROFILES = {
    "quick": Config(),
    "paper": Config(scale="paper", task=PAPER_TASKS, learning_rate=(0.002, 0.005), samples=1_000),
    "tiny": Config(task=("one_to_one",), seeds=1, width=8, steps=3, learning_rate=(0.005,), samples=20),
}


def _specs(config: Config) -> dict[ModelSpec, dict[str, float]]:
    """The planned models and the others, with what makes each: multiple of the updates, learning rate."""
    specs: dict[ModelSpec, dict[str, float]] = {}
    for task, architecture in product(config.task, config.architecture):
        first, *_ = planned = each_planned(config, task, architecture)
        others = [replace(first, steps=max(1, round(each * first.steps))) for each in config.length]
        if not specs:
            others += [replace(first, learning_rate=each) for each in config.learning_rate]
        for spec in dict.fromkeys((*planned, *others)):
            specs[spec] = {"length": spec.steps / first.steps, "learning_rate": spec.learning_rate}
    return specs


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(_specs(config), measure_translation, samples=config.samples)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``gain_of_twice``: the part of its loss that the first network loses when trained for twice as long;
    below zero where it over-fits. ``loss_at_rate``: its loss at other learning rates."""
    made, found = _specs(config), by_spec(measurements(config), store)
    points = [(point(spec) | made[spec], own["translation"]) for spec, own in found.items()]
    values = {"by_task": by_kind(points, _summary), "sentences": config.samples}
    return values, {"networks": [name | m for name, m in points]}


def _summary(points: list[Point]) -> dict:
    rate = points[0][0]["learning_rate"]  # the first model of a kind is planned
    trained = grouped(points, "length", "learning_rate")
    first = {how: own[0][1] for how, own in trained.items() if own[0][0]["seed"] == 0}
    twice = first.get((TWICE, rate))
    return each_over_seeds(trained[1, rate]) | {
        "gain_of_twice": interval_of([gain(first[1, rate], twice)] if twice else ()),
        "loss_at_rate": {level_key(each): m["loss"] for (_, each), m in first.items() if each != rate},
    }
