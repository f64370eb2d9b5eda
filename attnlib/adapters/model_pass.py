"""A pass of anybody's model over a batch: tokens, masks, and the attentions that were caught."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.adapters.attended import KEY_SIDE, QUERY_SIDE, Attended
from attnlib.adapters.padding import fields_at_the_left
from attnlib.adapters.pass_fits import (
    require_padding_at_the_right,
    require_probabilities,
    require_states,
    require_tokens,
)
from attnlib.adapters.score_check import require_own_attention
from attnlib.errors import BadInput
from attnlib.models.trace import Trace
from attnlib.models.transformer import AttentionKind


@dataclass(frozen=True)
class AdaptedTrace(Trace):
    """One head of one attention as a trace; source is the side that answers, target the side that asks.

    ``decoder_states`` are the head's queries with the factor of the score, ``encoder_states`` its keys, both
    rotated where the model rotates: their product, and the position bias where there is one, is ``scores``.
    ``context`` and ``logits`` are not caught.

    >>> from attnlib.adapters import pass_of_tensors
    >>> given = dict.fromkeys(("source_tokens", "target_tokens"), torch.tensor([[5, 6]]))
    >>> given |= dict.fromkeys(("source_mask", "target_mask"), torch.ones(1, 2, dtype=torch.bool))
    >>> given |= dict.fromkeys(("cross.0.query_states", "encoder_states"), 2 * torch.eye(2)[None])
    >>> found = pass_of_tensors(given)
    >>> found.head(found.attended[0], head=0).scores.tolist()
    [[[4.0, 0.0], [0.0, 4.0]]]
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
        BadInput: shapes that do not fit together; a sample without a valid position; padding that is not at
            the right (see :meth:`to_the_left`); ids below 0, states or weights that are no numbers at valid
            positions; a lexical probe that is no probability.

    >>> from attnlib.adapters import LinearMap
    >>> yes, states = torch.ones(1, 2, dtype=torch.bool), torch.eye(2)[None]
    >>> words = torch.tensor([[5, 6]])
    >>> one = Attended("cross", 0, states, states, "decoder", "encoder", *2 * [LinearMap.none(states)])
    >>> found = ModelPass(words, yes, words, words, yes, (one,))
    >>> found.unchecked
    ('cross.0',)
    >>> found.softmax(one, head=0)[0, 0].tolist() == torch.tensor([1.0, 0.0]).softmax(0).tolist()
    True
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
        require_tokens(self)
        self._require_places()
        for one in self.attended:
            require_states(self, one)
        if self.lexical_probe is not None:
            require_probabilities(self, self.lexical_probe)

    def _require_places(self) -> None:
        require_padding_at_the_right(self)

    @classmethod
    def to_the_left(cls, **given: Any) -> "ModelPass":
        """A pass of the same fields, of rows with padding on either side, which is moved to their right.

        Raises:
            BadInput: as of every pass; an attention rotates by position, so that its states cannot move.
        """
        return cls(**fields_at_the_left(_PaddedAnywhere(**given)))

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

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Names of the attentions that the model's own is not known of: nothing compares their scores."""
        return tuple(one.name for one in self.attended if one.attention is None)

    def check(self) -> None:
        """Compare what the projections make with the attention that the model returned, where it did.

        Raises:
            BadInput: they differ by more than rounding, see :mod:`attnlib.adapters.score_check`.
        """
        for one in self.attended:
            if one.attention is not None:
                require_own_attention(one, *(self.mask(side) for side in self.sides(one.kind)))


class _PaddedAnywhere(ModelPass):
    """Before its padding is moved."""

    def _require_places(self) -> None:
        """Anywhere."""
