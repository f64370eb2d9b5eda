"""Where a classifier's attention rests, and why two seeds of the SMS set seem to attend differently."""

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from companion.data import labelled_sets
from companion.results.config import AboveZero, BaseConfig, Field, NotNegative, OneOf, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.agreement import Answers, RaggedRows, gathered, padded
from notebooks.shared.intervals import Interval, bounded, jackknife_interval
from notebooks.shared.plan import each_seed, settings_of
from notebooks.shared.summaries import by_pair, estimated, summarise, summarise_pairs

if TYPE_CHECKING:
    import pandas as pd

Data = Annotated[str, OneOf(labelled_sets.names())]
Several = Annotated[int, Field(ge=2)]  # networks are held against each other
MARKS = ("begin", "end")
PLACES = (*MARKS, "words")
NOWHERE = "nowhere"  # no place has more than half of the texts
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
    values_of = {}
    for mark, places in (("begin", begins), ("end", ends)):
        values_of[mark] = top == places
        values_of[f"{mark}_right"] = log_odds[places] > 0
        values_of[f"{mark}_weight"] = attention[places]
    return {
        str(label): {"texts": int((labels == label).sum())}
        | {name: 100 * float(values[labels == label].double().mean()) for name, values in values_of.items()}
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
    means: dict[str, AgreementMeans] = {}
    for places, mask, texts in rows.batches():
        agrees = agreement(first[places], second[places], mask)
        by_chance = chance_agreement(second[places], mask)
        groups = {"both": torch.ones_like(texts, dtype=torch.bool)}
        for label in labels.unique().tolist():
            groups[str(label)] = labels[texts] == label
        for group, present in groups.items():
            means.setdefault(group, AgreementMeans()).add(agrees, by_chance, present)
    return {group: of_group.percent() for group, of_group in means.items()}


class AgreementMeans:
    """Mean agreement over texts, and that by chance, added up over batches."""

    def __init__(self) -> None:
        self.agreement = RowMean()
        self.chance = RowMean()

    def add(self, agrees: Tensor, by_chance: Tensor, present: Tensor) -> None:
        self.agreement += RowMean.of(agrees, present)
        self.chance += RowMean.of(by_chance, present)

    def percent(self) -> dict[str, float]:
        return {"agreement": 100 * self.agreement.value, "chance": 100 * self.chance.value}


class Config(BaseConfig):
    """Settings of the classifiers, all alike but for their data and seed."""

    data: tuple[Data, ...] = setting(
        ("known_polarity", "sms_spam"),
        "sets of labelled texts (known_polarity, sms_spam, sst, sst_as_text, imdb, …, or a file)",
    )
    seeds: Several = setting(3, "networks on each")
    beside: tuple[Data, ...] = setting(("sst",), "sets to compare them with")
    beside_seeds: Several = setting(3, "networks on each of these")
    only_at_hand: int = setting(1, "1 leaves out the sets whose files are not on this machine")
    n_train: NotNegative = setting(2_000, "texts to train on; 0 for all that the paper used")
    n_validation: NotNegative = setting(150, "texts to judge on; 0 for all that the paper used")
    width: Positive = setting(64, "of states")
    embedding_width: Positive = setting(64, "of embeddings")
    learning_rate: AboveZero = setting(3e-3, "of Adam")
    steps: Positive = setting(200, "updates")


PROFILES = {
    "quick": Config(steps=100),
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
    networks = {}
    for data in dict.fromkeys((*config.data, *config.beside)):
        if config.only_at_hand and not labelled_sets.available(data):
            continue
        seeds = config.seeds if data in config.data else config.beside_seeds
        networks[data] = each_seed(seeds, RunSpec.of, "classification", data=data, **shared)
    return networks


def measurements(config: Config) -> tuple[Measurement, ...]:
    asked: list[Measurement] = []
    for runs in rows(config).values():
        asked += _measurements(runs)
    return tuple(asked)


def _measurements(runs: Sequence[RunSpec]) -> tuple[Measurement, ...]:
    pairs = (Measurement(run, measure_apart, (), (other,)) for run, other in permutations(runs, 2))
    return (*measurements_of(runs, measure_resting), *pairs)


def percent(meaning: str) -> Column:
    return Column(meaning, "%", low=0, high=100)


DATA = {"data": Column("set of labelled texts")}
NETWORK_OF_SET = DATA | {"seed": NETWORK["seed"]}
LABEL = {"label": Column("number of the texts' label; both: all texts")}
RESTING = {
    "words": percent("texts whose attention is largest at a word"),
    "begin": percent("texts whose attention is largest at the mark before the first word"),
    "begin_right": percent("texts whose label is likelier when all attention is at this mark"),
    "begin_weight": percent("mean weight at this mark"),
    "end": percent("texts whose attention is largest at the mark after the last word"),
    "end_right": percent("texts whose label is likelier when all attention is at this mark"),
    "end_weight": percent("mean weight at this mark"),
}
TEXTS = {"texts": Column("texts of the label", "texts", low=0)}
PAIR = {
    "second_seed": Column("random seed of the second network"),
    "positions": Column(
        "what is compared", categories={"all": "all positions of a text", "words": "its words alone"}
    ),
    **LABEL,
    "marks": Column(
        "where the two networks rest",
        categories={"same": "on one mark", "different": "on two marks", "other": "one of them on neither"},
    ),
}
APART = {
    "agreement": percent("texts where the first attention's top is among the top 5 % of the second's"),
    "chance": percent("the same by chance"),
}
SPREAD = {"spread": Column("standard deviation of the agreement over pairs of networks", "%", low=0)}
ENDS = {
    "lowest": percent("smallest agreement of a pair"),
    "highest": percent("largest agreement of a pair"),
    "n": Column("pairs", "pairs", low=0),
}
REST = {
    "place": Column("position of the largest attention in more than half of the texts of the commoner label")
}
SET = {
    "common": Column("the commoner label"),
    **{place: Column(f"networks that rest on: {place}", "networks", low=0) for place in (*PLACES, NOWHERE)},
    "default": Column(
        "networks whose mark is right alone in more than half of the texts of the commoner label alone",
        "networks",
        low=0,
    ),
    "n": Column("networks that rest on a mark", "networks", low=0),
}
OWN_MARK = {
    "right": percent("texts of the label for which the mark that the network rests on is right alone")
}
OWN_MARK_ROW = "a network that rests on a mark, and a label"


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return where attention rests by label, and how far two seeds agree with the marks and without."""
    networks, pairs, places, sets = [], [], [], []
    for data, runs in rows(config).items():
        answers = gathered(_measurements(runs), store)
        of_set = _networks(data, answers)
        if not of_set:
            continue
        common = _commoner_label(of_set)
        resting = {row["seed"]: _rests_on(row) for row in of_set if row["label"] == common}
        networks += of_set
        pairs += _pairs(data, answers, resting)
        places += [{"data": data, "seed": seed, "place": place} for seed, place in resting.items()]
        sets.append({"data": data} | _set(of_set, resting, common))
    of_networks = Table.of(networks, NETWORK_OF_SET | LABEL | RESTING | TEXTS, "a network and a label")
    of_pairs = Table.of(pairs, NETWORK_OF_SET | PAIR | APART, "a pair of networks and a label")
    own_marks = _own_marks(networks, places)
    by_label, by_mark = ["data", "positions", "label"], ["data", "marks", "positions"]
    marked = of_pairs.query("label == 'both' and marks != 'other'")
    means = summarise_pairs(of_pairs, by_label, APART)
    return {
        "networks": of_networks,
        "pairs": of_pairs,
        "places": Table.of(places, NETWORK_OF_SET | REST, "a trained network"),
        "sets": Table.of(sets, DATA | SET, "a set of texts"),
        "own_marks": Table.of(own_marks, NETWORK_OF_SET | LABEL | OWN_MARK, OWN_MARK_ROW),
        "labels": summarise(of_networks, ["data", "label"], RESTING),
        "texts": Table.of(_first_of_labels(networks), DATA | LABEL | TEXTS, "a label of a set"),
        "pairs_by_label": joined([means, _spreads(of_pairs, by_label)]),
        "ends_by_label": _ends(of_pairs, by_label),
        "pairs_by_mark": summarise_pairs(marked, by_mark, ["agreement"]),
        "ends_by_mark": _ends(marked, by_mark),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by set of texts, in percent.

    ``common`` is the commoner label; ``resting``, how many networks rest on a place; ``own_mark``, for how
    much of each label's texts the mark that a network rests on is right alone; ``pairs``, agreement by label;
    ``by_mark``, agreement of the ``n`` pairs over all texts, parted by whether both networks rest on one mark
    or on two.
    """
    unknown: dict[str, object] = {}
    for row in tables["sets"].records():
        unknown |= {f"{row['data']}.{branch}": {} for branch in ("own_mark.right", "pairs", "by_mark")}
    return view(
        unknown,
        keyed(tables["labels"], "{data}.labels.{label}.{quantity}"),
        keyed(tables["texts"], "{data}.labels.{label}.{column}", TEXTS),
        keyed(tables["sets"], "{data}.{column}", ["common"]),
        keyed(tables["sets"], "{data}.resting.{column}", [*PLACES, NOWHERE]),
        keyed(tables["own_marks"], "{data}.own_mark.{column}.{label}.{seed}", OWN_MARK),
        keyed(tables["sets"], "{data}.own_mark.{column}", ["default", "n"]),
        keyed(tables["pairs_by_label"], "{data}.pairs.{positions}.{label}.{quantity}"),
        keyed(tables["ends_by_label"], "{data}.pairs.{positions}.{label}.{column}", ["lowest", "highest"]),
        keyed(tables["pairs_by_mark"], "{data}.by_mark.{marks}.{positions}.mean"),
        keyed(tables["ends_by_mark"], "{data}.by_mark.{marks}.{positions}.{column}", ENDS),
    )


def _networks(data: str, answers: Answers) -> list[dict]:
    """Return a record for each network and label."""
    records = []
    for (run, *others), answer in answers.items():
        if others:
            continue
        for label, resting in answer.items():
            words = 100 - resting["begin"] - resting["end"]
            records.append({"data": data, "seed": run.seed, "label": label, "words": words, **resting})
    return records


def _commoner_label(networks: list[dict]) -> str:
    texts = {row["label"]: row["texts"] for row in reversed(networks)}
    return max(sorted(texts), key=lambda label: texts[label])


def _rests_on(network: dict) -> str:
    """Return the place of the largest attention in more than half of the texts."""
    for place in PLACES:
        if network[place] > HALF:
            return place
    return NOWHERE


def _pairs(data: str, answers: Answers, resting: dict[int, str]) -> list[dict]:
    """Return a record for each ordered pair of networks, choice of positions and label."""
    records = []
    for (first, *others), answer in answers.items():
        for second in others:
            marks = _marks(resting.get(first.seed), resting.get(second.seed))
            named = {"data": data, "seed": first.seed, "second_seed": second.seed, "marks": marks}
            for positions, by_label in answer.items():
                for label, apart in by_label.items():
                    records.append(named | {"positions": positions, "label": label} | apart)
    return records


def _marks(*places: str | None) -> str:
    """Return ``same`` or ``different`` where both networks of a pair rest on a mark, else ``other``."""
    if not set(places) <= set(MARKS):
        return "other"
    return "same" if len(set(places)) == 1 else "different"


def _set(networks: list[dict], resting: dict[int, str], common: str) -> dict:
    """Return how many networks of a set rest where, and of how many the mark gives the commoner label.

    ``default`` networks: their mark is right in more than half of the texts of the commoner label, and of no
    other.
    """
    on_mark = {seed: place for seed, place in resting.items() if place in MARKS}
    defaults = 0
    for seed, mark in on_mark.items():
        of_network = [row for row in networks if row["seed"] == seed]
        defaults += all((row[f"{mark}_right"] > HALF) == (row["label"] == common) for row in of_network)
    places = list(resting.values())
    counts = {place: places.count(place) for place in (*PLACES, NOWHERE)}
    return {"common": common, **counts, "default": defaults, "n": len(on_mark)}


def _own_marks(networks: list[dict], places: list[dict]) -> list[dict]:
    """Return by network that rests on a mark, and label, in how many texts this mark is right alone."""
    on_mark = {(row["data"], row["seed"]): row["place"] for row in places if row["place"] in MARKS}
    return [
        row | {"right": row[f"{on_mark[row['data'], row['seed']]}_right"]}
        for row in networks
        if (row["data"], row["seed"]) in on_mark
    ]


def _first_of_labels(networks: list[dict]) -> list[dict]:
    """Return the first network's record of each set and label: all networks see the same texts."""
    return list({(row["data"], row["label"]): row for row in reversed(networks)}.values())[::-1]


def _ends(pairs: Table, by: Sequence[str]) -> Table:
    """Return the agreement of the pairs that agree least and most: further apart the more pairs there are."""
    records = []
    for names, group in pairs.frame.groupby(list(by), sort=False):
        agreement = group["agreement"]
        ends = {"lowest": agreement.min(), "highest": agreement.max(), "n": len(agreement)}
        records.append(dict(zip(by, names, strict=True)) | ends)
    return Table.of(records, {name: pairs.columns[name] for name in by} | ENDS, "a group of pairs")


def _spreads(pairs: Table, by: Sequence[str]) -> Table:
    """Return :func:`pair_spread` by group; sets with other numbers of seeds can be compared with it."""

    def spread(group: "pd.DataFrame", quantity: str) -> Interval:
        return pair_spread(by_pair(group, quantity))

    named = pairs.assign(SPREAD, spread=pairs.frame["agreement"])
    return estimated(named, by, ["spread"], spread, unit=["seed", "second_seed"])


def pair_spread(numbers: Mapping[tuple[int, int], float]) -> Interval:
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
    table = np.array([[numbers.get((first, second), math.nan) for second in units] for first in units])

    def variance(chosen: Sequence[int]) -> float:
        among = table[np.ix_(chosen, chosen)]
        known = among[~np.isnan(among)]
        return float(np.var(known)) if known.size else math.nan

    def deviation(chosen: Sequence[int]) -> float:
        n = len(chosen)
        if n < 3:
            return math.nan
        without = statistics.fmean(variance([*chosen[:i], *chosen[i + 1 :]]) for i in range(n))
        corrected = n * variance(chosen) - (n - 1) * without
        return math.nan if math.isnan(corrected) else math.sqrt(max(corrected, 0.0))

    return bounded(jackknife_interval(range(len(units)), deviation), high=math.inf)
