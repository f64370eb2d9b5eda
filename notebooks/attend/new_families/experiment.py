"""The headline on families of tasks that it was not found on: shares and effects against typicality."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean

import numpy as np

from attnlib.decomposition.components import STATE_PARTS
from companion.results.config import Positive, Task, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, share
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.new_families.origins import EVERY, KNOWN, NEW
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.readings import EFFECTS, READINGS, effects_of_exchange, exchange_measurements, readings
from notebooks.shared.suite import (
    BY_KIND,
    OUTCOMES,
    PAPER_TASKS,
    SUITE,
    SuiteConfig,
    family,
    model_specs,
    outcomes,
    suite_frame,
    with_family,
)
from notebooks.shared.summaries import Bootstrap, correlations, summarise
from notebooks.shared.translators import (
    LEARNED,
    translator_measurements,
    translators_that_count,
    with_learned,
)

FAMILIES = ("lookup", "sorting", "selective_copying", "counting", "addition")

ATTRIBUTED = ("temporal", "input")  # the two parts that the headline is about
COMPARED = {
    **{f"{part}_own": READINGS[f"{part}_own"] for part in ATTRIBUTED},
    **{f"{part}_split": READINGS[f"{part}_split"] for part in ATTRIBUTED},
    **{f"{part}_moves": EFFECTS[part] for part in ATTRIBUTED},
}
BY_SIDE = {
    f"{side}_{part}_moves": EFFECTS[f"{side}_{part}"] for side in ("query", "keys") for part in STATE_PARTS
}
TEMPORAL_QUERY_INPUT_KEYS = {
    "temporal_input": Column("covariance share of the product of temporal queries and input keys, μ·χ")
}
AT_END_MARK = {
    "at_end_mark": share(
        "attention at the end token of the source, in the average matrix of the commonest lengths"
    )
}
POINT = (
    {name: OUTCOMES[name] for name in ("typicality", "coverage", "token_accuracy")}
    | COMPARED
    | BY_SIDE
    | TEMPORAL_QUERY_INPUT_KEYS
    | AT_END_MARK
)

AVERAGE = {
    "step": Column("step of the decoder, from 0", low=0),
    "place": Column("source position, from 0", low=0),
    "weight": share("average attention in held-out samples of the commonest lengths"),
    "source_length": Column("positions of the source, end mark included", low=1),
}
NAMES = {name: SUITE[name] for name in (*BY_KIND, "seed")}

ORIGIN = {
    "origin": Column(
        "families of tasks",
        categories={NEW: "those of this page", KNOWN: "those of the suite", EVERY: "both"},
    )
}
KIND = {"kind": Column(f"{SUITE['kind']}; {EVERY}: of every kind")}
COUNTS = {
    "networks": Column("networks that have learned their task", low=0),
    "families": Column("families of their tasks", low=0),
}
OVER_FAMILIES = Bootstrap(groups="family")


class Config(SuiteConfig):
    """The task suite's settings on families that the suite has not, and tasks of the suite beside them."""

    task: tuple[Task, ...] = FAMILIES
    known: tuple[Task, ...] = setting((), "tasks of the suite that are counted beside these")
    translated: Positive = setting(
        200, "held-out sentences that each translator writes, which tell whether it counts"
    )
    samples: Positive = setting(200, "held-out samples in whose forward pass parts are exchanged, at most")


PROFILES = {
    "quick": Config(task=("lookup", "selective_copying"), known=("one_to_one", "reordering_50"), seeds=2),
    "paper": Config(
        known=PAPER_TASKS, scale="paper", seeds=3, fit_samples=25_000, translated=1_000, samples=1_500
    ),
    "tiny": Config(seeds=1, width=8, steps=3, fit_samples=100, samples=60),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    """Ask the same of each network, and of translators whether they count."""
    return (*asked(config), *translator_measurements(specs_of(config), config.translated))


def asked(config: Config) -> tuple[Measurement, ...]:
    """Ask for the nine terms, and for what exchanging parts does."""
    specs = specs_of(config)
    terms = measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)
    return (*terms, *exchange_measurements(specs, config.fit_samples, config.samples))


