"""From what was asked of a data set's runs to the numbers of its row in the agreement tables, in percent."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attnlib.errors import NotMeasured
from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.agreement_runs import COLUMNS, Runs
from attnlib.probes.contextualised import ComparisonRun, best_checkpoint
from attnlib.probes.row_mean import RowMean
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

Answers = dict[tuple[RecipeSpec, ...], dict]  # what was asked of a run alone, or of two together
MEASURES = ("agreement", "kendall")


def gathered(runs: Runs, store: "Store") -> Answers:
    """The answers that the store has or may find out."""
    found = {}
    for asked in runs.asks():
        try:
            found[asked.spec, *asked.beside] = asked.answer(store)
        except NotMeasured:
            continue
    return found


def row(runs: Runs, answers: Answers) -> dict:
    """The numbers of one data set.

    Returns:
        by part of the data and measure of quality: by column (see :data:`COLUMNS`), ``agreement``,
        ``agreement_xi``, ``kendall``, ``kendall_xi`` and the same with ``_optimistic``, as intervals over
        seeds; ``agreement_starred``, how many seeds have ξ* there. ``chance`` is 𝒜̂ of β at uniform attention,
        ``final`` ξ*, how good the comparison runs are in the end.
    """
    parts = dict.fromkeys(part for answer in answers.values() for part in answer["parts"])
    return {
        part: {
            quality: _numbers(runs, answers, part, quality)
            for quality in dict.fromkeys(
                quality for (_, *beside), a in answers.items() if not beside for quality in a["parts"][part]
            )
        }
        for part in parts
    }


def courses(runs: Runs, answers: Answers) -> list[dict]:
    """A row a column, pair of runs, part and checkpoint of the second: agreement on all samples, quality."""
    rows = []
    for column, (first, second, sides) in COLUMNS.items():
        for one, other in runs.pairs((first, second)):
            if (one, other) not in answers or (other,) not in answers:
                continue
            found, quality = answers[one, other], answers[other,]
            for part, by_sides in found["parts"].items():
                sums = by_sides[sides]["accuracy"]
                for place, step in enumerate(found["steps"]):
                    rows.append(
                        {
                            "column": column,
                            "part": part,
                            "seed": one.seed,
                            "second_seed": other.seed,
                            "step": step,
                            "accuracy": quality["parts"][part]["accuracy"]["all"][place],
                        }
                        | {name: 100 * _whole(sums[name], place).value for name in MEASURES}
                    )
    return rows


def _numbers(runs: Runs, answers: Answers, part: str, quality: str) -> dict:
    seeds = [Seed(runs, answers, spec, part, quality) for spec in runs.normal]
    found: dict = {}
    for column, (first, _, sides) in COLUMNS.items():
        if column == "alpha_alpha":
            continue
        own: dict[str, list] = {}
        for place, seed in enumerate(seeds):
            for name, value in seed.column(getattr(runs, first)[place], column, sides).items():
                own.setdefault(name, []).append(value)
        found[column] = {name: _interval(values) for name, values in own.items() if "starred" not in name}
        found[column] |= {name: sum(values) for name, values in own.items() if "starred" in name}
    found["chance"] = _interval(
        [
            100 * answers[pair]["chance"][part]["probe"]
            for pair in runs.pairs(("normal", "uniform"))
            if pair in answers
        ]
    )
    found["final"] = _interval([seed.final for seed in seeds if seed.final is not None])
    return found


class Seed:
    """One normal run with its comparison runs, on one part of the data, by one measure of quality."""

    def __init__(self, runs: Runs, answers: Answers, spec: RecipeSpec, part: str, quality: str):
        self.runs, self.answers, self.spec, self.part, self.quality = runs, answers, spec, part, quality
        self.others = [other for other in runs.normal if (spec, other) in answers and (other,) in answers]

    @property
    def final(self) -> float | None:
        """ξ*: the mean of the comparison runs after the last update, on the samples that report."""
        ends = [
            self.answers[other,]["parts"][self.part][self.quality]["reporting"][-1] for other in self.others
        ]
        return sum(ends) / len(ends) if ends else None

    def column(self, first: RecipeSpec, column: str, sides: str) -> dict[str, float | bool]:
        """The numbers of one column; none where its runs have not been asked."""
        kinds = COLUMNS[column][:2]
        chosen: dict[str, list] = {}
        for pair in self.runs.pairs(kinds):
            if pair[0] != first or pair not in self.answers:
                continue
            answer = self.answers[pair]
            by_quality = answer["parts"][self.part][sides]
            sums = by_quality.get(self.quality, by_quality["accuracy"])  # a bag of words writes no sentences
            for name in MEASURES:
                halves = [[RowMean(*m) for m in sums[name][half]] for half in ("selecting", "reporting")]
                chosen.setdefault(name, []).append(best_checkpoint(answer["steps"], *halves))
        found: dict[str, float | bool] = {}
        for name, choices in chosen.items():
            for suffix, field, half in (("", "value", "reporting"), ("_optimistic", "optimistic", "all")):
                value = _mean(getattr(choice, field) for choice in choices)
                found[name + suffix] = 100 * value
                if self.others:
                    xi = self._comparison(name, half).contextualise(value)
                    found |= {f"{name}_xi{suffix}": xi.value, f"{name}_starred{suffix}": not xi.exceeded}
        return found

    def _comparison(self, name: str, half: str) -> ComparisonRun:
        """The mean course of the comparison runs: 𝒜(α, α̂(τ)) and p̂(τ)."""
        courses = []
        for other in self.others:
            answer = self.answers[self.spec, other]
            sums = answer["parts"][self.part]["attention~attention"][self.quality][name]
            whole = half == "all"
            agreement = [
                (_whole(sums, place) if whole else RowMean(*sums["reporting"][place])).value
                for place in range(len(answer["steps"]))
            ]
            quality = self.answers[other,]["parts"][self.part][self.quality][half]
            courses.append(ComparisonRun(tuple(answer["steps"]), tuple(agreement), tuple(quality)))
        return ComparisonRun.mean(courses)


def _whole(sums: dict[str, list], place: int) -> RowMean:
    return RowMean(*sums["selecting"][place]) + RowMean(*sums["reporting"][place])


def _interval(values: Iterable[float]) -> dict:
    return over_seeds([({}, {"value": value}) for value in values], lambda m: m["value"])


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
