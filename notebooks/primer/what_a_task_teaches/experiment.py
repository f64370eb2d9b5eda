"""What a task makes attention learn: translation against summary, cross- against self-attention."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.models.transformer import Transformer
from attnlib.trace import AttentionKind, Trace
from companion.data.task import Links
from companion.results.config import BaseConfig, Field, OneOf, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared import task_patterns
from notebooks.shared.intervals import bounded, interval_of, over_pairs
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.task_patterns import STATES, network_of
from notebooks.shared.tasks.lexicon import ADJECTIVES, DETERMINERS, NOUNS, TOPICS, VERBS

if TYPE_CHECKING:
    import pandas as pd

# Does i get from j what j gets from i? Of a matrix m, whose rows ask and whose columns answer,
#
#     reciprocity = Σ m_ij m_ji / Σ m_ij²,  sums over i ≠ j.
#
# A symmetric matrix has 1, one whose m_ij says nothing about m_ji 0, and an antisymmetric one −1. It is the
# share of the symmetric half S = (m + mᵀ)/2 in the squared norm less that of the antisymmetric half K,
# (‖S‖² − ‖K‖²) / (‖S‖² + ‖K‖²); so Garlaschelli and Loffredo 2004 of networks, Saponati et al. 2025 of the
# product of query and key maps. Subtracted first is, of ``attention``, the mean of the entries off the
# diagonal, since even attention is symmetric and says nothing; and of ``scores`` the means of rows and of
# columns.
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
        self.mutual = self.squares = self.apart = self.together = 0.0

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
        self.squares += float(left.square().sum())
        return self

    def result(self) -> Reciprocity:
        value = self.mutual / self.squares if self.squares else math.nan
        ratio = math.sqrt(self.apart / self.together) if self.together else math.nan
        return Reciprocity(value, ratio)


def doubly_centred(matrices: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n m"]:
    rows = matrices.mean(-1, keepdim=True)
    columns = matrices.mean(-2, keepdim=True)
    whole = matrices.mean((-2, -1), keepdim=True)
    return matrices - rows - columns + whole


def map_symmetry(query: Float[Tensor, "head_width width"], key: Float[Tensor, "head_width width"]) -> float:
    """The reciprocity of B = W_qᵀ W_k, diagonal included: is xᵀ B y the same as yᵀ B x for all x and y?"""
    product = (query.T @ key).double()
    return float((product * product.T).sum() / product.square().sum())


CLASSES = ("determiner", "adjective", "noun", "topic", "verb", "other", "end")
SMALLEST = 5  # things in a matrix: below, scores drawn at random would look symmetric
_TABLES = {"determiner": DETERMINERS, "adjective": ADJECTIVES, "noun": NOUNS, "topic": TOPICS, "verb": VERBS}
_BATCH = 128


@measure(version=1)
@torch.no_grad()
def measure_reciprocity(recording: Recording) -> dict:
    """Of words, by layer and head. ``halved``: of the attention that the symmetric half of the scores would
    give. ``cross``: rows in the order of the source words that they translate; ``cross_on_source``: its maps
    with encoder states on both sides.
    """
    settings = recording.spec.resolved
    judged, links = judged_samples(settings), load_task(settings).gold
    return {state: _reciprocity_of(network_of(recording, state), judged, links) for state in STATES}


def _reciprocity_of(network: Transformer, corpus: Corpus, links: tuple[Links, ...]) -> dict:
    heads: dict[HeadName, HeadReciprocity] = {}

    def head_sums(kind: str, layer: int, head: int) -> HeadReciprocity:
        return heads.setdefault(HeadName(kind, layer, head), HeadReciprocity())

    for batch in equal_lengths(corpus):
        words = batch.source.shape[1] - 1
        if words < SMALLEST:
            continue
        trace = network(batch)
        for layer, head, of_head in _heads(trace, "encoder_self"):
            sums = head_sums("encoder_self", layer, head)
            sums.add(of_head.scores, of_head.attention, words)
            sums.add_halved(of_head.scores, words)
        steps = source_order([links[i] for i in batch.indices.tolist()], words)
        for layer, head, of_head in _heads(trace, "cross"):
            query, key = network.projections("cross", layer, head)
            queries = query(trace.encoder_states)[:, 0]
            keys = key(trace.encoder_states)[:, 0]
            scores = queries @ keys.mT  # (batch, source, source)
            head_sums("cross_on_source", layer, head).add(scores, scores.softmax(-1), words)
            if steps is not None:
                in_source_order = steps[:, :, None]
                head_sums("cross", layer, head).add(
                    of_head.scores.take_along_dim(in_source_order, dim=1),
                    of_head.attention.take_along_dim(in_source_order, dim=1),
                    words,
                )
    by_attention: dict = {}
    for name, sums in heads.items():
        numbers = sums.numbers()
        if name.kind == "encoder_self":
            query, key = network.projections(name.kind, name.layer, name.head)
            numbers["maps"] = map_symmetry(query.weight[0], key.weight[0])
        layers = by_attention.setdefault(name.kind, [])
        if len(layers) == name.layer:
            layers.append([])
        layers[name.layer].append(numbers)
    return by_attention


class HeadName(NamedTuple):
    """Which head of which attention, from 0; ``cross_on_source`` is of the maps of cross-attention."""

    kind: str
    layer: int
    head: int


class HeadReciprocity:
    """Reciprocity of one head's scores and attention, added up over batches."""

    def __init__(self) -> None:
        self.scores = ReciprocitySums()
        self.weights = ReciprocitySums()
        self.halved: ReciprocitySums | None = None

    def add(
        self, scores: Float[Tensor, "batch rows columns"], weights: Float[Tensor, "batch rows columns"],
        words: int,
    ) -> None:  # fmt: skip
        """Add the first ``words`` rows and columns of a batch."""
        self.scores.update(scores[:, :words, :words], "scores")
        self.weights.update(weights[:, :words, :words], "attention")

    def add_halved(self, scores: Float[Tensor, "batch n n"], words: int) -> None:
        """Add the attention that the symmetric half of the scores would give."""
        if self.halved is None:
            self.halved = ReciprocitySums()
        symmetric = (scores + scores.mT) / 2
        self.halved.update(symmetric.softmax(-1)[:, :words, :words], "attention")

    def numbers(self) -> dict[str, float]:
        """The reciprocities, and the ratio of the attention's halves."""
        weights = self.weights.result()
        numbers = {"scores": self.scores.result().value, "weights": weights.value}
        if self.halved is not None:
            numbers["halved"] = self.halved.result().value
        numbers["ratio"] = weights.ratio
        return numbers


