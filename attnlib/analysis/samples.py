"""Some judged sentences with the attention of every head, and what some of its terms alone make of it."""

import math
from dataclasses import dataclass, field, replace

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
    #: by attention and head the terms of its scores, in single precision; NaN where a place is left out
    terms: dict[Head, Float[Tensor, "terms queries keys"]] = field(default_factory=dict)
    #: by attention the names of these terms
    term_names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def attention(self) -> dict[Head, Float[Tensor, "queries keys"]]:
        return {place: maps[0] for place, maps in self.maps.items()}


@dataclass(frozen=True, eq=False)
class ShownHead:
    """What is shown of one head in the samples of a pass; NaN where a place is left out.

    Attributes:
        maps: the model's attention, and what :data:`~attnlib.analysis.terms.REBUILT` make of it.
        names: of the terms.
        terms: of the scores, in single precision.
    """

    maps: Float[Tensor, "maps samples queries keys"]
    names: tuple[str, ...]
    terms: Float[Tensor, "terms samples queries keys"]


def shown_heads(fit: Fit, model_pass: ModelPass) -> dict[Head, ShownHead]:
    """Return what is shown of every head, by attention and head."""
    whole = whole_samples(model_pass)
    means = means_of_pass(fit, model_pass, whole)
    shown = {}
    for batch in attention_terms(fit, model_pass, whole=whole, means=means):
        named_subsets = subsets(batch.names)
        for place, head in enumerate(batch.heads):
            maps = [batch.attention[place].masked_fill(~batch.allowed, torch.nan)]
            for subset in REBUILT:
                chosen = [name in named_subsets[subset] for name in batch.names]
                scores = batch.terms[place, chosen].sum(0)  # (samples, target, source)
                rebuilt = scores.masked_fill(~batch.fitted, -torch.inf).softmax(-1)
                maps.append(rebuilt.masked_fill(~batch.fitted, torch.nan))
            terms = batch.terms[place].float().masked_fill(~batch.fitted, torch.nan)
            shown[batch.attended.name, head] = ShownHead(
                maps=torch.stack(maps).cpu(), names=batch.names, terms=terms.cpu()
            )
    return shown


def samples_of(stream: Stream, model_pass: ModelPass, fit: Fit, most: int = MOST) -> tuple[Sample, ...]:
    """Return the first samples of a pass, no more than fit the page."""
    n_heads = sum(len(fit.heads or range(attended.heads)) for attended in model_pass.attended)
    cut = min(LONGEST, math.isqrt(ENTRIES // (n_heads * (len(REBUILT) + 1))))
    longest = min(cut, max(model_pass.source_mask.shape[1], model_pass.target_mask.shape[1]))
    model_pass = model_pass.first(min(most, ENTRIES // (n_heads * (len(REBUILT) + 1) * longest**2)))
    ordered = sorted(model_pass.attended, key=lambda attended: (KINDS.index(attended.kind), attended.layer))
    shown = shown_heads(fit, replace(model_pass, attended=tuple(ordered)))
    try:
        probe = stream.probe(model_pass) if stream.is_probed(0) else None
    except BadInput:
        probe = None
    kinds = {attended.name: attended.kind for attended in ordered}
    samples = []
    for number, row in enumerate(whole_samples(model_pass).nonzero()[:, 0].tolist()):
        lengths = {side: int(model_pass.mask(side)[row].sum()) for side in ("source", "target")}
        length = {side: min(cut, whole) for side, whole in lengths.items()}
        maps, terms, names = {}, {}, {}
        for (name, head), of_head in shown.items():
            queries, keys = (length[side] for side in model_pass.sides(kinds[name]))
            maps[name, head] = of_head.maps[:, number, :queries, :keys]
            terms[name, head] = of_head.terms[:, number, :queries, :keys]
            names[name] = of_head.names
        samples.append(
            Sample(
                source=model_pass.source_tokens[row, : length["source"]].cpu(),
                target=model_pass.target_outputs[row, : length["target"]].cpu(),
                read=model_pass.target_tokens[row, : length["target"]].cpu(),
                maps=maps,
                probe=None if probe is None else probe[row, : length["target"], : length["source"]].cpu(),
                lengths=(lengths["source"], lengths["target"]),
                terms=terms,
                term_names=names,
            )
        )
    return tuple(samples)
