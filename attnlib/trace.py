"""The trace of a model's pass over a batch, with its attentions: all that an analysis needs from a model.

Every network of :mod:`attnlib.models` returns a :class:`Trace`, every adapter makes one from another model,
and saved tensors (:mod:`attnlib.adapters.tensors`) are read as one. A trace has tokens, masks and one
:class:`Attention` for each attention of each layer, with all of its heads. The score of a head is

    a_st = scale · R_s(W_q x_s + b_q) · R_t(W_k y_t + b_k) + b_st

with x_s the states that queries are projected from, y_t those that keys are projected from, W and b the
projections of the head, R a rotation by position (Su et al. 2021, section 3.2) and b_st a bias by position
(Raffel et al. 2020, section 2.1); most models have neither R nor b_st. Except for b_st, which is a term of
the score by itself, the score is linear in x and in y, so parts of the states become terms of the score. The
bias of a projection is the same for all tokens and belongs to the temporal part; a rotation is applied to
every part. Additive scores are not such a product, and have no terms.

A network in training makes a trace at every update, so making one is cheap: projections are read when they
are first used, and nothing is checked before :meth:`Trace.validated`, which adapters and analyses call.
"""

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes, require_tokens, valid_first
from attnlib.errors import BadInput
from attnlib.former_names import former_arguments, former_attribute
from attnlib.linear_map import LinearMap, Rotation
from attnlib.softmax import softmax_over

AttentionKind = Literal["encoder_self", "decoder_self", "cross"]
Side = Literal["source", "target"]
Maps = tuple[LinearMap, LinearMap]  # of the queries and of the keys
QUERY_SIDE: dict[AttentionKind, Side] = {
    "cross": "target",
    "encoder_self": "source",
    "decoder_self": "target",
}
KEY_SIDE: dict[AttentionKind, Side] = {"cross": "source", "encoder_self": "source", "decoder_self": "target"}
SIDES: tuple[Side, Side] = ("source", "target")
KINDS: tuple[AttentionKind, ...] = ("cross", "encoder_self", "decoder_self")  # in the order of a report
Traced = TypeVar("Traced", "Trace", "Attention")


def site_names(kind: AttentionKind, layer: int) -> tuple[str, str]:
    """Return the names of the states that queries and keys are projected from.

    All cross-attentions read the same encoder.

    Example:
        >>> site_names("cross", 2), site_names("encoder_self", 0)
        (('decoder.2.cross', 'encoder'), ('encoder.0.self', 'encoder.0.self'))
    """
    if kind == "cross":
        return f"decoder.{layer}.cross", "encoder"
    site = f"{kind.removesuffix('_self')}.{layer}.self"
    return site, site


# -- attentions --


class QueriesAndKeys(NamedTuple):
    """Queries and keys of all heads of an attention, whose products are the scores.

    Attributes:
        queries: projected, rotated and scaled.
        keys: projected and rotated.
    """

    queries: Float[Tensor, "batch heads target head_width"]
    keys: Float[Tensor, "batch heads source head_width"]


