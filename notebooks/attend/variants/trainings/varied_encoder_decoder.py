"""The encoder-decoder of a :class:`~companion.runs.spec.ModelSpec`, built differently in one respect.

What Aitken et al. 2021 say about their networks beyond the introduction is known from public summaries alone,
and from what the authors' public library did at that time. The variants are our readings of these.

====================  ==========================================================================  ===========
variant               difference                                                                  of
====================  ==========================================================================  ===========
``plain``             none: :class:`~attnlib.models.encoder_decoder.EncoderDecoder`               AED, AO
``context_readout``   logits W_C c_s + b, without the decoder state                               AO
``gated``             states of a GRU whose recurrent input is 0, instead of a tanh layer         AO
``learned_maps``      scores (W_Q h^D_s)·(W_K h^E_t), contexts Σ_t α_st W_V h^E_t                 AED, AO
``authors_defaults``  how the authors' library starts and what its GRU computes                   AED
====================  ==========================================================================  ===========

It is trained as :func:`companion.runs.encoder_decoder.train` trains the plain one. A recording holds the
parameters of the trained network, ``network.<parameter>``.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput, check_known
from attnlib.linear_map import LinearMap
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import EncoderDecoder, sinusoidal_positions
from attnlib.models.initialise import draw_parameters
from attnlib.models.recurrence import fused_layer, unroll
from attnlib.trace import Attention, Trace
from companion.data.task import Task
from companion.runs import store
from companion.runs.encoder_decoder import BatchesInOrder, loss_of, schedule_of
from companion.runs.loop import Report, train_network
from companion.runs.procedure import Recording
from companion.runs.spec import ModelSpec

VERSION = 1  # of the training: raised when what it trains changes
_NETWORK = "network."

Inputs = Float[Tensor, "batch length width"]
States = Float[Tensor, "batch length width"]


class ContextReadout(EncoderDecoder):
    """AO whose output layer sees the context alone; its parameters start as those of the plain network."""

    def attend(self, batch: Batch, encoder_states: States, decoder_states: States) -> Trace:
        """Return the trace of given states, its logits those of the context."""
        trace = super().attend(batch, encoder_states, decoder_states)
        of_context = self.readout.weight[:, self.config.width :]  # (words, width)
        return replace(trace, logits=F.linear(trace.context, of_context, self.readout.bias))


class GatedFeedForward(EncoderDecoder):
    """AO whose states are those of a GRU that starts from zero at every position.

    With h = 0 the GRU is h' = (1 − z) n with z = sigmoid(W_z x + b_z) and n = tanh(W_n x + b_n + r b'), r
    another gate of x. No state depends on another position.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator):
        super().__init__(config, generator)
        with torch.random.fork_rng(devices=[]):  # what torch draws is drawn over below
            self.encoder = fused_layer("gru", config.width)
            self.decoder = fused_layer("gru", config.width)
        draw_parameters(self.encoder, generator)
        draw_parameters(self.decoder, generator)

    def encode_inputs(
        self,
        inputs: Inputs,
        lengths: Int[Tensor, " batch"] | None = None,
        *,
        initial: None = None,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> tuple[States, None]:
        """Return encoder states, and no state for the decoder to start in."""
        return self._gated(self.encoder, inputs, first_position), None

    def decode_inputs(
        self,
        inputs: Inputs,
        start: None,
        *,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> States:
        """Return decoder states."""
        return self._gated(self.decoder, inputs, first_position)

    def _gated(self, layer: nn.GRU, inputs: Inputs, first: int) -> States:
        codes = sinusoidal_positions(inputs.shape[1], self.config.width, first).to(inputs)
        alone = (inputs + codes).flatten(0, 1)[:, None]  # (batch · length, 1, width)
        states, _ = unroll(layer, alone)
        return states[:, 0].unflatten(0, inputs.shape[:2])


class LearnedMaps(EncoderDecoder):
    """AED or AO with linear maps for queries, keys and values, without bias, as in a head of a Transformer.

    All other parameters start as those of the plain network.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator):
        super().__init__(config, generator)
        with torch.random.fork_rng(devices=[]):  # what torch draws is drawn over below
            self.query_map, self.key_map, self.value_map = (
                nn.Linear(config.width, config.width, bias=False) for _ in range(3)
            )
        for layer in (self.query_map, self.key_map, self.value_map):
            draw_parameters(layer, generator)

    def attend(self, batch: Batch, encoder_states: States, decoder_states: States) -> Trace:
        """Return the trace of given states, with the maps in its attention."""
        scores = dot_scores(self.query_map(decoder_states), self.key_map(encoder_states))
        weights = masked_softmax(scores, batch.source_mask)
        values = self.value_map(encoder_states)
        context = weights @ values
        attention = Attention(
            "cross",
            0,
            query_inputs=decoder_states,
            key_inputs=encoder_states,
            maps=partial(_maps_of, self.query_map, self.key_map),
            model_scores=scores[:, None],
            weights=weights[:, None],
            values=values[:, None],
            context=context[:, None],
        )
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            encoder_states=encoder_states,
            decoder_states=decoder_states,
            attentions=(attention,),
            logits=self.readout(torch.cat([decoder_states, context], dim=-1)),
        )


def _maps_of(query_map: nn.Linear, key_map: nn.Linear) -> tuple[LinearMap, LinearMap]:
    return LinearMap.of(query_map, heads=1), LinearMap.of(key_map, heads=1)


class ResetFirstGRU(nn.Module):
    """The GRU of Cho et al. 2014 (arXiv 1406.1078, section 2.3): the reset gate acts before the product.

    torch's applies it to the product instead. Gates are in torch's order: reset, update, new.

    Args:
        width: of a state, and of the inputs.
    """

    def __init__(self, width: int):
        super().__init__()
        self.hidden_size = width
        self.weight_ih_l0 = nn.Parameter(torch.empty(3 * width, width))
        self.weight_hh_l0 = nn.Parameter(torch.empty(3 * width, width))
        self.bias_l0 = nn.Parameter(torch.empty(3 * width))

    def forward(self, inputs: Inputs, initial: Float[Tensor, "batch width"]) -> States:
        """Return the states at every step.

        Args:
            inputs: one vector a step.
            initial: the state to start in.
        """
        width = self.hidden_size
        from_inputs = F.linear(inputs, self.weight_ih_l0, self.bias_l0)  # (batch, length, 3 width)
        gates_of_state, new_of_state = self.weight_hh_l0.split([2 * width, width])
        state = initial
        states = []
        for column in from_inputs.unbind(dim=1):
            of_gates, of_new = column.split([2 * width, width], dim=-1)
            reset, update = torch.sigmoid(of_gates + state @ gates_of_state.T).chunk(2, dim=-1)
            new = torch.tanh(of_new + (reset * state) @ new_of_state.T)
            state = torch.lerp(new, state, update)
            states.append(state)
        return torch.stack(states, dim=1)


class AuthorsDefaults(EncoderDecoder):
    """AED that starts, and computes its GRU, as the authors' public library of January 2021 did.

    Embeddings are orthogonal, biases zero, the encoder's first state is a trained parameter, and the GRU is
    :class:`ResetFirstGRU`. That this state starts at zero is our choice, and so is that the decoder starts
    from the encoder's last one.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator):
        super().__init__(config, generator)
        self.encoder, self.decoder = ResetFirstGRU(config.width), ResetFirstGRU(config.width)
        self.first_state = nn.Parameter(torch.zeros(config.width))
        for layer in (self.encoder, self.decoder):
            draw_parameters(layer, generator)
        with torch.no_grad():
            for embedding in (self.source_embedding, self.target_embedding):
                nn.init.orthogonal_(embedding.weight, generator=generator)
            for bias in (self.encoder.bias_l0, self.decoder.bias_l0, self.readout.bias):
                bias.zero_()

    def encode_inputs(
        self,
        inputs: Inputs,
        lengths: Int[Tensor, " batch"] | None = None,
        *,
        initial: Float[Tensor, "batch width"] | None = None,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> tuple[States, Float[Tensor, "batch width"]]:
        """Return encoder states, zero beyond a sample's end, and the last."""
        if initial is None:
            initial = self.first_state.expand(len(inputs), -1)
        states = self.encoder(inputs, initial)
        if lengths is None:
            return states, states[:, -1]
        valid = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
        last = states.take_along_dim((lengths - 1)[:, None, None], dim=1)[:, 0]
        return states * valid[:, :, None], last

    def decode_inputs(
        self,
        inputs: Inputs,
        start: Float[Tensor, "batch width"] | None,
        *,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> States:
        """Return decoder states."""
        if start is None:
            start = inputs.new_zeros(len(inputs), self.config.width)
        return self.decoder(inputs, start)


VARIANTS: dict[str, type[EncoderDecoder]] = {
    "plain": EncoderDecoder,
    "context_readout": ContextReadout,
    "gated": GatedFeedForward,
    "learned_maps": LearnedMaps,
    "authors_defaults": AuthorsDefaults,
}
ARCHITECTURES_OF = {
    "plain": ("AED", "AO"),
    "context_readout": ("AO",),
    "gated": ("AO",),
    "learned_maps": ("AED", "AO"),
    "authors_defaults": ("AED",),
}


@dataclass(frozen=True)
class Settings:
    """Which network, and how it is trained: what of a `ModelSpec` the variants share."""

    task: str = "one_to_one"
    architecture: str = "AO"
    variant: str = "plain"
    _: KW_ONLY
    options: tuple[tuple[str, object], ...] = ()
    width: int = 128
    steps: int = 1_000
    batch_size: int = 64
    learning_rate: float = 2e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_known("variant", self.variant, tuple(VARIANTS))
        if self.architecture not in ARCHITECTURES_OF[self.variant]:
            raise BadInput(
                f"variant {self.variant} of {self.architecture}; it is one of "
                f"{' and '.join(ARCHITECTURES_OF[self.variant])}"
            )
        object.__setattr__(self, "options", tuple(sorted(self.options)))
        self.config(1, 1)  # what the network cannot be, its own settings say
        schedule_of(self.spec)

    @property
    def spec(self) -> ModelSpec:
        """The plain network that is trained in the same way."""
        return ModelSpec(
            self.task,
            self.architecture,
            self.steps,
            width=self.width,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
            task_options=self.options,
        )

    def config(self, source_size: int, target_size: int) -> ModelConfig:
        """Return the size of the network for vocabularies of these sizes."""
        return ModelConfig(self.architecture, source_size, target_size, width=self.width)


def task_of(settings: Settings) -> tuple[str, dict[str, object]]:
    """Return the task that is trained on, by name, and its options."""
    return settings.task, dict(settings.options)


def load_task(settings: Settings) -> Task:
    """Return the task, made once a process."""
    return store.load_task(settings.task, settings.options)


def new_network(settings: Settings, task: Task) -> EncoderDecoder:
    """Return the untrained network, its parameters drawn from the seed."""
    config = settings.config(len(task.source_vocabulary), len(task.target_vocabulary))
    return VARIANTS[settings.variant](config, torch.Generator().manual_seed(settings.seed))


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the network and return its parameters."""
    task = load_task(settings)
    network = new_network(settings, task)
    batches = BatchesInOrder(task.train, settings.batch_size, settings.seed)
    train_network(network, batches, loss_of, schedule_of(settings.spec), folder, device=device, report=report)
    return {f"{_NETWORK}{name}": value.cpu() for name, value in network.state_dict().items()}


def recorded_network(recording: Recording) -> EncoderDecoder:
    """Return the trained network of a recording, in evaluation mode."""
    settings = recording.spec.resolved
    network = new_network(settings, load_task(settings))
    state = {
        name.removeprefix(_NETWORK): value
        for name, value in recording.tensors.items()
        if name.startswith(_NETWORK)
    }
    network.load_state_dict(state)
    return network.eval()