@measure(version=1)
@torch.no_grad()
def measure_classes(recording: Recording) -> dict:
    """Attention over even attention, mean over layers and heads; a word's to itself is left out, and a target
    word has the class of the source word it comes from."""
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    classes = class_of_words(task.source_vocabulary.words)
    by_state = {}
    for state in STATES:
        network = network_of(recording, state)
        encoder_self, cross = ClassSums(), ClassSums()
        for batch in equal_lengths(judged):
            trace = network(batch)
            source = classes[batch.source]
            target = _target_classes(source, task.gold, batch)
            others = 1 - torch.eye(source.shape[1])  # a word's attention to itself does not count
            attention = _mean_of_heads(trace, "encoder_self")
            encoder_self.add(attention, others.expand_as(attention), source, source)
            attention = _mean_of_heads(trace, "cross")
            cross.add(attention, torch.ones_like(attention), target, source)
        by_state[state] = {"encoder_self": encoder_self.by_name(), "cross": cross.by_name()}
    return by_state


def _mean_of_heads(trace: Trace, kind: AttentionKind) -> Float[Tensor, "batch asking answering"]:
    """The attention of this kind, mean over layers and heads."""
    of_layers = [attention.weights for attention in trace.layers(kind)]
    return torch.stack(of_layers).mean((0, 2))


@measure(version=1)
@torch.no_grad()
def measure_sources(recording: Recording) -> dict:
    """√(Σ |q' − q|² / Σ (|q'|² + |q|²)), of queries and of keys, where all words of one side are exchanged
    for another sample's: 0 where nothing changes."""
    judged = judged_samples(recording.spec.resolved)
    network = network_of(recording, "trained")
    moves: dict[StatesName, dict[str, SquaredMove]] = {}
    for batch in equal_lengths(judged):
        if len(batch) == 1:
            continue
        before = _queries_and_keys(network(batch))
        exchanged = {
            "source": replace(batch, source=batch.source.roll(1, 0)),
            "target": replace(batch, target_input=batch.target_input.roll(1, 0)),
        }
        for side, other in exchanged.items():
            after = _queries_and_keys(network(other))
            for name, states in before.items():
                move = moves.setdefault(name, {}).setdefault(side, SquaredMove())
                move.add(states, after[name])
    by_attention: dict = {}
    for name, by_side in moves.items():
        layers = by_attention.setdefault(name.kind, [])
        if len(layers) == name.layer:
            layers.append({"queries": {}, "keys": {}})
        layers[name.layer][name.role] = {side: move.relative() for side, move in by_side.items()}
    return by_attention


class StatesName(NamedTuple):
    """Which states: ``queries`` or ``keys`` of an attention in a layer, from 0."""

    kind: AttentionKind
    layer: int
    role: str


