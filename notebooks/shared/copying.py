"""What becomes of networks that learn to copy, from their courses: numbers that several experiments give."""

from collections.abc import Mapping, Sequence

from attnlib.errors import BadInput
from companion.results.frames import Table, joined, keyed
from companion.runs.columns import Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.intervals import interval_of, less
from notebooks.shared.summaries import shares, summarise
from notebooks.shared.thresholds import HALF, enough

FACTOR = 2  # weight of so many times uniform attention's, or a share of 1 in so many, is no longer uniform
WAYS = {
    "drawn": "attention leaves uniform attention with more weight on the next word to write",
    "away": "attention leaves uniform attention with less weight there",
}
TIMES = {
    "left": Column("updates until attention has left uniform attention", "updates"),
    "known": Column("updates until the probe is largest at the correct word, for half of them", "updates"),
    "there": Column("updates until the weight is largest at the correct word, for half of them", "updates"),
    "lead": Column("the last minus the one before: by how much words are known earlier", "updates"),
    "steps_to_learn": Column("updates until word accuracy reaches 95 %", "updates"),
}
MOVED = {
    "says_shown": share("words written ahead of their time when all attention is at their position"),
    "says_left_out": share("words written ahead of their time at uniform attention over all other positions"),
    "right_without": share("word accuracy when attention is uniform over all positions but the word's own"),
    "right_at_uniform": share("word accuracy at uniform attention"),
}
ATTENTION = {
    "attention_accuracy": share("words for which the largest weight is at the next word to write"),
    "attention_right": share("weight on the next word to write"),
    "attention_later": share("mean weight on words to write after the next one"),
    **MOVED,
}
PROBES = {
    "probe_right": share("lexical probe at the next word to write"),
    "probe_elsewhere": share("mean of the lexical probe at all other positions"),
    "probe_agreement": share("words for which the probe is largest at the next word to write"),
}
COURSE = {  # a network at a checkpoint
    "steps": Column("updates in training", "updates", low=0),
    "loss": Column("cross-entropy", "nats a word", low=0),
    "accuracy": share("word accuracy on held-out sentences"),
    **ATTENTION,
    **PROBES,
}
OUTCOME = {  # a network at the end of its course
    "steps_to_learn": Column(
        "updates until word accuracy reaches 95 %; empty where it never does", "updates"
    ),
    "failed": Column("whether word accuracy is below 95 %"),
    **COURSE,
    "probe_gain": Column("lexical probe at the next word to write, over its mean elsewhere", "times"),
    "above_floor": Column("loss of the bag of words above that of all orders alike", "nats a word"),
}
ESTIMATED = ("steps_to_learn", "accuracy", "attention_accuracy")
READ_OFF = ("loss", *PROBES, "probe_gain")  # of the lexical probe
COUNTS = {
    "n": Column("networks", "networks", low=0),
    "never": Column("networks that never reach a word accuracy of 95 %", "networks", low=0),
    "lowest_accuracy": share("the lowest accuracy of a network"),
    "highest_accuracy": share("the highest accuracy of a network"),
}


# Records of one network.


def course_records(course: dict) -> list[dict]:
    """Return a record for each checkpoint of a network."""
    names = [name for name in COURSE if name in course]
    checkpoints = range(len(course["steps"]))
    return [{name: course[name][checkpoint] for name in names} for checkpoint in checkpoints]


def outcome_record(course: dict) -> dict:
    """Return what has become of a network at the end of its course.

    A network has *failed* if its accuracy on held-out sentences is below 95 % at the last checkpoint.
    """
    record = {name: series[-1] for name, series in course.items()}
    record["steps_to_learn"] = steps_to_learn(course)
    record["failed"] = has_failed(course)
    if "probe_right" in record:
        record["probe_gain"] = record["probe_right"] / record["probe_elsewhere"]
    return record


def has_failed(course: dict) -> bool:
    """Return True if the accuracy is below 95 % at the last checkpoint."""
    return not enough(course["accuracy"][-1])


def steps_to_learn(course: dict) -> int | None:
    """Return the first checkpoint at which the accuracy is high enough; None where there is none."""
    for step, accuracy in zip(course["steps"], course["accuracy"], strict=True):
        if enough(accuracy):
            return step
    return None


def until(course: dict, steps: int) -> dict:
    """Return the course up to so many updates, no matter how many followed.

    Raises:
        BadInput: the network was not looked at after that many.

    Example:
        >>> until({"steps": [0, 10, 20], "loss": [3.0, 2.0, 1.0]}, 10)
        {'steps': [0, 10], 'loss': [3.0, 2.0]}
    """
    if steps not in course["steps"]:
        raise BadInput(f"no snapshot after {steps} updates; there are snapshots after {course['steps']}")
    end = course["steps"].index(steps) + 1
    return {name: series[:end] for name, series in course.items()}


