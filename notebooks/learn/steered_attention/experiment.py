"""Interventions while attention is learned: pushed one way, parts frozen, attention given."""

from collections.abc import Iterable
from functools import partial

from attnlib.errors import BadInput
from companion.results.config import BaseConfig, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs.columns import Column, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying
from notebooks.shared.copying import TIMES, events, first_step
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.summaries import differences, shares, summarise

ALONE = "alone"
EARLY, LATE = ("toward", "away"), ("late_toward", "late_away")
FROZEN = ("readout", "states", "words", "attention")
LATE_FROZEN = ("late_readout", "late_states", "late_words", "late_attention")
INTERVENTIONS = {
    ALONE: "nothing is done",
    "toward": "attention is pushed to the next word to write, early",
    "away": "attention is pushed away from it, early",
    "elsewhere": "attention is pushed to another word, drawn anew each time, early",
    "anywhere": "attention is pushed to any word, drawn anew each time, early",
    "late_toward": "attention is pushed to the next word to write, later",
    "late_away": "attention is pushed away from it, later",
    "readout": "the readout is frozen from the start",
    "states": "what states are computed from is frozen from the start, and the readout is not",
    "words": "all that the probe is computed from is frozen from the start",
    "attention": "attention is held uniform from the start",
    "late_readout": "the readout is frozen later, when words are known",
    "late_states": "what states are computed from is frozen later",
    "late_words": "all that the probe is computed from is frozen later",
    "late_attention": "attention is held uniform later",
    "gold": "all attention is at the next word to write, throughout",
}
BY_KIND = {  # what is done to networks on each kind of sentences
    "permutation": (ALONE, *EARLY, "elsewhere", "anywhere", *LATE, "gold"),
    "sample": (ALONE, *FROZEN, *LATE_FROZEN, "gold"),
    "mixture": (ALONE, "gold"),
}

GROUP = {
    "kind": Column(
        "kind of sentences",
        categories={
            "permutation": "all words of the vocabulary, in any order",
            "sample": "two thirds of the words of the vocabulary",
            "mixture": "one half of the vocabulary or the other",
        },
    ),
    "intervention": Column("what is done to the network", categories=INTERVENTIONS),
}
CLOCK = {
    "known": TIMES["known"],
    "sure": Column("updates until the mean probe at the correct word is one half", "updates"),
    "there": TIMES["there"],
    "steps_to_learn": Column(
        "updates until word accuracy reaches 95 %; all updates where it never does", "updates"
    ),
}
OUTCOME = {
    **CLOCK,
    "accuracy": share("word accuracy on held-out sentences in the end"),
    "reaches": Column("whether word accuracy reaches 95 %"),
    "drawn": Column("whether attention ends with at least uniform weight on the next word to write"),
    "weight": Column("weight on the next word to write in the end", "times uniform attention", low=0),
}
RATIO = {
    "share_of_time": Column(
        "updates to learn with attention given, by those of the network left alone", low=0
    )
}
PAIRED = {
    "turned": Column("whether the network ends on the other side than the one left alone"),
    "same": Column("whether the network ends on the side of the one left alone"),
}
AGAINST = {  # pushes against the side on which the same seed ends if left alone
    "against": "an early push to the other side than that of the network left alone",
    "late_against": "a later push to the other side",
}
PAIR = {"pair": Column("what is compared with the network left alone", categories=INTERVENTIONS | AGAINST)}


