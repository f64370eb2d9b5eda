"""Layers without torch's own initialisation, for networks that draw all their parameters themselves."""

import torch
from torch import nn


def undrawn_embedding(tokens: int, width: int) -> nn.Embedding:
    """An embedding, trained as any other, whose values stand for nothing yet.

    On the meta device the constructor of ``nn.Embedding`` draws as well, to no effect, by a route that loads
    torch's compiler: a second and a half in every process.

    >>> undrawn_embedding(7, 4)
    Embedding(7, 4)
    """
    return nn.Embedding.from_pretrained(torch.empty(tokens, width), freeze=False)
