"""What a task makes attention learn: translation against summary, cross- against self-attention."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.models.transformer import Transformer
from attnlib.trace import AttentionKind, Trace
from companion.data.task import Links
from companion.results.config import BaseConfig, Field, OneOf
from companion.results.measurements import Measurement, answers
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared import task_patterns
from notebooks.shared.intervals import bounded, over_pairs
from notebooks.shared.lexicon import ADJECTIVES, DETERMINERS, NOUNS, TOPICS, VERBS
from notebooks.shared.plan import Plan, Points, asked, by_network, each_seed, picked, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import along, each_paired, less, rows_of, summarised
from notebooks.shared.task_patterns import PATTERNS, STATES, network_of

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
    sums: dict[tuple, dict[str, ReciprocitySums]] = {}

    def add(place: tuple, name: str, matrices: Tensor) -> None:
        own = sums.setdefault(place, {}).setdefault(name, ReciprocitySums())
        own.update(matrices[:, :words, :words], "scores" if name == "scores" else "attention")

    for batch in equal_lengths(corpus):
        words = batch.source.shape[1] - 1
        if words < SMALLEST:
            continue
        trace = network(batch)
        for place, own in _heads(trace, "encoder_self"):
            add(place, "scores", own.scores)
            add(place, "weights", own.attention)
            add(place, "halved", ((own.scores + own.scores.mT) / 2).softmax(-1))
        steps = source_order([links[i] for i in batch.indices.tolist()], words)
        for (_, layer, head), own in _heads(trace, "cross"):
            query, key = network.projections("cross", layer, head)
            queries, keys = query(trace.encoder_states)[:, 0], key(trace.encoder_states)[:, 0]
            scores = queries @ keys.mT
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
            numbers["maps"] = map_symmetry(query.weight[0], key.weight[0])
        layers = found.setdefault(kind, [])
        if len(layers) == layer:
            layers.append([])
        layers[layer].append(numbers)
    return found


@measure(version=1)
@torch.no_grad()
def measure_classes(recording: Recording) -> dict:
    """Attention over even attention, mean over layers and heads; a word's to itself is left out, and a target
    word has the class of the source word it comes from."""
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
                of_layers = [attention.weights for attention in trace.layers(kind)]
                attention = torch.stack(of_layers).mean((0, 2))
                counted = torch.ones_like(attention)
                if kind == "encoder_self":
                    counted -= torch.eye(attention.shape[1])
                even = counted / attention.shape[2]
                for total, weights in zip(own, (attention * counted, even), strict=True):
                    _add_by_class(total, weights, asking[kind], answering)
        found[state] = {kind: _by_name(*own) for kind, own in sums.items()}
    return found


@measure(version=1)
@torch.no_grad()
def measure_sources(recording: Recording) -> dict:
    """√(Σ |q' − q|² / Σ (|q'|² + |q|²)), of queries and of keys, where all words of one side are exchanged
    for another sample's: 0 where nothing changes."""
    judged = judged_samples(recording.spec.resolved)
    network = network_of(recording, "trained")
    sums: dict[tuple, np.ndarray] = {}
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


def _queries_and_keys(trace: Trace) -> dict[tuple[AttentionKind, int, str], Tensor]:
    by_role = {}
    for kind in ("encoder_self", "decoder_self", "cross"):
        for attention in trace.layers(kind):
            by_role[kind, attention.layer, "queries"] = attention.queries
            by_role[kind, attention.layer, "keys"] = attention.keys
    return by_role


def equal_lengths(corpus: Corpus) -> Iterator[Batch]:
    lengths = np.stack([corpus.source_lengths, corpus.target_lengths], axis=1)
    for pair in np.unique(lengths, axis=0):
        chosen = np.flatnonzero((lengths == pair).all(1))
        for first in range(0, len(chosen), _BATCH):
            yield collate(corpus, chosen[first : first + _BATCH])


def source_order(links: list[Links], words: int) -> Int[Tensor, "batch words"] | None:
    """By sample and source word, the step that translates it; None unless each is translated once."""
    rows = [[step for _, step in sorted(own)] for own in links]
    places = [sorted(place for place, _ in own) for own in links]
    return torch.tensor(rows) if all(own == list(range(words)) for own in places) else None


