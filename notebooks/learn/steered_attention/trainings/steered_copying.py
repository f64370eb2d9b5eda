"""Learning to copy under interventions (ours): attention pushed, parts frozen, attention given.

Every network is that of ``permutation_copying`` of the same settings and seed, with the same sentences.
What is done to it is part of each batch, so that the training loop knows nothing of it. Snapshots are of
the network left alone: not pushed, and nothing held.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.errors import BadInput, check_at_least, check_known
from companion.runs.loop import Report, Schedule, regular_checkpoints, train_network
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots
from notebooks.shared.trainings import permutation_copying as copying
from notebooks.shared.trainings.permutation_copying import (
    Copier,
    CopierConfig,
    CopierTrace,
    CopyBatch,
    copy_batch,
    draw_sources,
)

VERSION = 1  # of the training: raised when what it trains changes

Push = Literal["nowhere", "toward", "away", "elsewhere", "anywhere"]
Freeze = Literal["nothing", "readout", "states", "words", "attention"]
ELSEWHERE = (
    5  # use of a seed, after those of permutation_copying: which other position attention is pushed to
)


@dataclass(frozen=True)
class Settings(copying.Settings):
    """One network, and what is done to it while it learns to copy.

    ``push``: for ``push_for`` updates from ``push_from`` on, ``push_size`` is added to the score of the
    due position (``toward``), subtracted from it (``away``), or added to that of a position drawn anew
    for every word: any other one (``elsewhere``), or any at all (``anywhere``), which on permutations
    says nothing of the word.

    ``freeze``: for ``freeze_for`` updates from ``freeze_from`` on, parameters of the ``readout`` N stay as
    they are; or those of embeddings, encoder and decoder, from which the ``states`` come; or both, which are
    all parameters of the lexical probe (``words``), so that only queries learn; or ``attention`` is held
    uniform, so that queries do not.
    """

    gold: bool = False  # all attention is at the due position, from the start to the end
    push: str = "nowhere"
    push_size: float = 2.0
    push_from: int = 0
    push_for: int = 10
    freeze: str = "nothing"
    freeze_from: int = 0
    freeze_for: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known("push", self.push, get_args(Push))
        check_known("what to freeze", self.freeze, get_args(Freeze))
        check_at_least(0, self, "push_from", "push_for", "freeze_from", "freeze_for")
        if self.network != "learned":
            raise BadInput(f"network is {self.network!r}; only networks that learn attention are steered")
        if self.gold and (self.push != "nowhere" or self.freeze == "attention"):
            raise BadInput("attention that is gold can be neither pushed nor held; leave out push and freeze")

    def pushes_at(self, step: int) -> bool:
        """Return True if attention is pushed in the update after ``step`` others."""
        return self.push != "nowhere" and 0 <= step - self.push_from < self.push_for

    def frozen_at(self, step: int) -> Freeze:
        """Return what is frozen in the update after ``step`` others."""
        if 0 <= step - self.freeze_from < self.freeze_for:
            return self.freeze
        return "nothing"


ScoreBias = Float[Tensor, "batch target source"]


@dataclass(frozen=True, eq=False)
class SteeredBatch:
    """Sentences of an update, and what is done to the network meanwhile."""

    sentences: CopyBatch
    bias: ScoreBias | None = None  #: added to the scores
    frozen: Freeze = "nothing"

    def to(self, device: str) -> Self:
        bias = None if self.bias is None else self.bias.to(device)
        return type(self)(self.sentences.to(device), bias, self.frozen)


class SteeredCopier(Copier):
    """A :class:`Copier` of one head whose attention can be pushed, held uniform, or given."""

    def __init__(self, config: CopierConfig, generator: torch.Generator, *, gold: bool):
        super().__init__(config, generator)
        self.gold = gold

    def forward(self, batch: CopyBatch, *, bias: ScoreBias | None = None, held: bool = False) -> CopierTrace:
        """A pass under teacher forcing; with ``held``, attention is uniform whatever the scores."""
        encoder_states, last = self._unroll(self.encoder, batch.source, None, "fast")
        decoder_states, _ = self._unroll(self.decoder, batch.target_read, last, "fast")
        if self.gold:
            attention = at_due_positions(batch).to(encoder_states.dtype)
        elif held:
            attention = torch.full_like(at_due_positions(batch), 1 / batch.source.shape[1], dtype=torch.float)
        else:
            scores = self.queries(decoder_states) @ encoder_states.mT  # (batch, target, source)
            attention = (scores if bias is None else scores + bias).softmax(dim=-1)
        context = attention @ encoder_states
        logits = self.read_out(context, decoder_states)
        return CopierTrace(encoder_states, decoder_states, attention[:, None], context, logits)

    def frozen_parameters(self, frozen: Freeze) -> list[nn.Parameter]:
        """Return the parameters that stay as they are while something is frozen."""
        readout = (self.context_map, self.hidden, self.readout)
        states = (self.embedding, self.encoder, self.decoder)
        modules: dict[Freeze, tuple[nn.Module, ...]] = {
            "nothing": (),
            "readout": readout,
            "states": states,
            "words": (*readout, *states),
            "attention": (self.queries,),
        }
        return [parameter for module in modules[frozen] for parameter in module.parameters()]


def at_due_positions(batch: CopyBatch) -> Float[Tensor, "batch target source"]:
    """Attention that is all at the position of the next word to write."""
    due = nn.functional.one_hot(batch.place, batch.source.shape[1])  # (target, source)
    return due.expand(len(batch.source), -1, -1)


def pushed(push: Push, size: float, batch: CopyBatch, generator: torch.Generator) -> ScoreBias:
    """What is added to the scores while attention is pushed, see :class:`Settings`.

    Positions are drawn from ``generator``, each of those allowed alike.
    """
    samples, length = batch.source.shape
    if push in ("elsewhere", "anywhere"):
        nearest = 1 if push == "elsewhere" else 0  # positions from the due one on, cyclically
        further = torch.randint(nearest, length, (samples, length), generator=generator)
        position = (batch.place + further) % length
        return size * nn.functional.one_hot(position, length).float()
    sign = {"toward": 1.0, "away": -1.0}[push]
    return sign * size * at_due_positions(batch).float()


def steered_loss(model: SteeredCopier, batch: SteeredBatch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right words, in nats a word; what is frozen gets no gradient.

    Adam leaves parameters without a gradient as they are, and what it remembers of them.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    for parameter in model.frozen_parameters(batch.frozen):
        parameter.requires_grad_(False)
    logits = model(batch.sentences, bias=batch.bias, held=batch.frozen == "attention").logits
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.sentences.target.flatten())


def batch_of_update(settings: Settings, step: int) -> SteeredBatch:
    """The sentences that the network left alone reads in this update, and what is done to it meanwhile."""
    sentences = _sentences(settings, settings.batch_size, copying.TRAINING, step)
    bias = None
    if settings.pushes_at(step):
        generator = copying.stream(settings.seed, ELSEWHERE, step)
        bias = pushed(settings.push, settings.push_size, sentences, generator)
    return SteeredBatch(sentences, bias, settings.frozen_at(step))


def new_network(settings: Settings) -> SteeredCopier:
    """The untrained network, drawn as ``permutation_copying`` draws it."""
    config = CopierConfig(copying.words_of(settings.kind, settings.length), settings.width)
    return SteeredCopier(config, copying.stream(settings.seed, copying.PARAMETERS), gold=settings.gold)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """What ``snapshot_of_copier`` sees of the network left alone: not pushed, and nothing held."""
    held_out = _sentences(settings, settings.held_out, copying.HELD_OUT).to(device)
    snapshots = regular_checkpoints(settings.steps, settings.every)
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, snapshots)
    train_network(
        new_network(settings), lambda step: batch_of_update(settings, step), steered_loss, schedule, folder,
        visit=lambda step, model: save_snapshot(folder, step, copying.snapshot_of_copier(model, held_out)),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, snapshots)


def _sentences(settings: Settings, samples: int, *use: int) -> CopyBatch:
    words = copying.words_of(settings.kind, settings.length)
    sources = draw_sources(settings.kind, settings.length, samples, copying.stream(settings.seed, *use))
    order = None
    if settings.order == "permuted":
        order = torch.randperm(settings.length, generator=copying.stream(settings.seed, copying.ORDER))
    return copy_batch(sources, words, order)
