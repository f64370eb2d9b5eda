"""Where a classifier's attention rests, and why two seeds of the SMS set seem to attend differently."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from companion.data import labelled_sets
from companion.results.config import AboveZero, BaseConfig, Field, NotNegative, OneOf, Positive
from companion.results.measurements import Measurement, measurements_of
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.agreement import RaggedRows, gathered, padded
from notebooks.shared.intervals import bounded, grouped, interval_of, jackknife_interval, nested, over_pairs
from notebooks.shared.plan import each_seed, settings_of

Data = Annotated[str, OneOf(labelled_sets.names())]
Several = Annotated[int, Field(ge=2)]  # networks are held against each other
MARKS = ("begin", "end")
PLACES = (*MARKS, "words")
NOWHERE = "nowhere"  # no place has more than half of the texts
NUMBERS = (*PLACES, *(f"{mark}_{what}" for mark in MARKS for what in ("right", "weight")))
HALF = 50.0

# What attention is largest at in the end: a word, or one of the two marks around the text.


@measure(version=1)
def measure_resting(recording: Recording) -> dict:
    """Where attention is largest at the last checkpoint, and what the state of either mark says alone.

    Of the validation texts, by label: in percent ``begin`` and ``end``, texts whose attention is largest at
    that mark (of ties the first position has it), ``…_right``, those whose label is the likelier one when all
    attention is there (β > ½), and ``…_weight``, the mean weight there.
    """
    offsets, labels = recording["validation.offsets"], recording["validation.labels"]
    begins, ends = offsets[:-1], offsets[1:] - 1
    log_odds = recording["validation.log_polarity"][-1]
    attention = recording["validation.attention"][-1]
    weights, mask = padded(attention, offsets)
    top = begins + weights.masked_fill(~mask, -torch.inf).argmax(1)
    found = {}
    for mark, places in (("begin", begins), ("end", ends)):
        found[mark] = top == places
        found[f"{mark}_right"] = log_odds[places] > 0
        found[f"{mark}_weight"] = attention[places]
    return {
        str(label): {"texts": int((labels == label).sum())}
        | {name: 100 * float(values[labels == label].double().mean()) for name, values in found.items()}
        for label in labels.unique().tolist()
    }


@measure(version=1)
def measure_apart(first: Recording, second: Recording) -> dict:
    """𝒜 of two attentions at the last checkpoints, over all positions and over the words alone, by label.

    Among the words alone the top is the largest of the words, and 5 % are those of their number. ``chance``
    is 𝒜̂ of the second attention. Raises BadInput: the two were not looked at on the same texts.
    """
    offsets, labels = second["validation.offsets"], second["validation.labels"]
    if not torch.equal(offsets, first["validation.offsets"]):
        raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other texts")
    positions = RaggedRows.of_texts(offsets)
    words = RaggedRows(positions.starts + 1, positions.lengths - 2, positions.samples)
    attentions = tuple(run["validation.attention"][-1] for run in (first, second))
    return {"all": _apart(*attentions, positions, labels), "words": _apart(*attentions, words, labels)}


Flat = Float[Tensor, " positions"]


def _apart(first: Flat, second: Flat, rows: RaggedRows, labels: Tensor) -> dict:
    sums: dict[str, dict[str, RowMean]] = {}
    for places, mask, texts in rows.batches():
        found = {
            "agreement": agreement(first[places], second[places], mask),
            "chance": chance_agreement(second[places], mask),
        }
        groups = {"both": torch.ones_like(texts, dtype=torch.bool)}
        groups |= {str(label): labels[texts] == label for label in labels.unique().tolist()}
        for group, present in groups.items():
            means = sums.setdefault(group, {})
            for name, values in found.items():
                means[name] = means.get(name, RowMean()) + RowMean.of(values, present)
    return {group: {name: 100 * mean.value for name, mean in means.items()} for group, means in sums.items()}


class Config(BaseConfig):
    """Settings of the classifiers, all alike but for their data and seed."""

    #: sets of labelled texts (known_polarity, sms_spam, sst, sst_as_text, imdb, …, or a file)
    data: tuple[Data, ...] = ("known_polarity", "sms_spam")
    seeds: Several = 3  #: networks on each
    beside: tuple[Data, ...] = ("sst",)  #: sets to compare them with
    beside_seeds: Several = 3  #: networks on each of these
    only_at_hand: int = 1  #: 1 leaves out the sets whose files are not on this machine
    n_train: NotNegative = 2_000  #: texts to train on; 0 for all that the paper used
    n_validation: NotNegative = 150  #: texts to judge on; 0 for all that the paper used
    width: Positive = 64  #: of states
    embedding_width: Positive = 64  #: of embeddings
    learning_rate: AboveZero = 3e-3  #: of Adam
    steps: Positive = 200  #: updates


PROFILES = {
    "quick": Config(steps=140),
    "paper": Config(
        data=("sms_spam",), seeds=12, beside=("sst", "sst_as_text"),
        beside_seeds=4,  # those of the chapter on agreement
        only_at_hand=0, n_train=0, n_validation=0, width=256, embedding_width=300, learning_rate=1e-3,
        steps=4_000,
    ),
    "tiny": Config(
        data=("known_polarity",), beside=(), n_train=60, n_validation=20, width=3, embedding_width=4,
        steps=4,
    ),
}  # fmt: skip


def rows(config: Config) -> dict[str, tuple[RunSpec, ...]]:
    """The networks by data set, in the order of seeds; they are those of the agreement tables."""
    names = ("n_train", "n_validation", "learning_rate", "steps", "embedding_width", "width")
    shared = settings_of(config, *names)
    seeds = dict.fromkeys(config.beside, config.beside_seeds) | dict.fromkeys(config.data, config.seeds)
    return {
        name: each_seed(seeds[name], RunSpec.of, "classification", data=name, **shared)
        for name in dict.fromkeys((*config.data, *config.beside))
        if not config.only_at_hand or labelled_sets.available(name)
    }


def measurements(config: Config) -> tuple[Measurement, ...]:
    return tuple(one for runs in rows(config).values() for one in _measurements(runs))


def _measurements(runs: Sequence[RunSpec]) -> tuple[Measurement, ...]:
    pairs = (Measurement(one, measure_apart, (), (other,)) for one, other in permutations(runs, 2))
    return (*measurements_of(runs, measure_resting), *pairs)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Where attention rests by label, and how far two seeds agree with the marks and without, in percent.

    ``common`` is the commoner label; ``resting``, how many networks have the largest attention at a place in
    more than half of its texts; ``own_mark``, for how much of each label's texts the mark that a network
    rests on is right alone; ``by_mark``, agreement of the ``n`` pairs over all texts, parted by whether both
    networks rest on one mark or on two, its mean with the jackknife's interval over networks.
    """
    values: dict = {}
    tables: dict[str, list[dict]] = {"networks": [], "pairs": []}
    for name, runs in rows(config).items():
        known = gathered(_measurements(runs), store)
        networks = [
            {"data": name, "seed": run.seed, "label": label, "words": 100 - found["begin"] - found["end"]}
            | found
            for (run, *others), answer in known.items()
            for label, found in answer.items()
            if not others
        ]
        if not networks:
            continue
        labels = _grouped(networks, ("label",), list)
        common = max(sorted(labels), key=lambda label: labels[label][0]["texts"])
        places = {row["seed"]: next((p for p in PLACES if row[p] > HALF), NOWHERE) for row in labels[common]}
        pairs = [
            {"data": name, "seed": one.seed, "second_seed": other.seed, "positions": positions}
            | {"label": label, "marks": _marks(places.get(one.seed), places.get(other.seed))}
            | found
            for (one, *others), answer in known.items()
            for other in others
            for positions, groups in answer.items()
            for label, found in groups.items()
        ]
        marked = [row for row in pairs if row["label"] == "both" and row["marks"] != "other"]
        values[name] = {
            "labels": {
                label: {"texts": own[0]["texts"]}
                | {name: bounded(interval_of(row[name] for row in own)) for name in NUMBERS}
                for label, own in labels.items()
            },
            "common": common,
            "resting": {place: [*places.values()].count(place) for place in (*PLACES, NOWHERE)},
            "own_mark": _own_mark(labels, places, common),
            "pairs": _grouped(pairs, ("positions", "label"), _agreeing),
            "by_mark": _grouped(marked, ("marks", "positions"), _ends),
        }
        tables["networks"] += networks
        tables["pairs"] += pairs
    return values, tables


