"""A Transformer that translates: encoder and decoder of attention alone (Vaswani et al. 2017), pre-norm.

====================  ====================================================================================
what is embedded      words and positions, added (sections 3.4 and 3.5; see ``embedding_scale`` of the config)
encoder layer         self-attention over all words of the source, feed-forward (section 3.1)
decoder layer         self-attention over the words read so far, cross-attention on the encoder states,
                      feed-forward (section 3.1; who may look at what: section 3.2.3)
encoder states h^E    LayerNorm of the last encoder layer's states: what every cross-attention reads
decoder states h^D    LayerNorm of the last decoder layer's states
logits                W h^D + b
====================  ====================================================================================

Norms come before each part of a layer and once after the last (Xiong et al. 2020, table 1), not after each
sum. No dropout. The embeddings of both sides and the output layer have a matrix each, which the paper shares
(section 3.4). The feed-forward network is W_2 max(0, W_1 x + b_1) + b_2 (equation 2).

A head of width d compares states x, for queries, with states y, for keys, and returns a mean of values:

==============  ==========================================  ============================================
queries         q_s = (W_q x_s + b_q) / √d                  Vaswani et al. 2017, section 3.2.2
keys, values    k_t = W_k y_t + b_k, v_t = W_v y_t + b_v    the same
scores          a_st = q_s · k_t                            equation 1; its factor 1/√d is in the query
attention       α_st: softmax of a_st over the allowed t    equation 1; allowed: section 3.2.3
context         c_s = Σ_t α_st v_t                          equation 1
all heads       W_o [c_s of head 1 ; … ; of head H] + b_o   section 3.2.2, "MultiHead"
==============  ==========================================  ============================================

The paper's projections have no bias; most implementations give them one, and so do we. The bias of
the keys adds the same number to all scores of a query and leaves the attention as it is.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from typing import Literal, cast, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput, check_known
from attnlib.former_names import former_object
from attnlib.linear_map import LinearMap, Rotary, Rotation
from attnlib.models.attention import is_checked
from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import TABLE_ROWS, TABLES_KEPT, check_table, sinusoidal_positions
from attnlib.models.initialise import draw_parameters
from attnlib.softmax import softmax_over
from attnlib.trace import Attention, AttentionKind, Trace

Positions = Literal["sinusoidal", "learned", "relative", "rotary", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """Size and kind of a :class:`Transformer`.

    Attributes:
        source_size: size of the source's vocabulary, marks included.
        target_size: size of the target's vocabulary, marks included.
        width: of embeddings and states; the heads of an attention share it equally.
        heads: of every attention.
        layers: of encoder and of decoder.
        hidden: width of the hidden layer in the feed-forward networks; None is four times ``width``, as in
            Vaswani et al. 2017, section 3.3.
        positions: what is added to the embeddings, see :mod:`attnlib.models.encoder_decoder`; or what
            self-attention does with distances (``relative``, ``rotary``). With ``none`` the encoder sees its
            words as a set; the decoder still knows order from what each step may look at.
        embedding_scale: standard deviation of the embeddings at the start, learned positions included. With 1
            they weigh about as much as sinusoidal positions, whose root mean square is 0.71; it replaces the
            factor √width (Vaswani et al. 2017, section 3.4).

    Raises:
        UnknownName: positions that do not exist.
        BadInput: a size below 1; a width that the heads do not divide; an odd width with sinusoidal
            positions, or of a head with rotary ones.

    Example:
        >>> TransformerConfig(source_size=7, target_size=9, width=32, heads=4).head_width
        8
    """

    source_size: int
    target_size: int
    width: int = 128
    _: KW_ONLY
    heads: int = 4
    layers: int = 2
    hidden: int | None = None
    positions: Positions = "sinusoidal"
    embedding_scale: float = 1.0

    def __post_init__(self) -> None:
        check_known("positions", str(self.positions), get_args(Positions))
        for name in ("source_size", "target_size", "width", "heads", "layers", "hidden"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise BadInput(f"{name} is {size}; it must be at least 1")
        if self.width % self.heads:
            raise BadInput(
                f"width is {self.width}, which {self.heads} heads do not divide; "
                f"take a multiple such as {-(-self.width // self.heads) * self.heads}"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise BadInput(
                f"width is {self.width}; sinusoidal positions need an even one, half sines, half cosines"
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise BadInput(
                f"heads of width {self.head_width}; rotary positions rotate pairs of coordinates, so that it "
                "must be even"
            )
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")

    @property
    def head_width(self) -> int:
        """Width of the queries, keys and values of one head."""
        return self.width // self.heads

    @property
    def hidden_width(self) -> int:
        """Width of the hidden layer in the feed-forward networks."""
        return 4 * self.width if self.hidden is None else self.hidden


@dataclass(frozen=True, eq=False, repr=False)
class KeyValues(ShowsShapes):
    """Keys and values of a sequence in every head; where layers are stacked, they are the second axis.

    Attributes:
        keys: of each position.
        values: of each position.

    Example:
        >>> layer = KeyValues(torch.zeros(1, 2, 5, 4), torch.zeros(1, 2, 5, 4))
        >>> tuple(KeyValues.stacked([layer, layer, layer]).keys.shape)
        (1, 3, 2, 5, 4)
    """

    keys: Float[Tensor, "batch ... heads source head_width"]
    values: Float[Tensor, "batch ... heads source head_width"]

    @classmethod
    def stacked(cls, layers: "list[KeyValues]") -> "KeyValues":
        """Put layers together; :meth:`layers` takes them apart.

        Args:
            layers: keys and values of each.

        Returns:
            All of them, with layers as the second axis.
        """
        keys = torch.stack([layer.keys for layer in layers], dim=1)
        values = torch.stack([layer.values for layer in layers], dim=1)
        return cls(keys, values)

    def layers(self) -> "list[KeyValues]":
        """Take layers apart that :meth:`stacked` put together.

        Returns:
            The keys and values of each layer.
        """
        by_layer = zip(self.keys.unbind(1), self.values.unbind(1), strict=True)
        return [KeyValues(keys, values) for keys, values in by_layer]

    def followed_by(self, later: "KeyValues") -> "KeyValues":
        """Append later positions of the same sequence, in one layer.

        Args:
            later: keys and values of these positions.

        Returns:
            Keys and values of all positions.
        """
        keys = torch.cat([self.keys, later.keys], dim=2)
        values = torch.cat([self.values, later.values], dim=2)
        return KeyValues(keys, values)


class MultiHeadAttention(nn.Module):
    """Several heads on the same inputs; head h has rows h·d to (h+1)·d of the three maps.

    Args:
        config: of the network.
        kind: which states attend to which.
        layer: its number, from 0.

    Example:
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2)
        >>> attention = MultiHeadAttention(config, "cross", 0)
        >>> states, allowed = torch.zeros(1, 3, 4), torch.ones(1, 1, 3, dtype=torch.bool)
        >>> added, _ = attention(states, attention.keys_and_values(states), allowed)
        >>> tuple(added.shape)
        (1, 3, 4)
    """

    def __init__(self, config: TransformerConfig, kind: AttentionKind, layer: int):
        super().__init__()
        self.kind: AttentionKind = kind
        self.layer = layer
        self.heads = config.heads
        self.head_width = config.head_width
        self.scale = config.head_width**-0.5
        self.query_map = nn.Linear(config.width, config.width)
        self.key_map = nn.Linear(config.width, config.width)
        self.value_map = nn.Linear(config.width, config.width)
        self.output_map = nn.Linear(config.width, config.width)

    def keys_and_values(self, inputs: Float[Tensor, "batch source width"], first: int = 0) -> KeyValues:
        """Return the keys and values of consecutive positions of a sequence.

        Args:
            inputs: states after the layer norm.
            first: the first position.

        Returns:
            Keys, as their positions make them, and values.
        """
        keys = self.at_positions(self._by_head(self.key_map(inputs)), first)
        return KeyValues(keys, self._by_head(self.value_map(inputs)))

    def at_positions(self, rows: Float[Tensor, "batch heads length head_width"], first: int) -> Tensor:
        """Return queries or keys as their positions make them: here as they are.

        Args:
            rows: queries or keys of consecutive positions.
            first: the first position.

        Returns:
            Rows of the same shape.
        """
        return rows

    @property
    def rotation(self) -> Rotation | None:
        """Effect of positions on the queries and keys of a whole sequence; None if they have none."""
        return None

    def position_bias(
        self, first: int, target: int, source: int
    ) -> Float[Tensor, "heads target source"] | None:
        """Return what is added to the scores by distance: here nothing.

        Args:
            first: the position of the first query.
            target: number of queries.
            source: number of keys.
        """
        return None

    def forward(
        self,
        inputs: Float[Tensor, "batch target width"],
        source: KeyValues,
        allowed: Bool[Tensor, " batch #target source"],
        *,
        first: int = 0,
        key_inputs: Float[Tensor, "batch source width"] | None = None,
    ) -> tuple[Float[Tensor, "batch target width"], Attention | None]:
        """Attend from some positions of a sequence.

        Args:
            inputs: what queries are made of, after the layer norm.
            source: keys and values.
            allowed: True where a query may look.
            first: the position of the first query.
            key_inputs: what the keys were made of; None in a search, which records no attention.

        Returns:
            The tensor that the attention adds to the states, and its record if ``key_inputs`` are given, else
            None.
        """
        queries = self._by_head(self.query_map(inputs) * self.scale)  # (batch, heads, target, d)
        queries = self.at_positions(queries, first)
        scores = queries @ source.keys.transpose(2, 3)  # (batch, heads, target, source)
        bias = self.position_bias(first, inputs.shape[1], source.keys.shape[2])  # (heads, target, source)
        if bias is not None:
            scores = scores + bias
        attention = softmax_over(scores, allowed[:, None])  # (batch, heads, target, source)
        context = attention @ source.values  # (batch, heads, target, d)
        joined = context.transpose(1, 2).flatten(2)  # (batch, target, heads · d)
        added = self.output_map(joined)  # (batch, target, width)
        if key_inputs is None:
            return added, None
        record = Attention(
            self.kind,
            self.layer,
            query_inputs=inputs,
            key_inputs=key_inputs,
            maps=self.maps,
            scale=self.scale,
            position_bias=None if bias is None else bias[None],
            query_rotation=self.rotation,
            key_rotation=self.rotation,
            weights=attention,
            causal=self.kind == "decoder_self",
            model_scores=scores,
            values=source.values,
            context=context,
        )
        return added, record.with_projected(queries, source.keys)

    def _by_head(self, rows: Float[Tensor, "batch length width"]) -> Tensor:
        return rows.unflatten(2, (-1, self.head_width)).transpose(1, 2)  # (batch, heads, length, d)

    def maps(self) -> tuple[LinearMap, LinearMap]:
        """Return the projections of queries, without the factor 1/√d, and of keys."""
        return LinearMap.of(self.query_map, self.heads), LinearMap.of(self.key_map, self.heads)


# Self-attention that knows the positions of words although nothing was added to their embeddings.
#
# ============  ===========================================================================================
# ``relative``  a number for each head and each distance t − s is added to the score: Raffel et al. 2020,
#               section 2.1, one number instead of the vectors of Shaw et al. 2018. Distances beyond
#               :data:`REACH` share the number of the farthest; there each layer has its own table
# ``rotary``    queries and keys are rotated, pair of coordinates by pair, by angles that grow with the
#               position: Su et al. 2021, equation 34. A score then depends on the distance alone
# ============  ===========================================================================================
#
# Cross-attention is left as it is: what it knows of positions it reads from the states, as in T5.

REACH = 16


class RelativeAttention(MultiHeadAttention):
    """Attention with a bias for each head and distance, zero before training.

    Args:
        config: of the network.
        kind: which states attend to which.
        layer: its number, from 0.

    Example:
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, positions="relative")
        >>> tuple(RelativeAttention(config, "encoder_self", 0).position_bias(0, 3, 5).shape)
        (2, 3, 5)
    """

    def __init__(self, config: TransformerConfig, kind: AttentionKind, layer: int):
        super().__init__(config, kind, layer)
        self.distance_bias = nn.Parameter(torch.empty(config.heads, 2 * REACH + 1))

    def position_bias(self, first: int, target: int, source: int) -> Float[Tensor, "heads target source"]:
        """Return the bias of each head for the distance of each query and key.

        Args:
            first: the position of the first query.
            target: number of queries.
            source: number of keys, which begin at position 0.

        Returns:
            Numbers that are added to the scores.
        """
        device = self.distance_bias.device
        queries = torch.arange(first, first + target, device=device)  # (target,)
        keys = torch.arange(source, device=device)  # (source,)
        distance = keys - queries[:, None]  # (target, source)
        column = distance.clamp(-REACH, REACH) + REACH  # (target, source)
        return self.distance_bias[:, column]


class RotaryAttention(MultiHeadAttention):
    """Attention whose queries and keys are rotated by position; arguments of :class:`MultiHeadAttention`.

    Example:
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, positions="rotary")
        >>> attention = RotaryAttention(config, "encoder_self", 0)
        >>> attention.at_positions(torch.tensor([[1.0, 0.0]]), first=0).tolist()  # rotated by no angle
        [[1.0, 0.0]]
    """

    @property
    def rotation(self) -> Rotation:
        """The rotation of the queries and keys of a whole sequence by their positions."""
        return partial(self.at_positions, first=0)

    def at_positions(self, rows: Float[Tensor, "*batch length head_width"], first: int) -> Tensor:
        """Rotate queries or keys by their positions.

        Coordinate i of the first half of a row and coordinate i of the second half are rotated as a pair.

        Args:
            rows: queries or keys of consecutive positions.
            first: the position of the first row.

        Returns:
            Rows of the same shape.
        """
        n_positions = first + rows.shape[-2]
        all_cos, all_sin = rotation_tables(n_positions, self.head_width)  # (n_positions, head_width) both
        rotate = Rotary(cos=all_cos[first:].to(rows), sin=all_sin[first:].to(rows))
        return rotate(rows)


def rotation_tables(length: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the cosine and the sine of the angle of each position and coordinate.

    Coordinate i of the first half and of the second rotate together, by position · 10000^(−2i / width).

    Args:
        length: number of positions, from 0.
        width: of a head, even.

    Returns:
        Two tables, (length, width) both.

    Example:
        >>> cos, sin = rotation_tables(2, 4)
        >>> tuple(cos.shape), sin[0].tolist()
        ((2, 4), [0.0, 0.0, 0.0, 0.0])
    """
    cos, sin = _rotation_tables(length, width)
    return cos.clone(), sin.clone()


