"""Sums over rows of scores: how much of them each term explains, and how well subsets of terms rebuild them.

A score is the sum of terms. A constant added to a row of scores leaves its softmax unchanged, so every term
is first centred over the valid positions of its row; rows with one valid position are left out. The sums over
all other rows are, for each term, its size and its product with the score, and for each subset of terms the
similarity between the attention that it rebuilds and the full one. :mod:`attnlib.decomposition.shares` and
:mod:`attnlib.decomposition.substitution` define the results.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.decomposition.rows import ChosenRows, centred, total_variation
from attnlib.errors import BadInput
from attnlib.former_names import former_arguments, former_attribute
from attnlib.streaming import StreamingSums

NO_SIGNAL = 1e-12  # below this share of the terms' own squares, the variance of a total is rounding
ROUNDING = 16  # units of rounding within which the largest entries of a row are tied
_ENTRIES_AT_ONCE = 1 << 17  # of terms: heads are summed in groups that stay in the cache


@dataclass(frozen=True, kw_only=True)
class TermShares:
    """Results of the sums of one head, by name of a term or of a subset; NaN where undefined.

    Attributes:
        mean_absolute: mean size of a term over the sum of such means.
        covariance: cov(term, score) / var(score); they sum to one.
        similarity: 1 − total variation between the attention that a subset rebuilds and the full one.
        agreement: share of the rows whose largest entry is at the same position in both.
        spread: standard deviation of the scores along a row.
        entries: number of pairs of positions summed.
        rows: number of rows summed.
        rows_left_out: number of rows with one valid position.
    """

    mean_absolute: dict[Hashable, float]
    covariance: dict[Hashable, float]
    similarity: dict[str, float]
    agreement: dict[str, float]
    spread: float
    entries: int
    rows: int
    rows_left_out: int


@former_arguments(terms="term_names")
class TermSums(StreamingSums):
    """Streaming sums over the terms of all heads of one attention: constant memory, mergeable.

    Args:
        term_names: names of the terms, or pairs of parts.
        subsets: the terms that attention is rebuilt from, by name of the subset.
        heads: number of heads.
        blocks: number of blocks into which samples fall, to estimate how much samples vary.

    Attributes:
        absolute, squares: sizes and squares of each centred term, (heads, terms).
        explained: product of each term with the score, (heads, terms, blocks).
        moments: sum over samples of the products of what two terms explain, (heads, terms, terms).
        similarity: between attention that subsets rebuild and the full one, (heads, subsets, blocks).
        agreement: of the positions of their largest entries, (heads, subsets).
        rows_of_block: number of rows of each block, (blocks,).
        entries: number of pairs of positions.
        rows_left_out: number of rows with one valid position.
        samples: number of samples with at least one row summed.
    """

    SUMS = (
        "absolute",
        "squares",
        "explained",
        "moments",
        "similarity",
        "agreement",
        "rows_of_block",
        "entries",
        "rows_left_out",
        "samples",
    )

    terms = former_attribute("TermSums.terms", "term_names")

    def __init__(
        self,
        term_names: Collection[Hashable],
        subsets: Mapping[str, Collection[Hashable]] | None = None,
        *,
        heads: int = 1,
        blocks: int = 1,
    ):
        self.term_names = tuple(term_names)
        self.subsets = {name: frozenset(subset) for name, subset in (subsets or {}).items()}
        self.heads = heads
        self.blocks = blocks
        n_terms, n_subsets = len(self.term_names), len(self.subsets)
        self.absolute = torch.zeros(heads, n_terms, dtype=torch.float64)
        self.squares = torch.zeros(heads, n_terms, dtype=torch.float64)
        self.explained = torch.zeros(heads, n_terms, blocks, dtype=torch.float64)
        self.moments = torch.zeros(heads, n_terms, n_terms, dtype=torch.float64)
        self.similarity = torch.zeros(heads, n_subsets, blocks, dtype=torch.float64)
        self.agreement = torch.zeros(heads, n_subsets, dtype=torch.float64)
        self.rows_of_block = torch.zeros(blocks, dtype=torch.int64)
        self.entries = 0
        self.rows_left_out = 0
        self.samples = 0
        self._weights = _weights(self.term_names, self.subsets)

    def settings(self) -> dict[str, Any]:
        """Return names of terms and subsets, and sizes; sums of others cannot be merged."""
        return {
            "term_names": self.term_names,
            "subsets": self.subsets,
            "heads": self.heads,
            "blocks": self.blocks,
        }

    @property
    def rows(self) -> int:
        """Number of rows summed."""
        return int(self.rows_of_block.sum())

    # -- summing --

    def update(
        self,
        terms: Float[Tensor, "heads terms batch target source"],
        allowed: Bool[Tensor, "batch target source"],
        blocks: Int[Tensor, " batch"] | None = None,
    ) -> "TermSums":
        """Add a batch, and return these sums.

        Args:
            terms: of every head.
            allowed: True where a query may see a key; a row without any is padding.
            blocks: the block of each sample; all are in the first by default.

        Raises:
            BadInput: shapes that do not fit together; a term that is not finite where it is allowed. The sums
                stay as they were.
        """
        self._require_shapes(terms, allowed)
        require_finite_terms(terms, allowed)
        chosen = ChosenRows.of(allowed)
        rows_of_sample = chosen.counts().cpu()  # (batch,)
        if blocks is None:
            blocks = torch.zeros(len(allowed), dtype=torch.int64)
        self.rows_of_block.index_add_(0, blocks, rows_of_sample)
        self.entries += int(chosen.valid.sum())
        self.rows_left_out += chosen.left_out
        self.samples += int((rows_of_sample > 0).sum())
        if len(chosen):
            for heads in self._groups_of_heads(chosen.valid.numel()):
                self._add(heads, terms[heads], chosen=chosen, blocks=blocks)
        return self

    def _require_shapes(self, terms: Tensor, allowed: Tensor) -> None:
        if allowed.dim() != 3 or terms.shape != (self.heads, len(self.term_names), *allowed.shape):
            raise BadInput(
                f"terms of shape {tuple(terms.shape)} with allowed of {tuple(allowed.shape)}; expected "
                f"({self.heads}, {len(self.term_names)}, batch, target, source) and the last three again"
            )

    def _groups_of_heads(self, entries: int) -> Iterator[slice]:
        """Yield groups of heads that are summed at once.

        Args:
            entries: number of entries of one term of one head.
        """
        at_once = max(1, _ENTRIES_AT_ONCE // (len(self.term_names) * entries))
        for start in range(0, self.heads, at_once):
            yield slice(start, start + at_once)

    def _add(
        self,
        heads: slice,
        terms: Float[Tensor, "heads terms batch target source"],
        *,
        chosen: ChosenRows,
        blocks: Int[Tensor, " batch"],
    ) -> None:
        """Add the terms of a group of heads."""
        uncentred = chosen.values(terms)  # (heads, terms, row, source)
        rows = centred(uncentred.double(), chosen.valid)  # (heads, terms, row, source)
        explained = chosen.by_sample(explained_by_row(rows))  # (heads, terms, batch)
        self.absolute[heads] += rows.abs().sum((2, 3)).cpu()
        self.squares[heads] += torch.linalg.vector_norm(rows, dim=(2, 3)).square().cpu()
        self.moments[heads] += (explained @ explained.mT).cpu()
        self.explained[heads].index_add_(-1, blocks, explained.cpu())
        if not self.subsets:
            return
        largest = uncentred.abs().amax(1).amax(-1).double()  # (heads, row)
        slack = ROUNDING * torch.finfo(uncentred.dtype).eps * largest  # (heads, row)
        attention = rebuilt(rows, valid=chosen.valid, weights=self._weights, slack=slack)
        similarity = chosen.by_sample(attention.similarity)  # (heads, subsets, batch)
        self.similarity[heads].index_add_(-1, blocks, similarity.cpu())
        self.agreement[heads] += attention.agreement.sum(-1).cpu()

    # -- results --

    def total(self) -> Float[Tensor, " heads"]:
        """Return the sum of squared scores, each centred over its row; NaN if it is mere rounding."""
        total = self.explained.sum((1, 2))
        return total.where(total > NO_SIGNAL * self.squares.sum(1), torch.nan)

    def covariance_shares(self) -> Float[Tensor, "heads terms"]:
        """Return cov(term, score) / var(score), NaN if scores do not vary."""
        return self.explained.sum(2) / self.total()[:, None]

    def mean_absolute_shares(self) -> Float[Tensor, "heads terms"]:
        """Return the mean size of terms over the sum of such means, NaN if all are zero."""
        return self.absolute / self.absolute.sum(1, keepdim=True)  # 0 / 0 is NaN

    def similarities(self) -> Float[Tensor, "heads subsets"]:
        """Return the mean similarity over rows, NaN without rows."""
        return self.similarity.sum(2) / self.rows

    def agreements(self) -> Float[Tensor, "heads subsets"]:
        """Return the mean agreement over rows, NaN without rows."""
        return self.agreement / self.rows

    def spreads(self) -> Float[Tensor, " heads"]:
        """Return the standard deviation of scores along a row; NaN without rows."""
        return self.total().nan_to_num(0.0).div(self.entries).sqrt()

    def result(self, head: int = 0) -> TermShares:
        """Return the results of one head, by name."""
        return TermShares(
            mean_absolute=_named(self.term_names, self.mean_absolute_shares()[head]),
            covariance=_named(self.term_names, self.covariance_shares()[head]),
            similarity=_named(self.subsets, self.similarities()[head]),
            agreement=_named(self.subsets, self.agreements()[head]),
            spread=float(self.spreads()[head]),
            entries=self.entries,
            rows=self.rows,
            rows_left_out=self.rows_left_out,
        )


# -- functions of rows --


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rebuilt(ShowsShapes):
    """Similarity of the attention that subsets of terms rebuild to the full one, row by row.

    Attributes:
        similarity: 1 − total variation.
        agreement: share of the subset's largest entries that are largest in the full row as well.
    """

    similarity: Float[Tensor, "heads subsets row"]
    agreement: Float[Tensor, "heads subsets row"]


def explained_by_row(rows: Float[Tensor, "*heads terms row source"]) -> Float[Tensor, "*heads terms row"]:
    """Return the products of centred terms with their total, summed over each row."""
    total = rows.sum(-3, keepdim=True)  # (*heads, 1, row, source)
    return (rows * total).sum(-1)


def rebuilt(
    rows: Float[Tensor, "heads terms row source"],
    *,
    valid: Bool[Tensor, "row source"],
    weights: Float[Tensor, "sets terms"],
    slack: Float[Tensor, "heads row"],
) -> Rebuilt:
    """Rebuild attention from subsets of terms.

    Args:
        rows: terms, zero where not valid.
        valid: True at the positions that a row chooses among.
        weights: 1 for the terms of a set; the first set has all terms.
        slack: largest difference of two scores of a row that count as tied.
    """
    flat = rows.flatten(2)  # (heads, terms, row * source)
    scores = (weights.to(rows) @ flat).unflatten(2, valid.shape)  # (heads, sets, row, source)
    scores = scores.masked_fill(~valid, -torch.inf)
    largest = scores.amax(-1, keepdim=True)  # (heads, sets, row, 1)
    # The scores of a word that occurs twice in the source differ by rounding; with slack they are tied.
    is_largest = scores >= largest - slack[:, None, :, None]  # (heads, sets, row, source)
    unscaled = (scores - largest).exp()  # torch's softmax of float64 takes thrice as long
    attention = unscaled / unscaled.sum(-1, keepdim=True)  # (heads, sets, row, source)
    in_both = (is_largest[:, 1:] & is_largest[:, :1]).sum(-1)  # (heads, subsets, row)
    in_subset = is_largest[:, 1:].sum(-1)  # (heads, subsets, row)
    return Rebuilt(
        similarity=1 - total_variation(attention[:, 1:], attention[:, :1]),
        agreement=(in_both / in_subset).double(),  # a ratio in float32, as in all published numbers
    )


def require_finite_terms(
    terms: Float[Tensor, "*terms batch target source"], allowed: Bool[Tensor, "batch target source"]
) -> None:
    """Raise BadInput if an allowed term is not finite, and name the first such place."""
    if bool(terms.sum().isfinite()):  # then all terms are
        return
    is_finite = terms.flatten(0, -4).isfinite().all(0)  # (batch, target, source)
    wrong = ~is_finite & allowed
    if bool(wrong.any()):
        sample, target, source = wrong.nonzero()[0].tolist()
        raise BadInput(
            f"Terms that are not finite (first at sample {sample}, target position {target}, source position "
            f"{source}): nothing was added. Has the training diverged?"
        )


def _weights(
    terms: tuple[Hashable, ...], subsets: Mapping[str, frozenset[Hashable]]
) -> Float[Tensor, "sets terms"]:
    """Return 1 where a term is in a set; the first set has all terms."""
    sets = [frozenset(terms), *subsets.values()]
    is_in_set = [[term in names for term in terms] for names in sets]
    return torch.tensor(is_in_set, dtype=torch.float64)


def _named(names: Collection, values: Tensor) -> dict:
    return dict(zip(names, values.tolist(), strict=True))
