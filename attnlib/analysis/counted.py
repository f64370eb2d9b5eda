"""What counts of a pass: whole samples, chosen heads, attention among the positions that count."""

from collections.abc import Collection

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.trace import Attention, Trace


def whole_samples(model_pass: Trace) -> Bool[Tensor, " batch"]:
    """Return True for samples of which something counts on both sides."""
    return model_pass.counted("source").any(1) & model_pass.counted("target").any(1)


def chosen_heads(attended: Attention, heads: Collection[int] | None) -> list[int]:
    """Return the numbers of the heads that are looked at, all of an attention by default.

    Raises:
        BadInput: a head that the attention does not have.
    """
    if heads is None:
        return list(range(attended.heads))
    absent = sorted(set(heads) - set(range(attended.heads)))
    if absent:
        raise BadInput(f"heads {absent}: {attended.name} has {attended.heads}, counted from 0")
    return sorted(heads)


def counted_attention(
    model_pass: Trace, attended: Attention, heads: int | list[int]
) -> tuple[Float[Tensor, "*heads batch target source"], Bool[Tensor, "batch target source"]]:
    """Return the attention among the positions that count, and where that is.

    Each row sums to one over the positions that count, or is zero where none does. Where no position is
    ignored this is the model's attention, and taken from it if it was caught.

    Args:
        model_pass: the pass, whose masks say which positions count.
        attended: one of its attentions.
        heads: of one head, or of several along the first axis.
    """
    query_side, key_side = model_pass.sides(attended.kind)
    allowed = attended.allowed(model_pass.counted(query_side), model_pass.counted(key_side))
    caught = attended.attention
    nothing_ignored = model_pass.ignored_source is None and model_pass.ignored_target is None
    if caught is not None and caught.element_size() >= 4 and nothing_ignored:
        attention = of_heads(caught.expand(len(allowed), -1, -1, -1), heads)
    else:
        attention = of_heads(attended.scores, heads).masked_fill(~allowed, -torch.inf).softmax(-1)
    # A row without anything allowed is padding, or sees only what is ignored: it is zero.
    return attention.masked_fill(~allowed, 0), allowed


def of_heads(
    tensor: Float[Tensor, "batch heads target source"], heads: int | list[int]
) -> Float[Tensor, "*heads batch target source"]:
    """Return some heads of a tensor, the heads first."""
    if isinstance(heads, int):
        return tensor[:, heads]
    if heads == list(range(tensor.shape[1])):
        return tensor.transpose(0, 1)
    return tensor[:, heads].transpose(0, 1)
