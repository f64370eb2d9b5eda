"""Does what single words say agree with attention? Tables 2 to 8, every number with its interval."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput
from companion import paths
from companion.data import labelled_sets, parallel
from companion.results.config import (
    AboveZero,
    BaseConfig,
    Field,
    NotNegative,
    OneOf,
    Positive,
    setting,
    take_files,
)
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import agreement
from notebooks.shared.intervals import Interval, bounded, interval_of, jackknife_interval, spearman
from notebooks.shared.plan import settings_of

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("agreement", "kendall")
# Which samples choose the checkpoint of either run, and which report.
CHOICES = {"apart": ("selecting", "reporting"), "optimistic": ("all", "all")}

Checkpoints = Float[np.ndarray, " checkpoints"]
Pairs = dict[tuple[int, int], float]  # a number by the seed of the first run and that of the second


def contextualise(
    agreement: float, reached: Sequence[float], performance: Sequence[float]
) -> tuple[float, bool]:
    """ξ of an agreement 𝒜(u, v) (Snell et al. 2021, equation 11), and whether it is ξ*, with an asterisk.

        ξ(u, v) = p̂( inf { τ : 𝒜(α, α̂(τ)) > 𝒜(u, v) } )

    is how good another run is when its attention α̂ first agrees with α *more* than u agrees with v; where it
    never does, the paper prints ξ* = p̂(𝒯), the performance when training finishes. ``reached`` is
    𝒜(α, α̂(τ)) at each checkpoint, NaN where no row could be judged, ``performance`` p̂(τ).

    >>> contextualise(0.3, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])  # 0.3 itself is not more than 0.3
    (0.8, False)
    >>> contextualise(0.6, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])
    (0.9, True)
    """
    if np.isnan(agreement):
        raise BadInput("the agreement to contextualise is NaN; was there a row to judge?")
    is_above = np.asarray(reached) > agreement
    if not is_above.any():
        return performance[-1], True
    return performance[is_above.argmax()], False


def best_checkpoint(agreement: Sequence[float]) -> int:
    """Where the samples that choose agree most, the first of equals; NaN is where they have no row to judge.

    The paper takes the maximum on the samples that it reports (appendix A.7), which is optimistic; here half
    of the samples can choose and the other half report, with the paper's way beside it.

    >>> selecting, reporting = [0.25, 0.75, 0.5], [0.5, 0.5, 1.0]
    >>> reporting[best_checkpoint(selecting)]
    0.5
    """
    if np.isnan(agreement).all():
        raise BadInput("no checkpoint has a row to judge, so none can be chosen")
    return int(np.nanargmax(agreement))


def means_of(sums: dict[str, list]) -> dict[str, Checkpoints]:
    """Of either half and of ``all`` samples the mean over rows; NaN where none could be judged."""
    of_halves = np.array([sums[half] for half in agreement.HALVES])  # (half, checkpoint, sums)
    total, rows, _ = np.moveaxis(of_halves, -1, 0)
    with np.errstate(invalid="ignore"):
        means = np.vstack([total, total.sum(0)]) / np.vstack([rows, rows.sum(0)])
    return dict(zip((*agreement.HALVES, "all"), means, strict=True))


# Two runs held against each other.


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs of a column have in common, on a part of the data, with a way to choose checkpoints.

    Attributes:
        column: of the agreement tables.
        part: of the data.
        quality: the measure by which the first run's checkpoint is best.
        choice: of checkpoints, see :data:`CHOICES`.
        seeds: of the first run and the second.
        steps: updates at the checkpoints of the second run.
        performance: how good the second run is at each of these, in percent; None where it is not asked.
        courses: by measure, how far both agree at each of these, as a share.
        best: by measure, how far both agree at the best checkpoint of the second run, in percent.
        chance: what agrees by chance with the second run, in percent.
    """

    column: str
    part: str
    quality: str
    choice: str
    seeds: tuple[int, int]
    steps: list[int]
    performance: list[float] | None
    courses: dict[str, Checkpoints]
    best: dict[str, float]
    chance: float

    @property
    def numbers(self) -> dict[str, float]:
        """What is estimated over pairs, in percent."""
        agreement = self.best["agreement"]
        course = self.courses["agreement"]
        return self.best | {
            "above_chance": agreement - self.chance,
            "rises": agreement - 100 * course[0],
            "falls": agreement - 100 * course[-1],
        }


def alone(answers: agreement.Answers) -> dict[RunSpec, dict]:
    """Return what was asked of single runs."""
    return {runs[0]: answer for runs, answer in answers.items() if len(runs) == 1}


def parts_of(answers: agreement.Answers) -> list[tuple[str, str]]:
    """Return every part of the data with every measure of quality that networks have there."""
    parts: dict[tuple[str, str], None] = {}  # in order
    for answer in alone(answers).values():
        for part, qualities in answer["parts"].items():
            for quality in qualities:
                parts[part, quality] = None
    return list(parts)


def compared(runs: agreement.Runs, answers: agreement.Answers) -> list[Comparison]:
    """Return a comparison for each column, pair of runs, part of the data, quality and choice."""
    of_single = alone(answers)
    comparisons = []
    for column in agreement.COLUMNS:
        for first, second in runs.pairs(column):
            if (first, second) not in answers:
                continue
            compare = partial(_compared, column, answers[first, second], of_single.get(second))
            seeds = (first.seed, second.seed)
            comparisons += [
                compare(part=part, quality=quality, choice=choice, seeds=seeds)
                for part, quality in parts_of(answers)
                for choice in CHOICES
            ]
    return comparisons


