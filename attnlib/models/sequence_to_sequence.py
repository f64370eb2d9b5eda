"""The primer's networks: from one fixed vector to attention, in the forms of the papers that introduced them.

Encoder states h_t and decoder states s_i are recurrent. With y_{i-1} the word read at step i (its embedding)
and c_i what the decoder gets of the source there:

====================  =========================  ==================  =================================
                      recurrence reads           score               output
====================  =========================  ==================  =================================
Sutskever et al.      y_{i-1}                    none                W s_i
Cho et al.            y_{i-1}, c                 none                W [s_i ; y_{i-1} ; c]
Bahdanau et al.       y_{i-1}, c_i               a(s_{i-1}, h_t)     W [s_i ; y_{i-1} ; c_i]
Luong et al.          y_{i-1} (and m_{i-1})      a(s_i, h_t)         W m_i, m_i = tanh(W_c [c_i ; s_i])
====================  =========================  ==================  =================================

Sutskever et al. 2014, section 2; Cho et al. 2014, section 2.2, c = tanh(V h_T); Bahdanau et al. 2015,
appendix A.2.2; Luong et al. 2015, equations 5 to 7 and, for input feeding, section 3.3. Left out: the maxout
layer of Cho's and Bahdanau's output (a linear layer here), and local attention.

The decoder starts in the encoder's last state. Where that has another width (two directions) or is put
through a map by its paper (Cho, Bahdanau), it is tanh of a linear map of it, an LSTM's memory then starting
at zero. The papers map something else: Cho et al. the summary, s_0 = tanh(V' c), and Bahdanau et al. the last
state of the backward direction alone, s_0 = tanh(W_s h_1); here it is h_T, of both directions where there are
two.
"""

from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.former_names import former_object
from attnlib.models.attention import BILINEAR, Score, Scoring, masked_softmax
from attnlib.models.corpus import Batch
from attnlib.models.initialise import draw_parameters
from attnlib.trace import Attention, Trace

Link = Literal["initial", "every_step", "attention"]
SequenceCell = Literal["gru", "lstm"]
Decoder = Literal["luong", "bahdanau"]


@dataclass(frozen=True)
class SequenceConfig:
    """Size and kind of a :class:`SequenceToSequence`.

    Attributes:
        source_size: size of the source's vocabulary, marks included.
        target_size: size of the target's vocabulary, marks included.
        link: what the decoder gets of the source: its last state to start in (``initial``, Sutskever et al.
            2014); that state at every step and in the output as well (``every_step``, Cho et al. 2014); or
            ``attention`` to all states besides the start. On the start see the module.
        cell: of both sides.
        layers: of both sides.
        bidirectional: whether the encoder reads in both directions.
        reverse: whether the encoder reads the source from the last word to the first. Its states are returned
            in the order of the words all the same.
        scoring: see :mod:`attnlib.models.attention`.
        decoder: ``luong`` (the present state is the query, the context enters the output) or ``bahdanau``
            (the previous state is the query, the context enters the recurrence and the output).
        input_feeding: whether Luong's decoder reads its last attentional state besides the word.
        width: of embeddings and states; of each direction, if there are two.
        embedding_scale: standard deviation of the embeddings at the start.

    Raises:
        UnknownName: a kind does not exist.
        BadInput: a size is below 1, or input feeding is on without an attentional state.

    Example:
        >>> SequenceConfig(source_size=9, target_size=9, **NAMED["bahdanau"]).feeds_back
        True
    """

    source_size: int
    target_size: int
    link: Link = "attention"
    _: KW_ONLY
    cell: SequenceCell = "gru"
    layers: int = 1
    bidirectional: bool = False
    reverse: bool = False
    scoring: Scoring = "dot"
    decoder: Decoder = "luong"
    input_feeding: bool = False
    width: int = 128
    embedding_scale: float = 0.3

    def __post_init__(self) -> None:
        kinds = {"link": Link, "cell": SequenceCell, "scoring": Scoring, "decoder": Decoder}
        for name, kind in kinds.items():
            check_known(name, str(getattr(self, name)), get_args(kind))
        check_at_least(1, self, "source_size", "target_size", "layers", "width")
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")
        if self.input_feeding and not (self.attends and self.decoder == "luong"):
            raise BadInput("input_feeding is part of Luong's decoder with attention")

    @property
    def attends(self) -> bool:
        """True if the decoder attends to the encoder states."""
        return self.link == "attention"

    @property
    def encoder_width(self) -> int:
        """Width of the encoder states, both directions together."""
        return self.width * (2 if self.bidirectional else 1)

    @property
    def feeds_back(self) -> bool:
        """True if decoding must be sequential, because a step depends on earlier attention."""
        return self.attends and (self.decoder == "bahdanau" or self.input_feeding)


