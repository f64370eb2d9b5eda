"""Some judged sentences with the attention of every head, and what some of its terms alone make of it."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.adapters.library_models import KINDS
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.counted import whole_samples
from attnlib.analysis.fit import Fit, Head
from attnlib.analysis.judge import means_of_pass
from attnlib.analysis.stream import Stream
from attnlib.analysis.terms import REBUILT, attention_terms, subsets
from attnlib.errors import BadInput

MOST, LONGEST = 12, 40  # samples, and positions of a side that are shown
ENTRIES = 1_500_000  # of all maps together, a byte each on the page


@dataclass(frozen=True, eq=False)
class Sample:
    """One judged sentence pair, cut to its first positions; heads in the order of kinds and layers."""

    source: Int[Tensor, " source"]  #: ids, as all three
    target: Int[Tensor, " target"]  #: what is predicted
    read: Int[Tensor, " target"]  #: what the decoder reads
    #: by attention and head the model's attention, and that of each of
    #: :data:`~attnlib.analysis.terms.REBUILT`; NaN where either of the two places is left out
    maps: dict[Head, Float[Tensor, "maps queries keys"]]
    probe: Float[Tensor, "target source"] | None = None  #: β, where it can be taken
    lengths: tuple[int, int] | None = None  #: of source and target before they were cut; None: as they are

    @property
    def attention(self) -> dict[Head, Float[Tensor, "queries keys"]]:
        return {place: maps[0] for place, maps in self.maps.items()}


def maps_of(fit: Fit, model_pass: ModelPass) -> dict[Head, Float[Tensor, "maps samples queries keys"]]:
    """Return the model's attention in every head, and what :data:`REBUILT` make of it; NaN where left out."""
    whole = whole_samples(model_pass)
    means = means_of_pass(fit, model_pass, whole)
    maps = {}
    for batch in attention_terms(fit, model_pass, whole=whole, means=means):
        named_subsets = subsets(batch.names)
        for place, head in enumerate(batch.heads):
            of_head = [batch.attention[place].masked_fill(~batch.allowed, torch.nan)]
            for subset in REBUILT:
                chosen = [name in named_subsets[subset] for name in batch.names]
                scores = batch.terms[place, chosen].sum(0)  # (samples, target, source)
                rebuilt = scores.masked_fill(~batch.fitted, -torch.inf).softmax(-1)
                of_head.append(rebuilt.masked_fill(~batch.fitted, torch.nan))
            maps[batch.attended.name, head] = torch.stack(of_head).cpu()
    return maps


def samples_of(stream: Stream, one: ModelPass, fit: Fit, most: int = MOST) -> tuple[Sample, ...]:
    """The first samples of a pass, no more than fit the page."""
    heads = sum(len(fit.heads or range(own.heads)) for own in one.attended)
    cut = min(LONGEST, math.isqrt(ENTRIES // (heads * (len(REBUILT) + 1))))
    longest = min(cut, max(one.source_mask.shape[1], one.target_mask.shape[1]))
    one = one.first(min(most, ENTRIES // (heads * (len(REBUILT) + 1) * longest**2)))
    ordered = sorted(one.attended, key=lambda own: (KINDS.index(own.kind), own.layer))
    every_map = maps_of(fit, replace(one, attended=tuple(ordered)))
    try:
        probe = stream.probe(one) if stream.is_probed(0) else None
    except BadInput:
        probe = None
    kinds, samples = {own.name: own.kind for own in one.attended}, []
    whole = whole_samples(one).nonzero()[:, 0].tolist()
    for at, row in enumerate(whole):
        lengths = {side: int(one.mask(side)[row].sum()) for side in ("source", "target")}
        length = {side: min(cut, own) for side, own in lengths.items()}
        maps = {}
        for (name, head), own in every_map.items():
            queries, keys = (length[side] for side in one.sides(kinds[name]))
            maps[name, head] = own[:, at, :queries, :keys]
        samples.append(
            Sample(
                one.source_tokens[row, : length["source"]].cpu(),
                one.target_outputs[row, : length["target"]].cpu(),
                one.target_tokens[row, : length["target"]].cpu(),
                maps,
                None if probe is None else probe[row, : length["target"], : length["source"]].cpu(),
                tuple(lengths.values()),
            )
        )
    return tuple(samples)
