"""Reversing the source: whom it helps, where in the sentence, and what becomes of it with attention."""

from itertools import product
from typing import Annotated

import numpy as np

from attnlib.errors import BadInput, DataUnavailable
from attnlib.models.sequence_to_sequence import Link
from companion.data import registry
from companion.results.config import OneOf
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.primer.source_reversal.measure import measure_longest_sentences
from notebooks.shared.intervals import Point, each_over_seeds, matched, mean_interval
from notebooks.shared.measure import THIRDS, measure_learning_curve
from notebooks.shared.summaries import each_paired, rows_of, summarised
from notebooks.shared.words import PAPER, CoursesConfig, link_distances, spec_on_words

# Recurrent steps between words that translate each other, counted on a task's known links.

ORDERS = ("forward", "reversed")


def count_distances(name: str) -> tuple[dict, list[dict]]:
    """Distances of linked words on the held-out samples with known links, and rows of their shares.

    ``cut``: of the smallest, forward less reversed; ``change``: of the mean, reversed less forward;
    ``offset``: by how many places a target word is further on than its source word.
    """
    try:
        task = registry.load(name)
    except DataUnavailable:
        return {"cannot_be_run": f"data: {name} is not at hand"}, []
    if not task.gold:
        raise BadInput(f"task {name!r} has no known links; distances cannot be counted")
    lengths = task.held_out.source_lengths.tolist()
    linked = [(links, lengths[i]) for i, links in enumerate(task.gold) if links]
    values: dict = {}
    means, shares = {}, []
    for order in ORDERS:
        rows = [link_distances(links, n, reverse=order == "reversed") for links, n in linked]
        means[order] = [np.mean(row) for row in rows]
        values[order] = {
            "mean": float(np.mean(means[order])),
            "smallest": float(np.mean([min(row) for row in rows])),
            "largest": float(np.mean([max(row) for row in rows])),
        }
        counts = np.bincount(np.concatenate(rows))
        shares += [
            {"task": name, "order": order, "distance": d, "share": float(n / counts.sum())}
            for d, n in enumerate(counts)
            if n
        ]
    offsets = [np.mean([target - source for target, source in links]) for links, _ in linked]
    return values | {
        "change": mean_interval(np.subtract(means["reversed"], means["forward"])).as_dict(),
        "cut": values["forward"]["smallest"] - values["reversed"]["smallest"],
        "offset": mean_interval(offsets).as_dict(),
        "sentences": len(linked),
    }, shares


PLACE = "Primer 1, “Benefits of attention: shorter path lengths”; Sutskever et al. 2014, section 3.3"
QUESTION = "Why does it help to read the source backwards, and does it still with attention?"
ONE_LENGTH = "attention_one_length"
NAMES = ("kind", "cell", "order")  # of a group, in the tables


class Config(CoursesConfig):
    """Settings; a network is a link × order × cell × seed, trained on sentences of all lengths.

    Attributes:
        link: what the decoder gets of the source: ``initial``, ``every_step``, ``attention``.
        one_length: 1 adds networks with attention on sentences that all have the longest length.
        aligned: tasks with known links, whose distances are counted. Those without data here are left out.
    """

    link: tuple[Link, ...] = ("initial", "attention")
    one_length: int = 1
    aligned: tuple[Annotated[str, OneOf(registry.names())], ...] = (
        "one_to_one", "number_words", "lexicon_translation", "europarl_de_en"
    )  # fmt: skip


PROFILES = {"quick": Config(), "paper": Config(**PAPER)}


def _groups(config: Config) -> dict[tuple[str, str, str], tuple[RunSpec, ...]]:
    """The networks by kind (a link, or :data:`ONE_LENGTH`), cell and order."""
    kinds = {link: (link, config.shortest) for link in config.link}
    if config.one_length and "attention" in config.link:
        kinds[ONE_LENGTH] = ("attention", config.longest)
    found = {}
    for (kind, (link, shortest)), cell, order in product(kinds.items(), config.cell, ORDERS):
        own = {"link": link, "reverse": order == "reversed", "cell": cell}
        own |= {"shortest": shortest, "width": config.width, "looks": config.looks}
        found[kind, cell, order] = tuple(
            spec_on_words(config, seed=seed, **own) for seed in range(config.seeds)
        )
    return found


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = dict.fromkeys(spec for group in _groups(config).values() for spec in group)
    return (
        *measurements_of(specs, measure_learning_curve),
        *measurements_of(specs, measure_longest_sentences),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Learning curves with and without reversal, by third of the sentence, and distances.

    ``gain``: reversed less forward, paired by seed. ``speed``: the area under the learning curve; ``long``:
    of the longest quarter of the lengths, from ``long_from`` on. The first cell's again as ``main``.
    """
    groups = _groups(config)
    found = {kind: points for kind, specs in groups.items() if (points := _measured(specs, store))}
    values: dict = {}
    for kind, cell in dict.fromkeys((kind, cell) for kind, cell, _ in found):
        both = {order: found[kind, cell, order] for order in ORDERS if (kind, cell, order) in found}
        values.setdefault(kind, {})[cell] = _summary(both)
    for own in values.values():
        own["main"] = own[next(iter(own))]
    counted = {task: count_distances(task) for task in config.aligned}
    values["distances"] = {task: own for task, (own, _) in counted.items()}
    diagonal = [(i, i) for i in range(4)]
    values["example"] = {order: link_distances(diagonal, 4, reverse=order == "reversed") for order in ORDERS}
    return values, {
        "curves": rows_of(summarised(found, _courses), *NAMES, "part", "step"),
        "places": rows_of(summarised(found, lambda m: dict(enumerate(m["by_place"], 1))), *NAMES, "place"),
        "distances": [row for _, rows in counted.values() for row in rows],
    }


def _measured(specs: tuple[RunSpec, ...], store: Store) -> list[Point]:
    curves, longest = (
        answers(measurements_of(specs, measure), store)
        for measure in (measure_learning_curve, measure_longest_sentences)
    )
    return [(name, curve | {"longest": own}) for name, (curve, own) in matched(curves, longest)]


def _quantities(measured: dict) -> dict[str, float]:
    parts = ("token_accuracy", *THIRDS)
    speeds = {part: float(np.mean(measured[part][1:])) for part in parts}
    return (
        {"speed": speeds["token_accuracy"], "exact_match": measured["exact_match"]}
        | {part: measured[part][-1] for part in parts}
        | {f"long_{part}": measured["longest"][part] for part in THIRDS}
        | {f"speed_{part}": speeds[part] for part in THIRDS}
    )


def _summary(both: dict[str, list[Point]]) -> dict:
    """Intervals by order of reading, and of the ``gain`` where both orders are there."""
    first = next(iter(both.values()))[0][1]
    found = {order: each_over_seeds(points, _quantities) for order, points in both.items()}
    if len(both) == len(ORDERS):
        found["gain"] = each_paired(both["reversed"], both["forward"], _quantities)
    return found | {"long_from": first["longest"]["shortest"]}


def _courses(measured: dict) -> dict:
    parts = ("token_accuracy", *THIRDS)
    return {part: dict(zip(measured["steps"], measured[part], strict=True)) for part in parts}
