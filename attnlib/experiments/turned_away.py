"""Which way networks that fail to copy use their attention: drawn to the word to be said, or away from it.

Where every sentence has the same words, what a context lacks tells as much as what it holds. So attention can
be drawn to the word to be said, or be driven away from it; uniform attention, 1/length everywhere, lies
between.
"""

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import MOVED, has_failed, last, share

SIDES = ("drawn", "away")


def turned_away(points: list[Point], length: int) -> dict:
    """Where the attention of those networks that failed stands at the last look, and what they make of it.

    Args:
        points: courses, as :func:`~attnlib.recipes.permutation_copying.look_at_copier` sees networks.
        length: words of a sentence.

    Returns:
        ``drawn.…`` of the networks that failed with at least 1/length on the word to be said, ``away.…`` of
        the others: ``n``; ``weight`` on the word to be said and ``later`` on other words still to be said,
        as multiples of 1/length, and ``later_less_weight``, by network; ``says_shown``, ``says_left_out``,
        ``right_without`` and ``right_at_uniform``, see
        :func:`~attnlib.probes.moved_attention.moved_attention`; ``left_out_less_shown`` and
        ``without_less_uniform``, differences by network; intervals over networks.
    """
    failed = [(name, course) for name, course in points if has_failed(course)]
    return {
        side: _group([point for point in failed if _side(point[1], length) == side], length) for side in SIDES
    }


def sides(points: list[Point], length: int, step: int) -> dict:
    """Whether it shows early on which side of uniform attention a network's weight ends.

    Args:
        points: courses, as in :func:`turned_away`; step: of the early look.

    Returns:
        ``step``, and ``end``, that of the last look; ``n``, networks; ``drawn``, how many end with at least
        1/length on the word to be said; shares with Wilson's intervals: ``same_at_first``, of networks on the
        side before training on which they end, ``same``, at the early look; ``probe_at_first`` and
        ``probe``, of networks whose lexical probe is then larger at the right place than elsewhere just if
        they end drawn.
    """
    ends = [_side(course, length) == "drawn" for _, course in points]
    found: dict = {"step": step, "end": points[0][1]["steps"][-1] if points else None}
    found |= {"n": len(points), "drawn": sum(ends)}
    for suffix, at in (("_at_first", 0), ("", step)):
        looks = [(course, course["steps"].index(at)) for _, course in points]
        weight = [course["attention_right"][look] >= 1 / length for course, look in looks]
        probe = [course["probe_right"][look] > course["probe_elsewhere"][look] for course, look in looks]
        for name, told in (("same", weight), ("probe", probe)):
            found[name + suffix] = share([now == end for now, end in zip(told, ends, strict=True)])
    return found


def _side(course: dict, length: int) -> str:
    return "drawn" if course["attention_right"][-1] >= 1 / length else "away"


def _group(points: list[Point], length: int) -> dict:
    def less(first: str, second: str, times: float = 1) -> dict:
        return over_seeds(points, lambda course: times * (course[first][-1] - course[second][-1]))

    return {
        "n": len(points),
        "weight": over_seeds(points, lambda course: course["attention_right"][-1] * length),
        "later": over_seeds(points, lambda course: course["attention_later"][-1] * length),
        "later_less_weight": less("attention_later", "attention_right", length),
        **{name: last(points, name) for name in MOVED},
        "left_out_less_shown": less("says_left_out", "says_shown"),
        "without_less_uniform": less("right_without", "right_at_uniform"),
    }