def _compared(
    column: str,
    answer: dict,
    second: dict | None,
    *,
    part: str,
    quality: str,
    choice: str,
    seeds: tuple[int, int],
) -> Comparison:
    choosing, reporting = CHOICES[choice]
    best_places = answer["best"][part]
    # A bag of words writes no sentences, and has no BLEU.
    place = best_places.get(quality, best_places["accuracy"])[choosing]
    sides = agreement.COLUMNS[column].sides
    sums = answer["parts"][part][sides.key][str(place)]
    courses, best = {}, {}
    for measure in MEASURES:
        means = means_of(sums[measure])
        courses[measure] = means[reporting]
        best[measure] = 100 * means[reporting][best_checkpoint(means[choosing])]
    performance, chance = None, math.nan
    if second:
        performance = second["parts"][part][quality][reporting]
        chance = 100 * second["chance"][part].get(sides.second, math.nan)
    return Comparison(
        column=column,
        part=part,
        quality=quality,
        choice=choice,
        seeds=seeds,
        steps=answer["steps"],
        performance=performance,
        courses=courses,
        best=best,
        chance=chance,
    )


# Intervals over seeds of numbers of pairs.


def over_pairs(numbers: Pairs, column: str) -> Interval:
    """Return the mean over a column's ordered pairs of seeds, with the jackknife's interval (of three seeds).

    Two pairs of runs of two kinds are of four runs, and Student's interval of the two numbers stands. Where
    they are of one kind both pairs are of the same two runs, so there is none.
    """
    kinds = agreement.COLUMNS[column]
    if kinds.first != kinds.second and len(set().union(*numbers)) == 2:
        return interval_of(numbers.values())
    return _jackknifed(numbers, _itself)


def _itself(mean: float, seed: int, seeds: Sequence[int]) -> float:
    return mean


def _jackknifed(numbers: Pairs, of_first: Callable[[float, int, Sequence[int]], float]) -> Interval:
    """Return the mean over first runs of ``of_first(mean over second runs, first seed, seeds)``."""

    def mean(seeds: Sequence[int]) -> float:
        of_seeds = []
        for seed in seeds:
            of_others = _of_others(numbers, seed, seeds)
            if of_others:
                of_seeds.append(of_first(sum(of_others) / len(of_others), seed, seeds))
        return sum(of_seeds) / len(of_seeds) if of_seeds else math.nan

    seeds = sorted(set().union(*numbers))
    return interval_of() if math.isnan(mean(seeds)) else jackknife_interval(seeds, mean)


def _of_others(numbers: Pairs, seed: int, seeds: Sequence[int]) -> list[float]:
    """Return the numbers of a first run with each second run among these seeds."""
    return [number for (first, second), number in numbers.items() if first == seed and second in seeds]


def _mean_of_others(numbers: Pairs, seed: int, seeds: Sequence[int]) -> float:
    of_others = _of_others(numbers, seed, seeds)
    return sum(of_others) / len(of_others) if of_others else math.nan


def less_than_frozen(uniform: Pairs, frozen: Pairs) -> Interval:
    """Return A(α, β) at uniform attention minus A(α, α) with all but attention frozen: columns of Table 10.

    Both numbers share the free networks, their first runs: the difference is taken for each of these, and the
    jackknife leaves out a seed with all its pairs.
    """

    def mean(seeds: Sequence[int]) -> float:
        differences = []
        for seed in seeds:
            differences.append(_mean_of_others(uniform, seed, seeds) - _mean_of_others(frozen, seed, seeds))
        return float(np.mean(differences))

    uniform_seeds = {first for first, _ in uniform}
    frozen_seeds = {first for first, _ in frozen}
    seeds = sorted(uniform_seeds & frozen_seeds)
    return jackknife_interval(seeds, mean) if seeds else interval_of()


AttentionCourses = dict[tuple[int, int], tuple[Checkpoints, list[float]]]


def attention_courses(comparisons: Iterable[Comparison], measure: str) -> AttentionCourses:
    """Return by pair how far two attentions agree at each checkpoint of the second, and how good that is."""
    return {
        comparison.seeds: (comparison.courses[measure], comparison.performance)
        for comparison in comparisons
        if comparison.column == "alpha_alpha" and comparison.performance
    }


def contextualised(numbers: Pairs, courses: AttentionCourses) -> tuple[Interval, Interval]:
    """Return ξ in percent, and the share that is starred; courses with all other seeds are averaged."""

    def xi_of_first(number: float, seed: int, seeds: Sequence[int]) -> tuple[float, bool]:
        others = [courses[seed, other] for other in seeds if (seed, other) in courses]
        if not others:
            return math.nan, math.nan
        reached, performance = np.mean(others, axis=0)
        return contextualise(number / 100, reached, performance)

    xi = _jackknifed(numbers, lambda *of_first: xi_of_first(*of_first)[0])
    starred = _jackknifed(numbers, lambda *of_first: xi_of_first(*of_first)[1])
    return xi, starred


# What columns of the tables are.


EQUATION = "Snell et al. 2021, equation {}"


def percent(meaning: str, low: float = 0.0, source: str = "") -> Column:
    return Column(meaning, "%", low=low, high=100.0, source=source)


