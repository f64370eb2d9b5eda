"""Agreement in terms of how good a network is: contextualised agreement, and the choice of a checkpoint.

Snell et al. 2021, section 3.1, equation 11, and appendix A.7. A network is trained (its attention is α), then
again from another seed; α̂(τ) is the attention of that comparison run at step τ, p̂(τ) its performance there.

    ξ(u, v) = p̂( inf { τ : 𝒜(α, α̂(τ)) > 𝒜(u, v) } )

how good the comparison run is when its attention first agrees with α *more* than u agrees with v. Steps are
the checkpoints that were looked at. Where none exceeds the agreement, the set is empty and the paper prints
ξ* = p̂(𝒯), the performance when training finishes, with an asterisk.

Where v belongs to a run, 𝒜(u, v) is the maximum over that run's checkpoints. The paper takes the maximum on
the samples that it reports, which is optimistic; here half of the samples can choose the checkpoint and the
other half report (:mod:`attnlib.probes.agreement`), with the paper's way beside it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean


class Contextualised(NamedTuple):
    """ξ, and the step it was read at; ``exceeded`` is False where it is ξ*, printed with an asterisk."""

    value: float
    step: int
    exceeded: bool


class ComparisonRun(NamedTuple):
    """A run at its checkpoints: 𝒜(α, α̂(τ)), NaN where no row could be judged, and p̂(τ), accuracy or BLEU."""

    steps: tuple[int, ...]
    agreement: tuple[float, ...]
    performance: tuple[float, ...]

    @classmethod
    def mean(cls, runs: Sequence["ComparisonRun"]) -> "ComparisonRun":
        """The mean curve of runs with the same checkpoints (the paper's way with five classifiers)."""
        (steps,) = {run.steps for run in runs}
        agreement, performance = (
            tuple(np.mean([getattr(run, name) for run in runs], axis=0).tolist())
            for name in ("agreement", "performance")
        )
        return cls(steps, agreement, performance)

    def contextualise(self, agreement: float) -> Contextualised:
        """ξ of an agreement 𝒜(u, v), equation 11.

        >>> run = ComparisonRun((0, 100, 200, 300), (0.1, 0.3, 0.6, 0.5), (0.5, 0.7, 0.8, 0.9))
        >>> run.contextualise(0.3)  # 0.3 itself is not more than 0.3
        Contextualised(value=0.8, step=200, exceeded=True)
        >>> run.contextualise(0.6)
        Contextualised(value=0.9, step=300, exceeded=False)
        """
        if math.isnan(agreement):
            raise BadInput("the agreement to contextualise is NaN; was there a row to judge?")
        for step, reached, performance in zip(self.steps, self.agreement, self.performance, strict=True):
            if reached > agreement:
                return Contextualised(performance, step, exceeded=True)
        return Contextualised(self.performance[-1], self.steps[-1], exceeded=False)


class Chosen(NamedTuple):
    """An agreement on the half that reports, at the step where the half that selects has its (first) maximum.

    ``optimistic`` is the paper's: the maximum over checkpoints on all samples, which choose and report.
    """

    value: float
    step: int
    optimistic: float


def best_checkpoint(
    steps: Sequence[int], selecting: Sequence[RowMean], reporting: Sequence[RowMean]
) -> Chosen:
    """The agreement at the best checkpoint, chosen on one half of the samples and reported on the other.

    >>> selecting = [RowMean(1, 4), RowMean(3, 4), RowMean(2, 4)]
    >>> reporting = [RowMean(2, 4), RowMean(2, 4), RowMean(4, 4)]
    >>> best_checkpoint((0, 50, 100), selecting, reporting)
    Chosen(value=0.5, step=50, optimistic=0.75)
    """
    values = [half.value for half in selecting]
    if all(math.isnan(value) for value in values):
        raise BadInput("no checkpoint has a row to judge, so none can be chosen")
    chosen = int(np.nanargmax(values))
    everything = [(one + other).value for one, other in zip(selecting, reporting, strict=True)]
    return Chosen(reporting[chosen].value, steps[chosen], float(np.nanmax(everything)))
