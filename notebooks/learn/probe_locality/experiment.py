"""Where the lexical probe is local and where it leaks: a keyword to be found at uniform attention."""

from operator import itemgetter
from typing import Annotated

from companion.results.config import BaseConfig, Field, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copying import measure_copying
from notebooks.shared.intervals import Point, interval_of, over_seeds, paired
from notebooks.shared.plan import each_seed, settings_of

PLACES = ("keyword", "next", "mean", "last", "first")
# Differences that the paper's orders are made of, the larger place first.
ORDERS = "keyword_next next_mean keyword_last last_keyword last_next mean_keyword first_keyword mean_last"
DIFFERENCES = {name.replace("_", "_over_"): name.split("_") for name in ORDERS.split()}
HALFWAY = 0.75  # accuracy halfway from guessing to always right


class Config(BaseConfig):
    """Settings of the networks, all alike but for their seed."""

    seeds: Positive = 3  #: networks
    words: Annotated[int, Field(ge=2)] = 40  #: of the vocabulary, the keyword among them
    length: Annotated[int, Field(ge=4)] = 40  #: of a sequence
    embedding_width: Positive = 48  #: of words
    width: Positive = 32  #: of the state of one direction
    steps: Positive = 300  #: updates in training
    #: updates between two snapshots at the start. A larger network may go from its first knowledge of the
    #: keyword to the leak within few.
    every: Positive = 10
    until: Positive = 300  #: updates after which snapshots are further apart
    later: Positive = 100  #: updates between two snapshots from there on


PROFILES = {
    "quick": Config(steps=160),
    "paper": Config(seeds=5, embedding_width=300, width=256, steps=4_000, every=2),
    "tiny": Config(seeds=2, words=6, length=6, embedding_width=4, width=3, steps=4, every=2),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    names = ("words", "length", "embedding_width", "width", "steps", "every", "until", "later")
    specs = each_seed(config.seeds, RunSpec.of, "keyword", **settings_of(config, *names))
    return measurements_of(specs, measure_copying)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """γ at the keyword, after it, at the ends and on average, early, midway and late in training.

    *Early* is the first checkpoint at which the network is right for three sequences in four, *midway* the
    last one in the first half of the updates, *late* the last of all. A network that is never right so often
    has no early checkpoint, and counts in the others alone. ``moved``, late less midway, says whether the
    course has come to rest.
    """
    courses = [
        [_snapshot(name["seed"], course, place) for place in range(len(course["steps"]))]
        for name, course in answers(measurements(config), store)
    ]
    early = [next((row for row in course if row[1]["accuracy"] >= HALFWAY), None) for course in courses]
    midway = [[row for row in course if row[1]["step"] <= config.steps / 2][-1] for course in courses]
    late = [course[-1] for course in courses]
    stages = {"early": [snapshot for snapshot in early if snapshot], "midway": midway, "late": late}
    gammas = (*PLACES, *DIFFERENCES)
    values = {
        stage: {name: over_seeds(snapshots, itemgetter(name)) for name in (*gammas, "step", "accuracy")}
        for stage, snapshots in stages.items()
    }
    values["moved"] = {name: paired(late, midway, itemgetter(name)) for name in gammas}
    values["lead"] = _lead(courses)
    return values, {"courses": [row for snapshots in courses for row, _ in snapshots]}


def _snapshot(seed: int, course: dict, place: int) -> Point:
    """The row of a snapshot: what is measured there, and differences between places within the network."""
    found = {"step" if name == "steps" else name: series[place] for name, series in course.items()}
    row = {"seed": seed} | found
    return row, found | {name: row[larger] - row[smaller] for name, (larger, smaller) in DIFFERENCES.items()}


def _lead(courses: list[list[Point]]) -> dict:
    """At how many snapshots the interval of the last position's lead over the keyword is above 0, ``ahead``.

    From the update ``first`` to ``final``; ``most`` is the largest mean lead. Not corrected for so many.
    """
    leads = {
        snapshots[0][1]["step"]: over_seeds(snapshots, itemgetter("last_over_keyword"))
        for snapshots in zip(*courses, strict=True)
    }
    ahead = [step for step, lead in leads.items() if lead["low"] is not None and lead["low"] > 0]
    most = max(leads, key=lambda step: leads[step]["value"], default=None)
    first, final = (ahead[0], ahead[-1]) if ahead else (None, None)
    found = {"looks": len(leads), "ahead": len(ahead), "first": first, "final": final, "step": most}
    return found | {"most": leads.get(most, interval_of())}
