"""The proxy for what a classifier learns before its attention: a bag of words (Snell et al. 2021, 2.3).

Equation 5 with the one score of section 2.4 in place of a softmax over two:

    logit = 1/L Σ_l W · e_{x_l};    p(label 1) = σ(logit);    β^px_l = σ(±W · e_{x_l})    (equation 6)

The marks at both ends of a text are words like any other. Equation 5 has no bias, so neither has W.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput


class ClassifierProxy(nn.Module):
    """The proxy, its parameters drawn from ``generator`` alone, both from N(0, 1 / width) (section 4.1).

    Args:
        words: size of the vocabulary, marks included.
        width: of a word's vector.

    Raises:
        BadInput: a size below 1.
    """

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        if words < 1 or width < 1:
            raise BadInput(f"words is {words} and width {width}; both must be at least 1")
        self.embedding = nn.Parameter(torch.randn(words, width, generator=generator) * width**-0.5)
        self.readout = nn.Parameter(torch.randn(width, generator=generator) * width**-0.5)

    def forward(
        self, tokens: Int[Tensor, "batch length"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, " batch"]:
        """Log odds of label 1."""
        return (self.log_odds(tokens) * mask).sum(1) / mask.sum(1)

    def log_odds(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length"]:
        """Log odds of label 1 if each word stood alone: W · e_x."""
        return nn.functional.embedding(tokens, self.embedding) @ self.readout