class SquaredMove:
    """How far states move, in sums of squares over batches."""

    def __init__(self) -> None:
        self.apart = 0.0
        self.sizes = 0.0

    def add(self, before: Tensor, after: Tensor) -> None:
        self.apart += (after - before).square().sum().item()
        self.sizes += (after.square().sum() + before.square().sum()).item()

    def relative(self) -> float:
        """The distance over the root of both sizes."""
        return float(np.sqrt(self.apart / self.sizes))


def _queries_and_keys(trace: Trace) -> dict[StatesName, Tensor]:
    by_role = {}
    for kind in ("encoder_self", "decoder_self", "cross"):
        for attention in trace.layers(kind):
            by_role[StatesName(kind, attention.layer, "queries")] = attention.queries
            by_role[StatesName(kind, attention.layer, "keys")] = attention.keys
    return by_role


def equal_lengths(corpus: Corpus) -> Iterator[Batch]:
    lengths = np.stack([corpus.source_lengths, corpus.target_lengths], axis=1)
    for pair in np.unique(lengths, axis=0):
        chosen = np.flatnonzero((lengths == pair).all(1))
        for first in range(0, len(chosen), _BATCH):
            yield collate(corpus, chosen[first : first + _BATCH])


def source_order(links: list[Links], words: int) -> Int[Tensor, "batch words"] | None:
    """By sample and source word, the step that translates it; None unless each is translated once."""
    steps = []
    for links_of_sample in links:
        in_order = sorted(links_of_sample)
        if [place for place, _ in in_order] != list(range(words)):
            return None
        steps.append([step for _, step in in_order])
    return torch.tensor(steps)


def class_of_words(words: tuple[str, ...]) -> Int[Tensor, " words"]:
    """By word of the vocabulary its class, as a place in :data:`CLASSES`; all marks are the end."""
    return torch.tensor([CLASSES.index(_class_of(word)) for word in words])


def _class_of(word: str) -> str:
    if word.startswith("<"):
        return "end"
    for name, table in _TABLES.items():
        if word in table:
            return name
    return "other"


def _target_classes(source: Tensor, links: tuple[Links, ...], batch: Batch) -> Int[Tensor, "batch target"]:
    classes = torch.full(batch.target_output.shape, CLASSES.index("end"))
    for row, i in enumerate(batch.indices.tolist()):
        for place, step in links[i]:
            classes[row, step] = source[row, place]
    return classes


class ClassSums:
    """Attention and uniform attention, by class of the word that attends and of the one attended to."""

    def __init__(self) -> None:
        self.attention = np.zeros((len(CLASSES), len(CLASSES)))
        self.even = np.zeros((len(CLASSES), len(CLASSES)))

    def add(
        self, attention: Float[Tensor, "batch asking answering"],
        counted: Float[Tensor, "batch asking answering"], asking: Int[Tensor, "batch asking"],
        answering: Int[Tensor, "batch answering"],
    ) -> None:  # fmt: skip
        """Add a batch; ``counted`` is 1 at pairs that count, 0 at others, the classes are numbers."""
        pairs = asking[:, :, None] * len(CLASSES) + answering[:, None, :]
        self.attention += _sums_of_pairs(pairs, attention * counted)
        self.even += _sums_of_pairs(pairs, counted / attention.shape[2])

    def by_name(self) -> dict[str, dict[str, float | None]]:
        """Attention over uniform attention, by name of the class that attends and of the other."""
        by_name: dict[str, dict[str, float | None]] = {}
        for i, asking in enumerate(CLASSES):
            by_name[asking] = {}
            for j, answering in enumerate(CLASSES):
                even = self.even[i, j]
                by_name[asking][answering] = float(self.attention[i, j] / even) if even else None
        return by_name


def _sums_of_pairs(
    pairs: Int[Tensor, "batch asking answering"], values: Float[Tensor, "batch asking answering"]
) -> Float[np.ndarray, "7 7"]:
    """Add up values by pair of classes."""
    size = len(CLASSES)
    sums = np.bincount(pairs.flatten(), values.double().flatten(), size**2)
    return sums.reshape(size, size)


def _heads(trace: Trace, kind: AttentionKind) -> Iterator[tuple[int, int, Trace]]:
    """Yield the layer and number of every head of a kind of attention, and the trace with that head alone."""
    for attention in trace.layers(kind):
        for head in range(attention.heads):
            yield attention.layer, head, trace.head(kind, attention.layer, head)


ATTENTIONS = ("encoder_self", "decoder_self", "cross")
ROLES, SIDES = ("queries", "keys"), ("source", "target")