def _marks(*places: str) -> str:
    """``same`` or ``different`` where both networks of a pair rest on a mark, else ``other``."""
    if not set(places) <= set(MARKS):
        return "other"
    return "same" if len(set(places)) == 1 else "different"


def _own_mark(labels: dict[str, list[dict]], places: dict[int, str], common: str) -> dict:
    """By label and seed, percent of its texts for which the mark that a network rests on is right alone.

    ``default`` networks: it is right in more than half of the texts of the commoner label, and of no other.
    """
    marks = {seed: mark for seed, mark in places.items() if mark in MARKS}
    right = {
        label: {str(row["seed"]): row[f"{marks[row['seed']]}_right"] for row in own if row["seed"] in marks}
        for label, own in labels.items()
        if marks
    }
    defaults = [all((own[str(s)] > HALF) == (label == common) for label, own in right.items()) for s in marks]
    return {"right": right, "default": sum(defaults), "n": len(defaults)}


def _grouped(rows: list[dict], columns: tuple[str, ...], summary: Callable[[list[dict]], Any]) -> dict:
    """A summary of each group of rows, by one column after the other."""
    groups = grouped(zip(rows, rows, strict=True), *columns)
    return nested({names: summary([row for row, _ in own]) for names, own in groups.items()})


def _ends(pairs: list[dict]) -> dict:
    agreed = {(row["seed"], row["second_seed"]): row["agreement"] for row in pairs}
    ends = {"lowest": min(agreed.values()), "highest": max(agreed.values()), "n": len(agreed)}
    return {"mean": bounded(over_pairs(agreed))} | ends


