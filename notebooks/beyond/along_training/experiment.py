"""Along training: when temporal and input terms take over attention, and when words are known."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, UnknownName
from companion.results.aggregate import Point, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.results.statistics import takeover_step
from companion.runs.recipe import RecipeSpec
from notebooks.beyond.along_training.measure import PAIRS, measure_along_training

if TYPE_CHECKING:
    from companion.runs.store import Store


# Quantities that grow along training, when each takes over, and their intervals over seeds.
#
# Which quantities stand for "terms take over attention" was decided from what random networks have, before
# any order of takeovers had been seen. A covariance share is of no use there: it divides by the variance of
# the scores, so that the nine terms of a random network have sizeable shares of scores which hardly vary, and
# an input share begins by falling. What a set of terms *rebuilds* of the attention, its similarity to the
# full one, is near 1 for any set as long as attention is uniform; less that of uniform attention, it starts
# near 0 and grows as attention comes to be made of these terms. So temporal is μμ alone and input is χχ
# alone, as everywhere in this book. Shares are reported beside them. ``with_input``, ``beyond`` and the order
# by ``word_accuracy`` were added after trial networks had shown that input by input stays at 0 on the tasks
# made by rule.
#
# *Translation* is the share of the lexical probe that falls on the right source word
# (:mod:`notebooks.beyond.along_training.measure`): one quantity for all tasks, chance at the start, low for
# sure and wrong probes. Beside it stand ``gain``, the logarithm of β at its best position less that of its
# mean, which needs no links, and ``word_accuracy``, whether β is largest at the right word, however little.

Points = dict[str, list[Point]]  # by task
TERMS = ("temporal", "input", "with_input", "beyond")
QUANTITIES: dict[str, Callable[[dict, int], float | None]] = {
    "temporal": lambda m, i: m["rebuilt.temporal_only"][i],
    "input": lambda m, i: m["rebuilt.input_only"][i],
    "with_input": lambda m, i: m["rebuilt.with_input"][i],  # the five terms with an input component
    # What positions alone do not rebuild: whatever depends on the words of the sample is in there.
    "beyond": lambda m, i: 1 - m["rebuilt.temporal_only"][i] - m["uniform"][i],
    "translation": lambda m, i: m["translation"][i],
    "gain": lambda m, i: m["best_over_mean"][i],
    "word_accuracy": lambda m, i: m["word_accuracy"][i],
    "token_accuracy": lambda m, i: m["token_accuracy"][i],
    "on_word": lambda m, i: m["on_word"][i],
    "on_end": lambda m, i: m["on_end"][i],
    "attention_accuracy": lambda m, i: m["attention_accuracy"][i],
    "agreement": lambda m, i: m["agreement"][i],
    "agreement_by_chance": lambda m, i: m["agreement_by_chance"][i],
    "temporal_share": lambda m, i: m["share.temporal_temporal"][i],
    "input_share": lambda m, i: m["share.input_input"][i],
    "residual_share": lambda m, i: _residual(m, i),
    "uniform": lambda m, i: m["uniform"][i],
}
OF_UNIFORM = ("translation", "gain", "word_accuracy", "token_accuracy")


def _residual(measured: dict, look: int) -> float | None:
    shares = [
        measured[f"share.{queries}_{keys}"][look] for queries, keys in PAIRS if "residual" in (queries, keys)
    ]
    return None if None in shares else sum(shares)


def course(measured: dict, quantity: str) -> list[float]:
    """A quantity of one network by look; NaN where it is undefined."""
    found = (QUANTITIES[quantity](measured, look) for look in range(len(measured["steps"])))
    return [math.nan if value is None else value for value in found]


def takeover(measured: dict, quantity: str, least: float) -> float | None:
    """The step at which it has made half of its way in one network; None where it rises by less."""
    return takeover_step(measured["steps"], course(measured, quantity), least=least)


def _log(step: float | None) -> float | None:
    return None if step is None else math.log2(step)


def after(measured: dict, quantity: str, reference: str, least: float) -> float | None:
    """log2 of the ratio of two takeover steps of one network; None where it lacks either."""
    pair = [_log(takeover(measured, name, least)) for name in (quantity, reference)]
    return None if None in pair else pair[0] - pair[1]


def order_values(found: Points, least: float) -> dict:
    """``order`` and, with other quantities in place of these, ``order_by_{shares, gain, accuracy}``."""

    def orders(quantities: dict[str, str], reference: str) -> dict:
        return {
            task: {
                f"{name}_after_translation": over_seeds(
                    points, lambda m, q=quantity: after(m, q, reference, least)
                )
                for name, quantity in quantities.items()
            }
            for task, points in found.items()
        }

    same = {name: name for name in TERMS}
    others = {"on_word": "on_word", "agreement": "agreement", "token_accuracy": "token_accuracy"}
    return {
        "order": orders(same | others, "translation"),
        "order_by_shares": orders({"temporal": "temporal_share", "input": "input_share"}, "translation"),
        "order_by_gain": orders(same | others, "gain"),
        "order_by_accuracy": orders(same | others, "word_accuracy"),
    }


def takeover_values(found: Points, least: float) -> dict:
    """log2 of the takeover step of every quantity."""
    return {
        task: {name: over_seeds(points, lambda m, q=name: _log(takeover(m, q, least))) for name in QUANTITIES}
        for task, points in found.items()
    }


def last_values(found: Points) -> dict:
    """Every quantity at the last look, and the chance of translation."""
    return {
        task: {name: over_seeds(points, lambda m, q=name: course(m, q)[-1]) for name in QUANTITIES}
        | {"chance": over_seeds(points, lambda m: m["chance"])}
        for task, points in found.items()
    }


def term_values(found: Points) -> dict:
    """Covariance shares of the nine terms at the last look."""
    return {
        task: {
            f"{queries}_{keys}": over_seeds(points, lambda m, n=f"share.{queries}_{keys}": m[n][-1])
            for queries, keys in PAIRS
        }
        for task, points in found.items()
    }


def uniform_values(found: Points, learned: Points) -> dict:
    """Knowledge at the last look of networks whose attention is held uniform."""
    values = {}
    for task, points in found.items():
        twins = {name["seed"]: measured["translation"][-1] for name, measured in learned.get(task, ())}
        pairs = [
            (name, {"less": measured["translation"][-1] - twins[name["seed"]]})
            for name, measured in points
            if name["seed"] in twins
        ]
        values[task] = {
            name: over_seeds(points, lambda m, q=name: course(m, q)[-1]) for name in OF_UNIFORM
        } | {
            "chance": over_seeds(points, lambda m: m["chance"]),
            "above_chance": over_seeds(points, lambda m: m["translation"][-1] - m["chance"]),
            "less_learned": over_seeds(pairs, lambda m: m["less"]),
        }
    return values


def course_rows(found: Points, attention: str) -> list[dict]:
    """A row a task, quantity and look."""
    names = tuple(QUANTITIES) if attention == "learned" else OF_UNIFORM
    return [
        {"task": task, "attention": attention, "quantity": name, "step": step}
        | over_seeds(points, lambda m, q=name, i=i: QUANTITIES[q](m, i))
        for task, points in found.items()
        for name in names
        for i, step in enumerate(points[0][1]["steps"])
    ]


def takeover_rows(found: Points, least: float) -> list[dict]:
    """A row a task and quantity: log2 of the step, and how many networks have none."""
    logs = takeover_values(found, least)
    return [
        {"task": task, "quantity": name}
        | logs[task][name]
        | {"left_out": len(points) - logs[task][name]["n"]}
        for task, points in found.items()
        for name in QUANTITIES
    ]


def network_rows(found: Points, least: float) -> list[dict]:
    """A row a network and quantity: the first and last value, and the takeover step."""
    return [
        {"task": task, "seed": name["seed"], "quantity": quantity}
        | {"first": course(measured, quantity)[0], "last": course(measured, quantity)[-1]}
        | {"takeover": takeover(measured, quantity, least)}
        for task, points in found.items()
        for name, measured in points
        for quantity in QUANTITIES
    ]


PLACE = (
    "Between Aitken et al. 2021, contribution 1, and Snell et al. 2021, sections 3 and 5; asked by neither"
)
QUESTION = "When do temporal and input terms take over attention, and are words known before?"
TEXT = "multi30k_en_fr"
TASKS = ("one_to_one", "reordering", "copying_sample", "copying_permutation", TEXT)
QUICK_TASKS = TASKS[:4]
UNIFORM = ("reordering", "copying_sample", "copying_permutation")


@dataclass(frozen=True)
class Config:
    """Settings; a network is a task × seed, its attention learned and, on some tasks, held uniform as well.

    Attributes:
        task: of :data:`TASKS`.
        uniform: tasks on which networks with attention held uniform are trained as well.
        seeds: networks of each kind.
        shortest, longest: words of a sentence in one-to-one translation.
        fewest_phrases, most_phrases: of a sentence in reordering, whose dial is at p = 0.5.
        length: words of a sentence to copy.
        n_train, n_held_out: sentences of tasks made by rule.
        text_words: of either vocabulary of captions.
        width: of states and embeddings.
        steps: updates; text_steps: the same for captions.
        batch_size, learning_rate: of Adam; looks_per_doubling: looks between a step and twice the step.
        fitted: training samples that components are fitted on; judged: held-out samples.
        least: smallest rise from the first look to the last of a quantity that is said to take over.
    """

    task: tuple[str, ...] = QUICK_TASKS
    uniform: tuple[str, ...] = UNIFORM
    seeds: int = 3
    shortest: int = 8
    longest: int = 10
    fewest_phrases: int = 2
    most_phrases: int = 4
    length: int = 10
    n_train: int = 12_800
    n_held_out: int = 300
    text_words: int = 3_000
    width: int = 64
    steps: int = 200
    text_steps: int = 1_000
    batch_size: int = 64
    learning_rate: float = 5e-3
    looks_per_doubling: int = 2
    fitted: int = 300
    judged: int = 120
    least: float = 0.05

    def __post_init__(self) -> None:
        for field in ("task", "uniform"):
            for name in getattr(self, field):
                if name not in TASKS:
                    raise UnknownName(field, name, TASKS)
        for name in ("seeds", "fitted", "judged"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.least > 0:
            raise BadInput(
                f"least is {self.least}; it must be positive, or what never rises takes over at once"
            )
        models(self)  # what a network or its training cannot be, the recipe says


def _options(config: Config, task: str) -> dict[str, object]:
    if task == TEXT:
        return {"max_words": config.text_words}
    own = {
        "one_to_one": {"min_length": config.shortest, "max_length": config.longest},
        "reordering": {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases},
    }
    sizes = {"n_train": config.n_train, "n_held_out": config.n_held_out}
    return sizes | own.get(task, {"length": config.length})


def _specs(config: Config, task: str, attention: str = "learned") -> tuple[RecipeSpec, ...]:
    return tuple(
        RecipeSpec.of(
            "along_training",
            seed=seed,
            task=task,
            options=tuple(sorted(_options(config, task).items())),
            attention=attention,
            width=config.width,
            steps=config.text_steps if task == TEXT else config.steps,
            batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            looks_per_doubling=config.looks_per_doubling,
        )
        for seed in range(config.seeds)
    )


def _ask(config: Config, task: str, attention: str = "learned") -> tuple[Ask, ...]:
    specs = _specs(config, task, attention)
    return ask(specs, measure_along_training, fitted=config.fitted, judged=config.judged)


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network: its attention and its knowledge of words, look by look."""
    learned = [asked for task in config.task for asked in _ask(config, task)]
    return (*learned, *(asked for task in config.uniform for asked in _ask(config, task, "uniform")))


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=TASKS,
        uniform=(*UNIFORM, TEXT),
        seeds=5,
        shortest=15,
        longest=20,
        fewest_phrases=5,
        most_phrases=8,
        length=40,
        n_train=50_000,
        n_held_out=1_000,
        width=128,
        steps=2_000,
        text_steps=3_000,
        learning_rate=2e-3,
        looks_per_doubling=3,
        fitted=4_000,
        judged=1_000,
    ),
}


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Courses of what attention is made of and of what is known, and when each takes over.

    The quantities, and why they are these, stand in :mod:`notebooks.beyond.along_training.experiment`.

    Returns:
        values ``order.<task>.<quantity>_after_translation`` (log2 of the ratio of two takeover steps, of the
        networks that have both: 1 is twice as late), ``order_by_shares``,
        ``order_by_gain``, ``order_by_accuracy`` (the same with covariance shares for terms, and with other
        measures of knowledge); ``takeover.<task>.
        <quantity>`` (log2 of the step) and ``left_out.<task>.<quantity>`` (networks without one);
        ``last.<task>.<quantity>``, at the last look; ``terms.<task>.<decoder part>_<encoder part>``,
        covariance shares at the last look; ``uniform.<task>.{translation, above_chance, word_accuracy,
        token_accuracy, less_learned}``, at the last look of networks whose attention is held uniform
        (less_learned: their translation less that of the network of the same seed whose attention is
        learned); intervals over seeds. Tables ``courses`` (a row a task, attention, quantity and look),
        ``takeovers`` (a row a task and quantity) and ``networks`` (a row a network and quantity).
    """
    learned = {task: answers(_ask(config, task), store) for task in config.task}
    uniform = {task: answers(_ask(config, task, "uniform"), store) for task in config.uniform}
    learned, uniform = ({task: own for task, own in found.items() if own} for found in (learned, uniform))
    values = order_values(learned, config.least) | {
        "takeover": takeover_values(learned, config.least),
        "left_out": {
            task: {row["quantity"]: row["left_out"] for row in takeover_rows({task: own}, config.least)}
            for task, own in learned.items()
        },
        "last": last_values(learned),
        "terms": term_values(learned),
        "uniform": uniform_values(uniform, learned),
    }
    tables = {
        "courses": course_rows(learned, "learned") + course_rows(uniform, "uniform"),
        "takeovers": takeover_rows(learned, config.least),
        "networks": network_rows(learned, config.least),
    }
    return values, tables