KINDS = ("recurrent", "transformer")
TASKS = ("translation", "summary")


class Config(BaseConfig):
    """Settings; a network is a kind × task × seed. The primers give none of them."""

    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = setting(
        KINDS, "recurrent (Luong's decoder with attention), transformer"
    )
    task: tuple[Annotated[str, OneOf(TASKS)], ...] = setting(
        TASKS, "translation, summary, of the same sentences"
    )
    tied: tuple[Annotated[str, OneOf(TASKS)], ...] = setting(
        ("translation",),
        "tasks on which a Transformer whose self-attention has symmetric scores is trained as well",
    )
    seeds: Annotated[int, Field(ge=2)] = setting(
        3, "networks of each kind, at least 2. Those of one task are compared"
    )
    shortest: int = setting(6, "fewest words of a sentence")
    longest: int = setting(8, "most words of a sentence")
    n_train: int = setting(4_000, "sentences to train on")
    judged: int = setting(200, "held-out sentences")
    scoring: str = setting("dot", "of the recurrent network: dot, general, additive, concat, scaled_dot")
    width: int = setting(
        64,
        "of states and embeddings of the recurrent network. A narrow one with dot scores gets "
        "stuck for some seeds, so it is wider than the Transformer",
    )
    steps: int = setting(110, "updates in training of the recurrent network")
    learning_rate: float = setting(1.2e-2, "of Adam, for the recurrent network")
    transformer_width: int = setting(32, "of the Transformer")
    heads: int = setting(2, "of each of its layers")
    layers: int = setting(2, "of the Transformer's encoder, and of its decoder")
    positions: str = setting("sinusoidal", "sinusoidal, learned, none")
    transformer_steps: int = setting(90, "updates in training of the Transformer")
    transformer_rate: float = setting(1e-2, "of Adam, for the Transformer")
    warmup: int = setting(20, "updates over which its learning rate rises")
    snapshots: int = setting(2, "evaluations during training")

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedures say


def specs(config: Config, kind: str, task: str) -> tuple[RunSpec, ...]:
    options = {
        "min_length": config.shortest,
        "max_length": config.longest,
        "n_train": config.n_train,
        "n_held_out": config.judged,
    }
    settings = {"task": f"lexicon_{task}", "options": tuple(options.items())}
    settings |= settings_of(config, "judged", "snapshots")
    if kind == "recurrent":
        settings |= settings_of(config, "scoring", "width", "steps", "learning_rate")
        return each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **settings)
    settings |= settings_of(config, "heads", "layers", "positions", "warmup")
    settings["width"] = config.transformer_width
    settings["steps"] = config.transformer_steps
    settings["learning_rate"] = config.transformer_rate
    settings["tied"] = kind == "tied"
    return each_seed(config.seeds, RunSpec.of, "transformer_sequences", **settings)


Networks = dict[tuple[str, str], tuple[RunSpec, ...]]  # by kind and task


class TasksCompared(NamedTuple):
    """Networks of one kind, of two tasks or of one, whose attention is compared in a state of training."""

    kind: str
    task: str
    other_task: str
    state: str


def _tasks_compared(config: Config) -> list[TasksCompared]:
    compared = []
    for kind in config.kind:
        compared += [TasksCompared(kind, task, task, "trained") for task in config.task]
        if set(TASKS) <= set(config.task):
            compared += [TasksCompared(kind, *TASKS, state) for state in STATES]
    return compared


def _pattern_agreement(networks: Networks, compared: TasksCompared) -> tuple[Measurement, ...]:
    """Measure each network beside that of the next seed, so that no two of them start alike."""
    specs = networks[compared.kind, compared.task]
    others = networks[compared.kind, compared.other_task]
    settings = (("state", compared.state),)
    return tuple(
        Measurement(spec, task_patterns.measure_pattern_agreement, settings, (other,))
        for spec, other in zip(specs, others[1:] + others[:1], strict=True)
    )


class Asked(NamedTuple):
    """What is measured, of all networks and of Transformers alone."""

    patterns: Plan
    example: Plan
    reciprocity: Plan  # of Transformers
    classes: Plan  # of Transformers
    sources: Plan  # of Transformers
    agreement: Plan  # of two networks


def _plan(config: Config) -> Asked:
    networks = {(kind, task): specs(config, kind, task) for kind, task in product(config.kind, config.task)}
    networks |= {("tied", task): specs(config, "tied", task) for task in config.tied}
    first_of_each = {group: of_group[:1] for group, of_group in networks.items()}
    transformers = {group: of_group for group, of_group in networks.items() if group[0] != "recurrent"}
    return Asked(
        patterns=plan_of(networks, task_patterns.measure_patterns),
        example=plan_of(first_of_each, task_patterns.measure_example),
        reciprocity=plan_of(transformers, measure_reciprocity),
        classes=plan_of(transformers, measure_classes),
        sources=plan_of(transformers, measure_sources),
        agreement={both: _pattern_agreement(networks, both) for both in _tasks_compared(config)},
    )


