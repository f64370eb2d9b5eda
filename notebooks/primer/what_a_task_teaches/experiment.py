"""What a task makes attention learn: translation against summary, cross- against self-attention."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np

from attnlib.errors import BadInput
from companion.results.aggregate import Point, over_seeds, paired
from companion.results.asks import Ask, answers, ask
from companion.results.config import BaseConfig, OneOf
from companion.results.statistics import jackknife_interval
from companion.runs.recipe import RecipeSpec
from companion.runs.store import Store
from notebooks.primer.what_a_task_teaches.measure import (
    CLASSES,
    measure_classes,
    measure_reciprocity,
    measure_sources,
)
from notebooks.shared.task_patterns import (
    PATTERNS,
    STATES,
    measure_example,
    measure_pattern_agreement,
    measure_patterns,
)

# From measurements of single networks to intervals over seeds, for the chapter on what a task teaches.

Points = dict[tuple[str, str], list[Point]]  # by kind of network and task
LEVELS = ("scores", "weights", "ratio", "halved", "maps")
_OTHERS = tuple(name for name in CLASSES if name not in ("topic", "end"))


def _learned(points: list[Point], of: Callable[[dict, str], float | None]) -> dict:
    """Intervals ``trained``, ``untrained``, and ``learned``, the first less the second in each network."""

    def gain(measured: dict) -> float | None:
        pair = of(measured, "trained"), of(measured, "untrained")
        return None if None in pair else pair[0] - pair[1]

    return {state: over_seeds(points, lambda m, s=state: of(m, s)) for state in STATES} | {
        "learned": over_seeds(points, gain)
    }


def pattern_values(found: Points) -> dict:
    """By kind and task; and the references, which are those of the task."""
    values: dict = {"references": {}}
    for (kind, task), points in found.items():
        if not points:
            continue
        by_name = {name: _learned(points, lambda m, s, n=name: m[s]["all"][n]) for name in PATTERNS}
        values.setdefault(kind, {})[task] = _states_first(by_name) | {
            "token_accuracy": over_seeds(points, lambda m: m["token_accuracy"][-1]),
            "exact_match": over_seeds(points, lambda m: m["exact_match"]),
            "parameters": points[0][1]["parameters"],
        }
        values["references"].setdefault(task, points[0][1]["references"])
    return values


def _states_first(by_name: dict[str, dict]) -> dict:
    """``{state: {name: …}}`` of ``{name: {state: …}}``."""
    return {state: {name: by_name[name][state] for name in by_name} for state in (*STATES, "learned")}


def differences(found: Points) -> dict:
    """Translation less summary, by kind of network with both."""
    return {
        kind: {
            state: {
                name: paired(points, found[kind, "summary"], lambda m, s=state, n=name: m[s]["all"][n])
                for name in PATTERNS
            }
            for state in STATES
        }
        for (kind, task), points in found.items()
        if task == "translation" and (kind, "summary") in found
    }


def agreement_values(found: dict[tuple[str, str, str, str], list[Point]], seeds: int) -> dict:
    """By kind of network and view: within each task, their mean, between tasks, and what the task does."""
    values: dict = {}
    for kind in dict.fromkeys(kind for kind, *_ in found):
        for view in ("sentence", "same_word"):
            translation, summary, between, untrained = (
                {name["seed"]: measured[view] for name, measured in found.get((kind, *pair, state), [])}
                for *pair, state in (
                    ("translation", "translation", "trained"),
                    ("summary", "summary", "trained"),
                    ("translation", "summary", "trained"),
                    ("translation", "summary", "untrained"),
                )
            )
            within = {seed: (translation[seed] + summary[seed]) / 2 for seed in translation.keys() & summary}
            effect = {seed: within[seed] - between[seed] for seed in within.keys() & between}
            by_name = {"translation": translation, "summary": summary, "between": between, "seeds": within}
            by_name |= {"task_effect": effect, "untrained": untrained}
            values.setdefault(kind, {})[view] = {
                name: _over_pairs(by_first, seeds) for name, by_first in by_name.items()
            }
    return values


def _over_pairs(by_first: dict[int, float], seeds: int) -> dict:
    """Mean over pairs of neighbouring seeds, by the first, with the jackknife's interval over the seeds.

    A network is in two pairs, so that pairs are not as many independent values: an interval over them would
    be too narrow. Here a seed is left out with all its networks. Two seeds have no interval.
    """
    pairs = {first: {first, (first + 1) % seeds} for first in by_first}
    units = sorted(set().union(*pairs.values()))
    if not units:
        return over_seeds([], float)

    def mean(chosen: Sequence[int]) -> float:
        own = [by_first[first] for first in sorted(pairs) if pairs[first] <= set(chosen)]
        return float(np.mean(own)) if own else np.nan

    return jackknife_interval(units, mean).as_dict()


def mean_over_heads(measured: dict, state: str, attention: str, level: str) -> float | None:
    """Of one network; None where its attention has no such number."""
    heads = [own.get(level) for layer in measured[state].get(attention, ()) for own in layer]
    heads = [value for value in heads if value is not None and not np.isnan(value)]
    return float(np.mean(heads)) if heads else None


def reciprocity_values(found: Points) -> dict:
    """By kind of network, task, attention, state and level, the mean over heads; and self- less cross-."""

    def less(measured: dict, level: str) -> float | None:
        pair = [mean_over_heads(measured, "trained", kind, level) for kind in ("encoder_self", "cross")]
        return None if None in pair else pair[0] - pair[1]

    values: dict = {}
    for (kind, task), points in found.items():
        own = values.setdefault(kind, {}).setdefault(task, {})
        for attention in ("encoder_self", "cross", "cross_on_source"):
            own[attention] = _states_first(
                {
                    level: _learned(points, lambda m, s, a=attention, v=level: mean_over_heads(m, s, a, v))
                    for level in LEVELS
                }
            )
        own["self_less_cross"] = {
            level: over_seeds(points, lambda m, v=level: less(m, v)) for level in LEVELS[:3]
        }
    return values


def class_values(found: Points) -> dict:
    """What topics get of other words in the encoder, and what they give: attention over even attention."""

    def mean(measured: dict, state: str, pairs: list[tuple[str, str]]) -> float:
        return float(np.mean([measured[state]["encoder_self"][one][two] for one, two in pairs]))

    to = [(other, "topic") for other in _OTHERS]
    away = [("topic", other) for other in _OTHERS]
    return _nested(
        {
            (kind, task, state): {
                "to_topics": over_seeds(points, lambda m, s=state: mean(m, s, to)),
                "from_topics": over_seeds(points, lambda m, s=state: mean(m, s, away)),
                "one_way": over_seeds(points, lambda m, s=state: mean(m, s, to) - mean(m, s, away)),
            }
            for (kind, task), points in found.items()
            for state in STATES
        }
    )


def source_values(found: Points) -> dict:
    """Mean over layers of how far queries and keys move when one side is exchanged."""
    return _nested(
        {
            (kind, task, attention, f"{role}_from_{side}"): over_seeds(
                points,
                lambda m, a=attention, r=role, s=side: float(np.mean([layer[r][s] for layer in m[a]])),
            )
            for (kind, task), points in found.items()
            for attention in ("encoder_self", "decoder_self", "cross")
            for role in ("queries", "keys")
            for side in ("source", "target")
        }
    )


def _nested(flat: dict[tuple[str, ...], dict]) -> dict:
    values: dict = {}
    for path, content in flat.items():
        here = values
        for name in path[:-1]:
            here = here.setdefault(name, {})
        here[path[-1]] = content
    return values


# The tables of the chapter on what a task teaches.


def course_rows(found: Points) -> list[dict]:
    """A row a kind, task and look: words right under teacher forcing."""
    return [
        {"kind": kind, "task": task, "step": step} | over_seeds(points, lambda m, i=i: m["token_accuracy"][i])
        for (kind, task), points in found.items()
        for i, step in enumerate(points[0][1]["steps"] if points else ())
    ]


def _by_head(found: Points, groups: Callable[[dict], Iterator[tuple[dict, list]]]) -> list[dict]:
    """A row a head; ``groups`` gives columns and, by layer and head, the numbers of one state."""
    return [
        row | group | {"layer": layer + 1, "head": head + 1} | numbers
        for row, measured in _by_network(found)
        for group, layers in groups(measured[row["state"]])
        for layer, heads in enumerate(layers)
        for head, numbers in enumerate(heads)
    ]


def _by_network(found: Points) -> Iterator[tuple[dict, dict]]:
    """The columns and the measurement of every network, in each state."""
    for (kind, task), points in found.items():
        for name, measured in points:
            for state in STATES:
                yield {"kind": kind, "task": task, "seed": name["seed"], "state": state}, measured


def network_rows(found: Points) -> list[dict]:
    """Patterns of every network, the mean over its heads, and its sentences without a fault."""
    return [
        row
        | measured[row["state"]]["all"]
        | {"exact_match": measured["exact_match"] if row["state"] == "trained" else None}
        for row, measured in _by_network(found)
    ]


def agreement_rows(found: dict[tuple[str, str, str, str], list[Point]]) -> list[dict]:
    """A row a pair of networks and view; the seed is the first one's, the second has the next."""
    return [
        {"kind": kind, "first": first, "second": second, "state": state, "seed": name["seed"]}
        | {"view": view, "value": value}
        for (kind, first, second, state), points in found.items()
        for name, measured in points
        for view, value in measured.items()
    ]


