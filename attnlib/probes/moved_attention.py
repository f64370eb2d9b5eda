"""Which way a copying network uses its attention, by moving it: to one word alone, or to all words but one.

The lexical probe asks for the right word's probability wherever attention stands. Here attention is put where
it does not belong, on a word that is to be said later, and the question is whether that word is said now. A
network that says what it attends to says the word that it is shown; one whose attention avoids the word to be
said, and that tells it by what is missing, says the word that is left out. Ours, not in the paper.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.models.copier import Copier, CopierTrace
from attnlib.tasks.copying import CopyBatch


def moved_attention(model: Copier, trace: CopierTrace, batch: CopyBatch) -> dict[str, Float[Tensor, ""]]:
    """How often the network says, ahead of its time, a word that attention has been moved to or away from.

    Steps s of the first half are asked, about the word due at s + ⌊length / 2⌋: the decoder has not read it.

    Returns:
        ``says_shown``, the share of these words that are said when all attention stands at their place;
        ``says_left_out``, the same when it is spread evenly over all other places. Every head does the same.
    """
    ahead = batch.target.shape[1] // 2
    asked = batch.target.shape[1] - ahead
    length = trace.encoder_states.shape[1]
    shown = torch.nn.functional.one_hot(batch.place[ahead:], length).to(trace.encoder_states.dtype)
    moved = {"says_shown": shown, "says_left_out": (1 - shown) / (length - 1)}
    return {
        name: _said(model, trace, attention, batch.target[:, ahead:], asked)
        for name, attention in moved.items()
    }


def _said(
    model: Copier,
    trace: CopierTrace,
    attention: Float[Tensor, "asked source"],
    words: Tensor,
    asked: int,
) -> Float[Tensor, ""]:
    context = model.config.heads * (attention @ trace.encoder_states)  # (batch, asked, width)
    said = model.read_out(context, trace.decoder_states[:, :asked]).argmax(dim=-1)
    return (said == words).float().mean()