MEANINGS = {
    "alpha_beta_uf": "attention, and the probe at uniform attention",
    "beta_uf_beta_px": "the probe at uniform attention, and the bag of words",
    "delta_beta_uf": "saliency, and the probe at uniform attention",
    "alpha_beta": "attention, and the probe of another seed",
    "alpha_alpha": "attention of two seeds",
    "alpha_alpha_frozen": "attention, and attention trained alone",
}
DATA = {"data": Column("data set")}
PART = {
    "part": Column(
        "part of the data",
        categories={
            "validation": "held-out samples",
            "train": "texts to train on",
            "training": "sentence pairs to train on",
        },
    )
}
QUALITY = {
    "quality": Column(
        "measure by which checkpoints are best", categories={"accuracy": "answers right", "bleu": "BLEU"}
    )
}
CHOICE = {
    "choice": Column(
        "who chooses checkpoints",
        categories={"apart": "samples that are not reported", "optimistic": "all samples, as in the paper"},
    )
}
COLUMN = {"column": Column("what is compared", categories=MEANINGS)}
SEEDS = {
    "seed": Column("random seed of the first network"),
    "second_seed": Column("random seed of the second network"),
}
STEP = {"step": Column("updates of the second network", "updates", low=0)}
AGREE = {"agreement": percent("agreement 𝒜 (equation 10)"), "kendall": percent("Kendall's τ-b", -100.0)}
COURSE = {"accuracy": percent("answers of the second network that are right"), **AGREE}
OF_PAIRS = {
    **AGREE,
    "above_chance": percent("agreement, minus that by chance with the same second network", -100.0),
    "rises": percent("agreement at the best checkpoint, minus that at the first", -100.0),
    "falls": percent("agreement at the best checkpoint, minus that at the last", -100.0),
}
XI = {
    "agreement_xi": percent("ξ of the agreement", source=EQUATION.format(11)),
    "agreement_starred": share("seeds of which this is ξ*"),
    "kendall_xi": percent("ξ of Kendall's τ-b"),
    "kendall_starred": share("seeds of which this is ξ*"),
}
OF_NETWORKS = {
    "chance": percent("agreement by chance with the probe at uniform attention"),
    "final": percent("how good networks with learned attention are in the end"),
}
FROZEN = {
    "less_than_frozen": percent("agreement of attention and probe, minus that with attention alone", -100.0)
}
MAJORITY = {"majority": percent("accuracy of always giving the commonest answer")}
VARIANT = {
    "variant": Column(
        "reading of saliency",
        categories={
            "logit": "gradient of the logit, times the embedding",
            "log_probability": "gradient of the log-probability, times the embedding",
            "gradient_norm": "norm of the gradient of the log-probability",
        },
    )
}
MEASURE = {
    "measure": Column("measure of agreement", categories={name: AGREE[name].meaning for name in AGREE})
}
WAY = {
    "way": Column(
        "ties of the probe", categories={"counted": "count as agreement", "broken": "are broken at random"}
    )
}
TIED = {
    "tied": percent("target words whose largest probe is tied"),
    "broken": percent("agreement when ties are broken"),
    "counted": percent("agreement when ties count"),
}
BY_WAY = {
    "largest": percent("agreement at the best of all checkpoints"),
    "falls": Column("agreement at the best checkpoint by one half, minus the last, by the other", "%"),
}
TIED_LAST = {
    "tied": percent("target words whose largest probe is tied, at the last checkpoint"),
    "chance": percent("agreement by chance when ties count"),
    "ends": percent("of the tied words, those that are end marks"),
}
BROKEN = {"chance_broken": percent("agreement by chance when ties are broken")}
PAIR = {
    "pair": Column(
        "networks that are compared",
        categories={
            "same": "attention and saliency of one network",
            "other": "attention of a network, and saliency of another seed's",
        },
    )
}
OF_SALIENT = {
    "attention_saliency": percent("agreement 𝒜(α, Δ): the largest attention, looked up in saliency"),
    "saliency_attention": percent("agreement 𝒜(Δ, α): the largest saliency, looked up in attention"),
    "kendall": percent("Kendall's τ-b of attention and saliency", -100.0),
    "chance": percent("agreement by chance with saliency"),
    "above_chance": percent("agreement 𝒜(α, Δ), minus that by chance", -100.0),
}


def rank_with_updates(meaning: str) -> Column:
    return Column(f"rank correlation of {meaning} with the number of updates", low=-1.0, high=1.0)


OF_RISING = {
    "performance": rank_with_updates("performance"),
    "performance_until_best": rank_with_updates("performance until the best checkpoint"),
    "attention": rank_with_updates("agreement 𝒜 of attention and that of a finished network"),
}
WEAKEST_OF = {"weakest_of": Column("data sets that are compared")}
ABSENT = {"cannot_be_run": Column("why a set is passed over")}


def quantity_of(columns: Columns) -> Columns:
    """Return the column that names which of these quantities is estimated."""
    return {
        "quantity": Column("what is estimated", categories={name: str(columns[name]) for name in columns})
    }


OF_PART = DATA | PART | QUALITY | CHOICE
COLUMNS_OF = {  # table → its columns
    "courses": DATA | COLUMN | PART | SEEDS | STEP | COURSE,
    "ties": DATA | COLUMN | SEEDS | STEP | TIED,
    "estimates": OF_PART | COLUMN | quantity_of(OF_PAIRS | XI) | INTERVAL,
    "networks": OF_PART | quantity_of(OF_NETWORKS) | INTERVAL,
    "frozen": DATA | PART | QUALITY | INTERVAL,
    "majorities": DATA | PART | MAJORITY,
    "saliency": DATA | VARIANT | MEASURE | INTERVAL,
    "saliency_xi": DATA | VARIANT | MEASURE | QUALITY | INTERVAL,
    "ties_by_way": DATA | COLUMN | WAY | quantity_of(BY_WAY) | INTERVAL,
    "ties_at_the_end": DATA | quantity_of(TIED_LAST) | INTERVAL,
    "ties_broken": DATA | BROKEN,
    "salient": DATA | PART | PAIR | quantity_of(OF_SALIENT) | INTERVAL,
    "rising": DATA | PART | QUALITY | quantity_of(OF_RISING) | INTERVAL,
}


# From what was asked of a data set's runs to the rows of the tables, in percent.


@dataclass(frozen=True)
class Asked:
    """The runs of one data set, and what they answered."""

    data: str
    runs: agreement.Runs
    answers: agreement.Answers
    ties: agreement.Answers = field(default_factory=dict)  # of translators
    gradients: agreement.Answers = field(default_factory=dict)  # of translators
    salient: agreement.Answers = field(default_factory=dict)  # of classifiers

    @cached_property
    def comparisons(self) -> list[Comparison]:
        return compared(self.runs, self.answers)

    def of(self, part: str, quality: str, choice: str) -> list[Comparison]:
        """Return the comparisons on a part of the data, by a measure of quality and a choice."""
        chosen = []
        for comparison in self.comparisons:
            if (comparison.part, comparison.quality, comparison.choice) == (part, quality, choice):
                chosen.append(comparison)
        return chosen

    @property
    def groups(self) -> Iterator[tuple[dict[str, str], list[Comparison]]]:
        """Yield the comparisons of each part, quality and choice, with the columns that name these."""
        for (part, quality), choice in product(parts_of(self.answers), CHOICES):
            named = {"data": self.data, "part": part, "quality": quality, "choice": choice}
            yield named, self.of(part, quality, choice)


