"""Judged samples with the attention of every head, and the attention that subsets of its terms rebuild."""

import math
from dataclasses import KW_ONLY, dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.analysis.counted import chosen_heads, whole_samples
from attnlib.analysis.fit import Fit
from attnlib.analysis.heads import Head, attention_rank
from attnlib.analysis.judge import place_components_of
from attnlib.analysis.stream import Stream
from attnlib.analysis.terms import AttentionTerms, attention_terms
from attnlib.arrays import ShowsShapes
from attnlib.decomposition.rows import attention_of_terms
from attnlib.decomposition.term_names import REBUILT, subsets
from attnlib.errors import BadInput
from attnlib.trace import Trace

MOST = 12  # samples that are kept
LONGEST = 40  # positions of a side that are kept
ENTRIES = 1_500_000  # of all maps together, a byte each on the page


@dataclass(frozen=True, eq=False)
class Sample:
    """One judged sentence pair, cut to its first positions; heads in the order of kinds and layers.

    Attributes:
        source: ids of the source.
        target: ids of the words that are predicted.
        read: ids of the words that the decoder reads.
        maps: the model's attention, and the attention that each subset of terms of ``REBUILT`` makes, by
            attention and head; NaN where a query or a key is left out.
        probe: β, the lexical probe; None where it cannot be taken.
        lengths: of source and target before they were cut; None if they were not.
        terms: of the scores, in single precision, by attention and head; NaN where a place is left out.
        term_names: names of these terms, by attention.
    """

    source: Int[Tensor, " source"]
    target: Int[Tensor, " target"]
    read: Int[Tensor, " target"]
    _: KW_ONLY
    maps: dict[Head, Float[Tensor, "maps queries keys"]]
    probe: Float[Tensor, "shown_target shown_source"] | None = None
    lengths: tuple[int, int] | None = None
    terms: dict[Head, Float[Tensor, "terms queries keys"]] = field(default_factory=dict)
    term_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: words of the source, of the target and of what is read, where pieces were joined to words, see
    #: :func:`attnlib.report.words_shown.joined_sample`: maps are then between words, and there are no terms
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)

    #: pieces of the source, of the target and of what is read, as a tokenizer writes them; empty without one
    pieces: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = f"source {len(self.source)}, target {len(self.target)}"
        return f"Sample({sizes}, {len(self.maps)} heads)"

    @property
    def attention(self) -> dict[Head, Float[Tensor, "queries keys"]]:
        """The model's attention, by attention and head."""
        return {head: maps[0] for head, maps in self.maps.items()}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadMaps(ShowsShapes):
    """The attention of one head and its terms, in the samples of a batch or in one; NaN where left out.

    Attributes:
        maps: the model's attention, and the attention that each subset of terms of ``REBUILT`` makes.
        names: of the terms.
        terms: of the scores, in single precision.
    """

    maps: Float[Tensor, "maps *samples queries keys"]
    names: tuple[str, ...]
    terms: Float[Tensor, "terms *samples queries keys"]

    def of_sample(self, number: int) -> "HeadMaps":
        """Return the attention and the terms in one of the samples."""
        return replace(self, maps=self.maps[:, number], terms=self.terms[:, number])

    def cut(self, queries: int, keys: int) -> "HeadMaps":
        """Return the same for the first queries and keys."""
        return replace(self, maps=self.maps[..., :queries, :keys], terms=self.terms[..., :queries, :keys])


def head_maps(fit: Fit, trace: Trace) -> dict[Head, HeadMaps]:
    """Return the attention and the terms of every head, by attention and head."""
    whole = whole_samples(trace)
    place_components = place_components_of(fit, trace, whole)
    maps_of_head = {}
    for head_terms in attention_terms(fit, trace, whole=whole, place_components=place_components):
        for index, head in enumerate(head_terms.heads):
            maps_of_head[Head(head_terms.attention.name, head)] = _maps_of_head(head_terms, index)
    return maps_of_head


