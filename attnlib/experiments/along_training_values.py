"""Quantities that grow along training, when each takes over, and their intervals over seeds.

Which quantities stand for "terms take over attention" was decided from what random networks have, before any
order of takeovers had been seen. A covariance share is of no use there: it divides by the variance of the
scores, so that the nine terms of a random network have sizeable shares of scores which hardly vary, and an
input share begins by falling. What a set of terms *rebuilds* of the attention, its similarity to the full
one, is near 1 for any set as long as attention is uniform; less that of uniform attention, it starts near 0
and grows as attention comes to be made of these terms. So temporal is μμ alone and input is χχ alone, as
everywhere in this book. Shares are reported beside them. ``with_input``, ``beyond`` and the order by
``word_accuracy`` were added after trial networks had shown that input by input stays at 0 on the tasks made
by rule.

*Translation* is the share of the lexical probe that falls on the right source word
(:mod:`attnlib.probes.word_knowledge`): one quantity for all tasks, chance at the start, low for sure and
wrong probes. Beside it stand ``gain``, the logarithm of β at its best position less that of its
mean, which needs no links, and ``word_accuracy``, whether β is largest at the right word, however little.
"""

import math
from collections.abc import Callable

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.measures.along_training import PAIRS
from attnlib.statistics.takeover import takeover_step

Points = dict[str, list[Point]]  # by task
TERMS = ("temporal", "input", "with_input", "beyond")
QUANTITIES: dict[str, Callable[[dict, int], float | None]] = {
    "temporal": lambda m, i: m["rebuilt.temporal_only"][i],
    "input": lambda m, i: m["rebuilt.input_only"][i],
    "with_input": lambda m, i: m["rebuilt.with_input"][i],  # the five terms with an input component
    # What positions alone do not rebuild: whatever depends on the words of the sample is in there.
    "beyond": lambda m, i: 1 - m["rebuilt.temporal_only"][i] - m["uniform"][i],
    "translation": lambda m, i: m["translation"][i],
    "gain": lambda m, i: m["best_over_mean"][i],
    "word_accuracy": lambda m, i: m["word_accuracy"][i],
    "token_accuracy": lambda m, i: m["token_accuracy"][i],
    "on_word": lambda m, i: m["on_word"][i],
    "on_end": lambda m, i: m["on_end"][i],
    "attention_accuracy": lambda m, i: m["attention_accuracy"][i],
    "agreement": lambda m, i: m["agreement"][i],
    "agreement_by_chance": lambda m, i: m["agreement_by_chance"][i],
    "temporal_share": lambda m, i: m["share.temporal_temporal"][i],
    "input_share": lambda m, i: m["share.input_input"][i],
    "residual_share": lambda m, i: _residual(m, i),
    "uniform": lambda m, i: m["uniform"][i],
}
OF_UNIFORM = ("translation", "gain", "word_accuracy", "token_accuracy")


def _residual(measured: dict, look: int) -> float | None:
    shares = [
        measured[f"share.{queries}_{keys}"][look] for queries, keys in PAIRS if "residual" in (queries, keys)
    ]
    return None if None in shares else sum(shares)


def course(measured: dict, quantity: str) -> list[float]:
    """A quantity of one network by look; NaN where it is undefined."""
    found = (QUANTITIES[quantity](measured, look) for look in range(len(measured["steps"])))
    return [math.nan if value is None else value for value in found]


def takeover(measured: dict, quantity: str, least: float) -> float | None:
    """The step at which it has made half of its way in one network; None where it rises by less."""
    return takeover_step(measured["steps"], course(measured, quantity), least=least)


def _log(step: float | None) -> float | None:
    return None if step is None else math.log2(step)


def after(measured: dict, quantity: str, reference: str, least: float) -> float | None:
    """log2 of the ratio of two takeover steps of one network; None where it lacks either."""
    pair = [_log(takeover(measured, name, least)) for name in (quantity, reference)]
    return None if None in pair else pair[0] - pair[1]