def head_rows(found: Points) -> list[dict]:
    """Patterns of every head of every network."""
    return _by_head(found, lambda measured: iter([({}, measured["heads"])]))


def reciprocity_rows(found: Points) -> list[dict]:
    """Reciprocity of every head of every network, numbers that a kind of attention lacks as None."""
    empty = dict.fromkeys(LEVELS)
    return _by_head(
        found, lambda measured: (({"attention": name} | empty, layers) for name, layers in measured.items())
    )


def layer_rows(found: Points) -> list[dict]:
    """Reciprocity of each layer, the mean over its heads."""

    def mean(measured: dict, state: str, attention: str, layer: int, level: str) -> float | None:
        heads = [head.get(level) for head in measured[state][attention][layer]]
        return None if None in heads else sum(heads) / len(heads)

    return [
        {"kind": kind, "task": task, "state": state, "attention": attention, "layer": layer + 1}
        | {"level": level}
        | over_seeds(points, lambda m, s=state, a=attention, i=layer, v=level: mean(m, s, a, i, v))
        for (kind, task), points in found.items()
        for state in STATES
        for attention, layers in (points[0][1][state] if points else {}).items()
        for layer in range(len(layers))
        for level in LEVELS
    ]


def example_rows(found: Points) -> list[dict]:
    """A row an entry of each matrix of the example."""
    return [
        {"kind": kind, "task": task, "state": state, "target_position": s, "source_position": t}
        | {"target": target, "source": source, "attention": shown[state][s][t]}
        | {"gold": int([s, t] in shown["gold"])}
        for (kind, task), points in found.items()
        for _, shown in points
        for state in STATES
        for s, target in enumerate(shown["target"])
        for t, source in enumerate(shown["source"])
    ]


