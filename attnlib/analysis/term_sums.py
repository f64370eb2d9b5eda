"""What the terms of one head's scores come to over a corpus: shares, and attention rebuilt from some of them.

The definitions are those of :mod:`attnlib.decomposition.shares` and
:mod:`attnlib.decomposition.substitution`, for any number of named terms (a position bias beside the nine) and
rows that see different positions (causal self-attention). Kept is the whole matrix of products of centred
terms, so that cancellation shows: two large terms with a negative product.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.decomposition.components import PART_NAMES
from attnlib.decomposition.substitution import centred, masked_softmax, total_variation
from attnlib.errors import BadInput

NINE = tuple(f"{decoder}·{encoder}" for decoder in PART_NAMES for encoder in PART_NAMES)
POSITION_BIAS = "position bias"
NO_SIGNAL = 1e-12  # below this share of the terms' own squares, a total is rounding


def subsets(terms: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Sets of terms to rebuild attention from: none, some alone, all but residuals, all but one.

    >>> sorted(subsets(NINE)["temporal only"])
    ['temporal·temporal']
    """
    every = frozenset(terms)
    temporal = frozenset({"temporal·temporal"})
    found = {
        "uniform": frozenset(),
        "temporal only": temporal,
        "input only": frozenset({"input·input"}),
        "no residual": frozenset(term for term in terms if "residual" not in term),
    }
    if POSITION_BIAS in every:
        found |= {
            "position bias only": frozenset({POSITION_BIAS}),
            "temporal and position bias": temporal | {POSITION_BIAS},
        }
    return found | {f"without {term}": every - {term} for term in terms}


@dataclass(frozen=True)
class TermShares:
    """Of one head; NaN where undefined.

    Attributes:
        mean_absolute: mean size of a term over the sum of such means, each term centred over its row.
        covariance: cov(term, score) / var(score); they sum to one.
        cancelling: of each pair of terms, their correlation.
        similarity, agreement: of attention rebuilt from a subset with the full one: 1 − total variation, and
            the share of rows whose largest entry stands at the same place.
        spread: standard deviation of the scores along a row: how much the softmax has to work with.
        entries, rows, rows_left_out: pairs and rows that went in, and rows with one position.
    """

    mean_absolute: dict[str, float]
    covariance: dict[str, float]
    cancelling: dict[tuple[str, str], float]
    similarity: dict[str, float]
    agreement: dict[str, float]
    spread: float
    entries: int
    rows: int
    rows_left_out: int


class TermSums:
    """Streaming sums of one head: constant memory, mergeable."""

    def __init__(self, terms: tuple[str, ...]):
        self.terms = terms
        self.subsets = subsets(terms)
        size = len(terms)
        self.sums: dict[str, Tensor] = {
            "absolute": torch.zeros(size, dtype=torch.float64),
            "products": torch.zeros(size, size, dtype=torch.float64),
            "similarity": torch.zeros(len(self.subsets), dtype=torch.float64),
            "agreement": torch.zeros(len(self.subsets), dtype=torch.float64),
            "counts": torch.zeros(3, dtype=torch.int64),  # entries, rows, rows left out
        }

    def update(
        self, terms: Float[Tensor, "terms batch target source"], allowed: Bool[Tensor, "batch target source"]
    ) -> "TermSums":
        """Add a batch.

        Args:
            allowed: what may be looked at; a row without any is padding.

        Raises:
            BadInput: another number of terms, or shapes that differ.
        """
        if allowed.dim() != 3 or terms.shape != (len(self.terms), *allowed.shape):
            raise BadInput(
                f"terms of shape {tuple(terms.shape)} with allowed of {tuple(allowed.shape)}; expected "
                f"({len(self.terms)}, batch, target, source) and the last three again"
            )
        visible = allowed.sum(-1)
        keep = visible >= 2
        valid = allowed[keep]
        rows = centred(terms[:, keep].double().masked_fill(~valid, 0.0), valid)
        self.sums["absolute"] += rows.abs().sum((1, 2)).cpu()
        flat = rows.flatten(1)
        self.sums["products"] += (flat @ flat.T).cpu()
        self.sums["counts"] += torch.tensor(
            [int(valid.sum()), len(valid), int((visible == 1).sum())], dtype=torch.int64
        )
        self._rebuild(rows, valid, terms.dtype)
        return self

    def _rebuild(self, rows: Tensor, valid: Tensor, dtype: torch.dtype) -> None:
        full = rows.sum(0)
        attention = masked_softmax(full, valid)
        # A word that stands twice in the source is tied but for rounding: that much slack makes it a tie.
        slack = 16 * torch.finfo(dtype).eps * rows.abs().amax((0, 2))[:, None]
        best = _largest(full, valid, slack)
        for index, names in enumerate(self.subsets.values()):
            chosen = [self.terms.index(name) for name in self.terms if name in names]
            some = rows[chosen].sum(0)
            similar = 1 - total_variation(masked_softmax(some, valid), attention)
            own = _largest(some, valid, slack)
            self.sums["similarity"][index] += float(similar.sum())
            agree = (own & best).sum(-1) / own.sum(-1)
            self.sums["agreement"][index] += float(agree.sum(dtype=torch.float64))

    def merge(self, other: "TermSums") -> "TermSums":
        """New sums of both.

        Raises:
            BadInput: other terms.
        """
        if self.terms != other.terms:
            raise BadInput(f"cannot merge sums of {self.terms} with those of {other.terms}")
        merged = TermSums(self.terms)
        merged.sums = {name: own + other.sums[name] for name, own in self.sums.items()}
        return merged

    __add__ = merge

    def result(self) -> TermShares:
        """The shares so far."""
        entries, rows, left_out = self.sums["counts"].tolist()
        products, absolute = self.sums["products"], self.sums["absolute"]
        squares = products.diagonal()
        total = float(products.sum())
        varies = total > NO_SIGNAL * float(squares.sum())
        undefined = torch.full_like(absolute, torch.nan)
        mean_absolute = absolute / absolute.sum() if float(absolute.sum()) > 0 else undefined
        covariance = products.sum(1) / total if varies else undefined
        lengths = squares.sqrt()
        correlation = products / (lengths[:, None] * lengths)
        pairs = [(i, j) for i in range(len(self.terms)) for j in range(i)]
        return TermShares(
            mean_absolute=_named(self.terms, mean_absolute),
            covariance=_named(self.terms, covariance),
            cancelling={(self.terms[j], self.terms[i]): float(correlation[i, j]) for i, j in pairs},
            similarity=_named(self.subsets, self.sums["similarity"] / (rows or torch.nan)),
            agreement=_named(self.subsets, self.sums["agreement"] / (rows or torch.nan)),
            spread=(total / entries) ** 0.5 if varies and entries else 0.0 if entries else torch.nan,
            entries=entries,
            rows=rows,
            rows_left_out=left_out,
        )


def _named(names: tuple[str, ...] | Mapping, values: Tensor) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _largest(
    scores: Float[Tensor, "row source"], valid: Bool[Tensor, "row source"], slack: Float[Tensor, "row 1"]
) -> Bool[Tensor, "row source"]:
    scores = scores.masked_fill(~valid, -torch.inf)
    return scores >= scores.amax(-1, keepdim=True) - slack