class Config(BaseConfig):
    """Settings; a network is a kind of sentences × what is done to it × seed."""

    seeds: Positive = setting(2, "networks of each kind, first left alone, and then with each intervention")
    length: int = setting(12, "words of a sentence; the vocabularies grow with it")
    width: Positive = setting(32, "of embeddings and states")
    batch_size: Positive = setting(64, "sentences in an update")
    learning_rate: float = setting(
        2e-3, "Adam's. Twice that of the chapter, so that small networks learn soon"
    )
    every: Positive = setting(2, "updates between two snapshots")
    held_out: Positive = setting(64, "sentences that networks are judged on")
    push_size: float = setting(2.0, "what is added to the score of a position, or subtracted from it")
    push_for: Positive = setting(4, "updates in which attention is pushed")
    push_from: int = setting(4, "updates before an early push")
    late_from: int = setting(20, "updates before a later push")
    freeze_for: Positive = setting(16, "updates in which something is frozen, the first ones or later ones")
    freeze_from: int = setting(8, "updates before something is frozen later")
    steps: Positive = setting(60, "updates on permutations")
    sample_steps: Positive = setting(40, "updates on samples")
    mixture_steps: Positive = setting(40, "updates on mixtures")
    gold_steps: Positive = setting(20, "updates of networks to which attention is given")

    def check(self) -> None:
        for name in ("steps", "sample_steps", "mixture_steps", "gold_steps"):
            updates = getattr(self, name)
            if updates % self.every:
                raise BadInput(
                    f"{name} is {updates}, and networks are looked at every {self.every} updates; "
                    f"take a multiple of {self.every}"
                )

    def updates(self, kind: str, intervention: str) -> int:
        """How long a network is trained."""
        if intervention == "gold":
            return self.gold_steps
        return {"permutation": self.steps, "sample": self.sample_steps, "mixture": self.mixture_steps}[kind]


PROFILES = {
    "quick": Config(length=8, every=4, steps=48, sample_steps=24, mixture_steps=24),
    "paper": Config(seeds=12, width=128, steps=90, sample_steps=60, mixture_steps=200, gold_steps=24),
    "tiny": Config(
        seeds=2, length=4, width=8, batch_size=8, held_out=8, push_for=1, push_from=1, late_from=2,
        freeze_from=2, freeze_for=2, steps=4, sample_steps=4, mixture_steps=4, gold_steps=2,
    ),
}  # fmt: skip


def _plan(config: Config) -> tuple[Plan]:
    """The courses of all networks, by kind of sentences and intervention."""
    groups = {}
    for kind, interventions in BY_KIND.items():
        for intervention in interventions:
            settings = settings_of(
                config, "length", "width", "batch_size", "learning_rate", "every", "held_out"
            )
            settings |= {"kind": kind, "steps": config.updates(kind, intervention)}
            settings |= _steering(config, intervention)
            groups[kind, intervention] = each_seed(config.seeds, RunSpec.of, "steered_copying", **settings)
    return (plan_of(groups, copying.measure_copying),)


def _steering(config: Config, intervention: str) -> dict[str, object]:
    """Return what distinguishes the settings of an intervention from those of a network left alone."""
    if intervention == ALONE:
        return {}
    if intervention == "gold":
        return {"gold": True}
    if intervention in FROZEN:
        return {"freeze": intervention, "freeze_for": config.freeze_for}
    if intervention in LATE_FROZEN:
        frozen = {"freeze": intervention.removeprefix("late_"), "freeze_for": config.freeze_for}
        return frozen | {"freeze_from": config.freeze_from}
    pushed_from = config.late_from if intervention in LATE else config.push_from
    return {
        "push": intervention.removeprefix("late_"),
        "push_size": config.push_size,
        "push_from": pushed_from,
        "push_for": config.push_for,
    }


measurements = asked(_plan)


