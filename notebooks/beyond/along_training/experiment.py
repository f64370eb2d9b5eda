"""Along training: when temporal and input terms take over attention, and when words are known."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

from companion.results.config import AboveZero, BaseConfig, OneOf, Positive
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.along_training.along_training import OF_ATTENTION, PAIRS, measure_along_training
from notebooks.beyond.along_training.tasks import TASKS, TEXT
from notebooks.shared.intervals import UNBOUNDED, Point, each_over_seeds, paired
from notebooks.shared.plan import Plan, Points, answered, asked, by_network, each_seed, plan_of, settings_of
from notebooks.shared.summaries import crossing, less, rows_of, summarised

# Which quantities stand for "terms take over attention" was decided from what random networks have, before
# any order of takeovers had been seen; ``with_input``, ``beyond`` and order by ``word_accuracy`` came after
# trial networks. *Translation* is the share of the lexical probe on the right source word, and ``gain`` the
# logarithm of β at its best position less that of its mean, which needs no links. Groups are tasks.
TERMS = ("temporal", "input", "with_input", "beyond")
QUANTITIES: dict[str, str] = {  # what a network's measurement calls them, or see :func:`course`
    "temporal": "rebuilt.temporal_only",
    "input": "rebuilt.input_only",
    "with_input": "rebuilt.with_input",  # the five terms with an input component
    "beyond": "",  # what positions alone do not rebuild: whatever depends on the words of the sample
    "translation": "translation",
    "gain": "best_over_mean",
    **{name: name for name in ("word_accuracy", "token_accuracy", *OF_ATTENTION)},
    "temporal_share": "share.temporal_temporal",
    "input_share": "share.input_input",
    "residual_share": "",  # of all five terms with a residual
    "uniform": "uniform",
}
OF_UNIFORM = ("translation", "gain", "word_accuracy", "token_accuracy")


def course(measured: dict, quantity: str) -> list[float]:
    """A quantity of one network by snapshot; NaN where it is undefined."""
    if quantity == "beyond":
        rebuilt = zip(measured["rebuilt.temporal_only"], measured["uniform"], strict=True)
        return [1 - temporal - uniform for temporal, uniform in rebuilt]
    if quantity == "residual_share":
        shares = (measured["share." + "_".join(pair)] for pair in PAIRS if "residual" in pair)
        return [math.nan if None in own else sum(own) for own in zip(*shares, strict=True)]
    return [math.nan if one is None else one for one in measured[QUANTITIES[quantity]]]


def takeover(measured: dict, quantity: str, least: float) -> float | None:
    return takeover_step(measured["steps"], course(measured, quantity), least=least)


def _log(step: float | None) -> float | None:
    return None if step is None else math.log2(step)


def after(measured: dict, quantity: str, reference: str, least: float) -> float | None:
    """log2 of the ratio of two takeover steps of one network; None where it lacks either."""
    return less(*(_log(takeover(measured, name, least)) for name in (quantity, reference)))


def order_values(learned: Points, least: float) -> dict:
    """``order`` and, with other quantities in place of these, ``order_by_{shares, gain, accuracy}``."""

    def orders(quantities: dict[str, str], reference: str) -> dict:
        names = {f"{name}_after_translation": quantity for name, quantity in quantities.items()}
        return summarised(learned, lambda m: {n: after(m, own, reference, least) for n, own in names.items()})

    same = {name: name for name in (*TERMS, "on_word", "attention_accuracy", "agreement", "token_accuracy")}
    return {
        "order": orders(same, "translation"),
        "order_by_shares": orders({"temporal": "temporal_share", "input": "input_share"}, "translation"),
        "order_by_gain": orders(same, "gain"),
        "order_by_accuracy": orders(same, "word_accuracy"),
    }


def last_values(measured: dict, names: Iterable[str]) -> dict:
    """At the last snapshot; ``late_rise``: words right since the first one past half of the updates."""
    right, steps = measured["token_accuracy"], measured["steps"]
    late = next(place for place, step in enumerate(steps) if 2 * step >= steps[-1])
    fixed = {"chance": measured["chance"], "late_rise": right[-1] - right[late]}
    return {name: course(measured, name)[-1] for name in names} | fixed


def uniform_values(points: list[Point], learned: list[Point]) -> dict:
    return each_over_seeds(
        points, lambda m: last_values(m, OF_UNIFORM) | {"above_chance": m["translation"][-1] - m["chance"]}
    ) | {"less_learned": paired(points, learned, lambda m: m["translation"][-1])}


def course_rows(points: Points, attention: str) -> list[dict]:
    names = tuple(QUANTITIES) if attention == "learned" else OF_UNIFORM
    own = summarised(points, lambda m: {n: dict(zip(m["steps"], course(m, n), strict=True)) for n in names})
    return [{"attention": attention} | row for row in rows_of(own, "task", "quantity", "step")]


def network_rows(points: Points, least: float) -> list[dict]:
    return [
        row
        | {"quantity": quantity, "takeover": takeover(measured, quantity, least)}
        | {"first": course(measured, quantity)[0], "last": course(measured, quantity)[-1]}
        for row, measured in by_network(points, "task")
        for quantity in QUANTITIES
    ]


def snapshot_rows(points: Points, attention: str) -> list[dict]:
    names = ("token_accuracy", "on_word", "word_accuracy")
    return [
        row
        | {"attention": attention, "step": step, "chance": measured["chance"]}
        | {name: measured[name][n] for name in names if name in measured}
        for row, measured in by_network(points, "task")
        for n, step in enumerate(measured["steps"])
    ]


QUICK_TASKS = TASKS[:4]
UNIFORM = ("reordering", "copying_sample", "copying_permutation")


class Config(BaseConfig):
    """Settings; a network is a task × seed, its attention learned and, on some tasks, held uniform too."""

    #: ``one_to_one``, ``reordering``, ``copying_sample``, ``copying_permutation``, ``multi30k_en_fr``
    task: tuple[Annotated[str, OneOf(TASKS)], ...] = QUICK_TASKS
    #: tasks on which attention is held uniform as well
    uniform: tuple[Annotated[str, OneOf(TASKS)], ...] = UNIFORM
    seeds: Positive = 3  #: networks of each kind
    shortest: int = 8  #: fewest words of a sentence in one-to-one translation
    longest: int = 10  #: most words of one
    fewest_phrases: int = 2  #: fewest phrases of a sentence in reordering. Its dial is at p = 0.5.
    most_phrases: int = 4  #: most phrases of one
    length: int = 10  #: words of a sentence to copy
    n_train: int = 12_800  #: sentences to train on, of synthetic tasks
    n_held_out: int = 300  #: held-out sentences of these
    text_words: int = 3_000  #: of either vocabulary of captions
    width: int = 64  #: of states and embeddings
    steps: int = 200  #: updates in training
    text_steps: int = 1_000  #: the same for captions
    batch_size: int = 64  #: sentences of an update
    learning_rate: float = 5e-3  #: of Adam
    snapshots_per_doubling: int = 2  #: snapshots between a step and twice the step
    fitted: Positive = 300  #: training samples that components are fitted on
    judged: Positive = 120  #: held-out samples
    #: smallest rise of what is said to take over. At 0 what never rises would do so at once.
    least: AboveZero = 0.05

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedure says


def _options(config: Config, task: str) -> dict[str, object]:
    if task == TEXT:
        return {"max_words": config.text_words}
    own = {
        "one_to_one": {"min_length": config.shortest, "max_length": config.longest},
        "reordering": {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases},
    }
    sizes = {"n_train": config.n_train, "n_held_out": config.n_held_out}
    return sizes | own.get(task, {"length": config.length})


def _plan(config: Config) -> tuple[Plan, Plan]:
    shared = settings_of(config, "width", "batch_size", "learning_rate", "snapshots_per_doubling")

    def plan(tasks: tuple[str, ...], attention: str) -> Plan:
        groups = {}
        for task in tasks:
            own = {"task": task, "options": tuple(_options(config, task).items()), "attention": attention}
            own |= {"steps": config.text_steps if task == TEXT else config.steps}
            groups[(task,)] = each_seed(config.seeds, RunSpec.of, "along_training", **own, **shared)
        return plan_of(groups, measure_along_training, fitted=config.fitted, judged=config.judged)

    return plan(config.task, "learned"), plan(config.uniform, "uniform")


measurements = asked(_plan)


PROFILES = {
    # Copying of samples is the task whose words can be known before there is attention.
    "quick": Config(uniform=("copying_sample",), steps=110, learning_rate=8e-3, snapshots_per_doubling=1),
    "paper": Config(
        task=TASKS, uniform=(*UNIFORM, TEXT), seeds=5, shortest=15, longest=20, fewest_phrases=5,
        most_phrases=8, length=40, n_train=50_000, n_held_out=1_000, width=128, steps=2_000, text_steps=3_000,
        learning_rate=2e-3, snapshots_per_doubling=3, fitted=4_000, judged=1_000,
    ),
    "tiny": Config(
        uniform=("copying_sample",), seeds=2, fewest_phrases=2, most_phrases=3, length=5, n_train=80,
        n_held_out=20, width=6, steps=3, batch_size=16, snapshots_per_doubling=1, fitted=40, judged=10,
    ),
}  # fmt: skip


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``order``: log2 of the ratio of two takeover steps (1 is twice as late); ``takeover``: log2 of the
    step; ``left_out``: networks without one."""
    (learned, uniform), least = (answered(plan, store) for plan in _plan(config)), config.least
    takeovers = summarised(learned, lambda m: {n: _log(takeover(m, n, least)) for n in QUANTITIES}, UNBOUNDED)
    left_out = {
        task: {name: len(learned[task,]) - own["n"] for name, own in quantities.items()}
        for task, quantities in takeovers.items()
    }
    values = order_values(learned, least) | {
        "takeover": takeovers,
        "left_out": left_out,
        "last": summarised(learned, lambda m: last_values(m, QUANTITIES)),
        "terms": summarised(learned, lambda m: {"_".join(p): m[f"share.{'_'.join(p)}"][-1] for p in PAIRS}),
        "uniform": {task: uniform_values(own, learned.get((task,), [])) for (task,), own in uniform.items()},
    }
    return values, {
        "courses": course_rows(learned, "learned") + course_rows(uniform, "uniform"),
        "takeovers": [
            row | {"left_out": left_out[row["task"]][row["quantity"]]}
            for row in rows_of(takeovers, "task", "quantity")
        ],
        "networks": network_rows(learned, least),
        "snapshots": snapshot_rows(learned, "learned") + snapshot_rows(uniform, "uniform"),
    }


def takeover_step(steps: Sequence[int], values: Sequence[float], *, least: float) -> float | None:
    """Where a quantity first reaches the middle of its first and last value, on straight lines over log2(1 +
    step); None where they differ by too little, or where it is past the middle at the first look after the
    start: nobody saw when it got there.

    >>> round(takeover_step([0, 1, 3, 7], [0.0, 0.0, 1.0, 1.0], least=0.05), 3)
    1.828
    >>> takeover_step([0, 1, 3, 7], [0.0, 1.0, 1.0, 1.0], least=0.05) is None
    True
    """
    if not values[-1] - values[0] >= least:  # NaN among them
        return None
    middle = (values[0] + values[-1]) / 2
    if len(values) > 2 and values[1] >= middle:
        return None
    return 2 ** crossing([math.log2(1 + step) for step in steps], values, middle) - 1