def class_of_words(words: tuple[str, ...]) -> Int[Tensor, " words"]:
    """By word of the vocabulary its class, as a place in :data:`CLASSES`; all marks are the end."""
    names = [next((name for name, table in _TABLES.items() if word in table), "other") for word in words]
    named = ["end" if word.startswith("<") else name for word, name in zip(words, names, strict=True)]
    return torch.tensor([CLASSES.index(name) for name in named])


def _target_classes(source: Tensor, links: tuple[Links, ...], batch: Batch) -> Int[Tensor, "batch target"]:
    found = torch.full(batch.target_output.shape, CLASSES.index("end"))
    for row, i in enumerate(batch.indices.tolist()):
        for place, step in links[i]:
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


def _heads(trace: Trace, kind: AttentionKind) -> Iterator[tuple[tuple[AttentionKind, int, int], Trace]]:
    """Yield every head of a kind of attention: where it is, and the trace with that head alone."""
    for attention in trace.layers(kind):
        for head in range(attention.heads):
            yield (kind, attention.layer, head), trace.head(kind, attention.layer, head)


LEVELS = ("scores", "weights", "ratio", "halved", "maps")
ATTENTIONS = ("encoder_self", "decoder_self", "cross")
ROLES, SIDES = ("queries", "keys"), ("source", "target")


def _with_learned(by_state: dict[str, dict]) -> dict[str, dict]:
    return by_state | {"learned": less(by_state["trained"], by_state["untrained"])}


def _patterns(measured: dict) -> dict:
    return {state: picked(measured[state]["all"], PATTERNS) for state in STATES}


def _outcomes(measured: dict) -> dict:
    quality = {"token_accuracy": measured["token_accuracy"][-1], "exact_match": measured["exact_match"]}
    return _with_learned(_patterns(measured)) | quality


def pattern_values(patterns: Points) -> dict:
    """By kind and task; and the references, which are those of the task."""
    values = summarised(patterns, _outcomes)
    references: dict = {}
    for (kind, task), points in patterns.items():
        for _, first in points[:1]:
            values[kind][task]["parameters"] = first["parameters"]
            references.setdefault(task, first["references"])
    return {"references": references} | values


def differences(patterns: Points) -> dict:
    return {
        kind: each_paired(points, patterns[kind, "summary"], _patterns)
        for (kind, task), points in patterns.items()
        if task == "translation" and (kind, "summary") in patterns
    }


def agreement_values(kinds: Iterable[str], rows: list[dict], seeds: int) -> dict:
    """By kind of network and view: within each task, their mean, between tasks, and what the task does."""
    import pandas as pd

    compared = {
        "translation": ("translation", "translation", "trained"),
        "summary": ("summary", "summary", "trained"),
        "between": (*TASKS, "trained"),
        "untrained": (*TASKS, "untrained"),
    }
    table = pd.DataFrame(rows, columns=["kind", "view", "seed", "first", "second", "state", "value"])
    values: dict = {}
    for kind, view in product(kinds, ("sentence", "same_word")):
        own = table[(table["kind"] == kind) & (table["view"] == view)]
        by_seed = own.pivot(index="seed", columns=["first", "second", "state"], values="value")
        by_seed = by_seed.reindex(columns=list(compared.values())).set_axis(list(compared), axis=1)
        by_seed["seeds"] = (by_seed["translation"] + by_seed["summary"]) / 2
        by_seed["task_effect"] = by_seed["seeds"] - by_seed["between"]
        values.setdefault(kind, {})[view] = {
            name: bounded(over_pairs({(i, (i + 1) % seeds): v for i, v in own.dropna().items()}), -1.0, 1.0)
            for name, own in by_seed.items()
        }
    return values


def _over_heads(layers: Iterable[list[dict]]) -> dict[str, float | None]:
    """Means over the heads of some layers; None where no head has such a number."""
    import pandas as pd

    heads = pd.DataFrame([head for layer in layers for head in layer], columns=LEVELS).astype(float)
    return {level: None if np.isnan(mean) else mean for level, mean in heads.mean().items()}


