"""Along training: when temporal and input terms take over attention, and when words are known."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

from companion.results.config import AboveZero, BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.along_training.tasks import TASKS, TEXT
from notebooks.beyond.along_training.trainings.along_training import PAIRS, measure_along_training
from notebooks.shared.intervals import interval_of
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.suite import PARTS_OF_STATES
from notebooks.shared.summaries import crossing, differences, summarise

# Which quantities stand for "terms take over attention" was decided from what random networks have, before
# any order of takeovers had been seen; ``with_input``, ``beyond`` and order by ``word_accuracy`` came after
# trial networks. *Translation* is the share of the lexical probe on the right source word, and ``gain`` the
# logarithm of β at its best position less that of its mean, which needs no links. Groups are tasks.
TERMS = ("temporal", "input", "with_input", "beyond")
QUANTITIES = {
    "temporal": Column("similarity of attention rebuilt from the temporal term, beyond uniform attention"),
    "input": Column("the same of the input term"),
    "with_input": Column("the same of the five terms with an input component"),
    "beyond": Column("attention that positions alone do not rebuild"),
    "translation": Column("share of the lexical probe that is on the correct source word"),
    "gain": Column("logarithm of the lexical probe at its best position, minus that of its mean"),
    "word_accuracy": share("words whose source word has the largest lexical probe"),
    "token_accuracy": share("word accuracy, given the preceding words"),
    "on_word": share("attention on the correct source word"),
    "on_end": share("attention on the end token"),
    "attention_accuracy": share("words whose source word has the largest attention"),
    "agreement": share("words where probe and attention are largest at the same position"),
    "agreement_by_chance": Column("the same if the two knew nothing of each other"),
    "temporal_share": Column("covariance share of the temporal term"),
    "input_share": Column("covariance share of the input term"),
    "residual_share": Column("covariance share of the five terms with a residual"),
    "uniform": share("similarity of uniform attention"),
}
MEASURED_AS = {  # what a measurement calls them, where it does otherwise
    "temporal": "rebuilt.temporal_only",
    "input": "rebuilt.input_only",
    "with_input": "rebuilt.with_input",
    "gain": "best_over_mean",
    "temporal_share": "share.temporal_temporal",
    "input_share": "share.input_input",
}
OF_UNIFORM = ("translation", "gain", "word_accuracy", "token_accuracy")
OF_SNAPSHOTS = ("token_accuracy", "on_word", "word_accuracy")


def course(measured: dict, quantity: str) -> list[float]:
    """A quantity of one network by snapshot; NaN where it is undefined."""
    if quantity == "beyond":
        rebuilt = zip(measured["rebuilt.temporal_only"], measured["uniform"], strict=True)
        return [1 - temporal - uniform for temporal, uniform in rebuilt]
    if quantity == "residual_share":
        shares = (measured["share." + "_".join(pair)] for pair in PAIRS if "residual" in pair)
        return [math.nan if None in terms else sum(terms) for terms in zip(*shares, strict=True)]
    numbers = measured[MEASURED_AS.get(quantity, quantity)]
    return [math.nan if number is None else number for number in numbers]


def takeover(measured: dict, quantity: str, *, least: float) -> float | None:
    return takeover_step(measured["steps"], course(measured, quantity), least=least)


def log_takeover(measured: dict, quantity: str, *, least: float) -> float | None:
    step = takeover(measured, quantity, least=least)
    return None if step is None else math.log2(step)


def after(measured: dict, quantity: str, reference: str, *, least: float) -> float | None:
    """log2 of the ratio of two takeover steps of one network; None where it lacks either."""
    late, early = (log_takeover(measured, name, least=least) for name in (quantity, reference))
    return None if late is None or early is None else late - early


def last_values(measured: dict, names: Iterable[str]) -> dict:
    """At the last snapshot; ``late_rise``: words right since the first one past half of the updates."""
    right, steps = measured["token_accuracy"], measured["steps"]
    late = next(place for place, step in enumerate(steps) if 2 * step >= steps[-1])
    fixed = {"chance": measured["chance"], "late_rise": right[-1] - right[late]}
    return {name: course(measured, name)[-1] for name in names} | fixed


QUICK_TASKS = TASKS[:4]
UNIFORM = ("reordering", "copying_sample", "copying_permutation")


class Config(BaseConfig):
    """Settings; a network is a task × seed, its attention learned and, on some tasks, held uniform too."""

    task: tuple[Annotated[str, OneOf(TASKS)], ...] = setting(
        QUICK_TASKS, "one_to_one, reordering, copying_sample, copying_permutation, multi30k_en_fr"
    )
    uniform: tuple[Annotated[str, OneOf(TASKS)], ...] = setting(
        UNIFORM, "tasks on which attention is held uniform as well"
    )
    seeds: Positive = setting(3, "networks of each kind")
    shortest: int = setting(8, "fewest words of a sentence in one-to-one translation")
    longest: int = setting(10, "most words of one")
    fewest_phrases: int = setting(2, "fewest phrases of a sentence in reordering. Its dial is at p = 0.5")
    most_phrases: int = setting(4, "most phrases of one")
    length: int = setting(10, "words of a sentence to copy")
    n_train: int = setting(12_800, "sentences to train on, of synthetic tasks")
    n_held_out: int = setting(300, "held-out sentences of these")
    text_words: int = setting(3_000, "of either vocabulary of captions")
    width: int = setting(64, "of states and embeddings")
    steps: int = setting(200, "updates in training")
    text_steps: int = setting(1_000, "the same for captions")
    batch_size: int = setting(64, "sentences of an update")
    learning_rate: float = setting(5e-3, "of Adam")
    snapshots_per_doubling: int = setting(2, "snapshots between a step and twice the step")
    fitted: Positive = setting(300, "training samples that components are fitted on")
    judged: Positive = setting(120, "held-out samples")
    least: AboveZero = setting(
        0.05, "smallest rise of what is said to take over. At 0 what never rises would do so at once"
    )

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedure says


def _options(config: Config, task: str) -> dict[str, object]:
    if task == TEXT:
        return {"max_words": config.text_words}
    lengths = {
        "one_to_one": {"min_length": config.shortest, "max_length": config.longest},
        "reordering": {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases},
    }
    sizes = {"n_train": config.n_train, "n_held_out": config.n_held_out}
    return sizes | lengths.get(task, {"length": config.length})


def _plan(config: Config) -> tuple[Plan, Plan]:
    shared = settings_of(config, "width", "batch_size", "learning_rate", "snapshots_per_doubling")

    def plan(tasks: tuple[str, ...], attention: str) -> Plan:
        groups = {}
        for task in tasks:
            settings = {"task": task, "options": tuple(_options(config, task).items())}
            settings |= {"attention": attention}
            settings |= {"steps": config.text_steps if task == TEXT else config.steps}
            groups[(task,)] = each_seed(config.seeds, RunSpec.of, "along_training", **settings, **shared)
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


TASK = {"task": Column("task that the network was trained on")}
ATTENTION = {"attention": Column("whether attention is learned or held uniform")}
STEP = {"step": Column("updates so far")}
CHANCE = {"chance": Column("share of the source that is the correct word, as the probe would be by chance")}
LATE_RISE = {"late_rise": Column("word accuracy at the end, minus that after half of the updates")}
ABOVE_CHANCE = {"above_chance": Column("share of the lexical probe on the correct word, minus chance")}
MEANINGS = {name: column.meaning for name, column in QUANTITIES.items()}
QUANTITY = {"quantity": Column("what takes over", categories=MEANINGS)}
TAKEOVER = {
    "takeover": Column("updates until half of the way from the first to the last value; empty where none"),
    "first": Column("value before training"),
    "last": Column("value after training"),
}
LOG_TAKEOVER = {name: Column(f"takeover; {meaning}", "log2 updates") for name, meaning in MEANINGS.items()}
LEFT_OUT = {"left_out": Column("networks without a takeover", "networks", low=0)}
ORDER = {
    "order": Column(
        "by what quantities and since when",
        categories={
            "order": "since words are translated, by the lexical probe",
            "order_by_shares": "the same, with covariance shares of the terms",
            "order_by_gain": "since the probe is larger at one position than at others",
            "order_by_accuracy": "since words are known, by the largest probe",
        },
    ),
    "pair": Column("quantity whose takeover comes after"),
    "ratio": Column("log2 of the ratio of two takeovers: 1 is twice as late"),
}
FOLLOWING = (*TERMS, "on_word", "attention_accuracy", "agreement", "token_accuracy")
ORDERS = {  # by kind of order: the reference, and by name the quantities that follow it
    "order": ("translation", {name: name for name in FOLLOWING}),
    "order_by_shares": ("translation", {"temporal": "temporal_share", "input": "input_share"}),
    "order_by_gain": ("gain", {name: name for name in FOLLOWING}),
    "order_by_accuracy": ("word_accuracy", {name: name for name in FOLLOWING}),
}
TERM = {
    "decoder": Column("part of the decoder state", categories=PARTS_OF_STATES),
    "encoder": Column("part of the encoder state", categories=PARTS_OF_STATES),
    "share": Column("covariance share of the term after training"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``takeovers`` and ``orders`` are logarithms of updates to base 2."""
    learned, uniform = _plan(config)
    least = {"least": config.least}
    a_snapshot = "a snapshot of a network"
    networks = plan_frame(
        learned,
        store,
        TASK,
        records=partial(_takeovers, **least),
        columns=QUANTITY | TAKEOVER,
        row="a quantity of a network",
    )
    logarithms = plan_frame(
        learned, store, TASK, records=partial(_log_takeovers, **least), columns=LOG_TAKEOVER
    )
    orders = plan_frame(
        learned, store, TASK, records=partial(_orders, **least), columns=ORDER, row="a pair of takeovers"
    )
    last = plan_frame(learned, store, TASK, records=_last, columns=QUANTITIES | CHANCE | LATE_RISE)
    terms = plan_frame(learned, store, TASK, records=_terms, columns=TERM, row="a term of a network")
    of_uniform = {name: QUANTITIES[name] for name in OF_UNIFORM} | CHANCE | LATE_RISE | ABOVE_CHANCE
    uniform_last = plan_frame(uniform, store, TASK, records=_last_of_uniform, columns=of_uniform)
    less_learned = differences(uniform_last, last, ["translation"], on=["task", "seed"])

    of_snapshots = ATTENTION | STEP | CHANCE | {name: QUANTITIES[name] for name in OF_SNAPSHOTS}
    courses, snapshots = [], []
    for attention, plan, names in (("learned", learned, QUANTITIES), ("uniform", uniform, OF_UNIFORM)):
        records = partial(_by_snapshot, attention=attention, names=tuple(names))
        columns = ATTENTION | STEP | {name: QUANTITIES[name] for name in names}
        by_snapshot = plan_frame(plan, store, TASK, records=records, columns=columns, row=a_snapshot)
        courses.append(_by_quantity(summarise(by_snapshot, [*ATTENTION, *TASK, *STEP], names)))
        records = partial(_of_snapshots, attention=attention)
        snapshots.append(plan_frame(plan, store, TASK, records=records, columns=of_snapshots, row=a_snapshot))
    return {
        "courses": joined(courses).select(*ATTENTION, *TASK, "quantity", *STEP, *INTERVAL),
        "takeovers": _with_left_out(summarise(logarithms, list(TASK), QUANTITIES), logarithms),
        "networks": networks,
        "snapshots": joined(snapshots),
        "orders": summarise(orders, [*TASK, "order", "pair"], ["ratio"]),
        "last": summarise(last, list(TASK), QUANTITIES | CHANCE | LATE_RISE),
        "terms": summarise(terms, [*TASK, "decoder", "encoder"], ["share"]),
        "uniform": summarise(uniform_last, list(TASK), of_uniform),
        "less_learned": summarise(less_learned, list(TASK), ["translation"]),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """``less_learned``: the probe on the right word with uniform attention, minus that with learned one."""
    parts = (*ORDERS, "takeover", "left_out", "last", "terms", "uniform")
    undefined: dict[str, object] = {part: {} for part in parts}
    for task in tables["uniform"].frame["task"].unique():
        undefined[f"uniform.{task}.less_learned"] = interval_of()
    return view(
        undefined,
        keyed(tables["orders"], "{order}.{task}.{pair}"),
        keyed(tables["takeovers"], "takeover.{task}.{quantity}"),
        keyed(tables["takeovers"], "left_out.{task}.{quantity}", LEFT_OUT),
        keyed(tables["last"], "last.{task}.{quantity}"),
        keyed(tables["terms"], "terms.{task}.{decoder}_{encoder}"),
        keyed(tables["uniform"], "uniform.{task}.{quantity}"),
        keyed(tables["less_learned"], "uniform.{task}.less_learned"),
    )


def _takeovers(measured: dict, *, least: float) -> list[dict]:
    rows = []
    for quantity in QUANTITIES:
        numbers = course(measured, quantity)
        step = takeover_step(measured["steps"], numbers, least=least)
        rows.append({"quantity": quantity, "takeover": step, "first": numbers[0], "last": numbers[-1]})
    return rows


def _log_takeovers(measured: dict, *, least: float) -> dict[str, float | None]:
    return {quantity: log_takeover(measured, quantity, least=least) for quantity in QUANTITIES}


def _orders(measured: dict, *, least: float) -> list[dict]:
    rows = []
    for order, (reference, quantities) in ORDERS.items():
        for name, quantity in quantities.items():
            ratio = after(measured, quantity, reference, least=least)
            rows.append({"order": order, "pair": f"{name}_after_translation", "ratio": ratio})
    return rows


def _last(measured: dict) -> dict:
    return last_values(measured, QUANTITIES)


def _last_of_uniform(measured: dict) -> dict:
    above_chance = measured["translation"][-1] - measured["chance"]
    return last_values(measured, OF_UNIFORM) | {"above_chance": above_chance}


def _terms(measured: dict) -> list[dict]:
    return [
        {"decoder": decoder, "encoder": encoder, "share": measured[f"share.{decoder}_{encoder}"][-1]}
        for decoder, encoder in PAIRS
    ]


def _by_snapshot(measured: dict, *, attention: str, names: Sequence[str]) -> Iterator[dict]:
    courses = {name: course(measured, name) for name in names}
    for place, step in enumerate(measured["steps"]):
        numbers = {name: whole_course[place] for name, whole_course in courses.items()}
        yield {"attention": attention, "step": step} | numbers


def _of_snapshots(measured: dict, *, attention: str) -> Iterator[dict]:
    for place, step in enumerate(measured["steps"]):
        numbers = {name: measured[name][place] for name in OF_SNAPSHOTS if name in measured}
        yield {"attention": attention, "step": step, "chance": measured["chance"]} | numbers


def _by_quantity(estimates: Table) -> Table:
    """Return courses one after the other: by task, then by quantity, then by step."""
    courses = estimates.frame.groupby(["task", "quantity"], sort=False).ngroup()
    return estimates.with_rows(estimates.frame.iloc[courses.argsort(kind="stable")])


def _with_left_out(estimates: Table, networks: Table) -> Table:
    networks_of_task = networks.frame["task"].value_counts()
    left_out = estimates.frame["task"].map(networks_of_task) - estimates.frame["n"]
    return estimates.assign(LEFT_OUT, left_out=left_out).select(*TASK, "quantity", *INTERVAL, *LEFT_OUT)


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
