"""Sentences longer than any a network was trained on: does attention keep to its place, do clocks go on?"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition.components import Components
from attnlib.errors import BadInput
from attnlib.experiments.fitting import Fitted
from attnlib.experiments.measures.wordless import compared, wordless_input
from attnlib.tasks.corpus import Batch, evaluation_batches
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import EOS
from companion.data import registry

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

SAMPLES = 200  # of each length
FACTORS = (1.0, 1.25, 1.5, 2.0)  # of the longest length trained on


def longer_task(spec, length: int) -> Task | None:
    """The task of a model with sentences of one other length; None where its lengths cannot be set.

    Raises:
        BadInput: the vocabularies are not those of the model's own task.
    """
    options = dict(spec.task_options)
    if not {"min_length", "max_length"} <= set(registry.options_of(spec.task)):
        return None
    options |= {"min_length": length, "max_length": length, "n_held_out": SAMPLES, "n_train": SAMPLES}
    found, own = registry.load(spec.task, **options), registry.load(spec.task, **dict(spec.task_options))
    for side in ("source_vocabulary", "target_vocabulary"):
        if getattr(found, side) != getattr(own, side):
            raise BadInput(f"{spec.task} at length {length} has another {side} than at its own lengths")
    return found


def expected_places(task: Task, batch: Batch) -> Int[Tensor, "batch target"]:
    """The source position that each word to be said comes from, by the task's links; −1 where none is known.

    A task without links has sources and targets of one length, and each word from its own place.
    """
    places = torch.full(tuple(batch.target_output.shape), -1)
    for row, sample in enumerate(batch.indices.tolist()):
        if task.gold is None:
            words = int(batch.target_mask[row].sum()) - 1
            places[row, :words] = torch.arange(words)
        elif sample < len(task.gold):  # real text may have links of its first samples alone
            for s, t in task.gold[sample]:
                places[row, s] = t
    return places


def measure_longer(trained: "TrainedModel", fitted: Fitted) -> dict | None:
    """Accuracy and attention by length, and by position at the greatest one; None where lengths are fixed.

    Returns:
        ``trained_up_to`` (words); ``lengths``: a record a length with ``word_accuracy``, ``in_place``
        (attention mass within one position of the word's own), ``leaves`` (first target position at which
        that mass, averaged over samples, is below one half; None if it never is); ``positions``: a record a
        position of the longest sentences with ``word_accuracy``, ``in_place``, ``temporal_in_place`` (the
        same for attention from the temporal components of these sentences alone), ``speed`` (|μ_{t+1} − μ_t|
        of the encoder over its mean within the shortest sentence trained on); ``average_input``: how well
        the encoder's course without words agrees with the temporal components beyond the lengths trained on.
    """
    own = trained.task.train.source_lengths
    shortest, longest = int(own.min()), int(own.max())
    lengths, positions, average = [], [], None
    for factor in FACTORS:
        task = longer_task(trained.spec, round(factor * longest))
        if task is None:
            return None
        try:
            found = _by_position(trained, task)
        except BadInput:  # a table of positions that ends before the sentence does
            continue
        right, mass = found["word_accuracy"].mean(), found["in_place"].mean()
        out = (found["in_place"] < 0.5).nonzero().flatten()
        lengths.append(
            {"length": round(factor * longest), "factor": factor, "word_accuracy": round(float(right), 6)}
            | {"in_place": round(float(mass), 6), "leaves": int(out[0]) if len(out) else None}
        )
        if factor == FACTORS[-1]:
            temporal = found.pop("temporal")
            speed = (temporal[1:] - temporal[:-1]).norm(dim=-1)
            speed = speed / speed[: shortest - 1].mean()
            rows = torch.stack([*found.values(), speed[: len(found["in_place"])]]).T
            names = (*found, "speed")
            positions = [
                {"position": t} | {name: round(x, 5) for name, x in zip(names, row, strict=True)}
                for t, row in enumerate(rows.tolist())
            ]
            average = _beyond(trained, fitted, temporal, longest)
    return {
        "trained_up_to": longest,
        "lengths": lengths,
        "positions": positions,
        "average_input": average,
    }


def _by_position(trained: "TrainedModel", task: Task) -> dict[str, Tensor]:
    """Means over samples at each position of sentences that all have one length."""
    model, length = trained.model, int(task.held_out.source_lengths[0])
    sums = torch.zeros(2, length, dtype=torch.float64)
    sides = [
        Components(len(words), length + 1, model.config.width)
        for words in (task.source_vocabulary, task.target_vocabulary)
    ]
    with torch.inference_mode():
        for batch in evaluation_batches(task.held_out, 256):
            batch = batch.to(model.readout.weight.device)
            trace = model(batch)
            sides[0].update(trace.encoder_states, trace.source_tokens, trace.source_mask)
            sides[1].update(trace.decoder_states, trace.target_tokens, trace.target_mask)
            right = (trace.logits.argmax(-1) == trace.target_outputs) & (trace.target_outputs != EOS)
            near = near_place(trace.attention.cpu(), expected_places(task, batch))
            sums += torch.stack([right.sum(0).double().cpu(), near.sum(0)])[:, :length]
    accuracy, in_place = sums / len(task.held_out)
    scores = sides[1].temporal @ sides[0].temporal.T
    alone = torch.zeros(length, dtype=torch.float64)
    for batch in evaluation_batches(task.held_out, 256):
        attention = scores.softmax(-1).expand(len(batch), -1, -1)
        alone += near_place(attention, expected_places(task, batch)).sum(0)[:length]
    return {
        "word_accuracy": accuracy,
        "in_place": in_place,
        "temporal_in_place": alone / len(task.held_out),
        "temporal": sides[0].temporal.cpu(),
    }


def near_place(
    attention: Float[Tensor, "batch target source"], places: Int[Tensor, "batch target"]
) -> Float[Tensor, "batch target"]:
    """Attention mass within one position of the place; 0 where none is known."""
    column = torch.arange(attention.shape[-1])
    close = ((column - places[:, :, None]).abs() <= 1) & (places >= 0)[:, :, None]
    return (attention.double() * close).sum(-1)


def _beyond(trained: "TrainedModel", fitted: Fitted, temporal: Tensor, longest: int) -> dict | None:
    """Agreement of the course on average input with μ_t at the positions past the longest sentence."""
    words = len(temporal) - 1  # the end mark stands past them all
    with torch.inference_mode():
        inputs = wordless_input(trained.model.source_embedding.weight, fitted.encoder, "average", words)
        states = trained.model.encode_inputs(inputs[None])[0][0].cpu()
    counts = np.ones(words - longest)
    found = compared(states[longest:words], temporal[longest:words], torch.from_numpy(counts))
    return {name: None if value is None else round(value, 6) for name, value in found.items()}
