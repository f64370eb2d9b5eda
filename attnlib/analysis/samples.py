"""Some judged sentences with the attention of every head, and what some of its terms alone make of it."""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.counted import whole_samples
from attnlib.analysis.fit import Fit, Head
from attnlib.analysis.judge import means_of_pass
from attnlib.analysis.stream import Stream
from attnlib.analysis.terms import REBUILT, attention_terms, subsets
from attnlib.errors import BadInput
from attnlib.trace import Attention, AttentionKind, Trace

MOST = 12  # samples that are kept
LONGEST = 40  # positions of a side that are kept
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
    #: words of the source, of the target and of what is read, where pieces were joined to words, see
    #: :func:`attnlib.report.words_shown.joined_sample`: maps are then between words, and there are no terms
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def attention(self) -> dict[Head, Float[Tensor, "queries keys"]]:
        """The model's attention, by attention and head."""
        return {head: maps[0] for head, maps in self.maps.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownHead:
    """What is shown of one head in the samples of a pass, or in one of them; NaN where a place is left out.

    Attributes:
        maps: the model's attention, and what :data:`~attnlib.analysis.terms.REBUILT` make of it.
        names: of the terms.
        terms: of the scores, in single precision.
    """

    maps: Float[Tensor, "maps *samples queries keys"]
    names: tuple[str, ...]
    terms: Float[Tensor, "terms *samples queries keys"]

    def of_sample(self, number: int) -> "ShownHead":
        """Return what is shown of the head in one of the samples."""
        return replace(self, maps=self.maps[:, number], terms=self.terms[:, number])


def shown_heads(fit: Fit, model_pass: Trace) -> dict[Head, ShownHead]:
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


def samples_of(stream: Stream, model_pass: Trace, fit: Fit, *, most: int = MOST) -> tuple[Sample, ...]:
    """Return the first samples of a pass, no more and no longer than fit the page.

    Args:
        stream: says how the lexical probe is taken.
        model_pass: of judged samples.
        fit: sums of the first pass, which the terms are made of.
        most: samples at most.
    """
    n_heads = 0
    for attended in model_pass.attentions:
        n_heads += attended.heads if fit.heads is None else len(fit.heads)
    n_maps = n_heads * (len(REBUILT) + 1)  # of a sample
    longest_kept = min(LONGEST, math.isqrt(ENTRIES // n_maps))
    longest_here = max(model_pass.source_mask.shape[1], model_pass.target_mask.shape[1])
    entries_of_sample = n_maps * min(longest_kept, longest_here) ** 2
    model_pass = model_pass.first(min(most, ENTRIES // entries_of_sample))

    by_kind_and_layer = sorted(model_pass.attentions, key=_kind_and_layer)
    shown = shown_heads(fit, replace(model_pass, attentions=tuple(by_kind_and_layer)))
    probe = _probe_of(stream, model_pass)
    rows = whole_samples(model_pass).nonzero()[:, 0].tolist()  # of the batch
    samples = []
    for sample, row in enumerate(rows):
        of_sample = {head: shown_head.of_sample(sample) for head, shown_head in shown.items()}
        samples.append(_cut_sample(model_pass, row, of_sample, probe=probe, longest=longest_kept))
    return tuple(samples)


def _probe_of(stream: Stream, model_pass: Trace) -> Float[Tensor, "batch target source"] | None:
    """Return the lexical probe; None where it is not wanted or cannot be taken."""
    if not stream.is_probed(0):
        return None
    try:
        return stream.probe(model_pass)
    except BadInput:
        return None


def _cut_sample(
    model_pass: Trace,
    row: int,
    shown: dict[Head, ShownHead],
    *,
    probe: Float[Tensor, "batch target source"] | None,
    longest: int,
) -> Sample:
    """Return one row of a batch as a sample, cut to its first ``longest`` positions."""
    source_length = int(model_pass.mask("source")[row].sum())
    target_length = int(model_pass.mask("target")[row].sum())
    kept = {"source": min(longest, source_length), "target": min(longest, target_length)}
    kinds: dict[str, AttentionKind] = {attended.name: attended.kind for attended in model_pass.attentions}
    cut_maps, cut_terms, term_names = {}, {}, {}
    for (name, head), shown_head in shown.items():
        query_side, key_side = model_pass.sides(kinds[name])
        cut_maps[name, head] = shown_head.maps[:, : kept[query_side], : kept[key_side]]
        cut_terms[name, head] = shown_head.terms[:, : kept[query_side], : kept[key_side]]
        term_names[name] = shown_head.names
    cut_probe = None
    if probe is not None:
        cut_probe = probe[row, : kept["target"], : kept["source"]].cpu()  # (target, source)
    return Sample(
        source=model_pass.source_tokens[row, : kept["source"]].cpu(),
        target=model_pass.target_outputs[row, : kept["target"]].cpu(),
        read=model_pass.target_tokens[row, : kept["target"]].cpu(),
        maps=cut_maps,
        probe=cut_probe,
        lengths=(source_length, target_length),
        terms=cut_terms,
        term_names=term_names,
    )


def _kind_and_layer(attended: Attention) -> tuple[int, int]:
    return KINDS.index(attended.kind), attended.layer
