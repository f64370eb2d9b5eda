"""The translation model of Snell et al. 2021, section 2.1, sized as in section A.8.

Encoder and decoder are LSTMs of two layers that share one table of embeddings. The encoder reads in both
directions, 256 each, which the parameter count requires (one direction would leave 2.1 million unaccounted
for); each layer of the decoder starts in the states that the encoder's layer ends in, averaged over the two
directions. With h the encoder's states (512 wide), d the decoder's (256; s in the paper),

    score[s, t] = (W_q d_s + b_q) · h_t;   attention = softmax over t;   c_s = Σ_t attention[s, t] h_t;
    joined (equation 2):    logits_s = W_o ReLU(W_n [W_c c_s + b_c ; d_s] + b_n) + b_o;
    summed (equation 32):   logits_s = W_o (W_c c_s + b_c + d_s) + b_o.

Equation 32 adds c and d; the biased map W_c, which the joined form has as well, brings c to the width of d.
The input of the ReLU is linear in (c, d): :class:`Readout` computes its two summands apart, and the
lexical probe (:mod:`attnlib.probes.lexical_probe`) rests on that.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.former_names import former_object
from attnlib.linear_map import LinearMap
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.corpus import Batch
from attnlib.models.initialise import draw_parameters
from attnlib.trace import Attention, Trace

AttentionMode = Literal["learned", "uniform"]
Form = Literal["joined", "summed"]
Start = tuple[Float[Tensor, "layers batch width"], Float[Tensor, "layers batch width"]]  # h and memory


@dataclass(frozen=True)
class TranslatorConfig:
    """Settings of the translator; the defaults are the paper's (section A.8).

    Attributes:
        words: size of the vocabulary that both languages share, marks included.
        width: of embeddings, of the states of one direction, and of the hidden layer.
        layers: of encoder and of decoder.
        dropout: between the layers of an LSTM, in training.
        attention: ``"learned"``, or ``"uniform"``, which keeps every weight at 1 / length, whatever the
            scores.
        form: how context and decoder state become logits, see the module.

    Raises:
        UnknownName: ``attention`` or ``form`` is another word.
        BadInput: a size is below 1, or dropout is outside [0, 1).

    Example:
        >>> TranslatorConfig().words
        8000
    """

    words: int = 8_000
    width: int = 256
    layers: int = 2
    _: KW_ONLY
    dropout: float = 0.5
    attention: AttentionMode = "learned"
    form: Form = "joined"

    def __post_init__(self) -> None:
        for name, kind in (("attention", AttentionMode), ("form", Form)):
            check_known(name, getattr(self, name), get_args(kind))
        check_at_least(1, self, "words", "width", "layers")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"dropout is {self.dropout}; it must be at least 0 and below 1")


class Readout(nn.Module):
    """The network N of equation 2: ``logits(from_context(c) + from_decoder(d))``, the sum before the ReLU.

    Args:
        config: of the translator.

    Example:
        >>> readout = Readout(TranslatorConfig(words=9, width=4))
        >>> summed = readout.from_context(torch.zeros(1, 8)) + readout.from_decoder(torch.zeros(1, 4))
        >>> tuple(readout.logits(summed).shape)
        (1, 9)
    """

    def __init__(self, config: TranslatorConfig):
        super().__init__()
        self.form, self.width = config.form, config.width
        self.context = nn.Linear(2 * config.width, config.width)
        if config.form == "joined":
            self.hidden = nn.Linear(2 * config.width, config.width)
        self.output = nn.Linear(config.width, config.words)

    def from_context(self, context: Float[Tensor, "*rows both_widths"]) -> Float[Tensor, "*rows width"]:
        """Return the context's summand; for an encoder state, that of attending to its position alone.

        Args:
            context: c.

        Returns:
            One vector a row.
        """
        mapped = self.context(context)
        return mapped if self.form == "summed" else mapped @ self.hidden.weight[:, : self.width].T

    def from_decoder(self, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        """Return the decoder state's summand, with the layer's bias.

        Args:
            states: d.

        Returns:
            One vector a row.
        """
        if self.form == "summed":
            return states
        return nn.functional.linear(states, self.hidden.weight[:, self.width :], self.hidden.bias)

    def logits(self, summed: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows words"]:
        """Return the logits of all words.

        Args:
            summed: the sum of the two summands.
        """
        return self.output(self._hidden(summed))

    def logit_of(
        self, summed: Float[Tensor, "*rows width"], words: Int[Tensor, "*rows"]
    ) -> Float[Tensor, "*rows"]:
        """Return the logit of one word a row; the others are not computed.

        Args:
            summed: the sum of the two summands.
            words: the id for each row.

        Returns:
            A logit a row.
        """
        return (self._hidden(summed) * self.output.weight[words]).sum(-1) + self.output.bias[words]

    def _hidden(self, summed: Tensor) -> Tensor:
        return summed if self.form == "summed" else summed.relu()


class BilinearTranslator(nn.Module):
    """The translator of the module, its parameters drawn from ``generator`` alone.

    Args:
        config: sizes and kind of attention.
        generator: draws the parameters, see :mod:`attnlib.models.initialise`.

    Example:
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = TranslatorConfig(words=9, width=4, layers=1)
        >>> network = BilinearTranslator(config, torch.Generator().manual_seed(0))
        >>> tuple(network(collate(Corpus.from_ids([[4, 5]], [[6]]), [0])).logits.shape)
        (1, 2, 9)
    """

    def __init__(self, config: TranslatorConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        width, stack = config.width, {"num_layers": config.layers, "batch_first": True}
        if config.layers > 1:  # torch warns of dropout between the layers where there is one
            stack["dropout"] = config.dropout
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding = nn.Embedding(config.words, width)
            self.encoder = nn.LSTM(width, width, bidirectional=True, **stack)
            self.decoder = nn.LSTM(width, width, **stack)
            self.query = nn.Linear(width, 2 * width)
            self.readout = Readout(config)
        draw_parameters(self, generator)
        self.query.requires_grad_(config.attention == "learned")

    def encode(
        self, embedded: Float[Tensor, "batch source width"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Float[Tensor, "batch source both_widths"], Start]:
        """Return the encoder's states, zero at padding, and what the decoder starts in.

        Args:
            embedded: one embedding a position.
            mask: True at words and end marks, which come first.

        Returns:
            The states, and h and memory of each layer.
        """
        if mask.all():
            states, last = self.encoder(embedded)
        else:  # the backward direction must start at each sample's own end
            packed = pack_padded_sequence(embedded, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
            packed, last = self.encoder(packed)
            states, _ = pad_packed_sequence(packed, batch_first=True, total_length=embedded.shape[1])
        # torch stacks layer by layer, both directions of a layer together
        start = tuple(part.unflatten(0, (self.config.layers, 2)).mean(1) for part in last)
        return states, start

    def attend(
        self,
        encoder_states: Float[Tensor, "batch source both_widths"],
        source_mask: Bool[Tensor, "batch source"],
        decoder_states: Float[Tensor, "batch target width"],
    ) -> tuple[Float[Tensor, "batch target source"], Float[Tensor, "batch target source"]]:
        """Return scores and attention (equation 1).

        Args:
            encoder_states: h.
            source_mask: True at words and end marks.
            decoder_states: d.

        Returns:
            Scores, padding included, and attention, zero at padding.

        Raises:
            BadInput: a source is padding alone.
        """
        if self.config.attention == "uniform":
            scores = decoder_states.new_zeros(*decoder_states.shape[:2], encoder_states.shape[1])
        else:
            scores = dot_scores(self.query(decoder_states), encoder_states)
        return scores, masked_softmax(scores, source_mask)

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return the mean negative log-likelihood of the right words (equation 3, over a batch).

        Args:
            batch: sentence pairs; no logits are made at padding.

        Returns:
            Nats a word.
        """
        states = self._states(batch)
        context = states.attention @ states.encoder  # (batch, target, both_widths)
        summed = self.readout.from_context(context) + self.readout.from_decoder(states.decoder)
        valid = batch.target_mask
        logits = self.readout.logits(summed[valid])  # (valid steps, words)
        return nn.functional.cross_entropy(logits, batch.target_output[valid])

    def forward(self, batch: Batch) -> Trace:
        """Run a teacher-forced pass.

        Args:
            batch: sentence pairs.

        Returns:
            The trace; uniform attention has no maps, and scores of zero.
        """
        states = self._states(batch)
        context = states.attention @ states.encoder  # (batch, target, both_widths)
        summed = self.readout.from_context(context) + self.readout.from_decoder(states.decoder)
        maps = None
        if self.config.attention == "learned":
            maps = partial(self._maps, states.encoder)
        cross = Attention(
            "cross",
            0,
            query_inputs=states.decoder,
            key_inputs=states.encoder,
            maps=maps,
            model_scores=states.scores[:, None],
            weights=states.attention[:, None],
            values=states.encoder[:, None],
            context=context[:, None],
        )
        return Trace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            attentions=(cross,),
            encoder_states=states.encoder,
            decoder_states=states.decoder,
            logits=self.readout.logits(summed),
        )

    def _maps(self, encoder_states: Float[Tensor, "batch source both_widths"]) -> tuple[LinearMap, LinearMap]:
        return LinearMap.of(self.query, 1), LinearMap.none(encoder_states)

    def _states(self, batch: Batch) -> "_States":
        source, target = batch.source, batch.target_input
        # One look-up for both sides: two would make two gradients as large as the whole table.
        ids = torch.cat([source.flatten(), target.flatten()])
        embedded = self.embedding(ids)  # (source ids and target ids, width)
        of_source, of_target = embedded.split([source.numel(), target.numel()])
        source_inputs = of_source.view(*source.shape, -1)  # (batch, source, width)
        target_inputs = of_target.view(*target.shape, -1)  # (batch, target, width)
        encoder_states, start = self.encode(source_inputs, batch.source_mask)
        decoder_states, _ = self.decoder(target_inputs, start)
        scores, attention = self.attend(encoder_states, batch.source_mask, decoder_states)
        return _States(encoder=encoder_states, decoder=decoder_states, scores=scores, attention=attention)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _States(ShowsShapes):
    """The states of both sides in a pass, and the attention between them."""

    encoder: Float[Tensor, "batch source both_widths"]
    decoder: Float[Tensor, "batch target width"]
    scores: Float[Tensor, "batch target source"]
    attention: Float[Tensor, "batch target source"]


def __getattr__(name: str) -> type[Trace]:
    """Return what has taken the place of a class of earlier releases."""
    return former_object(__name__, {"TranslatorTrace": "attnlib.trace.Trace"}, name)