def check_checkpoints(steps: int, every: int, updates: int) -> None:
    """Raises BadInput: networks that are trained for longer than ``steps`` are not looked at then."""
    if updates > steps and steps % every:
        raise BadInput(
            f"steps is {steps}, and a network that is trained for longer is looked at every {every} updates; "
            f"take a multiple of {every}"
        )


# From networks to estimates.


Unit = str | Sequence[str]


def outcome_estimates(networks: Table, by: Sequence[str], unit: Unit = "seed") -> Table:
    """Return how many networks of each group failed, and how long the others took.

    Networks that never have 95 % of the words right count with all their updates, so that the mean of
    ``steps_to_learn`` is a lower bound.

    Args:
        networks: a row for each, with the columns of :data:`OUTCOME`.
        by: columns whose values make a group.
        unit: columns that tell the networks of a group apart.
    """
    frame = networks.frame
    updates = frame["steps_to_learn"].fillna(frame["steps"]).astype(float)
    meaning = "updates until word accuracy reaches 95 %; all updates where it never does"
    counted = networks.assign({"steps_to_learn": Column(meaning, "updates")}, steps_to_learn=updates)
    failed = shares(counted, by, ["failed"], unit=unit)
    return joined([failed, summarise(counted, by, ESTIMATED, unit=unit)])


def outcome_counts(networks: Table, by: Sequence[str]) -> Table:
    """Return by group the numbers of :data:`COUNTS`."""
    rows = []
    for names, group in networks.frame.groupby(list(by), sort=False):
        accuracies = group["accuracy"].astype(float)
        row = dict(zip(by, names, strict=True))
        row["n"] = len(group)
        row["never"] = int(group["steps_to_learn"].isna().sum())
        row["lowest_accuracy"] = accuracies.min()
        row["highest_accuracy"] = accuracies.max()
        rows.append(row)
    columns = {name: networks.columns[name] for name in by} | COUNTS
    return Table.of(rows, columns, "a group of networks")


def outcome_keys(key: str, estimates: Table, counts: Table) -> dict[str, object]:
    """Return what became of groups of networks by dotted key, ``key`` being that of a group."""
    return keyed(estimates, key + ".{quantity}") | keyed(counts, key + ".{column}", COUNTS)


def no_outcome(key: str) -> dict[str, object]:
    """Return the same keys of a group without networks."""
    nothing = {"n": 0, "never": 0, "lowest_accuracy": None, "highest_accuracy": None}
    nothing |= {name: interval_of() for name in ("failed", *ESTIMATED)}
    return {f"{key}.{name}": number for name, number in nothing.items()}


# Networks that are judged after some updates and followed for longer.

FOLLOWED = {
    "steps": Column("updates in all", "updates", low=0),
    "late": Column("networks that fail when they are judged, and not in the end", "networks", low=0),
    "late_attending": Column("of these, networks that attend in the end", "networks", low=0),
}
FOLLOWED_RECORD = {
    "late": Column("whether the network fails when it is judged, and not in the end"),
    "attends": Column("whether 95 % of the largest weights are at the next word to write"),
    "gains": Column("accuracy in the end, minus that when it is judged"),
}


def followed_record(course: dict, *, judged_at: int) -> dict:
    """Return the :func:`outcome_record` of a whole course, and what it adds since the network was judged."""
    early = until(course, judged_at)
    record = outcome_record(course)
    record["late"] = has_failed(early) and not has_failed(course)
    record["attends"] = enough(course["attention_accuracy"][-1])
    record["gains"] = course["accuracy"][-1] - early["accuracy"][-1]
    return record


def followed_estimates(networks: Table, by: Sequence[str], unit: Unit = "seed") -> Table:
    """Return :func:`outcome_estimates` of whole courses, and the mean ``gains``."""
    gains = summarise(networks, by, ["gains"], unit=unit)
    return joined([outcome_estimates(networks, by, unit), gains])


def followed_counts(networks: Table, by: Sequence[str]) -> Table:
    """Return by group the numbers of :data:`COUNTS` and :data:`FOLLOWED`."""
    rows = []
    for _, group in networks.frame.groupby(list(by), sort=False):
        late = group["late"].astype(bool)
        attends = group["attends"].astype(bool)
        rows.append(
            {
                "steps": int(group["steps"].iloc[0]),
                "late": int(late.sum()),
                "late_attending": int((late & attends).sum()),
            }
        )
    further = {name: [row[name] for row in rows] for name in FOLLOWED}
    return outcome_counts(networks, by).assign(FOLLOWED, **further)


def followed_keys(key: str, estimates: Table, counts: Table) -> dict[str, object]:
    """Return what became of networks that were followed, by dotted key."""
    return outcome_keys(key, estimates, counts) | keyed(counts, key + ".{column}", FOLLOWED)


