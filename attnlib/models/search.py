"""Writing a target: greedy search and beam search, batched, for any network that goes word by word."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
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
    """A network that writes one word at a time."""

    def begin(self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]) -> State:
        """What it knows before the first word: tensors, in frozen dataclasses, whose rows are samples."""
        ...

    def write(self, words: Int[Tensor, " batch"], state: State) -> tuple[Float[Tensor, "batch words"], State]:
        """Logits of the next word after reading one more, and what is known then."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Written(ShowsShapes):
    """What a search found for each source, best first."""

    words: Int[Tensor, "batch beams length"]  #: an end mark unless cut off, then padding
    #: of the words together, in nats; −inf where fewer than ``beams`` targets exist
    log_probability: Float[Tensor, "batch beams"]


@torch.no_grad()
def greedy_search(
    network: Writer,
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    max_steps: int,
) -> Written:
    """Write the likeliest word at every step: :func:`beam_search` with one beam."""
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

    A target that ends stays in the beam as it is and competes with the others. Marks are never written but
    the end mark. The search is exact where the beam holds every beginning.

    Args:
        network: what writes, in evaluation mode.
        source: ids of the source words.
        mask: True at valid positions of the source.
        beams: how many beginnings are kept.
        max_steps: words and end mark of a target, at most; a target without an end mark by then is cut off.
        length_penalty: targets are ranked by log p / length^penalty, the end mark counted; 0 ranks by the
            probability, 1 by its mean a word. During the search beginnings are ranked in the same way.

    Raises:
        BadInput: ``max_steps`` or ``beams`` below 1, or a negative penalty.
    """
    if max_steps < 1 or beams < 1 or length_penalty < 0:
        raise BadInput(
            f"max_steps is {max_steps}, beams {beams}, length_penalty {length_penalty}; the first two must "
            "be at least 1, the last not negative"
        )
    batch, device = len(source), source.device
    rows = torch.arange(batch, device=device)[:, None]  # of the samples, for indexing
    # All beams start alike: all but the first are out of the race until the first step has made them differ.
    total = torch.full((batch, beams), -torch.inf, device=device)
    total[:, 0] = 0
    state = _rows(network.begin(source, mask), rows.expand(-1, beams).flatten())
    word = torch.full((batch, beams), BOS, dtype=source.dtype, device=device)
    words = word[:, :, None][:, :, :0]
    running = torch.ones_like(word, dtype=torch.bool)
    length = torch.zeros_like(total)
    for _ in range(max_steps):
        logits, state = network.write(word.flatten(), state)
        gain = _allowed(logits).view(batch, beams, -1)
        vocabulary = gain.shape[-1]
        # A target that has ended goes on in one way: padding, at no cost.
        gain = torch.where(running[:, :, None], gain, -torch.inf)
        gain[:, :, PAD] = torch.where(running, gain[:, :, PAD], 0.0)
        grown = length + running
        scores = (total[:, :, None] + gain) / grown[:, :, None].clamp(min=1) ** length_penalty
        _, chosen = scores.flatten(1).topk(beams, dim=1)
        parent, word = chosen // vocabulary, chosen % vocabulary
        total = total[rows, parent] + gain[rows, parent, word]
        length = grown[rows, parent]
        words = torch.cat([words[rows, parent], word[:, :, None]], dim=2)
        running = running[rows, parent] & (word != EOS)
        state = _rows(state, (rows * beams + parent).flatten())
        if not running.any():
            break
    return Written(words.masked_fill(total.isneginf()[:, :, None], PAD), total)


def _allowed(logits: Float[Tensor, "rows words"]) -> Float[Tensor, "rows words"]:
    """Log-probabilities with the marks that are never written left out before normalising."""
    logits = logits.clone()
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(dim=-1)


def _rows(state: Any, chosen: Int[Tensor, " rows"]) -> Any:
    """Return the state with these of its rows, in this order."""
    if isinstance(state, Tensor):
        return state.index_select(0, chosen)
    if is_dataclass(state):
        return type(state)(*(_rows(getattr(state, field.name), chosen) for field in fields(state)))
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

    Marks are never written but the end mark; a target without one after ``max_steps`` is cut off there.
    Nothing is normalised, so that rounding makes no ties; :func:`greedy_search` gives probabilities too.

    Args:
        write: returns logits of the next word after reading one more, and what is known then. The logits of
            marks are overwritten.
        state: what is known before the first word.
        like: the sources, for their number, type and device.
        max_steps: words and end mark of a target, at most.

    Raises:
        BadInput: ``max_steps`` < 1.
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
    """Return :func:`likeliest_words` of the second paper's translator, which should be in evaluation mode.

    Each step costs one step of the decoder.

    Raises:
        BadInput: ``max_steps`` < 1.
    """
    readout = model.readout

    def write(word: Int[Tensor, " batch"], state: Any) -> tuple[Float[Tensor, "batch words"], Any]:
        decoder_states, state = model.decoder(model.embedding(word[:, None]), state)
        _, attention = model.attend(encoder_states, source_mask, decoder_states)
        context = attention @ encoder_states  # (batch, 1, both_widths)
        return readout.logits(readout.from_context(context) + readout.from_decoder(decoder_states))[
            :, 0
        ], state

    with torch.no_grad():
        encoder_states, state = model.encode(model.embedding(source), source_mask)
        return likeliest_words(write, state, like=source, max_steps=max_steps)
