"""Several heads make learning likelier: one good first query map among bad ones is enough."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated

import numpy as np

from attnlib.errors import NotMeasured
from companion.results.config import BaseConfig, Field, NotNegative, Positive, setting
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.measurements import Measurement, columns_of, measurements_of
from companion.runs.columns import INTERVAL, NETWORK, Column, Columns, share
from companion.runs.identity import Spec
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying
from notebooks.shared.intervals import Interval, interval, interval_of, share_interval
from notebooks.shared.plan import settings_of
from notebooks.shared.summaries import differences, shares, summarise
from notebooks.shared.thresholds import standing
from notebooks.shared.trainings.permutation_copying import words_of

MADE_OF = {
    "single": "one head, the first trial",
    "all_bad": "several heads that are bad alone",
    "copied": "copies of one of these",
    "one_good": "one head that is good alone, all others bad",
    "random": "several heads drawn anew",
    "alone": "the first of these",
    "elsewhere_good": "one good head among other parameters",
    "elsewhere_bad": "one bad head among other parameters",
    "again": "one head, on further sets of data",
}
SCENARIOS = ("all_bad", "copied", "one_good", "random", "alone")
SCREENED = ("all_bad", "copied", "one_good")  # made of heads that were tried alone
COMPARED = ("single", *SCENARIOS)  # of which it is counted which way their heads go
SHOWN = (*COMPARED, "elsewhere_good", "elsewhere_bad")
KINDS = ("good", "bad")
UNSEEN = 100_000  # heads of the random scenario are numbered from here, beyond all candidates
EARLY = 20  # updates after which the way that attention goes may show


class Config(BaseConfig):
    candidates: Annotated[int, Field(ge=1, lt=UNSEEN)] = setting(
        12, "heads that are tried alone, numbered from 0"
    )
    trials: Positive = setting(1, "data seeds, from 0, on which a head has to be good or bad")
    seeds: Positive = setting(3, "networks of each scenario, on data seeds that no head was judged on")
    heads: Positive = setting(4, "heads of each")
    body: NotNegative = setting(
        0,
        "all parameters but the query maps of networks of good and bad heads, as a seed. "
        "Random heads have this body and the ones after it, each network its own",
    )
    elsewhere: NotNegative = setting(1, "further bodies in which some good and bad heads are tried alone")
    moved: NotNegative = setting(2, "good heads, and bad ones, that are tried there")
    length: int = setting(12, "words of a permutation")
    width: Positive = setting(32, "of embeddings and states")
    steps: Positive = setting(200, "updates after which heads and networks are judged")
    every: Positive = setting(10, "updates between two snapshots")
    followed: Positive = setting(
        200,
        "updates in training, if more than steps. Heads whose attention is driven away from "
        "the word to write learn too, only later (notebooks.shared.copying): by the 200 "
        "updates of the authors' configuration, at full size, too much so to be called bad",
    )

    def check(self) -> None:
        words_of("permutation", self.length)
        copying.check_checkpoints(self.steps, self.every, self.updates)

    @property
    def updates(self) -> int:
        """How long networks are trained: as long as they are judged, or for longer."""
        return max(self.steps, self.followed)

    @property
    def early(self) -> int:
        """The last snapshot at or before :data:`EARLY`, or the first after the beginning."""
        return min(max(EARLY // self.every, 1) * self.every, self.updates)


PROFILES = {
    # By then two of these heads are good and four are bad, as many as a network has heads.
    "quick": Config(candidates=7, moved=1, length=11, steps=160, followed=160),
    "paper": Config(
        candidates=20, trials=3, seeds=20, heads=8, elsewhere=2, moved=3, length=40, width=256, steps=100
    ),
    "tiny": Config(candidates=2, seeds=1, heads=2, moved=1, length=4, width=8, steps=2, every=2, followed=2),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    """What is known before any network is trained: first trials, and random heads; the rest follows."""
    first = [_spec(config, (head,), 0, config.body) for head in range(config.candidates)]
    random = [spec for scenario in ("random", "alone") for spec in _scenario(scenario, config, [], [])]
    return measurements_of([*first, *random], copying.measure_copying)


STANDINGS = {"good": "at least 95 % right at some checkpoint", "bad": "less than 60 % right in the end"}
NAMES = {
    "scenario": Column("which heads the network has", categories=MADE_OF),
    "heads": Column("numbers of its heads"),
    "body": Column("seed of all parameters but the query maps"),
    "seed": NETWORK["seed"],
}
UNIT = ["heads", "body", "seed"]
HEADS = {
    "weight": share("weight of the first head on the next word to write, when the network is judged"),
    "best_other": share("the largest such weight of another head"),
    "wins": Column("whether the first head has the largest weight"),
    "all_drawn": Column("whether all heads end drawn to the correct word"),
    "none_drawn": Column("whether no head does"),
    "mixed": Column("whether some heads do and some do not"),
    "all_same": Column("whether each head is on its final side early"),
}
SIDES = {
    "drawn": Column("whether the mean weight of all heads ends at or above uniform attention"),
    "same_at_first": Column("whether it is on this side before training"),
    "same": Column("whether it is on this side early"),
    "probe_at_first": Column("whether the probe, larger at the correct position or not, predicts the side"),
    "probe": Column("whether the probe tells it early"),
}
STANDING = {
    "standing": Column("what the head is when it is judged; empty for neither", categories=STANDINGS),
    "later_standing": Column("what the head is in the end", categories=STANDINGS),
}
HEAD_SETS = {"head_sets": Column("different sets of heads", "sets", low=0)}
TOGETHER = {
    "n": copying.COUNTS["n"],
    "step": Column("updates after which it is early", "updates"),
    "all_drawn": Column("networks of which all heads end drawn to the correct word", "networks", low=0),
    "none_drawn": Column("networks of which no head does", "networks", low=0),
    "mixed": Column("networks of which some heads do", "networks", low=0),
}
CHANCES = {
    "alone": "networks of one head that is drawn to the correct word",
    "several": "networks of several heads of which one is",
    "several_less_alone": "the second minus the first, in pairs of one seed",
    "some_good": "chance that one of several heads is good, from the share of single heads that are",
}
BOTH = {
    "both": Column("pairs in which both networks have a drawn head", "pairs", low=0),
    "several_only": Column("pairs in which only the network of several heads has", "pairs", low=0),
    "alone_only": Column("pairs in which only the network of one head has", "pairs", low=0),
    "neither": Column("pairs in which neither has", "pairs", low=0),
}
TRIED = {
    "tried": Column("heads that are tried alone", "heads", low=0),
    "runs": Column("trials of all of them", "trials", low=0),
    "bad_later": Column("heads that are bad in the end of their first trial", "heads", low=0),
    "good": Column("heads that are good on every set of data", "heads", low=0),
    "bad": Column("heads that are bad on every set of data", "heads", low=0),
}
EARLY_SIDES = {
    "step": Column("updates after which it is early", "updates"),
    "end": Column("updates in all", "updates"),
    "n": copying.COUNTS["n"],
    "drawn": Column("networks that end drawn to the correct word", "networks", low=0),
}
CONTRASTS = {
    "random_over_alone": "accuracy of several heads minus that of one, in pairs of one seed",
    "all_bad_less_one_good": "share that fails without a good head, minus that with one, in pairs",
}
NOT_RUN = {"not_run": Column("why there are no networks")}
JUDGED = ("steps_to_learn", "accuracy", "attention_accuracy")


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return which single heads are good or bad, and what becomes of networks that combine them.

    The first ``steps`` updates of a course count. A head is *good*, or *bad*, if it is on every data seed
    (:func:`standing`); one that is neither, or not what it was before, is not tried on the next. A scenario
    for which there are too few of them has no networks, and ``not_run`` says so.

    Raises:
        NotMeasured: a store that does not train lacks a run of a single head.
    """
    trials, heads = _screened(config, store)
    specs = {"single": trials[0]}
    specs |= {scenario: _scenario(scenario, config, **heads) for scenario in SCENARIOS}
    for kind in KINDS:
        specs[f"elsewhere_{kind}"] = _elsewhere(config, heads[kind])
    specs["again"] = [spec for later in trials[1:] for spec in later]

    def of_network(records: Callable, columns: Columns, row: str = "a trained network") -> Table:
        return _of_networks(specs, store, records=records, columns=columns, row=row)

    networks = of_network(partial(_network, config=config), copying.OUTCOME | HEADS | SIDES | STANDING)
    networks = networks.whole_numbers("steps_to_learn")
    followed = of_network(
        partial(copying.followed_record, judged_at=config.steps), copying.OUTCOME | copying.FOLLOWED_RECORD
    )
    by_scenario = {name: networks.query("scenario == @name", name=name) for name in MADE_OF}
    attending = by_scenario["one_good"].query("failed == False")
    single = by_scenario["single"]
    good = [str(head) for head in heads["good"]]
    good_alone = networks.query("scenario in ('single', 'again') and heads in @good", good=good)
    good_alone = good_alone.assign({}, scenario="good")
    turned = copying.turned_away(networks, config.length)
    by, unit = ["scenario"], UNIT
    return {
        "courses": of_network(copying.course_records, copying.COURSE, "a network at a checkpoint"),
        "outcomes": networks.select(*NAMES, *JUDGED),
        "networks": networks.select(*NAMES, *copying.OUTCOME, *HEADS, *SIDES, *STANDING),
        "estimates": copying.outcome_estimates(networks, by, unit),
        "counts": _counts(networks),
        "followed": copying.followed_estimates(followed, by, unit),
        "followed_counts": copying.followed_counts(followed, by),
        "turned": copying.turned_estimates(turned, by, unit),
        "together": _together(networks, config.early),
        "same": shares(networks, by, ["all_same"], unit=unit),
        "good_head": joined(
            [shares(attending, by, ["wins"]), summarise(attending, by, ["weight", "best_other"])]
        ),
        "good_alone": copying.outcome_estimates(good_alone, by, unit),
        "good_alone_counts": copying.outcome_counts(good_alone, by),
        "chances": _chances(by_scenario["alone"], by_scenario["random"], single, config.heads),
        "pairs": paired_counts(by_scenario["alone"], by_scenario["random"]),
        "sides": shares(by_scenario["alone"], by, [name for name in SIDES if name != "drawn"]),
        "early_sides": _early_sides(by_scenario["alone"], config),
        "contrasts": _contrasts(by_scenario),
        "tried": _tried(single, trials, heads),
        "not_run": _not_run(config, heads),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by scenario, as in :mod:`notebooks.shared.copying`.

    ``single`` are the first trials of all heads, ``elsewhere_{good, bad}`` heads in other bodies.
    """

    good_head = tables["good_head"]
    return view(
        _nothing(config),
        _by_scenario(tables),
        keyed(tables["contrasts"], "{contrast}"),
        keyed(good_head, "good_head.{quantity}"),
        keyed(good_head.query("quantity == 'wins'"), "good_head.{column}", ["n"]),
        copying.outcome_keys("good_head.alone", tables["good_alone"], tables["good_alone_counts"]),
        _in_one_network(tables),
        _of_heads(tables),
        keyed(tables["not_run"], "{scenario}.{column}", NOT_RUN),
    )


def _by_scenario(tables: dict[str, Table]) -> dict[str, object]:
    """Return what becomes of the networks of each scenario that is shown, by key."""
    names = ("estimates", "counts", "turned", "followed", "followed_counts")
    shown = {name: tables[name].query("scenario in @shown", shown=SHOWN) for name in names}
    numbers = copying.outcome_keys("{scenario}", shown["estimates"], shown["counts"])
    numbers |= keyed(shown["counts"], "{scenario}.{column}", HEAD_SETS)
    numbers |= copying.turned_keys("{scenario}.turned", shown["turned"])
    numbers |= copying.followed_keys("{scenario}.followed", shown["followed"], shown["followed_counts"])
    return numbers


def _in_one_network(tables: dict[str, Table]) -> dict[str, object]:
    """Return whether heads of one network go the same way, by key."""
    compared, same = (
        tables[name].query("scenario in @names", names=COMPARED) for name in ("together", "same")
    )
    numbers = keyed(compared, "together.{scenario}.{column}", TOGETHER)
    numbers |= keyed(same, "together.{scenario}.same")
    return numbers


def _of_heads(tables: dict[str, Table]) -> dict[str, object]:
    """Return the chances of one head and of several, their sides, and how many were tried, by key."""
    numbers = keyed(tables["chances"], "chances.{chance}")
    numbers |= keyed(tables["pairs"], "chances.{column}", BOTH)
    numbers |= keyed(tables["sides"], "sides.{quantity}")
    numbers |= keyed(tables["early_sides"], "sides.{column}", EARLY_SIDES)
    numbers |= keyed(tables["tried"], "heads.{column}", TRIED)
    return numbers


def _nothing(config: Config) -> dict[str, object]:
    """Return the keys of which no network is known."""
    unknown: dict[str, object] = {}
    for scenario in SHOWN:
        unknown |= copying.no_outcome(scenario) | {f"{scenario}.head_sets": 0}
        unknown |= copying.none_turned(f"{scenario}.turned")
        unknown |= copying.not_followed(f"{scenario}.followed", config.updates)
    for scenario in COMPARED:
        unknown |= {f"together.{scenario}.{name}": 0 for name in TOGETHER}
        unknown |= {f"together.{scenario}.step": config.early, f"together.{scenario}.same": interval_of()}
    unknown |= {contrast: interval_of() for contrast in CONTRASTS}
    unknown |= {f"good_head.{name}": interval_of() for name in ("wins", "weight", "best_other")}
    unknown |= {"good_head.n": 0} | copying.no_outcome("good_head.alone")
    unknown |= {f"chances.{chance}": interval_of() for chance in CHANCES}
    return unknown | {f"sides.{name}": interval_of() for name in SIDES}


# Which heads are good or bad, and the networks made of them.


def too_few(scenario: str, heads: int, good: list[int], bad: list[int]) -> str:
    """Return why there are no networks of a scenario; empty where there are."""
    needed = {"all_bad": heads, "copied": 1, "one_good": heads - 1}.get(scenario, 0)
    if len(bad) < needed:
        return "too few of the heads that were tried alone turned out bad"
    if scenario == "one_good" and not good:
        return "none of the heads that were tried alone turned out good"
    return ""


def _screened(config: Config, store: Store) -> tuple[list[list[RunSpec]], dict[str, list[int]]]:
    """Return the networks of each trial, and the heads that are good, or bad, on every data seed."""
    standings: dict[int, str] = {}
    trials = []
    for seed in range(config.trials):
        tried = standings if seed else range(config.candidates)
        specs = [_spec(config, (head,), seed, config.body) for head in tried]
        networks = _of_networks(
            {"single": specs},
            store,
            records=partial(_standing, judged_at=config.steps),
            columns=STANDING,
            row="a trial",
        )
        if len(networks.frame) < len(specs):
            raise NotMeasured(
                f"{len(specs) - len(networks.frame)} of {len(specs)} single heads have no answer yet on data "
                f"seed {seed}; which heads are good or bad depends on all of them"
            )
        standings = {
            int(row["heads"]): row["standing"]
            for row in networks.records()
            if row["standing"] and standings.get(int(row["heads"]), row["standing"]) == row["standing"]
        }
        trials.append(specs)
    return trials, {kind: [head for head, known in standings.items() if known == kind] for kind in KINDS}


def _standing(course: dict, *, judged_at: int) -> dict:
    return {
        "standing": standing(copying.until(course, judged_at)["accuracy"]),
        "later_standing": standing(course["accuracy"]),
    }


def _scenario(scenario: str, config: Config, good: list[int], bad: list[int]) -> list[RunSpec]:
    """Return the networks of a scenario; none where good or bad heads are too few.

    In ``copied`` all heads are the first of ``all_bad``: equal heads learn alike, so this is one head with a
    longer context. Heads of ``random`` were never tried; ``alone`` has the first of each.
    """
    heads, specs = config.heads, []
    if too_few(scenario, heads, good, bad):
        return []
    moves = 0 if scenario in SCREENED else 1  # to a body of its own
    for seed in range(config.seeds):
        generator = np.random.default_rng(seed)
        drawn = [bad[place] for place in generator.permutation(len(bad))]
        if scenario == "all_bad":
            chosen = drawn[:heads]
        elif scenario == "copied":
            chosen = drawn[:1] * heads
        elif scenario == "one_good":
            chosen = [good[generator.integers(len(good))], *drawn[: heads - 1]]
        else:
            first = UNSEEN + seed * heads
            chosen = range(first, first + (heads if scenario == "random" else 1))
        specs.append(_spec(config, tuple(chosen), config.trials + seed, config.body + moves * seed))
    return specs


def _elsewhere(config: Config, heads: list[int]) -> list[RunSpec]:
    """Return the first of these heads, each in every further body."""
    bodies = range(config.body + 1, config.body + 1 + config.elsewhere)
    return [_spec(config, (head,), 0, body) for body in bodies for head in heads[: config.moved]]


def _spec(config: Config, heads: tuple[int, ...], seed: int, body: int) -> RunSpec:
    shared = settings_of(config, "length", "width", "every")
    return RunSpec.of("multi_head", heads=heads, body=body, seed=seed, steps=config.updates, **shared)


def _of_networks(
    specs: Mapping[str, Iterable[RunSpec]], store: Store, *, records: Callable, columns: Columns, row: str
) -> Table:
    """Return records of every network that the store knows or may train, scenario by scenario."""

    def of_scenario(scenario: str, networks: Iterable[RunSpec]) -> Table:
        def names_of(spec: Spec) -> dict[str, object]:
            settings = columns_of(spec)
            heads = " ".join(map(str, settings["heads"]))
            return {"scenario": scenario, "heads": heads, "body": settings["body"], "seed": settings["seed"]}

        return frame(
            measurements_of(networks, copying.measure_copying),
            store,
            records=records,
            columns=columns,
            names=NAMES,
            columns_of=names_of,
            row=row,
        )

    return joined([of_scenario(scenario, networks) for scenario, networks in specs.items()])


# What is read of one network.


def _network(course: dict, *, config: Config) -> dict:
    judged = copying.until(course, config.steps)
    return {
        **copying.outcome_record(judged),
        **first_head(judged),
        **heads_drawn(course, config.length, config.early),
        **sides(course, config.length, config.early),
        **_standing(course, judged_at=config.steps),
    }


def first_head(course: dict) -> dict:
    """Return whether a network's first head has the most weight on the next word to write (``wins``)."""
    weight, *others = course["head_right"][-1]
    best_other = max(others, default=0.0)
    return {"weight": weight, "best_other": best_other, "wins": weight > best_other}


def heads_drawn(course: dict, length: int, early: int) -> dict:
    """Return whether all heads of a network end drawn to the right word, none or some.

    Several heads are as many chances to start well only if each goes its own way. In a network whose heads
    are ``all_same`` every head is on its final side early.
    """
    last = _drawn(course, -1, length)
    first = _drawn(course, course["steps"].index(early), length)
    return {
        "all_drawn": all(last),
        "none_drawn": not any(last),
        "mixed": any(last) and not all(last),
        "all_same": first == last,
    }


def _drawn(course: dict, snapshot: int, length: int) -> list[bool]:
    return [copying.side_of(weight, length) == "drawn" for weight in course["head_right"][snapshot]]


def sides(course: dict, length: int, early: int) -> dict:
    """Return whether it shows early on which side of uniform attention a network ends.

    A network may be on its final side before training (``same_at_first``) and early (``same``); the lexical
    ``probe`` of which, larger at the right place or not, then tells the side.
    """
    weight, right, elsewhere = (
        course[name] for name in ("attention_right", "probe_right", "probe_elsewhere")
    )
    drawn = copying.side_of(weight[-1], length) == "drawn"
    record = {"drawn": drawn}
    for suffix, step in (("_at_first", 0), ("", early)):
        snapshot = course["steps"].index(step)
        is_drawn = copying.side_of(weight[snapshot], length) == "drawn"
        record[f"same{suffix}"] = is_drawn == drawn
        record[f"probe{suffix}"] = (right[snapshot] > elsewhere[snapshot]) == drawn
    return record


# What is counted, and how scenarios compare.


def _counts(networks: Table) -> Table:
    sets_of_heads = networks.frame["heads"].map(lambda heads: frozenset(heads.split()))
    different = sets_of_heads.groupby(networks.frame["scenario"], sort=False).nunique()
    counts = copying.outcome_counts(networks, ["scenario"])
    return counts.assign(HEAD_SETS, head_sets=counts.frame["scenario"].map(different))


def _together(networks: Table, early: int) -> Table:
    rows = []
    for scenario, group in networks.frame.groupby("scenario", sort=False):
        drawn = {name: int(group[name].sum()) for name in ("all_drawn", "none_drawn", "mixed")}
        rows.append({"scenario": scenario, "n": len(group), "step": early} | drawn)
    return Table.of(rows, {"scenario": NAMES["scenario"]} | TOGETHER, "a scenario")


def _chances(alone: Table, several: Table, single: Table, heads: int) -> Table:
    """Return shares of networks that have a head drawn to the correct word, of one head and of several."""
    drawn = {"alone": alone, "several": several}
    rows = [
        {"chance": chance, **_share(~networks.frame["none_drawn"].astype(bool))}
        for chance, networks in drawn.items()
    ]
    difference = shares_apart(_some_drawn(several), _some_drawn(alone))
    good = some_good(_share(single.frame["later_standing"] == "good"), heads)
    rows += [{"chance": "several_less_alone", **difference}, {"chance": "some_good", **good}]
    columns = {"chance": Column("share or chance", categories=CHANCES)} | INTERVAL
    return Table.of(rows, columns, "a share or chance")


def _share(occurs: Sequence[bool]) -> Interval:
    """Return in how many networks it occurs, as a share with Wilson's interval."""
    return share_interval(int(sum(occurs)), len(occurs)) if len(occurs) else interval_of()


def _some_drawn(networks: Table) -> dict[int, bool]:
    """Return by seed whether a network has a head that ends drawn to the correct word."""
    return {row["seed"]: not row["none_drawn"] for row in networks.records()}


def some_good(single: Interval, heads: int) -> Interval:
    """Return the chance that one of so many heads is good, from the share of single heads that are.

    Good is a head as the paper has it, right for 95 % within all of its updates on its first set of data.
    Heads are drawn one by one. Its interval is that of the share of single heads.
    """
    if not single["n"]:
        return single
    return single | {end: 1 - (1 - single[end]) ** heads for end in ("value", "low", "high")}


def paired_counts(alone: Table, several: Table) -> Table:
    """Return in how many pairs of one seed a network of one head or of several has a drawn head."""
    of_alone = _some_drawn(alone)
    of_several = _some_drawn(several)
    paired = of_alone.keys() & of_several.keys()
    drawn_alone = {seed for seed in paired if of_alone[seed]}
    drawn_several = {seed for seed in paired if of_several[seed]}
    counts = {
        "both": len(drawn_several & drawn_alone),
        "several_only": len(drawn_several - drawn_alone),
        "alone_only": len(drawn_alone - drawn_several),
        "neither": len(paired - drawn_alone - drawn_several),
    }
    return Table.of([counts], BOTH, "all pairs")


def _early_sides(alone: Table, config: Config) -> Table:
    networks = len(alone.frame)
    counts = {
        "step": config.early,
        "end": config.updates if networks else None,
        "n": networks,
        "drawn": int(alone.frame["drawn"].sum()),
    }
    return Table.of([counts], EARLY_SIDES, "all networks of one head drawn anew")


def _contrasts(by_scenario: dict[str, Table]) -> Table:
    apart = differences(by_scenario["random"], by_scenario["alone"], ["accuracy"])
    failed = [
        {row["seed"]: row["failed"] for row in by_scenario[scenario].records()}
        for scenario in ("all_bad", "one_good")
    ]
    rows = [
        {"contrast": "random_over_alone", **interval_of(apart.frame["accuracy"])},
        {"contrast": "all_bad_less_one_good", **shares_apart(*failed)},
    ]
    columns = {"contrast": Column("what is compared", categories=CONTRASTS)} | INTERVAL
    return Table.of(rows, columns, "a difference of two scenarios")


def _tried(single: Table, trials: list[list[RunSpec]], heads: dict[str, list[int]]) -> Table:
    counts = {
        "tried": len(single.frame),
        "runs": sum(map(len, trials)),
        "bad_later": int((single.frame["later_standing"] == "bad").sum()),
        "good": len(heads["good"]),
        "bad": len(heads["bad"]),
    }
    return Table.of([counts], TRIED, "all heads that are tried alone")


def _not_run(config: Config, heads: dict[str, list[int]]) -> Table:
    rows = []
    for scenario in SCREENED:
        if reason := too_few(scenario, config.heads, **heads):
            rows.append({"scenario": scenario, "not_run": reason})
            if scenario != "copied":
                rows.append({"scenario": "all_bad_less_one_good", "not_run": reason})
    return Table.of(rows, {"scenario": NAMES["scenario"]} | NOT_RUN, "what has no networks")


def shares_apart(first: Mapping[int, bool], second: Mapping[int, bool]) -> Interval:
    """Return for how many of the first something holds, minus for how many of the second, by seed."""
    pairs = [(holds, second[seed]) for seed, holds in first.items() if seed in second]
    return share_difference(pairs) if pairs else interval_of()


def share_difference(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """Return the share of the first minus that of the second, with Newcombe's interval for pairs.

    It adds the squares of how far Wilson's bounds stand from each share, minus twice their product times φ,
    the correlation of both in the pairs: method 10 of Newcombe (1998, Statistics in Medicine 17(22),
    2635-2650). φ is corrected for continuity where it is positive, and 0 where one of the two always or never
    happens. It stays inside [-1, 1], and is not a point where all pairs are alike.
    """
    n = len(pairs)
    first, second = (sum(occurs) for occurs in zip(*pairs, strict=True))
    share_of_first, share_of_second = share_interval(first, n), share_interval(second, n)
    excess = n * sum(map(all, pairs)) - first * second
    spread = math.sqrt(first * (n - first) * second * (n - second))
    correlation = 0.0
    if spread:
        corrected = max(excess - n / 2, 0.0) if excess > 0 else excess
        correlation = corrected / spread

    def apart(first: float, second: float) -> float:
        return math.sqrt(max(0.0, first**2 - 2 * correlation * first * second + second**2))

    value = (first - second) / n
    below = apart(
        share_of_first["value"] - share_of_first["low"], share_of_second["high"] - share_of_second["value"]
    )
    above = apart(
        share_of_first["high"] - share_of_first["value"], share_of_second["value"] - share_of_second["low"]
    )
    return interval(value, value - below, value + above, n)
