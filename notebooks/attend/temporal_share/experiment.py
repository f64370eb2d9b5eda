"""Temporal share against typicality: the first paper's headline, a point for each trained network."""

from collections.abc import Iterable

from attnlib.decomposition.components import STATE_PARTS
from attnlib.models.config import Cell
from companion.results.config import Positive, Task, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, share
from companion.runs.store import Store
from companion.runs.suite import task_name_of
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.readings import EFFECTS, READINGS, effects_of_exchange, exchange_measurements, readings
from notebooks.shared.suite import (
    BY_KIND,
    CELL_TASKS,
    DIAL,
    OUTCOMES,
    PAPER_TASKS,
    SUITE,
    SuiteConfig,
    family,
    model_specs,
    model_specs_and_cells,
    on_dial,
    outcomes,
    suite_frame,
    with_family,
)
from notebooks.shared.summaries import Bootstrap, correlations, end_differences, summarise
from notebooks.shared.translators import (
    LEARNED,
    translator_measurements,
    translators_that_count,
    with_learned,
)

QUANTITIES = {  # what the paper's statement is about: shares, and what one kind of component rebuilds
    "temporal_share": Column("covariance share of the product of temporal parts, μ·μ"),
    "input_share": Column("covariance share of the product of input parts, χ·χ"),
    "temporal_only": share("1 minus the total variation from attention of the term μ·μ alone"),
    "input_only": share("1 minus the total variation from attention of the term χ·χ alone"),
}
COORDINATES = {
    "typicality": OUTCOMES["typicality"],
    **QUANTITIES,
    "uniform": share("1 minus the total variation from uniform attention"),
    "residual_share": Column("covariance share of the five terms with a residual"),
    "token_accuracy": OUTCOMES["token_accuracy"],
    "coverage": OUTCOMES["coverage"],
}
QUERY_MINUS_KEYS = {
    "temporal_query_minus_keys": Column("share of temporal parts of queries minus that of keys")
}
SIDES = ("", "query_", "keys_")
MOVES = {  # how far attention moves when a part is exchanged: on both sides, in the queries, in the keys
    f"{side}{part}_moves": EFFECTS[f"{side}{part}"] for side in SIDES for part in STATE_PARTS
}
POINT = COORDINATES | READINGS | QUERY_MINUS_KEYS | MOVES

SPLIT = tuple(f"{part}_split" for part in STATE_PARTS)
# What is compared with typicality in addition to a part's own term, and what along the dial.
FURTHER = (
    *SPLIT,
    "temporal_any",
    "input_any",
    "input_delta_own",
    "temporal_input_delta",
    *(f"{part}_moves" for part in STATE_PARTS),
)
BY_SIDE = tuple(f"{side}_{part}" for side in ("query", "keys") for part in STATE_PARTS)
ON_DIAL = ("typicality", *QUANTITIES, "residual_share")
ON_DIAL_LEARNED = (*ON_DIAL, *FURTHER, *BY_SIDE, "temporal_query_minus_keys")

AMONG_SAMPLES = {
    name: Column(f"rank correlation among samples of a network, of typicality and {name}", low=-1, high=1)
    for name in QUANTITIES
}
EVERY = "all"  # kinds of network together
GROUP = {
    "among": Column(
        "which networks count", categories={"trained": "all", "learned": "those that have learned their task"}
    ),
    "kind": Column(f"{SUITE['kind']}; {EVERY}: of every kind"),
}
COUNTS = {
    "networks": Column("networks", low=0),
    "families": Column("families of tasks of these networks", low=0),
    "tasks": Column("tasks of these networks", low=0),
    "marks": Column("marks of the dial among these tasks", low=0),
}
OVER_TASKS = Bootstrap(groups="task")
OVER_FAMILIES = Bootstrap(groups="family")
WITHIN_MARKS = Bootstrap(groups="task", draws_groups=False)

# Tables with a row for each group, rows of them, and keys.
IN_GROUPS = ("over_tasks", "over_families", "along_dial", "dial_ends", "counts")
POOLED, BY_KINDS = f"kind == '{EVERY}'", f"kind != '{EVERY}'"
OF_FAMILIES = ("networks", "families")
LEARNED_KIND = "learned.by_architecture.{kind}"


