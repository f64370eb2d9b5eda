"""Parts of states exchanged in the forward pass of one network: how far attention and output follow.

Attention reads the query h^D_s and the keys h^E_t. On either side one part is exchanged, and the network goes
on from there: scores, softmax, context and output are its own. The values that the context sums and the
decoder state that the readout sees stay as they were, so that whatever changes in the output has come through
attention.

=============  ====================================================================================
``exchanged``  the part is that of another place, drawn at random: of the same sample for
               ``temporal`` and ``state`` (all three parts), of the whole batch for the other two
``removed``    the part is its mean: over positions for ``temporal``, zero for the other two
``next_step``  the query's temporal part is that of the step after
=============  ====================================================================================
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition import PART_NAMES, Parts
from attnlib.decomposition.substitution import total_variation
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.trace import Trace
from attnlib.training.corpus import evaluation_batches
from companion.runs.store import TrainedModel
from notebooks.shared.measure import Fitted, fit_components

SIDES = ("decoder", "encoder")
BATCH = 256
SEED = 0x1C4A  # of the places that parts are taken from
States = Float[Tensor, "batch length width"]
Run = tuple[Float[Tensor, "batch target source"], Int[Tensor, "batch target"]]  # attention, words written


def measure_interchange(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Every exchange on the first held-out ``samples``, components fitted on training samples.

    By ``<way>.<side>.<part>``, over all valid steps: ``variation``, mean total variation between rows of
    attention before and after; ``moved``, share of rows whose largest weight is elsewhere; ``accuracy``,
    share of right words, end marks included; ``changed``, share of words that differ from what the network
    writes left alone. ``next_step`` judges steps that another follows: ``attention``, of those whose next row
    has its largest weight elsewhere, the share that has it there now; ``word``, of those whose next word is
    another one, the share that writes it now; None where there are no such steps.
    """
    task, model = trained.task, trained.model
    fitted = fit_components(trained, fit_samples)
    corpus = task.held_out.subset(np.arange(min(samples, len(task.held_out))))
    draw = torch.Generator().manual_seed(SEED)
    sums: dict[tuple[str, ...], Tensor] = {}
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, BATCH):
            for name, counted in _batch(model, model(batch.to(model.readout.weight.device)), fitted, draw):
                sums[name] = sums.get(name, 0) + counted
    found: dict = {}
    for (*path, last), (total, count) in sums.items():
        here = found
        for name in path:
            here = here.setdefault(name, {})
        here[last] = round(float(total / count), 6) if count else None
    return found


def _batch(model: EncoderDecoder, trace: Trace, fitted: Fitted, draw: torch.Generator):
    """(name, (sum, count)) of every number of one batch."""
    states = dict(zip(SIDES, (trace.decoder_states, trace.encoder_states), strict=True))
    parts = dict(zip(SIDES, fitted.split(trace), strict=True))
    alone = attend(model, trace, states)
    right, rows = trace.target_outputs, trace.target_mask
    yield ("accuracy",), _mean((alone[1] == right)[rows])
    for side in SIDES:
        own, others = parts[side], exchanged(parts[side], draw)
        positions = getattr(fitted, side)
        weights = positions.position_counts.to(own.temporal)
        mean = (weights @ positions.temporal.to(own.temporal) / weights.sum()) * own.mask[..., None]
        means = {"temporal": mean, "input": torch.zeros_like(mean), "residual": torch.zeros_like(mean)}
        ways = {"exchanged": others, "removed": means}
        for way, substitutes in ways.items():
            for part, substitute in substitutes.items():
                patched = states[side] - (own.total() if part == "state" else getattr(own, part)) + substitute
                attention, words = attend(model, trace, states | {side: patched})
                moved = attention.argmax(-1) != alone[0].argmax(-1)
                name = (way, side, part)
                yield (*name, "variation"), _mean(total_variation(attention, alone[0])[rows])
                yield (*name, "moved"), _mean(moved[rows])
                yield (*name, "accuracy"), _mean((words == right)[rows])
                yield (*name, "changed"), _mean((words != alone[1])[rows])
    shifted = parts["decoder"].temporal.roll(-1, dims=1)
    patched = states["decoder"] - parts["decoder"].temporal + shifted
    here, there = (
        {"attention": attention.argmax(-1), "word": words}
        for attention, words in (alone, attend(model, trace, states | {"decoder": patched}))
    )
    for name, before in here.items():
        upcoming = before.roll(-1, dims=1)
        judged = rows & rows.roll(-1, dims=1) & (upcoming != before)
        judged[:, -1] = False
        yield ("next_step", name), _mean((there[name] == upcoming)[judged])


def attend(model: EncoderDecoder, trace: Trace, states: dict[str, States]) -> Run:
    """Attention of these queries and keys, and the words written from the states as they were."""
    attention = masked_softmax(dot_scores(states["decoder"], states["encoder"]), trace.source_mask)
    context = attention @ trace.encoder_states
    return attention, model.readout(torch.cat([trace.decoder_states, context], dim=-1)).argmax(-1)


def exchanged(parts: Parts, draw: torch.Generator) -> dict[str, States]:
    """Parts of other places, zero at padding: a random order of the places of a sample, or of the batch.

    Temporal parts depend on the position alone, so another sample's would be the same.
    """
    mask = parts.mask
    keys = torch.rand(mask.shape, generator=draw).to(mask.device).masked_fill(~mask, torch.inf)
    # The i-th valid place of a sample receives from the i-th of a random order: valid places come first.
    within = keys.argsort(dim=1)[..., None].expand_as(parts.temporal)
    order = torch.randperm(int(mask.sum()), generator=draw).to(mask.device)

    def across(part: States) -> States:
        taken = torch.zeros_like(part)
        taken[mask] = part[mask][order]
        return taken

    found = {"temporal": parts.temporal.gather(1, within)}
    found |= {name: across(getattr(parts, name)) for name in PART_NAMES[1:]}
    return found | {"state": parts.total().gather(1, within)}


def _mean(values: Tensor) -> Float[Tensor, "2"]:
    return torch.tensor([float(values.double().sum()), float(values.numel())], dtype=torch.float64)
