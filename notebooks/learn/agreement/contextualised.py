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

from collections.abc import Sequence

import numpy as np

from attnlib.errors import BadInput


def contextualise(
    agreement: float, reached: Sequence[float], performance: Sequence[float]
) -> tuple[float, bool]:
    """ξ of an agreement 𝒜(u, v), equation 11, and whether it is ξ*, printed with an asterisk.

    Args:
        reached: 𝒜(α, α̂(τ)) at each checkpoint, NaN where no row could be judged; performance: p̂(τ).

    >>> contextualise(0.3, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])  # 0.3 itself is not more than 0.3
    (0.8, False)
    >>> contextualise(0.6, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])
    (0.9, True)
    """
    if np.isnan(agreement):
        raise BadInput("the agreement to contextualise is NaN; was there a row to judge?")
    above = np.asarray(reached) > agreement
    return performance[above.argmax() if above.any() else -1], not above.any()


def best_checkpoint(agreement: Sequence[float]) -> int:
    """Where the samples that choose agree most, the first of equals; NaN is where they have no row to judge.

    >>> selecting, reporting = [0.25, 0.75, 0.5], [0.5, 0.5, 1.0]
    >>> reporting[best_checkpoint(selecting)]
    0.5
    """
    if np.isnan(agreement).all():
        raise BadInput("no checkpoint has a row to judge, so none can be chosen")
    return int(np.nanargmax(agreement))
