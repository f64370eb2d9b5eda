"""A network that reads what it wrote itself, as it has to where no translation is given."""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.corpus import Batch
from attnlib.training.vocabulary import BOS, EOS, PAD


@torch.no_grad()
def greedy(model: EncoderDecoder, batch: Batch, max_steps: int) -> Batch:
    """The sources of a batch with the words the model itself writes, the likeliest at every step.

    A sample without an end mark is cut off. Decoder states depend on what was read alone, so the model's
    trace of this batch is that of the free-running network.
    """
    encoder_states, last = model.encode(batch.source, batch.source_mask)
    read = torch.full((len(batch), 1), BOS, dtype=batch.source.dtype, device=batch.source.device)
    written = read[:, :0]
    running = torch.ones(len(batch), dtype=torch.bool, device=read.device)
    for _ in range(max_steps):
        # The whole prefix is read again: networks of this size decode in a moment, and one path stays tested.
        states = model.decode(read, last)
        logits = model.attend(batch, encoder_states, states[:, -1:]).logits[:, 0]
        logits[:, [PAD, BOS]] = -torch.inf
        word = torch.where(running, logits.argmax(-1), PAD)
        written = torch.cat([written, word[:, None]], dim=1)
        running &= word != EOS
        if not running.any():
            break
        read = torch.cat([read, word[:, None]], dim=1)
    return with_target(batch, written)


def with_target(batch: Batch, written: Int[Tensor, "batch target"]) -> Batch:
    first = torch.full_like(written[:, :1], BOS)
    return replace(
        batch,
        target_input=torch.cat([first, written[:, :-1].masked_fill(written[:, :-1] == EOS, PAD)], dim=1),
        target_output=written,
        target_mask=written != PAD,
    )
