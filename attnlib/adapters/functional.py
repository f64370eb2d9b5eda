"""Attention that is made by a call of torch, not by a module: seen, and replaced, while a module runs.

Much code calls ``torch.softmax``, ``Tensor.softmax``, ``F.softmax`` or ``F.scaled_dot_product_attention``
within one module. Torch lets a mode look at every such call (``torch.overrides.TorchFunctionMode``).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

SOFTMAXES = (torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax)
Change = Callable[[Tensor], Tensor]


class FunctionalAttention(TorchFunctionMode):
    """Gives every attention that is made by one of the functions to ``change``, and goes on with its result.

    An attention is a softmax along the last of three axes or more, or what scaled dot product attention makes
    of its query, key and mask before it takes the mean of the values. ``change`` None: it is only looked at.
    """

    def __init__(self, change: Change | None, seen: list[Tensor]):
        super().__init__()
        self.change, self.seen = change, seen

    def __torch_function__(self, function: Any, types: Any, given: tuple = (), named: dict | None = None):
        named = named or {}
        if function in SOFTMAXES:
            made = function(*given, **named)
            axis = named.get("dim", given[1] if len(given) > 1 else None)
            if made.dim() < 3 or axis not in (-1, made.dim() - 1):
                return made
            self.seen.append(made)
            return made if self.change is None else self.change(made)
        if function is F.scaled_dot_product_attention:
            weights, values = attention_of_arguments(*given, **named)
            self.seen.append(weights)
            return function(*given, **named) if self.change is None else self.change(weights) @ values
        return function(*given, **named)


def attention_of_arguments(
    query: Float[Tensor, "*batch target width"],
    key: Float[Tensor, "*batch source width"],
    value: Float[Tensor, "*batch source out"],
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Float[Tensor, "*batch target source"], Float[Tensor, "*batch source out"]]:
    """The weights that ``F.scaled_dot_product_attention`` gives its values, and these; by its definition.

    >>> states = torch.eye(2)[None, None]
    >>> weights, values = attention_of_arguments(states, states, states, is_causal=True)
    >>> found = F.scaled_dot_product_attention(states, states, states, is_causal=True)
    >>> torch.allclose(weights @ values, found)
    True
    """
    if enable_gqa:
        key, value = (own.repeat_interleave(query.shape[-3] // own.shape[-3], -3) for own in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    if attn_mask is not None:
        masks = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if masks else scores + attn_mask
    return scores.softmax(-1), value
