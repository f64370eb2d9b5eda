"""The proxy for what is learned before attention is: a bag of words (Snell et al. 2021, section 2.3)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class BagOfWords(nn.Module):
    """p = softmax(W · mean of e_x over the source words), the same at every step (equation 5).

    W and e are drawn from N(0, 1 / width), the initialisation that equation 15 is about.
    """

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        draw = (torch.randn(words, width, generator=generator) * width**-0.5 for _ in range(2))
        self.embedding, self.readout = (nn.Parameter(values) for values in draw)

    def forward(self, source: Int[Tensor, "batch source"]) -> Float[Tensor, "batch words"]:
        """Logits of the target words, from the set of source words alone."""
        return self.embedding[source].mean(dim=1) @ self.readout.T

    def dictionary(self) -> Float[Tensor, "words words"]:
        """θ[i, o] = softmax(W e_i)_o: the probability that source word i says target word o (equation 13)."""
        return (self.embedding @ self.readout.T).softmax(dim=-1)


def bag_of_words_loss(
    model: BagOfWords, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target words, in nats a word (equation 14, averaged).

    All steps of a sentence share one distribution, so its log-probabilities are computed once.
    """
    return -model(source).log_softmax(dim=-1).gather(1, target).mean()
