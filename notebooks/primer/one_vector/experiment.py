"""Sequence to sequence with one vector: two ways to hand it over, and what a wrong word does to the rest."""

from itertools import product
from typing import Annotated

import numpy as np

from attnlib.models.sequence_to_sequence import NAMED
from companion.data import registry
from companion.results.config import BaseConfig, OneOf, Positive
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.primer.one_vector.measure import measure_error_growth
from notebooks.shared.plan import Plan, answered, asked, each_seed, picked, plan_of, settings_of
from notebooks.shared.summaries import rows_of, summarised

NETWORKS = {"cho": NAMED["cho"], "sutskever": NAMED["sutskever"]}
OPTIONS: dict[str, dict[str, object]] = {  # of a task, where the profile's sizes do not say it
    "multi30k_en_fr": {"max_words": 3_000, "max_length": 20},
    "multi30k_en_de": {"max_words": 3_000, "max_length": 20},
}
WAYS = ("teacher_forced", "free_running", "so_far")


class Config(BaseConfig):
    """Settings; a network is a task × kind × seed."""

    #: what they learn: ``number_words``, ``dates``, ``multi30k_en_fr``, …
    task: tuple[Annotated[str, OneOf(registry.names())], ...] = ("number_words",)
    network: tuple[Annotated[str, OneOf(NETWORKS)], ...] = tuple(NETWORKS)  #: ``cho``, ``sutskever``
    seeds: Positive = 3  #: networks of each kind
    digits: Positive = 3  #: most digits of a number in number words
    n_train: Positive = 750  #: samples to train on, at most
    judged: Positive = 180  #: held-out samples
    width: Positive = 64  #: of states and embeddings
    steps: Positive = 240  #: updates in training
    batch_size: Positive = 64  #: samples an update
    learning_rate: float = 6e-3  #: of Adam
    samples: Positive = 150  #: held-out sentences of one length in which a word is exchanged, at most


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=("number_words", "dates", "multi30k_en_fr"), digits=7, n_train=20_000, judged=1_000, width=128,
        steps=4_000, learning_rate=2e-3, samples=500,
    ),
}  # fmt: skip


def _plan(config: Config) -> tuple[Plan]:
    shared = settings_of(config, "width", "steps", "batch_size", "learning_rate", "judged")
    shared |= {"snapshots": 1}  # only the end is measured
    groups = {}
    for task, network in product(config.task, config.network):
        options = {"n_train": config.n_train} | OPTIONS.get(task, {})
        if task == "number_words":
            options |= {"max_digits": config.digits, "n_held_out": config.judged}
        own = {"task": task, "options": tuple(options.items()), **NETWORKS[network], **shared}
        groups[task, network] = each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **own)
    return (plan_of(groups, measure_error_growth, samples=config.samples),)


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Quality, and how errors spread; tables are of sentences of one length.

    ``own_hand``: teacher-forced less free-running accuracy; ``length_over_guess``: how much oftener the
    length is right than by a guess from the source's alone; ``beam_gain``: beam search less greedy decoding.
    """
    points = answered(*_plan(config), store)
    values = summarised(points, _numbers)
    for (task, network), ((_, first), *_) in points.items():  # what follows from the samples alone
        values[task][network] |= picked(first, ("length_guessed", "length", "of_length", "parameters"))
    places = summarised(points, lambda m: {way: dict(enumerate(m[way], 1)) for way in WAYS})
    return values, {
        "places": rows_of(places, "task", "network", "way", "place"),
        "damage": rows_of(summarised(points, _by_quantity), "task", "network", "quantity", "place"),
    }


def _added(row: dict) -> float:
    """Share of the later words that the exchange makes wrong."""
    return row["wrong_after"] - row["wrong_after_right"]


def _by_quantity(measured: dict) -> dict:
    """Of the later words, the share and the number that an exchange at each place makes wrong."""
    return {
        "share": {row["place"]: _added(row) for row in measured["damage"]},
        "words": {row["place"]: _added(row) * row["words_after"] for row in measured["damage"]},
    }


def _numbers(measured: dict) -> dict:
    return picked(measured, ("token_accuracy", "exact_match", "length_right", "bleu")) | {
        "after_error": after_error(measured["damage"]),
        "early_over_late": early_over_late(measured["damage"]),
        "own_hand": measured["token_accuracy"] - measured["own_accuracy"],
        "length_over_guess": measured["length_right"] - measured["length_guessed"],
        "beam_gain": {name: measured["beam"][name] - measured[name] for name in ("exact_match", "bleu")},
    }


def after_error(damage: list[dict]) -> float:
    """Share of the words after an exchanged one that it makes wrong, over places, weighted by those words."""
    return float(np.average([_added(row) for row in damage], weights=[row["words_after"] for row in damage]))


def early_over_late(damage: list[dict]) -> float:
    """Share of later words spoilt by an exchange in the first third of the places, less in the last third."""
    number = max(1, len(damage) // 3)
    added = [_added(row) for row in damage]
    return float(np.mean(added[:number]) - np.mean(added[-number:]))