def estimates_of(asked: Asked) -> Iterator[dict]:
    """Yield every number of a data set's row in the agreement tables, as an interval over seeds.

    ``above_chance``, ``rises`` and ``falls`` are of checkpoints that are chosen by other samples.
    """
    for named, comparisons in asked.groups:
        courses = {measure: attention_courses(comparisons, measure) for measure in MEASURES}
        quantities = OF_PAIRS if named["choice"] == "apart" else MEASURES
        for column in agreement.COLUMNS:
            of_column = [comparison for comparison in comparisons if comparison.column == column]
            named_column = {**named, "column": column}
            for quantity in quantities:
                numbers = {comparison.seeds: comparison.numbers[quantity] for comparison in of_column}
                yield named_column | _estimate(quantity, over_pairs(numbers, column), OF_PAIRS)
            for measure in MEASURES:
                numbers = {comparison.seeds: comparison.best[measure] for comparison in of_column}
                xi, starred = contextualised(numbers, courses[measure])
                yield named_column | _estimate(f"{measure}_xi", xi, XI)
                yield named_column | _estimate(f"{measure}_starred", starred, XI)


def _estimate(quantity: str, estimate: Interval, columns: Columns) -> dict:
    """Return the record of an estimate, which ends where the numbers of its column end."""
    return {"quantity": quantity, **bounded(estimate, *columns[quantity].range)}


def frozen_of(asked: Asked) -> Iterator[dict]:
    """Yield :func:`less_than_frozen` by part of the data and measure of quality."""
    for named, comparisons in asked.groups:
        if named["choice"] != "apart":
            continue
        uniform = _best_agreements(comparisons, "alpha_beta_uf")
        frozen = _best_agreements(comparisons, "alpha_alpha_frozen")
        yield named | _estimate("less_than_frozen", less_than_frozen(uniform, frozen), FROZEN)


def _best_agreements(comparisons: list[Comparison], column: str) -> Pairs:
    return {
        comparison.seeds: comparison.best["agreement"]
        for comparison in comparisons
        if comparison.column == column
    }


def networks_of(asked: Asked) -> Iterator[dict]:
    """Yield what is estimated of networks alone: chance, and how good networks with learned attention end."""
    of_single = alone(asked.answers)
    uniform = [of_single[run] for run in asked.runs.uniform if run in of_single]
    normal = [of_single[run] for run in asked.runs.normal if run in of_single]
    for named, _ in asked.groups:
        part, quality, choice = named["part"], named["quality"], named["choice"]
        if choice == "apart":
            chance = interval_of(100 * answer["chance"][part]["probe"] for answer in uniform)
            yield named | _estimate("chance", chance, OF_NETWORKS)
        _, reporting = CHOICES[choice]
        final = interval_of(answer["parts"][part][quality][reporting][-1] for answer in normal)
        yield named | _estimate("final", final, OF_NETWORKS)


def majorities_of(asked: Asked) -> Iterator[dict]:
    """Yield the commonest answer's accuracy; samples are the same for all runs, so any of them can tell."""
    answers = list(alone(asked.answers).values())
    for part, quality in parts_of(asked.answers):
        if quality == "accuracy":
            yield {"data": asked.data, "part": part, "majority": answers[0]["majority"][part]}


def courses_of(asked: Asked) -> Iterator[dict]:
    """Yield a record for each column, pair of runs, part and checkpoint of the second run.

    The first run is where it is best on all samples.
    """
    for comparison in asked.comparisons:
        is_shown = comparison.quality == "accuracy" and comparison.choice == "optimistic"
        if not is_shown or not comparison.performance:
            continue
        first, second = comparison.seeds
        named = {
            "data": asked.data,
            "column": comparison.column,
            "part": comparison.part,
            "seed": first,
            "second_seed": second,
        }
        courses = {"step": comparison.steps, "accuracy": comparison.performance}
        for measure in MEASURES:
            courses[measure] = (100 * comparison.courses[measure]).tolist()
        yield from _by_checkpoint(named, courses)


def _by_checkpoint(named: dict, courses: dict[str, list]) -> Iterator[dict]:
    for numbers in zip(*courses.values(), strict=True):
        yield named | dict(zip(courses, numbers, strict=True))


# Readings of saliency.


def saliency_of(asked: Asked) -> Iterator[dict]:
    """Yield by reading of saliency what the tables print: of each pair the largest of all checkpoints.

    Student's interval is over the pairs, which have no run in common.
    """
    for variant, measure in product(agreement.SALIENCY_VARIANTS, MEASURES):
        numbers = largest_saliency(asked.gradients, variant, measure)
        estimate = bounded(interval_of(numbers.values()), *AGREE[measure].range)
        yield {"data": asked.data, "variant": variant, "measure": measure} | estimate


def saliency_xi_of(asked: Asked) -> Iterator[dict]:
    """Yield ξ of these by measure of quality, by the courses of attention that the tables take."""
    for variant, measure in product(agreement.SALIENCY_VARIANTS, MEASURES):
        numbers = largest_saliency(asked.gradients, variant, measure)
        for quality in ("accuracy", "bleu"):
            comparisons = asked.of("validation", quality, "optimistic")
            xi, _ = contextualised(numbers, attention_courses(comparisons, measure))
            named = {"data": asked.data, "variant": variant, "measure": measure, "quality": quality}
            yield named | bounded(xi, *XI[f"{measure}_xi"].range)