def _reciprocity(measured: dict) -> dict:
    kinds = ("encoder_self", "cross", "cross_on_source")
    own = {kind: {s: _over_heads(measured[s].get(kind, ())) for s in STATES} for kind in kinds}
    apart = less(own["encoder_self"]["trained"], own["cross"]["trained"])
    found = {kind: _with_learned(by_state) for kind, by_state in own.items()}
    return found | {"self_less_cross": picked(apart, LEVELS[:3])}


def _topics(measured: dict) -> dict:
    """What topics get of other words in the encoder, and what they give: attention over even attention."""
    import pandas as pd

    others, found = [name for name in CLASSES if name not in ("topic", "end")], {}
    for state in STATES:
        own = pd.DataFrame(measured[state]["encoder_self"])  # a column asks, a row answers
        to, away = (float(each[others].mean()) for each in (own.loc["topic"], own["topic"]))
        found[state] = {"to_topics": to, "from_topics": away, "one_way": to - away}
    return found


def _moved(measured: dict) -> dict:
    """Mean over layers of how far queries and keys move when one side is exchanged."""
    import pandas as pd

    return {a: pd.json_normalize(measured[a], sep="_from_").mean().to_dict() for a in ATTENTIONS}


def _by_head(points: Points, groups: Callable[[dict], Iterable[tuple[dict, list]]]) -> list[dict]:
    """A row a head; ``groups`` gives columns and, by layer and head, the numbers of one state."""
    return [
        name | {"state": state} | group | {"layer": layer, "head": head} | numbers
        for (name, measured), state in product(by_network(points, "kind", "task"), STATES)
        for group, layers in groups(measured[state])
        for layer, heads in enumerate(layers, 1)
        for head, numbers in enumerate(heads, 1)
    ]


def agreement_rows(points: Points) -> list[dict]:
    """A row a pair of networks and view; the seed is the first one's, the second has the next."""
    named = by_network(points, "kind", "first", "second", "state")
    return [name | row for name, measured in named for row in rows_of(measured, "view", "value")]


def example_rows(points: Points) -> list[dict]:
    return [
        {"kind": kind, "task": task, "state": state, "target_position": s, "source_position": t}
        | {"target": target, "source": source, "attention": shown[state][s][t]}
        | {"gold": int([s, t] in shown["gold"])}
        for (kind, task), own in points.items()
        for (_, shown), state in product(own, STATES)
        for s, target in enumerate(shown["target"])
        for t, source in enumerate(shown["source"])
    ]


def _layers(measured: dict) -> dict:
    return {
        state: {
            attention: {i: _over_heads([own]) for i, own in enumerate(layers, 1)}
            for attention, layers in measured[state].items()
        }
        for state in STATES
    }


def _sides(measured: dict) -> dict:
    return {
        attention: {i: picked(layer, ROLES, SIDES) for i, layer in enumerate(measured[attention], 1)}
        for attention in ATTENTIONS
    }


KINDS = ("recurrent", "transformer")
TASKS = ("translation", "summary")


class Config(BaseConfig):
    """Settings; a network is a kind × task × seed. The primers give none of them."""

    #: ``recurrent`` (Luong's decoder with attention), ``transformer``
    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = KINDS
    #: ``translation``, ``summary``, of the same sentences
    task: tuple[Annotated[str, OneOf(TASKS)], ...] = TASKS
    #: tasks on which a Transformer whose self-attention has symmetric scores is trained as well
    tied: tuple[Annotated[str, OneOf(TASKS)], ...] = ("translation",)
    #: networks of each kind, at least 2. Those of one task are compared.
    seeds: Annotated[int, Field(ge=2)] = 3
    shortest: int = 6  #: fewest words of a sentence
    longest: int = 8  #: most words of a sentence
    n_train: int = 4_000  #: sentences to train on
    judged: int = 200  #: held-out sentences
    #: of the recurrent network: ``dot``, ``general``, ``additive``, ``concat``, ``scaled_dot``
    scoring: str = "dot"
    #: of states and embeddings of the recurrent network. A narrow one with dot scores gets stuck for some
    #: seeds, so it is wider than the Transformer.
    width: int = 64
    steps: int = 110  #: updates in training of the recurrent network
    learning_rate: float = 1.2e-2  #: of Adam, for the recurrent network
    transformer_width: int = 32  #: of the Transformer
    heads: int = 2  #: of each of its layers
    layers: int = 2  #: of the Transformer's encoder, and of its decoder
    positions: str = "sinusoidal"  #: ``sinusoidal``, ``learned``, ``none``
    transformer_steps: int = 90  #: updates in training of the Transformer
    transformer_rate: float = 1e-2  #: of Adam, for the Transformer
    warmup: int = 20  #: updates over which its learning rate rises
    snapshots: int = 2  #: evaluations during training

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedures say