def _maps_of_head(head_terms: AttentionTerms, index: int) -> HeadMaps:
    """Return the attention and the terms of one of the heads of an attention."""
    terms = head_terms.terms[index]  # (terms, samples, target, source)
    known = head_terms.known_pairs  # (samples, target, source)
    maps = [head_terms.weights[index].masked_fill(~head_terms.allowed, torch.nan)]
    named_subsets = subsets(head_terms.names)
    for name in REBUILT:
        chosen = [number for number, term in enumerate(head_terms.names) if term in named_subsets[name]]
        rebuilt = attention_of_terms(terms, chosen, known)  # (samples, target, source)
        maps.append(rebuilt.masked_fill(~known, torch.nan))
    shown_terms = terms.float().masked_fill(~known, torch.nan)
    return HeadMaps(maps=torch.stack(maps).cpu(), names=head_terms.names, terms=shown_terms.cpu())


def samples_of(stream: Stream, trace: Trace, fit: Fit, *, most: int = MOST) -> tuple[Sample, ...]:
    """Return the first samples of a batch, no more and no longer than fit on the page.

    Args:
        stream: says how the lexical probe is taken.
        trace: of judged samples.
        fit: sums of the first pass, which the terms follow from.
        most: largest number of samples.
    """
    n_heads = sum(len(chosen_heads(attention, fit.heads)) for attention in trace.attentions)
    n_maps = n_heads * (len(REBUILT) + 1)  # of a sample
    longest_kept = min(LONGEST, math.isqrt(ENTRIES // n_maps))
    longest_here = max(trace.source_mask.shape[1], trace.target_mask.shape[1])
    entries_of_sample = n_maps * min(longest_kept, longest_here) ** 2
    trace = trace.first(min(most, ENTRIES // entries_of_sample))

    by_kind_and_layer = sorted(trace.attentions, key=lambda attention: attention_rank(attention.name))
    trace = replace(trace, attentions=tuple(by_kind_and_layer))
    maps_of_batch = head_maps(fit, trace)
    probe = _probe_of(stream, trace)
    rows = whole_samples(trace).nonzero()[:, 0].tolist()  # of the batch
    samples = []
    for number, row in enumerate(rows):
        maps = {head: maps_of_head.of_sample(number) for head, maps_of_head in maps_of_batch.items()}
        samples.append(_cut_sample(trace, row, maps, probe=probe, longest=longest_kept))
    return tuple(samples)


def _probe_of(stream: Stream, trace: Trace) -> Float[Tensor, "batch target source"] | None:
    """Return the lexical probe; None where it is not requested or cannot be taken."""
    if not stream.is_probed(0):
        return None
    try:
        return stream.probe(trace)
    except BadInput:
        return None


def _cut_sample(
    trace: Trace,
    row: int,
    maps_of_sample: dict[Head, HeadMaps],
    *,
    probe: Float[Tensor, "batch target source"] | None,
    longest: int,
) -> Sample:
    """Return one row of a batch as a sample, cut to its first ``longest`` positions."""
    source_length = int(trace.source_mask[row].sum())
    target_length = int(trace.target_mask[row].sum())
    n_source = min(longest, source_length)
    n_target = min(longest, target_length)
    n_kept = {"source": n_source, "target": n_target}
    sides = {attention.name: trace.sides(attention.kind) for attention in trace.attentions}
    cut_maps = {}
    for head, maps in maps_of_sample.items():
        query_side, key_side = sides[head.attention]
        cut_maps[head] = maps.cut(n_kept[query_side], n_kept[key_side])
    cut_probe = None
    if probe is not None:
        cut_probe = probe[row, :n_target, :n_source].cpu()
    return Sample(
        source=trace.source_tokens[row, :n_source].cpu(),
        target=trace.target_outputs[row, :n_target].cpu(),
        read=trace.target_tokens[row, :n_target].cpu(),
        maps={head: maps.maps for head, maps in cut_maps.items()},
        probe=cut_probe,
        lengths=(source_length, target_length),
        terms={head: maps.terms for head, maps in cut_maps.items()},
        term_names={head.attention: maps.names for head, maps in cut_maps.items()},
    )