class Config(SuiteConfig):
    """The task suite's settings, and recurrent cells beside the GRU."""

    more_cells: tuple[Cell, ...] = setting((), "cells of AED that are added on some tasks only")
    cells_on: tuple[Task, ...] = setting(CELL_TASKS, "the tasks on which they are")
    translated: Positive = setting(
        200, "held-out sentences that each translator writes, which tell whether it counts"
    )
    exchange_seeds: Positive = setting(
        3, "networks of each kind whose parts are exchanged in the forward pass, seeds 0 … n − 1"
    )
    dial_seeds: Positive = setting(3, "the same of recurrent networks along the dial")
    samples: Positive = setting(200, "held-out samples in whose forward pass parts are exchanged, at most")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=PAPER_TASKS,
        scale="paper",
        fit_samples=25_000,
        more_cells=("lstm", "vanilla", "ugrnn"),
        translated=1_000,
        dial_seeds=10,
        samples=1_500,
    ),
    "tiny": Config(
        task=("reordering_0", "reordering_100"), seeds=1, width=8, steps=3, fit_samples=100, samples=60
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    translators = translator_measurements(model_specs(config), config.translated)
    return (*terms_of(config), *exchanges_of(config), *translators)


def terms_of(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs_and_cells(config)
    return measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)


def exchanges_of(config: Config) -> tuple[Measurement, ...]:
    """What exchanging parts does, asked of the first networks of each kind."""
    specs = []
    for spec in model_specs(config):
        along = spec.architecture == "AED" and task_name_of(spec) in DIAL
        if spec.seed < (config.dial_seeds if along else config.exchange_seeds):
            specs.append(spec)
    return exchange_measurements(specs, config.fit_samples, config.samples)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute readings and effects of each network, and what they have to do with typicality and the dial."""
    translators = translators_that_count(model_specs(config), config.translated, store)
    asked = (*terms_of(config), *exchanges_of(config))
    networks = with_learned(suite_frame(asked, store, records=_coordinates, columns=POINT), translators)
    among_samples = suite_frame(terms_of(config), store, records=_among_samples, columns=AMONG_SAMPLES)
    return {
        "points": networks.select(*SUITE, *LEARNED, *POINT),
        "by_task": summarise(networks, BY_KIND, POINT),
        "across_samples": summarise(among_samples, BY_KIND, AMONG_SAMPLES),
        "over_tasks": over_tasks(networks),
        "over_families": over_families(networks),
        "along_dial": along_dial(networks),
        "dial_ends": dial_ends(networks),
        "counts": counts(networks),
    }


def _coordinates(terms: dict, exchange: dict | None = None) -> dict[str, float | None]:
    """Return readings of one network's nine terms, and effects of exchange where parts were exchanged."""
    shares = readings(terms["covariance_share"])
    effects = effects_of_exchange(exchange) if exchange else {}
    moves = {name: effects.get(name.removesuffix("_moves")) for name in MOVES}
    query_minus_keys = shares["query_temporal"] - shares["keys_temporal"]
    return outcomes(terms) | shares | {"temporal_query_minus_keys": query_minus_keys} | moves


def _among_samples(terms: dict) -> dict[str, float | None]:
    return terms["across_samples"]


def over_tasks(networks: Table) -> Table:
    """Return rank correlations with typicality whose intervals resample tasks."""
    pooled = correlations(networks, "typicality", QUANTITIES, resampled=OVER_TASKS)
    by_kind = correlations(networks, "typicality", QUANTITIES, by=["kind"], resampled=OVER_TASKS)
    return joined([_in_group("trained", pooled), _in_group("trained", by_kind)])


def over_families(networks: Table) -> Table:
    """Return rank correlations with typicality whose intervals resample families of tasks."""
    in_families = with_family(networks)
    learned = in_families.query("learned")
    readings_too = (*QUANTITIES, *FURTHER)
    pooled = correlations(learned, "typicality", readings_too, resampled=OVER_FAMILIES)
    by_kind = correlations(learned, "typicality", QUANTITIES, by=["kind"], resampled=OVER_FAMILIES)
    trained = correlations(in_families, "typicality", QUANTITIES, resampled=OVER_FAMILIES)
    return joined(
        [_in_group("learned", pooled), _in_group("learned", by_kind), _in_group("trained", trained)]
    )


def along_dial(networks: Table) -> Table:
    """Return rank correlations with the mark of the dial, by kind of network."""
    how = {"by": ["kind"], "resampled": WITHIN_MARKS}
    learned = correlations(_at_enough_marks(networks.query("learned")), "mark", ON_DIAL_LEARNED, **how)
    trained = correlations(_at_enough_marks(networks), "mark", ON_DIAL, **how)
    return joined([_in_group("learned", learned), _in_group("trained", trained)])


def dial_ends(networks: Table) -> Table:
    """Return means at the last mark of the dial minus those at the first, by kind of network."""
    how = {"by": ["kind"], "resampled": WITHIN_MARKS}
    learned = end_differences(_at_enough_marks(networks.query("learned")), "mark", ON_DIAL_LEARNED, **how)
    trained = end_differences(_at_enough_marks(networks), "mark", ON_DIAL, **how)
    return joined([_in_group("learned", learned), _in_group("trained", trained)])


def _at_enough_marks(networks: Table) -> Table:
    """Return networks on the dial, of kinds that are at as many marks as claims along it presuppose."""
    from companion.claims.presupposed import holds  # a bare node, which only measures, cannot read claims

    marked = on_dial(networks)
    marks = marked.frame.groupby("kind")["mark"].nunique()
    enough = [kind for kind, number in marks.items() if holds("marks-of-the-dial", marks=number)]
    return marked.query("kind in @enough", enough=enough)


def _in_group(among: str, estimates: Table) -> Table:
    """Return estimates with the columns that say of which networks they are."""
    named = estimates.assign({"among": GROUP["among"]}, among=among)
    if "kind" not in named.frame:
        named = named.assign({"kind": GROUP["kind"]}, kind=EVERY)
    others = [name for name in named.frame if name not in GROUP]
    return named.select(*GROUP, *others)


def counts(networks: Table) -> Table:
    """Return how many networks, families, tasks and marks of the dial there are in each group."""
    rows = []
    for among, members in (("trained", networks), ("learned", networks.query("learned"))):
        rows.append({"among": among, "kind": EVERY} | _counted(members))
        for kind in networks.frame["kind"].unique():
            of_kind = members.query("kind == @kind", kind=kind)
            rows.append({"among": among, "kind": kind} | _counted(of_kind))
    return Table.of(rows, GROUP | COUNTS, "a group of networks")


def _counted(networks: Table) -> dict[str, int]:
    tasks = networks.frame["task"].unique()
    return {
        "networks": len(networks.frame),
        "families": len({family(task) for task in tasks}),
        "tasks": len(tasks),
        "marks": len(set(tasks) & set(DIAL)),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return rank correlations with typicality and along the dial, and counts of the networks behind them."""
    kinds = tables["points"].frame["kind"].unique()
    return view(
        _of_kinds_without_networks(kinds),
        keyed(tables["by_task"], "by_task.{task}.{kind}.{quantity}"),
        keyed(tables["across_samples"], "across_samples.{task}.{kind}.{quantity}"),
        _of_trained(_among("trained", tables)),
        _of_learned(_among("learned", tables)),
    )


def _among(among: str, tables: dict[str, Table]) -> dict[str, Table]:
    """Return the rows of tables that are of one group of networks, the trained or those that have learned."""
    return {name: tables[name].query("among == @among", among=among) for name in IN_GROUPS}


def _of_trained(tables: dict[str, Table]) -> dict[str, object]:
    """Return numbers of all networks, whether they have learned their task or not, by key."""
    over_tasks, counts = tables["over_tasks"], tables["counts"]
    pooled = counts.query(POOLED)
    kinds_on_dial = set(tables["along_dial"].frame["kind"])
    of_kinds_on_dial = counts.query("kind in @kinds", kinds=kinds_on_dial)

    numbers = keyed(over_tasks.query(POOLED), "spearman.{quantity}")
    numbers |= keyed(over_tasks.query(BY_KINDS), "by_architecture.{kind}.spearman.{quantity}")
    numbers |= keyed(tables["over_families"], "families.spearman.{quantity}")
    numbers |= keyed(pooled, "families.{column}", OF_FAMILIES)
    numbers |= keyed(pooled, "{column}", ("tasks",))
    numbers |= keyed(tables["along_dial"], "dial.{kind}.{quantity}")
    numbers |= keyed(tables["dial_ends"], "dial.{kind}.ends.{quantity}")
    numbers |= keyed(of_kinds_on_dial, "dial.{kind}.{column}", ("marks",))
    return numbers


def _of_learned(tables: dict[str, Table]) -> dict[str, object]:
    """Return numbers of the networks that have learned their task, by key."""
    over_families, counts = tables["over_families"], tables["counts"]
    by_kind = counts.query(BY_KINDS)

    numbers = keyed(over_families.query(POOLED), "learned.spearman.{quantity}")
    numbers |= keyed(over_families.query(BY_KINDS), f"{LEARNED_KIND}.spearman.{{quantity}}")
    numbers |= keyed(counts.query(POOLED), "learned.{column}", OF_FAMILIES)
    numbers |= keyed(by_kind, f"{LEARNED_KIND}.{{column}}", OF_FAMILIES)
    numbers |= keyed(tables["along_dial"], "learned.dial.{kind}.{quantity}")
    numbers |= keyed(tables["dial_ends"], "learned.dial.{kind}.ends.{quantity}")
    numbers |= keyed(by_kind, "learned.dial.{kind}.{column}", ("marks",))
    return numbers


def _of_kinds_without_networks(kinds: Iterable[str]) -> dict[str, dict]:
    """Return what is at the keys of a kind of which no network has learned, or is on the dial."""
    unknown: dict[str, dict] = {}
    for kind in kinds:
        unknown[f"dial.{kind}"] = {}
        for quantity in QUANTITIES:
            unknown[f"learned.by_architecture.{kind}.spearman.{quantity}"] = interval_of()
        for quantity in ON_DIAL_LEARNED:
            unknown[f"learned.dial.{kind}.{quantity}"] = interval_of()
            unknown[f"learned.dial.{kind}.ends.{quantity}"] = interval_of()
    return unknown