def class_rows(found: Points) -> list[dict]:
    """A row a pair of classes."""
    return [
        {"kind": kind, "task": task, "state": state, "attention": attention}
        | {"asking": asking, "answering": answering}
        | over_seeds(points, lambda m, s=state, a=attention, i=asking, j=answering: m[s][a][i][j])
        for (kind, task), points in found.items()
        for state in STATES
        for attention in ("encoder_self", "cross")
        for asking in CLASSES
        for answering in CLASSES
    ]


def source_rows(found: Points) -> list[dict]:
    """A row an attention, layer, role and side that is exchanged."""
    return [
        {"kind": kind, "task": task, "attention": attention, "layer": layer + 1, "role": role, "side": side}
        | over_seeds(points, lambda m, a=attention, i=layer, r=role, s=side: m[a][i][r][s])
        for (kind, task), points in found.items()
        for attention in ("encoder_self", "decoder_self", "cross")
        for layer in range(len(points[0][1][attention]) if points else 0)
        for role in ("queries", "keys")
        for side in ("source", "target")
    ]


PLACE = "Primer 1, “Training an attention model”; primer 2, “Encoder-Decoder vs Self-Attention”"
QUESTION = "What does a task make attention learn, and is self-attention symmetric?"
KINDS = ("recurrent", "transformer")
TASKS = ("translation", "summary")


