"""Where a classifier's attention rests, and why two seeds of the SMS set seem to attend differently."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Annotated

import numpy as np

from attnlib.errors import BadInput
from companion.data import labelled_sets
from companion.results.config import AboveZero, BaseConfig, NotNegative, OneOf, Positive
from companion.results.measurements import Measurement, measurements_of
from companion.results.statistics import Interval, jackknife_interval, mean_interval
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.resting_attention.measure import measure_apart, measure_resting
from notebooks.shared.agreement import classifier_runs, gathered

if TYPE_CHECKING:
    import pandas as pd

Data = Annotated[str, OneOf(labelled_sets.names())]
PLACE = "Snell et al. 2021, section A.9"
QUESTION = "Why do two networks that classify text messages seem to attend to different places?"
MARKS = ("begin", "end")
PLACES = (*MARKS, "words")
NOWHERE = "nowhere"  # no place has more than half of the texts
NUMBERS = (*PLACES, *(f"{mark}_{what}" for mark in MARKS for what in ("right", "weight")))
HALF = 50.0
PAIR = ("data", "seed", "second_seed", "positions", "label", "marks", "agreement", "chance")
CLASSES = {  # what label 0 and label 1 stand for, in figures and tables
    "known_polarity": ("minus", "plus"),
    "sms_spam": ("ham", "spam"),
    "sst": ("negative or neutral", "very positive"),
    "sst_as_text": ("negative", "positive"),  # each with the very negative or positive ones
    "imdb": ("negative", "positive"),
    "amazon": ("negative", "positive"),
    "yelp": ("at most two stars", "at least four stars"),
    "ag_news": ("World", "Business"),
    "twenty_newsgroups": ("baseball", "hockey"),
}


def class_name(data: str, label: str) -> str:
    """What a label stands for; labels of other sets are called by number."""
    return CLASSES[data][int(label)] if data in CLASSES else f"label {label}"


class Config(BaseConfig):
    """Settings of the classifiers, all alike but for their data and seed.

    Attributes:
        data: sets of labelled texts (known_polarity, sms_spam, sst, sst_as_text, imdb, …, or a file).
        seeds: networks on each.
        beside: sets to compare them with.
        beside_seeds: networks on each of these.
        only_at_hand: 1 leaves out the sets whose files are not on this machine.
        n_train: texts to train on; 0 for all that the paper used.
        n_validation: texts to judge on; 0 for all that the paper used.
        width: of states.
        embedding_width: of embeddings.
        learning_rate: of Adam.
        steps: updates.
    """

    data: tuple[Data, ...] = ("known_polarity", "sms_spam")
    seeds: int = 3
    beside: tuple[Data, ...] = ("sst",)
    beside_seeds: int = 3
    only_at_hand: int = 1
    n_train: NotNegative = 2_000
    n_validation: NotNegative = 150
    width: Positive = 64
    embedding_width: Positive = 64
    learning_rate: AboveZero = 3e-3
    steps: Positive = 200

    def check(self) -> None:
        for name in ("seeds", "beside_seeds"):
            if getattr(self, name) < 2:
                raise BadInput(
                    f"{name} is {getattr(self, name)}; they are held against each other, so give at least 2"
                )


PROFILES = {
    "quick": Config(),
    "paper": Config(
        data=("sms_spam",),
        seeds=12,
        beside=("sst", "sst_as_text"),
        beside_seeds=4,  # those of the chapter on agreement
        only_at_hand=0,
        n_train=0,
        n_validation=0,
        width=256,
        embedding_width=300,
        learning_rate=1e-3,
        steps=4_000,
    ),
}


def rows(config: Config) -> dict[str, tuple[RunSpec, ...]]:
    """The networks by data set, in the order of seeds; they are those of the agreement tables."""
    names = ("n_train", "n_validation", "learning_rate", "steps", "embedding_width")
    shared = {name: getattr(config, name) for name in names}
    seeds = dict.fromkeys(config.beside, config.beside_seeds) | dict.fromkeys(config.data, config.seeds)
    return {
        name: classifier_runs(seeds[name], 0, shared | {"data": name}, config.width).normal
        for name in dict.fromkeys((*config.data, *config.beside))
        if not config.only_at_hand or labelled_sets.available(name)
    }


def measurements(config: Config) -> tuple[Measurement, ...]:
    return tuple(asked for runs in rows(config).values() for asked in (*_alone(runs), *_together(runs)))


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Where attention rests by label, and how far two seeds agree with the marks and without, in percent.

    ``common`` is the commoner label; ``resting``, how many networks have the largest attention at a place in
    more than half of its texts; ``own_mark``, for how much of each label's texts the mark that a network
    rests on is right alone; ``by_mark``, agreement of pairs over all texts, parted by whether both networks
    rest on one mark or on two.
    """
    import pandas as pd  # a bare node has none

    values: dict = {}
    tables: dict[str, list[dict]] = {"networks": [], "pairs": []}
    for name, runs in rows(config).items():
        networks = pd.DataFrame(
            {"data": name, "seed": run.seed, "label": label} | found
            for (run,), answer in gathered(_alone(runs), store).items()
            for label, found in answer.items()
        )
        if networks.empty:
            continue
        networks["words"] = 100 - networks["begin"] - networks["end"]
        labels = {label: own.set_index("seed") for label, own in networks.groupby("label")}
        common = max(labels, key=lambda label: labels[label]["texts"].iloc[0])
        above = labels[common][list(PLACES)] > HALF
        places = above.idxmax(axis=1).where(above.any(axis=1), NOWHERE)
        pairs = pd.DataFrame(
            (
                {"data": name, "seed": one.seed, "second_seed": other.seed, "positions": positions}
                | {"label": label, "marks": _marks(places.get(one.seed), places.get(other.seed))}
                | found
                for (one, other), answer in gathered(_together(runs), store).items()
                for positions, groups in answer.items()
                for label, found in groups.items()
            ),
            columns=PAIR,
        )
        values[name] = {
            "labels": {
                label: {"texts": int(own["texts"].iloc[0])}
                | {number: mean_interval(own[number]).as_dict() for number in NUMBERS}
                for label, own in labels.items()
            },
            "common": common,
            "resting": places.value_counts().reindex((*PLACES, NOWHERE), fill_value=0).to_dict(),
            "own_mark": _own_mark(labels, places[places.isin(MARKS)], common),
            "pairs": _grouped(pairs, ["positions", "label"], _agreeing),
            "by_mark": _grouped(
                pairs[(pairs["label"] == "both") & (pairs["marks"] != "other")], ["marks", "positions"], _ends
            ),
        }
        tables["networks"] += networks.to_dict("records")
        tables["pairs"] += pairs.to_dict("records")
    return values, tables


