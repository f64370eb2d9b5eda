"""What a task makes attention learn: translation against summary, cross- against self-attention."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.measures.task_patterns import (
    STATES,
    measure_example,
    measure_pattern_agreement,
    measure_patterns,
)
from attnlib.experiments.measures.who_asks_whom import measure_classes, measure_reciprocity, measure_sources
from attnlib.experiments.teaching_rows import (
    agreement_rows,
    class_rows,
    course_rows,
    example_rows,
    head_rows,
    layer_rows,
    network_rows,
    reciprocity_rows,
    source_rows,
)
from attnlib.experiments.teaching_values import (
    agreement_values,
    class_values,
    differences,
    pattern_values,
    reciprocity_values,
    source_values,
)
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Primer 1, “Training an attention model”; primer 2, “Encoder-Decoder vs Self-Attention”"
QUESTION = "What does a task make attention learn, and is self-attention symmetric?"
KINDS = ("recurrent", "transformer")
TASKS = ("translation", "summary")


@dataclass(frozen=True)
class Config:
    """Settings; a network is a kind × task × seed. The primers give none of them.

    Attributes:
        kind: ``recurrent`` (Luong's decoder with attention), ``transformer``.
        task: ``translation``, ``summary``, of the same sentences.
        tied: tasks on which a Transformer is trained as well whose self-attention has symmetric scores.
        seeds: networks of each kind, at least 2: those of one task are compared.
        shortest, longest: words of a sentence.
        n_train: sentences to train on; judged: held-out ones.
        scoring: of the recurrent network; width, steps, learning_rate: its as well. A narrow network with dot
            scores gets stuck for some seeds, so it is wider than the Transformer.
        transformer_width, heads, layers, positions, transformer_steps, transformer_rate: the Transformer's.
        warmup: updates over which its learning rate rises.
        looks: at how many steps every network is judged along the way.
    """

    kind: tuple[str, ...] = KINDS
    task: tuple[str, ...] = TASKS
    tied: tuple[str, ...] = ("translation",)
    seeds: int = 3
    shortest: int = 6
    longest: int = 10
    n_train: int = 4_000
    judged: int = 256
    scoring: str = "dot"
    width: int = 64
    steps: int = 180
    learning_rate: float = 8e-3
    transformer_width: int = 32
    heads: int = 2
    layers: int = 2
    positions: str = "sinusoidal"
    transformer_steps: int = 140
    transformer_rate: float = 6e-3
    warmup: int = 30
    looks: int = 4

    def __post_init__(self) -> None:
        named = {"kind": KINDS, "task": TASKS, "tied": TASKS}
        for field, known in named.items():
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownName(field, name, known)
        if self.seeds < 2:
            raise BadInput(f"seeds is {self.seeds}; networks of one task are compared, so take 2 or more")
        models(self)  # what a network or its training cannot be, the recipes say

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Kinds of network with their tasks, the tied ones last."""
        free = tuple((kind, task) for kind in self.kind for task in self.task)
        return (*free, *(("tied", task) for task in self.tied))


def _spec(config: Config, kind: str, task: str, seed: int) -> RecipeSpec:
    options = {
        "min_length": config.shortest,
        "max_length": config.longest,
        "n_train": config.n_train,
        "n_held_out": config.judged,
    }
    common = {"task": f"lexicon_{task}", "options": tuple(options.items())}
    common |= {"judged": config.judged, "looks": config.looks}
    if kind == "recurrent":
        own = {"scoring": config.scoring, "width": config.width, "steps": config.steps}
        return RecipeSpec.of(
            "recurrent_sequences", seed=seed, learning_rate=config.learning_rate, **own, **common
        )
    shape = {name: getattr(config, name) for name in ("heads", "layers", "positions", "warmup")}
    return RecipeSpec.of(
        "transformer_sequences",
        seed=seed,
        width=config.transformer_width,
        steps=config.transformer_steps,
        learning_rate=config.transformer_rate,
        tied=kind == "tied",
        **shape,
        **common,
    )


def _specs(config: Config, kind: str, task: str) -> tuple[RecipeSpec, ...]:
    return tuple(_spec(config, kind, task, seed) for seed in range(config.seeds))


def _pairs(config: Config, kind: str, first: str, second: str, state: str) -> tuple[Ask, ...]:
    """Each network of one task beside that of the next seed of another task or the same: never one start."""
    ours, theirs = _specs(config, kind, first), _specs(config, kind, second)
    return tuple(
        Ask(spec, measure_pattern_agreement, (("state", state),), (theirs[(seed + 1) % config.seeds],))
        for seed, spec in enumerate(ours)
    )


def _compared(config: Config) -> tuple[tuple[str, str, str, str], ...]:
    """Kinds of network, two tasks or one twice, and whether trained."""
    within = [(task, task, "trained") for task in config.task]
    between = [(*TASKS, state) for state in STATES] if set(TASKS) <= set(config.task) else []
    return tuple((kind, *pair) for kind in config.kind for pair in (*within, *between))


def _layered(config: Config) -> tuple[tuple[str, str], ...]:
    return tuple((kind, task) for kind, task in config.kinds if kind != "recurrent")


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks: patterns of all networks, agreement of pairs, and what is inside the Transformers."""
    asked = [a for pair in config.kinds for a in ask(_specs(config, *pair), measure_patterns)]
    asked += [a for pair in config.kinds for a in ask(_specs(config, *pair)[:1], measure_example)]
    asked += [a for compared in _compared(config) for a in _pairs(config, *compared)]
    for pair in _layered(config):
        for measure in (measure_reciprocity, measure_classes, measure_sources):
            asked += ask(_specs(config, *pair), measure)
    return tuple(asked)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


PROFILES = {
    "quick": Config(),
    "paper": Config(
        tied=TASKS,
        seeds=5,
        longest=14,
        n_train=10_000,
        judged=1_000,
        width=128,
        steps=1_500,
        learning_rate=3e-3,
        transformer_width=128,
        heads=4,
        layers=3,
        transformer_steps=1_500,
        transformer_rate=1e-3,
        warmup=150,
        looks=20,
    ),
}


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Patterns by kind of network and task, and the symmetry of the Transformers' attentions.

    Returns:
        values ``<kind>.<task>.``: ``trained``, ``untrained`` and ``learned`` (their difference) of what
        :func:`measure_patterns` finds, ``token_accuracy``, ``exact_match``, ``parameters``;
        ``references.<task>.{gold, even}``; ``differs.<kind>.{trained, untrained}`` (translation less
        summary); ``agreement.<kind>.{sentence, same_word}.{translation, summary, seeds, between,
        task_effect, untrained}`` (seeds is the mean of the two, the effect seeds less between; intervals of
        the jackknife, a seed left out with all its pairs);
        ``symmetry.<kind>.<task>.<attention>.{trained, untrained, learned}.<level>`` and
        ``….self_less_cross.<level>`` (means over heads); ``classes.<kind>.<task>.{trained,
        untrained}.{to_topics, from_topics, one_way}``;
        ``sources.<kind>.<task>.<attention>.{queries, keys}_from_{source, target}``; intervals over seeds.
        Tables ``courses``, ``networks``, ``heads``, ``agreement`` (a row a pair), ``example``,
        ``reciprocity`` (a row a head), ``layers`` (the same, means over heads), ``classes`` and ``sources``.
    """

    def found(measure: Callable[..., dict], kinds: tuple[tuple[str, str], ...], first: int | None = None):
        return {pair: answers(ask(_specs(config, *pair)[:first], measure), store) for pair in kinds}

    patterns = found(measure_patterns, config.kinds)
    agreement = {name: answers(_pairs(config, *name), store) for name in _compared(config)}
    inside = _layered(config)
    reciprocity, classes, sources = (
        found(measure, inside) for measure in (measure_reciprocity, measure_classes, measure_sources)
    )
    values = pattern_values(patterns) | {
        "differs": differences(patterns),
        "agreement": agreement_values(agreement, config.seeds),
        "symmetry": reciprocity_values(reciprocity),
        "classes": class_values(classes),
        "sources": source_values(sources),
    }
    tables = {
        "courses": course_rows(patterns),
        "networks": network_rows(patterns),
        "heads": head_rows(patterns),
        "agreement": agreement_rows(agreement),
        "example": example_rows(found(measure_example, config.kinds, 1)),
        "reciprocity": reciprocity_rows(reciprocity),
        "layers": layer_rows(reciprocity),
        "classes": class_rows(classes),
        "sources": source_rows(sources),
    }
    return values, tables
