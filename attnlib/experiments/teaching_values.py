"""From measurements of single networks to intervals over seeds, for the chapter on what a task teaches."""

from collections.abc import Callable, Sequence

import numpy as np

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.measures.task_patterns import PATTERNS, STATES
from attnlib.experiments.measures.who_asks_whom import CLASSES
from attnlib.experiments.paired import paired
from attnlib.statistics.jackknife import jackknife_interval

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
        values.setdefault(kind, {})[task] = {
            state: {name: by_name[name][state] for name in PATTERNS} for state in (*STATES, "learned")
        } | {
            "token_accuracy": over_seeds(points, lambda m: m["token_accuracy"][-1]),
            "exact_match": over_seeds(points, lambda m: m["exact_match"]),
            "parameters": points[0][1]["parameters"],
        }
        values["references"].setdefault(task, points[0][1]["references"])
    return values


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
    """By kind of network and view: within each task, their mean, between tasks, and what the task does.

    Args:
        found: measurements of pairs of networks, the first of the seed that a point names, the second of the
            next one, after the last of ``seeds`` the first.
    """
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
    values: dict = {}
    for (kind, task), points in found.items():
        own = values.setdefault(kind, {}).setdefault(task, {})
        for attention in ("encoder_self", "cross", "cross_on_source"):
            by_level = {
                level: _learned(points, lambda m, s, a=attention, v=level: mean_over_heads(m, s, a, v))
                for level in LEVELS
            }
            own[attention] = {
                state: {level: by_level[level][state] for level in LEVELS} for state in (*STATES, "learned")
            }
        own["self_less_cross"] = {level: over_seeds(points, _self_less_cross(level)) for level in LEVELS[:3]}
    return values


def _self_less_cross(level: str) -> Callable[[dict], float | None]:
    def of(measured: dict) -> float | None:
        pair = [mean_over_heads(measured, "trained", kind, level) for kind in ("encoder_self", "cross")]
        return None if None in pair else pair[0] - pair[1]

    return of


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
