"""A pass of a model over a batch, and the attentions in it: the one thing an analysis asks of a model.

Every network of :mod:`attnlib.models` returns a :class:`Trace`, every adapter makes one of anybody's model,
and so do saved tensors (:mod:`attnlib.adapters.tensors`). It has tokens, masks and one :class:`Attention` for
each attention of each layer, with all of its heads. Of head h, x_s the states that queries are made of and
y_t those of the keys,

    a_st = scale · R_s(W_q x_s + b_q) · R_t(W_k y_t + b_k) + b_st,

W and b the head's projections, R a rotation by position (Su et al. 2021, section 3.2) and b_st a bias by
position (Raffel et al. 2020, section 2.1), both absent in most models. All of it is linear in x and in y but
for b_st, which stands alone: so parts of the states become terms of the score. The bias of a projection is
the same for all tokens and goes with the temporal part; a rotation is applied to every part. Additive scores
are no such product, and have no terms.

A network in training makes a trace at every update. So a trace costs nothing to make: projections are looked
up when they are asked for, and nothing is checked before :meth:`Trace.validated`, which adapters and
analyses call.
"""

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes, require_tokens, valid_first
from attnlib.errors import BadInput
from attnlib.linear_map import LinearMap, Rotation

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
Traced = TypeVar("Traced", "Trace", "Attention")


def site_names(kind: AttentionKind, layer: int) -> tuple[str, str]:
    """Return the names of the states that queries and keys are made of.

    All cross-attentions read one encoder.

    >>> site_names("cross", 2), site_names("encoder_self", 0)
    (('decoder.2.cross', 'encoder'), ('encoder.0.self', 'encoder.0.self'))
    """
    if kind == "cross":
        return f"decoder.{layer}.cross", "encoder"
    site = f"{kind.removesuffix('_self')}.{layer}.self"
    return site, site


