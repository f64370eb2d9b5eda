"""Whether the heads of a network go one way together: drawn to the word to be said, or away from it.

Several heads are as many chances to start well only if each goes its own way. A head's way is the side of
uniform attention, 1/length everywhere, on which its weight on the word to be said ends.
"""

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import share
from attnlib.experiments.paired import matched
from attnlib.statistics.paired_shares import share_difference


def together(points: list[Point], length: int, step: int) -> dict:
    """How many heads of each network are drawn to the word to be said, at the last look.

    Args:
        points: courses with ``head_right``; length: words of a sentence; step: of an early look.

    Returns:
        ``n``, networks; counts of them ``all_drawn``, ``none_drawn`` and ``mixed``; ``same``, the share with
        Wilson's interval of those in which every head is at the early look, ``step``, on the side where it
        ends.
    """
    ends = [_drawn(course, -1, length) for _, course in points]
    early = [_drawn(course, course["steps"].index(step), length) for _, course in points]
    every, none = sum(map(all, ends)), sum(not any(own) for own in ends)
    return {
        "n": len(points),
        "step": step,
        "all_drawn": every,
        "none_drawn": none,
        "mixed": len(points) - every - none,
        "same": share([first == last for first, last in zip(early, ends, strict=True)]),
    }


def chances(alone: list[Point], several: list[Point], length: int) -> dict:
    """Whether more networks of several heads than of one have a head that is drawn to the word to be said.

    Returns:
        ``alone`` and ``several``, the shares; ``several_less_alone`` in pairs of one seed, with the interval
        of :func:`~attnlib.statistics.paired_shares.share_difference`; counts of pairs in which ``both`` have
        such a head, ``several_only``, ``alone_only`` or ``neither``.
    """
    pairs = [tuple(any(_drawn(course, -1, length)) for course in both) for _, both in matched(several, alone)]
    shares = [share([any(_drawn(course, -1, length)) for _, course in points]) for points in (alone, several)]
    return {
        "alone": shares[0],
        "several": shares[1],
        "several_less_alone": share_difference(pairs).as_dict() if pairs else over_seeds([], len),
        "both": pairs.count((True, True)),
        "several_only": pairs.count((True, False)),
        "alone_only": pairs.count((False, True)),
        "neither": pairs.count((False, False)),
    }


def _drawn(course: dict, look: int, length: int) -> list[bool]:
    return [weight >= 1 / length for weight in course["head_right"][look]]