class Config(BaseConfig):
    """Settings; a network is a kind × task × seed. The primers give none of them.

    Attributes:
        kind: ``recurrent`` (Luong's decoder with attention), ``transformer``.
        task: ``translation``, ``summary``, of the same sentences.
        tied: tasks on which a Transformer whose self-attention has symmetric scores is trained as well.
        seeds: networks of each kind, at least 2. Those of one task are compared.
        shortest: fewest words of a sentence; longest: most words of a sentence.
        n_train: sentences to train on; judged: held-out sentences.
        scoring: of the recurrent network: ``dot``, ``general``, ``additive``, ``concat``, ``scaled_dot``.
        width: of states and embeddings of the recurrent network. A narrow one with dot scores gets stuck for
            some seeds, so it is wider than the Transformer.
        steps: updates in training of the recurrent network.
        learning_rate: of Adam, for the recurrent network.
        transformer_width: of the Transformer; heads: of each of its layers.
        layers: of the Transformer's encoder, and of its decoder.
        positions: ``sinusoidal``, ``learned``, ``none``.
        transformer_steps: updates in training of the Transformer.
        transformer_rate: of Adam, for the Transformer.
        warmup: updates over which its learning rate rises.
        looks: evaluations during training.
    """

    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = KINDS
    task: tuple[Annotated[str, OneOf(TASKS)], ...] = TASKS
    tied: tuple[Annotated[str, OneOf(TASKS)], ...] = ("translation",)
    seeds: int = 3
    shortest: int = 6
    longest: int = 10
    n_train: int = 4_000
    judged: int = 256
    scoring: str = "dot"
    width: int = 64
    steps: int = 180
    learning_rate: float = 8e-3
    transformer_width: int = 32
    heads: int = 2
    layers: int = 2
    positions: str = "sinusoidal"
    transformer_steps: int = 140
    transformer_rate: float = 6e-3
    warmup: int = 30
    looks: int = 4

    def check(self) -> None:
        if self.seeds < 2:
            raise BadInput(f"seeds is {self.seeds}; networks of one task are compared, so take 2 or more")
        asks(self)  # what a network or its training cannot be, the recipes say

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Kinds of network with their tasks, the tied ones last."""
        free = tuple((kind, task) for kind in self.kind for task in self.task)
        return (*free, *(("tied", task) for task in self.tied))


def _specs(config: Config, kind: str, task: str) -> tuple[RecipeSpec, ...]:
    sizes = {"min_length": config.shortest, "max_length": config.longest}
    options = sizes | {"n_train": config.n_train, "n_held_out": config.judged}
    own = {"task": f"lexicon_{task}", "options": tuple(options.items())}
    own |= {"judged": config.judged, "looks": config.looks}
    if kind == "recurrent":
        recipe = "recurrent_sequences"
        own |= {name: getattr(config, name) for name in ("scoring", "width", "steps", "learning_rate")}
    else:
        recipe = "transformer_sequences"
        own |= {name: getattr(config, name) for name in ("heads", "layers", "positions", "warmup")}
        own |= {"width": config.transformer_width, "steps": config.transformer_steps}
        own |= {"learning_rate": config.transformer_rate, "tied": kind == "tied"}
    return tuple(RecipeSpec.of(recipe, seed=seed, **own) for seed in range(config.seeds))


def _pairs(config: Config, kind: str, first: str, second: str, state: str) -> tuple[Ask, ...]:
    """Each network of one task beside that of the next seed of another task or the same: never one start."""
    ours, theirs = _specs(config, kind, first), _specs(config, kind, second)
    return tuple(
        Ask(spec, measure_pattern_agreement, (("state", state),), (theirs[(seed + 1) % config.seeds],))
        for seed, spec in enumerate(ours)
    )


def _compared(config: Config) -> tuple[tuple[str, str, str, str], ...]:
    """Kinds of network, two tasks or one twice, and whether trained."""
    within = [(task, task, "trained") for task in config.task]
    between = [(*TASKS, state) for state in STATES] if set(TASKS) <= set(config.task) else []
    return tuple((kind, *pair) for kind in config.kind for pair in (*within, *between))


def _layered(config: Config) -> tuple[tuple[str, str], ...]:
    return tuple((kind, task) for kind, task in config.kinds if kind != "recurrent")


def asks(config: Config) -> tuple[Ask, ...]:
    """Patterns of all networks, agreement of pairs, and what is inside the Transformers."""
    asked = [a for pair in config.kinds for a in ask(_specs(config, *pair), measure_patterns)]
    asked += [a for pair in config.kinds for a in ask(_specs(config, *pair)[:1], measure_example)]
    asked += [a for compared in _compared(config) for a in _pairs(config, *compared)]
    for pair in _layered(config):
        for measure in (measure_reciprocity, measure_classes, measure_sources):
            asked += ask(_specs(config, *pair), measure)
    return tuple(asked)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        tied=TASKS,
        seeds=5,
        longest=14,
        n_train=10_000,
        judged=1_000,
        width=128,
        steps=1_500,
        learning_rate=3e-3,
        transformer_width=128,
        heads=4,
        layers=3,
        transformer_steps=1_500,
        transformer_rate=1e-3,
        warmup=150,
        looks=20,
    ),
}


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Patterns by kind of network and task, and the symmetry of the Transformers' attentions.

    Returns:
        values by kind and task, see :func:`pattern_values`; ``references`` by task; ``differs`` (translation
        less summary), ``agreement``, ``symmetry``, ``classes`` and ``sources`` by kind, each by its function
        above. ``learned`` is trained less untrained. Intervals are over seeds.
    """

    def found(measure: Callable[..., dict], kinds: tuple[tuple[str, str], ...], first: int | None = None):
        return {pair: answers(ask(_specs(config, *pair)[:first], measure), store) for pair in kinds}

    patterns = found(measure_patterns, config.kinds)
    agreement = {name: answers(_pairs(config, *name), store) for name in _compared(config)}
    inside = _layered(config)
    reciprocity, classes, sources = (
        found(measure, inside) for measure in (measure_reciprocity, measure_classes, measure_sources)
    )
    values = pattern_values(patterns) | {
        "differs": differences(patterns),
        "agreement": agreement_values(agreement, config.seeds),
        "symmetry": reciprocity_values(reciprocity),
        "classes": class_values(classes),
        "sources": source_values(sources),
    }
    tables = {
        "courses": course_rows(patterns),
        "networks": network_rows(patterns),
        "heads": head_rows(patterns),
        "agreement": agreement_rows(agreement),
        "example": example_rows(found(measure_example, config.kinds, 1)),
        "reciprocity": reciprocity_rows(reciprocity),
        "layers": layer_rows(reciprocity),
        "classes": class_rows(classes),
        "sources": source_rows(sources),
    }
    return values, tables
