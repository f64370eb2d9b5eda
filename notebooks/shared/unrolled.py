"""One state as a sum over the words read so far, for networks that keep a sentence in one vector.

    h_T = mu_T + sum_t chi_{T,t}(w_t) + residual

h_T is the state at one fixed step T, w_t the word at position t. The sum is fitted by least squares on
one-hot codes of (position, token), with the count-weighted mean of chi_{T,t} zero at every position, so mu_T
is the mean state. For a linear recurrence h_t = A h_{t-1} + B x_t the fit is exact and chi_{T,t}(w) = A^(T-t)
B (x(w) - mean x): what the network still holds at T of the word that it read at t. The text of Aitken et al.
2021 that we have does not define an input component for a network without attention; this one is ours.
"""

from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from attnlib.errors import BadInput

LARGEST = 4_096  # length × tokens; the matrix of the normal equations has this squared, 134 MB at this size
_RANK = 1e-10  # eigenvalues below this part of the largest are zero: codes are counts, so these are rounding


@dataclass(frozen=True)
class UnrolledVariance:
    """Shares of the variance of h_T around its mean, summed over the width; NaN where it does not vary."""

    total: float  #: by all words together
    #: variance of chi_{T,t}(w_t) at each position t; these sum to ``total`` where words are drawn
    #: independently of each other
    of_position: tuple[float, ...]
    #: what position t adds to the best fit by all the other positions; empty where not asked for
    unique: tuple[float, ...]


