"""What the bag-of-words proxy learns first: its derivative at initialisation, in theory and measured.

Snell et al. 2021, section 4.1 and appendix A.2. The proxy says each target word of sentence pair m with

    p^m = softmax( W · mean of the embeddings e of the source words )         loss = − Σ_m Σ_s log p^m_{y_s}

and W_o, e_i ~ N(0, I/width). Gradient flow gives the logits θ̂_io = W_o · e_i the derivative

    dθ̂_io/dτ = W_o · de_i/dτ + dW_o/dτ · e_i

    W_o · de_i/dτ = Σ_m Σ_s n_i^m/L^m (W_o · W_{y_s} − Σ_o' p_o'^m W_o · W_o')
    dW_o/dτ · e_i = Σ_m Σ_s (1[y_s = o] − p_o^m) mean of e · e_i

where n_i^m is how often word i stands in the L^m words of source m.
As the width grows, W_o · W_o' → 1[o = o'], e_i · e_j → 1[i = j], p → 1/N for N target words, and both halves
come to the same:

    dθ̂_io/dτ → 2 (C_io − mean over o' of C_io')                                             (equation 54)

with the count table C (word_counts.py, beside). The probabilities θ_i = softmax(θ̂_i) follow by
the chain rule, dθ_io = θ_io (dθ̂_io − Σ_o' θ_io' dθ̂_io'). At θ = 1/N the sum is the mean of a centred row,
zero, so

    dθ_io/dτ → 2/N · (C_io − mean over o' of C_io')

**Where the paper differs.** Equation 15 prints the derivative of the probability θ as 2 (C − mean C): the
factor 1/N = θ(0) of the chain rule is missing. The value is right for the logits, which is what equation 54
derives and equation 55 states under the name γ. The conclusion drawn from it, that at the start output words
are ordered as C orders them, holds for both. Two signs slip on the way: equations 39 and 41 both bring in the
minus of gradient descent, equation 43 leaves it out, and equations 46 and 47 have it once, as above.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus

Table = Float[Tensor, "source_words target_words"]


@dataclass(frozen=True, eq=False)
class Bags:
    """All that the proxy sees of a corpus."""

    source: Float[Tensor, "samples source_words"]  #: share of each source word in each source, n_i/L
    target: Float[Tensor, "samples target_words"]  #: how often each target word stands in each target

    @classmethod
    def of(cls, corpus: Corpus, n_source: int, n_target: int) -> "Bags":
        """Bags in float64, ids as columns."""
        if not corpus.source_lengths.all():
            raise BadInput("a source without words has no mean embedding; leave such pairs out")
        check_ids(corpus, n_source, n_target)
        sides = []
        for ids, lengths, size in (
            (corpus.source_ids, corpus.source_lengths, n_source),
            (corpus.target_ids, corpus.target_lengths, n_target),
        ):
            bags = np.zeros((len(corpus), size))
            np.add.at(bags, (np.repeat(np.arange(len(corpus)), lengths), ids), 1)
            sides.append(torch.from_numpy(bags))
        source, target = sides
        return cls(source / source.sum(1, keepdim=True), target)

    @property
    def counts(self) -> Table:
        """C of equation 16."""
        return self.source.T @ self.target


def check_ids(corpus: Corpus, n_source: int, n_target: int) -> None:
    """Raises BadInput: a word has a higher id than there are words on its side."""
    for side, ids, size in (("source", corpus.source_ids, n_source), ("target", corpus.target_ids, n_target)):
        if len(ids) and ids.max() >= size:
            raise BadInput(f"a {side} word has id {ids.max()}, but there are {size} {side} words")


@dataclass(frozen=True, eq=False)
class Derivative:
    """dθ̂/dτ and dθ/dτ at the start of training: of the logits, and of the probabilities."""

    logits: Table
    probabilities: Table


def derivative_in_theory(bags: Bags) -> Derivative:
    """The limit of infinite width: 2 (C − mean C) for the logits, 2/N (C − mean C) for probabilities."""
    counts = bags.counts
    logits = 2 * (counts - counts.mean(1, keepdim=True))
    return Derivative(logits, logits / counts.shape[1])


def derivative_at_random(bags: Bags, width: int, seed: int) -> Derivative:
    """The derivative along gradient flow of a proxy drawn at random.

    It is the limit of (after − before) / rate over one gradient step as the rate goes to 0: the gradients of
    the loss by automatic differentiation, then the product rule and the derivative of softmax.
    """
    output, embeddings = random_proxy(bags, width, seed)
    output_slopes, embedding_slopes = gradients(bags, output, embeddings)
    logits = -(embedding_slopes @ output.T + embeddings @ output_slopes.T)
    probabilities = (embeddings @ output.T).softmax(-1)
    return Derivative(logits, probabilities * (logits - (probabilities * logits).sum(-1, keepdim=True)))


Output, Embeddings = Float[Tensor, "target_words width"], Float[Tensor, "source_words width"]


def random_proxy(bags: Bags, width: int, seed: int) -> tuple[Output, Embeddings]:
    """W and e, every entry from N(0, 1/width)."""
    if width < 1:
        raise BadInput(f"width is {width}; it must be at least 1")
    generator = torch.Generator().manual_seed(seed)
    output, embeddings = (
        torch.randn(bag.shape[1], width, generator=generator, dtype=torch.float64) / width**0.5
        for bag in (bags.target, bags.source)
    )
    return output, embeddings


def gradients(bags: Bags, output: Output, embeddings: Embeddings) -> tuple[Output, Embeddings]:
    """Of the loss, equation 14, summed over all target words, by W and e."""
    output, embeddings = (side.detach().requires_grad_() for side in (output, embeddings))
    log_probabilities = (bags.source @ embeddings @ output.T).log_softmax(-1)
    loss = -(bags.target * log_probabilities).sum()
    return torch.autograd.grad(loss, (output, embeddings))


@dataclass(frozen=True)
class Comparison:
    """A measured derivative against one in theory."""

    error: float  #: norm of the difference over the norm of the theory's
    slope: float  #: of the least-squares line through the origin, measured over theory: 1 where equal
    correlation: float  #: of the entries


def compare(measured: Table, theory: Table) -> Comparison:
    """How close the two are, over all pairs of words.

    >>> theory = torch.tensor([[2.0, -2.0], [0.0, 0.0]])
    >>> found = compare(theory / 2, theory)
    >>> round(found.error, 3), round(found.slope, 3), round(found.correlation, 3)
    (0.5, 0.5, 1.0)
    """
    size = theory.norm()
    if size == 0:
        raise BadInput("the derivative in theory is zero everywhere, so nothing can be compared with it")
    product = (measured * theory).sum()
    return Comparison(
        float((measured - theory).norm() / size),
        float(product / size**2),
        float(torch.corrcoef(torch.stack((measured.flatten(), theory.flatten())))[0, 1]),
    )
