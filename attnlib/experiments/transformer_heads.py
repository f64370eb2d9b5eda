"""The first paper's decomposition in Transformers: which terms form the attention of each head."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.measures.repeated_words import measure_repeated
from attnlib.experiments.measures.transformer_heads import measure_heads
from attnlib.experiments.transformer_head_rows import (
    head_table,
    layer_rows,
    network_rows,
    repeated_rows,
    state_table,
    term_table,
)
from attnlib.experiments.transformer_head_values import (
    anchored_less_free,
    correlations,
    last_less_first,
    nested,
    one_to_one_less_reordering,
    repeated_values,
    sinusoidal_less,
)
from attnlib.models.transformer_config import Positions
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Part IV, “Transformers”; after Aitken et al. 2021, contributions 1 and 2"
QUESTION = "Do temporal terms form typical attention in a Transformer too, and in which layers?"
TASKS = ("one_to_one", "reordering", "scan", "lexicon_translation")
ANCHORED = "in_order"  # the reordering family without reordering: word for word, after a word that opens


@dataclass(frozen=True)
class Config:
    """Settings; a network is a task × kind of positions × seed. Neither paper gives any.

    Attributes:
        task: of :data:`TASKS`.
        positions: of :data:`~attnlib.models.transformer_config.Positions`.
        anchored: kinds of positions with which a network is trained as well on the reordering family without
            reordering (:data:`ANCHORED`), a control: word for word like one-to-one translation, but its first
            word is always one of two that stand nowhere else. No prediction is judged by these. None at the
            quick profile, to save their training.
        seeds: networks of each kind.
        words: of the vocabulary of one-to-one translation; shortest, longest: words of its sentences.
        reordered: of the reordering family, the share of sentences that may be reordered; fewest_phrases,
            most_phrases: its sentences have twice as many words and one more.
        n_train: sentences to train on; judged: held-out ones; fit_samples: training sentences, at most, that
            components are fitted on.
        width, heads, layers: of the network.
        steps, learning_rate, warmup: of its training; looks: at it along the way. The quick profile's rate is
            high so that 200 steps are enough for relative and rotary positions, which learn slowest.
        least_spread: a head whose scores have a smaller standard deviation along their rows has no shares:
            its attention is within about 5 % of even, and its terms add up to next to nothing.
    """

    task: tuple[str, ...] = ("one_to_one", "reordering")
    positions: tuple[str, ...] = ("sinusoidal", "relative", "rotary")
    anchored: tuple[str, ...] = ()
    seeds: int = 3
    words: int = 8
    shortest: int = 4
    longest: int = 7
    reordered: float = 0.5
    fewest_phrases: int = 2
    most_phrases: int = 3
    n_train: int = 4_000
    judged: int = 128
    fit_samples: int = 600
    width: int = 32
    heads: int = 2
    layers: int = 2
    steps: int = 200
    learning_rate: float = 1.2e-2
    warmup: int = 40
    looks: int = 2
    least_spread: float = 0.05

    def __post_init__(self) -> None:
        for field, known in (
            ("task", TASKS),
            ("positions", get_args(Positions)),
            ("anchored", get_args(Positions)),
        ):
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownName(field, name, known)
        for name in ("seeds", "n_train", "judged", "fit_samples"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.least_spread >= 0:
            raise BadInput(f"least_spread is {self.least_spread}; it must be 0 or more")
        models(self)  # what a network or its training cannot be, the recipes say


def _options(config: Config, task: str) -> dict[str, object]:
    """Those of the task; SCAN holds out a share of its commands and is otherwise as it is."""
    sizes = {"n_train": config.n_train, "n_held_out": config.judged}
    phrases = {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases}
    own = {
        "one_to_one": {
            "n_words": config.words,
            "min_length": config.shortest,
            "max_length": config.longest,
        }
        | sizes,
        "reordering": {"p": config.reordered} | phrases | sizes,
        ANCHORED: {"p": 0.0} | phrases | sizes,
        "scan": {"n_train": config.n_train},
        "lexicon_translation": sizes,
    }
    return own[task]


def _kinds(config: Config) -> tuple[tuple[str, str], ...]:
    """Tasks with their kinds of positions, the control last."""
    return (*product(config.task, config.positions), *((ANCHORED, kind) for kind in config.anchored))


def specs(config: Config, task: str, positions: str) -> Iterator[RecipeSpec]:
    shape = ("width", "heads", "layers", "steps", "learning_rate", "warmup", "looks", "judged")
    for seed in range(config.seeds):
        yield RecipeSpec.of(
            "transformer_sequences",
            task="reordering" if task == ANCHORED else task,
            options=tuple(_options(config, task).items()),
            positions=positions,
            seed=seed,
            **{name: getattr(config, name) for name in shape},
        )


def _heads(config: Config, task: str, positions: str) -> tuple[Ask, ...]:
    return ask(specs(config, task, positions), measure_heads, fit_samples=config.fit_samples)


def _repeated(config: Config) -> tuple[Ask, ...]:
    kinds = config.positions if "one_to_one" in config.task else ()
    return tuple(a for kind in kinds for a in ask(specs(config, "one_to_one", kind), measure_repeated))


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks: the terms of all heads of every network, and where one-to-one translation looks."""
    return (*(a for kind in _kinds(config) for a in _heads(config, *kind)), *_repeated(config))


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=TASKS,
        positions=("sinusoidal", "learned", "relative", "rotary"),
        anchored=("relative", "rotary"),
        seeds=5,
        longest=10,
        shortest=6,
        fewest_phrases=3,
        most_phrases=5,
        n_train=10_000,
        judged=1_000,
        fit_samples=10_000,
        width=128,
        heads=4,
        layers=3,
        steps=2_000,
        learning_rate=1e-3,
        warmup=200,
        looks=10,
    ),
}


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the terms by kind of attention, layer, task and positions; the predictions; two controls.

    Returns:
        values ``correlation.{temporal, input, …}``: rank correlation, over all heads of the trained networks'
        cross-attention, of typicality and that share, with an interval from resampling tasks × positions and
        then seeds; beside it ``heads`` and ``left_out`` (whose scores hardly vary).
        ``residual.last_less_first``, ``one_to_one_less_reordering.{<positions>, smallest}`` and
        ``sinusoidal_less.<positions>``: paired differences of cross-attention, intervals over seeds.
        The controls: ``anchored_less_free.<positions>`` (temporal share of cross-attention in
        :data:`ANCHORED` less that in one-to-one translation) and ``repeated.<positions>.{once, again,
        once_less_again}.{attention, accuracy}``, see
        :func:`~attnlib.experiments.measures.repeated_words.measure_repeated`.
        ``networks.<task>.<positions>.{token_accuracy, exact_match, parameters}``,
        ``layers.<task>.<positions>.<kind>.layer_<n>.<state>.<number>`` of
        :data:`~attnlib.experiments.measures.transformer_heads.NUMBERS`, means over heads,
        ``states.<task>.<positions>.<site>.<state>.<share>``; intervals over seeds. Tables ``heads`` (a row
        a head), ``layers``, ``networks``, ``states``, ``terms`` (of cross-attention), ``repeated``.
    """
    points = [
        (name | {"task": task}, measured)
        for task, positions in _kinds(config)
        for name, measured in answers(_heads(config, task, positions), store)
    ]
    heads = head_table(points, config.least_spread)
    repeated = repeated_rows(answers(_repeated(config), store))
    tables = {
        "heads": heads,
        "layers": layer_rows(heads),
        "networks": network_rows(points),
        "states": state_table(points),
        "terms": term_table(points),
        "repeated": repeated,
    }
    judged = [row for row in heads if row["task"] != ANCHORED]
    values = {
        "correlation": correlations(judged),
        "residual": {"last_less_first": last_less_first(judged)},
        "one_to_one_less_reordering": one_to_one_less_reordering(judged),
        "sinusoidal_less": sinusoidal_less(judged),
        "anchored_less_free": anchored_less_free(heads, ANCHORED),
        "repeated": repeated_values(repeated),
        "networks": nested(tables["networks"], ("task", "positions")),
        "layers": nested(tables["layers"], ("task", "positions", "kind", "layer", "state")),
        "states": nested(tables["states"], ("task", "positions", "site", "state")),
    }
    return values, tables
