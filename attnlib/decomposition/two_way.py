"""The exact two-way additive fit: states as position + token, by least squares.

    minimise  sum over occurrences |h - mu_t - chi(w)|^2

Averaging once by position and then by token, as :class:`Components` does by default, is its first sweep; the
two agree if every token has the same distribution over positions. Everything here is a function of sums and
counts: with counts C (tokens × positions), position sums P, token sums S, and n_t, n_w the margins of C,

    n_t mu_t   + sum_w C_wt chi(w) = P_t        n_w chi(w) + sum_t C_wt mu_t = S_w .

The tokens are eliminated, which leaves a (positions × positions) matrix: the Laplacian of the graph in which
two positions are joined by the tokens that occur at both. (A standard result for the two-way layout without
interaction: Searle, *Linear Models*, 1971, chapter 7.)

**Free constants.** On each connected piece of the graph a constant can move from mu to chi without changing
the fit. A start mark that occurs at position 0 alone is such a piece, together with that position. Fitted
values, residuals and the variance explained do not depend on the choice of these constants; mu and chi do,
and so do the terms of scores. :func:`two_way` makes the count-weighted sum of chi over the corpus zero; any
freedom beyond that is removed by the least norm (the sum of squares of all mu and chi). The least norm weighs
a piece by the number of distinct words seen in it, so mu and chi change as the corpus grows.
:func:`centred_by_piece` makes the sum of chi zero on every piece, which does not depend on how much of a text
has been read. Analyses use it.
"""

import math
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
TwoWayFit = tuple[ByPosition, ByToken]  # mu and chi


@dataclass(frozen=True, kw_only=True)
class VarianceExplained:
    """Shares of the variance of states around their grand mean, summed over the width.

    All are NaN if the states do not vary.

    Attributes:
        temporal: explained by the best fit of position alone (the mean by position), from 0 to 1.
        additive: explained by position and token together, from 0 to 1.
        temporal_unique: what position adds to the best fit of token alone.
        input_unique: what token adds to the best fit of position alone.

    Example:
        >>> from attnlib.decomposition.components import Components
        >>> states = torch.tensor([[[0.0], [1.0]], [[2.0], [3.0]]])  # position adds 1, token adds 2
        >>> components = Components(1, "least_squares").update(states, [[0, 0], [1, 1]])
        >>> explained = components.variance_explained()
        >>> round(explained.temporal, 3), round(explained.input_unique, 3), round(explained.additive, 3)
        (0.2, 0.8, 1.0)
    """

    temporal: float
    additive: float
    temporal_unique: float
    input_unique: float


def means_of(position_sums: ByPosition, token_sums: ByToken, counts: Counts) -> TwoWayFit:
    """Return mu, the means by position, and chi, the means by token of what is left."""
    pairs = counts.double()  # (tokens, positions)
    n_position = pairs.sum(0).clamp(min=1)[:, None]  # (positions, 1)
    n_token = pairs.sum(1).clamp(min=1)[:, None]  # (tokens, 1)
    temporal = position_sums / n_position
    inputs = (token_sums - pairs @ temporal) / n_token
    return temporal, inputs


def two_way(position_sums: ByPosition, token_sums: ByToken, counts: Counts) -> TwoWayFit:
    """Return mu and chi of the exact fit, zero for unseen positions and tokens; sums must be float64."""
    pairs = counts.double()  # (tokens, positions)
    n_position = pairs.sum(0)  # (positions,)
    n_token = pairs.sum(1).clamp(min=1)[:, None]  # (tokens, 1)
    share = pairs / n_token  # of the occurrences of a token, at each position
    laplacian = torch.diag(n_position) - pairs.T @ share  # (positions, positions)
    right_side = position_sums - share.T @ token_sums  # (positions, width)

    # The null space of the Laplacian is known: one indicator for each piece, and for each unseen position.
    # Adding its projector gives the solution of the pseudo-inverse without a threshold for small numbers.
    pieces = connected_pieces(counts)  # (pieces, positions)
    unit_pieces = pieces / pieces.sum(1, keepdim=True).sqrt()
    is_seen = n_position > 0  # (positions,)
    projector = unit_pieces.T @ unit_pieces + torch.diag((~is_seen).double())
    regular = laplacian + n_position.max().clamp(min=1) * projector
    temporal = torch.linalg.solve(regular, right_side) * is_seen[:, None]
    inputs = (token_sums - pairs @ temporal) / n_token
    return _least_norm(temporal, inputs, pairs=pairs, pieces=pieces)


def connected_pieces(counts: Counts) -> Float[Tensor, "pieces positions"]:
    """Return indicators of the sets of seen positions that shared tokens connect, directly or indirectly.

    Every position begins with its number as label. The lower label of the two ends of an edge replaces the
    other until nothing changes; then the label of a position is the first position of its piece.
    """
    edges = _edges(counts)
    labels = np.arange(counts.shape[1])  # (positions,)
    while True:
        lowest = labels[edges].min(1)  # of the two ends of each edge
        lower = labels.copy()
        np.minimum.at(lower, edges[:, 0], lowest)
        np.minimum.at(lower, edges[:, 1], lowest)
        lower = lower[lower]  # the label of a label is as low, or lower
        if np.array_equal(lower, labels):
            break
        labels = lower
    is_seen = (counts.sum(0) > 0).cpu().numpy()  # (positions,)
    firsts = np.unique(labels[is_seen])  # (pieces,)
    pieces = torch.from_numpy(labels == firsts[:, None])
    return pieces.double().to(counts.device)


