"""What saliency may mean in translation: the second paper names its method alone (section 5.1: gradients).

Of target position s and the embedding e_t of source position t, under teacher forcing:

    logit             ⟨∂ logit_s[y_s] / ∂e_t, e_t⟩, as :mod:`attnlib.probes.saliency` has it
    log_probability   the same of log p_s[y_s]
    gradient_norm     |∂ log p_s[y_s] / ∂e_t|

With two labels the first two have one order within a text, for log p moves by 1 − p times what the right
label's log odds do. With more words they differ: what makes all words likelier leaves log p where it is.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.models.translator import BilinearTranslator
from attnlib.training.corpus import Batch

READINGS = ("logit", "log_probability", "gradient_norm")


def saliency_readings(
    model: BilinearTranslator, batch: Batch
) -> dict[str, Float[Tensor, "batch target source"]]:
    """Every reading of :data:`READINGS` for all valid pairs of positions, zero at padding.

    One pass forward and two backward a target position: samples do not touch one another, so a position's
    gradients of all samples come at once. The model should be in evaluation mode; no parameter is given a
    gradient.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        embedded = model.embedding(batch.source).detach().requires_grad_()
        states, start = model.encode(embedded, batch.source_mask)
        decoded, _ = model.decoder(model.embedding(batch.target_input), start)
        _, attention = model.attend(states, batch.source_mask, decoded)
        readout = model.readout
        logits = readout.logits(readout.from_context(attention @ states) + readout.from_decoder(decoded))
        right = batch.target_output[:, :, None]
        gradients = {
            "logit": _gradients(logits.gather(-1, right)[:, :, 0], embedded),
            "log_probability": _gradients(logits.log_softmax(-1).gather(-1, right)[:, :, 0], embedded),
        }
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    found = {name: (own * embedded.detach()[:, None]).sum(-1) for name, own in gradients.items()}
    found["gradient_norm"] = gradients["log_probability"].norm(dim=-1)
    return {name: values * valid for name, values in found.items()}


def _gradients(
    scores: Float[Tensor, "batch target"], embedded: Float[Tensor, "batch source width"]
) -> Float[Tensor, "batch target source width"]:
    """Of each target position's score by each source embedding of its sample."""
    rows = [torch.autograd.grad(score.sum(), embedded, retain_graph=True)[0] for score in scores.unbind(1)]
    return torch.stack(rows, dim=1)
