"""The numbers of a column of the agreement tables, of any of its seeds, and their intervals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.agreement_runs import COLUMNS, Runs
from attnlib.experiments.pair_answers import Answers
from attnlib.probes.contextualised import ComparisonRun, best_checkpoint
from attnlib.probes.row_mean import RowMean
from attnlib.recipes.recipe import RecipeSpec
from attnlib.statistics.jackknife import jackknife_interval

MEASURES = ("agreement", "kendall")
# By the ending of a number's name: which samples choose the first run's checkpoint, and which report. The
# second run's is chosen on the half that selects, or on all that report.
CHOICES = {"": ("selecting", "reporting"), "_optimistic": ("all", "all")}
NAMES = (
    *(
        f"{measure}{what}{choice}"
        for measure in MEASURES
        for what in ("", "_xi", "_starred")
        for choice in CHOICES
    ),
    "above_chance",
    "rises",
    "falls",
)


def whole(sums: dict[str, list], place: int) -> RowMean:
    """The mean over all samples at one checkpoint, from the sums of either half."""
    return RowMean(*sums["selecting"][place]) + RowMean(*sums["reporting"][place])


def sums_at_best(answer: dict, part: str, sides: str, measure: str, quality: str, group: str) -> dict:
    """Sums of a pair with the first run where it was best by this quality on this group of the part."""
    best = answer["best"][part]
    by_group = best.get(quality, best["accuracy"])  # a bag of words writes no sentences, and has no BLEU
    return answer["parts"][part][sides][str(by_group[group])][measure]


class Column:
    """One column on one part of the data, checkpoints chosen by one measure of quality."""

    def __init__(self, runs: Runs, answers: Answers, column: str, part: str, quality: str):
        self.answers, self.part, self.quality = answers, part, quality
        first, second, self.sides = COLUMNS[column]
        self.one_kind = first == second
        self.looked_up = self.sides.split("~")[1]
        self.normal = {run.seed: run for run in runs.normal}
        self.pairs = [pair for pair in runs.pairs(column) if pair in answers]
        self._courses: dict[tuple, ComparisonRun | None] = {}

    def intervals(self) -> dict[str, dict]:
        """Every number of :data:`NAMES` over seeds; see :meth:`interval`."""
        found = {name: self.interval(name) for name in NAMES if "_xi" not in name and "_starred" not in name}
        for measure in MEASURES:
            for choice in CHOICES:
                for what in ("xi", "starred"):
                    found[f"{measure}_{what}{choice}"] = _jackknifed(
                        self.seeds,
                        lambda seeds, m=measure, c=choice, w=what: self._contextualised(m, c, w, seeds),
                    )
        return {name: found[name] for name in NAMES}

    def interval(self, name: str) -> dict:
        """The mean over ordered pairs of seeds and its interval, see :func:`over_pairs`."""
        return over_pairs(self._by_seeds(name), one_kind=self.one_kind)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Of the runs that there are pairs of."""
        return tuple(sorted({run.seed for pair in self.pairs for run in pair}))

    def _by_seeds(self, name: str) -> dict[tuple[int, int], float]:
        return {(one.seed, other.seed): numbers[name] for (one, other), numbers in self._of_pairs.items()}

    @cached_property
    def _of_pairs(self) -> dict[tuple[RecipeSpec, RecipeSpec], dict[str, float]]:
        """By pair its agreement and Kendall's τ in percent, either choice, and what is made of agreement."""
        found = {}
        for pair in self.pairs:
            numbers = found[pair] = {}
            for measure in MEASURES:
                halves = self._halves(pair, measure, "selecting")
                numbers[measure] = 100 * best_checkpoint(self.answers[pair]["steps"], *halves).value
                both = self._halves(pair, measure, "all")
                chosen = best_checkpoint(self.answers[pair]["steps"], *both)
                numbers[f"{measure}_optimistic"] = 100 * chosen.optimistic
                if measure == "agreement":
                    reporting = halves[1]
                    numbers["rises"] = numbers[measure] - 100 * reporting[0].value
                    numbers["falls"] = numbers[measure] - 100 * reporting[-1].value
            chance = self.answers.get(pair[1:], {}).get("chance", {}).get(self.part, {})
            numbers["above_chance"] = numbers["agreement"] - 100 * chance.get(self.looked_up, math.nan)
        return found

    def _halves(
        self, pair: tuple[RecipeSpec, RecipeSpec], measure: str, group: str
    ) -> tuple[list[RowMean], ...]:
        sums = sums_at_best(self.answers[pair], self.part, self.sides, measure, self.quality, group)
        return tuple([RowMean(*mean) for mean in sums[half]] for half in ("selecting", "reporting"))

    def _contextualised(self, measure: str, choice: str, what: str, seeds: Sequence[int]) -> float:
        """ξ in percent, or the share that is starred: mean over the first runs of these seeds."""
        found = []
        for seed in seeds:
            value = _of_first(self._by_seeds(measure + choice), seed, seeds)
            courses = [self._course(measure, choice, seed, other) for other in seeds if other != seed]
            courses = [course for course in courses if course]
            if value is not None and courses:
                xi = ComparisonRun.mean(courses).contextualise(value / 100)
                found.append(xi.value if what == "xi" else float(not xi.exceeded))
        return _mean(found)

    def _course(self, measure: str, choice: str, seed: int, other: int) -> ComparisonRun | None:
        """𝒜(α, α̂(τ)) and p̂(τ) of the network with another seed; None where it has not been asked."""
        key = measure, choice, seed, other
        if key not in self._courses:
            self._courses[key] = self._read_course(*key)
        return self._courses[key]

    def _read_course(self, measure: str, choice: str, seed: int, other: int) -> ComparisonRun | None:
        one, another = self.normal[seed], self.normal[other]
        if (one, another) not in self.answers or (another,) not in self.answers:
            return None
        answer, course = self.answers[one, another], self.answers[another,]
        choosing, reporting = CHOICES[choice]
        sums = sums_at_best(answer, self.part, "attention~attention", measure, self.quality, choosing)
        means = (
            whole(sums, place) if reporting == "all" else RowMean(*sums[reporting][place])
            for place in range(len(answer["steps"]))
        )
        performance = course["parts"][self.part][self.quality][reporting]
        return ComparisonRun(tuple(answer["steps"]), tuple(mean.value for mean in means), tuple(performance))