# Settings of the networks that the primers name, sizes left out.
NAMED: dict[str, dict[str, object]] = {
    "cho": {"link": "every_step"},
    "sutskever": {"link": "initial", "cell": "lstm", "layers": 2, "reverse": True},
    "bahdanau": {"scoring": "additive", "decoder": "bahdanau", "bidirectional": True},
    "luong": {"scoring": "general", "cell": "lstm", "layers": 2, "input_feeding": True},
}


@dataclass(frozen=True, eq=False, repr=False)
class Source(ShowsShapes):
    """A source as the decoder sees it; rows are samples.

    Attributes:
        states: of the encoder.
        mask: True at words and end marks.
        projected: the keys as the score takes them; None without attention.
        summary: Cho's c; None for other links.

    Example:
        >>> mask = torch.ones(1, 3, dtype=torch.bool)
        >>> Source(torch.zeros(1, 3, 4), mask, None, summary=None).summary is None
        True
    """

    states: Float[Tensor, "batch source encoder_width"]
    mask: Bool[Tensor, "batch source"]
    projected: Float[Tensor, "batch source width"] | None
    _: KW_ONLY
    summary: Float[Tensor, "batch width"] | None


@dataclass(frozen=True, eq=False, repr=False)
class Carried(ShowsShapes):
    """State that a decoder carries from one step to the next; rows are samples.

    Attributes:
        hidden: states of all layers.
        memory: of an LSTM; None for a GRU.
        attentional: m_{i-1}, with input feeding; else None.

    Example:
        >>> Carried(torch.zeros(1, 2, 4), None, None).hidden.shape[1]
        2
    """

    hidden: Float[Tensor, "batch layers width"]
    memory: Float[Tensor, "batch layers width"] | None
    attentional: Float[Tensor, "batch width"] | None


@dataclass(frozen=True)
class Reading:
    """Source and decoder between two words, as :mod:`attnlib.models.search` hands them on.

    Attributes:
        source: as the decoder sees it.
        carried: what the last step left.

    Example:
        >>> source = Source(torch.zeros(1, 3, 4), torch.ones(1, 3, dtype=torch.bool), None, summary=None)
        >>> Reading(source, Carried(torch.zeros(1, 2, 4), None, None)).source is source
        True
    """

    source: Source
    carried: Carried


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Steps(ShowsShapes):
    """Some steps of the decoder; what a network without attention does not have is None.

    Attributes:
        states: of the top layer.
        queries: what the score compares: the states in Luong's decoder, those of the step before in
            Bahdanau's, whose first is the state that the decoder starts in.
        scores: before softmax.
        attention: weights.
        context: the average of the encoder states.
        features: what the output layer reads.

    Example:
        >>> states = torch.zeros(1, 2, 4)
        >>> without_attention = dict.fromkeys(("queries", "scores", "attention", "context"))
        >>> Steps(states=states, features=states, **without_attention).features.shape[1]
        2
    """

    states: Float[Tensor, "batch steps width"]
    queries: Float[Tensor, "batch steps width"] | None
    scores: Float[Tensor, "batch steps source"] | None
    attention: Float[Tensor, "batch steps source"] | None
    context: Float[Tensor, "batch steps encoder_width"] | None
    features: Float[Tensor, "batch steps features"]


