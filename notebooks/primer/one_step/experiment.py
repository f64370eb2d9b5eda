"""One decoder step of a trained translation network in numbers, and its attention along training."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import NAMED
from attnlib.models.vocabulary import Vocabulary
from attnlib.trace import Trace
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
    task = load_task(settings)
    batch = shown_pairs(settings)
    sources = _words(task.source_vocabulary, batch.source, batch.source_mask)
    targets = _words(task.target_vocabulary, batch.target_output, batch.target_mask)
    network = procedures.load(recording.spec.procedure).recorded_network(recording)
    trace = network(batch)
    judged = judged_samples(settings)
    longest = int(judged.target_lengths.max()) + 1  # with the end mark
    right = recording["right"][-1][:, :longest].double()
    return {
        "steps": recording["steps"].tolist(),
        "pairs": [[source, target] for source, target in zip(sources, targets, strict=True)],
        "attention": [_of_valid(snapshot, sources, targets) for snapshot in recording["shown.attention"]],
        "probability": [_of_words(snapshot, targets) for snapshot in recording["shown.probability"]],
        "worked": _worked_attention(trace, pair, place, sources[pair]),
        "context": _worked_context(trace, pair, place, len(sources[pair])),
        "predicted": _likeliest(trace.logits[pair, place], task.target_vocabulary),
        "token_accuracy": float(right.sum() / (judged.target_lengths + 1).sum()),
        "exact_match": float(exact_matches(recording, judged).mean()),
    }


def _words(
    vocabulary: Vocabulary, ids: Int[Tensor, "pairs length"], mask: Bool[Tensor, "pairs length"]
) -> list[list[str]]:
    """The words of each sentence, without padding."""
    sentences = []
    for row, valid in zip(ids, mask, strict=True):
        sentences.append([vocabulary.words[i] for i in row[valid].tolist()])
    return sentences


def _of_valid(
    attention: Float[Tensor, "pairs target source"], sources: list[list[str]], targets: list[list[str]]
) -> list[list[list[float]]]:
    """The matrix of each pair, without padding."""
    matrices = []
    for matrix, source, target in zip(attention, sources, targets, strict=True):
        matrices.append(matrix[: len(target), : len(source)].tolist())
    return matrices


def _of_words(probability: Float[Tensor, "pairs target"], targets: list[list[str]]) -> list[list[float]]:
    """The probability of each word of a translation, without padding."""
    return [row[: len(target)].tolist() for row, target in zip(probability, targets, strict=True)]


def _worked_attention(trace: Trace, pair: int, place: int, source: list[str]) -> list[dict]:
    """From score to attention, by source word."""
    scores = trace.scores[pair, place, : len(source)]
    exponentials = (scores - scores.max()).exp()
    attention = trace.attention[pair, place, : len(source)]
    return [
        {
            "source": word,
            "score": float(scores[t]),
            "exponential": float(exponentials[t]),
            "attention": float(attention[t]),
        }
        for t, word in enumerate(source)
    ]


def _worked_context(trace: Trace, pair: int, place: int, length: int) -> list[dict]:
    """What each source word adds to the coordinates where the context is furthest from 0."""
    context = trace.context[pair, place]
    states = trace.encoder_states[pair, :length]  # (source, width)
    attention = trace.attention[pair, place, :length]
    furthest = context.abs().topk(min(COORDINATES, len(context))).indices
    return [
        {
            "coordinate": i,
            "value": float(context[i]),
            "states": states[:, i].tolist(),
            "weighted": (attention * states[:, i]).tolist(),
        }
        for i in sorted(furthest.tolist())
    ]


def _likeliest(logits: Float[Tensor, " words"], vocabulary: Vocabulary) -> list[dict]:
    """The likeliest next words, with their probabilities."""
    probabilities, words = logits.softmax(-1).topk(LIKELIEST)
    return [
        {"word": vocabulary.words[word], "probability": probability}
        for word, probability in zip(words.tolist(), probabilities.tolist(), strict=True)
    ]


NETWORKS = {name: NAMED[name] for name in ("bahdanau", "luong")}


# What the primers say of single weights: pair, place of the word predicted, places of the source words.
@dataclass(frozen=True)
class Statement:
    """What the primers say of single weights: of one word of a translation, on some source words."""

    pair: int
    predicted: int  # position of the word predicted
    sources: tuple[int, ...]  # positions of the source words

    def attention(self, matrices: list[list[list[float]]]) -> float:
        """Add up the attention on these source words; a matrix a pair."""
        row = matrices[self.pair][self.predicted]
        return sum(row[source] for source in self.sources)

    def has_largest(self, matrices: list[list[list[float]]]) -> bool:
        """Say if the largest attention is on one of them."""
        row = matrices[self.pair][self.predicted]
        return np.argmax(row) in self.sources


WEIGHTS = {
    "aime_on_love": Statement(pair=0, predicted=2, sources=(1,)),
    "t_on_you": Statement(pair=0, predicted=1, sources=(2,)),
    "chat_on_cat": Statement(pair=1, predicted=1, sources=(1,)),
    "chat_on_cat_and_the": Statement(pair=1, predicted=1, sources=(0, 1)),
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
    options = settings_of(config, "n_train", "max_words", "max_length")
    settings |= {"options": tuple(options.items()), "shown": PAIRS}
    settings |= NETWORKS[config.network]
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
    every = measurements(config)
    networks = frame(every, store, records=_numbers, columns=NUMBERS, names=NAMES)
    courses = frame(
        every, store, records=_courses, columns=COURSE, names=NAMES, row="a snapshot of a network"
    )
    by_step = summarise(courses, ["task", "weight", "step"], ["attention"])
    of_first = partial(frame, every[:1], store, names={})
    return {
        "worked": of_first(records=itemgetter("worked"), columns=WORKED, row="a source word"),
        "context": of_first(records=_context, columns=CONTEXT, row="a coordinate of a source word"),
        "predicted": of_first(records=itemgetter("predicted"), columns=PREDICTED, row="a word"),
        "map": of_first(records=_map, columns=MAP, row="a source word at a step"),
        "learned": by_step.select("weight", "step", *INTERVAL),
        "networks": networks,
        "estimates": summarise(networks, ["task"], NUMBERS),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    return view(keyed(tables["estimates"], "{quantity}"))


def _courses(measured: dict) -> Iterator[dict]:
    for name, statement in WEIGHTS.items():
        for step, matrices in zip(measured["steps"], measured["attention"], strict=True):
            yield {"weight": name, "step": step, "attention": statement.attention(matrices)}


def _numbers(measured: dict) -> dict:
    matrices = measured["attention"][-1]
    weights = {name: statement.attention(matrices) for name, statement in WEIGHTS.items()}
    largest = {name: float(statement.has_largest(matrices)) for name, statement in WEIGHTS.items()}
    return measured | {"weights": weights, "largest": largest}


def _context(measured: dict) -> Iterator[dict]:
    for entry in measured["context"]:
        for place, word in enumerate(measured["worked"]):
            yield {
                "coordinate": entry["coordinate"],
                "context": entry["value"],
                "source_place": place,
                "source": word["source"],
                "state": entry["states"][place],
                "weighted": entry["weighted"][place],
            }


def _map(measured: dict) -> Iterator[dict]:
    for snapshot, step in enumerate(measured["steps"]):
        for pair, (source, target) in enumerate(measured["pairs"]):
            attention = measured["attention"][snapshot][pair]
            probability = measured["probability"][snapshot][pair]
            for s, t in product(range(len(target)), range(len(source))):
                yield {
                    "step": step,
                    "pair": pair,
                    "target_place": s,
                    "source_place": t,
                    "target": target[s],
                    "source": source[t],
                    "attention": attention[s][t],
                    "probability": probability[s],
                }
