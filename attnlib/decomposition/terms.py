"""The nine alignment terms: {temporal, input, residual} of the decoder by the same of the encoder."""

from dataclasses import replace
from itertools import product

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.arrays import Array, takes_arrays
from attnlib.decomposition.by_part import PART_AXES, ByPart
from attnlib.decomposition.components import PART_NAMES, Parts
from attnlib.errors import BadInput

Pair = tuple[str, str]  # (decoder part, encoder part)
PAIRS: tuple[Pair, ...] = tuple(product(PART_NAMES, PART_NAMES))  # in the order of the terms


class AlignmentTerms(ByPart):
    """The nine terms of scores, (decoder part, encoder part, sample, target, source).

    A tensor that answers by name: ``terms["temporal", "input"]`` is (sample, target, source).

    Attributes:
        target_mask: (sample, target), True at valid positions.
        source_mask: (sample, source), likewise.
    """

    AXES = (*PART_AXES, "sample", "target", "source")
    target_mask: Bool[Tensor, "batch target"]
    source_mask: Bool[Tensor, "batch source"]

    @classmethod
    def masked(
        cls,
        terms: Float[Tensor, "parts parts batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
        *,
        parts: tuple[str, ...] = PART_NAMES,
    ) -> "AlignmentTerms":
        """Name the parts of terms, and note which positions are valid."""
        named = cls.of(terms, axes=cls.AXES, parts=parts)
        named.target_mask = target_mask
        named.source_mask = source_mask
        return named

    def _like(self, values: Tensor) -> "AlignmentTerms":
        return self._with_parts(values, self.parts)

    def _with_parts(self, values: Tensor, parts: tuple[str, ...]) -> "AlignmentTerms":
        return self.masked(values, self.target_mask, self.source_mask, parts=parts)

    def _kept(self) -> Tensor:
        valid = self.target_mask[:, :, None] & self.source_mask[:, None, :]  # (sample, target, source)
        return valid.cpu().expand(self.shape)


def alignment_terms(decoder: Parts, encoder: Parts, *, scale: float = 1.0) -> AlignmentTerms:
    """Return the products of the parts of both sides, scale · decoder part · encoder part.

    The nine sum to the score, decoder states · encoder states (times `scale`), and are zero wherever target
    or source is padding. The score is bilinear, so splitting both states (Aitken et al. 2021, contribution 1)
    into three parts splits it into nine terms.

    Args:
        decoder: parts of the decoder states, (batch, target, width) each.
        encoder: parts of the encoder states, (batch, source, width) each.
        scale: of the score, such as 1/√width.

    Returns:
        the terms, (3, 3, batch, target, source), in the order of `PART_NAMES` and by name.

    Raises:
        BadInput: batch, width, dtype or device of the two sides differ.

    >>> import torch
    >>> place = torch.ones(1, 1, dtype=torch.bool)
    >>> decoder, encoder = (
    ...     Parts(*(torch.full((1, 1, 1), number) for number in numbers), mask=place)
    ...     for numbers in ([1.0, 2.0, 3.0], [10.0, 20.0, 40.0])
    ... )
    >>> terms = alignment_terms(decoder, encoder)
    >>> terms["input", "residual"].item(), terms.sum().item()
    (80.0, 420.0)
    >>> terms
    AlignmentTerms(temporal, input, residual, decoder by encoder; sample 1, target 1, source 1)
    """
    left, right = decoder.temporal, encoder.temporal
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[2]:
        raise BadInput(
            f"Decoder parts of shape {tuple(left.shape)} with encoder parts of shape {tuple(right.shape)}: "
            "batch and width must agree (map_parts brings a side to the width of the other)."
        )
    if (left.dtype, left.device) != (right.dtype, right.device):
        raise BadInput(
            f"Decoder parts are {left.dtype} on {left.device}, encoder parts {right.dtype} on "
            f"{right.device}: split both sides' states in one dtype on one device."
        )
    batch, target, width = left.shape
    source = right.shape[1]
    queries = decoder.stack().transpose(0, 1).reshape(batch, 3 * target, width)
    keys = encoder.stack().transpose(0, 1).reshape(batch, 3 * source, width)
    products = (queries * scale) @ keys.mT  # (batch, 3 target, 3 source): one product for all nine
    terms = products.view(batch, 3, target, 3, source).permute(1, 3, 0, 2, 4)
    return AlignmentTerms.masked(terms, decoder.mask, encoder.mask)


@takes_arrays
def map_parts(
    parts: Parts, weight: Float[Array, "out width"], bias: Float[Array, " out"] | None = None
) -> Parts:
    """The parts of `states @ weight.T + bias`, for scores that are bilinear after a linear map.

    Luong's general score maps the encoder by its matrix; a Transformer's head maps both sides by its q and k.
    The bias is the same for every token and sample, so it belongs to the temporal part; padding stays zero.

    Raises BadInput where the shapes do not fit.
    """
    width = parts.temporal.shape[2]
    if weight.dim() != 2 or weight.shape[1] != width:
        raise BadInput(
            f"Weight of shape {tuple(weight.shape)} for parts of width {width}: expected (out, {width})."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise BadInput(
            f"Bias of shape {tuple(bias.shape)}: expected ({weight.shape[0]},), the rows of weight."
        )
    temporal, inputs, residual = (F.linear(part, weight) for part in parts)
    if bias is not None:
        temporal = temporal + bias * parts.mask[:, :, None]
    return replace(parts, temporal=temporal, input=inputs, residual=residual)
