"""Train the encoder-decoder of a :class:`~companion.runs.spec.ModelSpec` by teacher forcing."""

from collections.abc import Iterator
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import TrainingDiverged
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Batch, Corpus, training_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from companion.data.task import Task
from companion.runs.loop import Penalised, Report, Schedule, train_network
from companion.runs.spec import ModelSpec

VERSION = 1  # of this training: raised when what it trains changes
IGNORED = -100  # no word has a negative id


def new_model(spec: ModelSpec, task: Task) -> EncoderDecoder:
    """Make the untrained network of a spec, its parameters drawn from the spec's seed."""
    config = ModelConfig(
        architecture=spec.architecture,
        source_size=len(task.source_vocabulary),
        target_size=len(task.target_vocabulary),
        cell=spec.cell,
        width=spec.width,
        positions=spec.positions,
        embedding_scale=spec.embedding_scale,
    )
    return EncoderDecoder(config, torch.Generator().manual_seed(spec.seed))


def schedule_of(spec: ModelSpec) -> Schedule:
    """Return the schedule of a spec: the learning rate falls along half a cosine."""
    return Schedule(
        steps=spec.steps,
        seed=spec.seed,
        learning_rate=spec.learning_rate,
        clip=spec.clip,
        decay="cosine",
        weight_decay=spec.weight_decay,
    )


def prediction_loss(
    logits: Float[Tensor, "batch target words"],
    outputs: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy, in nats a token, over the valid target positions."""
    # Ignoring rows is faster than picking valid ones out, a copy of the logits; gradients are the same bits.
    targets = outputs.masked_fill(~mask, IGNORED)
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def loss_of(network: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Return the prediction loss of a network that makes a trace of a batch."""
    return prediction_loss(network(batch).logits, batch.target_output, batch.target_mask)


class BatchesInOrder:
    """The batch of each step of :func:`~attnlib.models.corpus.training_batches`.

    Steps may begin anywhere. Steps in order cost one batch each; any other step starts its epoch anew.
    """

    def __init__(self, corpus: Corpus, batch_size: int, seed: int):
        self.corpus, self.batch_size, self.seed = corpus, batch_size, seed
        self._next_step = -1
        self._batches: Iterator[Batch] = iter(())

    def __call__(self, step: int) -> Batch:
        """Return the batch of a step."""
        if step != self._next_step:
            self._batches = training_batches(self.corpus, self.batch_size, seed=self.seed, start_step=step)
        self._next_step = step + 1
        return next(self._batches)


def train(
    spec: ModelSpec,
    task: Task,
    checkpoints: Path,
    *,
    penalised: Penalised | None = None,
    device: str = "cpu",
    report: Report | None = None,
    seconds_between_saves: float = 60.0,
) -> tuple[EncoderDecoder, list[dict]]:
    """Train a model, or resume an interrupted training; the outcome is the same to the last bit.

    Args:
        spec: what to train, and how.
        task: the spec's, loaded.
        checkpoints: folder for checkpoints; a sound one in it is continued from.
        penalised: see :func:`~companion.runs.loop.train_network`.
        device: where to train.
        report: called after every update with (step, steps, loss).
        seconds_between_saves: see :func:`~companion.runs.loop.train_network`.

    Returns:
        The model on ``device``, in evaluation mode, and records {step, loss} along the way.

    Raises:
        TrainingDiverged: the loss is not finite; names step, seed and setting.
    """
    model = new_model(spec, task)
    try:
        records = train_network(
            model,
            BatchesInOrder(task.train, spec.batch_size, spec.seed),
            loss_of,
            schedule_of(spec),
            checkpoints,
            penalised=penalised,
            device=device,
            report=report,
            seconds_between_saves=seconds_between_saves,
        )
    except TrainingDiverged as error:
        raise TrainingDiverged(f"{spec.setting}: {error}") from error
    return model, records
