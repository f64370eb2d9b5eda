"""Self- and cross-attention of a Transformer on the same sentences: who asks whom, and is it mutual?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.models.transformer import AttentionKind, HeadTrace, Transformer, TransformerTrace
from attnlib.training.corpus import Batch, Corpus, Links, collate
from companion.runs.procedure import Recording
from notebooks.shared.lexicon import ADJECTIVES, DETERMINERS, NOUNS, TOPICS, VERBS
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.task_patterns import STATES, network_of

# Does i get from j what j gets from i? The symmetry of square matrices of scores or of attention.
#
# The rows of a matrix m are what asks, its columns what answers, both the same n things in the same order.
# With
#
#     reciprocity = Σ m_ij m_ji / Σ m_ij²,  sums over i ≠ j,
#
# a symmetric matrix has 1, one whose m_ij says nothing about m_ji has 0, and an antisymmetric one −1. The
# diagonal is left out: nothing is asymmetric to itself. It is a correlation, and the share of the symmetric
# half S = (m + mᵀ)/2 in the squared norm less that of the antisymmetric half K = (m − mᵀ)/2, (‖S‖² − ‖K‖²) /
# (‖S‖² + ‖K‖²). Garlaschelli and Loffredo 2004 ask it of networks, Saponati et al. 2025 of the product of
# query and key maps.
#
# What is subtracted first:
#
# =============  =========================================================================================
# ``attention``  the mean of the entries off the diagonal. Even attention is symmetric and says nothing; a
#                matrix close to it must not pass for symmetric on its account
# ``scores``     the means of rows and of columns. A number added to all scores of a query leaves its
#                attention as it is, so that scores are known but for one number a row
# =============  =========================================================================================
#
# Scores drawn at random have, after their means are taken off, a reciprocity of about 1/(n − 1)², not 0: take
# matrices of five things and more.

Level = Literal["attention", "scores"]


@dataclass(frozen=True)
class Reciprocity:
    """``value``: reciprocity, −1 to 1; ``ratio``: ‖m − mᵀ‖ / ‖m + mᵀ‖; NaN where nothing is there."""

    value: float
    ratio: float


class ReciprocitySums:
    def __init__(self) -> None:
        self.mutual = self.own = self.apart = self.together = 0.0

    def update(self, matrices: Float[Tensor, "batch n n"], level: Level) -> "ReciprocitySums":
        """Adds matrices of one size, without padding."""
        size = matrices.shape[-1]
        whole = matrices.double()
        self.apart += float((whole - whole.mT).square().sum())
        self.together += float((whole + whole.mT).square().sum())
        pairs = ~torch.eye(size, dtype=torch.bool, device=matrices.device)
        if level == "attention":
            mean = (whole * pairs).sum((-2, -1), keepdim=True) / (size * (size - 1))
            left = (whole - mean) * pairs
        else:
            left = doubly_centred(whole) * pairs
        self.mutual += float((left * left.mT).sum())
        self.own += float(left.square().sum())
        return self

    def result(self) -> Reciprocity:
        value = self.mutual / self.own if self.own else math.nan
        ratio = math.sqrt(self.apart / self.together) if self.together else math.nan
        return Reciprocity(value, ratio)


def doubly_centred(matrices: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n m"]:
    rows, columns = matrices.mean(-1, keepdim=True), matrices.mean(-2, keepdim=True)
    return matrices - rows - columns + matrices.mean((-2, -1), keepdim=True)


def map_symmetry(query: Float[Tensor, "head_width width"], key: Float[Tensor, "head_width width"]) -> float:
    """The reciprocity of B = W_qᵀ W_k, diagonal included: is xᵀ B y the same as yᵀ B x for all x and y?"""
    product = (query.T @ key).double()
    return float((product * product.T).sum() / product.square().sum())


CLASSES = ("determiner", "adjective", "noun", "topic", "verb", "other", "end")
SMALLEST = 5  # things in a matrix: below, scores drawn at random would look symmetric
_TABLES = {"determiner": DETERMINERS, "adjective": ADJECTIVES, "noun": NOUNS, "topic": TOPICS, "verb": VERBS}
_BATCH = 128


@torch.no_grad()
def measure_reciprocity(recording: Recording) -> dict:
    """Is what one word gives another what it gets from it? Of words, end marks left out, by layer and head.

    ``halved``: of the attention that the symmetric half of the scores would give. ``cross``: rows in the
    order of the source words that they translate; ``cross_on_source``: its maps with encoder states on both
    sides.
    """
    settings = recording.spec.resolved
    judged, links = judged_samples(settings), load_task(settings).gold
    return {state: _reciprocity(network_of(recording, state), judged, links) for state in STATES}


def _reciprocity(network: Transformer, corpus: Corpus, links: tuple[Links, ...]) -> dict:
    sums: dict[tuple, dict[str, ReciprocitySums]] = {}

    def add(place: tuple, name: str, matrices: Tensor) -> None:
        own = sums.setdefault(place, {}).setdefault(name, ReciprocitySums())
        own.update(matrices[:, :words, :words], "scores" if name == "scores" else "attention")

    for batch in equal_lengths(corpus):
        words = batch.source.shape[1] - 1
        if words < SMALLEST:
            continue
        trace = network(batch)
        for layer, head, own in _heads(trace.encoder_self):
            place = "encoder_self", layer, head
            add(place, "scores", own.scores)
            add(place, "weights", own.attention)
            add(place, "halved", ((own.scores + own.scores.mT) / 2).softmax(-1))
        steps = source_order([links[i] for i in batch.indices.tolist()], words)
        for layer, head, own in _heads(trace.cross):
            query, key = network.projections("cross", layer, head)
            scores = query(trace.encoder_states) @ key(trace.encoder_states).mT
            add(("cross_on_source", layer, head), "scores", scores)
            add(("cross_on_source", layer, head), "weights", scores.softmax(-1))
            if steps is not None:
                for name, matrices in (("scores", own.scores), ("weights", own.attention)):
                    add(("cross", layer, head), name, matrices.take_along_dim(steps[:, :, None], dim=1))
    found: dict = {}
    for (kind, layer, head), own in sums.items():
        results = {name: one.result() for name, one in own.items()}
        numbers = {name: one.value for name, one in results.items()} | {"ratio": results["weights"].ratio}
        if kind == "encoder_self":
            query, key = network.projections(kind, layer, head)
            numbers["maps"] = map_symmetry(query.weight, key.weight)
        layers = found.setdefault(kind, [])
        if len(layers) == layer:
            layers.append([])
        layers[layer].append(numbers)
    return found


@torch.no_grad()
def measure_classes(recording: Recording) -> dict:
    """Which kinds of words attend to which, mean over layers and heads, over even attention.

    A word's attention to itself is left out. A target word has the class of the source word it comes from.
    """
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    classes = class_of_words(task.source_vocabulary.words)
    found = {}
    for state in STATES:
        network = network_of(recording, state)
        sums = {kind: np.zeros((2, len(CLASSES), len(CLASSES))) for kind in ("encoder_self", "cross")}
        for batch in equal_lengths(judged):
            trace, answering = network(batch), classes[batch.source]
            asking = {"encoder_self": answering, "cross": _target_classes(answering, task.gold, batch)}
            for kind, own in sums.items():
                attention = torch.stack([layer.attention for layer in trace.attended[kind]]).mean((0, 2))
                counted = torch.ones_like(attention)
                if kind == "encoder_self":
                    counted -= torch.eye(attention.shape[1])
                even = counted / attention.shape[2]
                for total, weights in zip(own, (attention * counted, even), strict=True):
                    _add_by_class(total, weights, asking[kind], answering)
        found[state] = {kind: _by_name(*own) for kind, own in sums.items()}
    return found


@torch.no_grad()
def measure_sources(recording: Recording) -> dict:
    """How far queries and keys move when all words of one side are exchanged for another sample's.

    The move is √(Σ |q' − q|² / Σ (|q'|² + |q|²)): 0 where nothing changes.
    """
    judged = judged_samples(recording.spec.resolved)
    network = network_of(recording, "trained")
    sums: dict[tuple, np.ndarray] = {}
    for batch in equal_lengths(judged):
        if len(batch) == 1:
            continue
        before = _sides(network(batch))
        exchanged = {
            "source": replace(batch, source=batch.source.roll(1, 0)),
            "target": replace(batch, target_input=batch.target_input.roll(1, 0)),
        }
        for side, other in exchanged.items():
            after = _sides(network(other))
            for place, states in before.items():
                apart = (after[place] - states).square().sum()
                size = after[place].square().sum() + states.square().sum()
                sums[(*place, side)] = sums.get((*place, side), 0) + np.array([apart.item(), size.item()])
    found: dict = {}
    for (kind, layer, role, side), (apart, size) in sums.items():
        layers = found.setdefault(kind, [])
        if len(layers) == layer:
            layers.append({"queries": {}, "keys": {}})
        layers[layer][role][side] = float(np.sqrt(apart / size))
    return found


def _sides(trace: TransformerTrace) -> dict[tuple[AttentionKind, int, str], Tensor]:
    return {
        (kind, number, role): states
        for kind, layers in trace.attended.items()
        for number, layer in enumerate(layers)
        for role, states in (("queries", layer.queries), ("keys", layer.source.keys))
    }


def equal_lengths(corpus: Corpus) -> Iterator[Batch]:
    lengths = np.stack([corpus.source_lengths, corpus.target_lengths], axis=1)
    for pair in np.unique(lengths, axis=0):
        chosen = np.flatnonzero((lengths == pair).all(1))
        for first in range(0, len(chosen), _BATCH):
            yield collate(corpus, chosen[first : first + _BATCH])


def source_order(links: list[Links], words: int) -> Int[Tensor, "batch words"] | None:
    """By sample and source word, the step that translates it; None unless each is translated once."""
    rows = [[step for _, step in sorted((place, step) for step, place in own)] for own in links]
    places = [sorted(place for _, place in own) for own in links]
    return torch.tensor(rows) if all(own == list(range(words)) for own in places) else None


def class_of_words(words: tuple[str, ...]) -> Int[Tensor, " words"]:
    """By word of the vocabulary its class, as a place in :data:`CLASSES`; all marks are the end."""
    names = [next((name for name, table in _TABLES.items() if word in table), "other") for word in words]
    named = ["end" if word.startswith("<") else name for word, name in zip(words, names, strict=True)]
    return torch.tensor([CLASSES.index(name) for name in named])


def _target_classes(source: Tensor, links: tuple[Links, ...], batch: Batch) -> Int[Tensor, "batch target"]:
    found = torch.full(batch.target_output.shape, CLASSES.index("end"))
    for row, i in enumerate(batch.indices.tolist()):
        for step, place in links[i]:
            found[row, step] = source[row, place]
    return found


def _add_by_class(total: np.ndarray, weights: Tensor, asking: Tensor, answering: Tensor) -> None:
    cells = asking[:, :, None] * len(CLASSES) + answering[:, None, :]
    total += np.bincount(cells.flatten(), weights.double().flatten(), len(CLASSES) ** 2).reshape(total.shape)


def _by_name(attention: Float[np.ndarray, "7 7"], even: Float[np.ndarray, "7 7"]) -> dict:
    return {
        a: {b: float(attention[i, j] / even[i, j]) if even[i, j] else None for j, b in enumerate(CLASSES)}
        for i, a in enumerate(CLASSES)
    }


def _heads(layers: tuple[tuple[HeadTrace, ...], ...]) -> Iterator[tuple[int, int, HeadTrace]]:
    for layer, heads in enumerate(layers):
        for head, own in enumerate(heads):
            yield layer, head, own
