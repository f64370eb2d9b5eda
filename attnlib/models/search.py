"""Write targets by greedy search and beam search, batched, with any network that goes word by word.

There are two loops. :func:`beam_search` ranks beginnings by their probability, for which it normalises logits
at every step, and :func:`greedy_search` is that with one beam. :func:`likeliest_words` takes the largest
logit as it is. The second is not the first with one beam to the last bit: normalising rounds, and two logits
that differ may become equal. The translators of the figures are judged by what they write, so that they keep
their loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.models.translator import BilinearTranslator
from attnlib.models.vocabulary import BOS, EOS, PAD

State = TypeVar("State")


class Writer(Protocol[State]):
    """A network that writes one word at a time.

    Example:
        >>> from attnlib import zoo
        >>> hasattr(zoo.load("reordering").network, "write")
        True
    """

    def begin(self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]) -> State:
        """Return what is known before the first word: tensors in frozen dataclasses, whose rows are samples.

        Args:
            source: ids of the source tokens.
            mask: True at valid positions.

        Returns:
            The state of the search.
        """
        ...

    def write(self, words: Int[Tensor, " batch"], state: State) -> tuple[Float[Tensor, "batch words"], State]:
        """Return the logits of the next word after reading one more, and what is known then.

        Args:
            words: the word that each sample reads.
            state: what was known before.

        Returns:
            Logits, and the new state.
        """
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Written(ShowsShapes):
    """The targets that a search wrote for each source, the likeliest first.

    Attributes:
        words: ids, an end mark unless the target was cut off, then padding.
        log_probability: of the words together, in nats; −inf if fewer than ``beams`` targets exist.

    Example:
        >>> Written(torch.tensor([[[5, 2]]]), torch.tensor([[-0.5]])).words.shape[1]
        1
    """

    words: Int[Tensor, "batch beams length"]
    log_probability: Float[Tensor, "batch beams"]


@torch.no_grad()
def greedy_search(
    network: Writer,
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    max_steps: int,
) -> Written:
    """Write the likeliest word at every step: :func:`beam_search` with one beam.

    Args:
        network: what writes, in evaluation mode.
        source: ids of the source words.
        mask: True at valid positions of the source.
        max_steps: words and end mark of a target, at most.

    Returns:
        One target for each source, with its probability.

    Raises:
        BadInput: ``max_steps`` is below 1.

    Example:
        >>> from attnlib import zoo
        >>> network = zoo.load("reordering_luong")
        >>> source = torch.tensor([[*network.corpus.source(0), EOS]])
        >>> tuple(greedy_search(network.network, source, source > PAD, max_steps=9).log_probability.shape)
        (1, 1)
    """
    return beam_search(network, source, mask, max_steps=max_steps, beams=1)


@torch.no_grad()
def beam_search(
    network: Writer,
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    max_steps: int,
    beams: int,
    length_penalty: float = 0.0,
) -> Written:
    """Write targets, keeping the likeliest beginnings at every step (Sutskever et al. 2014, section 3.2).

    A target that ends stays in the beam as it is and competes with the others. The end mark is the
    only mark that is ever written. The search is exact if the beam holds every beginning.

    Args:
        network: what writes, in evaluation mode.
        source: ids of the source words.
        mask: True at valid positions of the source.
        max_steps: words and end mark of a target, at most; a target without an end mark by then is cut off.
        beams: how many beginnings are kept.
        length_penalty: targets are ranked by log p / length^penalty, the end mark counted; 0 ranks by the
            probability, 1 by its mean a word. During the search beginnings are ranked in the same way.

    Returns:
        The targets of each source, the likeliest first.

    Raises:
        BadInput: ``max_steps`` or ``beams`` is below 1, or the penalty is negative.

    Example:
        >>> from attnlib import zoo
        >>> network = zoo.load("reordering_luong")
        >>> source = torch.tensor([[*network.corpus.source(0), EOS]])
        >>> written = beam_search(network.network, source, source > PAD, max_steps=9, beams=2)
        >>> written.words.shape[1], bool(written.log_probability[0, 0] >= written.log_probability[0, 1])
        (2, True)
    """
    if max_steps < 1 or beams < 1 or length_penalty < 0:
        raise BadInput(
            f"max_steps is {max_steps}, beams {beams}, length_penalty {length_penalty}; the first two must "
            "be at least 1, the last not negative"
        )
    batch, device = len(source), source.device
    sample = torch.arange(batch, device=device)[:, None]  # (batch, 1), for indexing
    # All beams start alike: all but the first are out of the race until the first step has made them differ.
    total = torch.full((batch, beams), -torch.inf, device=device)  # (batch, beams), log p so far
    total[:, 0] = 0
    state = _rows(network.begin(source, mask), sample.expand(-1, beams).flatten())
    word = torch.full((batch, beams), BOS, dtype=source.dtype, device=device)  # (batch, beams)
    words = word[:, :, None][:, :, :0]  # (batch, beams, written so far)
    running = torch.ones_like(word, dtype=torch.bool)  # (batch, beams)
    length = torch.zeros_like(total)  # (batch, beams)
    for _ in range(max_steps):
        logits, state = network.write(word.flatten(), state)
        log_probability = _allowed(logits).view(batch, beams, -1)  # (batch, beams, words)
        gain = _gain(log_probability, running)  # (batch, beams, words)
        n_words = gain.shape[-1]
        grown = length + running  # (batch, beams)
        scores = (total[:, :, None] + gain) / grown[:, :, None].clamp(min=1) ** length_penalty
        _, chosen = scores.flatten(1).topk(beams, dim=1)  # (batch, beams), of all beams and words
        parent = chosen // n_words  # (batch, beams), the beam that is continued
        word = chosen % n_words
        total = total[sample, parent] + gain[sample, parent, word]
        length = grown[sample, parent]
        words = torch.cat([words[sample, parent], word[:, :, None]], dim=2)
        running = running[sample, parent] & (word != EOS)
        state = _rows(state, (sample * beams + parent).flatten())
        if not running.any():
            break
    is_impossible = total.isneginf()[:, :, None]  # fewer than ``beams`` targets exist
    return Written(words.masked_fill(is_impossible, PAD), total)


def _gain(
    log_probability: Float[Tensor, "batch beams words"], running: Bool[Tensor, "batch beams"]
) -> Float[Tensor, "batch beams words"]:
    """Return what each next word adds to log p: a target that has ended goes on with padding, at no cost."""
    gain = torch.where(running[:, :, None], log_probability, -torch.inf)
    gain[:, :, PAD] = torch.where(running, gain[:, :, PAD], 0.0)
    return gain


def _allowed(logits: Float[Tensor, "rows words"]) -> Float[Tensor, "rows words"]:
    """Return log-probabilities; the marks that are never written are left out before normalising."""
    logits = logits.clone()
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(dim=-1)


def _rows(state: Any, chosen: Int[Tensor, " rows"]) -> Any:
    """Return the state with these of its rows, in this order."""
    if isinstance(state, Tensor):
        return state.index_select(0, chosen)
    if is_dataclass(state) and not isinstance(state, type):
        rows = {}
        for field in fields(state):
            rows[field.name] = _rows(getattr(state, field.name), chosen)
        return replace(state, **rows)
    return state


@torch.no_grad()
def likeliest_words(
    write: Callable[[Int[Tensor, " batch"], Any], tuple[Float[Tensor, "batch words"], Any]],
    state: Any,
    *,
    like: Int[Tensor, "batch source"],
    max_steps: int,
) -> Int[Tensor, "batch written"]:
    """Write the likeliest word at every step: words, an end mark, padding.

    The end mark is the only mark that is ever written; a target without one after ``max_steps`` is cut off
    there. Nothing is normalised, so that rounding makes no ties; :func:`greedy_search` gives probabilities
    too.

    Args:
        write: returns the logits of the next word after reading one more, and what is known then. The logits
            of marks are overwritten.
        state: what is known before the first word.
        like: the sources, for their number, type and device.
        max_steps: words and end mark of a target, at most.

    Returns:
        Ids; a row begins with the first word.

    Raises:
        BadInput: ``max_steps`` is below 1.

    Example:
        >>> def write(word, step):  # writes 5, then ends
        ...     likeliest = torch.tensor([5 if step == 0 else EOS])
        ...     return torch.nn.functional.one_hot(likeliest, 6).float(), step + 1
        >>> likeliest_words(write, 0, like=torch.tensor([[4]]), max_steps=9).tolist()
        [[5, 2]]
    """
    if max_steps < 1:
        raise BadInput(f"max_steps is {max_steps}; it must be at least 1")
    word = torch.full((len(like),), BOS, dtype=like.dtype, device=like.device)
    running = torch.ones_like(word, dtype=torch.bool)
    written = []
    for _ in range(max_steps):
        logits, state = write(word, state)
        logits[:, [PAD, BOS]] = -torch.inf
        word = torch.where(running, logits.argmax(-1), PAD)
        written.append(word)
        running &= word != EOS
        if not running.any():
            break
    return torch.stack(written, dim=1)


def translate(
    model: BilinearTranslator,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    *,
    max_steps: int,
) -> Int[Tensor, "batch written"]:
    """Translate greedily with the second paper's translator, at the cost of one decoder step a word.

    Args:
        model: in evaluation mode.
        source: ids of the source words.
        source_mask: True at valid positions of the source.
        max_steps: words and end mark of a target, at most.

    Returns:
        As :func:`likeliest_words`: words, an end mark, padding.

    Raises:
        BadInput: ``max_steps`` < 1.

    Example:
        >>> from attnlib import zoo
        >>> network = zoo.load("lexicon_translator")
        >>> source = torch.tensor([[*network.corpus.source(0), EOS]])
        >>> words = translate(network.network, source, source > PAD, max_steps=9)
        >>> len(words), words.shape[1] <= 9
        (1, True)
    """
    readout = model.readout

    def write(word: Int[Tensor, " batch"], state: Any) -> tuple[Float[Tensor, "batch words"], Any]:
        embedded = model.embedding(word[:, None])  # (batch, 1, width)
        decoder_states, state = model.decoder(embedded, state)  # (batch, 1, width)
        _, attention = model.attend(encoder_states, source_mask, decoder_states)
        context = attention @ encoder_states  # (batch, 1, both_widths)
        summed = readout.from_context(context) + readout.from_decoder(decoder_states)
        return readout.logits(summed)[:, 0], state

    with torch.no_grad():
        encoder_states, state = model.encode(model.embedding(source), source_mask)
        return likeliest_words(write, state, like=source, max_steps=max_steps)
