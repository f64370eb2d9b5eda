"""Reversing the source: whom it helps, where in the sentence, and what becomes of it with attention."""

from itertools import product
from typing import Annotated

import numpy as np

from attnlib.errors import BadInput, DataUnavailable
from attnlib.models.sequence_to_sequence import Link
from companion.data import registry
from companion.results.config import OneOf
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.shared.intervals import matched, mean_interval
from notebooks.shared.measure import THIRDS, measure_learning_curve
from notebooks.shared.plan import Plan, answered, asked, each_seed, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples
from notebooks.shared.summaries import along, each_paired, rows_of, summarised
from notebooks.shared.words import PAPER, CoursesConfig, link_distances, spec_on_words

ORDERS = ("forward", "reversed")


def count_distances(name: str) -> tuple[dict, list[dict]]:
    """``cut``: of the smallest distance of linked words, forward less reversed; ``change``: of the mean,
    reversed less forward; ``offset``: by how many places a target word is further on than its source word."""
    try:
        task = registry.load(name)
    except DataUnavailable:
        return {"cannot_be_run": f"data: {name} is not available here"}, []
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
    offsets = [np.mean([target - source for source, target in links]) for links, _ in linked]
    return values | {
        "change": mean_interval(np.subtract(means["reversed"], means["forward"])),
        "cut": values["forward"]["smallest"] - values["reversed"]["smallest"],
        "offset": mean_interval(offsets),
        "sentences": len(linked),
    }, shares


ONE_LENGTH = "attention_one_length"
PARTS = ("token_accuracy", *THIRDS)
NAMES = ("kind", "cell", "order")  # of a group: a link or ONE_LENGTH, gru or lstm, one of ORDERS


@measure(version=1)
def measure_longest_sentences(recording: Recording) -> dict:
    """By third of the sentence, in the longest quarter of the lengths: over all lengths together a third
    holds places that are in the middle of a longer sentence."""
    judged = judged_samples(recording.spec.resolved)
    lengths = judged.target_lengths
    long = lengths >= lengths.max() - (lengths.max() - lengths.min()) / 4
    right = recording["right"][-1].double().numpy()[long]  # (samples, places)
    lengths = lengths[long, None]
    places = np.arange(right.shape[1])
    third = np.minimum(3 * (places + 0.5) / lengths, 2.999).astype(int)
    parts = {name: (places < lengths) & (third == i) for i, name in enumerate(THIRDS)}
    shares = {name: float(right[own].mean()) if own.any() else None for name, own in parts.items()}
    return {"shortest": int(lengths.min()), "sentences": int(long.sum())} | shares


class Config(CoursesConfig):
    """Settings; a network is a link × order × cell × seed, trained on sentences of all lengths."""

    #: what the decoder gets of the source: ``initial``, ``every_step``, ``attention``
    link: tuple[Link, ...] = ("initial", "attention")
    one_length: int = 1  #: 1 adds networks with attention on sentences that all have the longest length
    #: tasks with known links, whose distances are counted. Those without data here are left out.
    aligned: tuple[Annotated[str, OneOf(registry.names())], ...] = (
        "one_to_one", "number_words", "lexicon_translation", "europarl_de_en"
    )  # fmt: skip


PROFILES = {
    "quick": Config(one_length=0),
    "paper": Config(**PAPER),
    "tiny": Config(
        aligned=("one_to_one", "number_words"),
        longest=6,
        seeds=2,
        n_train=300,
        judged=60,
        width=8,
        steps=3,
        snapshots=2,
    ),
}


def _plan(config: Config) -> tuple[Plan, Plan]:
    kinds = {link: (link, config.shortest) for link in config.link}
    if config.one_length and "attention" in config.link:
        kinds[ONE_LENGTH] = ("attention", config.longest)
    shared, groups = settings_of(config, "width", "snapshots"), {}
    for (kind, (link, shortest)), cell, order in product(kinds.items(), config.cell, ORDERS):
        own = {"link": link, "shortest": shortest, "reverse": order == "reversed", "cell": cell} | shared
        groups[kind, cell, order] = each_seed(config.seeds, spec_on_words, config, **own)
    return plan_of(groups, measure_learning_curve), plan_of(groups, measure_longest_sentences)


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``gain``: reversed less forward, paired by seed. ``speed``: the area under the learning curve;
    ``long``: of the longest quarter of the lengths, from ``long_from`` on. The first cell's again as
    ``main``.
    """
    curves, longest = (answered(plan, store) for plan in _plan(config))
    networks = {
        group: [(name, curve | {"longest": long}) for name, (curve, long) in pairs]
        for group, points in curves.items()
        if (pairs := matched(points, longest.get(group, [])))
    }
    values = summarised(networks, _quantities, (0.0, 1.0))
    for (kind, cell, _), points in networks.items():
        own = values[kind][cell]
        own.setdefault("long_from", points[0][1]["longest"]["shortest"])
        if set(ORDERS) <= own.keys():
            both = (networks[kind, cell, order] for order in ORDERS[::-1])
            own["gain"] = each_paired(*both, _quantities)
    for own in values.values():
        own["main"] = own[next(iter(own))]
    counted = {task: count_distances(task) for task in config.aligned}
    values["distances"] = {task: own for task, (own, _) in counted.items()}
    diagonal = [(i, i) for i in range(4)]
    values["example"] = {order: link_distances(diagonal, 4, reverse=order == "reversed") for order in ORDERS}
    parts = summarised(networks, lambda m: along(m, *PARTS), (0.0, 1.0))
    places = summarised(networks, lambda m: dict(enumerate(m["by_place"], 1)), (0.0, 1.0))
    return values, {
        "curves": rows_of(parts, *NAMES, "part", "step"),
        "places": rows_of(places, *NAMES, "place"),
        "distances": [row for _, rows in counted.values() for row in rows],
    }


def _quantities(measured: dict) -> dict[str, float]:
    speeds = {part: float(np.mean(measured[part][1:])) for part in PARTS}
    return (
        {"speed": speeds["token_accuracy"], "exact_match": measured["exact_match"]}
        | {part: measured[part][-1] for part in PARTS}
        | {f"long_{part}": measured["longest"][part] for part in THIRDS}
        | {f"speed_{part}": speeds[part] for part in THIRDS}
    )