def largest_saliency(gradients: agreement.Answers, variant: str, measure: str) -> Pairs:
    """Return by pair of seeds the largest agreement of all checkpoints."""
    return {
        (first.seed, second.seed): max(answer[variant][measure])
        for (first, second), answer in gradients.items()
    }


# Attention and the saliency of words (sections 1 and 5.1).


def salient_of(asked: Asked) -> Iterator[dict]:
    """Yield by part and pair how far attention and saliency agree, each network where it is most accurate."""
    parts = dict.fromkeys(part for answer in asked.salient.values() for part in answer)
    for part, quantity in product(parts, OF_SALIENT):
        same, other = {}, {}
        for (first, second), answer in asked.salient.items():
            of_pair = same if first == second else other
            of_pair[first.seed, second.seed] = _salient_numbers(answer[part])[quantity]
        named = {"data": asked.data, "part": part}
        within = interval_of(same.values())
        between = _jackknifed(other, _itself)
        yield named | {"pair": "same"} | _estimate(quantity, within, OF_SALIENT)
        yield named | {"pair": "other"} | _estimate(quantity, between, OF_SALIENT)


def _salient_numbers(of_part: dict[str, float]) -> dict[str, float]:
    return of_part | {"above_chance": of_part["attention_saliency"] - of_part["chance"]}


# What rises as training goes on (section 3.1, Figure 2).


def rising_of(asked: Asked) -> Iterator[dict]:
    """Yield by part and quality how the ranks of checkpoints follow training, from its start to its end.

    Attention is that of a second run, and compared with a first run's where that is best on all samples.
    """
    of_single = alone(asked.answers)
    normal = [of_single[run] for run in asked.runs.normal if run in of_single]
    for part, quality in parts_of(asked.answers):
        performance, until_best = [], []
        for answer in normal:
            course = answer["parts"][part][quality]
            performance.append(spearman(answer["steps"], course["all"]))
            until_best.append(rank_until_best(answer["steps"], course["selecting"], course["reporting"]))
        attention = {
            comparison.seeds: spearman(comparison.steps, comparison.courses["agreement"])
            for comparison in asked.of(part, quality, "optimistic")
            if comparison.column == "alpha_alpha"
        }
        estimates = {
            "performance": interval_of(performance),
            "performance_until_best": interval_of(until_best),
            "attention": _jackknifed(attention, _itself),
        }
        named = {"data": asked.data, "part": part, "quality": quality}
        for quantity, estimate in estimates.items():
            yield named | _estimate(quantity, estimate, OF_RISING)


def rank_until_best(steps: list[int], selecting: list[float], reporting: list[float]) -> float:
    """Return the rank correlation of performance with updates, until it is best for the samples that choose.

    The other samples report, since a course that ends at its own maximum seems to rise in any case. NaN where
    the first checkpoint is the best.

    >>> rank_until_best([0, 10, 50, 100], [50.0, 60.0, 80.0, 70.0], [50.0, 70.0, 60.0, 90.0])
    0.5
    """
    until = selecting.index(max(selecting)) + 1
    return spearman(steps[:until], reporting[:until]) if until > 1 else math.nan


# What ties in the lexical probe add to the agreement tables: both ways of counting them, in percent.


@dataclass(frozen=True)
class Ties:
    """What ties add to the agreement of two runs, in percent.

    Attributes:
        steps: updates at the checkpoints of the second run.
        tied: words that are tied at each of these.
        courses: agreement at each of these, by way of counting ties.
        falls: by way, agreement at the best checkpoint, minus that at the last.
    """

    steps: list[int]
    tied: list[float]
    courses: dict[str, list[float]]
    falls: dict[str, float]


def ties_by_pair(asked: Asked, column: str) -> dict[tuple[int, int], Ties]:
    """Return by pair of a column that looks up β what its ties add."""
    side = agreement.COLUMNS[column].sides.first
    by_pair = {}
    for first, second in asked.runs.pairs(column):
        if (first, second) not in asked.ties:
            continue
        answer = asked.ties[first, second]
        courses, falls = {}, {}
        for way, sums in answer[side].items():
            means = {group: 100 * mean for group, mean in means_of(sums).items()}
            at_best = means["reporting"][best_checkpoint(means["selecting"])]
            courses[way] = means["all"].tolist()
            falls[way] = at_best - means["reporting"][-1]
        by_pair[first.seed, second.seed] = Ties(answer["steps"], answer["tied"], courses, falls)
    return by_pair


def ties_estimates(asked: Asked) -> Iterator[dict]:
    """Yield by column that looks up β and way of counting ties the agreement, and how far it falls.

    ``largest`` is the agreement at the best of all checkpoints; ``falls``, chosen on one half of the samples
    and read on the other, how far it is above the last one.
    """
    for column, way in product(agreement.WITH_PROBE, agreement.WAYS):
        by_pair = ties_by_pair(asked, column)
        largest = {pair: max(ties.courses[way]) for pair, ties in by_pair.items()}
        falls = {pair: ties.falls[way] for pair, ties in by_pair.items()}
        named = {"data": asked.data, "column": column, "way": way}
        yield named | _estimate("largest", over_pairs(largest, column), BY_WAY)
        yield named | _estimate("falls", over_pairs(falls, column), BY_WAY)


def _last_ties(asked: Asked) -> list[dict]:
    """Return what is asked with each network at uniform attention, once."""
    by_seed = {}
    for (_, second), answer in asked.ties.items():
        if second in asked.runs.uniform:
            by_seed[second.seed] = answer
    return list(by_seed.values())


def ties_at_the_end(asked: Asked) -> Iterator[dict]:
    """Yield how many words are tied in the end at uniform attention, and how many of them are end marks."""
    tied, chance, ends = [], [], []
    for answer in _last_ties(asked):
        at_the_end = answer["tied"][-1]
        tied.append(at_the_end)
        chance.append(answer["chance"][-1])
        if at_the_end:
            ends.append(100 * answer["tied_ends"][-1] / at_the_end)
    for quantity, of_networks in (("tied", tied), ("chance", chance), ("ends", ends)):
        yield {"data": asked.data} | _estimate(quantity, interval_of(of_networks), TIED_LAST)


