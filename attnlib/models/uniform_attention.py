"""The encoder-decoder with attention held uniform: what a network learns that cannot choose among words.

Snell et al. 2021 train such networks to ask what is learned before attention is: β^uf is their lexical probe
(section 4). Everything but the weights is as in :class:`~attnlib.models.encoder_decoder.EncoderDecoder`, the
parameters drawn at the start among it, so a network and its uniform twin begin alike.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.models.attention import masked_softmax
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.trace import Trace
from attnlib.tasks.corpus import Batch


class UniformEncoderDecoder(EncoderDecoder):
    """The same weight on every valid source position, whatever the scores are."""

    def attend(
        self,
        batch: Batch,
        encoder_states: Float[Tensor, "batch source width"],
        decoder_states: Float[Tensor, "batch target width"],
    ) -> Trace:
        """From states to logits, all scores 0."""
        learned = super().attend(batch, encoder_states, decoder_states)
        scores = torch.zeros_like(learned.scores)
        attention = masked_softmax(scores, batch.source_mask)
        context = attention @ encoder_states
        logits = self.readout(torch.cat([decoder_states, context], dim=-1))
        return replace(learned, scores=scores, attention=attention, context=context, logits=logits)
