"""The tables of the chapter on what a task teaches."""

from collections.abc import Callable, Iterator

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.measures.task_patterns import STATES
from attnlib.experiments.measures.who_asks_whom import CLASSES
from attnlib.experiments.teaching_values import LEVELS, Points


def course_rows(found: Points) -> list[dict]:
    """A row a kind, task and look: words right under teacher forcing."""
    return [
        {"kind": kind, "task": task, "step": step} | over_seeds(points, lambda m, i=i: m["token_accuracy"][i])
        for (kind, task), points in found.items()
        for i, step in enumerate(points[0][1]["steps"] if points else ())
    ]


def _by_head(found: Points, groups: Callable[[dict, str], Iterator[tuple[dict, list]]]) -> list[dict]:
    return [
        {"kind": kind, "task": task, "seed": name["seed"], "state": state}
        | group
        | {"layer": layer + 1, "head": head + 1}
        | numbers
        for (kind, task), points in found.items()
        for name, measured in points
        for state in STATES
        for group, layers in groups(measured, state)
        for layer, heads in enumerate(layers)
        for head, numbers in enumerate(heads)
    ]


def network_rows(found: Points) -> list[dict]:
    """Patterns of every network, the mean over its heads, and its sentences without a fault."""
    return [
        {"kind": kind, "task": task, "seed": name["seed"], "state": state}
        | measured[state]["all"]
        | {"exact_match": measured["exact_match"] if state == "trained" else None}
        for (kind, task), points in found.items()
        for name, measured in points
        for state in STATES
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
    return _by_head(found, lambda measured, state: iter([({}, measured[state]["heads"])]))


def reciprocity_rows(found: Points) -> list[dict]:
    """Reciprocity of every head of every network, numbers that a kind of attention lacks as None."""
    empty = dict.fromkeys(LEVELS)

    def groups(measured: dict, state: str) -> Iterator[tuple[dict, list]]:
        for attention, layers in measured[state].items():
            yield {"attention": attention} | empty, layers

    return _by_head(found, groups)


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
