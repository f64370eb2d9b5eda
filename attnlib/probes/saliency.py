"""Saliency: how much the right class's score moves with a word's vector (Snell et al. 2021, section 5.1).

The embedding of position l is multiplied by a gate g_l, and with all gates at 1

    saliency_l = ∂/∂g_l (2y − 1) · logit        = (2y − 1) · ⟨∂ logit / ∂e_l, e_l⟩

the derivative of the right label's log odds; it may be negative. Texts of a batch do not touch one another,
so one backward pass from the sum of their scores gives the saliency of every position of every text.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.models.attentive_classifier import AttentiveClassifier, ClassifierTrace


def saliency(
    model: AttentiveClassifier,
    tokens: Int[Tensor, "batch length"],
    mask: Bool[Tensor, "batch length"],
    labels: Int[Tensor, " batch"],
) -> tuple[Float[Tensor, "batch length"], ClassifierTrace]:
    """Saliency of every position, zero at padding, and the trace of the pass that it was taken on.

    No parameter is given a gradient. The trace is still part of the graph: detach what is kept.

    Raises:
        BadInput: a text of padding alone.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        gates = model.embedding.weight.new_ones(mask.shape).requires_grad_()
        trace = model(tokens, mask, gates=gates)
        right = (2 * labels - 1) * trace.logit
        (found,) = torch.autograd.grad(right.sum(), gates)
    return found * mask, trace
