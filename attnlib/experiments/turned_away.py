"""Which way networks that fail to copy use their attention: not at all, or away from the word to be said.

Where every sentence has the same words, what a context lacks tells as much as what it holds. So attention
can be drawn to the word to be said, or be driven away from it; uniform attention, 1/length everywhere, lies
between.
"""

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import has_failed, last, share


def turned_away(points: list[Point], length: int) -> dict:
    """Where the attention of those networks that failed stands at the last look, and what they make of it.

    Args:
        points: courses, as :func:`~attnlib.recipes.permutation_copying.look_at_copier` sees networks.
        length: words of a sentence.

    Returns:
        ``n``, networks that failed; ``away``, the share of them with less weight on the word to be said than
        1/length (Wilson's interval); ``weight``, that weight as a multiple of 1/length; ``says_shown`` and
        ``says_left_out``, see :func:`~attnlib.probes.moved_attention.moved_attention`, and
        ``left_out_over_shown``, their difference by network; intervals over networks.
    """
    failed = [(name, course) for name, course in points if has_failed(course)]
    return {
        "n": len(failed),
        "away": share([course["attention_right"][-1] < 1 / length for _, course in failed]),
        "weight": over_seeds(failed, lambda course: course["attention_right"][-1] * length),
        **{name: last(failed, name) for name in ("says_shown", "says_left_out")},
        "left_out_over_shown": over_seeds(
            failed, lambda course: course["says_left_out"][-1] - course["says_shown"][-1]
        ),
    }


def sides(points: list[Point], length: int, step: int) -> dict:
    """Whether the side of uniform attention on which a network's weight is early is that on which it ends.

    Args:
        points: courses, as in :func:`turned_away`; step: of the early look.

    Returns:
        ``step``; ``n``, networks; ``drawn``, how many end with more weight on the word to be said than
        1/length; ``same``, the share of networks that are on one side at both looks, and ``same_at_first``,
        the share before training, with Wilson's intervals.
    """
    weights = [dict(zip(course["steps"], course["attention_right"], strict=True)) for _, course in points]
    ends = [list(own.values())[-1] > 1 / length for own in weights]
    found = {"step": step, "n": len(points), "drawn": sum(ends)}
    for name, at in (("same_at_first", 0), ("same", step)):
        found[name] = share([(own[at] > 1 / length) == end for own, end in zip(weights, ends, strict=True)])
    return found
