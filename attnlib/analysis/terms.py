"""The terms of an attention's scores: their names, and the products of the parts of both sides."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.counted import chosen_heads, counted_attention
from attnlib.analysis.fit import Fit
from attnlib.decomposition.components import PART_NAMES, Means
from attnlib.decomposition.terms import PAIRS
from attnlib.errors import check_known
from attnlib.linear_map import LinearMap, Rotation
from attnlib.trace import Attention, Trace

CONSTANT = "constant"
POSITION_BIAS = "position bias"
NINE = tuple(f"{decoder}·{encoder}" for decoder, encoder in PAIRS)
PARTS = ("temporal", "input", "mixed", "residual", POSITION_BIAS)  # what a term may depend on
REBUILT = ("temporal only", "input only", "no residual")  # the subsets of terms that a report shows
_NUMBERS_AT_ONCE = 1 << 18  # of a part of a side, of which products are made at once


# names ------------------------------------------------------------------------------------------------------


def term_name(parts: tuple[str, str] | str) -> str:
    """Return the name of a term from the part of the query and that of the key; a name stays as it is.

    >>> term_name(("temporal", "input"))
    'temporal·input'
    """
    return parts if isinstance(parts, str) else "·".join(parts)


def part_of(term: str) -> str:
    """Return what a term depends on: "temporal", "input", "mixed", "residual" or "position bias".

    A constant query is the same everywhere: the term of it and a position is temporal, that of it and a
    word input.

    >>> list(map(part_of, ("constant·input", "temporal·input", "input·residual", "constant·temporal")))
    ['input', 'mixed', 'residual', 'temporal']
    """
    if term == POSITION_BIAS:
        return term
    parts = set(term.split("·")) - {CONSTANT}
    if "residual" in parts:
        return "residual"
    if not parts:
        return "temporal"
    if len(parts) == 2:
        return "mixed"
    return parts.pop()


def terms_of(terms: Iterable[str], part: str) -> frozenset[str]:
    """Return the terms that depend on one of :data:`PARTS`."""
    return frozenset(term for term in terms if part_of(term) == part)


def subsets(terms: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return the sets of terms that attention is rebuilt from, by name."""
    all_terms = frozenset(terms)
    temporal = terms_of(terms, "temporal")
    named = {
        "uniform": frozenset(),
        "temporal only": temporal,
        "input only": terms_of(terms, "input"),
        "no residual": frozenset(term for term in terms if "residual" not in term),
    }
    if POSITION_BIAS in all_terms:
        named["position bias only"] = frozenset({POSITION_BIAS})
        named["temporal and position bias"] = temporal | {POSITION_BIAS}
    for term in terms:
        named[f"without {term}"] = all_terms - {term}
    return named


# products ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AttentionTerms:
    """The terms of some heads' scores, over the samples of a pass that are whole.

    Attributes:
        attended: the attention.
        heads: their numbers.
        names: of the terms.
        terms: they sum to the scores, but for what is the same along a row.
        attention: the model's, among the positions that count.
        allowed: where a query may see a key and both count.
        fitted: of these, where the components of both sides are known.
    """

    attended: Attention
    heads: list[int]
    names: tuple[str, ...]
    terms: Float[Tensor, "heads terms samples target source"]
    attention: Float[Tensor, "heads samples target source"]
    allowed: Bool[Tensor, "samples target source"]
    fitted: Bool[Tensor, "samples target source"]

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
        return f"AttentionTerms of {self.attended.name} ({sizes}): {', '.join(self.names)}"


