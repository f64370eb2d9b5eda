"""Rows of attention predicted before a word is swapped, and the network run again with the word swapped.

The prediction sees the run on the original sentence, components and mean effects fitted on training samples.
With the word w at source position q exchanged for w',

    input        h^E_q  ←  h^E_q − χ(w) + χ(w')            residual and all other states kept
    input_alone  h^E_q  ←  μ_q + χ(w')                      the residual at its mean over all w', zero
    encoder      h^E_t  ←  h^E_t + E[change | w, w', t − q]
    decoder      h^D_s  ←  h^D_s + E[change | group of w, q, source length, s]
    both         encoder and decoder

and none (rows as they were), uniform. Scores being bilinear, the first is arithmetic once the states are
taken so: a'_sq = a_sq + h^D_s · (χ(w') − χ(w)). What is in question is whether the network does it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.experiments.fitting import Fitted
from attnlib.experiments.measures.minimal_pairs import Pairs
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.trace import Trace
from attnlib.tasks.corpus import Batch, collate

PREDICTIONS = ("none", "uniform", "input", "input_alone", "encoder", "decoder", "both")
BATCH = 256


@dataclass(frozen=True)
class Exchange:
    """What is swapped in each sample: where, which word, for which, and the group of the old one."""

    position: Int[Tensor, " batch"]
    old: Int[Tensor, " batch"]
    new: Int[Tensor, " batch"]
    group: Int[Tensor, " batch"]


@dataclass(frozen=True)
class Effects:
    """Mean changes of states over training pairs; zero where no pair was seen.

    Attributes:
        encoder: by old word, new word and lag t − q.
        decoder: by group of the old word, position q, source length and step s, the words read kept.
    """

    encoder: Float[Tensor, "words words lag width"]
    decoder: Float[Tensor, "group position length step width"]


def exchange_of(pairs: Pairs, device: torch.device | str = "cpu") -> Exchange:
    """What a list of pairs exchanges."""
    rows = range(len(pairs))
    old, new = (
        torch.tensor([int(corpus.source(i)[pairs.positions[i]]) for i in rows])
        for corpus in (pairs.first, pairs.second)
    )
    position, group = torch.from_numpy(pairs.positions), torch.from_numpy(pairs.groups)
    return Exchange(*(column.to(device) for column in (position, old, new, group)))


def predict_rows(
    model: EncoderDecoder, batch: Batch, trace: Trace, exchange: Exchange, fitted: Fitted, effects: Effects
) -> dict[str, Float[Tensor, "batch target source"]]:
    """The predicted attention of :data:`PREDICTIONS`, from the original run alone."""
    states = trace.encoder_states
    samples = torch.arange(len(states), device=states.device)
    at = exchange.position
    change = (fitted.encoder.input[exchange.new] - fitted.encoder.input[exchange.old]).to(states)
    swapped, alone = states.clone(), states.clone()
    swapped[samples, at] += change
    temporal = (
        fitted.encoder.temporal.to(states.device)[at] + fitted.encoder.input.to(states.device)[exchange.new]
    )
    alone[samples, at] = temporal.to(states)
    lag = torch.arange(states.shape[1], device=states.device) - at[:, None]  # (batch, source)
    known = effects.encoder[exchange.old[:, None], exchange.new[:, None], lag.clamp(min=0)]
    moved = states + known.to(states) * ((lag >= 0) & trace.source_mask)[:, :, None]
    lengths = trace.source_mask.sum(1)
    turned = trace.decoder_states + effects.decoder[exchange.group, at, lengths][
        :, : trace.decoder_states.shape[1]
    ].to(states)

    def rows(encoder: Tensor, decoder: Tensor) -> Tensor:
        return model.attend(batch, encoder, decoder).attention

    uniform = (trace.source_mask / lengths[:, None])[:, None, :].expand_as(trace.attention)
    return {
        "none": trace.attention,
        "uniform": uniform,
        "input": rows(swapped, trace.decoder_states),
        "input_alone": rows(alone, trace.decoder_states),
        "encoder": rows(moved, trace.decoder_states),
        "decoder": rows(states, turned),
        "both": rows(moved, turned),
    }


def rerun(model: EncoderDecoder, batch: Batch, swapped: Batch) -> Trace:
    """The network on the sentence with the word swapped, reading the target words of the original one."""
    states, last = model.encode(swapped.source, swapped.source_mask)
    return model.attend(batch, states, model.decode(batch.target_input, last))


def fit_effects(model: EncoderDecoder, pairs: Pairs, words: int, longest: tuple[int, int]) -> Effects:
    """Mean effects of a kind of swap.

    Args:
        pairs: of training sentences.
        words: in the source vocabulary.
        longest: source and target, end marks included.
    """
    device, width = model.readout.weight.device, model.config.width
    source, target = longest
    shapes = (words, words, source), (len(pairs.swap.groups), source, source + 1, target)
    sums = [torch.zeros(*shape, width, dtype=torch.float64, device=device) for shape in shapes]
    counts = [torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes]
    exchange = exchange_of(pairs, device)
    for first in range(0, len(pairs), BATCH):
        chosen = torch.arange(first, min(first + BATCH, len(pairs)), device=device)
        batch, swapped = (collate(c, chosen.tolist()).to(device) for c in (pairs.first, pairs.second))
        before, after = model(batch), rerun(model, batch, swapped)
        at, old, new, group = (
            getattr(exchange, name)[chosen] for name in ("position", "old", "new", "group")
        )
        sample, place = (batch.source_mask.cumsum(1) > at[:, None]).logical_and(batch.source_mask).nonzero().T
        index = (old[sample], new[sample], place - at[sample])
        _add(sums[0], counts[0], index, (after.encoder_states - before.encoder_states)[sample, place])
        sample, step = batch.target_mask.nonzero().T
        index = (group[sample], at[sample], batch.source_mask.sum(1)[sample], step)
        _add(sums[1], counts[1], index, (after.decoder_states - before.decoder_states)[sample, step])
    return Effects(*(total / n.clamp(min=1)[..., None] for total, n in zip(sums, counts, strict=True)))


def _add(sums: Tensor, counts: Tensor, index: tuple[Tensor, ...], values: Tensor) -> None:
    sums.index_put_(index, values.double(), accumulate=True)
    counts.index_put_(index, torch.ones_like(values[:, 0], dtype=torch.float64), accumulate=True)
