"""Training by teacher forcing: a pure function of the spec, whatever interrupts it."""

import math
import time
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import TrainingDiverged
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import training_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.course import Report
from companion.data.task import Task
from companion.runs.checkpoint import Progress, load_newest, save_checkpoint
from companion.runs.spec import ModelSpec

VERSION = 1  # of this training: raised when what it trains changes
IGNORED = -100  # no word has a negative id
RECORDS = 50  # points of the learning curve kept


def new_model(spec: ModelSpec, task: Task) -> EncoderDecoder:
    """The untrained network of a spec, its parameters drawn from the spec's seed."""
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


def prediction_loss(
    logits: Float[Tensor, "batch target words"],
    outputs: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats a token, over the valid target positions."""
    # Ignoring rows is faster than picking valid ones out, a copy of the logits; gradients are the same bits.
    targets = outputs.masked_fill(~mask, IGNORED)
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def learning_rate_at(step: int, spec: ModelSpec) -> float:
    """Half a cosine from the spec's learning rate down to zero."""
    return spec.learning_rate * 0.5 * (1 + math.cos(math.pi * step / spec.steps))


def train(
    spec: ModelSpec,
    task: Task,
    checkpoints: Path,
    *,
    device: str = "cpu",
    report: Report | None = None,
    seconds_between_checkpoints: float = 60.0,
) -> tuple[EncoderDecoder, list[dict]]:
    """Train a model, or go on where an interrupted run left off; the outcome is the same to the last bit.

    Args:
        checkpoints: folder for checkpoints; a sound one in it is continued from.
        report: called after every update with (step, steps, loss).

    Returns:
        the model on ``device``, and records {step, loss} along the way.
    """
    model = new_model(spec, task).to(device)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=spec.learning_rate, weight_decay=spec.weight_decay, fused=True
    )
    progress = load_newest(checkpoints, model, optimiser)
    saved = time.monotonic()
    batches = training_batches(task.train, spec.batch_size, seed=spec.seed, start_step=progress.step)
    for step in range(progress.step, spec.steps):
        loss = _update(model, optimiser, next(batches).to(device), spec, step)
        if not math.isfinite(loss):
            raise TrainingDiverged(
                f"loss is {loss} at step {step} with seed {spec.seed} ({spec.setting}, learning rate "
                f"{spec.learning_rate:g}); lower the learning rate or clip the gradient harder"
            )
        if step % max(1, spec.steps // RECORDS) == 0 or step == spec.steps - 1:
            progress.records.append({"step": step, "loss": round(loss, 6)})
        if report:
            report(step + 1, spec.steps, loss)
        if time.monotonic() - saved > seconds_between_checkpoints:
            save_checkpoint(checkpoints, model, optimiser, Progress(step + 1, progress.records))
            saved = time.monotonic()
    return model, progress.records


def _update(
    model: EncoderDecoder, optimiser: torch.optim.Optimizer, batch, spec: ModelSpec, step: int
) -> float:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate_at(step, spec)
    optimiser.zero_grad(set_to_none=True)
    loss = prediction_loss(model(batch).logits, batch.target_output, batch.target_mask)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), spec.clip)
    optimiser.step()
    return loss.item()
