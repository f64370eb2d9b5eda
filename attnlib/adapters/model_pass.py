"""A pass of anybody's model over a batch: tokens, masks, and the attentions that were caught."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.adapters.attended import KEY_SIDE, QUERY_SIDE, Attended, LinearMap, Rotation
from attnlib.adapters.token_batch import require_tokens, valid_first
from attnlib.errors import BadInput
from attnlib.models.transformer import AttentionKind

UNIT = {torch.float64: 1e-11, torch.float32: 2.5e-6, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
WORST, MEAN = 8.0, 1.25
_SIDES = ("source", "target")


@dataclass(frozen=True, eq=False)
class ModelPass:
    """One teacher-forced pass; rows are samples. Padding in front of a row is moved to its right.

    The decoder's token at a step is the one it *reads* there (``target_tokens``), a row of attention is about
    the one *predicted* there (``target_outputs``).

    A model of one stack reads one sequence, which is both the source and the target, see
    :meth:`of_one_sequence`.

    Attributes:
        source_mask, target_mask: True at valid positions.
        attended: the attentions caught.
        ignored_source, ignored_target: valid positions that no analysis counts, such as special tokens. They
            keep their places, and the model has seen them.
        lexical_probe: β, the probability of the right word where that source position alone is seen; where
            whoever made the pass took it.
        predicts: valid steps of which ``target_outputs`` says what is predicted; all by default. Of a
            sequence that is read to its end nobody knows what follows the last token.

    Raises:
        BadInput: shapes that do not fit together; a sample without a valid position; padding in front of
            states that an attention rotates by position; ids below 0, states or weights that are no numbers
            at valid positions; a lexical probe that is no probability.
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
    predicts: Bool[Tensor, "batch target"] | None = None

    @classmethod
    def of_one_sequence(
        cls,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        attended: Sequence[Attended],
    ) -> "ModelPass":
        """The pass of a decoder or an encoder alone: both sides are the sequence that it reads.

        A step predicts the token that follows it; the last one, which nothing follows, predicts nothing, and
        has itself as output.

        Args:
            tokens, mask: the sequences, padded at the right; the mask is True at valid positions.
            attended: the self-attentions caught.

        >>> ids = torch.tensor([[5, 6, 7]])
        >>> model_pass = ModelPass.of_one_sequence(ids, ids > 0, ())
        >>> model_pass.target_outputs.tolist(), model_pass.predicts.tolist()
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
            attended=tuple(attended),
            predicts=has_next,
        )

    def __post_init__(self) -> None:
        names = ("source_tokens", "target_tokens", "target_outputs")
        require_tokens({name: (getattr(self, name), self.mask(name[:6])) for name in names})
        for one in self.attended:
            self._require_states(one)
        self._require_probabilities()
        orders = {side: _order(self.mask(side)) for side in _SIDES}
        if any(order is not None for order in orders.values()):
            self._reorder(orders)

    def tokens(self, side: str) -> Int[Tensor, "batch length"]:
        """Of ``"source"`` or of ``"target"`` (those read)."""
        return self.source_tokens if side == "source" else self.target_tokens

    def mask(self, side: str) -> Bool[Tensor, "batch length"]:
        return self.source_mask if side == "source" else self.target_mask

    def counted(self, side: str) -> Bool[Tensor, "batch length"]:
        """Valid positions of a side that are not ignored."""
        ignored = self.ignored_source if side == "source" else self.ignored_target
        return self.mask(side) if ignored is None else self.mask(side) & ~ignored

    @property
    def is_one_sequence(self) -> bool:
        """Whether source and target are one sequence, as those of a decoder or an encoder alone are."""
        if any(attended.kind == "cross" for attended in self.attended):
            return False
        same_mask = torch.equal(self.source_mask, self.target_mask)
        return same_mask and torch.equal(self.source_tokens, self.target_tokens)

    def ignoring(self, tokens: Collection[int]) -> "ModelPass":
        """The same with positions that hold one of these tokens ignored, on both sides."""
        if not tokens:
            return self
        ids = torch.tensor(sorted(tokens), device=self.source_tokens.device)
        return replace(self, **{f"ignored_{side}": torch.isin(self.tokens(side), ids) for side in _SIDES})

    def first(self, samples: int) -> "ModelPass":
        """Of its first samples; their attention, which was checked, is left out."""

        def cut(one: object, names: Collection[str]) -> dict[str, Tensor | None]:
            found = {name: getattr(one, name) for name in names}
            return {name: own if own is None else own[:samples] for name, own in found.items()}

        states = ("query_inputs", "key_inputs", "position_bias")
        attended = tuple(replace(own, attention=None, **cut(own, states)) for own in self.attended)
        names = [own.name for own in fields(self) if own.name != "attended"]
        return ModelPass(**cut(self, names), attended=attended)

    def sides(self, kind: AttentionKind) -> tuple[str, str]:
        """The side of the queries and that of the keys."""
        return QUERY_SIDE[kind], KEY_SIDE[kind]

    def sites(self) -> dict[str, tuple[str, Float[Tensor, "batch length width"]]]:
        """The states that projections read, by name: their side, and they themselves."""
        found = {}
        for one in self.attended:
            query, key = self.sides(one.kind)
            found[one.query_site] = query, one.query_inputs
            found[one.key_site] = key, one.key_inputs
        return found

    def allowed(self, attended: Attended) -> Bool[Tensor, "batch target source"]:
        """What each query of an attention may see; nothing at padding."""
        return attended.allowed(*map(self.mask, self.sides(attended.kind)))

    def softmax(self, attended: Attended, head: int) -> Float[Tensor, "batch target source"]:
        """Attention of one head from its scores; rows at padding are zero."""
        allowed = self.allowed(attended)
        scores = attended.scores[:, head]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1).masked_fill(~allowed, 0)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Names of the attentions that the model's own is not known of: nothing compares their scores."""
        return tuple(one.name for one in self.attended if one.attention is None)

    def check(self) -> None:
        for one in self.attended:
            if one.attention is not None:
                require_own_attention(one, *map(self.mask, self.sides(one.kind)))

    def _require_states(self, own: Attended) -> None:
        query, key = (self.mask(side) for side in self.sides(own.kind))
        for name, mask, linear in (
            ("query_inputs", query, own.query_map), ("key_inputs", key, own.key_map)
        ):  # fmt: skip
            states, expected = getattr(own, name), (*mask.shape, linear.weight.shape[-1])
            if tuple(states.shape) != expected:
                raise BadInput(f"{own.name}: states of shape {tuple(states.shape)}; expected {expected}")
            _require_finite(f"{own.name}: {name}", states, -1, mask)
        full = (len(query), own.heads, query.shape[1], key.shape[1])
        for name in ("attention", "position_bias"):
            matrix = getattr(own, name)
            if matrix is None:
                continue
            if tuple(matrix.shape) not in (full, (1, *full[1:])):
                raise BadInput(
                    f"{own.name}: {name} of shape {tuple(matrix.shape)}; expected {full}. What a "
                    "module named as attention returns with four axes is taken for it; one that returns the "
                    "context of every head has to return the heads joined, (batch, target, width)"
                )
            _require_finite(f"{own.name}: {name}", matrix, 1, own.allowed(query, key))

    def _require_probabilities(self) -> None:
        probe, expected = self.lexical_probe, (*self.target_tokens.shape, self.source_tokens.shape[1])
        if probe is None:
            return
        if tuple(probe.shape) != expected:
            raise BadInput(f"lexical_probe of shape {tuple(probe.shape)}; expected {expected}")
        valid = probe[self.target_mask[:, :, None] & self.source_mask[:, None, :]]
        if not bool(((valid >= 0) & (valid <= 1)).all()):
            raise BadInput("lexical_probe holds what is no probability; a logarithm has to be taken back")

    def _reorder(self, orders: dict[str, Tensor | None]) -> None:
        for side in _SIDES:
            names = (f"{side}_tokens", f"{side}_mask", f"ignored_{side}", "target_outputs", "predicts")
            for name in names if side == "target" else names[:3]:
                object.__setattr__(self, name, _moved(getattr(self, name), {1: orders[side]}))
        probe = _moved(self.lexical_probe, {1: orders["target"], 2: orders["source"]})
        object.__setattr__(self, "lexical_probe", probe)
        moved = (_reordered(own, *(orders[side] for side in self.sides(own.kind))) for own in self.attended)
        object.__setattr__(self, "attended", tuple(moved))