measurements = asked(_plan)


PROFILES = {
    "quick": Config(tied=()),
    "paper": Config(
        tied=TASKS, seeds=5, longest=14, n_train=10_000, judged=1_000, width=128, steps=1_500,
        learning_rate=3e-3, transformer_width=128, heads=4, layers=3, transformer_steps=1_500,
        transformer_rate=1e-3, warmup=150, snapshots=20,
    ),
    "tiny": Config(
        seeds=2, longest=7, n_train=200, judged=40, width=8, steps=3, transformer_width=8,
        transformer_steps=3, snapshots=1,
    ),
}  # fmt: skip


GROUP = {
    "kind": Column(
        "network",
        categories={
            "recurrent": "recurrent, with attention",
            "transformer": "Transformer",
            "tied": "Transformer whose self-attention has symmetric scores",
        },
    ),
    "task": Column("what it learns of the same sentences: translation, summary"),
}
QUALITY = {
    "token_accuracy": share("word accuracy, given the preceding words"),
    "exact_match": share("sentences that the network writes without an error"),
}
PARAMETERS = {"parameters": Column("weights of the network")}
COURSE = {"step": Column("updates so far"), "right": Column("word accuracy")}
STATE = {"state": Column("before or after training: untrained, trained")}
CHANGES = {"trained": "after training", "untrained": "before it", "learned": "trained minus untrained"}
PATTERN = {
    "entropy": Column("entropy of the attention of a step", "bits"),
    "on_end": share("attention on the end token"),
    "on_gold": share("attention on the source word of the word predicted"),
    "on_topics": share("attention on the words that a summary keeps"),
    "order": Column("rank correlation of steps and most attended words", low=-1, high=1),
    "reach": share("the most attention that a source word ever gets"),
}
HEAD = {"layer": Column("layer, from 1"), "head": Column("head of the layer, from 1")}
REFERENCE = {"reference": Column("attention on gold links alone (gold), or uniform over all words (even)")}
PAIR = {
    "kind": GROUP["kind"],
    "first": Column("task of the first network"),
    "second": Column("task of the second network, which has the next seed"),
    "state": STATE["state"],
}
AGREEMENT = {
    "view": Column(
        "what is compared",
        categories={
            "sentence": "attention over a sentence",
            "same_word": "attention where both write the same word",
        },
    ),
    "value": share("attention that both networks have at the same source words"),
}
COMPARED = {  # pairs of networks, by tasks and state
    "translation": ("translation", "translation", "trained"),
    "summary": ("summary", "summary", "trained"),
    "between": (*TASKS, "trained"),
    "untrained": (*TASKS, "untrained"),
}
AGREEMENTS = {
    "translation": "of two networks that translate",
    "summary": "of two networks that summarise",
    "between": "of one that translates and one that summarises",
    "untrained": "of these two before training",
    "seeds": "mean of the first two",
    "task_effect": "this mean minus that between tasks",
}
EXAMPLE = {
    "target_position": Column("position of the word predicted, from 0"),
    "source_position": Column("position of the source word, from 0"),
    "target": Column("word predicted"),
    "source": Column("source word"),
    "attention": share("attention of the first network on the source word"),
    "gold": Column("1 where the one word translates the other"),
}
ATTENTION = {
    "attention": Column(
        "attention",
        categories={
            "encoder_self": "of source words to source words",
            "decoder_self": "of target words to target words",
            "cross": "of target words, in the order of the source words that they translate, to the source",
            "cross_on_source": "that of the maps of cross-attention with encoder states on both sides",
        },
    )
}
LEVELS = {
    "scores": Column("reciprocity of the scores"),
    "weights": Column("reciprocity of the attention"),
    "ratio": Column("norm of the attention's antisymmetric half over that of its symmetric half"),
    "halved": Column("reciprocity of the attention that the symmetric half of the scores would give"),
    "maps": Column("reciprocity of the product of query and key maps"),
}
OF_BOTH = ("scores", "weights", "ratio")  # levels that self- and cross-attention have
CLASS = {
    "asking": Column("class of the word that attends"),
    "answering": Column("class of the word that is attended to"),
    "over_even": Column("attention relative to uniform attention"),
}
TOPIC = {
    "to_topics": Column("attention of other words to topics, relative to uniform attention"),
    "from_topics": Column("attention of topics to other words, relative to uniform attention"),
    "one_way": Column("to topics minus from topics"),
}
SOURCE = {
    "role": Column("what moves: queries, keys"),
    "side": Column("words that are exchanged for another sample's: source, target"),
    "moved": Column("distance between states before and after, over their root mean square"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``differs``: patterns of networks that translate minus those of networks that summarise."""
    plan = _plan(config)
    quality = plan_frame(plan.patterns, store, GROUP, records=_quality, columns=QUALITY | PARAMETERS)
    courses = plan_frame(plan.patterns, store, GROUP, records=_course, columns=COURSE, row="a snapshot")
    pattern_columns = STATE | {"exact_match": QUALITY["exact_match"]} | PATTERN
    networks = plan_frame(
        plan.patterns, store, GROUP,
        records=_patterns, columns=pattern_columns, row="a network, trained or not",
    )  # fmt: skip
    heads = plan_frame(
        plan.patterns, store, GROUP,
        records=_by_head, columns=STATE | HEAD | PATTERN, row="a head of a network",
    )  # fmt: skip
    references = plan_frame(
        plan.patterns, store, GROUP,
        records=_references, columns=REFERENCE | PATTERN, row="a reference of a task",
    )  # fmt: skip
    pairs = plan_frame(
        plan.agreement, store, PAIR, records=_agreement, columns=AGREEMENT, row="a pair of networks"
    )
    shown = plan_frame(
        plan.example, store, GROUP, records=_example, columns=STATE | EXAMPLE, row="an entry of attention"
    )
    reciprocities = plan_frame(
        plan.reciprocity, store, GROUP,
        records=_reciprocity, columns=STATE | ATTENTION | LEVELS | HEAD, row="a head of a network",
    )  # fmt: skip
    by_class = plan_frame(
        plan.classes, store, GROUP,
        records=_by_class, columns=STATE | ATTENTION | CLASS, row="a pair of classes",
    )  # fmt: skip
    topics = plan_frame(
        plan.classes, store, GROUP, records=_topics, columns=STATE | TOPIC, row="a network, trained or not"
    )
    sources = plan_frame(
        plan.sources, store, GROUP,
        records=_by_source, columns=ATTENTION | HEAD | SOURCE, row="a layer of a network",
    )  # fmt: skip
    by_step = summarise(courses, [*GROUP, "step"], ["right"])
    return {
        "courses": by_step.select(*GROUP, "step", *INTERVAL),
        "networks": networks,
        "heads": heads,
        "agreement": pairs,
        "example": shown.select(*GROUP, *STATE, *EXAMPLE),
        "reciprocity": reciprocities,
        "layers": _by_layer(reciprocities),
        "classes": _class_estimates(by_class),
        "sources": _source_estimates(sources, [*ATTENTION, "layer", "role", "side"]),
        "quality": quality,
        "quality_by_kind": summarise(quality, list(GROUP), QUALITY),
        "patterns": _with_learned(networks, GROUP, PATTERN),
        "differs": _differs(networks),
        "references": _first_of_task(references),
        "agreement_by_kind": agreement_by_kind(pairs, config.kind, seeds=config.seeds),
        "symmetry": _symmetry(reciprocities),
        "self_over_cross": _self_over_cross(reciprocities),
        "topics": summarise(topics, [*GROUP, "state"], TOPIC),
        "moved": _source_estimates(_means_of_layers(sources), [*ATTENTION, "role", "side"]),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    undefined: dict[str, object] = {}
    for name in ("references", "differs", "agreement", "symmetry", "classes", "sources"):
        undefined[name] = {}
    groups = tables["reciprocity"].frame[[*GROUP]].drop_duplicates()
    for kind, task in groups.itertuples(index=False):
        undefined |= _no_symmetry(f"symmetry.{kind}.{task}")
    return view(
        undefined,
        keyed(tables["references"], "references.{task}.{reference}.{column}", PATTERN),
        keyed(tables["quality_by_kind"], "{kind}.{task}.{quantity}"),
        keyed(tables["quality"].query("seed == 0"), "{kind}.{task}.{column}", PARAMETERS),
        keyed(tables["patterns"], "{kind}.{task}.{state}.{quantity}"),
        keyed(tables["differs"], "differs.{kind}.{state}.{quantity}"),
        keyed(tables["agreement_by_kind"], "agreement.{kind}.{view}.{quantity}"),
        keyed(tables["symmetry"], "symmetry.{kind}.{task}.{attention}.{state}.{quantity}"),
        keyed(tables["self_over_cross"], "symmetry.{kind}.{task}.self_less_cross.{quantity}"),
        keyed(tables["topics"], "classes.{kind}.{task}.{state}.{quantity}"),
        keyed(tables["moved"], "sources.{kind}.{task}.{attention}.{role}_from_{side}"),
    )


def _no_symmetry(key: str) -> dict[str, object]:
    """Return the keys of a group whose reciprocities are unknown."""
    unknown: dict[str, object] = {}
    attentions = ("encoder_self", "cross", "cross_on_source")
    for attention, state, level in product(attentions, CHANGES, LEVELS):
        unknown[f"{key}.{attention}.{state}.{level}"] = interval_of()
    for level in OF_BOTH:
        unknown[f"{key}.self_less_cross.{level}"] = interval_of()
    return unknown


def _quality(measured: dict) -> dict:
    return measured | {"token_accuracy": measured["token_accuracy"][-1]}


def _course(measured: dict) -> list[dict]:
    course = zip(measured["steps"], measured["token_accuracy"], strict=True)
    return [{"step": step, "right": right} for step, right in course]


def _patterns(measured: dict) -> list[dict]:
    return [
        {"state": "trained", "exact_match": measured["exact_match"]} | measured["trained"]["all"],
        {"state": "untrained", "exact_match": None} | measured["untrained"]["all"],
    ]


def _by_head(measured: dict) -> Iterator[dict]:
    for state in STATES:
        for head in _numbered_heads(measured[state]["heads"]):
            yield {"state": state, **head}


def _numbered_heads(layers: list[list[dict]]) -> Iterator[dict]:
    for layer, heads in enumerate(layers, 1):
        for head, numbers in enumerate(heads, 1):
            yield {"layer": layer, "head": head} | numbers


def _references(measured: dict) -> list[dict]:
    return [{"reference": name} | patterns for name, patterns in measured["references"].items()]


def _agreement(measured: dict) -> list[dict]:
    return [{"view": compared, "value": agreed} for compared, agreed in measured.items()]


def _example(shown: dict) -> Iterator[dict]:
    for state in STATES:
        for s, target in enumerate(shown["target"]):
            for t, source in enumerate(shown["source"]):
                yield {
                    "state": state,
                    "target_position": s,
                    "source_position": t,
                    "target": target,
                    "source": source,
                    "attention": shown[state][s][t],
                    "gold": int([s, t] in shown["gold"]),
                }


def _reciprocity(measured: dict) -> Iterator[dict]:
    for state in STATES:
        for attention, layers in measured[state].items():
            for head in _numbered_heads(layers):
                yield {"state": state, "attention": attention, **head}


def _by_class(measured: dict) -> Iterator[dict]:
    for state, attention in product(STATES, ("encoder_self", "cross")):
        over_even = measured[state][attention]
        for asking, answering in product(CLASSES, CLASSES):
            yield {
                "state": state,
                "attention": attention,
                "asking": asking,
                "answering": answering,
                "over_even": over_even[asking][answering],
            }


def _topics(measured: dict) -> list[dict]:
    """Return what topics get of other words in the encoder, and what they give."""
    import pandas as pd

    others = [name for name in CLASSES if name not in ("topic", "end")]
    rows = []
    for state in STATES:
        attention = pd.DataFrame(measured[state]["encoder_self"])  # a column asks, a row answers
        to_topics = float(attention.loc["topic", others].mean())
        from_topics = float(attention.loc[others, "topic"].mean())
        rows.append(
            {
                "state": state,
                "to_topics": to_topics,
                "from_topics": from_topics,
                "one_way": to_topics - from_topics,
            }
        )
    return rows


def _by_source(measured: dict) -> Iterator[dict]:
    for attention in ATTENTIONS:
        for number, layer in enumerate(measured[attention], 1):
            for role, side in product(ROLES, SIDES):
                yield {
                    "attention": attention,
                    "layer": number,
                    "role": role,
                    "side": side,
                    "moved": layer[role][side],
                }


def _with_learned(networks: Table, by: Columns, quantities: Iterable[str]) -> Table:
    """Return estimates by state, and of what training changes in the same network."""
    names = list(quantities)
    trained = networks.query("state == 'trained'")
    untrained = networks.query("state == 'untrained'")
    learned = differences(trained, untrained, names, on=[*by, "seed"]).assign({}, state="learned")
    by_state = summarise(networks, [*by, "state"], names)
    estimates = joined([by_state, summarise(learned, [*by, "state"], names)])
    state = Column("before or after training, or what it changes", categories=CHANGES)
    return replace(estimates, columns={**estimates.columns, "state": state})


def _differs(networks: Table) -> Table:
    translation = networks.query("task == 'translation'")
    summary = networks.query("task == 'summary'")
    apart = differences(translation, summary, PATTERN, on=["kind", "seed", "state"])
    return summarise(apart, ["kind", "state"], PATTERN)


def _first_of_task(references: Table) -> Table:
    """Return the references of the first network of each task: they are those of its sentences."""
    first = references.frame.drop_duplicates(["task", "reference"])
    return references.with_rows(first).select("task", *REFERENCE, *PATTERN)


def agreement_by_kind(pairs: Table, kinds: Iterable[str], *, seeds: int) -> Table:
    """Return how much two networks agree within each task and between tasks, and what the task does to it.

    Args:
        pairs: with a row for each pair of networks and view; the second network has the next seed.
        kinds: of network.
        seeds: number of networks of each kind and task; after the last seed comes the first.

    Returns:
        A row for each kind, view and :data:`AGREEMENTS`, with an interval by the jackknife over networks.
    """
    rows = []
    for kind, compared in product(kinds, AGREEMENT["view"].categories):
        of_view = pairs.query("kind == @kind and view == @compared", kind=kind, compared=compared)
        by_seed = _agreements_by_seed(of_view)
        for quantity in AGREEMENTS:
            of_pairs = {}
            for seed, value in by_seed[quantity].dropna().items():
                of_pairs[seed, (seed + 1) % seeds] = value
            estimate = bounded(over_pairs(of_pairs), -1.0, 1.0)
            rows.append({"kind": kind, "view": compared, "quantity": quantity} | estimate)
    quantity = Column("agreement, or what is made of it", categories=AGREEMENTS)
    columns = {"kind": GROUP["kind"], "view": AGREEMENT["view"], "quantity": quantity} | INTERVAL
    columns["n"] = Column("networks", low=0)
    return Table.of(rows, columns, "an estimate over pairs of networks")


def _agreements_by_seed(pairs: Table) -> "pd.DataFrame":
    """Return :data:`AGREEMENTS` in columns, a row for each seed of the first network."""
    by_seed = pairs.frame.pivot(index="seed", columns=["first", "second", "state"], values="value")
    by_seed = by_seed.reindex(columns=list(COMPARED.values())).set_axis(list(COMPARED), axis=1)
    by_seed["seeds"] = (by_seed["translation"] + by_seed["summary"]) / 2
    by_seed["task_effect"] = by_seed["seeds"] - by_seed["between"]
    return by_seed


def _means(table: Table, by: list[str], quantities: Iterable[str]) -> Table:
    """Return means over the rows of a group where a number is defined."""
    names = list(quantities)
    numbers = table.frame.astype(dict.fromkeys(names, float))
    rows = []
    for group, of_group in numbers.groupby(by, sort=False):
        means = of_group[names].mean()  # the groups' own mean adds in another order, which moves last digits
        rows.append(dict(zip(by, group, strict=True)) | means.to_dict())
    columns = {name: table.columns[name] for name in (*by, *names)}
    return Table.of(rows, columns, table.row)


def _by_layer(heads: Table) -> Table:
    """Return the reciprocity of each layer, in the mean over its heads."""
    layer = [*GROUP, *STATE, *ATTENTION, "layer"]
    means = _means(heads, [*layer, "seed"], LEVELS)
    estimates = summarise(means, layer, LEVELS)
    return estimates.select(*layer, "quantity", *INTERVAL).rename(quantity="level")


def _of_networks(heads: Table) -> Table:
    """Return reciprocities of a whole network, in the mean over all its heads."""
    return _means(heads, [*GROUP, *STATE, *ATTENTION, "seed"], LEVELS)


def _symmetry(heads: Table) -> Table:
    return _with_learned(_of_networks(heads), GROUP | ATTENTION, LEVELS)


def _self_over_cross(heads: Table) -> Table:
    """Return reciprocities of self-attention minus those of cross-attention in the same trained network."""
    trained = _of_networks(heads).query("state == 'trained'")
    within = trained.query("attention == 'encoder_self'")
    across = trained.query("attention == 'cross'")
    apart = differences(within, across, OF_BOTH, on=[*GROUP, "seed"])
    return summarise(apart, list(GROUP), OF_BOTH)


def _class_estimates(classes: Table) -> Table:
    pair = [*GROUP, *STATE, *ATTENTION, "asking", "answering"]
    return summarise(classes, pair, ["over_even"]).select(*pair, *INTERVAL)


def _means_of_layers(sources: Table) -> Table:
    return _means(sources, [*GROUP, "seed", *ATTENTION, "role", "side"], ["moved"])


def _source_estimates(sources: Table, by: list[str]) -> Table:
    return summarise(sources, [*GROUP, *by], ["moved"]).select(*GROUP, *by, *INTERVAL)
