"""Networks of one good head among bad ones: held against bad heads alone, and which head comes to attend."""

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import has_failed, outcome, share
from attnlib.experiments.paired import matched
from attnlib.statistics.paired_shares import share_difference

GOOD = 0  # place of the good head in its network


def failures_apart(first: list[Point], second: list[Point]) -> dict[str, float | int | None]:
    """Share of networks of the first kind that fail less that of the second, in pairs of one seed.

    Returns:
        the interval of :func:`~attnlib.statistics.paired_shares.share_difference`; of no pairs as
        :func:`~attnlib.experiments.aggregate.over_seeds`.
    """
    pairs = [(has_failed(one), has_failed(other)) for _, (one, other) in matched(first, second)]
    return share_difference(pairs).as_dict() if pairs else over_seeds([], has_failed)


def good_head(points: list[Point], alone: list[Point], steps: int) -> dict:
    """Whether the good head has the most weight on the word to be said, at the last look.

    Only of networks that did not fail: in others no head need attend to that word.

    Args:
        points: networks of one good head; alone: the trials of good heads; steps: updates of each course.

    Returns:
        ``n``, those networks; ``wins``, the share of them in which it has (Wilson's interval); ``weight``,
        its weight there, and ``best_other``, the largest of another head's, as intervals over them;
        ``alone``, what :func:`~attnlib.experiments.copying_courses.outcome` says of the good heads alone.
    """
    learned = [(name, course["head_right"][-1]) for name, course in points if not has_failed(course)]
    return {
        "n": len(learned),
        "wins": share([weights[GOOD] > _best_other(weights) for _, weights in learned]),
        "weight": over_seeds(learned, lambda weights: weights[GOOD]),
        "best_other": over_seeds(learned, _best_other),
        "alone": outcome(alone, steps),
    }


def _best_other(weights: list[float]) -> float:
    return max(weights[:GOOD] + weights[GOOD + 1 :], default=0.0)