@former_arguments(attention="weights")
@dataclass(frozen=True, eq=False, repr=False)
class Attention(ShowsShapes):
    """One attention of one layer over a batch, with all of its heads.

    Attributes:
        kind: "cross", "encoder_self" or "decoder_self".
        layer: number of the layer, from 0.
        query_inputs, key_inputs: x and y, the states that the projections read, (batch, length, width). They
            need not be the states of a trace: a Transformer normalises them first, and the decoder of
            Bahdanau et al. queries with its state of the preceding step. Their width is zero if a query is a
            parameter, and reads nothing.
        maps: the projections of queries and keys, with equal numbers of heads and head widths; or a function
            that returns them, called when they are first used, so that they are those of the network at that
            time. None if scores are not a product of a query and a key, as with additive attention.
        query_site, key_site: names of the inputs, the same for attentions that read the same states; those of
            :func:`site_names` by default.
        scale: factor of the product, such as 1/√width.
        position_bias: b_st of each head, (1 or batch, heads, target, source).
        query_rotation, key_rotation: R, the rotation by position.
        weights: α as the model returned it, (batch, heads, target, source); None if it returned none, and
            then the scores cannot be checked. Rows sum to one over the keys that a query may see; entries at
            padding are arbitrary.
        causal: whether step s sees only steps up to s.
        window: number of steps that a causal step sees, including itself, as in Mistral; None for all.
        precision: dtype that the model computed in, if it is coarser than that of the inputs.
        model_scores: scores as the model computed them, before any mask; None if they are unknown, and, for
            an attention with maps, after :meth:`Trace.validated`: the maps give the scores then.
        values: v, whose weighted means are the contexts, if the model returned them.
        context: Σ_t α_st v_t of every head, if the model returned it.
        projected: queries and keys that the model itself made of the inputs, see :meth:`with_projected`; None
            if they are to be projected by the maps. They follow from the other fields, so that
            :func:`dataclasses.replace`, which may change these, drops them.

    Raises:
        BadInput: projections with different numbers of heads or widths; a window below one step or without
            ``causal``; a scale that is not finite.

    Example:
        >>> states = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
        >>> identity = LinearMap.none(states)
        >>> maps = (identity, identity)
        >>> attention = Attention("cross", 0, query_inputs=states, key_inputs=states, maps=maps)
        >>> attention.scores.tolist()
        [[[[1.0, 0.0], [0.0, 4.0]]]]
    """

    kind: AttentionKind
    layer: int
    _: KW_ONLY
    _: KW_ONLY
    query_inputs: Float[Tensor, "batch target query_width"]
    key_inputs: Float[Tensor, "batch source key_width"]
    maps: Maps | Callable[[], Maps] | None
    query_site: str = ""
    key_site: str = ""
    scale: float = 1.0
    position_bias: Float[Tensor, "#batch heads target source"] | None = None
    query_rotation: Rotation | None = None
    key_rotation: Rotation | None = None
    weights: Float[Tensor, "batch heads target source"] | None = None
    causal: bool = False
    window: int | None = None
    precision: torch.dtype | None = None
    model_scores: Float[Tensor, "batch heads target source"] | None = None
    values: Float[Tensor, "batch heads source value_width"] | None = None
    context: Float[Tensor, "batch heads target value_width"] | None = None
    projected: QueriesAndKeys | None = field(default=None, init=False, repr=False)

    attention = former_attribute("Attention.attention", "weights")
    seeing = former_attribute("Attention.seeing", "with_projected")
    knowing = former_attribute("Attention.knowing", "with_projection_outputs")

    def __post_init__(self) -> None:
        if not self.query_site:
            query_site, key_site = site_names(self.kind, self.layer)
            object.__setattr__(self, "query_site", query_site)
            object.__setattr__(self, "key_site", key_site)
        if self.maps is not None and not callable(self.maps):
            query_map, key_map = self.maps
            query_heads, query_width, _ = query_map.weight.shape
            key_heads, key_width, _ = key_map.weight.shape
            if (query_heads, query_width) != (key_heads, key_width):
                raise BadInput(
                    f"{self.name}: queries of {query_heads} heads of width {query_width}, keys of "
                    f"{key_heads} heads of width {key_width}; both sides need the same heads and width"
                )
        if self.window is not None and not (self.causal and self.window >= 1):
            raise BadInput(
                f"{self.name}: window is {self.window}; expected at least one step, of a causal attention"
            )
        if not math.isfinite(self.scale):
            raise BadInput(f"{self.name}: scale is {self.scale}; give a finite number, such as 1/√width")

    @property
    def name(self) -> str:
        """Kind and layer, such as ``"cross.0"``."""
        return f"{self.kind}.{self.layer}"

    @property
    def has_maps(self) -> bool:
        """True if scores are products of projected states, so that they have terms."""
        return self.maps is not None

    @property
    def query_map(self) -> LinearMap:
        """The projection of the queries; BadInput if scores are not a product of a query and a key."""
        query_map, _ = self._read_maps
        return query_map

    @property
    def key_map(self) -> LinearMap:
        """The projection of the keys; BadInput if scores are not a product of a query and a key."""
        _, key_map = self._read_maps
        return key_map

    @cached_property
    def _read_maps(self) -> Maps:
        if self.maps is None:
            raise BadInput(
                f"{self.name}: its scores are not a product of a query and a key (additive scores, for "
                "example, are not), so they have no projections and no nine alignment terms"
            )
        if callable(self.maps):
            return self.maps()
        return self.maps

    @property
    def heads(self) -> int:
        """Number of heads."""
        if self.maps is not None and not callable(self.maps):
            return self.query_map.heads
        for matrix in (self.model_scores, self.weights):
            if matrix is not None:
                return matrix.shape[1]
        return self.query_map.heads

    @cached_property
    def queries(self) -> Float[Tensor, "batch heads target head_width"]:
        """The queries, projected, rotated and scaled."""
        if self.projected is not None:
            return self.projected.queries
        return _rotated(self.query_map(self.query_inputs), self.query_rotation) * self.scale

    @cached_property
    def keys(self) -> Float[Tensor, "batch heads source head_width"]:
        """The keys, projected and rotated."""
        if self.projected is not None:
            return self.projected.keys
        return _rotated(self.key_map(self.key_inputs), self.key_rotation)

    @cached_property
    def scores(self) -> Float[Tensor, "batch heads target source"]:
        """a_st of every head, before any mask: those of the model if known, or else those of the maps."""
        if self.model_scores is not None:
            return self.model_scores
        scores = self.queries @ self.keys.mT
        if self.position_bias is not None:
            scores = scores + self.position_bias
        return scores

    def with_projected(
        self,
        queries: Float[Tensor, "batch heads target head_width"],
        keys: Float[Tensor, "batch heads source head_width"],
    ) -> "Attention":
        """Return a copy that uses the queries and keys of the model, and does not project states again.

        Args:
            queries: projected, rotated and scaled.
            keys: projected and rotated.
        """
        copied = copy(self)
        object.__setattr__(copied, "projected", QueriesAndKeys(queries, keys))
        return copied

    def with_projection_outputs(
        self, queries: Float[Tensor, "batch target rows"], keys: Float[Tensor, "batch source rows"]
    ) -> "Attention":
        """Return a copy that uses the outputs of the model's projections, and does not project states again.

        Args:
            queries: projected, neither rotated nor scaled, all heads one after the other.
            keys: projected, not rotated, likewise.
        """
        queries_by_head = queries.unflatten(-1, (self.heads, -1))  # (batch, target, heads, head_width)
        keys_by_head = keys.unflatten(-1, (self.heads, -1))  # (batch, source, heads, head_width)
        rotated_queries = _rotated(queries_by_head.transpose(1, 2), self.query_rotation)
        rotated_keys = _rotated(keys_by_head.transpose(1, 2), self.key_rotation)
        return self.with_projected(rotated_queries * self.scale, rotated_keys)

    def from_maps(self) -> "Attention":
        """Return the attention with the scores of its maps, whatever the model computed.

        It is the attention itself if there are no maps, or if the scores of the model are not known.
        """
        if self.model_scores is None or not self.has_maps:
            return self
        return replace(self, model_scores=None)

    def head(self, head: int) -> "Attention":
        """Return the attention of one head; its tensors are views.

        Args:
            head: number of the head, from 0.

        Raises:
            BadInput: a head that the attention does not have.
        """
        if not 0 <= head < self.heads:
            raise BadInput(f"head is {head}; those of {self.name} go from 0 to {self.heads - 1}")
        chosen = slice(head, head + 1)
        changes = {}
        for name in ("position_bias", "weights", "model_scores", "values", "context"):
            tensor = getattr(self, name)
            if tensor is not None:
                changes[name] = tensor[:, chosen]
        if self.has_maps:
            changes["maps"] = partial(self._maps_of, head)
        single_head = replace(self, **changes)
        if self.projected is None:
            return single_head
        queries, keys = self.projected
        return single_head.with_projected(queries[:, chosen], keys[:, chosen])

    def _maps_of(self, head: int) -> Maps:
        return self.query_map.of_heads([head]), self.key_map.of_heads([head])

    def first(self, samples: int) -> "Attention":
        """Return the attention over the first samples, without the weights that the model returned.

        Args:
            samples: number of samples.
        """
        changes = {}
        for name in ("query_inputs", "key_inputs", "position_bias", "model_scores", "values", "context"):
            tensor = getattr(self, name)
            if tensor is not None:
                changes[name] = tensor[:samples]
        return replace(self, **changes, weights=None)

    def to(self, device: torch.device | str) -> "Attention":
        """Return the attention on another device.

        Args:
            device: such as "cpu" or "cuda".
        """
        moved = _moved_to(device, self)
        if callable(self.maps):
            moved = replace(moved, maps=partial(_maps_on, device, self.maps))
        if self.projected is None:
            return moved
        queries, keys = self.projected
        return moved.with_projected(queries.to(device), keys.to(device))

    def allowed(
        self, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, "batch target source"]:
        """Return True where a query may see a key: valid, not later if causal, and within the window.

        Args:
            query_mask: True at valid queries.
            key_mask: True at valid keys.
        """
        allowed = query_mask[:, :, None] & key_mask[:, None, :]
        if not self.causal:
            return allowed
        if self.window is None:
            return allowed.tril()
        return allowed.tril().triu(1 - self.window)