class SequenceToSequence(nn.Module):
    """A network of the family, its parameters drawn from ``generator`` alone.

    Args:
        config: size and kind.
        generator: draws the parameters.

    Example:
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = SequenceConfig(source_size=9, target_size=9, width=4)
        >>> network = SequenceToSequence(config, torch.Generator().manual_seed(0))
        >>> tuple(network(collate(Corpus.from_ids([[4, 5]], [[6]]), [0])).logits.shape)
        (1, 2, 9)
    """

    def __init__(self, config: SequenceConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        width = config.width
        layer = {"gru": nn.GRU, "lstm": nn.LSTM}[config.cell]
        shape = {"num_layers": config.layers, "batch_first": True}
        from_source = {"initial": 0, "every_step": width, "attention": config.encoder_width}[config.link]
        is_luong = config.attends and config.decoder == "luong"
        if config.input_feeding:
            beside_the_word = width
        elif is_luong:
            beside_the_word = 0
        else:
            beside_the_word = from_source
        is_state_alone = is_luong or config.link == "initial"
        features = width if is_state_alone else 2 * width + from_source
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding_source = nn.Embedding(config.source_size, width)
            self.embedding_target = nn.Embedding(config.target_size, width)
            self.encoder = layer(width, width, bidirectional=config.bidirectional, **shape)
            self.decoder = layer(width + beside_the_word, width, **shape)
            if self._is_mapped:
                self.start_map = nn.Linear(config.encoder_width, width)
            if config.link == "every_step":
                self.summary_map = nn.Linear(config.encoder_width, width)
            if config.attends:
                self.score = Score(config.scoring, width, config.encoder_width)
            if is_luong:
                self.attentional_map = nn.Linear(config.encoder_width + width, width, bias=False)
            self.readout = nn.Linear(features, config.target_size)
        draw_parameters(self, generator)
        with torch.no_grad():
            for embedding in (self.embedding_source, self.embedding_target):
                embedding.weight.mul_(config.embedding_scale)

    @property
    def _is_mapped(self) -> bool:
        """True if the decoder starts in a map of the encoder's last state rather than in that state."""
        config = self.config
        bahdanau = config.attends and config.decoder == "bahdanau"
        return config.bidirectional or config.link == "every_step" or bahdanau

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Source, Carried]:
        """Return the source as the decoder sees it, and what the decoder starts with.

        Args:
            source: ids of the source tokens.
            mask: True at words and end marks, which come first.
        """
        return self.encode_inputs(self.embedding_source(source), mask)

    def encode_inputs(
        self, inputs: Float[Tensor, "batch source width"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Source, Carried]:
        """Return what :meth:`encode` does, from embeddings, which need not be those of words.

        Args:
            inputs: one embedding a position.
            mask: True at words and end marks, which come first.

        Returns:
            The source as the decoder sees it, and what the decoder starts with.
        """
        lengths = mask.sum(dim=1)  # (batch,)
        if self.config.reverse:
            order = _reversed_words(lengths, mask.shape[1])  # (batch, source, 1)
            reversed_states, hidden, memory = self._read(inputs.take_along_dim(order, dim=1), lengths)
            states = reversed_states.take_along_dim(order, dim=1)
        else:
            states, hidden, memory = self._read(inputs, lengths)  # (batch, source, encoder width)
        projected = self.score.project(states) if self.config.attends else None
        summary = None
        if self.config.link == "every_step":
            last = hidden[:, -1]  # the top layer, both directions: (batch, encoder width)
            summary = torch.tanh(self.summary_map(last))
        if self._is_mapped:
            hidden = torch.tanh(self.start_map(hidden))
            memory = None if memory is None else torch.zeros_like(hidden)
        attentional = torch.zeros_like(hidden[:, 0]) if self.config.input_feeding else None
        return Source(states, mask, projected, summary=summary), Carried(hidden, memory, attentional)

    def _read(
        self, inputs: Tensor, lengths: Int[Tensor, " batch"]
    ) -> tuple[Tensor, Float[Tensor, "batch layers encoder_width"], Tensor | None]:
        """Return the states of the top layer, zero beyond a sample's end, and the last of every layer."""
        if bool((lengths == inputs.shape[1]).all()):
            states, last = self.encoder(inputs)
        else:
            packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
            packed, last = self.encoder(packed)
            states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
        if isinstance(last, tuple):  # an LSTM
            hidden, memory = last
            return states, self._by_layer(hidden), self._by_layer(memory)
        return states, self._by_layer(last), None

    def _by_layer(
        self, last: Float[Tensor, "layers_and_directions batch width"]
    ) -> Float[Tensor, "batch layers encoder_width"]:
        """Return torch's last states with both directions of a layer side by side."""
        by_direction = last.unflatten(0, (self.config.layers, -1))  # (layers, directions, batch, width)
        return by_direction.permute(2, 0, 1, 3).flatten(2)

    def advance(
        self, inputs: Float[Tensor, "batch steps width"], source: Source, carried: Carried
    ) -> tuple[Steps, Carried]:
        """Go some steps on with embedded words; one at a time if the network feeds back (see the config).

        Args:
            inputs: embeddings of the words that are read.
            source: as :meth:`encode` returns it.
            carried: what the step before left.

        Returns:
            The steps, and what they leave to the next.
        """
        config = self.config
        read = [inputs]  # what the recurrence reads, side by side
        if source.summary is not None:  # link "every_step"
            read.append(source.summary[:, None].expand(-1, inputs.shape[1], -1))
        if carried.attentional is not None:  # input feeding
            read.append(carried.attentional[:, None])
        queries = scores = attention = context = attentional = None
        if config.attends and config.decoder == "bahdanau":
            queries = carried.hidden[:, -1:]  # (batch, 1, width)
            scores, attention, context = self._attend(queries, source)
            read.append(context)
        states, hidden, memory = self._recur(torch.cat(read, dim=-1), carried)
        if config.attends and config.decoder == "luong":
            queries = states
            scores, attention, context = self._attend(queries, source)
            features = torch.tanh(self.attentional_map(torch.cat([context, states], dim=-1)))
            if config.input_feeding:
                attentional = features[:, -1]
        elif config.link == "initial":
            features = states
        else:
            features = torch.cat([states, *read], dim=-1)
        steps = Steps(
            states=states,
            queries=queries,
            scores=scores,
            attention=attention,
            context=context,
            features=features,
        )
        return steps, Carried(hidden, memory, attentional)

    def _attend(self, queries: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
        assert source.projected is not None  # the network attends
        scores = self.score.compare(queries, source.projected)
        attention = masked_softmax(scores, source.mask)
        return scores, attention, attention @ source.states

    def _recur(self, inputs: Tensor, carried: Carried) -> tuple[Tensor, Tensor, Tensor | None]:
        hidden = carried.hidden.transpose(0, 1).contiguous()  # torch wants layers first
        if carried.memory is None:
            states, last = self.decoder(inputs, hidden)
            return states, last.transpose(0, 1), None
        states, (last, memory) = self.decoder(inputs, (hidden, carried.memory.transpose(0, 1).contiguous()))
        return states, last.transpose(0, 1), memory.transpose(0, 1)

    def begin(self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]) -> Reading:
        """Return what is known before the first word, for :mod:`attnlib.models.search`.

        Args:
            source: ids of the source tokens.
            mask: True at words and end marks, which come first.

        Returns:
            The state of the search.
        """
        return Reading(*self.encode(source, mask))

    def write(
        self, words: Int[Tensor, " batch"], reading: Reading
    ) -> tuple[Float[Tensor, "batch words"], Reading]:
        """Return the logits of the next word after reading one more.

        Args:
            words: the word that each sample reads.
            reading: what was known before.

        Returns:
            Logits, and what is known then.
        """
        steps, carried = self.advance(self.embedding_target(words)[:, None], reading.source, reading.carried)
        return self.readout(steps.features)[:, 0], Reading(reading.source, carried)

    def forward(self, batch: Batch) -> Trace:
        """Run a teacher-forced pass.

        Args:
            batch: sentence pairs.

        Returns:
            The trace.
        """
        source, carried = self.encode(batch.source, batch.source_mask)
        return self.decode(batch, source, carried)

    def decode(self, batch: Batch, source: Source, carried: Carried) -> Trace:
        """Run the decoder's half of a teacher-forced pass.

        Args:
            batch: sentence pairs.
            source: as :meth:`encode` returns it.
            carried: the states that the decoder starts from, as :meth:`encode` returns them.

        Returns:
            The trace.
        """
        inputs = self.embedding_target(batch.target_input)
        if self.config.feeds_back:
            taken = []
            for word in inputs.split(1, dim=1):
                steps, carried = self.advance(word, source, carried)
                taken.append(steps)
            columns = {}
            for field in fields(Steps):
                columns[field.name] = _joined([getattr(steps, field.name) for steps in taken])
            steps = Steps(**columns)
        else:
            steps, _ = self.advance(inputs, source, carried)
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            attentions=self._attentions(source, steps),
            encoder_states=source.states,
            decoder_states=steps.states,
            logits=self.readout(steps.features),
        )

    def _attentions(self, source: Source, steps: Steps) -> tuple[Attention, ...]:
        if not self.config.attends:
            return ()
        # A network that attends has all four.
        assert steps.queries is not None
        assert steps.scores is not None
        assert steps.attention is not None
        assert steps.context is not None
        maps = None
        if self.config.scoring in BILINEAR:
            maps = partial(self.score.maps, steps.queries, source.states)
        attention = Attention(
            "cross",
            0,
            query_inputs=steps.queries,
            key_inputs=source.states,
            maps=maps,
            scale=self.score.scale,
            model_scores=steps.scores[:, None],
            weights=steps.attention[:, None],
            values=source.states[:, None],
            context=steps.context[:, None],
        )
        return (attention,)


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    tensors = [part for part in parts if part is not None]
    return torch.cat(tensors, dim=1) if tensors else None


def _reversed_words(lengths: Int[Tensor, " batch"], longest: int) -> Int[Tensor, "batch source 1"]:
    """Return the positions that reverse the words of each sample; the end mark and padding stay.

    Applied twice, they restore the order.
    """
    positions = torch.arange(longest, device=lengths.device).expand(len(lengths), -1)  # (batch, source)
    n_words = lengths[:, None] - 1  # (batch, 1); the last valid position is the end mark
    mirrored = n_words - 1 - positions  # (batch, source)
    is_word = positions < n_words
    return torch.where(is_word, mirrored, positions)[..., None]


def __getattr__(name: str) -> type[Trace]:
    """Return what has taken the place of a class of earlier releases."""
    return former_object(__name__, {"SequenceTrace": "attnlib.trace.Trace"}, name)