def _require_finite(name: str, values: Tensor, axis: int, valid: Bool[Tensor, "..."]) -> None:
    if bool(values.sum().isfinite()):  # then all are
        return
    wrong = ~values.isfinite().all(axis) & valid
    if bool(wrong.any()):
        sample, *places = wrong.nonzero()[0].tolist()
        at = f"sample {sample}, position {' and '.join(map(str, places))}"
        raise BadInput(
            f"{name} hold NaN or infinity at a valid position ({at}); look for weights that "
            "diverged or an overflow of float16, or mask what is padding"
        )


# -- padding --


def _order(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
    order = valid_first(mask)
    return None if bool((order == torch.arange(mask.shape[1], device=mask.device)).all()) else order


def _reordered(own: Attended, queries: Tensor | None, keys: Tensor | None) -> Attended:
    if own.query_rotation is not None or own.key_rotation is not None:
        raise BadInput(f"{own.name} rotates by position: pad its batches at the right")
    return replace(
        own,
        query_inputs=_moved(own.query_inputs, {1: queries}),
        key_inputs=_moved(own.key_inputs, {1: keys}),
        position_bias=_moved(own.position_bias, {2: queries, 3: keys}),
        attention=_moved(own.attention, {2: queries, 3: keys}),
    )


def _moved(tensor: Tensor | None, orders: dict[int, Tensor | None]) -> Tensor | None:
    """With positions along these axes in another order for every sample."""
    for axis, order in orders.items():
        if tensor is not None and order is not None:
            shape = [1] * tensor.dim()
            shape[0], shape[axis] = order.shape
            tensor = tensor.expand(len(order), *tensor.shape[1:]).take_along_dim(order.view(shape), dim=axis)
    return tensor


# -- the check of scores --


def require_own_attention(
    one: Attended, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
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
    dtypes = {one.attention.dtype, one.scores.dtype, one.precision or one.scores.dtype}
    for dtype in dtypes - UNIT.keys():
        raise BadInput(f"{one.name}: attention is of {dtype}; expected a floating type")
    unit, least = max(UNIT[dtype] for dtype in dtypes), max(torch.finfo(dtype).tiny for dtype in dtypes)
    allowed = one.allowed(query_mask, key_mask).expand(len(one.attention), -1, -1)
    own = one.attention.detach().to(one.scores.dtype).expand(len(allowed), -1, -1, -1)
    if _close(one, own, query_mask, allowed, unit, least):
        return
    sizes = squared_sizes(one)
    for head in range(one.heads):
        at = f"{one.name}, head {head}"
        own = one.attention[:, head].detach().to(one.scores.dtype)
        _require_rows(at, own[query_mask], allowed[query_mask], WORST * unit)
        error = unit_errors(own, one.scores[:, head], sizes(head), allowed, unit, least).detach()
        worst, spread = float(error.max()), float(error.square().mean())
        if not (worst <= WORST and spread <= MEAN + WORST**2 / len(error)):  # also where it is not a number
            said = " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
            raise BadInput(
                f"{at}: attention from the caught projections is up to {worst:.2g} times rounding away from "
                f"the model's own ({WORST:.0f} would be rounding), {spread**0.5:.2g} in the mean; the scores "
                "hold more than scale · query · key + position bias, or were computed in a coarser precision "
                f"than {said}"
            )


def _close(
    one: Attended,
    own: Float[Tensor, "batch heads target source"],
    query_mask: Bool[Tensor, "batch target"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> bool:
    """Whether all heads pass with less rounding allowed than there is: V without its sum over d."""
    masked = own.masked_fill(allowed[:, None], 0).sum(-1)
    rows = torch.stack([masked, (own.sum(-1) - 1).abs()]).transpose(1, 2)[:, :, query_mask]
    product = one.scores if one.position_bias is None else one.scores - one.position_bias
    squares = product.square() + one.scores.square() + 1
    error, known = _errors(own, one.scores, squares, allowed[:, None], unit, least)
    error = error.masked_fill_(~known, 0).transpose(0, 1).flatten(1)
    count = known.sum((0, 2, 3)).clamp(min=1)
    spread = error.square().sum(1) / count <= MEAN + WORST**2 / count
    return bool((rows <= WORST * unit).all() & (error <= WORST).all() & spread.all())


def unit_errors(
    own: Float[Tensor, "batch target source"],
    scores: Float[Tensor, "batch target source"],
    squares: Float[Tensor, "batch target source"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> Float[Tensor, " pairs"]:
    """z of every allowed place beside the largest weight of its row, which itself is left out."""
    error, known = _errors(own, scores, squares, allowed, unit, least)
    found = error[known]
    return found if len(found) else found.new_zeros(1)


def _errors(
    own: Tensor, scores: Tensor, squares: Tensor, allowed: Tensor, unit: float, least: float
) -> tuple[Tensor, Tensor]:
    """z everywhere, and where it counts."""
    own = own.masked_fill(~allowed, 0).clamp_(min=least).log_()
    largest, at = own.max(-1, keepdim=True)
    beside = scores - scores.gather(-1, at)
    floor = math.log(least) - largest  # less than this weight is as good as nothing
    known = ((own > math.log(least)) | (beside > floor)) & allowed
    gap = (own - largest).sub_(beside.clamp_(min=floor)).abs_()
    rounding = (squares + squares.gather(-1, at)).sqrt_().mul_(unit)
    return gap.div_(rounding), known.scatter_(-1, at, False)


def squared_sizes(one: Attended) -> Callable[[int], Float[Tensor, "batch target source"]]:
    """V of one head after the other."""
    queries = _squares(one.query_map, one.query_inputs, one.query_rotation, one.queries, one.scale**2)
    keys = _squares(one.key_map, one.key_inputs, one.key_rotation, one.keys, 1.0)

    def of(head: int) -> Tensor:
        scores = one.scores[:, head]
        product = scores if one.position_bias is None else scores - one.position_bias[:, head]
        return 2 * queries[:, head] @ keys[:, head].mT + product.square() + scores.square() + 1

    return of


def _squares(
    own: LinearMap, states: Tensor, rotation: Rotation | None, made: Tensor, factor: float
) -> Float[Tensor, "batch heads length head_width"]:
    """Squares of what a projection makes, or of the terms that it sums where these are larger."""
    squared = LinearMap(own.weight.square(), None if own.bias is None else own.bias.square())
    terms = squared(states.square()) * factor
    if rotation is not None:  # it deals them out among the coordinates
        terms = terms.mean(-1, keepdim=True)
    return torch.maximum(made.square(), terms)


def _require_rows(at: str, rows: Tensor, allowed: Tensor, tolerance: float) -> None:
    beyond = float(rows.masked_fill(allowed, 0).sum(-1).max())
    if not beyond <= tolerance:
        raise BadInput(
            f"{at}: {beyond:.2g} of a row's attention is on what is masked here; give the masks that the "
            "model was given, and the kind that it is (decoder_self sees no later words)"
        )
    total = float((rows.sum(-1) - 1).abs().max())
    if not total <= tolerance:
        raise BadInput(
            f"{at}: a row of attention is {total:.2g} away from a sum of one; give what the softmax returns"
        )
