"""Agreement of two ways of weighing the positions of a sentence.

Snell et al. 2021, section 3.1, equation 10. With u and v over the L valid positions of one row,

    𝒜(u, v) = 1  if  |{j : v_j > v_argmax(u)}| < ⌈5 % · L⌉,  else 0

the position where u is largest is looked up in v, and must be among the largest 5 % there. The paper prints
"< 5 % L"; a count is a whole number, so that rounding the bound up changes nothing. The bound is at least 1:
in sentences of up to 20 positions the position must be a maximum of v, and a row of one position agrees.

Ties in v favour agreement, since only strictly larger entries count: a constant v agrees with every u. Ties
in u need a rule. The paper's is the first of the tied positions, as ``argmax`` gives it; ``ties="shared"``
takes the mean over all of them instead, which does not depend on their order (a uniform u then agrees as
often as chance does).
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import RowMask, Rows, aligned_rows, takes_arrays
from attnlib.errors import BadInput, check_known

Ties = Literal["first", "shared"]


def places(lengths: Int[Tensor, "*rows"], percent: int = 5) -> Int[Tensor, "*rows"]:
    """Return ⌈percent · L / 100⌉, in whole numbers; a position with fewer larger entries is at the top.

    Args:
        lengths: L, of each row.
        percent: how much of the length counts as the top.

    Returns:
        A count for each row.

    Raises:
        BadInput: a percentage outside 1…100.

    Example:
        >>> places(torch.tensor([1, 20, 21, 40, 41])).tolist()
        [1, 1, 2, 2, 3]
    """
    if not 1 <= percent <= 100:
        raise BadInput(f"percent is {percent}; it must lie in 1…100")
    return (percent * lengths + 99) // 100


@takes_arrays
def agreement(
    first: Rows, second: Rows, mask: RowMask = None, *, percent: int = 5, ties: Ties = "first"
) -> Float[Tensor, "*rows"]:
    """Return 𝒜(first, second) of each row: whether the top position of ``first`` is at the top of ``second``.

    Args:
        first: u of equation 10, whose top position is looked up.
        second: v of equation 10, in which it is looked up. Leading dimensions broadcast.
        mask: True at valid positions; all of them by default. Other positions are ignored.
        percent: how much of the length counts as the top.
        ties: if several entries of ``first`` are largest, look up the ``first`` of them, or take the mean
            over all, ``shared``.

    Returns:
        1 or 0, in float64 (with shared ties also between); NaN for a row with no valid position, and for a
        row with a NaN at a valid position on either side. :class:`RowMean` counts those.

    Raises:
        BadInput: lengths differ, leading axes do not broadcast, or the percentage is outside 1…100.
        UnknownName: there is no such rule for ties.

    Example:
        >>> attention = torch.tensor([[0.1, 0.7, 0.2]])
        >>> agreement(attention, torch.tensor([[0.3, 0.9, 0.5]])).tolist()
        [1.0]
        >>> agreement(attention, torch.tensor([[0.9, 0.3, 0.5]])).tolist()
        [0.0]
    """
    check_known("rule for ties", ties, get_args(Ties))
    first, second, mask = aligned_rows(first, second, mask)
    hidden = second.masked_fill(~mask, -torch.inf)  # (*rows, length)
    allowed = places(mask.sum(-1), percent)  # (*rows,)
    is_largest = _all_at_top(first, mask)  # (*rows, length)
    if ties == "first":
        top = is_largest.to(torch.uint8).argmax(-1, keepdim=True)  # (*rows, 1)
        looked_up = hidden.gather(-1, top)  # (*rows, 1)
        n_larger = (hidden > looked_up).sum(-1)  # (*rows,)
        agrees = (n_larger < allowed).double()
    else:
        hits = (is_largest & _at_top(hidden, mask, allowed)).sum(-1)  # (*rows,)
        agrees = hits.double() / is_largest.sum(-1).clamp(min=1)
    return _undefined_where(agrees, mask, first, second)


@takes_arrays
def chance_agreement(second: Rows, mask: RowMask = None, *, percent: int = 5) -> Float[Tensor, "*rows"]:
    """Return 𝒜̂, the expectation of 𝒜(u, second) over a u whose top is at any position, equally likely.

    That is the share of positions at the top of ``second``: ⌈5 % L⌉ / L if its entries differ, more if they
    are tied. The paper draws one shuffle; this is the average over shuffles.

    Args:
        second: v of equation 10.
        mask: True at valid positions; all of them by default.
        percent: how much of the length counts as the top.

    Returns:
        As :func:`agreement`.

    Raises:
        BadInput: as :func:`agreement`.

    Example:
        >>> chance_agreement(torch.tensor([[0.1, 0.4, 0.3, 0.2], [0.0, 1.0, 1.0, 0.0]])).tolist()
        [0.25, 0.5]
    """
    _, second, mask = aligned_rows(second, second, mask)
    hidden = second.masked_fill(~mask, -torch.inf)  # (*rows, length)
    n_valid = mask.sum(-1)  # (*rows,)
    is_at_top = _at_top(hidden, mask, places(n_valid, percent))  # (*rows, length)
    share = is_at_top.sum(-1).double() / n_valid.clamp(min=1)  # (*rows,)
    return _undefined_where(share, mask, second)


def _at_top(
    hidden: Float[Tensor, "*rows length"], mask: Bool[Tensor, "*rows length"], allowed: Int[Tensor, "*rows"]
) -> Bool[Tensor, "*rows length"]:
    """Return the positions with fewer strictly larger entries than allowed; padding is hidden at -inf."""
    ordered = hidden.sort(-1).values
    larger = hidden.shape[-1] - torch.searchsorted(ordered, hidden.contiguous(), right=True)
    return mask & (larger < allowed[..., None])


def _undefined_where(
    agrees: Float[Tensor, "*rows"], mask: Bool[Tensor, "*rows length"], *sides: Float[Tensor, "*rows length"]
) -> Float[Tensor, "*rows"]:
    undefined = ~mask.any(-1)
    for side in sides:
        undefined = undefined | (mask & side.isnan()).any(-1)
    return agrees.masked_fill(undefined, torch.nan)


@takes_arrays
def agreement_with_ties_broken(
    first: Rows, second: Rows, mask: RowMask = None, *, percent: int = 5
) -> Float[Tensor, "*rows"]:
    """Return the expectation of 𝒜(first, second) over all orders in which ties of ``second`` may be broken.

    log β of a translator is a difference of logits in single precision, 0 at every position from which a word
    is all but certain. Such a tie must not help: where m positions share a value of ``second`` and k of the
    places at its top are left for them, each of them has one with probability k / m. A position drawn at
    random then agrees with probability ⌈5 % L⌉ / L, whatever is tied. Ties of ``first`` are as in
    :func:`agreement`: the first of the tied positions is looked up.

    Args:
        first: as in :func:`agreement`.
        second: as in :func:`agreement`.
        mask: True at valid positions; all of them by default.
        percent: how much of the length counts as the top.

    Returns:
        Probabilities; NaN as in :func:`agreement`.

    Raises:
        BadInput: as :func:`agreement`.

    Example:
        >>> attention, probe = torch.tensor([[0.7, 0.1, 0.2]]), torch.tensor([[1.0, 1.0, 0.5]])
        >>> agreement(attention, probe).tolist(), agreement_with_ties_broken(attention, probe).tolist()
        ([1.0], [0.5])
    """
    undefined = agreement(first, second, mask, percent=percent).isnan()
    first, second, mask = aligned_rows(first, second, mask)
    hidden = second.masked_fill(~mask, -torch.inf).contiguous()  # (*rows, length)
    is_largest = _all_at_top(first, mask)  # (*rows, length)
    top = is_largest.to(torch.uint8).argmax(-1, keepdim=True)  # (*rows, 1), the first of the largest
    looked_up = hidden.gather(-1, top)  # (*rows, 1)
    n_larger = (hidden > looked_up).sum(-1)  # (*rows,)
    n_tied = (mask & (hidden == looked_up)).sum(-1)  # (*rows,), m
    n_left = (places(mask.sum(-1), percent) - n_larger).clamp(min=0)  # (*rows,), k
    probability = (n_left.double() / n_tied.clamp(min=1)).clamp(max=1)
    return probability.masked_fill(undefined, torch.nan)


def tied_at_top(
    values: Float[Tensor, "*#rows length"], mask: Bool[Tensor, "*#rows length"]
) -> Bool[Tensor, "*rows"]:
    """Return True for rows whose largest value is at more than one valid position.

    Args:
        values: of each position.
        mask: True at valid positions.

    Returns:
        A truth value a row.

    Example:
        >>> tied_at_top(torch.tensor([[1.0, 1.0], [1.0, 0.5]]), torch.ones(2, 2, dtype=torch.bool)).tolist()
        [True, False]
    """
    return _all_at_top(*torch.broadcast_tensors(values, mask)).sum(-1) > 1


def _all_at_top(
    values: Float[Tensor, "*rows length"], mask: Bool[Tensor, "*rows length"]
) -> Bool[Tensor, "*rows length"]:
    """Return the valid positions of the largest value; padding, which -inf ties with, never wins."""
    hidden = values.masked_fill(~mask, -torch.inf)
    return mask & (hidden == hidden.amax(-1, keepdim=True))


# -- samples in two halves: one selects a checkpoint, the other reports what holds there --

HALVES_SEED = 0  # of the halves that every run on the same samples shares


def halves(
    samples: int, seed: int = HALVES_SEED
) -> tuple[Int[Tensor, " selecting"], Int[Tensor, " reporting"]]:
    """Choose which samples select a checkpoint and which report: a random half each; the odd one out reports.

    Args:
        samples: how many there are.
        seed: of the choice.

    Returns:
        Numbers of the selecting and of the reporting samples, ascending.

    Raises:
        BadInput: there are fewer than two samples.

    Example:
        >>> selecting, reporting = halves(5)
        >>> len(selecting), len(reporting), sorted([*selecting.tolist(), *reporting.tolist()])
        (2, 3, [0, 1, 2, 3, 4])
    """
    if samples < 2:
        raise BadInput(f"{samples} samples cannot be halved; give at least 2")
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
    return order[: samples // 2].sort().values, order[samples // 2 :].sort().values


@dataclass(frozen=True)
class RowMean:
    """A mean over rows as streaming sums, added over batches with ``+``: constant memory, any order.

    A row counts once: as judged if its number is defined, as undefined if it is NaN.

    Attributes:
        total: sum of the number over the judged rows.
        rows: number of judged rows.
        undefined: number of rows without a number; they are left out of the mean.

    Example:
        >>> (RowMean(total=1.0, rows=2) + RowMean(total=2.0, rows=2)).value
        0.75
    """

    total: float = 0.0
    rows: int = 0
    undefined: int = 0

    @classmethod
    def of(cls, values: Float[Tensor, "*rows"], present: Bool[Tensor, "*rows"] | None = None) -> "RowMean":
        """Sum one batch.

        Args:
            values: one number a row, NaN if undefined.
            present: False at rows that are padding, which do not count. All rows by default.

        Returns:
            The sums of the batch.

        Raises:
            BadInput: the two have different shapes.

        Example:
            >>> import torch
            >>> RowMean.of(torch.tensor([1.0, 0.0, torch.nan])) + RowMean.of(torch.tensor([1.0]))
            RowMean(total=2.0, rows=3, undefined=1)
        """
        if present is not None:
            if present.shape != values.shape:
                raise BadInput(
                    f"values of shape {tuple(values.shape)} with a mask of rows of {tuple(present.shape)}: "
                    "give one truth value a row"
                )
            values = values[present]
        undefined = values.isnan()
        judged = values[~undefined]
        return cls(float(judged.double().sum()), judged.numel(), int(undefined.sum()))

    @property
    def value(self) -> float:
        """The mean over judged rows; NaN without any."""
        return self.total / self.rows if self.rows else math.nan

    def __add__(self, other: "RowMean") -> "RowMean":
        return RowMean(self.total + other.total, self.rows + other.rows, self.undefined + other.undefined)