def outcome(course: dict, length: int) -> dict[str, object]:
    """Return when a network knows words and attends to them, and on which side its attention ends.

    ``known``, ``there`` and learned are those of
    :func:`notebooks.shared.copying.events`. Words are ``sure`` at the first snapshot
    where the lexical probe of the next word to write is on average one half. Who never learns counts with
    all updates, so that a mean is a lower bound.
    """
    happens = events(course, length)
    learned = happens["steps_to_learn"]
    weight = course["attention_right"][-1]
    return {
        "known": happens["known"],
        "sure": first_step(course, "probe_right"),
        "there": happens["there"],
        "steps_to_learn": course["steps"][-1] if learned is None else learned,
        "accuracy": course["accuracy"][-1],
        "reaches": learned is not None,
        "drawn": copying.side_of(weight, length) == "drawn",
        "weight": weight * length,
    }


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the courses of all networks, what becomes of them, and each beside its twin left alone."""
    (plan,) = _plan(config)
    courses = plan_frame(
        plan, store, GROUP,
        records=_course_of_weight, columns=COURSE, row="a network at a checkpoint",
    )  # fmt: skip
    networks = plan_frame(plan, store, GROUP, records=partial(outcome, length=config.length), columns=OUTCOME)
    alone = networks.query("intervention == @ALONE", ALONE=ALONE)
    steered = networks.query("intervention != @ALONE", ALONE=ALONE)
    later = differences(steered, alone, CLOCK, on=("kind", "seed"))
    pairs = paired_sides(networks)
    return {
        "courses": courses,
        "networks": networks.whole_numbers(*CLOCK),
        "pairs": pairs,
        "estimates": joined(
            [
                summarise(networks, [*GROUP], [*CLOCK, "accuracy", "weight"]),
                shares(networks, [*GROUP], ["drawn", "reaches"]),
            ]
        ),
        "later": summarise(later, [*GROUP], CLOCK),
        "later_than_toward": summarise(_later_than_toward(networks), [*GROUP], ["steps_to_learn"]),
        "shares_of_time": summarise(shares_of_time(networks), [*GROUP], RATIO),
        "sides": shares(pairs, [*PAIR], PAIRED),
    }


COURSE = {
    name: copying.COURSE[name]
    for name in (
        "steps",
        "accuracy",
        "attention_right",
        "attention_accuracy",
        "probe_agreement",
        "probe_right",
    )
}


def _course_of_weight(course: dict) -> list[dict]:
    return [{name: record[name] for name in COURSE} for record in copying.course_records(course)]


def _later_than_toward(networks: Table) -> Table:
    """Return how much later than those pushed toward the word the networks learn that are pushed away."""
    toward = networks.query("intervention == 'toward'")
    away = networks.query("intervention == 'away'")
    return differences(away, toward, ["steps_to_learn"], on=("kind", "seed"))


def shares_of_time(networks: Table) -> Table:
    """Return the updates that networks need with attention given, as a share of what they need alone."""
    frame = networks.frame
    names = ["kind", "seed", "steps_to_learn"]
    gold = frame[frame["intervention"] == "gold"]
    alone = frame[frame["intervention"] == ALONE][names].rename(columns={"steps_to_learn": "alone"})
    both = gold.merge(alone, on=["kind", "seed"])
    ratio = both["steps_to_learn"].astype(float) / both["alone"].astype(float)
    return networks.with_rows(both[list(frame)]).assign(RATIO, share_of_time=ratio)


def paired_sides(networks: Table) -> Table:
    """Return on which side pushed networks on permutations end, compared with the side of their twins.

    A push against the side is *toward* the word where the twin ends away from it, and *away* where it ends
    drawn to it.
    """
    on_permutations = networks.query("kind == 'permutation'").frame
    drawn = {(row.intervention, row.seed): bool(row.drawn) for row in on_permutations.itertuples()}
    rows = []
    for (intervention, seed), side in drawn.items():
        if intervention in (ALONE, "gold") or (ALONE, seed) not in drawn:
            continue
        twin = drawn[ALONE, seed]
        for pair in _pairs_of(intervention, twin):
            rows.append({"pair": pair, "seed": seed, "turned": side != twin, "same": side == twin})
    return Table.of(rows, PAIR | {"seed": networks.columns["seed"]} | PAIRED, "a network beside its twin")


def _pairs_of(intervention: str, twin_is_drawn: bool) -> Iterable[str]:
    """Return the comparisons that a pushed network counts for."""
    yield intervention
    against = "away" if twin_is_drawn else "toward"
    if intervention == against:
        yield "against"
    if intervention == f"late_{against}":
        yield "late_against"


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by kind of sentences and intervention, and how often pushes turn a network."""
    return view(
        keyed(tables["estimates"], "{kind}.{intervention}.{quantity}"),
        keyed(tables["later"], "{kind}.{intervention}.later.{quantity}"),
        keyed(tables["later_than_toward"], "{kind}.{intervention}.later_than_toward.{quantity}"),
        keyed(tables["shares_of_time"], "{kind}.{intervention}.{quantity}"),
        keyed(tables["sides"], "sides.{pair}.{quantity}"),
    )
