"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
from functools import partial
from itertools import product
from statistics import fmean

from companion.results.config import BaseConfig, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs.columns import Column
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying
from notebooks.shared.copying import TIMES, WAYS, events
from notebooks.shared.intervals import interval_of
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.summaries import summarise
from notebooks.shared.trainings.permutation_copying import KINDS, words_of

WAY = {"way": Column("way that attention goes first; empty where it stays uniform", categories=WAYS)}
HELD = {
    "held": Column("share of words known with attention held uniform, when networks of a way attend"),
    "n_held": Column("networks of the way that this is looked up for", "networks", low=0),
}
WAY_COUNTS = {
    "n": Column("networks that go this way", "networks", low=0),
    "first": Column("networks in which words are known first", "networks", low=0),
    "n_held": HELD["n_held"],
    "soonest": Column("updates until the first of them has learned", "updates"),
    "latest": Column("updates until the last of those has learned that do", "updates"),
}
KIND = {
    "floor": Column("entropy of a word when those of the sentence are known", "nats"),
    "ignorance": Column("entropy of a word when nothing is known", "nats"),
    "stays": Column("networks that never leave uniform attention", "networks", low=0),
}


NETWORKS = {
    "learned": "attention is learned",
    "uniform": "attention is held uniform",
    "proxy": "a bag of words",
}
SENTENCES = {
    "permutation": "all words of the vocabulary, in any order",
    "sample": "two thirds of the words of the vocabulary",
    "mixture": "one half of the vocabulary or the other",
}
SHARED_KIND, SHARED_NETWORKS = "sample", ("learned", "uniform")  # what fixed_permutation trains to copy