@lru_cache(maxsize=TABLES_KEPT)
def _rotation_tables(length: int, width: int) -> tuple[Tensor, Tensor]:
    column = torch.arange(0, width, 2, dtype=torch.float64)  # (width / 2,)
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / 10_000 ** (column / width)  # (length, width / 2)
    angle = torch.cat([angle, angle], dim=1)  # (length, width)
    return angle.cos().float(), angle.sin().float()


def new_self_attention(config: TransformerConfig, kind: AttentionKind, layer: int) -> MultiHeadAttention:
    """Return the self-attention for a network's kind of positions.

    Args:
        config: of the network.
        kind: "encoder_self" or "decoder_self".
        layer: its number, from 0.

    Returns:
        An attention of the class that treats such positions.

    Example:
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, positions="rotary")
        >>> type(new_self_attention(config, "encoder_self", 0)).__name__
        'RotaryAttention'
    """
    classes = {"relative": RelativeAttention, "rotary": RotaryAttention}
    return classes.get(config.positions, MultiHeadAttention)(config, kind, layer)


@dataclass(frozen=True, eq=False, repr=False)
class Prefix(ShowsShapes):
    """Source and decoder between two words; rows are samples, layers are the second axis.

    Attributes:
        source_mask: True at words and end marks.
        source: keys and values of the cross-attentions.
        past: keys and values of the decoder's self-attentions for the words read so far.

    Example:
        >>> known = KeyValues(torch.zeros(1, 2, 4, 3, 8), torch.zeros(1, 2, 4, 3, 8))
        >>> Prefix(torch.ones(1, 3, dtype=torch.bool), known, known).past is known
        True
    """

    source_mask: Bool[Tensor, "batch source"]
    source: KeyValues
    past: KeyValues


