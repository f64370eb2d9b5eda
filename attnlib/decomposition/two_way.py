"""The exact two-way additive fit: states as position + token, by least squares.

    minimise  sum over occurrences |h - mu_t - chi(w)|^2

One averaging by position and then by token, as :class:`Components` does by default, is the first sweep of it;
the two agree where every token is spread over the positions alike. Everything here is a function of sums and
counts: with counts C (tokens × positions), position sums P, token sums S, and n_t, n_w the margins of C,

    n_t mu_t   + sum_w C_wt chi(w) = P_t        n_w chi(w) + sum_t C_wt mu_t = S_w .

The tokens are eliminated, which leaves a (positions × positions) matrix: the Laplacian of the graph in which
two positions are joined by the tokens that occur at both. (A standard result of the two-way layout without
interaction: Searle, *Linear Models*, 1971, chapter 7.)

**Free constants.** On each connected piece of the graph a constant can move from mu to chi unseen. A start
mark that only ever stands at position 0 makes a piece of its own with that position. Fitted values, residuals
and the variance explained do not depend on how these constants are chosen; what mu and chi are, and so the
terms of scores made of them, does. :func:`two_way` makes the count-weighted sum of chi over the corpus zero,
and what is left free beyond that takes the solution of least norm (the sum of squares of all mu and chi).
That weighs a piece by how many words were seen in it, which grows with the corpus, and mu and chi with it.
:func:`centred_by_piece` makes the sum of chi zero on every piece, which holds of a text however much is read
of it: analyses have it so.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput

ByPosition = Float[Tensor, "positions width"]
ByToken = Float[Tensor, "tokens width"]
Counts = Int[Tensor, "tokens positions"]
_TOKENS_AT_ONCE = 1024  # whose positions are listed at once
Fit = tuple[ByPosition, ByToken]  # mu and chi


@dataclass(frozen=True)
class VarianceExplained:
    """Shares of the variance of states around their grand mean, summed over the width.

    All are NaN where the states do not vary.
    """

    temporal: float  #: by the best fit of position alone (the mean by position)
    additive: float  #: by position and token together
    temporal_unique: float  #: what position adds to the best fit of token alone
    input_unique: float  #: what token adds to the best fit of position alone


def means_of(position_sums: ByPosition, token_sums: ByToken, counts: Counts) -> Fit:
    """mu, the means by position, and chi, the means by token of what is left."""
    pairs = counts.double()
    temporal = position_sums / pairs.sum(0).clamp(min=1)[:, None]
    inputs = (token_sums - pairs @ temporal) / pairs.sum(1).clamp(min=1)[:, None]
    return temporal, inputs


def two_way(position_sums: ByPosition, token_sums: ByToken, counts: Counts) -> Fit:
    """Return μ and χ, zero for positions and tokens that were never seen. Sums must be float64."""
    pairs = counts.double()
    n_token, n_position = pairs.sum(1), pairs.sum(0)
    share = pairs / n_token.clamp(min=1)[:, None]  # of a token's occurrences, at each position
    laplacian = torch.diag(n_position) - pairs.T @ share
    rest = position_sums - share.T @ token_sums

    pieces = connected_pieces(counts)  # (pieces, positions)
    # The Laplacian's null space is known: one indicator for each piece, and each unseen position. Filling it
    # up gives the pseudo-inverse's solution without a decision about which small numbers are zero.
    seen = n_position > 0
    null = pieces / pieces.sum(1, keepdim=True).sqrt()
    filled = laplacian + n_position.max().clamp(min=1) * (null.T @ null + torch.diag((~seen).double()))
    temporal = torch.linalg.solve(filled, rest) * seen[:, None]
    inputs = (token_sums - pairs @ temporal) / n_token.clamp(min=1)[:, None]
    return _least_norm(temporal, inputs, pairs=pairs, pieces=pieces)


def connected_pieces(counts: Counts) -> Float[Tensor, "pieces positions"]:
    """Indicators of the sets of seen positions that shared tokens connect, directly or through others."""
    edges = _edges(counts)
    labels = np.arange(counts.shape[1])  # of each position; in the end the first position of its piece
    while True:
        lowest = labels[edges].min(1)  # of the two ends of each edge
        lower = labels.copy()
        np.minimum.at(lower, edges[:, 0], lowest)
        np.minimum.at(lower, edges[:, 1], lowest)
        lower = lower[lower]  # what a label points to is as low, or lower
        if np.array_equal(lower, labels):
            break
        labels = lower
    is_seen = (counts.sum(0) > 0).cpu().numpy()
    firsts = np.unique(labels[is_seen])
    pieces = torch.from_numpy(labels == firsts[:, None])
    return pieces.double().to(counts.device)


def _edges(counts: Counts) -> Int[np.ndarray, "edges 2"]:
    """Pairs of positions that a token joins: each with the next at which the same token occurs."""
    is_joined = torch.zeros(counts.shape[1], counts.shape[1], dtype=torch.bool)
    for some in counts.split(_TOKENS_AT_ONCE):
        tokens, positions = (some > 0).cpu().nonzero().unbind(1)
        same = tokens[1:] == tokens[:-1]
        is_joined[positions[:-1][same], positions[1:][same]] = True
    return is_joined.nonzero().numpy()


def centred_by_piece(temporal: ByPosition, inputs: ByToken, counts: Counts) -> Fit:
    """The same sums mu + chi with the count-weighted sum of chi zero on every connected piece.

    Averages by position have it so of themselves: all that a mark and the one place it stands at share goes
    to the place. To set two fits side by side, bring both to this form.
    """
    pairs = counts.double()
    pieces = connected_pieces(counts)
    of_token = (pairs @ pieces.T > 0).double()  # (tokens, pieces)
    moved = (of_token.T * pairs.sum(1)) @ inputs / (pieces @ pairs.sum(0))[:, None]
    return temporal + pieces.T @ moved, inputs - of_token @ moved


def _least_norm(temporal: ByPosition, inputs: ByToken, *, pairs: Tensor, pieces: Tensor) -> Fit:
    """The same fit with the free constants chosen: count-weighted sum of chi zero, then least norm.

    With c_k moved from chi to mu on piece k, the norm is least at a_k / m_k (m_k parameters; a_k the sum of
    chi minus the sum of mu on k) and the constraint sum_k n_k c_k = sum_w n_w chi(w) adds a multiple
    of n_k / m_k.
    """
    of_token = (pairs @ pieces.T > 0).double()  # (tokens, pieces)
    parameters = pieces.sum(1) + of_token.sum(0)
    occurrences = pieces @ pairs.sum(0)
    free = (of_token.T @ inputs - pieces @ temporal) / parameters[:, None]
    missing = pairs.sum(1) @ inputs - occurrences @ free  # (width,)
    slope = occurrences / parameters
    moved = free + slope[:, None] * missing / (slope @ occurrences).clamp(min=1e-300)
    return temporal + pieces.T @ moved, inputs - of_token @ moved


def variance_explained(
    position_sums: ByPosition, token_sums: ByToken, counts: Counts, *, square_sum: float
) -> VarianceExplained:
    """Shares of variance from the same sums and the sum of the squared norms of all states.

    Raises:
        BadInput: the counts are all zero.
    """
    pairs = counts.double()
    occurrences = float(pairs.sum())
    if not occurrences:
        raise BadInput("These components hold no samples yet: call update before variance_explained.")
    temporal, inputs = two_way(position_sums, token_sums, counts)
    mean = float(position_sums.sum(0).square().sum()) / occurrences
    total = square_sum - mean
    # Rounding in the sums of squares is what a share of a variance below it would be made of.
    if total <= 1e-12 * square_sum:
        return VarianceExplained(*(float("nan"),) * 4)

    def alone(sums: Tensor, n: Tensor) -> float:
        return float((sums.square().sum(1) / n.clamp(min=1)).sum()) - mean

    by_position = alone(position_sums, pairs.sum(0)) / total
    by_token = alone(token_sums, pairs.sum(1)) / total
    additive = (float((temporal * position_sums).sum() + (inputs * token_sums).sum()) - mean) / total
    return VarianceExplained(by_position, additive, additive - by_token, additive - by_position)