def _agreeing(pairs: list[dict]) -> dict:
    """Agreement and chance of the mean pair, with the jackknife's interval over seeds, and single pairs.

    Sets with other numbers of seeds can be compared with ``spread``, while ``lowest`` and ``highest`` reach
    further the more seeds there are.
    """
    agreed, chance = ({(r["seed"], r["second_seed"]): r[n] for r in pairs} for n in ("agreement", "chance"))
    return {
        "agreement": bounded(over_pairs(agreed)),
        "spread": pair_spread(agreed),
        "chance": bounded(over_pairs(chance)),
        "lowest": min(agreed.values()),
        "highest": max(agreed.values()),
    }


def pair_spread(numbers: Mapping[tuple[int, int], float]) -> dict:
    """Standard deviation of a number over pairs of units drawn at random, with an interval over units.

    Pairs share their units, and their plain variance v_n is too small: where the number of units i and j is
    s_i + s_j, by the factor 1 − 2/n in expectation. Quenouille's correction takes out what falls with 1/n,

        v = n v_n − (n − 1) · mean over i of v without unit i,

    which in that model is right in expectation. With what a pair has for itself, of variance τ², v is too
    large by 2 τ² / ((n − 1)(n − 2)). The interval is the jackknife's of √v, cut at 0; with four units and
    normal s it covers the truth in nine cases of ten. NaN is the value of fewer than three units, and the
    bounds of fewer than four.
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

    return bounded(jackknife_interval(range(len(units)), deviation), high=math.inf)
