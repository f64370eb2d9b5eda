"""VED, AED and AO: one family of small encoder-decoder networks (Aitken et al. 2021, introduction).

All three embed both sides, form encoder states h^E_t and decoder states h^D_s of one width, and read the next
word off a linear layer. They differ in what forms the states and in what the readout sees:

=====  ======================================  ======================================  ===================
       states                                  link from encoder to decoder            logits
=====  ======================================  ======================================  ===================
VED    recurrent                               last encoder state starts the decoder   W h^D_s + b
AED    recurrent                               the same, and attention                 W [h^D_s ; c_s] + b
AO     tanh(W (x_t + p_t) + b), no recurrence  attention alone                         W [h^D_s ; c_s] + b
=====  ======================================  ======================================  ===================

Attention is the unscaled dot product of decoder and encoder state; the context does not feed back into the
decoder's recurrence. The text at hand does not give AO's nonlinearity or the readout's form: a tanh layer
and the concatenation of state and context are our choice.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.positions import sinusoidal_positions
from attnlib.models.recurrence import State, fused_layer, unroll
from attnlib.models.trace import Trace
from attnlib.tasks.corpus import Batch


class EncoderDecoder(nn.Module):
    """A network of the family, its parameters drawn from ``generator`` alone.

    >>> config = ModelConfig("AED", source_size=7, target_size=7, width=8)
    >>> model = EncoderDecoder(config, torch.Generator().manual_seed(0))
    >>> model.source_embedding.weight.shape
    torch.Size([7, 8])
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        recurrent, attends = config.architecture != "AO", config.architecture != "VED"
        with torch.device(
            "meta"
        ):  # no storage yet, so torch's own initialisation draws nothing from global state
            self.source_embedding = nn.Embedding(config.source_size, config.width)
            self.target_embedding = nn.Embedding(config.target_size, config.width)
            self.encoder = (
                fused_layer(config.cell, config.width) if recurrent else nn.Linear(config.width, config.width)
            )
            self.decoder = (
                fused_layer(config.cell, config.width) if recurrent else nn.Linear(config.width, config.width)
            )
            self.readout = nn.Linear(config.width * (2 if attends else 1), config.target_size)
        self.to_empty(device="cpu")
        self._initialise(generator)

    def _initialise(self, generator: torch.Generator) -> None:
        """Embeddings N(0, scale²); weights and biases uniform in ±1/√inputs, as torch does."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if "embedding" in name:
                    parameter.normal_(0, self.config.embedding_scale, generator=generator)
                else:
                    layer = self.get_submodule(name.rpartition(".")[0])
                    inputs = layer.in_features if isinstance(layer, nn.Linear) else layer.hidden_size
                    parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)

    def encode(
        self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"], **unrolling
    ) -> tuple[Float[Tensor, "batch source width"], State | None]:
        """Encoder states h^E_t, and the state handed to a recurrent decoder (None for AO)."""
        inputs = self.source_embedding(source)
        if self.config.architecture == "AO":
            return self._feed_forward(self.encoder, inputs), None
        return unroll(self.encoder, inputs, lengths=source_mask.sum(dim=1), **unrolling)

    def decode(
        self, target_input: Int[Tensor, "batch target"], start: State | None, **unrolling
    ) -> Float[Tensor, "batch target width"]:
        """Decoder states h^D_s under teacher forcing: the state at s has read the tokens up to and with s."""
        inputs = self.target_embedding(target_input)
        if self.config.architecture == "AO":
            return self._feed_forward(self.decoder, inputs)
        return unroll(self.decoder, inputs, start, **unrolling)[0]

    def _feed_forward(self, layer: nn.Module, inputs: Tensor) -> Tensor:
        if self.config.positions == "sinusoidal":
            inputs = inputs + sinusoidal_positions(inputs.shape[1], self.config.width).to(inputs)
        return torch.tanh(layer(inputs))

    def forward(self, batch: Batch, implementation: Literal["fused", "loop"] = "fused") -> Trace:
        """One teacher-forced pass, with everything an analysis may ask of it.

        Every field of the trace is needed for the logits anyway, so returning it costs nothing.
        """
        encoder_states, last = self.encode(batch.source, batch.source_mask, implementation=implementation)
        decoder_states = self.decode(batch.target_input, last, implementation=implementation)
        scores = attention = context = None
        features = decoder_states
        if self.config.architecture != "VED":
            scores = dot_scores(decoder_states, encoder_states)
            attention = masked_softmax(scores, batch.source_mask)
            context = attention @ encoder_states
            features = torch.cat([decoder_states, context], dim=-1)
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            encoder_states=encoder_states,
            decoder_states=decoder_states,
            scores=scores,
            attention=attention,
            context=context,
            logits=self.readout(features),
        )
