"""A pass of anybody's model over a batch: tokens, masks, and the attentions that were caught."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.adapters.attended import KEY_SIDE, QUERY_SIDE, Attended
from attnlib.errors import BadInput
from attnlib.models.trace import Trace
from attnlib.models.transformer_trace import AttentionKind

# What rounding does to a score, in the precision that the model computes with, as a share of 1 + |score|. It
# is also what it does to a weight of the softmax, as a share of that weight.
ROUNDING = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True)
class AdaptedTrace(Trace):
    """One head of one attention as a trace; source is the side that answers, target the side that asks.

    ``decoder_states`` are the head's queries with the factor of the score, ``encoder_states`` its keys, both
    rotated where the model rotates: their product, and the position bias where there is one, is ``scores``.
    ``context`` and ``logits`` are not caught.
    """

    logits: Float[Tensor, "batch target words"] | None = None


@dataclass(frozen=True)
class ModelPass:
    """One teacher-forced pass; rows are samples, valid positions are the first of each row.

    The decoder's token at a step is the one it *reads* there (``target_tokens``), a row of attention is about
    the one *predicted* there (``target_outputs``).

    Attributes:
        source_mask, target_mask: True at valid positions.
        attended: the attentions caught.
        ignored_source, ignored_target: valid positions that no analysis counts, such as special tokens. They
            keep their places, and the model has seen them.
        lexical_probe: β, the probability of the right word where that source position alone is seen; where
            whoever made the pass took it.

    Raises:
        BadInput: shapes that do not fit together; a sample without a valid position; a lexical probe that is
            no probability.
    """

    source_tokens: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_tokens: Int[Tensor, "batch target"]
    target_outputs: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    attended: tuple[Attended, ...]
    ignored_source: Bool[Tensor, "batch source"] | None = None
    ignored_target: Bool[Tensor, "batch target"] | None = None
    lexical_probe: Float[Tensor, "batch target source"] | None = None

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            tokens, mask = self.tokens(side), self.mask(side)
            if tokens.dim() != 2 or tokens.shape != mask.shape:
                raise BadInput(
                    f"{side}_tokens of shape {tuple(tokens.shape)}, {side}_mask of {tuple(mask.shape)}; "
                    "expected (batch, length) of both"
                )
            if not bool(mask.any(1).all()):
                raise BadInput(f"{side} row {int(mask.any(1).int().argmin())} is all padding: leave it out")
        if len(self.source_tokens) != len(self.target_tokens):
            raise BadInput(f"{len(self.source_tokens)} sources with {len(self.target_tokens)} targets")
        if self.target_outputs.shape != self.target_tokens.shape:
            raise BadInput(
                f"target_outputs of shape {tuple(self.target_outputs.shape)}, target_tokens of "
                f"{tuple(self.target_tokens.shape)}; expected one shape"
            )
        for one in self.attended:
            self._require_shapes(one)
        if self.lexical_probe is not None:
            self._require_probabilities(self.lexical_probe)

    def _require_shapes(self, one: Attended) -> None:
        asks, answers = (self.tokens(side).shape for side in self.sides(one.kind))
        for length, states, own in (
            (asks, one.query_inputs, one.query_map),
            (answers, one.key_inputs, one.key_map),
        ):
            expected = (*length, own.weight.shape[-1])
            if tuple(states.shape) != expected:
                raise BadInput(f"{one.name}: states of shape {tuple(states.shape)}; expected {expected}")
        full = (asks[0], one.heads, asks[1], answers[1])
        for name, matrix in (("attention", one.attention), ("position_bias", one.position_bias)):
            if matrix is not None and tuple(matrix.shape) not in (full, (1, *full[1:])):
                raise BadInput(f"{one.name}: {name} of shape {tuple(matrix.shape)}; expected {full}")

    def _require_probabilities(self, probe: Tensor) -> None:
        expected = (*self.target_tokens.shape, self.source_tokens.shape[1])
        if tuple(probe.shape) != expected:
            raise BadInput(f"lexical_probe of shape {tuple(probe.shape)}; expected {expected}")
        valid = probe[self.target_mask[:, :, None] & self.source_mask[:, None, :]]
        if not bool(((valid >= 0) & (valid <= 1)).all()):
            raise BadInput("lexical_probe holds what is no probability; a logarithm has to be taken back")

    def tokens(self, side: str) -> Int[Tensor, "batch length"]:
        """Of ``"source"`` or of ``"target"`` (those read)."""
        return self.source_tokens if side == "source" else self.target_tokens

    def mask(self, side: str) -> Bool[Tensor, "batch length"]:
        """Valid positions of a side."""
        return self.source_mask if side == "source" else self.target_mask

    def counted(self, side: str) -> Bool[Tensor, "batch length"]:
        """Valid positions of a side that are not ignored."""
        ignored = self.ignored_source if side == "source" else self.ignored_target
        return self.mask(side) if ignored is None else self.mask(side) & ~ignored

    def ignoring(self, tokens: Collection[int]) -> "ModelPass":
        """The same with positions that hold one of these tokens ignored, on both sides."""
        if not tokens:
            return self
        ids = torch.tensor(sorted(tokens), device=self.source_tokens.device)
        sides = {side: torch.isin(self.tokens(side), ids) for side in ("source", "target")}
        return replace(self, ignored_source=sides["source"], ignored_target=sides["target"])

    def sides(self, kind: AttentionKind) -> tuple[str, str]:
        """The side that asks and the side that answers."""
        return QUERY_SIDE[kind], KEY_SIDE[kind]

    def sites(self) -> dict[str, tuple[str, Float[Tensor, "batch length width"]]]:
        """The states that projections read, by name: their side, and they themselves."""
        found = {}
        for one in self.attended:
            asks, answers = self.sides(one.kind)
            found[one.query_site] = asks, one.query_inputs
            found[one.key_site] = answers, one.key_inputs
        return found

    def head(self, attended: Attended, head: int) -> AdaptedTrace:
        """One head as a :class:`~attnlib.models.trace.Trace`.

        Raises:
            BadInput: no such head.
        """
        if not 0 <= head < attended.heads:
            raise BadInput(f"head is {head}; {attended.name} has heads 0 to {attended.heads - 1}")
        asks, answers = self.sides(attended.kind)
        scores = attended.scores[:, head]
        return AdaptedTrace(
            source_tokens=self.tokens(answers),
            source_mask=self.mask(answers),
            target_tokens=self.tokens(asks),
            target_outputs=self.target_outputs if asks == "target" else self.source_tokens,
            target_mask=self.mask(asks),
            encoder_states=attended.keys[:, head],
            decoder_states=attended.queries[:, head],
            scores=scores,
            attention=self.softmax(attended, head),
            context=None,
            logits=None,
        )

    def softmax(self, attended: Attended, head: int) -> Float[Tensor, "batch target source"]:
        """Attention of one head from its scores; rows at padding are zero."""
        asks, answers = self.sides(attended.kind)
        allowed = attended.allowed(self.mask(asks), self.mask(answers))
        scores = attended.scores[:, head]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1).masked_fill(~allowed, 0)

    def check(self) -> None:
        """Compare what the projections make with the attention that the model returned.

        Raises:
            BadInput: they differ: projections, scale, bias or mask are not what the model computes with.
        """
        for one in self.attended:
            if one.attention is None:
                continue
            asks, answers = self.sides(one.kind)
            allowed = one.allowed(self.mask(asks), self.mask(answers))
            if one.attention.dtype not in ROUNDING:
                raise BadInput(f"{one.name}: attention is of {one.attention.dtype}; expected a floating type")
            dtypes = {one.attention.dtype, one.scores.dtype, one.precision or one.scores.dtype}
            rounding = max(ROUNDING[dtype] for dtype in dtypes)
            for head in range(one.heads):
                own = one.attention[:, head].to(one.scores.dtype)
                largest = float(one.scores[:, head].abs().masked_fill(~allowed, 0).max())
                # Beside the largest weight of its row, or even attention would hide what is wrong.
                beside = own.masked_fill(~allowed, 0).amax(-1, keepdim=True).clamp(min=1e-12)
                gap = ((self.softmax(one, head) - own).abs() / beside).masked_fill(~allowed, 0)
                tolerance = rounding * (1 + largest)
                if not float(gap.max()) <= tolerance:  # also where it is not a number
                    raise BadInput(
                        f"{one.name}, head {head}: attention from the caught projections is up to "
                        f"{float(gap.max()):.2g} of a row's largest weight away from the model's own "
                        f"({tolerance:.2g} would be rounding); the scores hold more than scale · query · key "
                        "+ position bias, or the masks differ"
                    )

    def to_the_left(self) -> "ModelPass":
        """The same with padding at the right of every row; valid positions keep their order."""
        orders = {side: _order(self.mask(side)) for side in ("source", "target")}
        if all(order is None for order in orders.values()):
            return self
        moved = {
            field.name: _moved(getattr(self, field.name), orders[_side_of(field.name)], 1)
            for field in fields(self)
            if field.name not in ("attended", "lexical_probe")
        }
        probe = _moved(_moved(self.lexical_probe, orders["target"], 1), orders["source"], 2)
        attended = tuple(self._reordered(one, orders) for one in self.attended)
        return ModelPass(**moved, attended=attended, lexical_probe=probe)

    def _reordered(self, one: Attended, orders: dict[str, Tensor | None]) -> Attended:
        asks, answers = (orders[side] for side in self.sides(one.kind))
        matrices = {
            name: _moved(_moved(_whole(getattr(one, name), len(self.source_mask)), asks, 2), answers, 3)
            for name in ("position_bias", "attention")
        }
        if one.query_rotation is not None or one.key_rotation is not None:
            raise BadInput(f"{one.name} rotates by position: pad its batches at the right")
        inputs = {"query_inputs": _moved(one.query_inputs, asks, 1)}
        return replace(one, **inputs, key_inputs=_moved(one.key_inputs, answers, 1), **matrices)


def _side_of(field: str) -> str:
    return "source" if "source" in field else "target"


def _order(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
    """Places of the valid positions, then those of padding; None where they are in this order already."""
    order = torch.argsort(~mask, dim=1, stable=True)
    ahead = torch.arange(mask.shape[1], device=mask.device)
    return None if bool((order == ahead).all()) else order


def _moved(tensor: Tensor | None, order: Tensor | None, axis: int) -> Tensor | None:
    if tensor is None or order is None:
        return tensor
    shape = [1] * tensor.dim()
    shape[0], shape[axis] = order.shape
    return tensor.take_along_dim(order.view(shape), dim=axis)


def _whole(matrix: Tensor | None, batch: int) -> Tensor | None:
    return None if matrix is None else matrix.expand(batch, -1, -1, -1)