def _edges(counts: Counts) -> Int[np.ndarray, "edges 2"]:
    """Return pairs of positions that a token joins: each position with the next one of the same token."""
    n_positions = counts.shape[1]
    is_joined = torch.zeros(n_positions, n_positions, dtype=torch.bool)
    for block in counts.split(_TOKENS_AT_ONCE):  # (tokens, positions)
        tokens, positions = (block > 0).cpu().nonzero().unbind(1)  # ordered by token, then by position
        is_same_token = tokens[1:] == tokens[:-1]
        first = positions[:-1][is_same_token]
        second = positions[1:][is_same_token]
        is_joined[first, second] = True
    return is_joined.nonzero().numpy()


def centred_by_piece(temporal: ByPosition, inputs: ByToken, counts: Counts) -> TwoWayFit:
    """Return the same sums mu + chi with the count-weighted sum of chi zero on every connected piece.

    Means by position have this property anyway: what a mark and the only position that it occurs at share is
    part of mu. To compare two fits, bring both to this form.
    """
    pairs = counts.double()  # (tokens, positions)
    pieces = connected_pieces(counts)  # (pieces, positions)
    piece_of_token = _piece_of_token(pairs, pieces)
    sum_of_inputs = (piece_of_token.T * pairs.sum(1)) @ inputs  # (pieces, width)
    occurrences = pieces @ pairs.sum(0)  # (pieces,)
    moved = sum_of_inputs / occurrences[:, None]
    return temporal + pieces.T @ moved, inputs - piece_of_token @ moved


def _piece_of_token(pairs: Tensor, pieces: Tensor) -> Float[Tensor, "tokens pieces"]:
    """Return 1 for the piece that each token occurs in, and 0 for the others."""
    return (pairs @ pieces.T > 0).double()


def _least_norm(temporal: ByPosition, inputs: ByToken, *, pairs: Tensor, pieces: Tensor) -> TwoWayFit:
    """Return the same fit with the free constants chosen: count-weighted sum of chi zero, then least norm.

    With c_k moved from chi to mu on piece k, the norm is least at a_k / m_k (m_k parameters; a_k the sum of
    chi minus the sum of mu on k) and the constraint sum_k n_k c_k = sum_w n_w chi(w) adds a multiple
    of n_k / m_k.
    """
    piece_of_token = _piece_of_token(pairs, pieces)
    parameters = pieces.sum(1) + piece_of_token.sum(0)  # m_k, (pieces,)
    occurrences = pieces @ pairs.sum(0)  # n_k, (pieces,)
    unconstrained = (piece_of_token.T @ inputs - pieces @ temporal) / parameters[:, None]  # (pieces, width)
    missing = pairs.sum(1) @ inputs - occurrences @ unconstrained  # in the constraint, (width,)
    slope = occurrences / parameters  # (pieces,)
    moved = unconstrained + slope[:, None] * missing / (slope @ occurrences).clamp(min=1e-300)  # c_k
    return temporal + pieces.T @ moved, inputs - piece_of_token @ moved


def variance_explained(
    position_sums: ByPosition, token_sums: ByToken, counts: Counts, *, square_sum: float
) -> VarianceExplained:
    """Return the shares of variance that position and token explain.

    Args:
        position_sums: sum of the states at each position.
        token_sums: sum of the states of each token.
        counts: how often each token is at each position.
        square_sum: sum of the squared norms of all states.

    Raises:
        BadInput: the counts are all zero.
    """
    pairs = counts.double()
    occurrences = float(pairs.sum())
    if not occurrences:
        raise BadInput("These components hold no samples yet: call update before variance_explained.")
    temporal, inputs = two_way(position_sums, token_sums, counts)
    square_of_mean = float(position_sums.sum(0).square().sum()) / occurrences
    variance = square_sum - square_of_mean
    if variance <= 1e-12 * square_sum:  # mere rounding of the sums of squares
        return VarianceExplained(
            temporal=math.nan, additive=math.nan, temporal_unique=math.nan, input_unique=math.nan
        )

    def by_means(sums: Tensor, n: Tensor) -> float:
        """Return the share that the means of one factor alone explain."""
        squares = sums.square().sum(1) / n.clamp(min=1)
        return (float(squares.sum()) - square_of_mean) / variance

    by_position = by_means(position_sums, pairs.sum(0))
    by_token = by_means(token_sums, pairs.sum(1))
    fitted_squares = float((temporal * position_sums).sum() + (inputs * token_sums).sum())
    additive = (fitted_squares - square_of_mean) / variance
    return VarianceExplained(
        temporal=by_position,
        additive=additive,
        temporal_unique=additive - by_token,
        input_unique=additive - by_position,
    )