def broken_of(asked: Asked) -> Iterator[dict]:
    """Yield what agrees by chance when ties are broken, which no checkpoint changes."""
    answers = _last_ties(asked)
    yield {"data": asked.data, "chance_broken": answers[0]["chance_broken"] if answers else None}


def ties_courses(asked: Asked) -> Iterator[dict]:
    """Yield a record for each column, pair of runs and checkpoint of the second run."""
    for column in agreement.WITH_PROBE:
        for (first, second), ties in ties_by_pair(asked, column).items():
            named = {"data": asked.data, "column": column, "seed": first, "second_seed": second}
            courses = {"step": ties.steps, "tied": ties.tied}
            courses |= {way: ties.courses[way] for way in agreement.WAYS}
            yield from _by_checkpoint(named, courses)


# The data sets where the paper's statements are weakest.


def weakest(estimates: Table) -> Table:
    """Return by column ``above_chance`` of the data set where its interval reaches lowest.

    Corpora that the paper does not have are left out: what it says of all tasks is about its own.
    """
    chosen = "part == 'validation' and quality == 'accuracy' and quantity == 'above_chance' and n > 0"
    of_the_paper = estimates.query("data not in @further", further=FURTHER)
    rows = []
    for column, group in of_the_paper.query(chosen).frame.groupby("column", sort=False):
        lowest = group["low"].astype(float).fillna(group["value"])
        rows.append({"column": column} | _least(group, lowest))
    return Table.of(rows, COLUMN | DATA | INTERVAL | WEAKEST_OF, "a column of the agreement tables")


def least_accurate(networks: Table) -> Table:
    """Return the accuracy of networks with learned attention on the set where they do worst in the end.

    As in :func:`weakest`, of the paper's sets.
    """
    of_the_paper = networks.query("data not in @further", further=FURTHER)
    held_out = of_the_paper.query("part == 'validation' and quality == 'accuracy' and choice == 'apart'")
    finals = held_out.query("quantity == 'final' and n > 0").frame
    rows = [_least(finals, finals["value"].astype(float))] if len(finals) else []
    return Table.of(rows, DATA | INTERVAL | WEAKEST_OF, "a data set")


def _least(estimates: "pd.DataFrame", numbers: "pd.Series") -> dict:
    """Return the estimate of which the number is least, and which data sets there are."""
    row = estimates.loc[numbers.idxmin()]
    least = {name: row[name] for name in ("data", *INTERVAL)}
    least["weakest_of"] = " ".join(sorted(estimates["data"]))
    return least


CLASSIFICATION = ("known_polarity", "sst")
TRANSLATION = ("known_lexicon", "multi30k_en_de")
MAIN = "multi30k_en_de"  # the direction that the text speaks of
VALIDATION_PAIRS = 1_014  # of Multi30k: so many pairs are looked at, of the training part too (Table 7)
STEPS = 36_250  # 20 epochs of Multi30k's 29,000 pairs in batches of 16 (section A.8)
# 30 epochs of the 8,630 pairs that there are (A.8). Of its 7,283 validation pairs as many are looked at
# as Multi30k has; all of them at every checkpoint would be seven times the work.
FEWER_STEPS = {"iwslt14_de_en": 16_180}
# Corpora of no table of the paper, on which its statements are tested all the same: 10 epochs of their first
# 10,000 pairs, judged on as many pairs as Multi30k has, and not on training pairs. As much as Multi30k has
# would be six times the work.
FURTHER = ("tatoeba_en_de", "tatoeba_en_fr", "multi30k_en_fr", "europarl_de_en")
FURTHER_PAIRS, FURTHER_STEPS = 10_000, 6_250
Several = Annotated[int, Field(ge=2)]  # a network is compared with others of other seeds
LONG_REVIEWS = ("amazon", "imdb", "yelp")
LONG = ("twenty_newsgroups", *LONG_REVIEWS)  # median texts of 70 to 200 words


class Config(BaseConfig):
    """Settings. A row is a data set; each is trained on ``seeds`` times with every kind of network."""

    classification: tuple[Annotated[str, OneOf(labelled_sets.names())], ...] = setting(
        CLASSIFICATION, "sets of labelled texts"
    )
    translation: tuple[Annotated[str, OneOf(parallel.NAMES)], ...] = setting(
        TRANSLATION, "sets of sentence pairs"
    )
    only_at_hand: int = setting(1, "1 leaves out the sets whose files are not on this machine")
    data: Path | None = setting(
        None,
        "path of your own table of labelled texts (.tsv or .csv). It replaces all the sets; a "
        "tenth is held out",
    )
    source: Path | None = setting(None, "path of your own text file, line by line what target has")
    target: Path | None = setting(None, "path of your own second text file")
    seeds: Several = setting(3, "networks of each kind on short texts")
    long_seeds: Several = setting(2, "the same on long texts and on sentence pairs")
    main_seeds: Several = setting(2, "the same on Multi30k from English to German")
    doubled: tuple[Annotated[str, OneOf(labelled_sets.names())], ...] = setting(
        (), "sets of labelled texts with a second group of as many networks, compared among themselves"
    )
    frozen: NotNegative = setting(
        2, "networks with all but the attention layer frozen as drawn, of each set of texts; 0 for none"
    )
    n_train: NotNegative = setting(
        2_000,
        "texts to train on; 0 for all that the paper used. All of a reader's own table are "
        "used where this is left at the profile's",
    )
    n_validation: NotNegative = setting(150, "texts to judge on; 0 for all, as above")
    train_pairs: NotNegative = setting(
        2_000, "sentence pairs to train on; 0 for all, or for 10,000 of a corpus that the paper does not have"
    )
    validation_pairs: NotNegative = setting(
        40, "sentence pairs to judge on; 0 for all, or for 1,014 of IWSLT14 or of such a corpus"
    )
    width: Positive = setting(64, "of states")
    embedding_width: Positive = setting(64, "of the classifiers' embeddings")
    learning_rate: AboveZero = setting(3e-3, "of Adam")
    steps: Positive = setting(200, "updates of the classifiers")
    translation_steps: NotNegative = setting(
        260,
        "updates of the translators; 0 for the paper's. These are 36,250 on Multi30k, and as "
        "many on other sets but IWSLT14, which has as many epochs as the paper's, of the "
        "pairs we have, and 6,250 on corpora that the paper does not have",
    )
    pieces: Positive = setting(1_000, "size of the vocabulary of sentence pairs")
    salient: tuple[Annotated[str, OneOf(labelled_sets.names())], ...] = setting(
        CLASSIFICATION, "sets of labelled texts of which attention is compared with the saliency of words"
    )
    salient_seeds: tuple[NotNegative, ...] = setting(
        (0, 1, 2), "seeds of their networks on short texts; long ones have all that there are"
    )
    training_part: int = setting(0, "1 judges on a sample of the training pairs too")

    def check(self) -> None:
        take_files(self)
        if self.data is not None and self.source is not None:
            raise BadInput("data is a table of labelled texts, source and target are pairs: give one of them")
        if self.frozen == 1:
            raise BadInput("frozen is 1; networks of several seeds are compared, so give 0 or at least 2")
        if self.data is not None:  # refused now, not in the first training
            labelled_sets.read_own(self.data, {})
        if self.source is not None:
            parallel.read_parallel_files(self.source, self.target)