def over_pairs(numbers: Mapping[tuple[int, int], float], *, one_kind: bool) -> dict:
    """The mean over ordered pairs of seeds, with the jackknife's interval over seeds, which needs three.

    Of two seeds there are two pairs, and where the runs of a pair are of two kinds these are of four runs,
    and Student's interval of the two numbers stands. Where they are of one kind, as for (α, β) and (α, α),
    both pairs are of the same two runs: what a run adds to one it adds to the other, so there is none.

    Args:
        numbers: by the seeds of the first run and the second; first runs weigh alike, whatever their pairs.
    """
    seeds = sorted({seed for pair in numbers for seed in pair})
    if len(seeds) == 2 and not one_kind:
        return over_seeds([({}, number) for number in numbers.values()], float)

    def mean(some: Sequence[int]) -> float:
        of_seeds = (_of_first(numbers, seed, some) for seed in some)
        return _mean(value for value in of_seeds if value is not None)

    return _jackknifed(seeds, mean)


def _of_first(numbers: Mapping[tuple[int, int], float], seed: int, seeds: Sequence[int]) -> float | None:
    """The mean over second runs of these seeds; None where the first run has no pair with any."""
    values = [number for (one, other), number in numbers.items() if one == seed and other in seeds]
    return _mean(values) if values else None


def _jackknifed(seeds: Sequence[int], number: Callable[[Sequence[int]], float]) -> dict:
    if math.isnan(number(seeds)):
        return over_seeds([], float)
    return jackknife_interval(seeds, number).as_dict()


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan
