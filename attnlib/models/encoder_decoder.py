"""Build VED, AED and AO, one family of small encoder-decoder networks (Aitken et al. 2021, introduction).

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
decoder's recurrence. The available text has three architectures, with attention or recurrence or both: their
names, the dot product, AO's tanh layer and the concatenation of state and context are not in it.
"""

from functools import lru_cache, partial
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.linear_map import compared_as_they_are
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Batch
from attnlib.models.initialise import fan_in
from attnlib.models.recurrence import Recurrence, State, fused_layer, unroll
from attnlib.trace import Attention, Trace

# Position codes for networks without recurrence, added to the embeddings of both sides.
#
# ==============  =========================================================================================
# ``sinusoidal``  sines and cosines; nearby positions have nearby codes, any length has one
# ``shuffled``    the same codes, assigned to positions at random, once and for all: each position has another
#                 code, which does not say what its neighbours are
# ``learned``     a trained table for each side
# ``none``        nothing: the states of a token are the same at every position
# ==============  =========================================================================================

TABLE_ROWS = 128  # of learned and shuffled codes
TABLES_KEPT = 128  # of computed codes, each of one length, so that no step of training makes them again
_SHUFFLE_SEED = 0  # any fixed number: both sides and all networks meet the same codes


def sinusoidal_positions(length: int, width: int, first: int = 0) -> Float[Tensor, "length width"]:
    """Return sines in even and cosines in odd columns (Vaswani et al. 2017, section 3.5).

    Wavelengths go from 2π to 10000·2π.

    Args:
        length: number of positions.
        width: number of columns, even.
        first: the first position.

    Returns:
        A row for each position.

    Example:
        >>> sinusoidal_positions(1, 4).tolist()
        [[0.0, 1.0, 0.0, 1.0]]
    """
    return _sinusoidal_positions(length, width, first).clone()


@lru_cache(maxsize=TABLES_KEPT)
def _sinusoidal_positions(length: int, width: int, first: int) -> Float[Tensor, "length width"]:
    column = torch.arange(0, width, 2, dtype=torch.float64)  # (width / 2,)
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / 10_000 ** (column / width)  # (length, width / 2)
    codes = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (length, width / 2, 2)
    return codes.flatten(1).float()


def shuffled_positions(length: int, width: int, first: int = 0) -> Float[Tensor, "length width"]:
    """Return rows of the sinusoidal table in an order that was drawn once for all networks.

    Args:
        length: number of positions.
        width: number of columns, even.
        first: the first position.

    Returns:
        A row for each position.

    Raises:
        BadInput: a position is beyond the table's 128 rows.

    Example:
        >>> table = sinusoidal_positions(TABLE_ROWS, 4)
        >>> bool((table == shuffled_positions(1, 4)).all(1).any())
        True
    """
    check_table(first + length)
    return sinusoidal_positions(TABLE_ROWS, width)[_shuffled_order()[first : first + length]]


@lru_cache(maxsize=1)
def _shuffled_order() -> Int[Tensor, " rows"]:
    return torch.randperm(TABLE_ROWS, generator=torch.Generator().manual_seed(_SHUFFLE_SEED))


def check_table(end: int) -> None:
    """Raise BadInput if positions below ``end`` need more rows than a table has.

    Args:
        end: the position after the last.

    Raises:
        BadInput: ``end`` is larger than :data:`TABLE_ROWS`.

    Example:
        >>> check_table(TABLE_ROWS)
    """
    if end > TABLE_ROWS:
        raise BadInput(
            f"position {end - 1} is beyond the {TABLE_ROWS} rows of the table; use sinusoidal positions"
        )


