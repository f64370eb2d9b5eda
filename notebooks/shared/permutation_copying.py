"""Learning to copy where the words of a sentence say nothing of each other (Snell et al. 2021, section 3.3).

A sentence of the ``permutation`` kind holds all words of the vocabulary, so every source word is seen with
every target word equally often, and nothing can be learned before attention is. ``sample`` and ``mixture``
(appendix A.3) are what it is held against; see :mod:`notebooks.shared.copied_sentences`. Every update draws
new sentences (how many different ones the authors had is not said).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import UnknownName, check_at_least
from attnlib.training.course import Course, Report, regular_checkpoints, run_course
from notebooks.shared import copier
from notebooks.shared.copied_sentences import CopyBatch, copy_batch, draw_sources, words_of
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

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
# be said later, or to all words but one. A network that says what it attends to says the word that it is
# shown; one that tells the word by what is missing says the word that is left out. The two are not equally
# strong: one word alone makes another context than all words do, while leaving one out changes it by
# 1/(length − 1). And a recurrent state carries more than its own word.


def moved_attention(model: copier.Copier, trace: copier.CopierTrace, batch: CopyBatch) -> Tensors:
    """How often the network says a word that attention has been moved to or away from, in all heads alike.

    ``says_shown``: the share of words said ahead of their time (at step s of the first half, the word due at
    s + ⌊length / 2⌋, which the decoder has not read) when all attention stands at their place;
    ``says_left_out``: when it is spread evenly over all other places. ``right_without``: the share said when
    due, with attention spread over all places but theirs; ``right_at_uniform``: over all places.
    """
    length = trace.encoder_states.shape[1]
    ahead = batch.target.shape[1] // 2
    due = torch.nn.functional.one_hot(batch.place, length).to(trace.encoder_states.dtype)
    without = (1 - due) / (length - 1)

    def said(attention: Tensor, words: Tensor) -> Float[Tensor, ""]:
        steps = attention.shape[0]
        context = model.config.heads * (attention @ trace.encoder_states)  # (batch, steps, width)
        answer = model.read_out(context, trace.decoder_states[:, :steps]).argmax(dim=-1)
        return (answer == words).float().mean()

    return {
        "says_shown": said(due[ahead:], batch.target[:, ahead:]),
        "says_left_out": said(without[ahead:], batch.target[:, ahead:]),
        "right_without": said(without, batch.target),
        "right_at_uniform": said(torch.full_like(due, 1 / length), batch.target),
    }


def weight_on_later(attention: Float[Tensor, "batch target source"], batch: CopyBatch) -> Float[Tensor, ""]:
    """Mean weight on words to write after the next one; the last step has no such word."""
    by_time = attention[:, :, batch.place]  # source words in the order in which they are said
    steps = by_time.shape[1]
    later = by_time.triu(diagonal=1).sum(dim=-1)[:, :-1]
    return (later / torch.arange(steps - 1, 0, -1, device=later.device)).mean()


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
        for name, known in (("network", get_args(Network)), ("order", get_args(Order))):
            if getattr(self, name) not in known:
                raise UnknownName(name, getattr(self, name), known)
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
        network = copier.BagOfWords(words, settings.width, generator)
        loss, snapshot = _proxy_loss, _snapshot_of_proxy
    else:
        network = copier.Copier(
            copier.CopierConfig(words, settings.width, attention=settings.network), generator
        )
        loss, snapshot = copier.copier_loss, snapshot_of_copier
    course = Course(
        settings.steps, settings.seed, settings.learning_rate,
        regular_checkpoints(settings.steps, settings.every),
    )  # fmt: skip
    run_course(
        network, batch_at, loss, course, folder,
        visit=lambda step, model: save_snapshot(folder, step, snapshot(model, held_out)),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, course.checkpoints)


def snapshot_of_copier(model: copier.Copier, held_out: CopyBatch) -> Tensors:
    """The record of one checkpoint; attention is summed over heads."""
    with torch.inference_mode():
        trace = model(held_out)
        few = type(held_out)(
            held_out.source[:PROBED], held_out.target_read[:PROBED], held_out.target[:PROBED], held_out.place
        )
        log_probabilities = trace.logits.log_softmax(dim=-1)
        attention = trace.attention.sum(dim=1)
        return {
            "loss": -log_probabilities.gather(-1, held_out.target[..., None]).mean(),
            "accuracy": (trace.logits.argmax(dim=-1) == held_out.target).float().mean(),
            "attention_right": _at_place(attention, held_out.place).mean() / model.config.heads,
            "attention_later": weight_on_later(attention, held_out) / model.config.heads,
            "attention_accuracy": (attention.argmax(dim=-1) == held_out.place).float().mean(),
            **_probed(copier.lexical_probe(model, model(few), few), few),
            **moved_attention(model, trace, held_out),
        }


def _proxy_loss(model: copier.BagOfWords, batch: CopyBatch) -> Tensor:
    return copier.bag_of_words_loss(model, batch.source, batch.target)


def _snapshot_of_proxy(model: copier.BagOfWords, held_out: CopyBatch) -> Tensors:
    with torch.inference_mode():
        # θ[source word at t, target word at s], and the same prediction at every step
        probe = model.dictionary()[held_out.source[:, None, :], held_out.target[:, :, None]]
        logits = model(held_out.source).double()
        loss = -logits.log_softmax(dim=-1).gather(1, held_out.target).mean()
        return {
            "loss": loss.float(),
            "above_floor": loss - math.log(held_out.target.shape[1]),
            "accuracy": (logits.argmax(dim=-1)[:, None] == held_out.target).float().mean(),
            **_probed(probe, held_out),
        }


def _probed(probe: Tensor, batch: CopyBatch) -> Tensors:
    right = _at_place(probe, batch.place)
    return {
        "probe_right": right.mean(),
        "probe_elsewhere": ((probe.sum(dim=-1) - right) / (probe.shape[-1] - 1)).mean(),
        "probe_agreement": (probe.argmax(dim=-1) == batch.place).float().mean(),
    }


def _at_place(values: Tensor, place: Tensor) -> Tensor:
    """The entry of each row at the source position of the next word to write, (batch, target)."""
    return values[:, torch.arange(len(place), device=place.device), place]


def _order(settings: Settings) -> Tensor | None:
    if settings.order == "copy":
        return None
    return torch.randperm(settings.length, generator=stream(settings.seed, ORDER))


def _sources(settings: Settings, samples: int, *use: int) -> Tensor:
    return draw_sources(settings.kind, settings.length, samples, stream(settings.seed, *use))
