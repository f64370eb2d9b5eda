"""From what was asked of a data set's runs to the numbers of its row in the agreement tables, in percent."""

import math

from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.agreement_numbers import MEASURES, Column, sums_at_best, whole
from attnlib.experiments.agreement_runs import COLUMNS, Runs
from attnlib.experiments.pair_answers import Answers
from attnlib.probes.saliency_readings import READINGS


def row(runs: Runs, answers: Answers) -> dict:
    """The numbers of one data set.

    Returns:
        by part of the data and measure of quality, by column of :data:`COLUMNS`, as intervals over seeds
        (:meth:`~attnlib.experiments.agreement_numbers.Column.interval`)

        * ``agreement`` and ``kendall`` in percent, ``…_xi`` their ξ, and the same with ``_optimistic``, the
          paper's choice of checkpoints; ``…_starred``, the share of seeds that have ξ* there;
        * ``above_chance``, agreement less 𝒜̂ of the same second run;
        * ``rises`` and ``falls``, agreement at the best checkpoint less that at the first, and at the last.

        ``chance`` is 𝒜̂ of β at uniform attention; ``final``, for ξ*, how good networks with learned attention
        are in the end, on the samples that report, and ``final_optimistic`` on all. With accuracy
        ``majority``, that of giving the commonest answer always.
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
    """By column, ``above_chance`` of the data set where its interval reaches lowest, and its ``data``.

    The interval names all sets that have one, ``weakest_of``.
    """
    found = {}
    for column in COLUMNS:
        rows = {
            name: parts["validation"]["accuracy"][column]["above_chance"] for name, parts in values.items()
        }
        rows = {name: interval for name, interval in rows.items() if interval["n"]}
        if rows:
            name = min(rows, key=lambda name: _low(rows[name]))
            found[column] = {"above_chance": rows[name] | {"weakest_of": sorted(rows)}, "data": name}
        else:
            found[column] = {"above_chance": over_seeds([], float), "data": ""}
    return found


def _low(interval: dict) -> float:
    low = interval["low"]
    return interval["value"] if low is None or math.isnan(low) else low


def saliency_read(answers: Answers) -> dict[str, dict[str, dict]]:
    """Agreement and Kendall's τ with the probe at uniform attention, in percent, by reading of saliency.

    Of each pair of runs the largest of all checkpoints, as the tables print it; Student's interval over the
    pairs, which have no run in common.
    """
    found = [({}, answer) for answer in answers.values()]
    return {
        reading: {
            name: over_seeds(found, lambda answer, r=reading, m=name: max(answer[r][m])) for name in MEASURES
        }
        for reading in READINGS
    }


def courses(runs: Runs, answers: Answers) -> list[dict]:
    """A row a column, pair of runs, part and checkpoint of the second: agreement on all samples, quality.

    The first run is taken where it is most accurate on all samples of the part.
    """
    rows = []
    for column, (_, _, sides) in COLUMNS.items():
        for one, other in runs.pairs(column):
            if (one, other) not in answers or (other,) not in answers:
                continue
            found, quality = answers[one, other], answers[other,]
            for part in found["parts"]:
                sums = {name: sums_at_best(found, part, sides, name, "accuracy", "all") for name in MEASURES}
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
                        | {name: 100 * whole(sums[name], place).value for name in MEASURES}
                    )
    return rows


def _numbers(runs: Runs, answers: Answers, part: str, quality: str) -> dict:
    found: dict = {column: Column(runs, answers, column, part, quality).intervals() for column in COLUMNS}
    asked = [answers[run,] for run in runs.uniform if (run,) in answers]
    found["chance"] = over_seeds(
        [({}, answer["chance"][part]) for answer in asked], lambda chance: 100 * chance["probe"]
    )
    asked = [answers[run,]["parts"][part][quality] for run in runs.normal if (run,) in answers]
    for name, group in (("final", "reporting"), ("final_optimistic", "all")):
        found[name] = over_seeds([({}, course) for course in asked], lambda course, of=group: course[of][-1])
    if quality == "accuracy":  # the same samples for all runs, so any of them can tell
        found["majority"] = next(answer for of, answer in answers.items() if len(of) == 1)["majority"][part]
    return found
