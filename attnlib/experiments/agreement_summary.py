"""From what was asked of a data set's runs to the numbers of its row in the agreement tables, in percent."""

import math
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
NAMES = (
    *(
        f"{measure}{what}{choice}"
        for measure in MEASURES
        for what in ("", "_xi", "_starred")
        for choice in ("", "_optimistic")
    ),
    "above_chance",
    "rises",
    "falls",
)


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
        by part of the data and measure of quality, by column of :data:`COLUMNS`, as intervals over seeds

        * ``agreement`` and ``kendall`` in percent, ``…_xi`` their ξ, and the same with ``_optimistic``, the
          paper's choice of checkpoint; ``…_starred``, the share of seeds that have ξ* there;
        * ``above_chance``, agreement less 𝒜̂ of the same seed;
        * ``rises`` and ``falls``, agreement at the best checkpoint less that at the first, and at the last.

        ``chance`` is 𝒜̂ of β at uniform attention, ``final`` ξ*, how good comparison runs are in the end.
    """
    alone = [answer for asked, answer in answers.items() if len(asked) == 1]
    found: dict = {}
    for part, qualities in ((p, q) for answer in alone for p, q in answer["parts"].items()):
        for quality in qualities:
            found.setdefault(part, {}).setdefault(quality, None)
    return {
        part: {quality: _numbers(runs, answers, part, quality) for quality in qualities}
        for part, qualities in found.items()
    }


def weakest(values: dict) -> dict:
    """By column, ``above_chance`` of the data set where its interval reaches lowest, and its ``data``."""
    found = {}
    for column in COLUMNS:
        rows = {
            name: parts["validation"]["accuracy"][column]["above_chance"] for name, parts in values.items()
        }
        rows = {name: interval for name, interval in rows.items() if interval["n"]}
        if rows:
            name = min(rows, key=lambda name: _low(rows[name]))
            found[column] = {"above_chance": rows[name], "data": name}
        else:
            found[column] = {"above_chance": _interval([]), "data": ""}
    return found


def _low(interval: dict) -> float:
    low = interval["low"]
    return interval["value"] if low is None or math.isnan(low) else low


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
    seeds = [Seed(runs, answers, place, part, quality) for place in range(len(runs.normal))]
    found: dict = {}
    for column in COLUMNS:
        own = [seed.column(column) for seed in seeds]
        found[column] = {name: _interval(one[name] for one in own if name in one) for name in NAMES}
    found["chance"] = _interval(seed.chance for seed in seeds if seed.chance is not None)
    found["final"] = _interval(seed.final for seed in seeds if seed.final is not None)
    return found


class Seed:
    """The runs of one seed, and the comparison runs of other seeds, on one part by one measure of quality."""

    def __init__(self, runs: Runs, answers: Answers, place: int, part: str, quality: str):
        self.runs, self.answers, self.part, self.quality = runs, answers, part, quality
        self.place, self.spec = place, runs.normal[place]
        self.others = [
            other for other in runs.normal if (self.spec, other) in answers and (other,) in answers
        ]

    @property
    def final(self) -> float | None:
        """ξ*: the mean of the comparison runs after the last update, on the samples that report."""
        ends = [self._quality(other, "reporting")[-1] for other in self.others]
        return sum(ends) / len(ends) if ends else None

    @property
    def chance(self) -> float | None:
        """𝒜̂ of β at uniform attention."""
        found = self.answers.get((self.spec, self.runs.uniform[self.place]))
        return 100 * found["chance"][self.part]["probe"] if found else None

    def column(self, column: str) -> dict[str, float]:
        """The numbers of one column; none where its runs have not been asked."""
        first, second, sides = COLUMNS[column]
        mine = [pair for pair in self.runs.pairs((first, second)) if pair[0] in self._own(first)]
        asked = [self.answers[pair] for pair in mine if pair in self.answers]
        found: dict[str, float] = {}
        for name in MEASURES if asked else ():
            halves = [_halves(self._sums(answer, sides, name)) for answer in asked]
            chosen = [
                best_checkpoint(answer["steps"], *both) for answer, both in zip(asked, halves, strict=True)
            ]
            for suffix, field, half in (("", "value", "reporting"), ("_optimistic", "optimistic", "all")):
                value = _mean(getattr(choice, field) for choice in chosen)
                found[name + suffix] = 100 * value
                if self.others:
                    xi = self._comparison(name, half).contextualise(value)
                    found |= {
                        f"{name}_xi{suffix}": xi.value,
                        f"{name}_starred{suffix}": float(not xi.exceeded),
                    }
            if name == "agreement":
                found["above_chance"] = found[name] - 100 * _mean(
                    answer["chance"][self.part][sides.partition("~")[2]] for answer in asked
                )
                for change, end in (("rises", 0), ("falls", -1)):
                    found[change] = found[name] - 100 * _mean(both[1][end].value for both in halves)
        return found

    def _own(self, kind: str) -> tuple[RecipeSpec, ...]:
        return getattr(self.runs, kind)[self.place : self.place + 1]

    def _sums(self, answer: dict, sides: str, name: str) -> dict[str, list]:
        by_quality = answer["parts"][self.part][sides]
        # A bag of words writes no sentences, so that it has no BLEU.
        return by_quality.get(self.quality, by_quality["accuracy"])[name]

    def _quality(self, run: RecipeSpec, half: str) -> list[float]:
        return self.answers[run,]["parts"][self.part][self.quality][half]

    def _comparison(self, name: str, half: str) -> ComparisonRun:
        """The mean course of the comparison runs: 𝒜(α, α̂(τ)) and p̂(τ)."""
        courses = []
        for other in self.others:
            answer = self.answers[self.spec, other]
            sums = self._sums(answer, "attention~attention", name)
            _, reporting = _halves(sums)
            means = reporting if half == "reporting" else [_whole(sums, i) for i in range(len(reporting))]
            quality = self._quality(other, half)
            courses.append(
                ComparisonRun(tuple(answer["steps"]), tuple(mean.value for mean in means), tuple(quality))
            )
        return ComparisonRun.mean(courses)


def _halves(sums: dict[str, list]) -> list[list[RowMean]]:
    return [[RowMean(*mean) for mean in sums[half]] for half in ("selecting", "reporting")]


def _whole(sums: dict[str, list], place: int) -> RowMean:
    return RowMean(*sums["selecting"][place]) + RowMean(*sums["reporting"][place])


def _interval(values: Iterable[float]) -> dict:
    return over_seeds([({}, {"value": value}) for value in values], lambda m: m["value"])


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
