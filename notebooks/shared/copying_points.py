"""Numbers of networks that learn to copy, for the figures that are not in tables yet; see `copying`."""

from attnlib.errors import BadInput
from notebooks.shared.intervals import Point, interval_of, over_seeds, share_interval
from notebooks.shared.thresholds import enough

MOVED = ("says_shown", "says_left_out", "right_without", "right_at_uniform")
ATTENTION = ("attention_accuracy", "attention_right", "attention_later", *MOVED)
PROBES = ("probe_right", "probe_elsewhere", "probe_agreement")
COLUMNS = ("steps", "loss", "accuracy", *ATTENTION, *PROBES)


def outcome(points: list[Point], steps: int) -> dict:
    """How many networks failed, and how long the others took.

    A network *fails* when its accuracy on held-out sentences is below 0.95 after the last update. Time to
    95 % is the first checkpoint at or above it; the networks that ``never`` get there count as all updates,
    so that the mean is a lower bound. Numbers at the end; None without networks.
    """
    accuracies = [course["accuracy"][-1] for _, course in points]
    times = [(name, {"learned": steps_to_learn(course)}) for name, course in points]
    return {
        "n": len(points),
        "failed": share([has_failed(course) for _, course in points]),
        "lowest_accuracy": min(accuracies, default=None),
        "highest_accuracy": max(accuracies, default=None),
        "steps_to_learn": over_seeds(times, lambda m: steps if m["learned"] is None else m["learned"]),
        "never": sum(own["learned"] is None for _, own in times),
        **{name: last(points, name) for name in ("accuracy", "attention_accuracy")},
    }


def followed(points: list[Point], at: int, steps: int) -> dict:
    """The :func:`outcome` of networks that are judged ``at`` some updates and followed to ``steps``.

    ``late`` fail when they are judged and not at the end; ``late_attending`` of these attend in the end.
    ``gains``: in accuracy since they are judged.
    """
    late = [course for _, course in points if has_failed(until(course, at)) and not has_failed(course)]
    attending = sum(enough(course["attention_accuracy"][-1]) for course in late)
    gains = over_seeds(points, lambda course: course["accuracy"][-1] - until(course, at)["accuracy"][-1])
    counts = {"steps": steps, "late": len(late), "late_attending": attending}
    return outcome(points, steps) | counts | {"gains": gains}


def has_failed(course: dict) -> bool:
    """Whether the accuracy is below 95 % at the last checkpoint."""
    return not enough(course["accuracy"][-1])


def probes(points: list[Point]) -> dict:
    """The lexical probe at the last checkpoint, and ``probe_gain`` = probe_right / probe_elsewhere."""
    return {name: last(points, name) for name in ("loss", *PROBES)} | {
        "probe_gain": over_seeds(points, lambda c: c["probe_right"][-1] / c["probe_elsewhere"][-1])
    }


def last(points: list[Point], name: str) -> dict:
    """A number of the last checkpoint, as an interval over networks."""
    return over_seeds(points, lambda course: course[name][-1], name)


def share(outcomes: list[bool]) -> dict[str, float | int | None]:
    """How many of them hold, as a share with Wilson's interval; all None but ``n`` where there are none."""
    return share_interval(sum(outcomes), len(outcomes)) if outcomes else interval_of()


def steps_to_learn(course: dict) -> int | None:
    """The first checkpoint at which the accuracy is high enough; None where there is none."""
    pairs = zip(course["steps"], course["accuracy"], strict=True)
    return next((step for step, accuracy in pairs if enough(accuracy)), None)


def until(course: dict, steps: int) -> dict:
    """The course up to so many updates; BadInput where it was not looked at after that many.

    >>> until({"steps": [0, 10, 20], "loss": [3.0, 2.0, 1.0]}, 10)
    {'steps': [0, 10], 'loss': [3.0, 2.0]}
    """
    if steps not in course["steps"]:
        raise BadInput(f"no snapshot after {steps} updates; there are snapshots after {course['steps']}")
    end = course["steps"].index(steps) + 1
    return {name: series[:end] for name, series in course.items()}


def judged(points: list[Point], steps: int) -> list[Point]:
    """The first updates of every course, no matter how many followed; raises as :func:`until`."""
    return [(name, until(course, steps)) for name, course in points]


def check_checkpoints(steps: int, every: int, updates: int) -> None:
    """Raises BadInput: networks that are trained for longer than ``steps`` are not looked at then."""
    if updates > steps and steps % every:
        raise BadInput(
            f"steps is {steps}, and a network that is trained for longer is looked at every {every} updates; "
            f"take a multiple of {every}"
        )


def course_rows(points: list[Point]) -> list[dict]:
    """A row a network and checkpoint."""
    return [
        name | {column: course[column][place] if column in course else None for column in COLUMNS}
        for name, course in points
        for place in range(len(course["steps"]))
    ]


def outcome_rows(points: list[Point]) -> list[dict]:
    """A row a network: when it had learned, and where it ends."""
    return [
        name
        | {"steps_to_learn": steps_to_learn(course)}
        | {end: course[end][-1] for end in ("accuracy", "attention_accuracy") if end in course}
        for name, course in points
    ]


# Where every sentence has the same words, what a context lacks tells as much as what it holds. So attention
# can be drawn to the right word or be driven away from it, with uniform attention, 1/length, in between.

SIDES = ("drawn", "away")


def turned_away(points: list[Point], length: int) -> dict:
    """Where the attention of those networks that failed is at the last snapshot, and what they make of it.

    ``drawn`` have at least 1/length on the right word, ``away`` less: ``weight`` on it and ``later`` on words
    that come later, in multiples of 1/length; and what they say with attention moved
    (:func:`~notebooks.shared.permutation_copying.moved_attention`).
    """
    failed = [(name, course) for name, course in points if has_failed(course)]
    return {side: _group([p for p in failed if _side(p[1], length) == side], length) for side in SIDES}


def sides(points: list[Point], length: int, step: int) -> dict:
    """Whether it shows early, after ``step`` updates, on which side of uniform attention networks end.

    Shares of networks that are on their final side before training (``same_at_first``) and at the early
    snapshot (``same``), and the ``probe`` of which, larger at the right place or not, then tells their side.
    """
    ends = [_side(course, length) == "drawn" for _, course in points]
    found: dict = {"step": step, "end": points[0][1]["steps"][-1] if points else None}
    found |= {"n": len(points), "drawn": sum(ends)}
    for suffix, at in (("_at_first", 0), ("", step)):
        snapshots = [(course, course["steps"].index(at)) for _, course in points]
        weight = [course["attention_right"][place] >= 1 / length for course, place in snapshots]
        probe = [own["probe_right"][place] > own["probe_elsewhere"][place] for own, place in snapshots]
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
