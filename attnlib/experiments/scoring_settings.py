"""Settings of the chapter on scoring functions: the grid of networks, and those with names on captions."""

from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from typing import get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.measures.scoring_functions import SIZES
from attnlib.models.scoring import Scoring
from attnlib.models.sequence_config import NAMED
from attnlib.recipes.recipe import RecipeSpec
from companion.data.parallel import NAMES as TEXTS

DECODERS: dict[str, dict[str, object]] = {
    "luong": {},
    "luong_feeding": {"input_feeding": True},
    "bahdanau": {"decoder": "bahdanau"},
}
BEFORE = "luong_before"  # Luong's decoder asked by the previous state
DIRECTIONS = {1: "one", 2: "two"}
BATCH = 64
CAPTIONS = 29_000  # training pairs of Multi30k
VALIDATION = 1_014  # its validation pairs, which the task holds out first


@dataclass(frozen=True)
class Kind:
    """A network of the grid."""

    task: str
    decoder: str
    directions: int
    scoring: str

    @property
    def possible(self) -> bool:
        """``dot`` and ``scaled_dot`` need states of one width; two directions make twice the decoder's."""
        return self.directions == 1 or self.scoring not in ("dot", "scaled_dot")

    @property
    def columns(self) -> dict[str, str]:
        """Its name in tables; directions are ``one`` and ``two``."""
        return {
            "task": self.task,
            "decoder": self.decoder,
            "directions": DIRECTIONS[self.directions],
            "scoring": self.scoring,
        }


@dataclass(frozen=True)
class Config:
    """Settings: a grid of networks on tasks made by rule, and the four that have names on captions.

    Attributes:
        task: ``reordering`` (p = 0.5), ``number_words``.
        scoring: see :mod:`attnlib.models.scoring`.
        directions: of the encoder: 1, 2, or both.
        decoder: ``luong``, ``luong_feeding`` (with input feeding), ``bahdanau``.
        asked: those of the scores with which Luong's decoder is also asked by the previous state.
        seeds: networks of each kind.
        shortest, longest: phrases of a sentence to reorder; digits of a number.
        n_train: sentences to train on; judged: held-out ones.
        width: of states and embeddings; steps: updates; looks: at the network on its way.
        learning_rate: of Adam.
        threshold: share of words right whose first time tells how fast a network learns.
        samples: sentences that the probe of encoder states is fitted on.
        named: networks trained on captions: ``cho``, ``sutskever``, ``bahdanau``, ``luong``; none by default.
        text: the captions, a task with references as text.
        text_pairs: sentence pairs to train on, 0 for all.
        text_words: of the vocabulary of each side; text_epochs: passes over the pairs.
        text_width, text_looks, text_rate, text_threshold: width, looks, learning rate and threshold there.
    """

    task: tuple[str, ...] = ("reordering",)
    scoring: tuple[str, ...] = ("dot", "scaled_dot", "general", "additive")
    directions: tuple[int, ...] = (1, 2)
    decoder: tuple[str, ...] = ("luong", "bahdanau")
    asked: tuple[str, ...] = ("dot", "general")
    seeds: int = 3
    shortest: int = 2
    longest: int = 3
    n_train: int = 6_000
    judged: int = 128
    width: int = 32
    steps: int = 85
    looks: int = 10
    learning_rate: float = 1.5e-2  # high, for a short course; narrow networks bear it
    threshold: float = 0.8
    samples: int = 1_000
    named: tuple[str, ...] = ()
    text: str = "multi30k_en_de"
    text_pairs: int = 0
    text_words: int = 4_000
    text_width: int = 128
    text_epochs: int = 5
    text_looks: int = 20
    text_rate: float = 3e-3
    text_threshold: float = 0.4

    def __post_init__(self) -> None:
        known = {
            "task": SIZES,
            "scoring": get_args(Scoring),
            "asked": get_args(Scoring),
            "decoder": DECODERS,
            "named": NAMED,
            "text": [name for name in TEXTS if name.startswith("multi30k_en")],
        }
        for field, allowed in known.items():
            given = getattr(self, field)
            for name in (given,) if isinstance(given, str) else given:
                if name not in allowed:
                    raise UnknownName(field, name, allowed)
        counts = ("seeds", "shortest", "n_train", "judged", "width", "steps", "looks", "samples")
        for name in (*counts, "text_words", "text_width", "text_epochs", "text_looks"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if set(self.directions) - set(DIRECTIONS):
            raise BadInput(f"directions are {self.directions}; an encoder reads in 1 or in 2")
        if not self.shortest <= self.longest:
            raise BadInput(f"sizes from {self.shortest} to {self.longest}; expected shortest ≤ longest")
        if not (grid(self) or self.named):
            raise BadInput(
                "no network is left: dot and scaled_dot need an encoder in one direction; use general, or "
                "directions=1"
            )


def grid(config: Config) -> tuple[Kind, ...]:
    """Every network of the grid that can be, and those that the previous state asks."""
    every = product(config.task, config.decoder, config.directions, config.scoring)
    scores = [scoring for scoring in config.asked if scoring in config.scoring]
    asked = [Kind(task, BEFORE, 1, scoring) for task, scoring in product(config.task, scores)]
    beside = asked if "luong" in config.decoder and 1 in config.directions else ()
    return (*(kind for kind in (Kind(*own) for own in every) if kind.possible), *beside)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=("reordering", "number_words"),
        scoring=("dot", "scaled_dot", "general", "concat", "additive"),
        decoder=("luong", "luong_feeding", "bahdanau"),
        asked=("dot", "general", "additive"),
        shortest=3,
        longest=6,
        n_train=20_000,
        judged=300,
        width=64,
        steps=800,
        looks=40,
        learning_rate=2e-3,
        threshold=0.9,
        samples=4_000,
        named=("cho", "sutskever", "bahdanau", "luong"),
    ),
}