def _alone(runs: Sequence[RunSpec]) -> tuple[Measurement, ...]:
    return measurements_of(runs, measure_resting)


def _together(runs: Sequence[RunSpec]) -> tuple[Measurement, ...]:
    return tuple(Measurement(one, measure_apart, (), (other,)) for one, other in permutations(runs, 2))


def _marks(*places: str) -> str:
    """``same`` or ``different`` where both networks of a pair rest on a mark, else ``other``."""
    if not set(places) <= set(MARKS):
        return "other"
    return "same" if len(set(places)) == 1 else "different"


def _own_mark(labels: dict[str, "pd.DataFrame"], marks: "pd.Series", common: str) -> dict:
    """By label and seed, percent of its texts for which the mark that a network rests on is right alone.

    ``default`` networks: it is right in more than half of the texts of the commoner label, and of no other.
    """
    right = {
        label: {str(seed): own.loc[seed, f"{mark}_right"] for seed, mark in marks.items()}
        for label, own in labels.items()
        if len(marks)
    }
    defaults = [
        all((right[label][str(seed)] > HALF) == (label == common) for label in right) for seed in marks.index
    ]
    return {"right": right, "default": sum(defaults), "n": len(defaults)}


def _grouped(pairs: "pd.DataFrame", by: list[str], summary: Callable[["pd.DataFrame"], dict]) -> dict:
    """A summary of the rows of each group, by the first of two columns and then by the second."""
    found: dict = {}
    for (first, second), own in pairs.groupby(by):
        found.setdefault(first, {})[second] = summary(own)
    return found


def _ends(pairs: "pd.DataFrame") -> dict:
    agreed = pairs["agreement"]
    return {"mean": agreed.mean(), "lowest": agreed.min(), "highest": agreed.max(), "n": len(agreed)}


def _agreeing(pairs: "pd.DataFrame") -> dict:
    """Agreement and chance of the mean pair, and how far apart single pairs are.

    Sets with other numbers of seeds can be compared with ``spread``, while ``lowest`` and ``highest`` reach
    further the more seeds there are.
    """
    agreed = pairs.set_index(["seed", "second_seed"])["agreement"]

    def over_pairs(name: str) -> dict:
        """The mean over pairs, with the jackknife's interval over seeds."""

        def of_seeds(seeds: Sequence[int]) -> float:
            return pairs.loc[pairs["seed"].isin(seeds) & pairs["second_seed"].isin(seeds), name].mean()

        return jackknife_interval(sorted({*pairs["seed"], *pairs["second_seed"]}), of_seeds).as_dict()

    return {
        "agreement": over_pairs("agreement"),
        "spread": pair_spread(agreed.to_dict()).as_dict(),
        "chance": over_pairs("chance"),
        "lowest": agreed.min(),
        "highest": agreed.max(),
    }


def pair_spread(numbers: Mapping[tuple[int, int], float]) -> Interval:
    """Standard deviation of a number over pairs of units drawn at random, with an interval over units.

    All pairs of n units are no sample of pairs: they share their units, and their plain variance v_n is too
    small. Where the number of units i and j is s_i + s_j it is so by the factor 1 − 2/n in expectation: half
    is left with 4 units, five sixths with 12, so that sets of few units would seem steadier than they are.
    Quenouille's correction takes out what falls with 1/n,

        v = n v_n − (n − 1) · mean over i of v without unit i,

    which in that model is right in expectation. With what a pair has for itself, of variance τ², v is too
    large by 2 τ² / ((n − 1)(n − 2)). The interval is the jackknife's of √v, cut at 0. With four units and
    normal s it covers the truth in nine cases of ten rather than in 95 %. NaN is the value of fewer than
    three units, and the bounds of fewer than four.
    """
    units = sorted({unit for pair in numbers for unit in pair})
    table = np.array([[numbers.get((one, other), math.nan) for other in units] for one in units])

    def variance(some: Sequence[int]) -> float:
        among = table[np.ix_(some, some)]
        known = among[~np.isnan(among)]
        return float(np.var(known)) if known.size else math.nan

    def deviation(some: Sequence[int]) -> float:
        n = len(some)
        if n < 3:
            return math.nan
        without = statistics.fmean(variance([*some[:i], *some[i + 1 :]]) for i in range(n))
        corrected = n * variance(some) - (n - 1) * without
        return math.nan if math.isnan(corrected) else math.sqrt(max(corrected, 0.0))

    found = jackknife_interval(range(len(units)), deviation)
    low = found.low if math.isnan(found.low) else max(found.low, 0.0)
    return Interval(found.value, low, found.high, found.n)
