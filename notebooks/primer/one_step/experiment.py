"""One decoder step of a trained translation network in numbers, and its attention along training."""

from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from typing import Annotated

import numpy as np
import torch

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import NAMED
from companion.data import registry
from companion.results.config import BaseConfig, Field, OneOf, Positive, setting
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs import registry as procedures
from companion.runs.columns import INTERVAL, NETWORK, Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.primer.one_step.pairs import PAIRS
from notebooks.shared.measure import exact_matches
from notebooks.shared.plan import each_seed, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task, shown_pairs
from notebooks.shared.summaries import summarise

LIKELIEST = 5  # words listed after the step
COORDINATES = 4  # of the context, with what each source word adds to them


@measure(version=1)
@torch.no_grad()
def measure_shown_pairs(recording: Recording, *, pair: int, place: int) -> dict:
    """``exponential``: of the score minus the largest; ``context``: the coordinates where it is furthest from
    0."""
    settings = recording.spec.resolved
    task, batch = load_task(settings), shown_pairs(settings)
    sides = (
        (task.source_vocabulary, batch.source, batch.source_mask),
        (task.target_vocabulary, batch.target_output, batch.target_mask),
    )
    words = [
        [[vocabulary.words[i] for i in row[valid].tolist()] for row, valid in zip(ids, mask, strict=True)]
        for vocabulary, ids, mask in sides
    ]
    pairs = list(zip(*words, strict=True))
    network = procedures.load(recording.spec.procedure).recorded_network(recording)
    trace = network(batch)
    length = len(pairs[pair][0])
    scores, weights = (values[pair, place, :length] for values in (trace.scores, trace.attention))
    states, context = trace.encoder_states[pair, :length], trace.context[pair, place]
    furthest = sorted(context.abs().topk(min(COORDINATES, len(context))).indices.tolist())
    probability, best = trace.logits[pair, place].softmax(-1).topk(LIKELIEST)
    judged = judged_samples(settings)
    right = recording["right"][-1][:, : int(judged.target_lengths.max()) + 1].double()
    return {
        "steps": recording["steps"].tolist(),
        "pairs": [list(pair) for pair in pairs],
        "attention": [
            [snapshot[i, : len(target), : len(source)].tolist() for i, (source, target) in enumerate(pairs)]
            for snapshot in recording["shown.attention"]
        ],
        "probability": [
            [snapshot[i, : len(target)].tolist() for i, (_, target) in enumerate(pairs)]
            for snapshot in recording["shown.probability"]
        ],
        "worked": [
            {"source": word, "score": float(score), "exponential": float((score - scores.max()).exp())}
            | {"attention": float(weight)}
            for word, score, weight in zip(pairs[pair][0], scores, weights, strict=True)
        ],
        "context": [
            {"coordinate": i, "value": float(context[i]), "states": states[:, i].tolist()}
            | {"weighted": (weights * states[:, i]).tolist()}
            for i in furthest
        ],
        "predicted": [
            {"word": task.target_vocabulary.words[i], "probability": p}
            for i, p in zip(best.tolist(), probability.tolist(), strict=True)
        ],
        "token_accuracy": float(right.sum() / (judged.target_lengths + 1).sum()),
        "exact_match": float(exact_matches(recording, judged).mean()),
    }


NETWORKS = {name: NAMED[name] for name in ("bahdanau", "luong")}
# What the primers say of single weights: pair, place of the word predicted, places of the source words.
WEIGHTS: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "aime_on_love": (0, 2, (1,)),
    "t_on_you": (0, 1, (2,)),
    "chat_on_cat": (1, 1, (1,)),
    "chat_on_cat_and_the": (1, 1, (0, 1)),
}


class Config(BaseConfig):
    """Settings; a network is a seed."""

    task: Annotated[str, OneOf(registry.names())] = setting(
        "tatoeba_en_fr", "set by the profile: translation of text; the sentences shown are English and French"
    )
    network: Annotated[str, OneOf(NETWORKS)] = setting("bahdanau", "bahdanau or luong")
    seeds: Positive = setting(3, "number of networks. The first is worked in numbers")
    n_train: Positive = setting(16_000, "pairs to train on")
    max_words: Positive = setting(1_200, "size of either vocabulary, at most")
    max_length: Positive = setting(9, "most words of a sentence")
    judged: Positive = setting(300, "held-out pairs")
    width: Positive = setting(64, "of states and embeddings")
    steps: Positive = setting(200, "updates in training")
    snapshots: Positive = setting(5, "evaluations during training")
    learning_rate: float = setting(8e-3, "of Adam")
    pair: Annotated[int, Field(ge=0, lt=len(PAIRS))] = setting(
        1, "which sentence is worked in numbers: 0, 1, 2"
    )
    place: int = setting(1, "which word of its translation is worked in numbers, counted from 0")

    def check(self) -> None:
        translation = PAIRS[self.pair][1]
        if not 0 <= self.place <= len(translation.split()):
            raise BadInput(f"place is {self.place}; {translation!r} has places from 0 to its end mark")


PROFILES = {
    "quick": Config(n_train=8_000, steps=140),
    "paper": Config(
        n_train=60_000, max_words=3_500, max_length=12, judged=1_000, width=128, steps=4_000, snapshots=20,
        learning_rate=2e-3,
    ),
    "tiny": Config(seeds=2, n_train=300, judged=60, width=8, steps=3, snapshots=1),
}  # fmt: skip


