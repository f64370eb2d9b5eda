"""Which way a copying network uses its attention, by moving it: to one word alone, or to all words but one.

The lexical probe asks for the right word's probability wherever attention stands. Here attention is put where
it does not belong, on a word that is to be said later, and the question is whether that word is said now. A
network that says what it attends to says the word that it is shown; one whose attention avoids the word to be
said, and that tells it by what is missing, says the word that is left out. Ours, not in the paper.

The two are not equally strong: one word alone makes another context than all words do, while leaving one out
changes it by 1/(length − 1). And a recurrent state carries more than its own word.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.models.copier import Copier, CopierTrace, CopyBatch


def moved_attention(model: Copier, trace: CopierTrace, batch: CopyBatch) -> dict[str, Float[Tensor, ""]]:
    """How often the network says a word that attention has been moved to or away from, in all heads alike.

    Ahead of their time are asked words that the decoder has not read: at step s of the first half, the word
    due at s + ⌊length / 2⌋.

    Returns:
        ``says_shown``, the share of words said ahead of their time when all attention stands at their place;
        ``says_left_out``, the same when it is spread evenly over all other places;
        ``right_without``, the share of words said when they are due and attention is spread evenly over all
        places but theirs; ``right_at_uniform``, when it is spread over all places.
    """
    length = trace.encoder_states.shape[1]
    ahead = batch.target.shape[1] // 2
    due = torch.nn.functional.one_hot(batch.place, length).to(trace.encoder_states.dtype)
    without = (1 - due) / (length - 1)

    def said(attention: Tensor, words: Tensor) -> Float[Tensor, ""]:
        steps = attention.shape[0]
        context = model.config.heads * (attention @ trace.encoder_states)  # (batch, steps, width)
        answer = model.read_out(context, trace.decoder_states[:, :steps]).argmax(dim=-1)
        return (answer == words).float().mean()

    return {
        "says_shown": said(due[ahead:], batch.target[:, ahead:]),
        "says_left_out": said(without[ahead:], batch.target[:, ahead:]),
        "right_without": said(without, batch.target),
        "right_at_uniform": said(torch.full_like(due, 1 / length), batch.target),
    }


def weight_on_later(attention: Float[Tensor, "batch target source"], batch: CopyBatch) -> Float[Tensor, ""]:
    """Mean weight on a word that is to be said after the one that is due; the last step has no such word."""
    by_time = attention[:, :, batch.place]  # source words in the order in which they are said
    steps = by_time.shape[1]
    later = by_time.triu(diagonal=1).sum(dim=-1)[:, :-1]
    return (later / torch.arange(steps - 1, 0, -1, device=later.device)).mean()
