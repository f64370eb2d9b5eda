"""How many bits of a sequence a linear softmax reads off one vector: a lower bound on what is kept there."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput

_ITERATIONS = 100


def probe_bits(
    fitted: Float[Tensor, "samples width"],
    fitted_words: Int[Tensor, "samples length"],
    judged: Float[Tensor, "others width"],
    judged_words: Int[Tensor, "others length"],
    *,
    words: int,
    penalty: float = 1e-3,
) -> Float[Tensor, " length"]:
    """Bits about the word at each position that a softmax regression finds in a vector.

    At each position a map of its own from the vector to the words is fitted, and judged on other samples:
    log2(words) less its cross-entropy in bits. Where words are drawn evenly and independently, a sum over
    positions is a lower bound on the mutual information of vector and sequence (Barber and Agakov 2003), so
    on what the vector keeps. A probe worse than guessing gives a negative number.

    Args:
        fitted, judged: vectors of samples that the probe is fitted on, and of others; standardised by the
            first.
        words: of the vocabulary; ids count from 0.
        penalty: half of it times the squared weights is added to the mean loss of a position.

    Returns:
        bits, by position.

    Raises:
        BadInput: no samples, or a word beyond the vocabulary.
    """
    if not len(fitted) or not len(judged):
        raise BadInput(f"{len(fitted)} samples to fit on and {len(judged)} to judge on; give some of each")
    for ids in (fitted_words, judged_words):
        if int(ids.min()) < 0 or int(ids.max()) >= words:
            raise BadInput(f"word ids from {int(ids.min())} to {int(ids.max())}; expected 0 … {words - 1}")
    mean, spread = fitted.double().mean(0), fitted.double().std(0, correction=0).clamp(min=1e-6)
    (inputs, others) = ((part.double() - mean) / spread for part in (fitted, judged))
    length = fitted_words.shape[1]
    weight = torch.zeros(length, inputs.shape[1], words, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(length, 1, words, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=_ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def loss_of(vectors: Tensor, ids: Tensor) -> Tensor:
        log_probability = (vectors @ weight + bias).log_softmax(-1)  # (length, samples, words)
        return -log_probability.gather(-1, ids.T[..., None])[..., 0].mean(1)  # nats, by position

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss_of(inputs, fitted_words).sum() + penalty / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimiser.step(closure)
    with torch.no_grad():
        return (math.log(words) - loss_of(others, judged_words)) / math.log(2)
