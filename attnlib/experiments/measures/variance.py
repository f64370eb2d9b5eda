"""Held-out variance of states that components explain, and how far two fits of them are apart."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition.components import Components
from attnlib.decomposition.two_way import centred_by_piece


def averages_of(components: Components) -> Components:
    """Components by averages from the sums of a least-squares fit: the same samples, no second pass."""
    means = Components(components.n_tokens, components.n_positions, components.width)
    for name in ("position_sums", "token_sums", "pair_counts"):
        setattr(means, name, getattr(components, name))
    return means


@dataclass
class HeldOutVariance:
    """Squared errors of four predictions of held-out states, summed over batches.

    ``position``: the mean of the fitting samples at the position. ``token``: their mean at the token.
    ``exact``: mu + chi by least squares. ``averages``: mu + chi by averages. What was never seen is predicted
    by the grand mean, or for mu + chi by the component that was seen.
    """

    exact: Components
    averages: Components = field(init=False)
    errors: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.averages = averages_of(self.exact)
        names = ("position", "token", "exact", "averages")
        self.errors = dict.fromkeys(names, 0.0)
        self._count, self._sum, self._squares = 0, 0.0, 0.0
        exact = self.exact
        self._grand = exact.position_sums.sum(0) / exact.position_counts.sum()
        self._by_position = self._means(exact.position_sums, exact.position_counts)
        self._by_token = self._means(exact.token_sums, exact.token_counts)

    def _means(self, sums: Tensor, counts: Tensor) -> Float[Tensor, "rows width"]:
        means = sums / counts.clamp(min=1)[:, None]
        return torch.where((counts > 0)[:, None], means, self._grand)

    def update(self, states: Tensor, tokens: Tensor, mask: Tensor) -> "HeldOutVariance":
        """Adds a batch: (batch, length, width), (batch, length), (batch, length)."""
        rows, words = states[mask].double(), tokens[mask]
        places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)[mask]
        predicted = {
            "position": self._by_position[places],
            "token": self._by_token[words],
            "exact": self.exact.temporal[places] + self.exact.input[words],
            "averages": self.averages.temporal[places] + self.averages.input[words],
        }
        for name, prediction in predicted.items():
            self.errors[name] += float((rows - prediction).square().sum())
        self._count += len(rows)
        self._sum = self._sum + rows.sum(0)
        self._squares += float(rows.square().sum())
        return self

    def result(self) -> dict[str, float]:
        """R² around the mean of the held-out states, by name as in :class:`VarianceExplained`.

        ``averages`` is the R² of mu + chi by averages, ``input`` that of the token alone.
        """
        mean = self._sum / self._count
        total = self._squares - self._count * float(mean.square().sum())
        share = {name: 1 - error / total for name, error in self.errors.items()}
        return {
            "temporal": share["position"],
            "input": share["token"],
            "additive": share["exact"],
            "averages": share["averages"],
            "temporal_unique": share["exact"] - share["token"],
            "input_unique": share["exact"] - share["position"],
        }


def difference(exact: Components) -> dict[str, float]:
    """How far averages are from the exact fit, over the fitting samples.

    Returns:
        root mean square differences of mu, of chi and of mu + chi, each over the standard deviation of the
        states (all as distances in the space of states, occurrences weighted equally).
    """
    averages, pairs = averages_of(exact), exact.pair_counts.double()
    mine = centred_by_piece(exact.temporal, exact.input, exact.pair_counts)
    theirs = averages.temporal, averages.input
    occurrences = float(pairs.sum())
    grand = exact.position_sums.sum(0) / occurrences
    variance = float(exact.square_sum) / occurrences - float(grand.square().sum())
    temporal, inputs = (first - second for first, second in zip(mine, theirs, strict=True))
    square = {
        "temporal": float(pairs.sum(0) @ temporal.square().sum(1)),
        "input": float(pairs.sum(1) @ inputs.square().sum(1)),
    }
    cross = float(((pairs @ temporal) * inputs).sum())
    square["fit"] = square["temporal"] + square["input"] + 2 * cross
    return {name: (max(value, 0.0) / occurrences / variance) ** 0.5 for name, value in square.items()}