def measurements(config: Config) -> tuple[Measurement, ...]:
    settings = settings_of(config, "width", "steps", "snapshots", "learning_rate", "judged", "task")
    settings |= {"options": tuple(settings_of(config, "n_train", "max_words", "max_length").items())}
    settings |= {"shown": PAIRS, **NETWORKS[config.network]}
    specs = each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **settings)
    return measurements_of(specs, measure_shown_pairs, pair=config.pair, place=config.place)


NAMES = {name: NETWORK[name] for name in ("task", "seed")}
WORKED = {
    "attention": share("attention on the source word"),
    "exponential": share("exponential of the score minus the largest score"),
    "score": Column("score of the source word"),
    "source": Column("source word"),
}
CONTEXT = {
    "coordinate": Column("number of the coordinate, from 0"),
    "context": Column("the context there"),
    "source_place": Column("position of the source word, from 0"),
    "source": WORKED["source"],
    "state": Column("the encoder state of the source word there"),
    "weighted": Column("the same, times the attention on the word"),
}
PREDICTED = {
    "probability": share("probability of the word"),
    "word": Column("one of the likeliest next words"),
}
MAP = {
    "step": Column("updates so far"),
    "pair": Column("number of the sentence, from 0"),
    "target_place": Column("position of the word predicted, from 0"),
    "source_place": CONTEXT["source_place"],
    "target": Column("word predicted"),
    "source": WORKED["source"],
    "attention": WORKED["attention"],
    "probability": share("probability of the word predicted"),
}
COURSE = {
    "weight": Column("word predicted, and source words whose attention is added"),
    "step": MAP["step"],
    "attention": share("attention on these source words"),
}
NUMBERS = (
    {
        "token_accuracy": share("word accuracy, given the preceding words"),
        "exact_match": share("sentences that the network writes without an error"),
    }
    | {f"weights.{name}": COURSE["attention"] for name in WEIGHTS}
    | {f"largest.{name}": share("whether the largest attention is on one of them") for name in WEIGHTS}
)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``worked``, ``context``, ``predicted`` and ``map`` are of the first network."""
    every, first = measurements(config), measurements(config)[:1]
    networks = frame(every, store, records=_numbers, columns=NUMBERS, names=NAMES)
    courses = frame(
        every, store, records=_courses, columns=COURSE, names=NAMES, row="a snapshot of a network"
    )
    of_first = {"store": store, "names": {}}
    by_step = summarise(courses, ["task", "weight", "step"], ["attention"])
    return {
        "worked": frame(first, records=itemgetter("worked"), columns=WORKED, row="a source word", **of_first),
        "context": frame(
            first, records=_context, columns=CONTEXT, row="a coordinate of a source word", **of_first
        ),
        "predicted": frame(
            first, records=itemgetter("predicted"), columns=PREDICTED, row="a word", **of_first
        ),
        "map": frame(first, records=_map, columns=MAP, row="a source word at a step", **of_first),
        "learned": by_step.select("weight", "step", *INTERVAL),
        "networks": networks,
        "estimates": summarise(networks, ["task"], NUMBERS),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    return view(keyed(tables["estimates"], "{quantity}"))


def _weights(measured: dict, snapshot: int = -1) -> dict[str, float]:
    """Return the attention on the source words of each statement."""
    rows = measured["attention"][snapshot]
    return {
        name: sum(rows[pair][target_place][place] for place in source_places)
        for name, (pair, target_place, source_places) in WEIGHTS.items()
    }


def _courses(measured: dict) -> Iterator[dict]:
    by_snapshot = [_weights(measured, snapshot) for snapshot in range(len(measured["steps"]))]
    for name in WEIGHTS:
        for step, weights in zip(measured["steps"], by_snapshot, strict=True):
            yield {"weight": name, "step": step, "attention": weights[name]}


def _numbers(measured: dict) -> dict:
    rows = measured["attention"][-1]
    largest = {
        name: float(np.argmax(rows[pair][target_place]) in source_places)
        for name, (pair, target_place, source_places) in WEIGHTS.items()
    }
    return measured | {"weights": _weights(measured), "largest": largest}


def _context(measured: dict) -> list[dict]:
    rows = []
    for entry, (place, word) in product(measured["context"], enumerate(measured["worked"])):
        coordinate = {"coordinate": entry["coordinate"], "context": entry["value"]}
        source = {"source_place": place, "source": word["source"]}
        rows.append(
            coordinate | source | {"state": entry["states"][place], "weighted": entry["weighted"][place]}
        )
    return rows


def _map(measured: dict) -> Iterator[dict]:
    for snapshot, step in enumerate(measured["steps"]):
        for pair, (source, target) in enumerate(measured["pairs"]):
            for (s, predicted), (t, word) in product(enumerate(target), enumerate(source)):
                yield {"step": step, "pair": pair, "target_place": s, "source_place": t} | {
                    "target": predicted,
                    "source": word,
                    "attention": measured["attention"][snapshot][pair][s][t],
                    "probability": measured["probability"][snapshot][pair][s],
                }