class EncoderDecoder(nn.Module):
    """A network of the family, its parameters drawn from ``generator`` alone.

    Args:
        config: size and kind.
        generator: draws the parameters.

    Example:
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = ModelConfig("AED", source_size=9, target_size=9, width=4)
        >>> network = EncoderDecoder(config, torch.Generator().manual_seed(0))
        >>> trace = network(collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
        >>> tuple(trace.logits.shape), trace.attentions[0].name
        ((1, 2, 9), 'cross.0')
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        recurrent, attends = config.architecture != "AO", config.architecture != "VED"
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.source_embedding = nn.Embedding(config.source_size, config.width)
            self.target_embedding = nn.Embedding(config.target_size, config.width)
            self.encoder = (
                fused_layer(config.cell, config.width) if recurrent else nn.Linear(config.width, config.width)
            )
            self.decoder = (
                fused_layer(config.cell, config.width) if recurrent else nn.Linear(config.width, config.width)
            )
            self.readout = nn.Linear(config.width * (2 if attends else 1), config.target_size)
            if not recurrent and config.positions == "learned":
                self.encoder_position_embedding = nn.Embedding(TABLE_ROWS, config.width)
                self.decoder_position_embedding = nn.Embedding(TABLE_ROWS, config.width)
        self._initialise(generator)

    def _initialise(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if "embedding" in name:
                    parameter.normal_(0, self.config.embedding_scale, generator=generator)
                else:
                    layer = self.get_submodule(name.rpartition(".")[0])
                    inputs = fan_in(layer)
                    parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)

    def encode(
        self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"], **options
    ) -> tuple[Float[Tensor, "batch source width"], State | None]:
        """Return encoder states h^E_t, and the state that a recurrent decoder starts in (None for AO).

        Args:
            source: ids of the source tokens.
            source_mask: True at words and end marks, which come first.
            options: as for :meth:`encode_inputs`.

        Returns:
            The states, zero beyond a sample's end in a recurrent network, and the last.
        """
        return self.encode_inputs(self.source_embedding(source), source_mask.sum(dim=1), **options)

    def encode_inputs(
        self,
        inputs: Float[Tensor, "batch source width"],
        lengths: Int[Tensor, " batch"] | None = None,
        *,
        initial: State | None = None,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> tuple[Float[Tensor, "batch source width"], State | None]:
        """Return what :meth:`encode` does, from embeddings, which need not be those of words.

        Args:
            inputs: one embedding a position.
            lengths: valid steps of each sample; all of them by default.
            initial: the state that a recurrent encoder starts in; zero by default.
            first_position: the position of the first step, for AO.
            implementation: of the recurrence, see :func:`~attnlib.models.recurrence.unroll`.

        Returns:
            The states, and the last (None for AO).

        Raises:
            BadInput: ``initial`` for AO, ``first_position`` for a recurrent network, or a position without
                code.
        """
        if self._has_positions(initial, first_position):
            return self._feed_forward(self.encoder, "encoder", inputs, first=first_position), None
        recurrence = cast("Recurrence", self.encoder)  # without positions
        return unroll(recurrence, inputs, initial, lengths=lengths, implementation=implementation)

    def decode(
        self, target_input: Int[Tensor, "batch target"], start: State | None, **options
    ) -> Float[Tensor, "batch target width"]:
        """Return decoder states h^D_s under teacher forcing; that at s has read the tokens up to s.

        Args:
            target_input: ids that the decoder reads.
            start: what :meth:`encode` handed over.
            options: as for :meth:`decode_inputs`.
        """
        return self.decode_inputs(self.target_embedding(target_input), start, **options)

    def decode_inputs(
        self,
        inputs: Float[Tensor, "batch target width"],
        start: State | None,
        *,
        first_position: int = 0,
        implementation: Literal["fused", "loop"] = "fused",
    ) -> Float[Tensor, "batch target width"]:
        """Return what :meth:`decode` does, from embeddings, which need not be those of words.

        Args:
            inputs: one embedding a step.
            start: the state that a recurrent decoder starts in; None for zero, and for AO.
            first_position: the position of the first step, for AO.
            implementation: of the recurrence, see :func:`~attnlib.models.recurrence.unroll`.

        Raises:
            BadInput: as for :meth:`encode_inputs`.
        """
        if self._has_positions(start, first_position):
            return self._feed_forward(self.decoder, "decoder", inputs, first=first_position)
        recurrence = cast("Recurrence", self.decoder)  # without positions
        return unroll(recurrence, inputs, start, implementation=implementation)[0]

    def _has_positions(self, initial: State | None, first_position: int) -> bool:
        positions = self.config.architecture == "AO"
        if positions and initial is not None:
            raise BadInput("AO has no state to start in; shift it with first_position")
        if first_position < 0 or (first_position and not positions):
            raise BadInput(
                f"first_position={first_position}: must be ≥ 0, and 0 for a recurrent network (use initial)"
            )
        return positions

    def _feed_forward(self, layer: nn.Module, side: str, inputs: Tensor, *, first: int) -> Tensor:
        """Return AO's states of one side: a layer of what is embedded and its position code."""
        length = inputs.shape[1]
        match self.config.positions:
            case "learned":
                check_table(first + length)
                if side == "encoder":
                    table = self.encoder_position_embedding
                else:
                    table = self.decoder_position_embedding
                inputs = inputs + table.weight[first : first + length]
            case "sinusoidal":
                inputs = inputs + sinusoidal_positions(length, self.config.width, first).to(inputs)
            case "shuffled":
                inputs = inputs + shuffled_positions(length, self.config.width, first).to(inputs)
            case "none":
                pass
        return torch.tanh(layer(inputs))

    def forward(self, batch: Batch, implementation: Literal["fused", "loop"] = "fused") -> Trace:
        """Run a teacher-forced pass.

        Args:
            batch: sentence pairs.
            implementation: of the recurrence, see :func:`~attnlib.models.recurrence.unroll`.

        Returns:
            The trace; that of VED has no attention.
        """
        encoder_states, last = self.encode(batch.source, batch.source_mask, implementation=implementation)
        decoder_states = self.decode(batch.target_input, last, implementation=implementation)
        return self.attend(batch, encoder_states, decoder_states)

    def attend(
        self,
        batch: Batch,
        encoder_states: Float[Tensor, "batch source width"],
        decoder_states: Float[Tensor, "batch target width"],
    ) -> Trace:
        """Return the trace of given states: their scores, attention, context and readout.

        Args:
            batch: the sentence pairs.
            encoder_states: h^E.
            decoder_states: h^D.
        """
        attentions: tuple[Attention, ...] = ()
        features = decoder_states
        if self.config.architecture != "VED":
            scores, weights = self.weigh(batch, encoder_states, decoder_states)
            context = weights @ encoder_states
            features = torch.cat([decoder_states, context], dim=-1)
            attention = Attention(
                "cross",
                0,
                query_inputs=decoder_states,
                key_inputs=encoder_states,
                maps=partial(compared_as_they_are, decoder_states, encoder_states),
                model_scores=scores[:, None],
                attention=weights[:, None],
                values=encoder_states[:, None],
                context=context[:, None],
            )
            attentions = (attention,)
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            encoder_states=encoder_states,
            decoder_states=decoder_states,
            attentions=attentions,
            logits=self.readout(features),
        )

    def weigh(
        self,
        batch: Batch,
        encoder_states: Float[Tensor, "batch source width"],
        decoder_states: Float[Tensor, "batch target width"],
    ) -> tuple[Float[Tensor, "batch target source"], Float[Tensor, "batch target source"]]:
        """Return the scores and the attention of given states.

        Args:
            batch: the sentence pairs.
            encoder_states: h^E.
            decoder_states: h^D.

        Returns:
            Scores, padding included, and attention, zero at padding.
        """
        scores = dot_scores(decoder_states, encoder_states)
        return scores, masked_softmax(scores, batch.source_mask)