def attention_terms(
    fit: Fit, model_pass: Trace, *, whole: Bool[Tensor, " batch"], means: dict[str, Means]
) -> Iterator[AttentionTerms]:
    """Yield the terms of every attention of a pass.

    Args:
        fit: of the components; its heads are looked at.
        model_pass: the pass of the model.
        whole: samples of which something counts on both sides.
        means: the components at the places of these samples, by name of the states.
    """
    for attended in model_pass.attentions:
        heads = chosen_heads(attended, fit.heads)
        query, key = means[attended.query_site], means[attended.key_site]
        attention, allowed = counted_attention(model_pass, attended, heads)
        allowed = allowed[whole]  # (samples, target, source)
        fitted = allowed
        if fit.method != "means":
            fitted = allowed & query.known[:, :, None] & key.known[:, None, :]
        products = _Products.of(attended, heads, query=query, key=key, method=fit.method)
        names, terms = products.of_samples(whole)
        yield AttentionTerms(
            attended=attended,
            heads=heads,
            names=names,
            terms=terms,
            attention=attention[:, whole],
            allowed=allowed,
            fitted=fitted,
        )


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of an attention: what its projection makes of the parts of states.

    The constant, temporal and input part are looked up among projected tables, so that no state goes through
    the projection again. The bias of a projection is constant too.

    Attributes:
        parts: the names of the parts that enter terms; where the constant is not among them it is either in
            the temporal part (method "means") or left out.
        constant_is_temporal: whether it is in the temporal part.
        constant, temporal: rotated and scaled.
        words: not rotated yet, each word once.
        word: the row of ``words`` at each place.
        rotation, scale: of the side.
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
        means: Means,
        *,
        parts: tuple[str, ...],
        constant_is_temporal: bool,
        rotation: Rotation | None,
        scale: float = 1.0,
    ) -> "_Side":
        tables = [means.centre[None], means.temporal - means.centre, means.input]
        sizes = [len(table) for table in tables]
        centre, temporal, words = linear.without_bias(torch.cat(tables)).split(sizes, 1)
        if linear.bias is not None:
            centre = centre + linear.bias[:, None]
        constant = centre.expand_as(temporal)[None]  # (1, heads, length, head_width)
        temporal = temporal[None]  # (1, heads, length, head_width)
        if rotation is not None:
            constant, temporal = rotation(constant), rotation(temporal)
        return cls(
            parts=parts,
            constant_is_temporal=constant_is_temporal,
            constant=constant * scale,
            temporal=temporal * scale,
            words=words,
            word=means.word,
            rotation=rotation,
            scale=scale,
        )

    def of_samples(
        self, samples: slice, projected: Float[Tensor, "samples heads length head_width"]
    ) -> Float[Tensor, "samples heads parts_length head_width"]:
        """Return the parts of what the projection made of some samples, part after part."""
        words = self.words[:, self.word[samples]].transpose(0, 1)  # (samples, heads, length, head_width)
        if self.rotation is not None:
            words = self.rotation(words)
        words = words * self.scale
        by_place = self.constant + self.temporal  # (1, heads, length, head_width)
        residual = (projected - by_place) - words  # (samples, heads, length, head_width)
        values = {CONSTANT: self.constant, "temporal": self.temporal, "input": words, "residual": residual}
        if self.constant_is_temporal:
            values["temporal"] = by_place
        alike = torch.broadcast_tensors(*(values[part] for part in self.parts))
        return torch.stack(alike, 2).flatten(2, 3)


@dataclass(frozen=True, eq=False)
class _Products:
    """Products of the parts of both sides of an attention.

    Means have the constant part in the temporal one. Else, without a rotation, the constant part of the key
    adds the same along a row, which softmax does not see: it is left out.
    """

    attended: Attention
    heads: list[int]
    query: _Side
    key: _Side

    @classmethod
    def of(
        cls, attended: Attention, heads: list[int], *, query: Means, key: Means, method: str
    ) -> "_Products":
        by_means = method == "means"
        query_parts = key_parts = PART_NAMES
        if not by_means:
            query_parts = (CONSTANT, *PART_NAMES)
        if not by_means and attended.key_rotation is not None:
            key_parts = (CONSTANT, *PART_NAMES)
        query_side = _Side.of(
            attended.query_map.of_heads(heads),
            query,
            parts=query_parts,
            constant_is_temporal=by_means,
            rotation=attended.query_rotation,
            scale=attended.scale,
        )
        key_side = _Side.of(
            attended.key_map.of_heads(heads),
            key,
            parts=key_parts,
            constant_is_temporal=by_means,
            rotation=attended.key_rotation,
        )
        return cls(attended=attended, heads=heads, query=query_side, key=key_side)

    def of_samples(
        self, whole: Bool[Tensor, " batch"]
    ) -> tuple[tuple[str, ...], Float[Tensor, "heads terms samples target source"]]:
        """Return the names of the terms, and the terms."""
        queries = self.attended.queries[whole][:, self.heads]  # (samples, heads, target, head_width)
        keys = self.attended.keys[whole][:, self.heads]  # (samples, heads, source, head_width)
        at_once = max(1, _NUMBERS_AT_ONCE // max(queries[0].numel(), keys[0].numel()))
        pieces = []
        for start in range(0, len(queries), at_once):
            samples = slice(start, start + at_once)
            query_parts = self.query.of_samples(samples, queries[samples])
            key_parts = self.key.of_samples(samples, keys[samples])
            pieces.append(self._terms(query_parts, key_parts))
        terms = torch.cat(pieces, 2)
        names = tuple(f"{query}·{key}" for query in self.query.parts for key in self.key.parts)
        if self.attended.position_bias is None:
            return names, terms
        bias = self.attended.position_bias[:, self.heads]  # (1 or batch, heads, target, source)
        if len(bias) > 1:
            bias = bias[whole]
        bias = bias.expand(len(queries), -1, -1, -1).transpose(0, 1)  # (heads, samples, target, source)
        return (*names, POSITION_BIAS), torch.cat([terms, bias[:, None]], 1)

    def _terms(
        self,
        query_parts: Float[Tensor, "samples heads parts_target head_width"],
        key_parts: Float[Tensor, "samples heads parts_source head_width"],
    ) -> Float[Tensor, "heads terms samples target source"]:
        n_query_parts, n_key_parts = len(self.query.parts), len(self.key.parts)
        products = query_parts @ key_parts.mT  # (samples, heads, query parts * target, key parts * source)
        by_part = products.unflatten(3, (n_key_parts, -1)).unflatten(2, (n_query_parts, -1))
        # from (samples, heads, query part, target, key part, source)
        return by_part.permute(1, 2, 4, 0, 3, 5).flatten(1, 2)
