"""A fixed reordering against copying: attention is no free variable, whatever is known of single words."""

import math
from itertools import product
from statistics import fmean
from typing import NamedTuple

from attnlib.errors import BadInput
from companion.results.config import BaseConfig, NotNegative, Positive
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copying import measure_copying
from notebooks.shared.copying_points import PROBES, course_rows, outcome, outcome_rows, probes, steps_to_learn
from notebooks.shared.intervals import Point, bounded, interval_of, over_seeds, paired
from notebooks.shared.permutation_copying import words_of
from notebooks.shared.plan import Plan, answered, asked, by_network, each_seed, plan_of, settings_of

ORDERS = ("copy", "permuted")
NETWORKS = ("learned", "uniform")
LONGER = "longer"  # networks with learned attention and more updates
CODED = {"coded_not_recurrent": False, "coded": True}  # networks with codes of places: with recurrence?
SELDOMER = 5  # times as many updates between two snapshots at these
OFTENER = 2  # times as many snapshots of networks with codes, which learn soon
KIND = "sample"  # the sentences that copying is always learned from


class Config(BaseConfig):
    """Settings; a network is an order × (learned or uniform attention) × seed."""

    seeds: Positive = 3  #: networks with learned attention of each order
    #: networks with uniform attention of each order. The paper profile has more than
    #: :mod:`~notebooks.learn.permutation_copying.experiment`: their differences are held against a band.
    controls: Positive = 2
    length: int = 16  #: words of a sentence, drawn from one and a half times as many
    width: Positive = 64  #: of embeddings and states
    steps: Positive = 240  #: updates in training
    every: Positive = 10  #: updates between two snapshots
    #: updates of further networks in the fixed order, 0 for none. They tell slow from failed.
    longer_steps: NotNegative = 0
    longer_seeds: Positive = 3  #: networks of these
    #: networks with codes of places, of each order with recurrence and without; 0 for none
    coded_seeds: NotNegative = 3
    coded_steps: Positive = 100  #: updates of these

    def check(self) -> None:
        words_of(KIND, self.length)
        if self.longer_steps and self.longer_steps <= self.steps:
            raise BadInput(f"longer_steps is {self.longer_steps}; give 0 or more than the {self.steps} steps")


PROFILES = {
    "quick": Config(length=10, steps=140, coded_seeds=0),
    "paper": Config(
        seeds=20, controls=10, length=40, width=256, steps=300, longer_steps=2000, coded_steps=60
    ),
    "tiny": Config(seeds=2, controls=1, length=4, width=8, steps=4, every=2, coded_seeds=2, coded_steps=4),
}


