"""When the decoder reads out each source word: one word's contribution to the last encoder state is
exchanged.

    h^E_T  ←  h^E_T − chi_{T,t}(w_t) + chi_{T,t}(w')

The decoder then runs on from there, in three ways:

``component``  over the same words as before (teacher forcing): whatever changes came through this one vector.
``read_too``   the same, but at step t + 1 it reads the word that goes with w', as it would if it wrote by
itself. ``real``       over the same words, from the last state of the sentence that really has w' at position
t.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.experiments.measures.memory import (
    BATCH,
    FIRST_WORD,
    fitted_encoder,
    one_length,
    read_corpus,
    words_of,
)
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.tasks.corpus import Batch, evaluation_batches

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

WAYS = ("component", "read_too", "real")
EFFECTS = ("margin", "variation", "flip")
SAMPLES = 512  # held-out sentences that are changed
DIGITS = 3


def measure_swap(trained: "TrainedModel", fit_samples: int) -> dict:
    """What changes at decoder step s when the word at source position t is exchanged in the last encoder
    state.

    For AED the attention still sees the encoder states of the sentence as it was: what changes is what the
    decoder starts with. One-to-one tasks only: target word t is the word of source word t, with the same id.

    Returns:
        plain JSON: ``length``, ``samples``, and for each of :data:`WAYS`, by (t, s) with s = 0 … length (the
        step that predicts target word s; the end mark last), means over sentences: ``margin`` (fall of
        logit(w_t) − logit(w')), ``variation`` (total variation between the predictions before and after),
        ``flip`` (share of sentences where w' is now the likeliest word and was not).

    Raises:
        BadInput: sentences of several lengths, or a task that is not one-to-one.
    """
    task, model = trained.task, trained.model
    n_words, length = words_of(task), one_length(task.train)
    if not np.array_equal(task.held_out.source_ids, task.held_out.target_ids):
        raise BadInput(f"task {task.name} is not one-to-one: which target word is exchanged is not known")
    training = task.train.subset(np.arange(min(fit_samples, len(task.train))))
    changed = task.held_out.subset(np.arange(min(SAMPLES, len(task.held_out))))
    draw = torch.Generator().manual_seed(0)
    sums = {way: torch.zeros(len(EFFECTS), length, length + 1, dtype=torch.float64) for way in WAYS}
    with torch.inference_mode():
        unrolled = fitted_encoder(read_corpus(model, training), n_words, length)
        components = unrolled.input.float()  # (length, words, width)
        for batch in evaluation_batches(changed, BATCH):
            words = batch.source[:, :-1] - FIRST_WORD
            # another word, each of the others equally likely
            others = (words + torch.randint(1, n_words, words.shape, generator=draw)) % n_words
            encoder_states, last = model.encode(batch.source, batch.source_mask)
            before = _logits(model, batch, encoder_states, last)
            for t in range(length):
                exchanged = last + components[t, others[:, t]] - components[t, words[:, t]]
                real = with_word(batch, t, others[:, t])
                _, real_last = model.encode(real.source, real.source_mask)
                runs = {
                    "component": (batch, exchanged),
                    "read_too": (real, exchanged),
                    "real": (batch, real_last),
                }
                for way, (read, start) in runs.items():
                    after = _logits(model, read, encoder_states, start)
                    sums[way][:, t] += _effects(before, after, words[:, t], others[:, t])
    found: dict = {"length": length, "samples": len(changed)}
    for way, total in sums.items():
        means = (total / len(changed)).numpy().round(DIGITS)
        found[way] = {name: means[i].tolist() for i, name in enumerate(EFFECTS)}
    return found


def with_word(batch: Batch, position: int, words: Int[Tensor, " batch"]) -> Batch:
    """The batch with other words (counted from 0) at one position of the source, and of what the decoder
    reads.

    The decoder reads target word t at step t + 1. What it is to predict stays.
    """
    source, read = batch.source.clone(), batch.target_input.clone()
    source[:, position] = words + FIRST_WORD
    read[:, position + 1] = words + FIRST_WORD
    return replace(batch, source=source, target_input=read)


def _logits(
    model: EncoderDecoder, batch: Batch, encoder_states: Tensor, start: Tensor
) -> Float[Tensor, "batch steps words"]:
    decoder_states = model.decode(batch.target_input, start)
    return model.attend(batch, encoder_states, decoder_states).logits


def _effects(
    before: Float[Tensor, "batch steps words"],
    after: Float[Tensor, "batch steps words"],
    words: Int[Tensor, " batch"],
    others: Int[Tensor, " batch"],
) -> Float[Tensor, "3 steps"]:
    """Sums over the batch of the three effects at each step."""

    def margin(logits: Tensor) -> Tensor:
        own, other = (
            logits.take_along_dim((ids + FIRST_WORD)[:, None, None], dim=2)[:, :, 0]
            for ids in (words, others)
        )
        return own - other

    variation = 0.5 * (before.softmax(-1) - after.softmax(-1)).abs().sum(-1)
    wanted = (others + FIRST_WORD)[:, None]
    flip = (after.argmax(-1) == wanted) & (before.argmax(-1) != wanted)
    effects = torch.stack([margin(before) - margin(after), variation, flip.to(variation.dtype)])
    return effects.double().sum(1)
