"""The translation networks of the task suite: how well they translate, and whether longer training helps."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from companion.data.words import TokenizerName
from companion.results import config as settings
from companion.results.config import AboveZero, Attending, BaseConfig, Positive, Scale, Task, setting
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import point
from notebooks.shared.suite import TRANSLATIONS, each_planned
from notebooks.shared.summaries import level_key, summarise
from notebooks.shared.translators import TRANSLATION, TWICE, measure_translation

if TYPE_CHECKING:
    import pandas as pd

QUICK_TASKS = ("multi30k_en_fr",)
PAPER_TASKS = (*TRANSLATIONS, "europarl_de_en")


class Config(BaseConfig):
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent."""

    scale: Scale = setting(
        "quick", "set by the profile: which training settings and data sizes are used, quick or paper"
    )
    task: tuple[Task, ...] = setting(QUICK_TASKS, "tasks of natural text")
    architecture: tuple[Attending, ...] = setting(
        ("AED", "AO"), "AED, recurrent with attention, or AO, attention only"
    )
    seeds: Positive | None = setting(
        None, "models of each kind, seeds 0 … seeds − 1; the plan's number by default"
    )
    width: Positive | None = setting(None, "of states and embeddings; the plan's by default")
    steps: Positive | None = setting(None, "updates of every model; the plan's number by default")
    length: tuple[AboveZero, ...] = setting(
        (TWICE,), "multiples of the planned updates that every network is trained for besides"
    )
    learning_rate: tuple[AboveZero, ...] = setting(
        (), "what the first network of all is trained with besides"
    )
    samples: Positive = setting(200, "held-out sentences that each network translates, at most")
    source: Path | None = setting(
        None, "text file of your own, one sentence a line, as the task. Needs target"
    )
    target: Path | None = setting(None, "the same sentences in the other language, line by line")
    tokenizer: TokenizerName | None = setting(
        None,
        "how your text becomes words: words, spaces, unicode, characters or sentencepiece; words by default",
    )

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
        others = [
            replace(spec, steps=max(1, round(multiple * spec.steps)))
            for multiple, spec in product(config.length, planned)
        ]
        if not specs:
            others += [replace(first, learning_rate=rate) for rate in config.learning_rate]
        for spec in dict.fromkeys((*planned, *others)):
            specs[spec] = {"length": spec.steps / first.steps, "learning_rate": spec.learning_rate}
    return specs


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(_specs(config), measure_translation, samples=config.samples)


KIND = ["task", "architecture"]  # columns that name a kind of network
TRAINED = {
    "length": Column("training updates, as a multiple of the planned number", "times"),
    "learning_rate": Column("learning rate of Adam"),
}
RATE = {"rate": Column("learning rate, as part of a key")}
GAIN = {
    "gain_of_twice": Column("part of its held-out loss that a network loses when trained twice as long"),
    "bleu_of_twice": Column("BLEU that a network gains when trained twice as long", "points"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    specs = _specs(config)

    def columns_of(spec: ModelSpec) -> dict[str, object]:
        return point(spec) | specs[spec]

    networks = frame(measurements(config), store, names=NETWORK | TRAINED, columns_of=columns_of)
    return {"networks": networks} | estimates(networks)


def estimates(networks: Table) -> dict[str, Table]:
    """Return how well each kind translates as planned, and what more updates gain it."""
    as_planned = networks.with_rows(networks.frame[~_at_other_rate(networks)])
    return {
        "quality": summarise(as_planned.query("length == 1"), KIND, TRANSLATION),
        "longer_training": summarise(_gains(as_planned), KIND, GAIN),
    }


def _at_other_rate(networks: Table) -> "pd.Series":
    """Return which networks have another learning rate than the first of their kind, which is planned."""
    rates = networks.frame["learning_rate"]
    return rates != networks.frame.groupby(KIND)["learning_rate"].transform("first")


def _gains(as_planned: Table) -> Table:
    """Return each network with what training for twice as long gains it."""
    planned = as_planned.query("length == 1")
    longer = as_planned.query("length == @twice", twice=TWICE).frame[[*KIND, "seed", "loss", "bleu"]]
    both = planned.frame.merge(longer, on=[*KIND, "seed"], how="left", suffixes=("", "_longer"))
    gain = 1 - both.pop("loss_longer") / both["loss"]
    gained_bleu = both.pop("bleu_longer") - both["bleu"]
    return planned.with_rows(both).assign(GAIN, gain_of_twice=gain, bleu_of_twice=gained_bleu)


def values(config: Config, tables: dict[str, Table]) -> dict:
    """``loss_at_rate``: the loss of the first network of all at other learning rates."""
    kind = "by_task.{task}.{architecture}"
    networks = tables["networks"]
    networks = networks.assign(RATE, rate=networks.frame["learning_rate"].map(level_key))
    at_other_rate = networks.with_rows(networks.frame[_at_other_rate(networks)])
    return view(
        {"sentences": config.samples},
        {f"{key}.loss_at_rate": {} for key in keyed(networks, kind, ["seed"])},
        keyed(at_other_rate, kind + ".loss_at_rate.{rate}", ["loss"]),
        keyed(tables["quality"], kind + ".{quantity}"),
        keyed(tables["longer_training"], kind + ".{quantity}"),
    )