def not_followed(key: str, steps: int) -> dict[str, object]:
    """Return the same keys of a group without networks, which would have been followed to ``steps``."""
    nothing = {"steps": steps, "late": 0, "late_attending": 0, "gains": interval_of()}
    return no_outcome(key) | {f"{key}.{name}": number for name, number in nothing.items()}


# Where every sentence has the same words, what a context lacks tells as much as what it holds. So attention
# can be drawn to the right word or be driven away from it, with uniform attention, 1/length, in between.

SIDES = {
    "drawn": "at least uniform attention on the right word",
    "away": "less than uniform attention on the right word",
}
SIDE = {"side": Column("where attention is at the last snapshot", categories=SIDES)}
TURNED = {
    "weight": Column("weight on the next word to write", "times uniform attention", low=0),
    "later": Column("mean weight on later words", "times uniform attention", low=0),
    "later_less_weight": Column("the second minus the first", "times uniform attention"),
    **MOVED,
    "left_out_less_shown": Column("words written when left out, minus those written when shown"),
    "without_less_uniform": Column("word accuracy without attention to the word, minus that at uniform"),
}


def side_of(attention_right: float, length: int) -> str:
    """Return on which side of uniform attention the weight on the right word is."""
    return "drawn" if attention_right >= 1 / length else "away"


def turned_away(networks: Table, length: int) -> Table:
    """Return where the attention of those networks is that failed, and what they make of it.

    What they write with attention moved is
    :func:`~notebooks.shared.trainings.permutation_copying.moved_attention`.

    Args:
        networks: a row for each, with the columns of :data:`OUTCOME`.
        length: words of a sentence.
    """
    failed = networks.frame[networks.frame["failed"].astype(bool)]
    right = failed["attention_right"].astype(float)
    later = failed["attention_later"].astype(float)
    turned = {
        "side": [side_of(weight, length) for weight in right],
        "weight": right * length,
        "later": later * length,
        "later_less_weight": length * (later - right),
        "left_out_less_shown": failed["says_left_out"] - failed["says_shown"],
        "without_less_uniform": failed["right_without"] - failed["right_at_uniform"],
    }
    return networks.with_rows(failed).assign(SIDE | TURNED, **turned)


def turned_estimates(failed: Table, by: Sequence[str], unit: Unit = "seed") -> Table:
    """Return the means of :data:`TURNED` by group and side."""
    return summarise(failed, [*by, *SIDE], TURNED, unit=unit)


def turned_keys(key: str, estimates: Table) -> dict[str, object]:
    """Return what attention of failed networks does, by dotted key; ``n`` networks are on a side."""
    networks = estimates.query("quantity == 'weight'")
    numbers = keyed(estimates, key + ".{side}.{quantity}")
    counts = keyed(networks, key + ".{side}.{column}", ["n"])
    return numbers | counts


def none_turned(key: str) -> dict[str, object]:
    """Return the same keys where no network failed."""
    nothing = {"n": 0} | {name: interval_of() for name in TURNED}
    return {f"{key}.{side}.{name}": number for side in SIDES for name, number in nothing.items()}


@measure(version=1)
def measure_copying(recording: Recording) -> dict:
    """Every number that the procedure recorded, as lists by checkpoint, ``steps`` among them."""
    return {name: values.tolist() for name, values in sorted(recording.tensors.items())}


def events(course: dict, length: int) -> dict[str, object]:
    """Return the updates until something happens, None where it never does.

    Attention has ``left`` uniform attention at the first snapshot where the mean weight on the next word is
    at least ``FACTOR`` / length (``way`` *drawn*) or at most 1 / (``FACTOR`` · length) (driven *away*). Words
    are ``known``, and attention is ``there``, from the first snapshot at which the largest β, or the largest
    weight, is at the next word to write for half of the words. ``lead`` is the last minus the one before.
    """
    left, way = _leaves_uniform(course, length)
    known = first_step(course, "probe_agreement")
    there = first_step(course, "attention_accuracy")
    return {
        "way": way,
        "left": left,
        "known": known,
        "there": there,
        "lead": less(there, known),
        "steps_to_learn": steps_to_learn(course),
    }


def first_step(course: Mapping[str, list], name: str) -> int | None:
    """Return the updates until the first snapshot at which a number is one half; None where it never is."""
    for step, value in zip(course["steps"], course[name], strict=True):
        if value >= HALF:
            return step
    return None


def _leaves_uniform(course: dict, length: int) -> tuple[int | None, str | None]:
    """Return the updates until attention leaves uniform attention, and the way it goes then."""
    for step, weight in zip(course["steps"], course["attention_right"], strict=True):
        if weight >= FACTOR / length:
            return step, "drawn"
        if weight <= 1 / (FACTOR * length):
            return step, "away"
    return None, None
