"""Select what counts in a trace: whole samples, chosen heads, and attention among the counted positions."""

from collections.abc import Collection
from typing import TypeGuard

from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.softmax import softmax_over
from attnlib.trace import Attention, Trace


def whole_samples(trace: Trace) -> Bool[Tensor, " batch"]:
    """Return True for samples that have a counted position on both sides."""
    has_source = trace.counted("source").any(1)  # (batch,)
    has_target = trace.counted("target").any(1)  # (batch,)
    return has_source & has_target


def chosen_heads(attention: Attention, heads: Collection[int] | None) -> list[int]:
    """Return the numbers of the heads to analyse, ascending; all heads by default.

    Args:
        attention: the attention that the heads belong to.
        heads: their numbers, from 0; None for all heads.

    Raises:
        BadInput: a head that the attention does not have.
    """
    existing = range(attention.heads)
    if heads is None:
        return list(existing)
    absent = sorted(set(heads) - set(existing))
    if absent:
        raise BadInput(f"heads {absent}: {attention.name} has {attention.heads}, counted from 0")
    return sorted(heads)


def counted_attention(
    trace: Trace, attention: Attention, heads: int | list[int]
) -> tuple[Float[Tensor, "*heads batch target source"], Bool[Tensor, "batch target source"]]:
    """Return the attention weights among the positions that count, and where those are.

    Each row sums to one over the counted positions, or is zero where there is none. Where no position is
    ignored these are the weights that the model returned, if it returned any.

    Args:
        trace: its masks say which positions count.
        attention: one of its attentions.
        heads: the number of one head, or those of several, which come along the first axis.

    Returns:
        The weights, and True where a query may see a key and both count.
    """
    query_side, key_side = trace.sides(attention.kind)
    allowed = attention.allowed(trace.counted(query_side), trace.counted(key_side))
    if _can_be_used(attention.weights, trace):
        samples = len(allowed)
        weights = of_heads(attention.weights.expand(samples, -1, -1, -1), heads)
    else:
        scores = of_heads(attention.scores, heads)  # (*heads, batch, target, source)
        weights = softmax_over(scores, allowed)
    # A row without any allowed position is padding, or sees ignored positions alone: its softmax is NaN.
    return weights.masked_fill(~allowed, 0), allowed


def _can_be_used(returned: Tensor | None, trace: Trace) -> TypeGuard[Tensor]:
    """Return True if the model's own weights can be taken: none ignored, and single precision at least."""
    if returned is None or returned.element_size() < 4:
        return False
    return trace.ignored_source is None and trace.ignored_target is None


def of_heads(
    tensor: Float[Tensor, "batch heads target source"], heads: int | list[int]
) -> Float[Tensor, "*heads batch target source"]:
    """Return the chosen heads of a tensor, the heads first; one head alone has no axis of heads."""
    if isinstance(heads, int):
        return tensor[:, heads]
    if heads == list(range(tensor.shape[1])):
        return tensor.transpose(0, 1)
    return tensor[:, heads].transpose(0, 1)
