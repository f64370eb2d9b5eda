"""Greedy translation: the network reads its own words, the likeliest at every step."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.bilinear_translator import BilinearTranslator
from attnlib.tasks.vocabulary import BOS, EOS, PAD


@torch.no_grad()
def translate(
    model: BilinearTranslator,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    max_steps: int,
) -> Int[Tensor, "batch written"]:
    """What the network writes for each source: words, an end mark unless cut off, padding.

    Marks are never written but the end mark. Each step costs one step of the decoder. The model should be in
    evaluation mode.

    Args:
        max_steps: a sample without an end mark by then is cut off there.

    Raises:
        BadInput: ``max_steps`` < 1.
    """
    if max_steps < 1:
        raise BadInput(f"max_steps is {max_steps}; it must be at least 1")
    encoder_states, state = model.encode(model.embedding(source), source_mask)
    word = torch.full((len(source),), BOS, dtype=source.dtype, device=source.device)
    running = torch.ones_like(word, dtype=torch.bool)
    written = []
    for _ in range(max_steps):
        decoder_states, state = model.decoder(model.embedding(word[:, None]), state)
        _, attention = model.attend(encoder_states, source_mask, decoder_states)
        readout = model.readout
        logits = readout.logits(
            readout.from_context(attention @ encoder_states) + readout.from_decoder(decoder_states)
        )[:, 0]
        logits[:, [PAD, BOS]] = -torch.inf
        word = torch.where(running, logits.argmax(-1), PAD)
        written.append(word)
        running &= word != EOS
        if not running.any():
            break
    return torch.stack(written, dim=1)