class UnrolledComponents:
    """Normal equations of h_T on the words at ``length`` positions: one pass, mergeable.

        unrolled = UnrolledComponents(n_tokens=6, length=5, width=64)
        for tokens, states in batches:                  # (batch, 5), (batch, 64)
            unrolled.update(tokens, states)
        unrolled.temporal, unrolled.input               # (64,), (5, 6, 64)

    The positions may be any places whose words the state may hold: source words, then words read by a
    decoder. Raises BadInput: ``length × n_tokens`` above :data:`LARGEST`.
    """

    def __init__(self, n_tokens: int, length: int, width: int, *, device: torch.device | str = "cpu"):
        for name, size in (("n_tokens", n_tokens), ("length", length), ("width", width)):
            if size < 1:
                raise BadInput(f"UnrolledComponents({name}={size}): sizes start at 1.")
        if length * n_tokens > LARGEST:
            raise BadInput(
                f"UnrolledComponents of {length} positions × {n_tokens} tokens need a matrix of "
                f"{length * n_tokens:,} squared; at most {LARGEST:,}: take shorter sentences or fewer words."
            )
        self.n_tokens, self.length, self.width = n_tokens, length, width
        codes = length * n_tokens
        self.pair_counts = torch.zeros(codes, codes, dtype=torch.float64, device=device)
        self.sums = torch.zeros(codes, width, dtype=torch.float64, device=device)
        self.square_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._solved: tuple[Tensor, Tensor] | None = None

    def _codes(self, tokens: Tensor) -> Float[Tensor, "batch codes"]:
        one_hot = torch.nn.functional.one_hot(tokens.long(), self.n_tokens)
        return one_hot.flatten(1).double().to(self.sums.device)

    def _states(self, tokens: Tensor, states: Tensor) -> Float[Tensor, "batch width"]:
        rows = states.detach().double().to(self.sums.device)
        if not bool(rows.isfinite().all()):
            raise BadInput("States that are not finite: nothing was added. Has the training diverged?")
        return rows

    def update(self, tokens: Integer[Tensor, "batch length"], states: Float[Tensor, "batch width"]) -> Self:
        """Adds the states at step T of samples that read these words; BadInput for states not finite."""
        codes, rows = self._codes(tokens), self._states(tokens, states)
        self.pair_counts += codes.T @ codes
        self.sums += codes.T @ rows
        self.square_sum += rows.square().sum()
        self._solved = None
        return self

    def merge(self, other: Self) -> Self:
        """New components of the two corpora together; both arguments stay as they are."""
        sizes = self.n_tokens, self.length, self.width
        merged = type(self)(*sizes, device=self.sums.device)
        for name in ("pair_counts", "sums", "square_sum"):
            mine = getattr(self, name)
            setattr(merged, name, mine + getattr(other, name).to(mine.device))
        return merged

    __add__ = merge

    @property
    def samples(self) -> int:
        return int(self.pair_counts.diagonal()[: self.n_tokens].sum())

    @property
    def counts(self) -> Float[Tensor, "length tokens"]:
        """Occurrences of each token at each position."""
        return self.pair_counts.diagonal().view(self.length, self.n_tokens)

    @property
    def temporal(self) -> Float[Tensor, " width"]:
        """mu_T, the mean state, float64."""
        return self._solution()[0]

    @property
    def input(self) -> Float[Tensor, "length tokens width"]:
        """chi_{T,t}(w), float64; zero for a word never seen at t."""
        return self._solution()[1]

    def _centred(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean state, and the normal equations around the means of codes and states."""
        counts = self.pair_counts.diagonal()
        mean = self.sums[: self.n_tokens].sum(0) / self.samples
        return (
            mean,
            self.pair_counts - torch.outer(counts, counts) / self.samples,
            self.sums - torch.outer(counts, mean),
        )

    def _solution(self) -> tuple[Tensor, Tensor]:
        if self._solved is None:
            mean, matrix, right = self._centred()
            inputs = _least_norm(matrix, right).view(self.length, self.n_tokens, self.width)
            average = (self.counts[:, :, None] * inputs).sum(1, keepdim=True) / self.samples
            self._solved = mean, (inputs - average) * (self.counts > 0)[:, :, None]
        return self._solved

    def contributions(self, tokens: Integer[Tensor, "batch length"]) -> Float[Tensor, "batch length width"]:
        """chi_{T,t}(w_t) of each position of each sample, float64."""
        self._codes(tokens)  # for its errors
        return self.input[torch.arange(self.length), tokens.long().to(self.sums.device)]

    def predict(self, tokens: Integer[Tensor, "batch length"]) -> Float[Tensor, "batch width"]:
        """mu_T + sum_t chi_{T,t}(w_t), float64."""
        return self.temporal + self.contributions(tokens).sum(1)

    def r_squared(
        self, tokens: Integer[Tensor, "batch length"], states: Float[Tensor, "batch width"]
    ) -> float:
        """Share of the variance of given states (held-out ones, say) around their mean that words explain."""
        rows = self._states(tokens, states)
        error = (rows - self.predict(tokens)).square().sum()
        total = (rows - rows.mean(0)).square().sum()
        return float(1 - error / total) if float(total) > 0 else float("nan")

    def variance_explained(self, *, unique: bool = True) -> UnrolledVariance:
        """Shares of the variance of the states so far; the unique ones cost one more solution a position."""
        mean, matrix, right = self._centred()
        variance = float(self.square_sum - self.samples * mean.square().sum())
        if variance <= 1e-12 * float(self.square_sum):
            nothing = (float("nan"),) * self.length
            return UnrolledVariance(float("nan"), nothing, nothing if unique else ())
        total = float((self.input.flatten(0, 1) * right).sum()) / variance
        of_position = (self.counts[:, :, None] * self.input.square()).sum((1, 2)) / variance
        alone = []
        for position in range(self.length if unique else 0):
            others = torch.ones(self.length, dtype=torch.bool, device=matrix.device)
            others[position] = False
            kept = others.repeat_interleave(self.n_tokens)
            without = _least_norm(matrix[kept][:, kept], right[kept])
            alone.append(total - float((without * right[kept]).sum()) / variance)
        return UnrolledVariance(total, tuple(of_position.tolist()), tuple(alone))


def _least_norm(matrix: Tensor, right: Tensor) -> Tensor:
    """The least-norm solution of a positive semidefinite system."""
    if not matrix.numel():
        return right
    values, vectors = torch.linalg.eigh(matrix)
    keep = values > _RANK * values[-1].clamp(min=1)
    return vectors[:, keep] @ ((vectors[:, keep].T @ right) / values[keep][:, None])