def _rotated(states: Tensor, rotation: Rotation | None) -> Tensor:
    return states if rotation is None else rotation(states)


def _moved_to(device: torch.device | str, traced: Traced) -> Traced:
    """Return a trace or an attention with all of its tensors on a device; functions stay as they are."""
    changes = {}
    for attribute in fields(traced):
        if attribute.init:
            value = getattr(traced, attribute.name)
            changes[attribute.name] = _on_device(device, value)
    return replace(traced, **changes)


def _maps_on(device: torch.device | str, maps: Callable[[], Maps]) -> Maps:
    query_map, key_map = maps()
    return query_map.to(device), key_map.to(device)


def _on_device(device: torch.device | str, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_on_device(device, entry) for entry in value)
    return value.to(device) if hasattr(value, "to") else value


# -- traces --


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trace(ShowsShapes):
    """A teacher-forced pass over a batch; rows are samples, and values at padding are arbitrary.

    The decoder's token at a step is the one that it *reads* there (``target_tokens``); a row of attention
    belongs to the token *predicted* there (``target_outputs``).

    A model of one stack reads one sequence, which is both the source and the target, see
    :meth:`of_one_sequence`. A classifier has one query for each text, so its targets have one step. A network
    without attention has no attentions.

    If the only attention has a single head, the trace itself has ``scores``, ``attention``, ``context`` and
    ``values``; otherwise choose a head with :meth:`head`.

    Attributes:
        source_tokens: ids, (batch, source).
        source_mask: True at valid positions, (batch, source).
        target_tokens: ids that the decoder reads, (batch, target).
        target_outputs: ids that are predicted, (batch, target).
        target_mask: True at valid positions, (batch, target).
        attentions: the attentions of the model that were recorded.
        encoder_states, decoder_states: h^E and h^D, (batch, length, width), of networks of this library.
        logits: of the word predicted at each step, (batch, target, words), if they were computed.
        ignored_source, ignored_target: True at valid positions that no analysis counts, such as special
            tokens. They keep their positions, and the model has seen them.
        lexical_probe: β, the probability of the correct word if that source position alone is seen,
            (batch, target, source), if it was measured.
        predicts: True at valid steps whose prediction ``target_outputs`` has; all by default. The last token
            of a sequence has no known successor.

    Example:
        >>> ids = torch.tensor([[5, 6]])
        >>> trace = Trace.of_one_sequence(ids, ids > 0, ())
        >>> trace.attention is None, trace.logits is None
        (True, True)
    """

    source_tokens: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_tokens: Int[Tensor, "batch target"]
    target_outputs: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    attentions: tuple[Attention, ...] = ()
    encoder_states: Float[Tensor, "batch source encoder_width"] | None = None
    decoder_states: Float[Tensor, "batch target decoder_width"] | None = None
    logits: Float[Tensor, "batch target words"] | None = None
    ignored_source: Bool[Tensor, "batch source"] | None = None
    ignored_target: Bool[Tensor, "batch target"] | None = None
    lexical_probe: Float[Tensor, "batch target source"] | None = None
    predicts: Bool[Tensor, "batch target"] | None = None
    #: whether the trace has been checked; :func:`dataclasses.replace` resets it
    _is_validated: bool = field(default=False, init=False, repr=False)

    @classmethod
    def of_one_sequence(
        cls,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        attentions: Sequence[Attention],
    ) -> "Trace":
        """Return the trace of a decoder or an encoder alone: both sides are the sequence that it reads.

        A step predicts the token that follows it. The last step predicts nothing; its output is its token.

        Args:
            tokens: the sequences, padded at the right.
            mask: True at valid positions.
            attentions: the self-attentions that were recorded.

        Example:
            >>> ids = torch.tensor([[5, 6, 7]])
            >>> trace = Trace.of_one_sequence(ids, ids > 0, ())
            >>> trace.target_outputs.tolist(), trace.predicts.tolist()
            ([[6, 7, 7]], [[True, True, False]])
        """
        has_next = torch.zeros_like(mask)
        has_next[:, :-1] = mask[:, :-1] & mask[:, 1:]
        outputs = torch.where(has_next, tokens.roll(-1, dims=1), tokens)
        return cls(
            source_tokens=tokens,
            source_mask=mask,
            target_tokens=tokens,
            target_outputs=outputs,
            target_mask=mask,
            attentions=tuple(attentions),
            predicts=has_next,
        )

    # -- tokens, masks and states --

    def tokens(self, side: str) -> Int[Tensor, "batch length"]:
        """Return the tokens of a side; those of the target are the ones that the decoder reads.

        Args:
            side: "source" or "target".
        """
        return self.source_tokens if side == "source" else self.target_tokens

    def mask(self, side: str) -> Bool[Tensor, "batch length"]:
        """Return the mask of a side, True at valid positions.

        Args:
            side: "source" or "target".
        """
        return self.source_mask if side == "source" else self.target_mask

    def counted(self, side: str) -> Bool[Tensor, "batch length"]:
        """Return True at the valid positions of a side that are not ignored.

        Args:
            side: "source" or "target".
        """
        ignored = self.ignored_source if side == "source" else self.ignored_target
        if ignored is None:
            return self.mask(side)
        return self.mask(side) & ~ignored

    def sides(self, kind: AttentionKind) -> tuple[str, str]:
        """Return the side of the queries and the side of the keys.

        Args:
            kind: of attention.
        """
        return QUERY_SIDE[kind], KEY_SIDE[kind]

    def sites(self) -> dict[str, tuple[str, Float[Tensor, "batch length width"]]]:
        """Return the side and the values of the states that projections read, by name of the states."""
        sites = {}
        for attention in self.attentions:
            query_side, key_side = self.sides(attention.kind)
            sites[attention.query_site] = query_side, attention.query_inputs
            sites[attention.key_site] = key_side, attention.key_inputs
        return sites

    @property
    def is_one_sequence(self) -> bool:
        """True if source and target are the same sequence, as for a decoder or an encoder alone."""
        if any(attention.kind == "cross" for attention in self.attentions):
            return False
        same_mask = torch.equal(self.source_mask, self.target_mask)
        return same_mask and torch.equal(self.source_tokens, self.target_tokens)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Names of the attentions whose scores cannot be checked, because the model returned no weights."""
        return tuple(attention.name for attention in self.attentions if attention.weights is None)

    # -- its attentions --

    def layers(self, kind: AttentionKind) -> tuple[Attention, ...]:
        """Return the attentions of a kind, in the order of their layers.

        Args:
            kind: "cross", "encoder_self" or "decoder_self".
        """
        chosen = [attention for attention in self.attentions if attention.kind == kind]
        return tuple(sorted(chosen, key=_layer_of))

    def head(self, kind: AttentionKind, layer: int, head: int) -> "Trace":
        """Return the same trace with a single head, so that it has ``scores``, ``attention`` and ``context``.

        Args:
            kind: of the attention.
            layer: number of its layer, from 0.
            head: number of the head, from 0.

        Raises:
            BadInput: no such attention or head.
        """
        for attention in self.attentions:
            if attention.kind == kind and attention.layer == layer:
                return replace(self, attentions=(attention.head(head),))
        names = ", ".join(attention.name for attention in self.attentions) or "none"
        raise BadInput(f"there is no attention {kind}.{layer}; the trace has {names}")

    @property
    def scores(self) -> Float[Tensor, "batch target source"] | None:
        """a_st of the only head, before softmax, masked nowhere; None without attention.

        Raises:
            BadInput: there are several heads, as there are for ``attention``, ``context`` and ``values``.
        """
        attention = self._only_head
        return None if attention is None else attention.scores[:, 0]

    @property
    def attention(self) -> Float[Tensor, "batch target source"] | None:
        """α_st of the only head; rows sum to one over valid source positions and are zero at others."""
        return self._of_only_head("weights")

    @property
    def context(self) -> Float[Tensor, "batch target width"] | None:
        """c_s = Σ_t α_st v_t of the only head."""
        return self._of_only_head("context")

    @property
    def values(self) -> Float[Tensor, "batch source width"] | None:
        """v_t of the only head, whose weighted mean is the context: the encoder states in most networks."""
        return self._of_only_head("values")

    def _of_only_head(self, name: str) -> Tensor | None:
        """Return an attribute of the only attention without its axis of heads; None if there is none."""
        attention = self._only_head
        tensor = None if attention is None else getattr(attention, name)
        return None if tensor is None else tensor[:, 0]

    @property
    def _only_head(self) -> Attention | None:
        if not self.attentions:
            return None
        if len(self.attentions) == 1 and self.attentions[0].heads == 1:
            return self.attentions[0]
        first = self.attentions[0]
        raise BadInput(
            f"the trace has {len(self.attentions)} attentions, {first.name} with {first.heads} heads: choose "
            f"a head, as trace.head({first.kind!r}, {first.layer}, 0) does, or use trace.attentions"
        )

    @property
    def attended(self) -> tuple[Attention, ...]:
        """The former name of ``attentions``."""
        message = "Trace.attended is deprecated: it is Trace.attentions"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.attentions

    def allowed(self, attention: Attention) -> Bool[Tensor, "batch target source"]:
        """Return True where a query of an attention may see a key; False at padding.

        Args:
            attention: one of the attentions.
        """
        query_side, key_side = self.sides(attention.kind)
        return attention.allowed(self.mask(query_side), self.mask(key_side))

    def softmax(self, attention: Attention, head: int) -> Float[Tensor, "batch target source"]:
        """Return the weights of a head, computed from its scores; rows at padding are zero.

        Args:
            attention: one of the attentions.
            head: number of the head, from 0.
        """
        allowed = self.allowed(attention)  # (batch, target, source)
        scores = attention.scores[:, head]  # (batch, target, source)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = softmax_over(scores, allowed)  # (batch, target, source); NaN in rows of padding
        return weights.masked_fill(~allowed, 0)

    # -- traces derived from this one --

    def to(self, device: torch.device | str) -> "Trace":
        """Return the trace with every tensor on another device.

        Args:
            device: such as "cpu" or "cuda".
        """
        return _moved_to(device, self)

    def ignoring(self, tokens: Collection[int] | Mapping[str, Collection[int]]) -> "Trace":
        """Return the trace with the positions of the given tokens ignored.

        Args:
            tokens: ids for both sides, or ids by side if each side has a vocabulary.
        """
        if not tokens:
            return self
        tokens_of_side = dict.fromkeys(SIDES, tokens)
        if isinstance(tokens, Mapping):
            tokens_of_side = cast("Mapping[str, Collection[int]]", tokens)  # not a collection of ids
        device = self.source_tokens.device
        changes = {}
        for side in SIDES:
            ids = torch.tensor(sorted(tokens_of_side[side]), dtype=torch.int64, device=device)
            changes[f"ignored_{side}"] = torch.isin(self.tokens(side), ids)
        return replace(self, **changes)

    def first(self, samples: int) -> "Trace":
        """Return the trace of the first samples, without the weights that the model returned.

        Args:
            samples: number of samples.
        """
        changes: dict[str, Any] = {}
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, Tensor):
                changes[attribute.name] = value[:samples]
        changes["attentions"] = tuple(attention.first(samples) for attention in self.attentions)
        return replace(self, **changes)

    def padded_right(self) -> "Trace":
        """Return the trace with padding at the left of a row moved to its right; itself if there is none.

        Raises:
            BadInput: padding at the left of states that an attention rotates by position.
        """
        orders = {side: _order(self.mask(side)) for side in SIDES}
        if all(order is None for order in orders.values()):
            return self
        source, target = orders["source"], orders["target"]
        moved: dict[str, Any] = {}
        for name in ("source_tokens", "source_mask", "ignored_source", "encoder_states"):
            moved[name] = _moved(getattr(self, name), {1: source})
        for name in (
            "target_tokens", "target_outputs", "target_mask", "ignored_target", "predicts", "decoder_states",
            "logits",
        ):  # fmt: skip
            moved[name] = _moved(getattr(self, name), {1: target})
        moved["lexical_probe"] = _moved(self.lexical_probe, {1: target, 2: source})
        attentions = []
        for attention in self.attentions:
            query_side, key_side = self.sides(attention.kind)
            attentions.append(_reordered(attention, queries=orders[query_side], keys=orders[key_side]))
        return replace(self, **moved, attentions=tuple(attentions))

    def validated(self) -> "Trace":
        """Return the trace as analyses need it: checked, padded at the right, with the scores of the maps.

        If an attention has maps, its scores are computed from them, whatever the model computed, so that the
        terms sum to the scores. A validated trace is returned as it is.

        Raises:
            BadInput: as :meth:`check`; padding at the left of states that an attention rotates by position.
        """
        if self._is_validated:
            return self
        self.check_tensors()
        trace = self.padded_right()
        attentions = tuple(attention.from_maps() for attention in trace.attentions)
        is_changed = [new is not old for new, old in zip(attentions, trace.attentions, strict=True)]
        if any(is_changed):
            trace = replace(trace, attentions=attentions)
        trace.check_scores()
        object.__setattr__(trace, "_is_validated", True)
        return trace

    # -- checks --

    def check(self) -> None:
        """Check shapes, numbers and scores.

        Raises:
            BadInput: as :meth:`check_tensors` and :meth:`check_scores`.
        """
        self.check_tensors()
        self.check_scores()

    def check_tensors(self) -> None:
        """Check shapes and numbers.

        Raises:
            BadInput: shapes that do not fit together; a sample without a valid position; negative ids, or
                states or weights that are not finite, at valid positions; a lexical probe outside 0 to 1.
        """
        tokens = {
            "source_tokens": (self.source_tokens, self.source_mask),
            "target_tokens": (self.target_tokens, self.target_mask),
            "target_outputs": (self.target_outputs, self.target_mask),
        }
        require_tokens(tokens)
        for attention in self.attentions:
            self._require_attention(attention)
        self._require_probabilities()

    def check_scores(self) -> None:
        """Compare the attention that the model returned with the attention that follows from the maps.

        Attentions without maps, and those for which the model returned no weights, cannot be compared.

        Raises:
            BadInput: as :func:`require_own_attention`.
        """
        for attention in self.attentions:
            if attention.weights is not None and attention.has_maps:
                query_side, key_side = self.sides(attention.kind)
                require_own_attention(attention.from_maps(), self.mask(query_side), self.mask(key_side))

    def _require_attention(self, attention: Attention) -> None:
        """Raise BadInput if states or matrices of an attention have a wrong shape or are not finite."""
        query_side, key_side = self.sides(attention.kind)
        query_mask = self.mask(query_side)  # (batch, target)
        key_mask = self.mask(key_side)  # (batch, source)
        if attention.has_maps:
            _require_finite_maps(attention)
            query_width = attention.query_map.weight.shape[-1]
            key_width = attention.key_map.weight.shape[-1]
            n_heads = attention.query_map.heads
        else:
            query_width = attention.query_inputs.shape[-1]
            key_width = attention.key_inputs.shape[-1]
            n_heads = attention.heads
        _require_states(attention, "query_inputs", query_mask, width=query_width)
        _require_states(attention, "key_inputs", key_mask, width=key_width)

        batch, target = query_mask.shape
        source = key_mask.shape[1]
        allowed = attention.allowed(query_mask, key_mask)  # (batch, target, source)
        for name, matrix in (("attention", attention.weights), ("position_bias", attention.position_bias)):
            if matrix is None:
                continue
            shape = tuple(matrix.shape)
            if len(shape) != 4 or shape[0] not in (1, batch) or shape[1:] != (n_heads, target, source):
                raise BadInput(
                    f"{attention.name}: {name} of shape {shape}; expected "
                    f"{(batch, n_heads, target, source)}. A tensor of four axes that a module named as "
                    "attention returns is taken for its weights; a module that returns the context of every "
                    "head has to return the heads joined, (batch, target, width)"
                )
            _require_finite(f"{attention.name}: {name}", matrix, axis=1, valid=allowed)

    def _require_probabilities(self) -> None:
        """Raise BadInput if the lexical probe has a wrong shape, or entries that are not probabilities."""
        probe = self.lexical_probe
        if probe is None:
            return
        expected = (*self.target_tokens.shape, self.source_tokens.shape[1])
        if tuple(probe.shape) != expected:
            raise BadInput(f"lexical_probe of shape {tuple(probe.shape)}; expected {expected}")
        is_valid = self.target_mask[:, :, None] & self.source_mask[:, None, :]  # (batch, target, source)
        entries = probe[is_valid]
        if not bool(((entries >= 0) & (entries <= 1)).all()):
            raise BadInput(
                "lexical_probe has entries that are not probabilities; if they are logarithms, exponentiate "
                "them"
            )


def _layer_of(attention: Attention) -> int:
    return attention.layer


def _require_states(
    attention: Attention, name: str, mask: Bool[Tensor, "batch length"], *, width: int
) -> None:
    """Raise BadInput if the inputs of a projection have a wrong shape, or are not finite."""
    states = getattr(attention, name)
    expected = (*mask.shape, width)
    if tuple(states.shape) != expected:
        raise BadInput(f"{attention.name}: states of shape {tuple(states.shape)}; expected {expected}")
    _require_finite(f"{attention.name}: {name}", states, axis=-1, valid=mask)


def _require_finite_maps(attention: Attention) -> None:
    """Raise BadInput if a projection has a parameter that is not finite."""
    for side, linear_map in (("query", attention.query_map), ("key", attention.key_map)):
        for name in ("weight", "bias"):
            values = getattr(linear_map, name)
            if values is not None and not bool(values.isfinite().all()):
                raise BadInput(
                    f"{attention.name}: {side} {name} holds NaN or infinity: did training diverge?"
                )


def _require_finite(name: str, values: Tensor, *, axis: int, valid: Bool[Tensor, "..."]) -> None:
    """Raise BadInput if values are not finite at a valid position; an axis belongs to one position."""
    if bool(values.sum().isfinite()):  # then all values are
        return
    is_finite = values.isfinite().all(axis)
    wrong = ~is_finite & valid
    if bool(wrong.any()):
        sample, *positions = wrong.nonzero()[0].tolist()
        place = f"sample {sample}, position {' and '.join(map(str, positions))}"
        raise BadInput(
            f"{name} hold NaN or infinity at a valid position ({place}); look for weights that diverged or "
            "an overflow of float16, or mask the position if it is padding"
        )


# -- padding --


def _order(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
    """Return the order of positions with the valid ones first; None if they are first already."""
    order = valid_first(mask)
    unchanged = torch.arange(mask.shape[1], device=mask.device)  # (length,)
    if bool((order == unchanged).all()):
        return None
    return order


def _reordered(attention: Attention, *, queries: Tensor | None, keys: Tensor | None) -> Attention:
    """Return an attention with queries and keys in another order; None leaves a side as it is."""
    if attention.query_rotation is not None or attention.key_rotation is not None:
        raise BadInput(f"{attention.name} rotates by position: pad its batches at the right")
    matrices = {}
    for name in ("position_bias", "weights", "model_scores"):
        matrices[name] = _moved(getattr(attention, name), {2: queries, 3: keys})
    return replace(
        attention,
        query_inputs=_moved(attention.query_inputs, {1: queries}),
        key_inputs=_moved(attention.key_inputs, {1: keys}),
        values=_moved(attention.values, {2: keys}),
        context=_moved(attention.context, {2: queries}),
        **matrices,
    )


def _moved(tensor: Tensor | None, orders: dict[int, Tensor | None]) -> Tensor | None:
    """Return a tensor with its positions in another order, given for each sample by axis."""
    if tensor is None:
        return None
    for axis, order in orders.items():
        if order is None:
            continue
        n_samples, length = order.shape
        shape = [1] * tensor.dim()
        shape[0], shape[axis] = n_samples, length
        # A position bias may have one sample for all.
        of_samples = tensor.expand(n_samples, *tensor.shape[1:])
        tensor = of_samples.take_along_dim(order.view(shape), dim=axis)
    return tensor


# -- the check of scores --

# Units of rounding; those of float64 and float32 are of their sums, whose order differs between machines.
UNIT = {torch.float64: 1e-11, torch.float32: 2.5e-6, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
WORST, MEAN = 8.0, 1.25  # bounds of a unit error, and of the mean of their squares


def require_own_attention(
    attention: Attention, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
) -> None:
    """Compare the attention that the model returned with the scores, at valid positions of both sides.

    The logarithm of a row of attention α gives its scores back up to a constant, log α_st = a_st + constant.
    So the differences log α_st - log α_sr, with r the largest weight of the row, are compared with
    a_st - a_sr of the projections. In logarithms an error of large scores keeps its size, while rounding
    grows with them.

    A model that computes in a precision of unit u (half the distance from 1 to the next number) replaces each
    number n by n (1 + ε), with ε within ±u and signs that are practically independent. To first order the
    error of a score a = Σ_d q_d k_d + b is Σ_n ε_n n, where n runs over q_d k_d (once for the rounding of
    q_d, once for that of k_d), Σ_d q_d k_d, a, and the weight itself (log α moves by ε, n = 1). Here q
    includes the scale; q_d is a sum whose terms may be larger than itself: q_d² → max(q_d², Σ_i W_di² x_i² +
    b_d²). With V_st the sum of squares of these n, an error above c u √V has a probability below
    2 exp(-c²/2) (Hoeffding 1963, theorem 2) and a mean square below u² V / 3. The unit errors
    z = gap / (u √(V_st + V_sr)) of a head are therefore

        all below 8 (probability 2e-14 each), and in mean square below 1.25 + 64 / (their number);

    the second bound leaves room for a machine that sums in pieces and rounds each: with 16 pieces the mean
    square reaches 1. The first bound detects an error in one place, the second a small error everywhere, such
    as a missing bias.

    Weights below the least normal number of the precision are known only to be small, and a row with a single
    weight, or with weights that are uniform up to rounding, agrees with every scale.

    Args:
        attention: with the weights that the model returned.
        query_mask: True at valid queries.
        key_mask: True at valid keys.

    Raises:
        BadInput: the two differ, because projections, scale, bias or mask are not those of the model;
            weights of a type that is not floating, at masked positions, or with a sum other than one.
    """
    returned = attention.weights  # (1 or batch, heads, target, source)
    scores = attention.scores  # (batch, heads, target, source)
    if returned is None:
        raise BadInput(f"{attention.name}: its model returned no attention to compare with")
    dtypes = {returned.dtype, scores.dtype, attention.precision or scores.dtype}
    for dtype in dtypes - UNIT.keys():
        raise BadInput(f"{attention.name}: attention is of {dtype}; expected a floating type")
    unit = max(UNIT[dtype] for dtype in dtypes)
    least = max(torch.finfo(dtype).tiny for dtype in dtypes)
    allowed = attention.allowed(query_mask, key_mask).expand(len(returned), -1, -1)
    weights = returned.detach().to(scores.dtype).expand(len(allowed), -1, -1, -1)
    if _close(attention, weights, query_mask=query_mask, allowed=allowed, unit=unit, least=least):
        return
    squares_of_head = squared_sizes(attention)
    for head in range(attention.heads):
        name = f"{attention.name}, head {head}"
        head_weights = returned[:, head].detach().to(scores.dtype)  # (batch, target, source)
        head_scores = scores[:, head]  # (batch, target, source)
        _require_rows(name, head_weights[query_mask], allowed[query_mask], tolerance=WORST * unit)
        errors = unit_errors(
            head_weights, head_scores, squares=squares_of_head(head), allowed=allowed, unit=unit, least=least
        ).detach()  # (pairs,)
        worst = float(errors.max())
        mean_square = float(errors.square().mean())
        is_rounding = worst <= WORST and mean_square <= MEAN + WORST**2 / len(errors)
        if not is_rounding:  # also if an error is NaN
            hint = _hint_about_zeros(head_weights[query_mask], head_scores[query_mask], allowed[query_mask])
            precisions = " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
            raise BadInput(
                f"{name}: attention from the caught projections differs from the model's own by up to "
                f"{worst:.2g} times rounding ({WORST:.0f} would be rounding), {mean_square**0.5:.2g} in the "
                "mean; the scores are more than scale · query · key + position bias, or were computed in a "
                f"coarser precision than {precisions}{hint}"
            )


def _close(
    attention: Attention,
    weights: Float[Tensor, "batch heads target source"],
    *,
    query_mask: Bool[Tensor, "batch target"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> bool:
    """Return True if all heads pass a quick, stricter check: V without its sum over d, so less rounding."""
    scores = attention.scores  # (batch, heads, target, source)
    on_masked = weights.masked_fill(allowed[:, None], 0).sum(-1)  # (batch, heads, target)
    off_one = (weights.sum(-1) - 1).abs()  # (batch, heads, target)
    row_errors = torch.stack([on_masked, off_one]).transpose(1, 2)  # (2, heads, batch, target)
    are_rows_right = (row_errors[:, :, query_mask] <= WORST * unit).all()
    product = scores
    if attention.position_bias is not None:
        product = scores - attention.position_bias
    squares = product.square() + scores.square() + 1
    errors, is_known = _errors(
        weights, scores, squares=squares, allowed=allowed[:, None], unit=unit, least=least
    )
    errors = errors.masked_fill_(~is_known, 0).transpose(0, 1).flatten(1)  # (heads, pairs)
    n_known = is_known.sum((0, 2, 3)).clamp(min=1)  # (heads,)
    mean_square = errors.square().sum(1) / n_known  # (heads,)
    are_means_small = (mean_square <= MEAN + WORST**2 / n_known).all()
    return bool(are_rows_right & (errors <= WORST).all() & are_means_small)


def unit_errors(
    weights: Float[Tensor, "batch target source"],
    scores: Float[Tensor, "batch target source"],
    *,
    squares: Float[Tensor, "batch target source"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> Float[Tensor, " pairs"]:
    """Return z of every allowed pair, except for the largest weight of each row, the reference of the others.

    Args:
        weights: that the model returned.
        scores: of the projections.
        squares: V.
        allowed: True where a query may see a key.
        unit: of rounding, u.
        least: weights below it are known only to be small.

    Returns:
        the unit errors; a single zero if there are none.
    """
    errors, is_known = _errors(weights, scores, squares=squares, allowed=allowed, unit=unit, least=least)
    known_errors = errors[is_known]
    if not len(known_errors):
        return known_errors.new_zeros(1)
    return known_errors


def _errors(
    weights: Tensor, scores: Tensor, *, squares: Tensor, allowed: Tensor, unit: float, least: float
) -> tuple[Tensor, Tensor]:
    """Return z of every pair, and True where it is known; all arguments have the shape of the weights.

    Temporary tensors are changed in place: every batch of an analysis is checked, with all of its heads.
    """
    log_weights = weights.masked_fill(~allowed, 0).clamp_(min=least).log_()
    largest, reference = log_weights.max(-1, keepdim=True)  # r of each row
    floor = math.log(least) - largest  # relative to the largest weight; below it weights are unknown
    relative_weights = log_weights - largest  # log α_st − log α_sr
    relative_scores = scores - scores.gather(-1, reference)  # a_st − a_sr
    is_known = ((log_weights > math.log(least)) | (relative_scores > floor)) & allowed
    is_known.scatter_(-1, reference, value=False)
    gap = relative_weights.sub_(relative_scores.clamp_(min=floor)).abs_()
    rounding = (squares + squares.gather(-1, reference)).sqrt_().mul_(unit)
    return gap.div_(rounding), is_known


def squared_sizes(attention: Attention) -> Callable[[int], Float[Tensor, "batch target source"]]:
    """Return a function that takes the number of a head and returns its V."""
    query_squares = _squares(
        attention.query_map,
        attention.query_inputs,
        attention.query_rotation,
        projected=attention.queries,
        factor=attention.scale**2,
    )  # (batch, heads, target, head_width)
    key_squares = _squares(
        attention.key_map, attention.key_inputs, attention.key_rotation, projected=attention.keys, factor=1.0
    )  # (batch, heads, source, head_width)

    def of_head(head: int) -> Tensor:
        scores = attention.scores[:, head]  # (batch, target, source)
        product = scores
        if attention.position_bias is not None:
            product = scores - attention.position_bias[:, head]
        of_factors = 2 * query_squares[:, head] @ key_squares[:, head].mT  # (batch, target, source)
        return of_factors + product.square() + scores.square() + 1

    return of_head


def _squares(
    linear_map: LinearMap, states: Tensor, rotation: Rotation | None, *, projected: Tensor, factor: float
) -> Float[Tensor, "batch heads length head_width"]:
    """Return squares of projected states, or of the terms that a projection sums if these are larger."""
    squared_bias = None
    if linear_map.bias is not None:
        squared_bias = linear_map.bias.square()
    squared_map = LinearMap(linear_map.weight.square(), squared_bias)
    terms = squared_map(states.square()) * factor  # (batch, heads, length, head_width)
    if rotation is not None:  # it distributes them among the coordinates
        terms = terms.mean(-1, keepdim=True)
    return torch.maximum(projected.square(), terms)


def _require_rows(name: str, rows: Tensor, allowed: Tensor, *, tolerance: float) -> None:
    """Raise BadInput if a row has weight at masked positions, or does not sum to one."""
    on_masked = float(rows.masked_fill(allowed, 0).sum(-1).max())
    if not on_masked <= tolerance:
        raise BadInput(
            f"{name}: {on_masked:.2g} of a row's attention is at positions that are masked here; give the "
            "masks that the model was given, and the right kind (decoder_self sees no later words)"
        )
    off_one = float((rows.sum(-1) - 1).abs().max())
    if not off_one <= tolerance:
        raise BadInput(
            f"{name}: the sum of a row of attention differs from one by {off_one:.2g}; give what the softmax "
            "returns"
        )


CLEARLY_POSITIVE = 1e-3  # a weight of a softmax far above all that rounding makes zero
NEARLY_EQUAL = 1e-4  # attention minus score, in a row whose attention is linear in its scores


def _hint_about_zeros(rows: Tensor, scores: Tensor, allowed: Tensor) -> str:
    """Return a hint if attention is zero where a softmax is clearly positive, or linear in the scores.

    Args:
        rows: of the model's attention, (rows, source).
        scores: of the projections, (rows, source).
        allowed: True where the masks allow a weight, (rows, source).
    """
    softmax = softmax_over(scores, allowed)  # (rows, source)
    n_zeros = int(((rows == 0) & allowed & (softmax > CLEARLY_POSITIVE)).sum())
    sign = ""
    if n_zeros:
        sign = f"exactly 0 at {n_zeros} positions that the masks allow"
    elif _is_linear(rows, scores, allowed):
        sign = "linear in the scores, which a softmax is not"
    if not sign:
        return ""
    return (
        f". It is {sign}: if the model applies no softmax to its scores, as with sparsemax or entmax, give "
        "no attention to check them against (Modules: unchecked=True)"
    )


def _is_linear(rows: Tensor, scores: Tensor, allowed: Tensor) -> bool:
    """Return True if positive attention is the scores minus a constant of the row, as with sparsemax."""
    positive = allowed & (rows > 0)  # (rows, source)
    shifts = rows - scores  # (rows, source)
    spread = shifts.masked_fill(~positive, -torch.inf).amax(-1) - shifts.masked_fill(
        ~positive, torch.inf
    ).amin(-1)
    has_several = positive.sum(-1) > 2
    return bool(has_several.any()) and bool((spread[has_several] < NEARLY_EQUAL).all())