def specs(config: Config, kind: str, task: str) -> tuple[RunSpec, ...]:
    sizes = {"min_length": config.shortest, "max_length": config.longest}
    options = sizes | {"n_train": config.n_train, "n_held_out": config.judged}
    own = {"task": f"lexicon_{task}", "options": tuple(options.items())}
    own |= settings_of(config, "judged", "snapshots")
    if kind == "recurrent":
        own |= settings_of(config, "scoring", "width", "steps", "learning_rate")
        return each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **own)
    own |= settings_of(config, "heads", "layers", "positions", "warmup")
    own |= {"width": config.transformer_width, "steps": config.transformer_steps}
    own |= {"learning_rate": config.transformer_rate, "tied": kind == "tied"}
    return each_seed(config.seeds, RunSpec.of, "transformer_sequences", **own)


def _plan(config: Config) -> tuple[Plan, ...]:
    """Of all networks patterns and an example; of Transformers reciprocity, classes, sources; agreement."""
    kinds = (*product(config.kind, config.task), *product(("tied",), config.tied))
    networks = {pair: specs(config, *pair) for pair in kinds}
    layered = {pair: own for pair, own in networks.items() if pair[0] != "recurrent"}
    within = [(task, task, "trained") for task in config.task]
    between = [(*TASKS, state) for state in STATES] if set(TASKS) <= set(config.task) else []
    agreement = {}
    for kind, (first, second, state) in product(config.kind, [*within, *between]):
        # Each network of one task beside that of the next seed of another task or the same: never one start.
        ours, theirs = networks[kind, first], networks[kind, second]
        agreement[kind, first, second, state] = tuple(
            Measurement(own, task_patterns.measure_pattern_agreement, (("state", state),), (other,))
            for own, other in zip(ours, theirs[1:] + theirs[:1], strict=True)
        )
    return (
        plan_of(networks, task_patterns.measure_patterns),
        plan_of({pair: own[:1] for pair, own in networks.items()}, task_patterns.measure_example),
        plan_of(layered, measure_reciprocity),
        plan_of(layered, measure_classes),
        plan_of(layered, measure_sources),
        agreement,
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


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Intervals over seeds. ``differs``: translation less summary; ``learned``: trained less untrained."""
    patterns, example, reciprocity, classes, sources, agreement = (
        {group: answers(own, store) for group, own in plan.items()} for plan in _plan(config)
    )
    courses = summarised(patterns, lambda m: along(m, "token_accuracy")["token_accuracy"])
    compared = agreement_rows(agreement)
    by_class = summarised(classes, lambda m: picked(m, STATES, ("encoder_self", "cross"), CLASSES, CLASSES))
    named = ("kind", "task", "state", "attention")
    return pattern_values(patterns) | {
        "differs": differences(patterns),
        "agreement": agreement_values(config.kind, compared, config.seeds),
        "symmetry": summarised(reciprocity, _reciprocity),
        "classes": summarised(classes, _topics),
        "sources": summarised(sources, _moved),
    }, {
        "courses": rows_of(courses, "kind", "task", "step"),
        "networks": [
            name
            | {"state": state, "exact_match": m["exact_match"] if state == "trained" else None}
            | m[state]["all"]
            for (name, m), state in product(by_network(patterns, "kind", "task"), STATES)
        ],
        "heads": _by_head(patterns, lambda measured: [({}, measured["heads"])]),
        "agreement": compared,
        "example": example_rows(example),
        "reciprocity": _by_head(
            reciprocity,
            lambda measured: (({"attention": a} | dict.fromkeys(LEVELS), own) for a, own in measured.items()),
        ),
        "layers": rows_of(summarised(reciprocity, _layers), *named, "layer", "level"),
        "classes": rows_of(by_class, *named, "asking", "answering"),
        "sources": rows_of(summarised(sources, _sides), "kind", "task", "attention", "layer", "role", "side"),
    }