def specs_of_kind(config: Config, kind: Kind) -> tuple[RecipeSpec, ...]:
    """The networks of a kind, seed by seed."""
    sizes = dict(zip(SIZES[kind.task], (config.shortest, config.longest), strict=True))
    options = sizes | {"n_train": config.n_train, "n_held_out": config.judged}
    names = ("width", "steps", "looks", "learning_rate", "judged")
    return tuple(
        RecipeSpec.of(
            "asked_before" if kind.decoder == BEFORE else "recurrent_sequences",
            seed=seed,
            task=kind.task,
            options=tuple(options.items()),
            scoring=kind.scoring,
            bidirectional=kind.directions == 2,
            batch_size=BATCH,
            **DECODERS.get(kind.decoder, {}),
            **{name: getattr(config, name) for name in names},
        )
        for seed in range(config.seeds)
    )


def specs_of_name(config: Config, name: str) -> tuple[RecipeSpec, ...]:
    """The networks of a name on captions, seed by seed."""
    options: dict[str, object] = {"held_out_from_train": 0, "max_words": config.text_words}
    options |= {"n_train": config.text_pairs} if config.text_pairs else {}
    return tuple(
        RecipeSpec.of(
            "recurrent_sequences",
            seed=seed,
            task=config.text,
            options=tuple(options.items()),
            width=config.text_width,
            steps=config.text_epochs * ceil((config.text_pairs or CAPTIONS) / BATCH),
            looks=config.text_looks,
            learning_rate=config.text_rate,
            batch_size=BATCH,
            judged=VALIDATION,
            **NAMED[name],
        )
        for seed in range(config.seeds)
    )


def comparisons(config: Config, task: str) -> dict[str, list[tuple[Kind, Kind]]]:
    """Pairs of kinds that differ in one thing, by what it is; the first is held against the second."""
    kinds = [kind for kind in grid(config) if kind.task == task and kind.decoder != BEFORE]
    one = [kind for kind in kinds if kind.directions == 1]
    pairs = {
        "two_directions": [(kind, replace(kind, directions=1)) for kind in kinds if kind.directions == 2],
        "previous_state": [(Kind(task, BEFORE, 1, own), Kind(task, "luong", 1, own)) for own in config.asked],
        "concat_additive": [(k, replace(k, scoring="additive")) for k in kinds if k.scoring == "concat"],
    }
    for decoder in ("luong_feeding", "bahdanau"):
        pairs[decoder] = [(k, replace(k, decoder="luong")) for k in kinds if k.decoder == decoder]
    for scoring in ("scaled_dot", "general", "concat", "additive"):
        pairs[scoring] = [(k, replace(k, scoring="dot")) for k in one if k.scoring == scoring]
    return pairs
