"""Parameters drawn from a generator of their own, as torch's layers draw theirs from global state."""

from typing import Any

import torch
from torch import nn


@torch.no_grad()
def draw_parameters(network: nn.Module, generator: torch.Generator) -> None:
    """Draw every parameter, in the order of ``named_parameters``.

    Those whose name begins with ``embedding`` come from N(0, 1), all else uniformly from ±1/√inputs, for a
    recurrent layer from ±1/√width: torch's own distributions.
    """
    for name, parameter in network.named_parameters():
        if name.startswith("embedding"):
            parameter.normal_(generator=generator)
        else:
            layer = network.get_submodule(name.rpartition(".")[0])
            inputs = fan_in(layer)
            parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)


def fan_in(layer: Any) -> int:
    """Return how many inputs each unit of a linear layer has; of a recurrent layer, its width.

    >>> fan_in(nn.Linear(3, 2)), fan_in(nn.GRU(4, 5))
    (3, 5)
    """
    return layer.in_features if isinstance(layer, nn.Linear) else layer.hidden_size


def undrawn_embedding(tokens: int, width: int) -> nn.Embedding:
    """An embedding, trained as any other, whose values stand for nothing yet.

    On the meta device the constructor of ``nn.Embedding`` draws as well, to no effect, by a route that loads
    torch's compiler: a second and a half in every process.
    """
    return nn.Embedding.from_pretrained(torch.empty(tokens, width), freeze=False)