def order_values(found: Points, least: float) -> dict:
    """``order`` and, with other quantities in place of these, ``order_by_{shares, gain, accuracy}``."""

    def orders(quantities: dict[str, str], reference: str) -> dict:
        return {
            task: {
                f"{name}_after_translation": over_seeds(
                    points, lambda m, q=quantity: after(m, q, reference, least)
                )
                for name, quantity in quantities.items()
            }
            for task, points in found.items()
        }

    same = {name: name for name in TERMS}
    others = {"on_word": "on_word", "agreement": "agreement", "token_accuracy": "token_accuracy"}
    return {
        "order": orders(same | others, "translation"),
        "order_by_shares": orders({"temporal": "temporal_share", "input": "input_share"}, "translation"),
        "order_by_gain": orders(same | others, "gain"),
        "order_by_accuracy": orders(same | others, "word_accuracy"),
    }


def takeover_values(found: Points, least: float) -> dict:
    """log2 of the takeover step of every quantity."""
    return {
        task: {name: over_seeds(points, lambda m, q=name: _log(takeover(m, q, least))) for name in QUANTITIES}
        for task, points in found.items()
    }


def last_values(found: Points) -> dict:
    """Every quantity at the last look, and the chance of translation."""
    return {
        task: {name: over_seeds(points, lambda m, q=name: course(m, q)[-1]) for name in QUANTITIES}
        | {"chance": over_seeds(points, lambda m: m["chance"])}
        for task, points in found.items()
    }


def term_values(found: Points) -> dict:
    """Covariance shares of the nine terms at the last look."""
    return {
        task: {
            f"{queries}_{keys}": over_seeds(points, lambda m, n=f"share.{queries}_{keys}": m[n][-1])
            for queries, keys in PAIRS
        }
        for task, points in found.items()
    }


def uniform_values(found: Points, learned: Points) -> dict:
    """Knowledge at the last look of networks whose attention is held uniform."""
    values = {}
    for task, points in found.items():
        twins = {name["seed"]: measured["translation"][-1] for name, measured in learned.get(task, ())}
        pairs = [
            (name, {"less": measured["translation"][-1] - twins[name["seed"]]})
            for name, measured in points
            if name["seed"] in twins
        ]
        values[task] = {
            name: over_seeds(points, lambda m, q=name: course(m, q)[-1]) for name in OF_UNIFORM
        } | {
            "chance": over_seeds(points, lambda m: m["chance"]),
            "above_chance": over_seeds(points, lambda m: m["translation"][-1] - m["chance"]),
            "less_learned": over_seeds(pairs, lambda m: m["less"]),
        }
    return values


def course_rows(found: Points, attention: str) -> list[dict]:
    """A row a task, quantity and look."""
    names = tuple(QUANTITIES) if attention == "learned" else OF_UNIFORM
    return [
        {"task": task, "attention": attention, "quantity": name, "step": step}
        | over_seeds(points, lambda m, q=name, i=i: QUANTITIES[q](m, i))
        for task, points in found.items()
        for name in names
        for i, step in enumerate(points[0][1]["steps"])
    ]


def takeover_rows(found: Points, least: float) -> list[dict]:
    """A row a task and quantity: log2 of the step, and how many networks have none."""
    logs = takeover_values(found, least)
    return [
        {"task": task, "quantity": name}
        | logs[task][name]
        | {"left_out": len(points) - logs[task][name]["n"]}
        for task, points in found.items()
        for name in QUANTITIES
    ]


def network_rows(found: Points, least: float) -> list[dict]:
    """A row a network and quantity: the first and last value, and the takeover step."""
    return [
        {"task": task, "seed": name["seed"], "quantity": quantity}
        | {"first": course(measured, quantity)[0], "last": course(measured, quantity)[-1]}
        | {"takeover": takeover(measured, quantity, least)}
        for task, points in found.items()
        for name, measured in points
        for quantity in QUANTITIES
    ]