PROFILES = {
    # Saliency takes a pass backward for each word, most of the time of a small translator.
    "quick": Config(steps=100, validation_pairs=8, translation_steps=80),
    "paper": Config(
        classification=("sst", "sst_as_text", "sms_spam", "ag_news", "twenty_newsgroups", *LONG_REVIEWS),
        translation=("multi30k_en_de", "multi30k_de_en", "iwslt14_de_en", "tatoeba_en_de"),
        only_at_hand=0, seeds=4, long_seeds=3,
        main_seeds=3,  # as many as the chapter on optimal attention has, which shares them
        frozen=4, n_train=0, n_validation=0, train_pairs=0, validation_pairs=0, width=256,
        embedding_width=300, learning_rate=1e-3, steps=4_000, translation_steps=0, pieces=8_000,
        training_part=1,
        doubled=("sst", "sst_as_text"),
        # Networks are not kept: seeds 0 and 1 were trained once more. On SST the others are the second group.
        salient=("sst", "sms_spam", "ag_news", "twenty_newsgroups"), salient_seeds=(0, 1, 4, 5, 6, 7),
    ),
    "tiny": Config(
        classification=("known_polarity",), translation=("known_lexicon",), seeds=2, frozen=2, n_train=60,
        n_validation=8, train_pairs=60, validation_pairs=8, width=8, embedding_width=8, steps=10,
        translation_steps=50, pieces=60, training_part=1, salient=("known_polarity",), salient_seeds=(0, 1),
    ),
}  # fmt: skip


def rows(config: Config) -> dict[str, agreement.Runs]:
    """The runs of every row, by data set; a reader's own is ``own``."""
    if config.data is not None:
        return {"own": _classifiers(_for_own_table(config), str(config.data.resolve()))}
    if config.source is not None:
        files = {"source": str(config.source.resolve()), "target": str(config.target.resolve())}
        return {"own": _translators(replace(config, long_seeds=config.seeds), parallel.OWN, **files)}
    runs = {}
    for name in config.classification:
        if not config.only_at_hand or labelled_sets.available(name):
            runs[name] = _classifiers(config, name)
    for name in config.translation:
        if not config.only_at_hand or parallel.available(name):
            runs[name] = _translators(config, name)
    return runs


def _for_own_table(config: Config) -> Config:
    """Return the configuration with all of a reader's table, where numbers of texts are a profile's."""
    profiles = [PROFILES[name] for name in paths.PROFILES]
    all_texts = {}
    for name in ("n_train", "n_validation"):
        if getattr(config, name) in {getattr(profile, name) for profile in profiles}:
            all_texts[name] = 0
    return replace(config, **all_texts)


