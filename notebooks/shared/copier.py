"""The network that copies (Snell et al. 2021, sections 2.1, 3.3 and 5.2): their translation model in small.

Encoder and decoder are recurrent, of one layer and one direction; the decoder starts in the encoder's last
state. With one or several heads k,

    score_k[s, t] = (W_k d_s + b_k) · h_t;    attention_k = softmax of score_k over t;
    c_s = Σ_k Σ_t attention_k[s, t] h_t;
    logits_s = W_o tanh(W_n [W_c c_s + b_c ; d_s] + b_n) + b_o,

d and h being decoder and encoder states (s and h in the paper; equations 1, 2, 20, 21). Contexts of heads are
summed, not averaged, so K heads at uniform attention make a context K times as long. The paper gives the form
for translation; the tanh and what has a bias are taken from its authors' published configuration.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from attnlib.errors import UnknownName, check_at_least
from attnlib.models.initialise import draw_parameters, undrawn_embedding
from notebooks.shared.copied_sentences import CopyBatch

CopierCell = Literal["lstm", "gru"]
CopierAttention = Literal["learned", "uniform"]


@dataclass(frozen=True)
class CopierConfig:
    """What the network is built from."""

    words: int  # of the vocabulary, the start mark not counted
    width: int = 256  # of embeddings, states and the hidden layer
    cell: CopierCell = "lstm"
    heads: int = 1
    attention: CopierAttention = "learned"  # "uniform" keeps every weight at 1 / length, whatever the scores

    def __post_init__(self) -> None:
        for name, value, known in (
            ("cell", self.cell, get_args(CopierCell)),
            ("attention", self.attention, get_args(CopierAttention)),
        ):
            if value not in known:
                raise UnknownName(name, value, known)
        check_at_least(1, self, "words", "width", "heads")


EncoderStates, DecoderStates = Float[Tensor, "batch source width"], Float[Tensor, "batch target width"]
HeadAttention = Float[Tensor, "batch heads target source"]
Gates, Hidden = Float[Tensor, "time batch gates"], Float[Tensor, "batch width"]
Words, Target = Int[Tensor, "batch time"], Int[Tensor, "batch target"]


@dataclass(frozen=True)
class CopierTrace:
    """One teacher-forced pass. Decoder states have read the target up to the word before the one due."""

    encoder_states: EncoderStates
    decoder_states: DecoderStates
    attention: HeadAttention
    context: Float[Tensor, "batch target width"]
    logits: Float[Tensor, "batch target words"]


class Copier(nn.Module):
    """The copying network, drawn from ``generator`` alone, as torch draws; both sides share embeddings."""

    def __init__(self, config: CopierConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        width, layer = config.width, {"lstm": nn.LSTM, "gru": nn.GRU}[config.cell]
        with torch.device("meta"):  # torch's own initialisation would draw from global state
            self.embedding = undrawn_embedding(config.words + 1, width)
            self.encoder = layer(width, width, batch_first=True)
            self.decoder = layer(width, width, batch_first=True)
            self.context_map = nn.Linear(width, width)
            self.hidden = nn.Linear(2 * width, width)
            self.readout = nn.Linear(width, config.words)
            self.queries = nn.Linear(width, config.heads * width)
        self.to_empty(device="cpu")
        draw_parameters(self, generator)

    def forward(self, batch: CopyBatch, implementation: Literal["fast", "plain"] = "fast") -> CopierTrace:
        """A pass under teacher forcing; ``plain`` leaves recurrence to torch, same to rounding.

        With several threads ``fast`` leaves it to torch, too, which shares the products of a step among them
        to better effect (``benchmarks/README.md``).
        """
        encoder_states, last = self._unroll(self.encoder, batch.source, None, implementation)
        decoder_states, _ = self._unroll(self.decoder, batch.target_read, last, implementation)
        attention = self.attend(decoder_states, encoder_states)
        context = attention.sum(dim=1) @ encoder_states  # Σ_k: the same as summing the heads' contexts
        return CopierTrace(
            encoder_states, decoder_states, attention, context, self.read_out(context, decoder_states)
        )

    def attend(self, decoder_states: DecoderStates, encoder_states: EncoderStates) -> HeadAttention:
        """Attention of every head; rows sum to one."""
        batch, target, width = decoder_states.shape
        source = encoder_states.shape[1]
        if self.config.attention == "uniform":
            return decoder_states.new_full((batch, self.config.heads, target, source), 1 / source)
        queries = self.queries(decoder_states).view(batch, target * self.config.heads, width)
        scores = queries @ encoder_states.mT  # (batch, target · heads, source)
        return scores.softmax(dim=-1).view(batch, target, self.config.heads, source).transpose(1, 2)

    def read_out(
        self, context: Float[Tensor, "*rows width"], decoder_states: Float[Tensor, "*rows width"]
    ) -> Float[Tensor, "*rows words"]:
        """Logits of the network N in the paper, before its softmax."""
        joined = torch.cat([self.context_map(context), decoder_states], dim=-1)
        return self.readout(torch.tanh(self.hidden(joined)))

    def _unroll(self, layer: nn.RNNBase, tokens: Words, start, implementation: str) -> tuple[Tensor, object]:
        if implementation == "plain" or self.config.cell == "gru" or torch.get_num_threads() > 1:
            return layer(self.embedding(tokens), start)
        table = nn.functional.linear(
            self.embedding.weight, layer.weight_ih_l0, layer.bias_ih_l0 + layer.bias_hh_l0
        )
        inputs = table[tokens.T]  # (time, batch, gates)
        zeros = inputs.new_zeros(len(tokens), self.config.width)
        hidden, memory = (zeros, zeros) if start is None else start
        states, memory = lstm_scan(inputs, layer.weight_hh_l0, hidden, memory)
        return states.transpose(0, 1), (states[-1], memory)


def copier_loss(model: Copier, batch: CopyBatch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right words, in nats a word (equation 3, averaged)."""
    return nn.functional.cross_entropy(model(batch).logits.flatten(0, 1), batch.target.flatten())


