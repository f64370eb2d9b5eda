"""The terms of the scores of an attention: the products of the parts of both sides."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.counted import chosen_heads, counted_attention
from attnlib.analysis.fit import Fit
from attnlib.arrays import ShowsShapes
from attnlib.decomposition.components import STATE_PARTS, PlaceComponents
from attnlib.decomposition.term_names import CONSTANT, POSITION_BIAS, term_name
from attnlib.errors import check_known
from attnlib.former_names import former_arguments, former_attribute, former_object
from attnlib.linear_map import LinearMap, Rotation
from attnlib.trace import Attention, Trace

_NUMBERS_AT_ONCE = 1 << 18  # largest size of a part of one side that is multiplied at once


# -- products --


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionTerms:
    """The terms of the scores of the chosen heads, over the whole samples of a batch.

    They are those of :class:`~attnlib.decomposition.AlignmentTerms` for any attention: of several heads, with
    a constant part and a position bias if there are any.

    Attributes:
        attention: the attention that the heads belong to.
        heads: numbers of the heads.
        names: of the terms.
        terms: they sum to the scores, up to a constant along each row.
        weights: the attention weights of the model, among the positions that count.
        allowed: True where a query may see a key and both count.
        known_pairs: True where, in addition, the fit knows the components of both sides.
    """

    attention: Attention
    heads: list[int]
    names: tuple[str, ...]
    terms: Float[Tensor, "heads terms samples target source"]
    weights: Float[Tensor, "heads samples target source"]
    allowed: Bool[Tensor, "samples target source"]
    known_pairs: Bool[Tensor, "samples target source"]

    fitted = former_attribute("AttentionTerms.fitted", "known_pairs")

    def __getitem__(self, parts: tuple[str, str] | str) -> Float[Tensor, "heads samples target source"]:
        """Return a term by the part of the query and that of the key, or by its name.

        Raises:
            UnknownName: there is no such term.
        """
        name = term_name(parts)
        check_known("term", name, self.names)
        return self.terms[:, self.names.index(name)]

    def __repr__(self) -> str:
        heads, _, samples, target, source = self.terms.shape
        sizes = f"heads {heads}, samples {samples}, target {target}, source {source}"
        return f"AttentionTerms of {self.attention.name} ({sizes}): {', '.join(self.names)}"


@former_arguments(means="place_components")
def attention_terms(
    fit: Fit, trace: Trace, *, whole: Bool[Tensor, " batch"], place_components: dict[str, PlaceComponents]
) -> Iterator[AttentionTerms]:
    """Yield the terms of every attention of a trace.

    Args:
        fit: sums of the first pass; its heads are analysed.
        trace: of a batch.
        whole: True for samples that have a counted position on both sides.
        place_components: the components at the places of these samples, by name of the states.
    """
    for attention in trace.attentions:
        heads = chosen_heads(attention, fit.heads)
        query, key = place_components[attention.query_site], place_components[attention.key_site]
        weights, allowed = counted_attention(trace, attention, heads)
        allowed = allowed[whole]  # (samples, target, source)
        known_pairs = allowed
        if fit.leaves_out_unseen:
            known_pairs = allowed & query.known[:, :, None] & key.known[:, None, :]
        products = _Products.of(attention, heads, query=query, key=key, method=fit.method)
        yield AttentionTerms(
            attention=attention,
            heads=heads,
            names=products.names,
            terms=products.of_samples(whole),
            weights=weights[:, whole],
            allowed=allowed,
            known_pairs=known_pairs,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _ProjectedSide(ShowsShapes):
    """One side of an attention: the projected parts of its states.

    The constant, temporal and input parts are looked up in projected tables, so that no state has to be
    projected again. The bias of the projection belongs to the constant part.

    Attributes:
        parts: names of the parts that enter terms. If the constant is not among them, it is added to the
            temporal part (method "means") or left out.
        constant_is_temporal: whether it is added to the temporal part.
        constant, temporal: these parts by position, rotated and scaled.
        words: the input part of each word of the batch, neither rotated nor scaled yet.
        word: the row of ``words`` at each place.
        rotation, scale: what is applied to a projected part.
    """

    parts: tuple[str, ...]
    constant_is_temporal: bool
    constant: Float[Tensor, "1 heads length head_width"]
    temporal: Float[Tensor, "1 heads length head_width"]
    words: Float[Tensor, "heads words head_width"]
    word: Int[Tensor, "samples length"]
    rotation: Rotation | None
    scale: float

    @classmethod
    def of(
        cls,
        linear: LinearMap,
        place_components: PlaceComponents,
        *,
        parts: tuple[str, ...],
        constant_is_temporal: bool,
        rotation: Rotation | None,
        scale: float = 1.0,
    ) -> "_ProjectedSide":
        """Project the tables of components, all in one product, then rotate and scale what has positions."""
        centre = place_components.centre  # (width,)
        tables = [centre[None], place_components.temporal - centre, place_components.input]
        sizes = [len(table) for table in tables]
        projected = linear.without_bias(torch.cat(tables))  # (heads, 1 + length + words, head_width)
        centre, temporal, words = projected.split(sizes, 1)
        if linear.bias is not None:
            centre = centre + linear.bias[:, None]  # (heads, 1, head_width)
        constant = centre.expand_as(temporal)[None]  # (1, heads, length, head_width)
        temporal = temporal[None]  # (1, heads, length, head_width)
        if rotation is not None:
            constant = rotation(constant)
            temporal = rotation(temporal)
        return cls(
            parts=parts,
            constant_is_temporal=constant_is_temporal,
            constant=constant * scale,
            temporal=temporal * scale,
            words=words,
            word=place_components.word,
            rotation=rotation,
            scale=scale,
        )

    def of_samples(
        self, samples: slice, projected: Float[Tensor, "samples heads length head_width"]
    ) -> Float[Tensor, "samples heads parts_length head_width"]:
        """Return the parts of the projected states of a slice of samples, one after the other."""
        words = self.words[:, self.word[samples]].transpose(0, 1)  # (samples, heads, length, head_width)
        if self.rotation is not None:
            words = self.rotation(words)
        words = words * self.scale
        by_position = self.constant + self.temporal  # (1, heads, length, head_width)
        residual = (projected - by_position) - words  # (samples, heads, length, head_width)
        values = {CONSTANT: self.constant, "temporal": self.temporal, "input": words, "residual": residual}
        if self.constant_is_temporal:
            values["temporal"] = by_position
        chosen = [values[part] for part in self.parts]
        stacked = torch.stack(torch.broadcast_tensors(*chosen), 2)
        return stacked.flatten(2, 3)  # from (samples, heads, parts, length, head_width)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Products:
    """Products of the parts of both sides of an attention.

    With the method "means" the constant is part of the temporal part. With least squares the query has a
    constant part, and so has a key that is rotated. Without a rotation the constant part of the key adds one
    number to a whole row of scores, which leaves softmax unchanged: it is left out.
    """

    attention: Attention
    heads: list[int]
    query: _ProjectedSide
    key: _ProjectedSide

    @classmethod
    def of(
        cls,
        attention: Attention,
        heads: list[int],
        *,
        query: PlaceComponents,
        key: PlaceComponents,
        method: str,
    ) -> "_Products":
        """Project the components of both sides.

        Args:
            attention: the attention.
            heads: numbers of its heads.
            query: components at the places of the queries.
            key: components at the places of the keys.
            method: of the components.
        """
        by_means = method == "means"
        query_parts = key_parts = STATE_PARTS
        if not by_means:
            query_parts = (CONSTANT, *STATE_PARTS)
        if not by_means and attention.key_rotation is not None:
            key_parts = (CONSTANT, *STATE_PARTS)
        query_map = attention.query_map.of_heads(heads)
        key_map = attention.key_map.of_heads(heads)
        query_side = _ProjectedSide.of(
            query_map,
            query,
            parts=query_parts,
            constant_is_temporal=by_means,
            rotation=attention.query_rotation,
            scale=attention.scale,
        )
        key_side = _ProjectedSide.of(
            key_map, key, parts=key_parts, constant_is_temporal=by_means, rotation=attention.key_rotation
        )
        return cls(attention=attention, heads=heads, query=query_side, key=key_side)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms: query parts by key parts, then the position bias if there is one."""
        pairs = product(self.query.parts, self.key.parts)
        names = tuple(map(term_name, pairs))
        if self.attention.position_bias is None:
            return names
        return (*names, POSITION_BIAS)

    def of_samples(self, whole: Bool[Tensor, " batch"]) -> Float[Tensor, "heads terms samples target source"]:
        """Return the terms of the whole samples, in the order of ``names``."""
        queries = self.attention.queries[whole][:, self.heads]  # (samples, heads, target, head_width)
        keys = self.attention.keys[whole][:, self.heads]  # (samples, heads, source, head_width)
        at_once = max(1, _NUMBERS_AT_ONCE // max(queries[0].numel(), keys[0].numel()))
        pieces = []
        for start in range(0, len(queries), at_once):
            samples = slice(start, start + at_once)
            query_parts = self.query.of_samples(samples, queries[samples])
            key_parts = self.key.of_samples(samples, keys[samples])
            pieces.append(self._terms(query_parts, key_parts))
        terms = torch.cat(pieces, 2)  # (heads, terms, samples, target, source)
        if self.attention.position_bias is None:
            return terms
        bias = self.attention.position_bias[:, self.heads]  # (1 or batch, heads, target, source)
        if len(bias) > 1:
            bias = bias[whole]
        bias = bias.expand(len(queries), -1, -1, -1).transpose(0, 1)  # (heads, samples, target, source)
        return torch.cat([terms, bias[:, None]], 1)

    def _terms(
        self,
        query_parts: Float[Tensor, "samples heads parts_target head_width"],
        key_parts: Float[Tensor, "samples heads parts_source head_width"],
    ) -> Float[Tensor, "heads terms samples target source"]:
        """Return the products of all parts of both sides, made in one matrix product."""
        n_query_parts, n_key_parts = len(self.query.parts), len(self.key.parts)
        products = query_parts @ key_parts.mT  # (samples, heads, query parts * target, key parts * source)
        by_key_part = products.unflatten(3, (n_key_parts, -1))
        by_both_parts = by_key_part.unflatten(2, (n_query_parts, -1))
        # (samples, heads, query part, target, key part, source) → (heads, query part, key part, samples, …)
        heads_first = by_both_parts.permute(1, 2, 4, 0, 3, 5)
        return heads_first.flatten(1, 2)


def __getattr__(name: str) -> Any:
    module = "attnlib.decomposition.term_names"
    former = {"PARTS": f"{module}.TERM_GROUPS", "part_of": f"{module}.group_of"}
    for unchanged in ("CONSTANT", "POSITION_BIAS", "NINE", "REBUILT", "term_name", "terms_of", "subsets"):
        former[unchanged] = f"{module}.{unchanged}"
    return former_object(__name__, former, name)
