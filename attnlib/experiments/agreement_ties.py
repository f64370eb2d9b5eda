"""What ties in the lexical probe add to the agreement tables: both ways of counting them, in percent."""

from collections.abc import Iterator

from attnlib.experiments.aggregate import over_seeds
from attnlib.experiments.agreement_numbers import over_pairs, whole
from attnlib.experiments.agreement_runs import COLUMNS, Runs
from attnlib.experiments.measures.ties import HALVES, WAYS
from attnlib.experiments.pair_answers import Answers
from attnlib.probes.contextualised import best_checkpoint
from attnlib.probes.row_mean import RowMean


def ties_read(runs: Runs, answers: Answers) -> dict:
    """The numbers of one set of sentence pairs.

    Returns:
        by column that looks up β and way of counting ties (``counted``, ``broken``) ``largest``, agreement at
        the best of all checkpoints, as the tables have it by the paper's choice, and ``falls``, how far it
        lies above the last one, the best chosen on one half of the samples and both read on the other;
        ``tied``, target words whose largest β is tied at the last checkpoint at uniform attention, and
        ``chance`` there, with ties counted, and ``ends``, how many of the tied words are end marks, as
        intervals over its seeds; ``chance_broken``, a number.
    """
    found: dict = {}
    for column in _columns():
        numbers = {
            (first.seed, second.seed): {way: _numbers(steps, sums[way]) for way in WAYS}
            for first, second, steps, sums in _answers(runs, answers, column)
        }
        one_kind = COLUMNS[column][0] == COLUMNS[column][1]
        found[column] = {
            way: {
                name: over_pairs({pair: one[way][name] for pair, one in numbers.items()}, one_kind=one_kind)
                for name in ("largest", "falls")
            }
            for way in WAYS
        }
    last = {second.seed: answer for (_, second), answer in answers.items() if second in runs.uniform}
    points = [({}, one) for one in last.values()]
    for name in ("tied", "chance"):
        found[name] = over_seeds(points, lambda one, n=name: one[n][-1])
    ended = [({}, one) for one in last.values() if one["tied"][-1]]
    found["ends"] = over_seeds(ended, lambda one: 100 * one["tied_ends"][-1] / one["tied"][-1])
    return found | {"chance_broken": next((one["chance_broken"] for one in last.values()), None)}


def ties_courses(runs: Runs, answers: Answers) -> list[dict]:
    """A row a column, pair of runs and checkpoint of the second: both agreements, and words that are tied."""
    return [
        {"column": column, "seed": first.seed, "second_seed": second.seed, "step": step}
        | {way: 100 * whole(sums[way], place).value for way in WAYS}
        | {"tied": answers[first, second]["tied"][place]}
        for column in _columns()
        for first, second, steps, sums in _answers(runs, answers, column)
        for place, step in enumerate(steps)
    ]


def _columns() -> list[str]:
    return [column for column, (_, _, sides) in COLUMNS.items() if sides.endswith("~probe")]


def _answers(runs: Runs, answers: Answers, column: str) -> Iterator[tuple]:
    """(first run, second run, steps, sums by way and half) of the column's pairs that have been asked."""
    side = COLUMNS[column][2].split("~")[0]
    for pair in runs.pairs(column):
        if pair in answers:
            yield *pair, answers[pair]["steps"], answers[pair][side]


def _numbers(steps: list[int], sums: dict[str, list]) -> dict[str, float]:
    selecting, reporting = ([RowMean(*one) for one in sums[half]] for half in HALVES)
    chosen = best_checkpoint(steps, selecting, reporting)
    return {"largest": 100 * chosen.optimistic, "falls": 100 * (chosen.value - reporting[-1].value)}
