"""A classifier at uniform attention that must find a keyword (Snell et al. 2021, section 6.1, Figure 7).

Every update draws new sequences. With γ_l, the log odds of the right label from position l alone (equation
22), and l*, where the keyword stands,

    γ_l* ≫ mean of γ ≫ γ_L ≈ γ_{l*+1}    if states held their own word alone (hypothesis 1, equation 23)
    γ_l* ≫ γ_{l*+1} ≫ mean of γ ≈ γ_L    if they knew their neighbours (hypothesis 2, equation 24)
    γ_L ≫ γ_{l*+1} ≫ mean of γ ≈ γ_l*    in the paper after long training (equation 25)
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput, check_at_least
from attnlib.models.classifiers import (
    AttentiveClassifier,
    ClassifierConfig,
    classification_loss,
    log_odds_of,
    logit_of,
)
from companion.runs.loop import Report, Schedule, train_network
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

VERSION = 1  # of the training: raised when what it trains changes

PARAMETERS, TRAINING, HELD_OUT = range(3)  # what a seed is used for
KEYWORD = 0


@dataclass(frozen=True, eq=False)
class KeywordBatch:
    """Sequences of one length; label 1 where the keyword stands, at ``place`` (of no meaning elsewhere)."""

    tokens: Int[Tensor, "batch length"]
    labels: Int[Tensor, " batch"]
    place: Int[Tensor, " batch"]

    @property
    def mask(self) -> Bool[Tensor, "batch length"]:
        return torch.ones_like(self.tokens, dtype=torch.bool)

    def to(self, device: str) -> Self:
        return type(self)(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def keyword_batch(samples: int, length: int, words: int, generator: torch.Generator) -> KeywordBatch:
    """Sequences, the first half of them positive."""
    if samples < 2 or samples % 2:
        raise BadInput(f"{samples} samples; half are positive, so give an even number")
    if length < 1 or words < 2:
        raise BadInput(
            f"length {length} and {words} words; a sequence has a word, and there are at least two"
        )
    tokens = torch.randint(1, words, (samples, length), generator=generator)
    place = torch.randint(length, (samples,), generator=generator)
    labels = (torch.arange(samples) < samples // 2).long()
    rows = torch.arange(samples // 2)
    tokens[rows, place[: samples // 2]] = KEYWORD
    return KeywordBatch(tokens, labels, place)


@dataclass(frozen=True)
class Settings:
    """One network; the defaults are the paper's, as far as it gives them."""

    words: int = 40  # of the vocabulary, the keyword among them
    length: int = 40
    embedding_width: int = 300
    width: int = 256  # of the state of one direction
    batch_size: int = 32
    learning_rate: float = 1e-3
    steps: int = 4_000  # as many as the paper's other classifiers get (section A.8)
    every: int = 10  # updates between two snapshots up to ``until``, where most happens
    until: int = 300
    later: int = 100  # updates between two after that
    held_out: int = 512  # sequences that it is judged on, half of them positive
    seed: int = 0  # draws parameters and sequences, each from a stream of its own

    def __post_init__(self) -> None:
        check_at_least(1, self, "embedding_width", "width", "batch_size")
        check_at_least(1, self, "steps", "every", "until", "later", "held_out")
        if self.length < 4:
            raise BadInput(f"length is {self.length}; keyword, next, first and last need 4 positions")


@dataclass(frozen=True, eq=False)
class Locality:
    """γ of each sequence at five places."""

    keyword: Float[Tensor, " batch"]  #: γ_l*
    next: Float[Tensor, " batch"]  #: γ_{l*+1}
    mean: Float[Tensor, " batch"]  #: over all positions
    last: Float[Tensor, " batch"]  #: γ_L
    first: Float[Tensor, " batch"]  #: γ_1, which to an encoder of both directions is an end as well


def locality(log_odds: Float[Tensor, "batch length"], place: Int[Tensor, " batch"]) -> Locality:
    """γ at the keyword and around it, for sequences of one length.

    Raises BadInput for a keyword at an end, or just before the last position (see :func:`apart`).
    """
    if not bool(apart(place, log_odds.shape[1]).all()):
        raise BadInput(
            f"keywords at {place.tolist()[:8]} in sequences of {log_odds.shape[1]}: keyword, next, first and "
            "last position must differ; leave other sequences out (see `apart`)"
        )
    rows = torch.arange(len(place), device=place.device)
    return Locality(
        log_odds[rows, place], log_odds[rows, place + 1], log_odds.mean(1), log_odds[:, -1], log_odds[:, 0]
    )


def apart(place: Int[Tensor, " batch"], length: int) -> Tensor:
    """Where the keyword, the position after it, and both ends are four different positions."""
    return (place > 0) & (place < length - 2)


def checkpoints(settings: Settings) -> tuple[int, ...]:
    """The steps it is looked at: close together at first, then far apart, and the last one."""
    early = range(0, min(settings.until, settings.steps), settings.every)
    return (*early, *range(settings.until, settings.steps, settings.later), settings.steps)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train the network and look at it; γ is a mean over positive sequences whose places are apart."""
    held_out = _batch(settings, settings.held_out, HELD_OUT).to(device)
    config = ClassifierConfig(settings.words, settings.embedding_width, settings.width, attention="uniform")
    network = AttentiveClassifier(config, torch.Generator().manual_seed(_stream(settings.seed, PARAMETERS)))
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings))
    train_network(
        network, lambda step: _batch(settings, settings.batch_size, TRAINING, step), _loss, schedule, folder,
        visit=lambda step, model: save_snapshot(folder, step, _snapshot(model, held_out)), device=device,
        report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, schedule.checkpoints)


def _loss(model: AttentiveClassifier, batch: KeywordBatch) -> Tensor:
    return classification_loss(logit_of(model(batch.tokens, batch.mask)), batch.labels)


def _snapshot(model: AttentiveClassifier, held_out: KeywordBatch) -> Tensors:
    with torch.inference_mode():
        trace = model(held_out.tokens, held_out.mask)
        logit = logit_of(trace)
        usable = (held_out.labels == 1) & apart(held_out.place, held_out.tokens.shape[1])
        weights = locality(log_odds_of(trace)[usable], held_out.place[usable])
        return {
            "loss": classification_loss(logit, held_out.labels),
            "accuracy": ((logit > 0) == (held_out.labels == 1)).float().mean(),
            **{name: values.mean() for name, values in vars(weights).items()},
        }


def _batch(settings: Settings, samples: int, *use: int) -> KeywordBatch:
    generator = torch.Generator().manual_seed(_stream(settings.seed, *use))
    return keyword_batch(samples, settings.length, settings.words, generator)


def _stream(*numbers: int) -> int:
    """One seed from several numbers; different lists give unrelated streams."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