def measurements(config: Config) -> tuple[Measurement, ...]:
    asked: list[Measurement] = []
    for runs in rows(config).values():
        asked += [*runs.measurements(), *runs.saliency(), *runs.ties(), *runs.salient_words()]
    return tuple(asked)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the rows of the agreement tables, as far as their runs are there, in percent."""
    available = rows(config)
    asked = []
    for data, runs in available.items():
        answers = agreement.gathered(runs.measurements(), store)
        if answers:
            ties = agreement.gathered(runs.ties(), store)
            gradients = agreement.gathered(runs.saliency(), store)
            salient = agreement.gathered(runs.salient_words(), store)
            asked.append(Asked(data, runs, answers, ties, gradients, salient))
    absent = []
    if config.data is None and config.source is None:
        for data in (*config.classification, *config.translation):
            if data not in available:
                absent.append({"data": data, "cannot_be_run": f"data: {data} is not available here"})
    tables = tables_of(asked)
    tables["absent"] = Table.of(absent, DATA | ABSENT, "a set that is not available")
    return tables


@dataclass(frozen=True)
class Recipe:
    """How a table is made of what was asked of each data set.

    Attributes:
        records: of one data set.
        row: what a row is.
        of_translators: whether the table is of translators alone.
    """

    records: Callable[[Asked], Iterable[dict]]
    row: str
    of_translators: bool = False


RECIPES = {
    "courses": Recipe(courses_of, "a pair of networks at a checkpoint"),
    "ties": Recipe(ties_courses, "a pair of networks at a checkpoint", of_translators=True),
    "estimates": Recipe(estimates_of, "an estimate over pairs"),
    "networks": Recipe(networks_of, "an estimate over networks"),
    "frozen": Recipe(frozen_of, "a difference of two columns"),
    "majorities": Recipe(majorities_of, "a part of a data set"),
    "saliency": Recipe(saliency_of, "a reading of saliency", of_translators=True),
    "saliency_xi": Recipe(saliency_xi_of, "ξ of a reading of saliency", of_translators=True),
    "ties_by_way": Recipe(ties_estimates, "an estimate over pairs", of_translators=True),
    "ties_at_the_end": Recipe(ties_at_the_end, "an estimate over networks", of_translators=True),
    "ties_broken": Recipe(broken_of, "a data set", of_translators=True),
    "salient": Recipe(salient_of, "an estimate over networks or pairs"),
    "rising": Recipe(rising_of, "an estimate over networks or pairs"),
}


def tables_of(asked: Sequence[Asked]) -> dict[str, Table]:
    """Return the tables of several data sets."""
    translated = [of_set for of_set in asked if of_set.runs.ties()]
    tables = {}
    for name, recipe in RECIPES.items():
        sets = translated if recipe.of_translators else asked
        records = chain.from_iterable(recipe.records(of_set) for of_set in sets)
        tables[name] = Table.of(records, COLUMNS_OF[name], recipe.row)
    tables["weakest"] = weakest(tables["estimates"])
    tables["least_accurate"] = least_accurate(tables["networks"])
    return tables


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by data set, in percent; of each part by measure of quality and column.

    Names that end in ``_optimistic`` have the paper's choice of checkpoints. ``…_xi`` is ξ, ``…_starred``
    the share of seeds that have ξ* there. ``final`` is ξ*, how good networks with learned attention are in
    the end. ``weakest`` has by column ``above_chance`` of the data set where its interval reaches lowest. A
    set that is not available here has ``cannot_be_run`` with the reason.
    """
    of_part = "{data}.{part}.{quality}"
    of_column = of_part + ".{column}.{quantity}"
    apart, optimistic = "choice == 'apart'", "choice == 'optimistic'"
    estimates, networks, saliency = tables["estimates"], tables["networks"], tables["saliency"]
    held_out = tables["majorities"].query("part == 'validation'")
    of_translators = held_out.query("data in @names", names=set(saliency.frame["data"]))
    return view(
        keyed(tables["absent"], "{data}.{column}", ABSENT),
        {"weakest.accuracy": interval_of()},
        keyed(estimates.query(apart), of_column),
        keyed(networks.query(apart), of_part + ".{quantity}"),
        keyed(estimates.query(optimistic), of_column + "_optimistic"),
        keyed(networks.query(optimistic), of_part + ".{quantity}_optimistic"),
        keyed(tables["frozen"], of_part + ".less_than_frozen"),
        keyed(tables["majorities"], "{data}.{part}.accuracy.{column}", MAJORITY),
        keyed(saliency, "{data}.saliency.{variant}.{measure}"),
        keyed(tables["saliency_xi"], "{data}.saliency.{variant}.{measure}_xi.{quality}"),
        keyed(of_translators, "{data}.saliency.{column}", MAJORITY),
        keyed(tables["ties_by_way"], "{data}.ties.{column}.{way}.{quantity}"),
        keyed(tables["ties_at_the_end"], "{data}.ties.{quantity}"),
        keyed(tables["ties_broken"], "{data}.ties.{column}", BROKEN),
        keyed(tables["salient"], "{data}.salient.{part}.{pair}.{quantity}"),
        keyed(tables["rising"], "{data}.rising.{part}.{quality}.{quantity}"),
        _weakest_keys(tables["weakest"]),
        _least_keys("weakest.accuracy", tables["least_accurate"]),
    )


def _weakest_keys(weakest: Table) -> dict[str, object]:
    keys: dict[str, object] = {}
    for column in agreement.COLUMNS:
        keys[f"weakest.{column}.data"] = ""
        keys[f"weakest.{column}.above_chance"] = interval_of()
        of_column = weakest.query("column == @name", name=column)
        keys |= _least_keys(f"weakest.{column}.above_chance", of_column)
        for row in of_column.records():
            keys[f"weakest.{column}.data"] = row["data"]
    return keys


def _least_keys(key: str, least: Table) -> dict[str, object]:
    """Return the interval of the data set that has the least, and what it is the least of."""
    keys: dict[str, object] = {}
    for row in least.records():
        keys[key] = {name: row[name] for name in INTERVAL}
        keys[f"{key}.weakest_of"] = row["weakest_of"].split()
    return keys


def _classifiers(config: Config, data: str) -> agreement.Runs:
    shared = settings_of(config, "n_train", "n_validation", "learning_rate", "steps", "embedding_width")
    shared["data"] = data
    seeds = config.long_seeds if data in LONG else config.seeds
    salient: Iterable[int] = ()
    if data in config.salient:
        salient = range(seeds) if data in LONG else config.salient_seeds
    return agreement.classifier_runs(
        seeds, min(seeds, config.frozen), shared, config.width,
        groups=2 if data in config.doubled else 1, salient=salient,
    )  # fmt: skip


def _translators(config: Config, dataset: str, **files: str) -> agreement.Runs:
    shared = settings_of(config, "learning_rate", "width", "pieces") | files
    shared["dataset"] = dataset
    is_further = dataset in FURTHER
    steps = FURTHER_STEPS if is_further else FEWER_STEPS.get(dataset, STEPS)
    shared["steps"] = config.translation_steps or steps
    shared["n_train"] = config.train_pairs or (FURTHER_PAIRS if is_further else 0)
    shared["n_validation"] = config.validation_pairs or (VALIDATION_PAIRS if is_further else 0)
    if dataset in FEWER_STEPS and not config.validation_pairs:
        shared["probed_validation"] = VALIDATION_PAIRS
    if config.training_part and not is_further:
        shared["probed_training"] = config.validation_pairs or VALIDATION_PAIRS
    seeds = config.main_seeds if dataset == MAIN else config.long_seeds
    return agreement.translator_runs(seeds, shared)