class FeedForward(nn.Module):
    """The feed-forward network that each position goes through by itself.

    Args:
        config: of the network.

    Example:
        >>> network = FeedForward(TransformerConfig(source_size=9, target_size=9, width=4, heads=2))
        >>> tuple(network(torch.zeros(1, 3, 4)).shape)
        (1, 3, 4)
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.widen = nn.Linear(config.width, config.hidden_width)
        self.narrow = nn.Linear(config.hidden_width, config.width)

    def forward(self, inputs: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Return what the network adds to the states of each position.

        Args:
            inputs: states after the layer norm.

        Returns:
            Summands of the states.
        """
        return self.narrow(torch.relu(self.widen(inputs)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network.

    Args:
        config: of the network.
        layer: its number, from 0.

    Example:
        >>> layer = EncoderLayer(TransformerConfig(source_size=9, target_size=9, width=4, heads=2), 0)
        >>> states, attention = layer(torch.zeros(1, 3, 4), torch.ones(1, 1, 3, dtype=torch.bool))
        >>> tuple(states.shape), attention.name
        ((1, 3, 4), 'encoder_self.0')
    """

    def __init__(self, config: TransformerConfig, layer: int):
        super().__init__()
        self.self_norm, self.feed_norm = (nn.LayerNorm(config.width) for _ in range(2))
        self.self_attention = new_self_attention(config, "encoder_self", layer)
        self.feed_forward = FeedForward(config)

    def forward(
        self, states: Float[Tensor, "batch source width"], allowed: Bool[Tensor, " batch #source source"]
    ) -> tuple[Float[Tensor, "batch source width"], Attention]:
        """Return the states one layer above, and the attention that made them.

        Args:
            states: one layer below.
            allowed: True where a position may look.
        """
        inputs = self.self_norm(states)
        source = self.self_attention.keys_and_values(inputs)
        added, attention = self.self_attention(inputs, source, allowed, key_inputs=inputs)
        states = states + added
        return states + self.feed_forward(self.feed_norm(states)), attention


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, then the feed-forward network.

    Args:
        config: of the network.
        layer: its number, from 0.

    Example:
        >>> layer = DecoderLayer(TransformerConfig(source_size=9, target_size=9, width=4, heads=2), 0)
        >>> states, allowed = torch.zeros(1, 3, 4), torch.ones(1, 3, 3, dtype=torch.bool)
        >>> source = layer.cross_attention.keys_and_values(states)
        >>> above, _, _ = layer(states, None, source=source, read=allowed, source_allowed=allowed[:, :1])
        >>> tuple(above.shape)
        (1, 3, 4)
    """

    def __init__(self, config: TransformerConfig, layer: int):
        super().__init__()
        self.self_norm, self.cross_norm, self.feed_norm = (nn.LayerNorm(config.width) for _ in range(3))
        self.self_attention = new_self_attention(config, "decoder_self", layer)
        self.cross_attention = MultiHeadAttention(config, "cross", layer)
        self.feed_forward = FeedForward(config)

    def forward(
        self,
        states: Float[Tensor, "batch steps width"],
        past: KeyValues | None,
        *,
        source: KeyValues,
        read: Bool[Tensor, "batch steps past_and_steps"],
        source_allowed: Bool[Tensor, "batch 1 source"],
        encoder_states: Float[Tensor, "batch source width"] | None = None,
    ) -> tuple[Float[Tensor, "batch steps width"], KeyValues, tuple[Attention, ...]]:
        """Go some steps on.

        Args:
            states: of these steps, one layer below.
            past: keys and values of the steps before these; None if these are the first.
            source: keys and values that the cross-attention makes of the encoder's output.
            read: True where a step may look, of all steps so far.
            source_allowed: True where all steps may look, of the source.
            encoder_states: the encoder's output, if these are all steps; None in a search.

        Returns:
            The states one layer above; keys and values of all steps so far; self-attention and
            cross-attention if the encoder states are given, else none.
        """
        self_inputs = self.self_norm(states)
        first = 0 if past is None else past.keys.shape[2]
        present = self.self_attention.keys_and_values(self_inputs, first)
        if past is not None:
            present = past.followed_by(present)
        key_inputs = None if encoder_states is None else self_inputs
        added, self_attention = self.self_attention(
            self_inputs, present, read, first=first, key_inputs=key_inputs
        )
        states = states + added
        cross_inputs = self.cross_norm(states)
        added, cross_attention = self.cross_attention(
            cross_inputs, source, source_allowed, key_inputs=encoder_states
        )
        states = states + added
        states_above = states + self.feed_forward(self.feed_norm(states))
        attentions = (self_attention, cross_attention)
        recorded = tuple(attention for attention in attentions if attention is not None)
        return states_above, present, recorded


class Transformer(nn.Module):
    """A Transformer that translates, its parameters drawn from ``generator`` alone.

    Args:
        config: size and kind.
        generator: draws the parameters.

    Example:
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, layers=1)
        >>> network = Transformer(config, torch.Generator().manual_seed(0))
        >>> trace = network(collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
        >>> [attention.name for attention in trace.attentions]
        ['encoder_self.0', 'decoder_self.0', 'cross.0']
    """

    def __init__(self, config: TransformerConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding_source = nn.Embedding(config.source_size, config.width)
            self.embedding_target = nn.Embedding(config.target_size, config.width)
            if config.positions == "learned":
                self.positions_source = nn.Embedding(TABLE_ROWS, config.width)
                self.positions_target = nn.Embedding(TABLE_ROWS, config.width)
            self.encoder = nn.ModuleList(EncoderLayer(config, layer) for layer in range(config.layers))
            self.decoder = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.layers))
            self.encoder_norm, self.decoder_norm = (nn.LayerNorm(config.width) for _ in range(2))
            self.readout = nn.Linear(config.width, config.target_size)
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        """Draw embeddings from N(0, scale²), all else from ±1/√inputs; norms are one and zero."""
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.weight.normal_(0, self.config.embedding_scale, generator=generator)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()  # draws nothing
            elif isinstance(module, nn.Linear):
                draw_parameters(module, generator)
            elif isinstance(module, RelativeAttention):
                module.distance_bias.zero_()

    def _embed(self, side: str, words: Int[Tensor, "batch length"], first: int = 0) -> Tensor:
        length = words.shape[1]
        embedded = self.get_submodule(f"embedding_{side}")(words)
        if self.config.positions == "learned":
            check_table(first + length)
            positions = cast("nn.Embedding", self.get_submodule(f"positions_{side}"))
            return embedded + positions.weight[first : first + length]
        if self.config.positions == "sinusoidal":
            return embedded + sinusoidal_positions(length, self.config.width, first).to(embedded)
        return embedded

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Float[Tensor, "batch source width"], tuple[Attention, ...]]:
        """Return encoder states h^E, and the attention of each layer.

        Args:
            source: ids of the source tokens.
            mask: True at words and end marks, which come first.

        Raises:
            BadInput: a row of ``mask`` begins with padding, or a position has no code.
        """
        _check_beginnings("source", mask)
        states, attentions = self._embed("source", source), []
        for layer in self.encoder:
            states, attention = layer(states, mask[:, None])
            attentions.append(attention)
        return self.encoder_norm(states), tuple(attentions)

    @property
    def _decoder_layers(self) -> list[DecoderLayer]:
        """The layers of the decoder, with their type, which a ModuleList does not know."""
        return [cast("DecoderLayer", layer) for layer in self.decoder]

    def _source_keys_values(self, encoder_states: Float[Tensor, "batch source width"]) -> list[KeyValues]:
        """Return the keys and values of each layer's cross-attention."""
        return [layer.cross_attention.keys_and_values(encoder_states) for layer in self._decoder_layers]

    def _advance(
        self,
        states: Float[Tensor, "batch steps width"],
        pasts: Sequence[KeyValues | None],
        *,
        sources: Sequence[KeyValues],
        read: Bool[Tensor, "batch steps past_and_steps"],
        source_mask: Bool[Tensor, "batch source"],
        encoder_states: Float[Tensor, "batch source width"] | None = None,
    ) -> tuple[Float[Tensor, "batch steps width"], list[KeyValues], list[Attention]]:
        """Return decoder states, keys and values of all steps so far by layer, and all attentions."""
        presents, attentions = [], []
        for layer, past, source in zip(self.decoder, pasts, sources, strict=True):
            states, present, recorded = layer(
                states,
                past,
                source=source,
                read=read,
                source_allowed=source_mask[:, None],
                encoder_states=encoder_states,
            )
            presents.append(present)
            attentions += recorded
        return self.decoder_norm(states), presents, attentions

    def forward(self, batch: Batch) -> Trace:
        """Run a teacher-forced pass.

        Args:
            batch: sentence pairs.

        Returns:
            The trace, with all attentions of all layers: those of the encoder, then self-attention and
            cross-attention of each layer of the decoder.

        Raises:
            BadInput: a sequence begins with padding, or a position has no code.
        """
        _check_beginnings("target", batch.target_mask)
        encoder_states, encoder_attentions = self.encode(batch.source, batch.source_mask)
        steps = batch.target_mask.shape[1]
        is_past_or_present = batch.target_mask.new_ones(steps, steps).tril()  # (steps, steps)
        read = is_past_or_present & batch.target_mask[:, None]  # (batch, steps, steps)
        decoder_states, _, decoder_attentions = self._advance(
            self._embed("target", batch.target_input),
            [None] * self.config.layers,
            sources=self._source_keys_values(encoder_states),
            read=read,
            source_mask=batch.source_mask,
            encoder_states=encoder_states,
        )
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            attentions=(*encoder_attentions, *decoder_attentions),
            encoder_states=encoder_states,
            decoder_states=decoder_states,
            logits=self.readout(decoder_states),
        )

    def begin(self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]) -> Prefix:
        """Return what is known before the first word, for :mod:`attnlib.models.search`.

        Args:
            source: ids of the source tokens.
            mask: True at words and end marks, which come first.

        Returns:
            The state of the search.
        """
        encoder_states, _ = self.encode(source, mask)
        source_keys_values = KeyValues.stacked(self._source_keys_values(encoder_states))
        nothing_read = KeyValues(source_keys_values.keys[..., :0, :], source_keys_values.values[..., :0, :])
        return Prefix(mask, source_keys_values, nothing_read)

    def write(
        self, words: Int[Tensor, " batch"], prefix: Prefix
    ) -> tuple[Float[Tensor, "batch words"], Prefix]:
        """Return the logits of the next word after reading one more.

        Args:
            words: the word that each sample reads.
            prefix: what was known before.

        Returns:
            Logits, and what is known then.
        """
        n_read = prefix.past.keys.shape[3]
        read = prefix.source_mask.new_ones(len(words), 1, n_read + 1)  # (batch, 1, past and this step)
        states, presents, _ = self._advance(
            self._embed("target", words[:, None], n_read),
            prefix.past.layers(),
            sources=prefix.source.layers(),
            read=read,
            source_mask=prefix.source_mask,
        )
        past = KeyValues.stacked(presents)
        return self.readout(states)[:, 0], Prefix(prefix.source_mask, prefix.source, past)

    def projections(self, kind: AttentionKind, layer: int, head: int) -> tuple[LinearMap, LinearMap]:
        """Return the query and key projection of one head, the query's with its factor 1/√d.

        The queries and keys of ``model(batch).head(kind, layer, head)`` are what they make of its inputs.
        Summands of the inputs, such as components of them, are mapped by the weight alone, and the bias is
        one more component. With rotary positions, both are then rotated in self-attention.

        Args:
            kind: of attention.
            layer: from 0.
            head: from 0.

        Returns:
            The map of queries, then that of keys.

        Raises:
            UnknownName: there is no such kind.
            BadInput: there is no such layer or head.
        """
        check_known("kind of attention", kind, get_args(AttentionKind))
        for name, number, size in (("layer", layer, self.config.layers), ("head", head, self.config.heads)):
            if not 0 <= number < size:
                raise BadInput(f"{name} is {number}; this network has {name}s 0 to {size - 1}")
        if kind == "cross":
            attention = self._decoder_layers[layer].cross_attention
        elif kind == "decoder_self":
            attention = self._decoder_layers[layer].self_attention
        else:
            attention = cast("EncoderLayer", self.encoder[layer]).self_attention
        query_map, key_map = (linear_map.of_heads([head]) for linear_map in attention.maps())
        return LinearMap(query_map.weight * attention.scale, query_map.bias * attention.scale), key_map


def _check_beginnings(side: str, mask: Bool[Tensor, "batch length"]) -> None:
    """Raise BadInput if a row begins with padding, so that its first softmax does not exist."""
    if not is_checked(mask):
        return
    empty = (~mask[:, 0]).nonzero().flatten().tolist()
    if empty:
        raise BadInput(f"{side} rows {empty[:5]} begin with padding; pad at the end, drop what has no word")


def __getattr__(name: str) -> type[Trace]:
    """Return what has taken the place of a class of earlier releases."""
    return former_object(__name__, {"TransformerTrace": "attnlib.trace.Trace"}, name)
