"""Draw parameters from a generator, with the distributions that torch's layers draw from global state."""

from typing import Any

import torch
from torch import nn


@torch.no_grad()
def draw_parameters(network: nn.Module, generator: torch.Generator) -> None:
    """Draw every parameter of a network, in the order of ``named_parameters``.

    Parameters whose name begins with ``embedding`` come from N(0, 1), all others uniformly from ±1/√inputs,
    in a recurrent layer from ±1/√width: torch's own distributions.

    Args:
        network: whose parameters are overwritten.
        generator: draws them.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> draw_parameters(layer, torch.Generator().manual_seed(0))
        >>> bool((layer.weight.abs() <= 0.5).all())
        True
    """
    for name, parameter in network.named_parameters():
        if name.startswith("embedding"):
            parameter.normal_(generator=generator)
        else:
            layer = network.get_submodule(name.rpartition(".")[0])
            inputs = fan_in(layer)
            parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)


def fan_in(layer: Any) -> int:
    """Return how many inputs each unit of a linear layer has; for a recurrent layer, its width.

    Args:
        layer: linear or recurrent.

    Example:
        >>> fan_in(nn.Linear(3, 2)), fan_in(nn.GRU(4, 5))
        (3, 5)
    """
    return layer.in_features if isinstance(layer, nn.Linear) else layer.hidden_size
