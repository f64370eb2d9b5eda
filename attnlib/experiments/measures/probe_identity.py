"""How far a prediction follows from the lexical probe and the attention alone, in trained networks.

Snell et al. 2021, section 3.3, equation 12. Where the logits are linear in the attention, a position alone
gives the logits γ_l + γ_s, and their mean over the attention is the network's own. With β_l(o) the
probability of word o from position l alone,

    p(o) ∝ exp( Σ_l α_l log β_l(o) )

for every word o: a weighted geometric mean of whole distributions, normalised. With two outputs this is
equation 12, p = σ( Σ_l α_l σ⁻¹(β_l) ). With more it needs β of all words, not of the right one alone; and
with a nonlinear layer after the sum it does not hold.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib.experiments.measures.recorded_translation import recorded_batches
from attnlib.probes.ragged import padded
from attnlib.recipes.translation import recorded_network

if TYPE_CHECKING:
    from attnlib.models.bilinear_translator import BilinearTranslator
    from attnlib.recipes.recipe import Recording
    from attnlib.tasks.corpus import Batch


@torch.no_grad()
def measure_probe_identity(recording: "Recording", *, samples: int) -> dict:
    """Log-probabilities of the right words, rebuilt from probe and attention, less the network's own.

    In double precision, on the first validation samples (0 for all).

    Returns:
        ``words``; ``all_words``, from β of every word, and ``right_word``, from equation 12 with β of the
        right word alone: each ``{"mean", "largest"}`` of the absolute difference, in nats.
    """
    network = recorded_network(recording.spec.resolved, recording.tensors)
    network = network.double().to(recording["steps"].device)
    found: dict[str, list[Tensor]] = {"all_words": [], "right_word": []}
    for batch in recorded_batches(recording, samples):
        for name, values in _differences(network, batch).items():
            found[name].append(values[batch.target_mask].abs())
    joined = {name: torch.cat(values) for name, values in found.items()}
    return {"words": len(joined["all_words"])} | {
        name: {"mean": float(values.mean()), "largest": float(values.max())}
        for name, values in joined.items()
    }


def _differences(network: "BilinearTranslator", batch: "Batch") -> dict[str, Tensor]:
    """Rebuilt less own log-probability of each right word, (batch, target); arbitrary at padding.

    A target position at a time: the probe of all words is batch × source × words numbers.
    """
    readout, trace = network.readout, network(batch)
    of_source = readout.from_context(trace.encoder_states)
    of_target = readout.from_decoder(trace.decoder_states)
    own = _of_right(trace.logits.log_softmax(-1), batch.target_output)
    rebuilt: dict[str, list[Tensor]] = {"all_words": [], "right_word": []}
    for step, right in enumerate(batch.target_output.unbind(1)):
        log_probe = readout.logits(of_source + of_target[:, step, None]).log_softmax(-1)
        attention = trace.attention[:, step]  # (batch, source), zero at padding
        mean = torch.einsum("bl,blo->bo", attention, log_probe)
        rebuilt["all_words"].append(_of_right(mean.log_softmax(-1), right))
        of_word = log_probe.gather(2, right[:, None, None].expand(-1, log_probe.shape[1], 1))[..., 0]
        rebuilt["right_word"].append(_log_sigmoid_of_mean(attention, of_word))
    return {name: torch.stack(values, 1) - own for name, values in rebuilt.items()}


def _log_sigmoid_of_mean(attention: Tensor, log_probe: Tensor) -> Tensor:
    """log σ( Σ_l α_l σ⁻¹(β_l) ), finite where β rounds to 1."""
    others = torch.log(-torch.expm1(log_probe.clamp(max=-1e-15)))
    return torch.nn.functional.logsigmoid((attention * (log_probe - others)).sum(-1))


def _of_right(values: Tensor, words: Tensor) -> Tensor:
    return values.gather(-1, words[..., None])[..., 0]


def measure_classifier_identity(recording: "Recording") -> dict:
    """The validation loss of a classifier, rebuilt from its recorded probe and attention by equation 12.

    The recording has log β/(1 − β), which is σ⁻¹(β) before it is rounded away.

    Returns:
        by checkpoint ``steps``, ``loss`` and ``rebuilt`` (nats a text); ``deviation``, the largest absolute
        difference of the two; ``wrong``, texts whose rebuilt label is not the recorded one, and
        ``accuracy`` at the last checkpoint.
    """
    offsets = recording["validation.offsets"]
    log_odds, _ = padded(recording["validation.log_polarity"].double(), offsets)
    attention, _ = padded(recording["validation.attention"].double(), offsets)
    of_texts = (attention * log_odds).sum(-1)  # (checkpoints, texts)
    rebuilt = -torch.nn.functional.logsigmoid(of_texts).mean(-1)
    correct, loss = recording["validation.correct"], recording["validation.loss"].double()
    # A text of log odds 0 has label 0, whichever way they were turned.
    wrong = ((of_texts > 0) != correct) & (of_texts.abs() > 1e-6)
    return {
        "steps": recording["steps"].tolist(),
        "loss": loss.tolist(),
        "rebuilt": rebuilt.tolist(),
        "deviation": float((rebuilt - loss).abs().max()),
        "wrong": int(wrong.sum()),
        "accuracy": float(correct[-1].double().mean()),
    }