def _plan(config: Config) -> tuple[Plan]:
    """The courses of all networks, by order and kind of network."""
    shared = {"kind": KIND} | settings_of(config, "length", "width", "steps", "every")
    seeds = {"learned": config.seeds, "uniform": config.controls}
    groups = {}
    for order, network in product(ORDERS, NETWORKS):
        own = shared | {"order": order, "network": network}
        groups[order, network] = each_seed(seeds[network], RunSpec.of, "permutation_copying", **own)
    if config.longer_steps:
        own = shared | {"order": "permuted", "steps": config.longer_steps, "every": SELDOMER * config.every}
        groups["permuted", LONGER] = each_seed(config.longer_seeds, RunSpec.of, "permutation_copying", **own)
    coded = shared | {"steps": config.coded_steps, "every": max(1, config.every // OFTENER)}
    for (network, recurrent), order in product(CODED.items(), ORDERS):
        own = coded | {"recurrent": recurrent, "order": order}
        groups[order, network] = each_seed(config.coded_seeds, RunSpec.of, "place_codes", **own)
    return (plan_of(groups, measure_copying),)


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The courses of both orders, and how far the probes under uniform attention are apart.

    Values by order are as in :mod:`notebooks.shared.copying`, and ``late_rise``, what accuracy gains in the
    last quarter of the updates; ``longer`` are networks with more updates. ``doublings`` is how many times as
    many updates the fixed order takes, in pairs (log2; who never gets there counts with all its updates), of
    these networks and of those with codes of places; ``doublings_less`` that of the former less the latter's.
    Their intervals are those of :func:`between_snapshots`.
    """
    groups = answered(*_plan(config), store)
    of = {n: {order: groups.get((order, n), []) for order in ORDERS} for n in (*NETWORKS, LONGER, *CODED)}
    learned, uniform, longer = of["learned"], of["uniform"], of[LONGER]["permuted"]
    values: dict[str, dict] = {
        order: outcome(learned[order], config.steps) | {"uniform": probes(uniform[order])} for order in ORDERS
    }
    values["copy_less_permuted"] = {"furthest": furthest(**uniform)} | {
        probe: paired(*uniform.values(), lambda course, n=probe: course[n][-1]) for probe in PROBES
    }
    values["permuted"]["late_rise"] = over_seeds(learned["permuted"], _late_rise)
    values["longer"] = outcome(longer, config.longer_steps) | {
        "peak": bounded(over_seeds(longer, lambda course: max(course["accuracy"])), high=1.0)
    }
    times = doublings(learned, config.steps)
    values["doublings"] = between_snapshots(times)
    for network in CODED:
        own = doublings(of[network], config.coded_steps)
        values[network] = {order: outcome(coded, config.coded_steps) for order, coded in of[network].items()}
        values[network] |= {
            "doublings": between_snapshots(own),
            "doublings_less": between_snapshots(differences(times, own)),
        }
    found = list(by_network(groups, "order", "network"))
    return values, {"courses": course_rows(found), "outcomes": outcome_rows(found)}


class Doublings(NamedTuple):
    """How many doublings apart two networks are, and between which numbers the truth lies."""

    at_snapshots: float
    least: float
    most: float  # infinite where the slower network is never seen to get there


def doublings(points: dict[str, list[Point]], steps: int) -> list[tuple[dict, Doublings]]:
    """log2 of the updates to 95 % in the fixed order over those in copying, by pair of networks."""
    slow, fast = ({name["seed"]: course for name, course in points[order]} for order in ("permuted", "copy"))
    return [({"seed": s}, _doublings(slow[s], fast[s], steps)) for s in slow if s in fast]


def _doublings(slow: dict, fast: dict, steps: int) -> Doublings:
    """
    >>> never = {"steps": [0, 10, 20, 40], "accuracy": [0.0, 0.1, 0.2, 0.3]}
    >>> early = {"steps": [0, 10, 20, 40], "accuracy": [0.0, 0.1, 1.0, 1.0]}
    >>> _doublings(never, early, 40)
    Doublings(at_snapshots=1.0, least=1.0, most=inf)
    >>> _doublings(early, early, 40)
    Doublings(at_snapshots=0.0, least=-1.0, most=1.0)
    """
    (slow_from, slow_to), (fast_from, fast_to) = _learned_between(slow), _learned_between(fast)
    return Doublings(
        at_snapshots=math.log2(min(slow_to, steps) / min(fast_to, steps)),
        least=math.log2(slow_from / min(fast_to, steps)),
        most=math.log2(slow_to / fast_from),
    )


def _learned_between(course: dict) -> tuple[float, float]:
    """The last snapshot before 95 % and the first with it; infinite where it is never seen."""
    learned, looks = steps_to_learn(course), course["steps"]
    if learned is None:
        return looks[-1], math.inf
    before = looks[max(looks.index(learned) - 1, 0)]
    return max(before, 1), max(learned, 1)


def differences(first: list[tuple[dict, Doublings]], second: list[tuple[dict, Doublings]]) -> list:
    """The first less the second, by pair of one seed."""
    other = {name["seed"]: own for name, own in second}
    return [
        (name, Doublings(own[0] - less[0], own[1] - less[2], own[2] - less[1]))
        for name, own in first
        if (less := other.get(name["seed"]))
    ]


def between_snapshots(pairs: list[tuple[dict, Doublings]]) -> dict:
    """Student's interval over pairs, widened to what snapshots leave open.

    Networks that are always seen at one snapshot would have an interval of no length, which is resolution and
    not certainty. Where a network never gets there the interval has no upper end: the number is ``at_least``.
    """
    spans = [Doublings(*span) for _, span in pairs]
    found = interval_of(span.at_snapshots for span in spans)
    if not spans or math.isnan(found["low"]):
        return found
    least = fmean(span.least for span in spans)
    most = fmean(span.most for span in spans)
    found["low"] = min(found["low"], least)
    if math.isinf(most):
        return found | {"high": None, "at_least": True}
    return found | {"high": max(found["high"], most)}


def furthest(copy: list[Point], permuted: list[Point]) -> dict:
    """How far the probes at the right word are apart at the snapshot, of ``looks``, where they are furthest.

    The snapshot is chosen by the mean difference, so that the interval there is rather too far from zero;
    ``among`` is the largest difference there between two networks of one order.
    """
    apart = [
        paired(copy, permuted, lambda course, i=snapshot: course["probe_right"][i])
        for snapshot in range(min((len(course["steps"]) for _, course in (*copy, *permuted)), default=0))
    ]
    if not apart or not apart[0]["n"]:
        return interval_of() | {"steps": None, "looks": 0, "among": None}
    snapshot = max(range(len(apart)), key=lambda i: abs(apart[i]["value"]))
    probes_there = [[course["probe_right"][snapshot] for _, course in group] for group in (copy, permuted)]
    return apart[snapshot] | {
        "steps": copy[0][1]["steps"][snapshot],
        "looks": len(apart),
        "among": max(max(own) - min(own) for own in probes_there),
    }


def _late_rise(course: dict) -> float:
    accuracy = course["accuracy"]
    return accuracy[-1] - accuracy[3 * (len(accuracy) - 1) // 4]