def specs_of(config: Config) -> tuple[ModelSpec, ...]:
    """Return the networks of new and of known tasks, equally many of each kind."""
    return model_specs(replace(config, task=(*config.task, *config.known)))


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute readings and effects of each network, and what they have to do with typicality."""
    translators = translators_that_count(specs_of(config), config.translated, store)
    measured = suite_frame(asked(config), store, records=_numbers, columns=POINT)
    networks = _with_origin(with_learned(measured, translators), config.task)
    averages = suite_frame(
        _first_networks(config),
        store,
        records=_average_attention,
        columns=AVERAGE,
        names=NAMES,
        row="a weight",
    )
    return {
        "points": networks.select(*SUITE, *ORIGIN, *LEARNED, *POINT),
        "by_task": summarise(networks, BY_KIND, POINT),
        "over_families": over_families(networks),
        "counts": counts(networks),
        "averages": averages.whole_numbers("step", "place", "source_length"),
    }


def _numbers(terms: dict, exchange: dict) -> dict[str, float | None]:
    """Return readings of one network's nine terms, and the effects of exchanging its parts."""
    shares = terms["covariance_share"]
    effects = {f"{name}_moves": effect for name, effect in effects_of_exchange(exchange).items()}
    at_end_mark = fmean(row[-1] for row in terms["cell"]["average"])
    further = {"temporal_input": shares["temporal_input"], "at_end_mark": at_end_mark}
    return outcomes(terms) | readings(shares) | effects | further


def _first_networks(config: Config) -> tuple[Measurement, ...]:
    """Ask for the nine terms of the first network of each kind on a new task."""
    specs = [spec for spec in model_specs(config) if spec.seed == 0]
    return measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)


def _average_attention(terms: dict) -> Iterator[dict[str, float]]:
    """Yield each weight of the average attention over samples of the commonest lengths."""
    cell = terms["cell"]
    for step, row in enumerate(cell["average"]):
        for place, weight in enumerate(row):
            yield {
                "step": step,
                "place": place,
                "weight": round(weight, 4),
                "source_length": cell["source_length"],
            }


def _with_origin(networks: Table, new: Iterable[str]) -> Table:
    is_new = networks.frame["task"].isin(list(new))
    return networks.assign(ORIGIN, origin=np.where(is_new, NEW, KNOWN))


def over_families(networks: Table) -> Table:
    """Return rank correlations with typicality over networks that have learned, resampling families."""
    estimates = []
    for origin, members in _by_origin(networks.query("learned")):
        in_families = with_family(members)
        pooled = correlations(in_families, "typicality", COMPARED, resampled=OVER_FAMILIES)
        estimates.append(_named(pooled, origin, kind=EVERY))
        by_kind = correlations(in_families, "typicality", COMPARED, by=["kind"], resampled=OVER_FAMILIES)
        estimates.append(_named(by_kind, origin))
    return joined(estimates)


def _by_origin(networks: Table) -> tuple[tuple[str, Table], ...]:
    new = networks.query("origin == @origin", origin=NEW)
    known = networks.query("origin == @origin", origin=KNOWN)
    return (NEW, new), (KNOWN, known), (EVERY, networks)


def _named(estimates: Table, origin: str, **kind: str) -> Table:
    """Return estimates with the columns that say of which networks they are."""
    named = estimates.assign(ORIGIN, origin=origin)
    if kind:
        named = named.assign(KIND, **kind)
    others = [name for name in named.frame if name not in (*ORIGIN, *KIND)]
    return named.select(*ORIGIN, *KIND, *others)


def counts(networks: Table) -> Table:
    """Return how many networks have learned, and of how many families."""
    rows = []
    for origin, members in _by_origin(networks.query("learned")):
        kinds = sorted(members.frame["kind"].unique())
        rows.append({"origin": origin, "kind": EVERY} | _counted(members))
        for kind in kinds:
            of_kind = members.query("kind == @kind", kind=kind)
            rows.append({"origin": origin, "kind": kind} | _counted(of_kind))
    return Table.of(rows, ORIGIN | KIND | COUNTS, "a group of networks")


def _counted(networks: Table) -> dict[str, int]:
    families = {family(task) for task in networks.frame["task"]}
    return {"networks": len(networks.frame), "families": len(families)}


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers of each task and kind of network, and rank correlations with typicality."""
    return view(
        keyed(tables["by_task"], "{task}.{kind}.{quantity}"),
        keyed(tables["over_families"], "{origin}.{kind}.{quantity}"),
        keyed(tables["counts"], "{origin}.{kind}.{column}", tuple(COUNTS)),
    )