def lexical_probe(
    model: Copier, trace: CopierTrace, batch: CopyBatch
) -> Float[Tensor, "batch target source"]:
    """β[s, t] = N([h_t ; d_s])_{y_s}: the right word's probability if all attention stood at t (equation 4).

    With several heads all of them stand there, so the context is K h_t. Memory: batch · target · source ·
    max(width, words) numbers; give it a few sentences.
    """
    context = model.config.heads * trace.encoder_states[:, None, :, :]  # (batch, 1, source, width)
    source, target = trace.encoder_states.shape[1], trace.decoder_states.shape[1]
    states = trace.decoder_states[:, :, None, :].expand(-1, -1, source, -1)
    logits = model.read_out(context.expand(-1, target, -1, -1), states)
    right = batch.target[:, :, None, None].expand(-1, -1, source, 1)
    return logits.softmax(dim=-1).gather(-1, right)[..., 0]


class BagOfWords(nn.Module):
    """The proxy for what is learned before attention is (Snell et al. 2021, section 2.3, equation 5).

    p = softmax(W · mean of e_x over the source words), the same at every step.
    W and e are drawn from N(0, 1 / width), the initialisation that equation 15 is about.
    """

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        draw = (torch.randn(words, width, generator=generator) * width**-0.5 for _ in range(2))
        self.embedding, self.readout = (nn.Parameter(values) for values in draw)

    def forward(self, source: Int[Tensor, "batch source"]) -> Float[Tensor, "batch words"]:
        """Logits of the target words, from the set of source words alone."""
        return self.embedding[source].mean(dim=1) @ self.readout.T

    def dictionary(self) -> Float[Tensor, "words words"]:
        """θ[i, o] = softmax(W e_i)_o: the probability that source word i says target word o (equation 13)."""
        return (self.embedding @ self.readout.T).softmax(dim=-1)


