"""A fixed reordering against copying: attention is no free variable, whatever is known of single words."""

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from attnlib.errors import BadInput
from companion.results.config import BaseConfig, NotNegative, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying
from notebooks.shared.copying import OUTCOME, PROBES, READ_OFF
from notebooks.shared.doublings import (
    AT_LEAST,
    DOUBLINGS,
    before_learning,
    between_snapshots,
    doublings,
    doublings_less,
    without_infinities,
)
from notebooks.shared.intervals import Interval, interval_of
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.trainings.permutation_copying import words_of

if TYPE_CHECKING:
    import pandas as pd

ORDERS = {"copy": "the order of the source", "permuted": "one other order for all sentences"}
NETWORKS = ("learned", "uniform")
LONGER = "longer"  # networks with learned attention and more updates
CODED = {"coded_not_recurrent": False, "coded": True}  # networks with codes of places: with recurrence?
SELDOMER = 5  # times as many updates between two snapshots at these
OFTENER = 2  # times as many snapshots of networks with codes, which learn soon
KIND = "sample"  # the sentences that copying is always learned from


class Config(BaseConfig):
    """Settings; a network is an order × (learned or uniform attention) × seed."""

    seeds: Positive = setting(3, "networks with learned attention of each order")
    controls: Positive = setting(
        2,
        "networks with uniform attention of each order. The paper profile has more than "
        "notebooks.learn.permutation_copying.experiment: their differences are held against a "
        "band",
    )
    length: int = setting(16, "words of a sentence, drawn from one and a half times as many")
    width: Positive = setting(64, "of embeddings and states")
    steps: Positive = setting(240, "updates in training")
    every: Positive = setting(10, "updates between two snapshots")
    longer_steps: NotNegative = setting(
        0, "updates of further networks in the fixed order, 0 for none. They tell slow from failed"
    )
    longer_seeds: Positive = setting(3, "networks of these")
    coded_seeds: NotNegative = setting(
        3, "networks with codes of places, of each order with recurrence and without; 0 for none"
    )
    coded_steps: Positive = setting(100, "updates of these")

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
        settings = shared | {"order": order, "network": network}
        groups[order, network] = each_seed(seeds[network], RunSpec.of, "permutation_copying", **settings)
    if config.longer_steps:
        longer = {"order": "permuted", "steps": config.longer_steps, "every": SELDOMER * config.every}
        groups["permuted", LONGER] = each_seed(
            config.longer_seeds, RunSpec.of, "permutation_copying", **(shared | longer)
        )
    coded = shared | {"steps": config.coded_steps, "every": max(1, config.every // OFTENER)}
    for (network, recurrent), order in product(CODED.items(), ORDERS):
        settings = coded | {"recurrent": recurrent, "order": order}
        groups[order, network] = each_seed(config.coded_seeds, RunSpec.of, "place_codes", **settings)
    return (plan_of(groups, copying.measure_copying),)


measurements = asked(_plan)

KINDS = {
    "learned": "LSTMs whose attention is learned",
    "uniform": "LSTMs whose attention is held uniform",
    LONGER: "LSTMs whose attention is learned, with more updates",
    "coded_not_recurrent": "networks with codes of places, without recurrence",
    "coded": "LSTMs with codes of places",
}
GROUP = {
    "order": Column("order in which the words are to be written", categories=ORDERS),
    "network": Column("kind of network", categories=KINDS),
}
SEEN = {
    "before": Column("last checkpoint below 95 %", "updates"),
    "late_rise": Column("accuracy gained in the last quarter of the updates"),
    "peak": share("the highest accuracy at a checkpoint"),
}
JUDGED = ("steps_to_learn", "accuracy", "attention_accuracy")
FURTHEST = {
    "steps": Column("updates at the snapshot where the probes are furthest apart", "updates"),
    "looks": Column("snapshots that are looked at", "snapshots"),
    "among": Column("largest difference there between two networks of one order"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the courses of both orders, and how far the probes under uniform attention are apart."""
    (plan,) = _plan(config)

    def of_network(records: Callable, columns: Columns, row: str) -> Table:
        return plan_frame(plan, store, GROUP, records=records, columns=columns, row=row)

    networks = of_network(_network, OUTCOME | SEEN, "a trained network")
    networks = networks.whole_numbers("steps_to_learn")
    courses = of_network(copying.course_records, copying.COURSE, "a network at a checkpoint")
    copy, permuted = (
        networks.query("network == 'uniform' and order == @order", order=order) for order in ORDERS
    )
    apart = differences(copy, permuted, PROBES)
    pairs = {
        network: doublings(networks.query("network == @network", network=network))
        for network in ("learned", *CODED)
    }
    further = {network: doublings_less(pairs["learned"], pairs[network]) for network in CODED}
    spans = [_estimated(pairs, "doublings"), _estimated(further, "doublings_less")]
    return {
        "courses": courses,
        "outcomes": networks.select(*GROUP, "seed", *JUDGED),
        "networks": networks,
        "estimates": joined(
            [
                copying.outcome_estimates(networks, [*GROUP]),
                summarise(networks, [*GROUP], [*READ_OFF, "late_rise", "peak"]),
            ]
        ),
        "counts": copying.outcome_counts(networks, [*GROUP]),
        "copy_less_permuted": summarise(apart, ["network"], PROBES),
        "furthest": _furthest(courses),
        "doublings": without_infinities(joined([*pairs.values()])),
        "doublings_estimates": joined(spans),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by order, as in :mod:`notebooks.shared.copying`; ``longer`` networks have more updates.

    ``doublings`` is how many times as many updates the fixed order takes, in pairs (log2; who never gets
    there counts with all its updates), of LSTMs and of networks with codes of places; ``doublings_less`` is
    that of the former minus the latter's. Their intervals are those of :func:`between_snapshots`.
    """
    estimates, counts, times = tables["estimates"], tables["counts"], tables["doublings_estimates"]
    outcomes = estimates.query("quantity in @names", names=["failed", *copying.ESTIMATED])

    def of_network(key: str, network: str) -> dict[str, object]:
        shown, counted = (table.query("network == @network", network=network) for table in (outcomes, counts))
        return copying.outcome_keys(key, shown, counted)

    uniform = estimates.query("network == 'uniform' and quantity in @names", names=READ_OFF)
    rise = estimates.query("network == 'learned' and order == 'permuted' and quantity == 'late_rise'")
    peak = estimates.query("network == 'longer' and quantity == 'peak'")
    lstms = times.query("network == 'learned'")
    coded = times.query("network != 'learned'")
    return view(
        _nothing(),
        of_network("{order}", "learned"),
        *(of_network("{network}.{order}", network) for network in CODED),
        of_network("longer", LONGER),
        keyed(uniform, "{order}.uniform.{quantity}"),
        keyed(rise, "{order}.late_rise"),
        keyed(peak, "longer.peak"),
        keyed(tables["copy_less_permuted"], "copy_less_permuted.{quantity}"),
        keyed(tables["furthest"], "copy_less_permuted.furthest"),
        keyed(tables["furthest"], "copy_less_permuted.furthest.{column}", FURTHEST),
        keyed(lstms, "doublings"),
        keyed(lstms.query("at_least == True"), "doublings.{column}", AT_LEAST),
        keyed(coded, "{network}.{quantity}"),
        keyed(coded.query("at_least == True"), "{network}.{quantity}.{column}", AT_LEAST),
    )


def _nothing() -> dict[str, object]:
    """Return the keys of which no network is known."""
    unknown = copying.no_outcome("longer") | {"longer.peak": interval_of()}
    for order in ORDERS:
        unknown |= copying.no_outcome(order)
        unknown |= {f"{order}.uniform.{name}": interval_of() for name in READ_OFF}
        for network in CODED:
            unknown |= copying.no_outcome(f"{network}.{order}")
    unknown |= {"permuted.late_rise": interval_of(), "doublings": interval_of()}
    for network in CODED:
        unknown |= {f"{network}.{name}": interval_of() for name in ("doublings", "doublings_less")}
    unknown |= {f"copy_less_permuted.{name}": interval_of() for name in PROBES}
    furthest_apart = interval_of() | {"steps": None, "looks": 0, "among": None}
    return unknown | {"copy_less_permuted.furthest": furthest_apart}


def _network(course: dict) -> dict:
    seen = {
        "before": before_learning(course),
        "late_rise": late_rise(course),
        "peak": max(course["accuracy"]),
    }
    return copying.outcome_record(course) | seen


def late_rise(course: dict) -> float:
    """Return what accuracy gains in the last quarter of the updates."""
    accuracy = course["accuracy"]
    return accuracy[-1] - accuracy[3 * (len(accuracy) - 1) // 4]


def _estimated(pairs: dict[str, Table], quantity: str) -> Table:
    """Return :func:`between_snapshots` of each kind of network that has pairs."""
    rows = []
    for network, of_network in pairs.items():
        spans = of_network.frame[[*DOUBLINGS]].to_numpy().tolist()
        if spans:
            named = {"network": network, "quantity": quantity, "at_least": False}
            rows.append(named | between_snapshots(spans))
    quantities = {
        "doublings": str(DOUBLINGS["doublings"]),
        "doublings_less": "the same of LSTMs without codes, minus that of these networks",
    }
    columns = {"network": GROUP["network"], "quantity": Column("what is estimated", categories=quantities)}
    return Table.of(rows, columns | INTERVAL | AT_LEAST, "an estimate over pairs of networks")


# How far probes are apart.


def _furthest(courses: Table) -> Table:
    uniform = courses.query("network == 'uniform'").frame
    by_order = []
    for order in ORDERS:
        of_order = uniform[uniform["order"] == order]
        by_order.append(of_order.pivot(index="steps", columns="seed", values="probe_right").dropna())
    apart = furthest(*by_order)
    rows = [apart] if apart["looks"] else []
    return Table.of(rows, INTERVAL | FURTHEST, "the snapshot where probes are furthest apart")


def furthest(copy: "pd.DataFrame", permuted: "pd.DataFrame") -> Interval:
    """Return how far probes are apart at the snapshot, of ``looks``, where they are furthest.

    The snapshot is chosen by the mean difference, so that the interval there is rather too far from zero;
    ``among`` is the largest difference there between two networks of one order.

    Args:
        copy: the probe of each network that copies, a row for each snapshot and a column for each seed.
        permuted: the same of networks in the fixed order.
    """
    nothing = interval_of() | {"steps": None, "looks": 0, "among": None}
    seeds = [seed for seed in copy if seed in permuted]
    snapshots = [steps for steps in copy.index if steps in permuted.index]
    if not seeds or not snapshots:
        return nothing
    apart = {steps: interval_of(copy.loc[steps, seeds] - permuted.loc[steps, seeds]) for steps in snapshots}
    chosen = max(snapshots, key=lambda steps: abs(apart[steps]["value"]))
    among = max(np.ptp(probes.loc[chosen]) for probes in (copy, permuted))
    return apart[chosen] | {"steps": int(chosen), "looks": len(snapshots), "among": float(among)}
