"""Along training: when temporal and input terms take over attention, and when words are known."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.along_training_values import (
    course_rows,
    last_values,
    network_rows,
    order_values,
    takeover_rows,
    takeover_values,
    term_values,
    uniform_values,
)
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.measures.along_training import measure_along_training
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

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

    The quantities, and why they are these, stand in :mod:`attnlib.experiments.along_training_values`.

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