def bag_of_words_loss(model: BagOfWords, source: Words, target: Target) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target words, in nats a word (equation 14, averaged).

    All steps of a sentence share one distribution, so its log-probabilities are computed once.
    """
    return -model(source).log_softmax(dim=-1).gather(1, target).mean()


# An LSTM over rows without padding, its backward pass written out, for one CPU thread.
#
# It is faster than torch's where the matrix products behind it use the processor's wide vectors, and about as
# fast where they do not (``benchmarks/README.md``). Two things are done otherwise. The vocabulary is small,
# so the input's share of the gates is a product with the table of embeddings, looked up by word, not a
# product at every position. And the gradient of the recurrent weight is one product over all steps at the
# end, not a small one at every step.


class LSTMScan(torch.autograd.Function):
    """States of an LSTM from its gates' input share (Hochreiter and Schmidhuber 1997, with forget gates).

    With z_t = inputs_t + R h_{t−1}, split into four of the state's width,

        i, f, o = σ(z^i), σ(z^f), σ(z^o);  m_t = f · m_{t−1} + i · tanh(z^g);  h_t = o · tanh(m_t).

    Gates stand in torch's order: input, forget, candidate, output. Use :func:`lstm_scan`.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, inputs: Tensor, recurrent: Tensor, start: Tensor, memory: Tensor) -> tuple:
        length, batch, _ = inputs.shape
        width = recurrent.shape[1]
        gates = torch.empty_like(inputs)
        states, memories = (inputs.new_empty(length + 1, batch, width) for _ in range(2))
        squashed = inputs.new_empty(length, batch, width)  # tanh of the memory
        states[0], memories[0] = start, memory
        for step in range(length):
            gate = torch.addmm(inputs[step], states[step], recurrent.T, out=gates[step])
            gate[:, : 2 * width].sigmoid_()
            gate[:, 2 * width : 3 * width].tanh_()
            gate[:, 3 * width :].sigmoid_()
            entering, forget, candidate, output = gate.chunk(4, dim=1)
            torch.mul(forget, memories[step], out=memories[step + 1]).addcmul_(entering, candidate)
            torch.tanh(memories[step + 1], out=squashed[step])
            torch.mul(output, squashed[step], out=states[step + 1])
        ctx.save_for_backward(gates, states, memories, squashed, recurrent)
        return states[1:].clone(), memories[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, to_states: Tensor, to_memory: Tensor) -> tuple[Tensor, ...]:
        gates, states, memories, squashed, recurrent = ctx.saved_tensors
        to_gates = torch.empty_like(gates)
        to_state, to_memory = torch.zeros_like(squashed[0]), to_memory.clone()
        for step in reversed(range(len(gates))):
            entering, forget, candidate, output = gates[step].chunk(4, dim=1)
            to_state = to_state + to_states[step]
            to_memory.addcmul_(to_state * output, 1 - squashed[step].square())
            into = to_gates[step].chunk(4, dim=1)  # views: what is written here is the step's gradient
            torch.mul(to_memory, candidate, out=into[0]).mul_(entering * (1 - entering))
            torch.mul(to_memory, memories[step], out=into[1]).mul_(forget * (1 - forget))
            torch.mul(to_memory, entering, out=into[2]).mul_(1 - candidate.square())
            torch.mul(to_state, squashed[step], out=into[3]).mul_(output * (1 - output))
            to_memory.mul_(forget)
            to_state = to_gates[step] @ recurrent
        to_recurrent = to_gates.flatten(0, 1).T @ states[:-1].flatten(0, 1)
        return to_gates, to_recurrent, to_state, to_memory


def lstm_scan(
    inputs: Gates, recurrent: Float[Tensor, "gates width"], start: Hidden, memory: Hidden
) -> tuple[Float[Tensor, "time batch width"], Hidden]:
    """Hidden states of every step and the last memory: what :class:`torch.nn.LSTM` gives, to rounding.

    From W x_t + b of the four gates (gates = 4 · width), R, and h and m before the first step.
    """
    return LSTMScan.apply(inputs.contiguous(), recurrent, start, memory)
