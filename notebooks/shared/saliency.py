"""Saliency: how much the right class's score moves with a word's vector (Snell et al. 2021, section 5.1).

The embedding of position l is multiplied by a gate g_l, and with all gates at 1

    saliency_l = ∂/∂g_l (2y − 1) · logit        = (2y − 1) · ⟨∂ logit / ∂e_l, e_l⟩

the derivative of the right label's log odds; it may be negative. Texts of a batch do not touch one another,
so one backward pass from the sum of their scores gives the saliency of every position of every text.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.models.classifiers import AttentiveClassifier, ClassifierTrace
from attnlib.models.translator import BilinearTranslator
from attnlib.training.corpus import Batch


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


# In translation, with a gate g_t on the embedding of source position t and all gates at 1,
#
#     Δ[s, t] = ∂/∂g_t logit_s[right word of s] = ⟨∂ logit_s[right word] / ∂e_t, e_t⟩,
#
# under teacher forcing, through the attention, the encoder's states and the decoder's start alike; it may be
# negative. Snell et al. 2021 name the method alone (section 5.1: gradients, after Ebrahimi et al. 2018). The
# score is the word's logit, as it is in the classifier, not its log-probability.


def translation_saliency(model: BilinearTranslator, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Saliency of every valid pair of positions, zero at padding; no parameter is given a gradient.

    One pass forward and one backward a target position: samples do not touch one another, so the position's
    gradients of all samples come at once. The model should be in evaluation mode.

    Raises:
        BadInput: a source of padding alone.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        gates = model.embedding.weight.new_ones(batch.source.shape).requires_grad_()
        encoder_states, start = model.encode(
            model.embedding(batch.source) * gates[:, :, None], batch.source_mask
        )
        decoder_states, _ = model.decoder(model.embedding(batch.target_input), start)
        _, attention = model.attend(encoder_states, batch.source_mask, decoder_states)
        readout = model.readout
        summed = readout.from_context(attention @ encoder_states) + readout.from_decoder(decoder_states)
        scores = readout.logit_of(summed, batch.target_output)
        rows = [
            torch.autograd.grad(score.sum(), gates, retain_graph=True)[0] for score in scores.unbind(dim=1)
        ]
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    return torch.stack(rows, dim=1) * valid
