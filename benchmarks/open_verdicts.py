"""Which open verdicts more networks would decide, by figure, and of the agreement tables by data set.

    python benchmarks/open_verdicts.py            # seconds

Every interval of a result is narrowed as Student's is where there are two, four or eight times as many
networks, and stays where it is. What these would really give moves the numbers, too, so that this says where
trainings pay and not what they find. Numbers without an interval stay open. The counts are upper bounds: an
interval that resamples families of tasks narrows less with more networks of each, and one that is cut at an
end of its scale is narrowed from there.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache, partial

from scipy.special import stdtrit

from companion.book.project import find_root
from companion.claims.verdicts import Verdict
from companion.claims.verify import ClaimVerdict, verify
from companion.results.result import Result

TIMES = (2, 4, 8)


@cache
def half_width(networks: int) -> float:
    """Half of the 95 % interval of so many numbers, in their standard deviations."""
    return float(stdtrit(networks - 1, 0.975)) / networks**0.5


def narrowed(content: object, times: int) -> object:
    """Return values of a result with intervals as of so many times as many networks."""
    if not isinstance(content, Mapping):
        return content
    if not isinstance(content.get("n"), int) or content["n"] < 2 or content.get("low") is None:
        return {name: narrowed(part, times) for name, part in content.items()}
    more = times * content["n"]
    ratio = half_width(more) / half_width(content["n"])
    value = content["value"]
    ends = {}
    for end in ("low", "high"):
        if content[end] is not None:
            ends[end] = value + ratio * (content[end] - value)
    return {**content, **ends, "n": more}


def trained_together(row: ClaimVerdict) -> str:
    """Return what more networks are trained for: a figure, or a data set of the agreement tables."""
    figure = row.claim.experiment
    return f"{figure}, {row.claim.keys[0].partition('.')[0]}" if figure == "agreement" else figure


def decided(row: ClaimVerdict, values_of: Mapping[int, Mapping], times: int) -> bool:
    """Whether a claim is decided by narrowed values; what it presupposes of other figures stays as it is."""
    return row.claim.judged_by(values_of[times], others=values_as_committed).verdict.decided


@cache
def values_as_committed(experiment: str) -> Mapping:
    return Result.load(find_root() / "results" / "paper" / f"{experiment}.json").values


def main() -> None:
    rows = verify(find_root())
    still_open = [row for row in rows if row.profile == "paper" and row.verdict is Verdict.UNDECIDED]
    by_figure: dict[str, list[ClaimVerdict]] = defaultdict(list)
    for row in still_open:
        by_figure[trained_together(row)].append(row)
    print("figure | open | " + " | ".join(f"decided by {times} times the networks" for times in TIMES))
    totals = [0] * len(TIMES)
    for figure, of_figure in sorted(by_figure.items(), key=lambda item: -len(item[1])):
        values = of_figure[0].result.values
        values_of = {times: narrowed(values, times) for times in TIMES}
        counts = [sum(map(partial(decided, values_of=values_of, times=times), of_figure)) for times in TIMES]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(f"{figure} | {len(of_figure)} | {' | '.join(map(str, counts))}")
    print(f"together | {len(still_open)} | {' | '.join(map(str, totals))}")


if __name__ == "__main__":
    main()