class Config(BaseConfig):
    """Settings; a network is a kind of sentences × (learned or uniform attention, or the proxy) × seed."""

    kind: tuple[str, ...] = setting(KINDS, "of sentences: permutation, sample, mixture")
    seeds: Positive = setting(3, "networks with learned attention of each kind")
    controls: Positive = setting(2, "networks with uniform attention, and bags of words, of each kind")
    length: int = setting(16, "words of a sentence; the vocabularies grow with it")
    width: Positive = setting(64, "of embeddings and states")
    steps: Positive = setting(200, "updates after which networks are judged")
    every: Positive = setting(10, "updates between two snapshots")
    followed: Positive = setting(
        200, "updates of learned attention on permutations and mixtures, if more. What fails may be slow"
    )
    sample_steps: Positive = setting(
        240,
        "updates of the networks that copy samples, if more. With as many as "
        "notebooks.learn.fixed_permutation.experiment has, these are its networks",
    )

    def check(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        updates = [self.updates(kind, network) for kind in self.kind for network in NETWORKS]
        copying.check_checkpoints(self.steps, self.every, max(updates, default=self.steps))

    def updates(self, kind: str, network: str) -> int:
        """How long a network is trained: as long as it is judged, or for longer."""
        if kind == SHARED_KIND and network in SHARED_NETWORKS:
            return max(self.steps, self.sample_steps)
        if kind != SHARED_KIND and network == "learned":
            return max(self.steps, self.followed)
        return self.steps


PROFILES = {
    "quick": Config(length=10, steps=140, followed=140, sample_steps=140),
    "paper": Config(seeds=20, controls=5, length=40, width=256, followed=500, sample_steps=300),
    "tiny": Config(seeds=2, controls=1, length=4, width=8, steps=4, every=2, followed=4, sample_steps=6),
}


def _plan(config: Config) -> tuple[Plan]:
    """The courses of all networks, by kind of sentences and network."""
    groups = {}
    for kind, network in product(config.kind, NETWORKS):
        settings = settings_of(config, "length", "width", "every")
        settings |= {"kind": kind, "network": network, "steps": config.updates(kind, network)}
        seeds = config.seeds if network == "learned" else config.controls
        groups[kind, network] = each_seed(seeds, RunSpec.of, "permutation_copying", **settings)
    return (plan_of(groups, copying.measure_copying),)


measurements = asked(_plan)


GROUP = {
    "kind": Column("kind of sentences", categories=SENTENCES),
    "network": Column("what is trained", categories=NETWORKS),
}
JUDGED = ("steps_to_learn", "accuracy", "attention_accuracy")
OF_LEARNED = ("failed", *copying.ESTIMATED, "probe_agreement")
OF_UNIFORM = ("accuracy", *copying.READ_OFF)
OF_PROXY = (*OF_UNIFORM, "above_floor")
BY_WAY = ["kind", *WAY]


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the courses of all networks, and what became of them, as in :mod:`notebooks.shared.copying`."""
    (plan,) = _plan(config)
    courses = plan_frame(
        plan, store, GROUP,
        records=copying.course_records, columns=copying.COURSE, row="a network at a checkpoint",
    )  # fmt: skip
    at_the_end = partial(_network, judged_at=config.steps, length=config.length)
    networks = plan_frame(plan, store, GROUP, records=at_the_end, columns=copying.OUTCOME | WAY)
    networks = networks.whole_numbers("steps_to_learn")

    learned = {group: asked for group, asked in plan.items() if group[1] == "learned"}
    whole = partial(copying.followed_record, judged_at=config.steps)
    followed_columns = copying.OUTCOME | copying.FOLLOWED_RECORD
    followed = plan_frame(learned, store, GROUP, records=whole, columns=followed_columns)
    events_of = partial(events, length=config.length)
    first_events = plan_frame(learned, store, GROUP, records=events_of, columns=WAY | TIMES)
    held = _held(first_events, courses.query("network == 'uniform'"))
    turned = copying.turned_away(networks.query("network == 'learned'"), config.length)

    outcomes = copying.outcome_estimates(networks, [*GROUP])
    read_off = summarise(networks, [*GROUP], [*copying.READ_OFF, "above_floor"])
    times_by_way = summarise(first_events, BY_WAY, TIMES)
    held_by_way = summarise(held, BY_WAY, ["held"])
    return {
        "courses": courses,
        "outcomes": networks.select(*GROUP, "seed", *JUDGED, *WAY),
        "networks": networks.select(*GROUP, "seed", *copying.OUTCOME),
        "events": first_events.whole_numbers(*TIMES),
        "estimates": joined([outcomes, read_off]).query("n > 0"),
        "counts": copying.outcome_counts(networks, [*GROUP]),
        "followed": copying.followed_estimates(followed, ["kind"]),
        "followed_counts": copying.followed_counts(followed, ["kind"]),
        "turned": copying.turned_estimates(turned, ["kind"]),
        "ways": joined([times_by_way, held_by_way]),
        "way_counts": _way_counts(first_events, held),
        "kinds": _kinds(config, first_events),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by kind: of learned attention as networks are judged, and in branches of the others.

    ``ways`` are of :func:`events`; ``stays`` counts networks that never leave uniform attention; ``held`` is
    the share of words that networks which never attend know after as many updates as ``there``.
    """
    learned = _of_network(tables["estimates"], "learned", OF_LEARNED)
    uniform = _of_network(tables["estimates"], "uniform", OF_UNIFORM)
    proxy = _of_network(tables["estimates"], "proxy", OF_PROXY)
    counts = tables["counts"].query("network == 'learned'")
    nothing: dict[str, object] = {}
    for kind in config.kind:
        nothing |= _nothing(kind, config)
    return view(
        nothing,
        copying.outcome_keys("{kind}", learned, counts),
        keyed(uniform, "{kind}.uniform.{quantity}"),
        keyed(proxy, "{kind}.proxy.{quantity}"),
        copying.followed_keys("{kind}.followed", tables["followed"], tables["followed_counts"]),
        copying.turned_keys("{kind}.turned", tables["turned"]),
        keyed(tables["ways"], "{kind}.ways.{way}.{quantity}"),
        keyed(tables["way_counts"], "{kind}.ways.{way}.{column}", WAY_COUNTS),
        keyed(tables["kinds"], "{kind}.ways.{column}", ["stays"]),
        keyed(tables["kinds"], "{kind}.{column}", ["floor", "ignorance"]),
    )


def _of_network(estimates: Table, network: str, quantities: tuple[str, ...]) -> Table:
    condition = "network == @network and quantity in @quantities"
    return estimates.query(condition, network=network, quantities=quantities)


def _nothing(kind: str, config: Config) -> dict[str, object]:
    """Return the keys of a kind of sentences of which no network is known."""
    unknown: dict[str, object] = {f"{kind}.probe_agreement": interval_of()}
    for name in OF_UNIFORM:
        unknown[f"{kind}.uniform.{name}"] = interval_of()
    for name in OF_PROXY:
        unknown[f"{kind}.proxy.{name}"] = interval_of()
    for way in WAYS:
        unknown |= _nothing_of_way(f"{kind}.ways.{way}")
    unknown |= copying.no_outcome(kind)
    unknown |= copying.not_followed(f"{kind}.followed", config.updates(kind, "learned"))
    unknown |= copying.none_turned(f"{kind}.turned")
    return unknown


def _nothing_of_way(key: str) -> dict[str, object]:
    """Return the keys of a way that no network goes."""
    unknown: dict[str, object] = {}
    for name in (*TIMES, "held"):
        unknown[f"{key}.{name}"] = interval_of()
    for name in ("n", "first", "n_held"):
        unknown[f"{key}.{name}"] = 0
    for name in ("soonest", "latest"):
        unknown[f"{key}.{name}"] = None
    return unknown


def _network(course: dict, *, judged_at: int, length: int) -> dict:
    """Return what has become of a network when it is judged, and the way that its attention goes at all."""
    record = copying.outcome_record(copying.until(course, judged_at))
    if "attention_right" in course:
        record["way"] = events(course, length)["way"]
    return record


def _held(first_events: Table, uniform: Table) -> Table:
    """Return what networks with uniform attention know after as many updates as those of a way attend.

    Updates after which one of them was not looked at are left out.
    """
    rows = []
    for (kind, way), group in first_events.frame.groupby(BY_WAY, sort=False):
        of_kind = uniform.frame[uniform.frame["kind"] == kind]
        known = of_kind.pivot(index="steps", columns="seed", values="probe_agreement").dropna()
        steps = [step for step in group["there"] if step in known.index]
        if not steps:
            continue
        for seed in known.columns:
            held = fmean(known.loc[steps, seed])
            rows.append({"kind": kind, "way": way, "seed": seed, "held": held, "n_held": len(steps)})
    columns = first_events.columns | HELD
    names = [*BY_WAY, "seed", *HELD]
    return Table.of(rows, {name: columns[name] for name in names}, "a network with uniform attention")


def _way_counts(first_events: Table, held: Table) -> Table:
    looked_up = held.frame.groupby(BY_WAY)["n_held"].first().to_dict()
    rows = []
    for (kind, way), group in first_events.frame.groupby(BY_WAY, sort=False):
        times = group["steps_to_learn"].astype(float)
        leads = group["lead"].astype(float)
        rows.append(
            {
                "kind": kind,
                "way": way,
                "n": len(group),
                "first": int((leads > 0).sum()),
                "n_held": int(looked_up.get((kind, way), 0)),
                "soonest": times.min(),
                "latest": times.max(),
            }
        )
    columns = {name: first_events.columns[name] for name in BY_WAY} | WAY_COUNTS
    return Table.of(rows, columns, "networks of a way").whole_numbers("soonest", "latest")


def _kinds(config: Config, first_events: Table) -> Table:
    rows = []
    for kind in config.kind:
        ways = first_events.query("kind == @kind", kind=kind).frame["way"]
        rows.append(
            {
                "kind": kind,
                "floor": math.log(config.length),
                "ignorance": math.log(words_of(kind, config.length)),
                "stays": int(ways.isna().sum()),
            }
        )
    return Table.of(rows, {"kind": GROUP["kind"]} | KIND, "a kind of sentences")
