"""Learning to copy sentences in which no word comes twice (Snell et al. 2021, sections 3.3, 6.2, A.3).

The kinds differ in how much the set of source words says about the set of target words: nothing
(``permutation``), something (``sample``), and which half of the dictionary (``mixture``). In a permutation
every source word is seen with every target word equally often, and nothing can be learned before attention
is. Every update draws new sentences (how many different ones the authors had is not said).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.models.initialise import draw_parameters
from companion.runs.loop import Report, Schedule, regular_checkpoints, train_network
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

VERSION = 1  # of the training: raised when what it trains changes

Kind = Literal["permutation", "sample", "mixture"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Sentences = Int[Tensor, "samples length"]


def words_of(kind: Kind, length: int) -> int:
    """Size of the vocabulary, in the paper's proportions: length, one and a half times it, twice it.

    >>> [words_of(kind, 40) for kind in KINDS]
    [40, 60, 80]
    """
    check_known("kind of copying data", kind, KINDS)
    if length < 2:
        raise BadInput(f"sentences of length {length}; expected at least 2")
    sizes = {"permutation": length, "sample": length + length // 2, "mixture": 2 * length}
    return sizes[kind]


def draw_sources(kind: Kind, length: int, samples: int, generator: torch.Generator) -> Sentences:
    """Sentences in which no word comes twice, each as likely as any other of its kind.

    ``permutation``: all words of the vocabulary in a random order. ``sample``: ``length`` words of one and a
    half times as many, in a random order. ``mixture``: all words of the first half or all of the second.
    Errors as :func:`words_of`.
    """
    words = words_of(kind, length)
    drawn_from = words // 2 if kind == "mixture" else words
    orders = torch.rand(samples, drawn_from, generator=generator).argsort(dim=1)
    sources = orders[:, :length]
    if kind == "mixture":
        half = torch.randint(2, (samples, 1), generator=generator)
        sources = sources + length * half
    return sources


@dataclass(frozen=True, eq=False)
class CopyBatch:
    """Sentences of one length, without padding or end mark."""

    source: Int[Tensor, "batch length"]  #: words 0 … words − 1
    #: what the decoder reads at each step: a start mark (the id ``words``), then the target
    target_read: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]  #: what it is to say
    place: Int[Tensor, " length"]  #: the source position of each target word

    def to(self, device: str) -> Self:
        return type(self)(
            source=self.source.to(device),
            target_read=self.target_read.to(device),
            target=self.target.to(device),
            place=self.place.to(device),
        )

    def first(self, samples: int) -> Self:
        """The batch of the first ``samples`` sentences."""
        return type(self)(
            source=self.source[:samples],
            target_read=self.target_read[:samples],
            target=self.target[:samples],
            place=self.place,
        )


def copy_batch(sources: Sentences, words: int, order: Int[Tensor, " length"] | None = None) -> CopyBatch:
    """A batch whose target is the source, perhaps in another ``order``: y_i = x_{order[i]} (equation 26)."""
    place = torch.arange(sources.shape[1]) if order is None else order
    target = sources[:, place]
    start = torch.full_like(target[:, :1], words)
    target_read = torch.cat([start, target[:, :-1]], dim=1)
    return CopyBatch(sources, target_read, target, place)


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
        check_known("cell", self.cell, get_args(CopierCell))
        check_known("attention", self.attention, get_args(CopierAttention))
        check_at_least(1, self, "words", "width", "heads")


EncoderStates, DecoderStates = Float[Tensor, "batch source width"], Float[Tensor, "batch target width"]
HeadAttention = Float[Tensor, "batch heads target source"]
Gates, Hidden = Float[Tensor, "time batch gates"], Float[Tensor, "batch width"]
Words, Target = Int[Tensor, "batch time"], Int[Tensor, "batch target"]


@dataclass(frozen=True, eq=False)
class CopierTrace:
    """One teacher-forced pass. Decoder states have read the target up to the word before the one due."""

    encoder_states: EncoderStates
    decoder_states: DecoderStates
    attention: HeadAttention
    context: Float[Tensor, "batch target width"]
    logits: Float[Tensor, "batch target words"]


class Copier(nn.Module):
    """The network that copies (Snell et al. 2021, sections 2.1, 3.3, 5.2): their translation model in small.

    Encoder and decoder are recurrent, of one layer and one direction, and share embeddings; the decoder
    starts in the encoder's last state. With one or several heads k,

        score_k[s, t] = (W_k d_s + b_k) · h_t;    attention_k = softmax of score_k over t;
        c_s = Σ_k Σ_t attention_k[s, t] h_t;
        logits_s = W_o tanh(W_n [W_c c_s + b_c ; d_s] + b_n) + b_o,

    d and h being decoder and encoder states (s and h in the paper; equations 1, 2, 20, 21). Contexts of heads
    are summed, not averaged, so K heads at uniform attention make a context K times as long. The paper gives
    the form for translation; the tanh and what has a bias are taken from its authors' published
    configuration. Parameters are drawn from ``generator`` alone, as torch draws.
    """

    def __init__(self, config: CopierConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        width, layer = config.width, {"lstm": nn.LSTM, "gru": nn.GRU}[config.cell]
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding = nn.Embedding(config.words + 1, width)
            self.encoder = layer(width, width, batch_first=True)
            self.decoder = layer(width, width, batch_first=True)
            self.context_map = nn.Linear(width, width)
            self.hidden = nn.Linear(2 * width, width)
            self.readout = nn.Linear(width, config.words)
            self.queries = nn.Linear(width, config.heads * width)
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
        logits = self.read_out(context, decoder_states)
        return CopierTrace(encoder_states, decoder_states, attention, context, logits)

    def attend(self, decoder_states: DecoderStates, encoder_states: EncoderStates) -> HeadAttention:
        """Attention of every head; rows sum to one."""
        batch, target, width = decoder_states.shape
        heads, source = self.config.heads, encoder_states.shape[1]
        if self.config.attention == "uniform":
            return decoder_states.new_full((batch, heads, target, source), 1 / source)
        queries = self.queries(decoder_states).view(batch, target * heads, width)
        scores = queries @ encoder_states.mT  # (batch, target · heads, source)
        attention = scores.softmax(dim=-1).view(batch, target, heads, source)
        return attention.transpose(1, 2)

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
    logits = model(batch).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.target.flatten())


def lexical_probe(
    model: Copier, trace: CopierTrace, batch: CopyBatch
) -> Float[Tensor, "batch target source"]:
    """β[s, t] = N([h_t ; d_s])_{y_s}: the right word's probability if all attention stood at t (equation 4).

    With several heads all of them stand there, so the context is K h_t. Memory: batch · target · source ·
    max(width, words) numbers; give it a few sentences.
    """
    source, target = trace.encoder_states.shape[1], trace.decoder_states.shape[1]
    context = model.config.heads * trace.encoder_states[:, None, :, :]  # (batch, 1, source, width)
    context = context.expand(-1, target, -1, -1)
    states = trace.decoder_states[:, :, None, :].expand(-1, -1, source, -1)
    logits = model.read_out(context, states)  # (batch, target, source, words)
    right = batch.target[:, :, None, None].expand(-1, -1, source, 1)
    return logits.softmax(dim=-1).gather(-1, right)[..., 0]


class BagOfWords(nn.Module):
    """The proxy for what is learned before attention is (Snell et al. 2021, section 2.3, equation 5).

    p = softmax(W · mean of e_x over the source words), the same at every step.
    W and e are drawn from N(0, 1 / width), the initialisation that equation 15 is about.
    """

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        scale = width**-0.5
        self.embedding = nn.Parameter(torch.randn(words, width, generator=generator) * scale)
        self.readout = nn.Parameter(torch.randn(words, width, generator=generator) * scale)

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
    log_probabilities = model(source).log_softmax(dim=-1)  # (batch, words)
    return -log_probabilities.gather(1, target).mean()


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


# What a seed is used for: what it draws for different ends does not hang together.
PARAMETERS, TRAINING, HELD_OUT, ORDER, HEAD = range(5)


def stream(seed: int, *use: int) -> torch.Generator:
    """A generator of its own for a seed, a purpose, and where there are many of a purpose, which one.

    >>> stream(0, TRAINING, 3).initial_seed() == stream(0, TRAINING, 4).initial_seed()
    False
    """
    mixed = np.random.SeedSequence((seed, *use)).generate_state(1)[0]
    return torch.Generator().manual_seed(int(mixed))


# Which way a copying network uses its attention, by moving it (ours, not in the paper): to a word that is to
# be said later, or to all words but one. The two are not equally strong: one word alone makes another context
# than all words do, while leaving one out changes it by 1/(length − 1).


def moved_attention(model: Copier, trace: CopierTrace, batch: CopyBatch) -> Tensors:
    """How often the network says a word that attention has been moved to or away from, in all heads alike.

    ``says_shown``: the share of words said ahead of their time (at step s of the first half, the word due at
    s + ⌊length / 2⌋, which the decoder has not read) when all attention stands at their place;
    ``says_left_out``: when it is spread evenly over all other places. ``right_without``: the share said when
    due, with attention spread over all places but theirs; ``right_at_uniform``: over all places.
    """
    length = trace.encoder_states.shape[1]
    ahead = batch.target.shape[1] // 2
    due = nn.functional.one_hot(batch.place, length).to(trace.encoder_states.dtype)
    without = (1 - due) / (length - 1)
    uniform = torch.full_like(due, 1 / length)
    later_words = batch.target[:, ahead:]

    def share_written(attention: Tensor, words: Tensor) -> Float[Tensor, ""]:
        steps = attention.shape[0]
        context = model.config.heads * (attention @ trace.encoder_states)  # (batch, steps, width)
        logits = model.read_out(context, trace.decoder_states[:, :steps])
        return _share_right(logits.argmax(dim=-1), words)

    return {
        "says_shown": share_written(due[ahead:], later_words),
        "says_left_out": share_written(without[ahead:], later_words),
        "right_without": share_written(without, batch.target),
        "right_at_uniform": share_written(uniform, batch.target),
    }


def _share_right(answers: Tensor, expected: Tensor) -> Float[Tensor, ""]:
    return (answers == expected).float().mean()


def weight_on_later(attention: Float[Tensor, "batch target source"], batch: CopyBatch) -> Float[Tensor, ""]:
    """Mean weight on words to write after the next one; the last step has no such word."""
    by_time = attention[:, :, batch.place]  # source words in the order in which they are said
    steps = by_time.shape[1]
    later = by_time.triu(diagonal=1).sum(dim=-1)[:, :-1]
    later_words = torch.arange(steps - 1, 0, -1, device=later.device)  # how many, by step
    return (later / later_words).mean()


Network = Literal["learned", "uniform", "proxy"]
Order = Literal["copy", "permuted"]
PROBED = 8  # held-out sentences that the lexical probe is taken of


@dataclass(frozen=True)
class Settings:
    """One network and what it copies; the defaults are the paper's, as far as its text and files say."""

    kind: str = "permutation"
    network: str = "learned"  # or ``uniform`` attention, or the bag-of-words ``proxy``
    order: str = "copy"  # or one ``permuted`` order for all sentences (section 6.2), drawn with the seed
    length: int = 40
    width: int = 256
    batch_size: int = 128
    learning_rate: float = 1e-3
    steps: int = 200
    every: int = 10  # updates between two snapshots
    held_out: int = 128  # sentences that it is judged on
    seed: int = 0  # draws parameters, sentences and order, each from a stream of its own

    def __post_init__(self) -> None:
        words_of(self.kind, self.length)
        check_known("network", self.network, get_args(Network))
        check_known("order", self.order, get_args(Order))
        check_at_least(1, self, "width", "batch_size", "steps", "every", "held_out")


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train the network and look at it on held-out sentences along the way.

    By checkpoint, ``steps``, ``loss`` (nats a word), ``accuracy``, ``probe_right`` (the lexical probe where
    the next word to write stands), ``probe_elsewhere`` (its mean over the other positions),
    ``probe_agreement`` (share of words for which it is largest at the right place); with attention also
    ``attention_right`` (weight on the right place), ``attention_accuracy`` (share of words for which it is
    largest there; ties go to the first position, so uniform attention is right once a sentence),
    ``attention_later`` (mean weight on words to write after the next one) and :func:`moved_attention`; of the
    proxy ``above_floor``, its loss less log(length), in float64: never below 0, as a sentence's target words
    are all different and it gives them one distribution.
    """
    words = words_of(settings.kind, settings.length)
    order = _order(settings)
    held_out = copy_batch(_sources(settings, settings.held_out, HELD_OUT), words, order).to(device)

    def batch_at(step: int) -> CopyBatch:
        return copy_batch(_sources(settings, settings.batch_size, TRAINING, step), words, order)

    generator = stream(settings.seed, PARAMETERS)
    if settings.network == "proxy":
        network = BagOfWords(words, settings.width, generator)
        loss, snapshot = _proxy_loss, _snapshot_of_proxy
    else:
        network = Copier(CopierConfig(words, settings.width, attention=settings.network), generator)
        loss, snapshot = copier_loss, snapshot_of_copier
    schedule = Schedule(
        settings.steps, settings.seed, settings.learning_rate,
        regular_checkpoints(settings.steps, settings.every),
    )  # fmt: skip
    train_network(
        network, batch_at, loss, schedule, folder,
        visit=lambda step, model: save_snapshot(folder, step, snapshot(model, held_out)),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, schedule.checkpoints)


@torch.inference_mode()
def snapshot_of_copier(model: Copier, held_out: CopyBatch) -> Tensors:
    """The record of one checkpoint; attention is summed over heads."""
    trace = model(held_out)
    probed = held_out.first(PROBED)
    probe = lexical_probe(model, model(probed), probed)
    return {
        **written_and_attended(model, trace, held_out),
        **_probed(probe, probed),
        **moved_attention(model, trace, held_out),
    }


def written_and_attended(model: Copier, trace: CopierTrace, held_out: CopyBatch) -> Tensors:
    """What one pass says of the words that are written, and of where attention is."""
    log_probabilities = trace.logits.log_softmax(dim=-1)
    of_right_words = log_probabilities.gather(-1, held_out.target[..., None])
    attention = trace.attention.sum(dim=1)
    heads = model.config.heads
    return {
        "loss": -of_right_words.mean(),
        "accuracy": _share_right(trace.logits.argmax(dim=-1), held_out.target),
        "attention_right": _at_place(attention, held_out.place).mean() / heads,
        "attention_later": weight_on_later(attention, held_out) / heads,
        "attention_accuracy": _share_right(attention.argmax(dim=-1), held_out.place),
    }


def _proxy_loss(model: BagOfWords, batch: CopyBatch) -> Tensor:
    return bag_of_words_loss(model, batch.source, batch.target)


@torch.inference_mode()
def _snapshot_of_proxy(model: BagOfWords, held_out: CopyBatch) -> Tensors:
    # θ[source word at t, target word at s], and the same prediction at every step
    probe = model.dictionary()[held_out.source[:, None, :], held_out.target[:, :, None]]
    logits = model(held_out.source).double()  # (samples, words)
    log_probabilities = logits.log_softmax(dim=-1)
    loss = -log_probabilities.gather(1, held_out.target).mean()
    floor = math.log(held_out.target.shape[1])
    return {
        "loss": loss.float(),
        "above_floor": loss - floor,
        "accuracy": _share_right(logits.argmax(dim=-1)[:, None], held_out.target),
        **_probed(probe, held_out),
    }


def _probed(probe: Tensor, batch: CopyBatch) -> Tensors:
    right = _at_place(probe, batch.place)
    elsewhere = (probe.sum(dim=-1) - right) / (probe.shape[-1] - 1)
    return {
        "probe_right": right.mean(),
        "probe_elsewhere": elsewhere.mean(),
        "probe_agreement": _share_right(probe.argmax(dim=-1), batch.place),
    }


def _at_place(values: Tensor, place: Tensor) -> Tensor:
    """The entry of each row at the source position of the next word to write, (batch, target)."""
    steps = torch.arange(len(place), device=place.device)
    return values[:, steps, place]


def _order(settings: Settings) -> Tensor | None:
    if settings.order == "copy":
        return None
    return torch.randperm(settings.length, generator=stream(settings.seed, ORDER))


def _sources(settings: Settings, samples: int, *use: int) -> Tensor:
    return draw_sources(settings.kind, settings.length, samples, stream(settings.seed, *use))
