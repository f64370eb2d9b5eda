"""Where the lexical probe is local and where it leaks: a keyword to be found at uniform attention."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from companion.results.config import BaseConfig, Field, Positive, setting
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import INTERVAL, NETWORK, Column, share
from companion.runs.identity import Spec
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copying import measure_copying
from notebooks.shared.intervals import interval_of
from notebooks.shared.plan import each_seed, settings_of
from notebooks.shared.summaries import differences, summarise

if TYPE_CHECKING:
    import pandas as pd

PLACES = {
    "keyword": "at the keyword",
    "next": "at the word after the keyword",
    "mean": "on average",
    "last": "at the last word",
    "first": "at the first word",
}
# Differences that the paper's orders are made of, the larger place first.
ORDERS = "keyword_next next_mean keyword_last last_keyword last_next mean_keyword first_keyword mean_last"
DIFFERENCES = {name.replace("_", "_over_"): name.split("_") for name in ORDERS.split()}
HALFWAY = 0.75  # accuracy halfway from guessing to always right
STAGES = {
    "early": "the first checkpoint that is right for three sequences in four",
    "midway": "the last checkpoint in the first half of the updates",
    "late": "the last checkpoint",
}


class Config(BaseConfig):
    """Settings of the networks, all alike but for their seed."""

    seeds: Positive = setting(3, "networks")
    words: Annotated[int, Field(ge=2)] = setting(40, "of the vocabulary, the keyword among them")
    length: Annotated[int, Field(ge=4)] = setting(40, "of a sequence")
    embedding_width: Positive = setting(48, "of words")
    width: Positive = setting(32, "of the state of one direction")
    steps: Positive = setting(300, "updates in training")
    every: Positive = setting(
        10,
        "updates between two snapshots at the start. A larger network may go from its first "
        "knowledge of the keyword to the leak within few",
    )
    until: Positive = setting(300, "updates after which snapshots are further apart")
    later: Positive = setting(100, "updates between two snapshots from there on")


PROFILES = {
    "quick": Config(steps=160),
    "paper": Config(seeds=8, embedding_width=300, width=256, steps=4_000, every=2),
    "tiny": Config(seeds=2, words=6, length=6, embedding_width=4, width=3, steps=4, every=2),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    names = ("words", "length", "embedding_width", "width", "steps", "every", "until", "later")
    specs = each_seed(config.seeds, RunSpec.of, "keyword", **settings_of(config, *names))
    return measurements_of(specs, measure_copying)


SNAPSHOT = {
    "accuracy": share("sequences that are classified correctly"),
    "first": Column(f"γ {PLACES['first']}", "nats"),
    "keyword": Column(f"γ {PLACES['keyword']}", "nats"),
    "last": Column(f"γ {PLACES['last']}", "nats"),
    "loss": Column("cross-entropy", "nats a sequence", low=0),
    "mean": Column(f"γ {PLACES['mean']}", "nats"),
    "next": Column(f"γ {PLACES['next']}", "nats"),
    "step": Column("updates in training", "updates", low=0),
}
OVER = {
    name: Column(f"γ {PLACES[larger]}, minus that {PLACES[smaller]}", "nats")
    for name, (larger, smaller) in DIFFERENCES.items()
}
STAGE = {"stage": Column("when in training", categories=STAGES)}
GAMMAS = (*PLACES, *DIFFERENCES)
LEAD = {
    "looks": Column("checkpoints that are looked at", "checkpoints", low=0),
    "ahead": Column("of these, where the interval of the lead is above 0", "checkpoints", low=0),
    "first": Column("updates at the first of these; empty without one", "updates"),
    "final": Column("updates at the last of these; empty without one", "updates"),
    "step": Column("updates where the mean lead is largest", "updates"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return γ at the keyword, after it, at the ends and on average, early, midway and late in training.

    A network that is never right often enough has no early checkpoint, and counts in the others alone.
    """
    snapshots = frame(
        measurements(config),
        store,
        records=_snapshots,
        columns=SNAPSHOT | OVER,
        names={"seed": NETWORK["seed"]},
        columns_of=_seed,
        row="a network at a checkpoint",
    )
    early = snapshots.with_rows(_first_of_each(snapshots.query("accuracy >= @least", least=HALFWAY).frame))
    midway = snapshots.with_rows(_last_of_each(snapshots.query("step <= @half", half=config.steps / 2).frame))
    late = snapshots.with_rows(_last_of_each(snapshots.frame))
    stages = {"early": early, "midway": midway, "late": late}
    networks = joined([table.assign(STAGE, stage=stage) for stage, table in stages.items()])
    moved = differences(late, midway, GAMMAS).assign(STAGE, stage="late")
    leads = summarise(snapshots, ["step"], ["last_over_keyword"])
    return {
        "courses": snapshots.select("seed", *SNAPSHOT),
        "stages": replace(networks, row="a network at a stage of training"),
        "estimates": summarise(networks, ["stage"], [*GAMMAS, "step", "accuracy"]),
        "moved": summarise(moved, ["stage"], GAMMAS),
        "leads": leads,
        "lead": _lead(leads),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return γ by stage; ``moved``, late minus midway, says whether the course has come to rest.

    ``lead``: at how many checkpoints the last position has a larger γ than the keyword, as :func:`_lead` has
    it; ``most`` is the largest mean lead.
    """
    unknown: dict[str, object] = {
        f"{stage}.{name}": interval_of() for stage in STAGES for name in (*GAMMAS, "step", "accuracy")
    }
    unknown |= {f"moved.{name}": interval_of() for name in GAMMAS} | {"lead.most": interval_of()}
    return view(
        unknown,
        keyed(tables["estimates"], "{stage}.{quantity}"),
        keyed(tables["moved"], "moved.{quantity}"),
        keyed(tables["lead"], "lead.{column}", LEAD),
        keyed(tables["lead"].query("looks > 0"), "lead.most"),
    )


def _seed(spec: Spec) -> dict[str, object]:
    return {"seed": spec.seed}


def _snapshots(course: dict) -> list[dict]:
    """Return what is measured at each checkpoint, and differences between places within the network."""
    records = []
    for checkpoint, step in enumerate(course["steps"]):
        measured = {name: series[checkpoint] for name, series in course.items()}
        over = {name: measured[larger] - measured[smaller] for name, (larger, smaller) in DIFFERENCES.items()}
        records.append(measured | over | {"step": step})
    return records


def _first_of_each(snapshots: "pd.DataFrame") -> "pd.DataFrame":
    return snapshots.drop_duplicates("seed", keep="first")


def _last_of_each(snapshots: "pd.DataFrame") -> "pd.DataFrame":
    return snapshots.drop_duplicates("seed", keep="last")


def _lead(leads: Table) -> Table:
    """Return at how many checkpoints the interval of the last position's lead over the keyword is above 0.

    These are ``ahead``, from the update ``first`` to ``final``. Not corrected for so many.
    """
    by_step = leads.frame
    ahead = by_step.loc[by_step["low"].astype(float) > 0, "step"].tolist()
    record = {"looks": len(by_step), "ahead": len(ahead)}
    if ahead:
        record |= {"first": ahead[0], "final": ahead[-1]}
    if len(by_step):
        most = by_step.loc[by_step["value"].astype(float).idxmax()]
        record |= {name: most[name] for name in ("step", *INTERVAL)}
    lead = Table.of([record], LEAD | INTERVAL, "all checkpoints")
    return lead.whole_numbers("first", "final", "step")
