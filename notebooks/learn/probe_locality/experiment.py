"""Where the lexical probe is local and where it leaks: a keyword to be found at uniform attention."""

from collections.abc import Callable
from operator import itemgetter
from typing import Annotated

from companion.results.config import BaseConfig, Field, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copying import measure_copying
from notebooks.shared.intervals import Point, over_seeds, paired

PLACE = "Snell et al. 2021, section 6.1, equations 22-25; Figure 7"
QUESTION = "Is the lexical probe about the word at its position, and does it stay so?"
PLACES = ("keyword", "next", "mean", "last", "first")
# Differences that the paper's orders are made of: (larger, smaller).
ORDERS = (
    ("keyword", "next"),
    ("next", "mean"),
    ("keyword", "last"),
    ("last", "keyword"),
    ("last", "next"),
    ("mean", "keyword"),
    ("first", "keyword"),
)
HALFWAY = 0.75  # accuracy halfway from guessing to always right


class Config(BaseConfig):
    """Settings of the networks, all alike but for their seed.

    Attributes:
        seeds: networks.
        words: of the vocabulary, the keyword among them.
        length: of a sequence.
        embedding_width: of words.
        width: of the state of one direction.
        steps: updates in training.
        every: updates between two looks at the start. A larger network may go from its first knowledge of the
            keyword to the leak within few.
        until: updates after which looks are further apart.
        later: updates between two snapshots from there on.
    """

    seeds: Positive = 3
    words: Annotated[int, Field(ge=2)] = 40
    length: Annotated[int, Field(ge=4)] = 40
    embedding_width: Positive = 48
    width: Positive = 32
    steps: Positive = 300
    every: Positive = 10
    until: Positive = 300
    later: Positive = 100


PROFILES = {"quick": Config(), "paper": Config(seeds=5, embedding_width=300, width=256, steps=4_000, every=2)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    names = ("words", "length", "embedding_width", "width", "steps", "every", "until", "later")
    settings = {name: getattr(config, name) for name in names}
    specs = (RunSpec.of("keyword", seed=seed, **settings) for seed in range(config.seeds))
    return measurements_of(specs, measure_copying)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """γ at the keyword, after it, at the ends and on average, early, midway and late in training.

    *Early* is the first checkpoint at which the network is right for three sequences in four, *midway* the
    last one in the first half of the updates, *late* the last of all. A network that is never right so often
    has no early checkpoint, and counts in the others alone. ``moved``, late less midway, says whether the
    course has come to rest.
    """
    courses = [
        [
            {"seed": name["seed"]}
            | {("step" if key == "steps" else key): series[i] for key, series in course.items()}
            for i in range(len(course["steps"]))
        ]
        for name, course in answers(measurements(config), store)
    ]
    early = [next((row for row in course if row["accuracy"] >= HALFWAY), None) for course in courses]
    midway = [[row for row in course if row["step"] <= config.steps / 2][-1] for course in courses]
    late = [course[-1] for course in courses]
    stages = {"early": [row for row in early if row is not None], "midway": midway, "late": late}
    values = {
        stage: _numbers((*PLACES, "step", "accuracy"), lambda of, own=chosen: over_seeds(_points(own), of))
        for stage, chosen in stages.items()
    }
    values["moved"] = _numbers(PLACES, lambda of: paired(_points(late), _points(midway), of))
    values["lead"] = _lead(courses)
    return values, {"courses": [row for course in courses for row in course]}


def _points(rows: list[dict]) -> list[Point]:
    return [({"seed": row["seed"]}, row) for row in rows]


def _numbers(names: tuple[str, ...], summary: Callable[[Callable[[dict], float]], dict]) -> dict:
    """A summary of each column, and of the differences between places within a network."""
    return {name: summary(itemgetter(name)) for name in names} | {
        f"{larger}_over_{smaller}": summary(lambda row, a=larger, b=smaller: row[a] - row[b])
        for larger, smaller in ORDERS
    }


def _lead(courses: list[list[dict]]) -> dict:
    """At how many looks the interval of the last position's lead over the keyword is above 0, ``ahead``.

    From the update ``first`` to ``final``; ``most`` is the largest mean lead. Not corrected for so many.
    """
    leads = {
        rows[0]["step"]: over_seeds(_points(rows), lambda row: row["last"] - row["keyword"])
        for rows in zip(*courses, strict=True)
    }
    ahead = [step for step, lead in leads.items() if lead["low"] is not None and lead["low"] > 0]
    most = max(leads, key=lambda step: leads[step]["value"], default=None)
    ends = {"first": ahead[0], "final": ahead[-1]} if ahead else {"first": None, "final": None}
    return {"looks": len(leads), "ahead": len(ahead), **ends, "step": most} | {
        "most": over_seeds([], float) if most is None else leads[most]
    }