# -- attentions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Attention(ShowsShapes):
    """One attention of one layer over a batch, all heads.

    Attributes:
        kind: which states attend to which.
        layer: from 0.
        query_inputs, key_inputs: x and y, what the projections read. They need not be the states of a trace:
            a Transformer norms them first, and the decoder of Bahdanau et al. asks with its state of the step
            before. Of a width of zero where a query is a parameter, and reads nothing.
        maps: the projections of queries and keys; their heads and widths agree. Or a function that returns
            them, which is called when they are asked for: what the network's parameters are then. None where
            scores are no product of a query and a key, as additive ones are not.
        query_site, key_site: names of the inputs, the same where attentions read the same states; those of
            :func:`site_names` by default.
        scale: of the product.
        position_bias: b_st of each head.
        query_rotation, key_rotation: R by position.
        attention: as the model returned it; None where it did not, and then nothing has checked the scores.
            Rows sum to one over what a query may see; entries at padding are arbitrary.
        causal: whether step s sees steps up to s alone.
        window: how many steps a causal step sees, itself included, as in Mistral; None: all up to itself.
        precision: what the model computed in, where the inputs given here are finer.
        model_scores: scores as the model computed them, before any mask; None where it did not say, and
            always after :meth:`Trace.validated` where there are maps, which make them anew.
        values: what the contexts are means of, where the model returned them.
        context: Σ_t α_st v_t of every head, where the model returned it.

    Raises:
        BadInput: projections of different heads or widths; a window of no step; a scale that is no number.

    >>> states = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    >>> alike = LinearMap.none(states)
    >>> Attention("cross", 0, query_inputs=states, key_inputs=states, maps=(alike, alike)).scores.tolist()
    [[[[1.0, 0.0], [0.0, 4.0]]]]
    """

    kind: AttentionKind
    layer: int
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
    attention: Float[Tensor, "batch heads target source"] | None = None
    causal: bool = False
    window: int | None = None
    precision: torch.dtype | None = None
    model_scores: Float[Tensor, "batch heads target source"] | None = None
    values: Float[Tensor, "batch heads source value_width"] | None = None
    context: Float[Tensor, "batch heads target value_width"] | None = None
    #: queries and keys, where they were seen; not carried over by :func:`dataclasses.replace`
    _seen: tuple[Tensor, Tensor] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.query_site:
            query_site, key_site = site_names(self.kind, self.layer)
            object.__setattr__(self, "query_site", query_site)
            object.__setattr__(self, "key_site", key_site)
        if self.maps is not None and not callable(self.maps):
            query, key = (linear_map.weight.shape for linear_map in self.maps)
            if query[:2] != key[:2]:
                raise BadInput(
                    f"{self.name}: queries of {query[0]} heads of width {query[1]}, keys of {key[0]} of "
                    f"width {key[1]}; both sides need the same heads and the same width"
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
        """Whether scores are products of projected states, so that they have terms."""
        return self.maps is not None

    @property
    def query_map(self) -> LinearMap:
        """The projection of the queries; BadInput where scores are no product of a query and a key."""
        return self._made_maps[0]

    @property
    def key_map(self) -> LinearMap:
        """The projection of the keys; BadInput where scores are no product of a query and a key."""
        return self._made_maps[1]

    @cached_property
    def _made_maps(self) -> Maps:
        if self.maps is None:
            raise BadInput(
                f"{self.name}: its scores are no product of a query and a key, as additive scores are not: "
                "they have no projections, and the nine alignment terms do not exist"
            )
        return self.maps() if callable(self.maps) else self.maps

    @property
    def heads(self) -> int:
        """How many heads there are."""
        if self.maps is not None and not callable(self.maps):
            return self.query_map.heads
        for matrix in (self.model_scores, self.attention):
            if matrix is not None:
                return matrix.shape[1]
        return self.query_map.heads

    @cached_property
    def queries(self) -> Float[Tensor, "batch heads target head_width"]:
        """Projected and rotated, with the factor of the score."""
        if self._seen is not None:
            return self._seen[0]
        return _rotated(self.query_map(self.query_inputs), self.query_rotation) * self.scale

    @cached_property
    def keys(self) -> Float[Tensor, "batch heads source head_width"]:
        """Projected and rotated."""
        if self._seen is not None:
            return self._seen[1]
        return _rotated(self.key_map(self.key_inputs), self.key_rotation)

    @cached_property
    def scores(self) -> Float[Tensor, "batch heads target source"]:
        """a_st of every head, before any mask: as the model computed them, or else what the maps make."""
        if self.model_scores is not None:
            return self.model_scores
        scores = self.queries @ self.keys.mT
        return scores if self.position_bias is None else scores + self.position_bias

    def seeing(
        self,
        queries: Float[Tensor, "batch heads target head_width"],
        keys: Float[Tensor, "batch heads source head_width"],
    ) -> "Attention":
        """Return a copy with queries and keys as the model made them: they are not made again."""
        copied = copy(self)
        object.__setattr__(copied, "_seen", (queries, keys))
        return copied

    def knowing(
        self, queries: Float[Tensor, "batch target rows"], keys: Float[Tensor, "batch source rows"]
    ) -> "Attention":
        """Return a copy with what its projections were seen to make, neither rotated nor scaled yet."""
        queries = queries.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        keys = keys.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return self.seeing(
            _rotated(queries, self.query_rotation) * self.scale, _rotated(keys, self.key_rotation)
        )

    def from_maps(self) -> "Attention":
        """Return the attention with scores that the maps make of the inputs, whatever the model computed.

        Where there are no maps, or the model's scores are not known, it is the attention itself.
        """
        if self.model_scores is None or not self.has_maps:
            return self
        return replace(self, model_scores=None)

    def head(self, head: int) -> "Attention":
        """Return the attention of one head; its tensors are views.

        Raises:
            BadInput: a head that it does not have.
        """
        if not 0 <= head < self.heads:
            raise BadInput(f"head is {head}; those of {self.name} go from 0 to {self.heads - 1}")
        one_head = {}
        for name in ("position_bias", "attention", "model_scores", "values", "context"):
            tensor = getattr(self, name)
            one_head[name] = None if tensor is None else tensor[:, head : head + 1]
        if self.has_maps:
            one_head["maps"] = partial(self._maps_of, head)
        alone = replace(self, **one_head)
        if self._seen is None:
            return alone
        queries, keys = self._seen
        return alone.seeing(queries[:, head : head + 1], keys[:, head : head + 1])

    def _maps_of(self, head: int) -> Maps:
        return self.query_map.of_heads([head]), self.key_map.of_heads([head])

    def first(self, samples: int) -> "Attention":
        """Return the attention over the first samples, without the model's own, which was checked."""
        cut = {}
        for name in ("query_inputs", "key_inputs", "position_bias", "model_scores", "values", "context"):
            tensor = getattr(self, name)
            cut[name] = None if tensor is None else tensor[:samples]
        return replace(self, **cut, attention=None)

    def to(self, device: torch.device | str) -> "Attention":
        """Return the attention on another device."""
        moved = _moved_to(device, self)
        if callable(self.maps):
            moved = replace(moved, maps=partial(_maps_on, device, self.maps))
        if self._seen is None:
            return moved
        queries, keys = self._seen
        return moved.seeing(queries.to(device), keys.to(device))

    def allowed(
        self, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, "batch target source"]:
        """Return what each query may see: valid keys, where causal no later ones, and those of its window.

        Nothing at padding.
        """
        allowed = query_mask[:, :, None] & key_mask[:, None, :]
        if not self.causal:
            return allowed
        if self.window is None:
            return allowed.tril()
        return allowed.tril().triu(1 - self.window)


def _rotated(states: Tensor, rotation: Rotation | None) -> Tensor:
    return states if rotation is None else rotation(states)


def _moved_to(device: torch.device | str, given: Traced) -> Traced:
    """Return a trace or an attention with all that it holds on a device; functions stay as they are."""
    changes = {}
    for part in fields(given):
        value = getattr(given, part.name)
        if part.init:
            changes[part.name] = _on_device(device, value)
    return replace(given, **changes)


def _maps_on(device: torch.device | str, maps: Callable[[], Maps]) -> Maps:
    query_map, key_map = maps()
    return query_map.to(device), key_map.to(device)


def _on_device(device: torch.device | str, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_on_device(device, entry) for entry in value)
    return value.to(device) if hasattr(value, "to") else value


# -- traces --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trace(ShowsShapes):
    """One teacher-forced pass over a batch; rows are samples, and values at padding are arbitrary.

    The decoder's token at a step is the one it *reads* there (``target_tokens``), a row of attention is about
    the one *predicted* there (``target_outputs``).

    A model of one stack reads one sequence, which is both the source and the target, see
    :meth:`of_one_sequence`. A classifier has one query for each text, and so targets of one step. A network
    without attention has no attentions.

    A network with one attention of one head has ``scores``, ``attention``, ``context`` and ``values`` of the
    trace itself; of others :meth:`head` chooses one.

    Attributes:
        source_tokens, target_tokens, target_outputs: ids.
        source_mask, target_mask: True at valid positions.
        attentions: those of the model, or those of them that were caught.
        encoder_states, decoder_states: h^E and h^D, where the model is one of ours.
        logits: of the word predicted at each step, where they were made.
        ignored_source, ignored_target: valid positions that no analysis counts, such as special tokens. They
            keep their places, and the model has seen them.
        lexical_probe: β, the probability of the right word where that source position alone is seen; where
            whoever made the trace took it.
        predicts: valid steps of which ``target_outputs`` says what is predicted; all by default. Of a
            sequence that is read to its end nobody knows what follows the last token.

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
    #: whether it has been checked; not carried over by :func:`dataclasses.replace`
    _is_validated: bool = field(default=False, init=False, repr=False)

    @classmethod
    def of_one_sequence(
        cls,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        attentions: Sequence[Attention],
    ) -> "Trace":
        """Return the trace of a decoder or an encoder alone: both sides are the sequence that it reads.

        A step predicts the token that follows it; the last one, which nothing follows, predicts nothing, and
        has itself as output.

        Args:
            tokens: the sequences, padded at the right.
            mask: True at valid positions.
            attentions: the self-attentions caught.

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

    # what it holds

    def tokens(self, side: str) -> Int[Tensor, "batch length"]:
        """Return the tokens of ``"source"`` or of ``"target"`` (those read)."""
        return self.source_tokens if side == "source" else self.target_tokens

    def mask(self, side: str) -> Bool[Tensor, "batch length"]:
        """Return the mask of ``"source"`` or of ``"target"``."""
        return self.source_mask if side == "source" else self.target_mask

    def counted(self, side: str) -> Bool[Tensor, "batch length"]:
        """Return the valid positions of a side that are not ignored."""
        ignored = self.ignored_source if side == "source" else self.ignored_target
        return self.mask(side) if ignored is None else self.mask(side) & ~ignored

    def sides(self, kind: AttentionKind) -> tuple[str, str]:
        """Return the side of the queries and that of the keys."""
        return QUERY_SIDE[kind], KEY_SIDE[kind]

    def sites(self) -> dict[str, tuple[str, Float[Tensor, "batch length width"]]]:
        """Return the states that projections read, by name: their side, and they themselves."""
        sites = {}
        for attention in self.attentions:
            query_side, key_side = self.sides(attention.kind)
            sites[attention.query_site] = query_side, attention.query_inputs
            sites[attention.key_site] = key_side, attention.key_inputs
        return sites

    @property
    def is_one_sequence(self) -> bool:
        """Whether source and target are one sequence, as those of a decoder or an encoder alone are."""
        if any(attention.kind == "cross" for attention in self.attentions):
            return False
        same_mask = torch.equal(self.source_mask, self.target_mask)
        return same_mask and torch.equal(self.source_tokens, self.target_tokens)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Names of the attentions that the model's own is not known of: nothing compares their scores."""
        return tuple(attention.name for attention in self.attentions if attention.attention is None)

    # its attentions

    def layers(self, kind: AttentionKind) -> tuple[Attention, ...]:
        """Return the attentions of a kind, in the order of their layers."""
        chosen = [attention for attention in self.attentions if attention.kind == kind]
        return tuple(sorted(chosen, key=_layer_of))

    def head(self, kind: AttentionKind, layer: int, head: int) -> "Trace":
        """Return the same trace with one head alone, which has ``scores``, ``attention`` and ``context``.

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
        only = self._only_head
        return None if only is None else only.scores[:, 0]

    @property
    def attention(self) -> Float[Tensor, "batch target source"] | None:
        """α_st of the only head; rows sum to one over valid source positions and are zero at others."""
        only = self._only_head
        return None if only is None or only.attention is None else only.attention[:, 0]

    @property
    def context(self) -> Float[Tensor, "batch target width"] | None:
        """c_s = Σ_t α_st v_t of the only head."""
        only = self._only_head
        return None if only is None or only.context is None else only.context[:, 0]

    @property
    def values(self) -> Float[Tensor, "batch source width"] | None:
        """v_t of the only head, what its context is a mean of: the encoder states in most networks."""
        only = self._only_head
        return None if only is None or only.values is None else only.values[:, 0]

    @property
    def _only_head(self) -> Attention | None:
        if not self.attentions:
            return None
        if len(self.attentions) == 1 and self.attentions[0].heads == 1:
            return self.attentions[0]
        first = self.attentions[0]
        raise BadInput(
            f"the trace has {len(self.attentions)} attentions, {first.name} with {first.heads} heads: choose "
            f"one, as trace.head({first.kind!r}, {first.layer}, 0) does, or see trace.attentions"
        )

    @property
    def attended(self) -> tuple[Attention, ...]:
        """The former name of ``attentions``."""
        message = "Trace.attended is deprecated: it is Trace.attentions"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.attentions

    def allowed(self, attention: Attention) -> Bool[Tensor, "batch target source"]:
        """Return what each query of an attention may see; nothing at padding."""
        query_side, key_side = self.sides(attention.kind)
        return attention.allowed(self.mask(query_side), self.mask(key_side))

    def softmax(self, attention: Attention, head: int) -> Float[Tensor, "batch target source"]:
        """Return the attention of one head from its scores; rows at padding are zero."""
        allowed = self.allowed(attention)
        scores = attention.scores[:, head]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1).masked_fill(~allowed, 0)

    # other traces made of it

    def to(self, device: torch.device | str) -> "Trace":
        """Return the trace with every tensor on another device."""
        return _moved_to(device, self)

    def ignoring(self, tokens: Collection[int] | Mapping[str, Collection[int]]) -> "Trace":
        """Return the same with positions that hold one of these tokens ignored.

        Args:
            tokens: of both sides, or by side, where each has a vocabulary.
        """
        if not tokens:
            return self
        by_side = dict.fromkeys(SIDES, tokens)
        if isinstance(tokens, Mapping):
            by_side = cast("Mapping[str, Collection[int]]", tokens)  # a collection of ids is no mapping
        ignored = {}
        for side in SIDES:
            ids = torch.tensor(sorted(by_side[side]), dtype=torch.int64, device=self.source_tokens.device)
            ignored[f"ignored_{side}"] = torch.isin(self.tokens(side), ids)
        return replace(self, **ignored)

    def first(self, samples: int) -> "Trace":
        """Return the trace of the first samples; their attention, which was checked, is left out."""
        cut: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Tensor):
                cut[part.name] = value[:samples]
        cut["attentions"] = tuple(attention.first(samples) for attention in self.attentions)
        return replace(self, **cut)

    def padded_right(self) -> "Trace":
        """Return the same with padding in front of a row moved to its right; itself where there is none.

        Raises:
            BadInput: padding in front of states that an attention rotates by position.
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
        """Return the trace as analyses take it: checked, padded at the right, with scores that the maps make.

        Where an attention has maps its scores are made of them, whatever the model computed, so that the
        terms sum to them. A trace that was validated is returned as it is.

        Raises:
            BadInput: as :meth:`check`; padding in front of states that an attention rotates by position.
        """
        if self._is_validated:
            return self
        self.check_tensors()
        trace = self.padded_right()
        attentions = tuple(attention.from_maps() for attention in trace.attentions)
        if any(new is not old for new, old in zip(attentions, trace.attentions, strict=True)):
            trace = replace(trace, attentions=attentions)
        trace.check_scores()
        object.__setattr__(trace, "_is_validated", True)
        return trace

    # checks

    def check(self) -> None:
        """Check all that can be checked.

        Raises:
            BadInput: as :meth:`check_tensors` and :meth:`check_scores`.
        """
        self.check_tensors()
        self.check_scores()

    def check_tensors(self) -> None:
        """Check shapes and numbers.

        Raises:
            BadInput: shapes that do not fit together; a sample without a valid position; ids below 0, states
                or weights that are no numbers at valid positions; a lexical probe that is no probability.
        """
        tokens = {
            "source_tokens": (self.source_tokens, self.source_mask),
            "target_tokens": (self.target_tokens, self.target_mask),
            "target_outputs": (self.target_outputs, self.target_mask),
        }
        require_tokens(tokens)
        for attention in self.attentions:
            self._require_states(attention)
        self._require_probabilities()

    def check_scores(self) -> None:
        """Compare the attention that the model returned with what the maps make of the states.

        Attentions without maps, or of which the model returned none, are not compared with anything.

        Raises:
            BadInput: as :func:`require_own_attention`.
        """
        for attention in self.attentions:
            if attention.attention is not None and attention.has_maps:
                query_side, key_side = self.sides(attention.kind)
                require_own_attention(attention.from_maps(), self.mask(query_side), self.mask(key_side))

    def _require_states(self, attention: Attention) -> None:
        query_side, key_side = self.sides(attention.kind)
        query_mask, key_mask = self.mask(query_side), self.mask(key_side)
        if attention.has_maps:
            _require_numbers(attention)
            query_width = attention.query_map.weight.shape[-1]
            key_width = attention.key_map.weight.shape[-1]
        else:
            query_width, key_width = attention.query_inputs.shape[-1], attention.key_inputs.shape[-1]
        for name, mask, width in (
            ("query_inputs", query_mask, query_width),
            ("key_inputs", key_mask, key_width),
        ):
            states, expected = getattr(attention, name), (*mask.shape, width)
            if tuple(states.shape) != expected:
                raise BadInput(
                    f"{attention.name}: states of shape {tuple(states.shape)}; expected {expected}"
                )
            _require_finite(f"{attention.name}: {name}", states, axis=-1, valid=mask)
        full = (len(query_mask), attention.heads, query_mask.shape[1], key_mask.shape[1])
        if attention.has_maps:
            full = (full[0], attention.query_map.heads, *full[2:])
        for name in ("attention", "position_bias"):
            matrix = getattr(attention, name)
            if matrix is None:
                continue
            if tuple(matrix.shape) not in (full, (1, *full[1:])):
                raise BadInput(
                    f"{attention.name}: {name} of shape {tuple(matrix.shape)}; expected {full}. What a "
                    "module named as attention returns with four axes is taken for it; one that returns the "
                    "context of every head has to return the heads joined, (batch, target, width)"
                )
            allowed = attention.allowed(query_mask, key_mask)
            _require_finite(f"{attention.name}: {name}", matrix, axis=1, valid=allowed)

    def _require_probabilities(self) -> None:
        probe = self.lexical_probe
        expected = (*self.target_tokens.shape, self.source_tokens.shape[1])
        if probe is None:
            return
        if tuple(probe.shape) != expected:
            raise BadInput(f"lexical_probe of shape {tuple(probe.shape)}; expected {expected}")
        valid = probe[self.target_mask[:, :, None] & self.source_mask[:, None, :]]
        if not bool(((valid >= 0) & (valid <= 1)).all()):
            raise BadInput("lexical_probe holds what is no probability; a logarithm has to be taken back")


def _layer_of(attention: Attention) -> int:
    return attention.layer


def _require_numbers(attention: Attention) -> None:
    """Raise BadInput where a projection holds what is no finite number."""
    for side, linear_map in (("query", attention.query_map), ("key", attention.key_map)):
        for name in ("weight", "bias"):
            values = getattr(linear_map, name)
            if values is not None and not bool(values.isfinite().all()):
                raise BadInput(
                    f"{attention.name}: {side} {name} holds NaN or infinity: did training diverge?"
                )


def _require_finite(name: str, values: Tensor, *, axis: int, valid: Bool[Tensor, "..."]) -> None:
    if bool(values.sum().isfinite()):  # then all are
        return
    wrong = ~values.isfinite().all(axis) & valid
    if bool(wrong.any()):
        sample, *positions = wrong.nonzero()[0].tolist()
        place = f"sample {sample}, position {' and '.join(map(str, positions))}"
        raise BadInput(
            f"{name} hold NaN or infinity at a valid position ({place}); look for weights that "
            "diverged or an overflow of float16, or mask what is padding"
        )


# -- padding -------------------------------------------------------------------------------------------------


def _order(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
    """Return the order of positions with the valid ones first; None where they are."""
    order = valid_first(mask)
    in_order = torch.arange(mask.shape[1], device=mask.device)
    return None if bool((order == in_order).all()) else order


def _reordered(attention: Attention, *, queries: Tensor | None, keys: Tensor | None) -> Attention:
    if attention.query_rotation is not None or attention.key_rotation is not None:
        raise BadInput(f"{attention.name} rotates by position: pad its batches at the right")
    matrices = {}
    for name in ("position_bias", "attention", "model_scores"):
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
    """Return a tensor with positions along these axes in another order for every sample."""
    for axis, order in orders.items():
        if tensor is not None and order is not None:
            shape = [1] * tensor.dim()
            shape[0], shape[axis] = order.shape
            tensor = tensor.expand(len(order), *tensor.shape[1:]).take_along_dim(order.view(shape), dim=axis)
    return tensor


# -- the check of scores -------------------------------------------------------------------------------------

UNIT = {torch.float64: 1e-11, torch.float32: 2.5e-6, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
WORST, MEAN = 8.0, 1.25


def require_own_attention(
    attention: Attention, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
) -> None:
    """Compare the attention returned with the scores, at valid places of both sides.

    Of a row of attention α the logarithm gives its scores back, log α_st = a_st + constant: the differences
    log α_st - log α_sr, r the largest weight of the row, are held against a_st - a_sr of the projections. In
    logarithms an error of the scores keeps its size where they are large, while rounding grows with them.

    A model that computes in a precision of unit u (half the distance from 1 to the next number) makes of each
    number n a number n (1 + ε), ε within ±u, with signs as good as independent. By first order the error of a
    score a = Σ_d q_d k_d + b is Σ_n ε_n n over q_d k_d (once for the rounding of q_d, once for that of k_d),
    Σ_d q_d k_d, a, and the weight itself (log α is moved by ε alone, n = 1). q has the scale in it; q_d is a
    sum as well, whose terms may be larger than it is: q_d² → max(q_d², Σ_i W_di² x_i² + b_d²). With V_st the
    sum of squares of these n, an error above c u √V has a probability below 2 exp(-c²/2) (Hoeffding 1963,
    theorem 2) and a mean square below u² V / 3. The unit errors z = gap / (u √(V_st + V_sr)) of a head are
    therefore

        all below 8 (probability 2e-14 each), and in mean square below 1.25 + 64 / (how many there are);

    the mean leaves room for a machine that sums in pieces and rounds each: with 16 pieces it reaches 1. The
    first bound notices what is wrong in one place, the second what is wrong a little everywhere, such as a
    bias that was left out. Units of float32 and float64 are those of the sums, whose order differs.

    Nothing is known of weights below the least normal number of the precision but that they are small, and in
    a row of one weight, or of even ones to within rounding, every scale is right.

    Raises:
        BadInput: they differ: projections, scale, bias or mask are not what the model computes with; an
            attention that is no floating type, or is on what is masked, or does not sum to one.
    """
    returned, scores = attention.attention, attention.scores
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
    sizes = squared_sizes(attention)
    for head in range(attention.heads):
        name = f"{attention.name}, head {head}"
        weights = returned[:, head].detach().to(scores.dtype)
        _require_rows(name, weights[query_mask], allowed[query_mask], tolerance=WORST * unit)
        errors = unit_errors(
            weights, scores[:, head], squares=sizes(head), allowed=allowed, unit=unit, least=least
        )
        error = errors.detach()  # (pairs,)
        worst, spread = float(error.max()), float(error.square().mean())
        if not (worst <= WORST and spread <= MEAN + WORST**2 / len(error)):  # also where it is not a number
            hint = _of_zeros(weights[query_mask], scores[:, head][query_mask], allowed[query_mask])
            precisions = " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
            raise BadInput(
                f"{name}: attention from the caught projections is up to {worst:.2g} times rounding away "
                f"from the model's own ({WORST:.0f} would be rounding), {spread**0.5:.2g} in the mean; the "
                "scores hold more than scale · query · key + position bias, or were computed in a coarser "
                f"precision than {precisions}{hint}"
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
    """Return True if all heads pass with less rounding allowed than there is: V without its sum over d."""
    scores = attention.scores
    on_masked = weights.masked_fill(allowed[:, None], 0).sum(-1)  # (batch, heads, target)
    away_from_one = (weights.sum(-1) - 1).abs()  # (batch, heads, target)
    rows = torch.stack([on_masked, away_from_one]).transpose(1, 2)[:, :, query_mask]  # (2, heads, rows)
    product = scores if attention.position_bias is None else scores - attention.position_bias
    squares = product.square() + scores.square() + 1
    error, counts = _errors(
        weights, scores, squares=squares, allowed=allowed[:, None], unit=unit, least=least
    )
    error = error.masked_fill_(~counts, 0).transpose(0, 1).flatten(1)  # (heads, pairs)
    count = counts.sum((0, 2, 3)).clamp(min=1)  # (heads,)
    spread = error.square().sum(1) / count <= MEAN + WORST**2 / count
    return bool((rows <= WORST * unit).all() & (error <= WORST).all() & spread.all())


def unit_errors(
    weights: Float[Tensor, "batch target source"],
    scores: Float[Tensor, "batch target source"],
    *,
    squares: Float[Tensor, "batch target source"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> Float[Tensor, " pairs"]:
    """Return z of every allowed place, the largest weight of its row left out, which it is compared with."""
    error, counts = _errors(weights, scores, squares=squares, allowed=allowed, unit=unit, least=least)
    counted = error[counts]
    return counted if len(counted) else counted.new_zeros(1)


def _errors(
    weights: Tensor, scores: Tensor, *, squares: Tensor, allowed: Tensor, unit: float, least: float
) -> tuple[Tensor, Tensor]:
    """Return z everywhere, and where it counts."""
    logs = weights.masked_fill(~allowed, 0).clamp_(min=least).log_()
    largest, largest_at = logs.max(-1, keepdim=True)
    beside = scores - scores.gather(-1, largest_at)
    floor = math.log(least) - largest  # less than this weight is as good as nothing
    known = ((logs > math.log(least)) | (beside > floor)) & allowed
    gap = (logs - largest).sub_(beside.clamp_(min=floor)).abs_()
    rounding = (squares + squares.gather(-1, largest_at)).sqrt_().mul_(unit)
    return gap.div_(rounding), known.scatter_(-1, largest_at, value=False)


def squared_sizes(attention: Attention) -> Callable[[int], Float[Tensor, "batch target source"]]:
    """Return a function of a head that returns its V."""
    queries = _squares(
        attention.query_map,
        attention.query_inputs,
        attention.query_rotation,
        projected=attention.queries,
        factor=attention.scale**2,
    )
    keys = _squares(
        attention.key_map, attention.key_inputs, attention.key_rotation, projected=attention.keys, factor=1.0
    )

    def of_head(head: int) -> Tensor:
        scores = attention.scores[:, head]
        product = scores if attention.position_bias is None else scores - attention.position_bias[:, head]
        return 2 * queries[:, head] @ keys[:, head].mT + product.square() + scores.square() + 1

    return of_head


def _squares(
    linear_map: LinearMap, states: Tensor, rotation: Rotation | None, *, projected: Tensor, factor: float
) -> Float[Tensor, "batch heads length head_width"]:
    """Return squares of what a projection makes, or of the terms that it sums where these are larger."""
    bias = None if linear_map.bias is None else linear_map.bias.square()
    squared = LinearMap(linear_map.weight.square(), bias)
    terms = squared(states.square()) * factor
    if rotation is not None:  # it deals them out among the coordinates
        terms = terms.mean(-1, keepdim=True)
    return torch.maximum(projected.square(), terms)


def _require_rows(name: str, rows: Tensor, allowed: Tensor, *, tolerance: float) -> None:
    beyond = float(rows.masked_fill(allowed, 0).sum(-1).max())
    if not beyond <= tolerance:
        raise BadInput(
            f"{name}: {beyond:.2g} of a row's attention is on what is masked here; give the masks that the "
            "model was given, and the kind that it is (decoder_self sees no later words)"
        )
    total = float((rows.sum(-1) - 1).abs().max())
    if not total <= tolerance:
        raise BadInput(
            f"{name}: a row of attention is {total:.2g} away from a sum of one; give what the softmax returns"
        )


LEAST_SEEN = 1e-3  # of a softmax, far above all that is rounded to nothing


def _of_zeros(rows: Tensor, scores: Tensor, allowed: Tensor) -> str:
    """Say that attention is exactly zero where a softmax of the scores is not nearly so; else nothing.

    Args:
        rows: of the model's attention, (rows, source).
        scores: of the projections, (rows, source).
        allowed: places that the masks leave, (rows, source).
    """
    softmax = scores.masked_fill(~allowed, -torch.inf).softmax(-1)  # (rows, source)
    n_zeros = int(((rows == 0) & allowed & (softmax > LEAST_SEEN)).sum())
    if not n_zeros:
        return ""
    return (
        f". It is exactly 0 at {n_zeros} places that the masks allow: if the model makes no softmax of its "
        "scores, as with sparsemax or entmax, give no attention to check them against (Modules: "
        "unchecked=True)"
    )
