"""The nine alignment terms: {temporal, input, residual} of the decoder by the same of the encoder."""

from dataclasses import replace
from itertools import product

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.arrays import Array, takes_arrays
from attnlib.decomposition.by_part import PART_AXES, ByPart
from attnlib.decomposition.components import STATE_PARTS, Parts
from attnlib.errors import BadInput

Pair = tuple[str, str]  # (decoder part, encoder part)
PAIRS: tuple[Pair, ...] = tuple(product(STATE_PARTS, STATE_PARTS))  # in the order of the terms


class AlignmentTerms(ByPart):
    """The nine terms of scores, a tensor (decoder part, encoder part, sample, target, source).

    It is indexed by name: ``terms["temporal", "input"]`` is (sample, target, source).

    Attributes:
        target_mask: True at valid positions, (sample, target).
        source_mask: True at valid positions, (sample, source).

    Example:
        >>> import torch
        >>> valid = torch.ones(1, 2, dtype=torch.bool)
        >>> terms = AlignmentTerms.masked(torch.zeros(3, 3, 1, 2, 2), valid, valid)
        >>> terms
        AlignmentTerms(temporal, input, residual, decoder by encoder; sample 1, target 2, source 2)
        >>> terms["temporal", "input"].shape
        torch.Size([1, 2, 2])
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
        parts: tuple[str, ...] = STATE_PARTS,
    ) -> "AlignmentTerms":
        """Name the parts of terms, and attach the masks of both sides.

        Args:
            terms: products of decoder parts and encoder parts.
            target_mask: True at valid positions.
            source_mask: True at valid positions.
            parts: names of the parts of each side.

        Returns:
            terms that share the memory of the tensor.
        """
        named = cls.of(terms, axes=cls.AXES, parts=parts)
        named.target_mask = target_mask
        named.source_mask = source_mask
        return named

    def _like(self, values: Tensor) -> "AlignmentTerms":
        return self._with_parts(values, self.parts)

    def _with_parts(self, values: Tensor, parts: tuple[str, ...]) -> "AlignmentTerms":
        return self.masked(values, self.target_mask, self.source_mask, parts=parts)

    def _is_listed(self) -> Tensor:
        valid = self.target_mask[:, :, None] & self.source_mask[:, None, :]  # (sample, target, source)
        return valid.cpu().expand(self.shape)


def alignment_terms(decoder: Parts, encoder: Parts, *, scale: float = 1.0) -> AlignmentTerms:
    """Return the products of the parts of both sides, scale · decoder part · encoder part.

    The nine terms sum to the score, decoder states · encoder states (times `scale`), and are zero where
    target or source is padding. The score is bilinear, so splitting both states into three parts (Aitken et
    al. 2021, contribution 1) splits the score into nine terms.

    Args:
        decoder: parts of the decoder states, (batch, target, width) each.
        encoder: parts of the encoder states, (batch, source, width) each.
        scale: of the score, such as 1/√width.

    Returns:
        the terms, (3, 3, batch, target, source), in the order of `STATE_PARTS` and by name.

    Raises:
        BadInput: batch, width, dtype or device of the two sides differ.

    Example:
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
    decoder_parts = decoder.stack().transpose(0, 1)  # (batch, 3, target, width)
    encoder_parts = encoder.stack().transpose(0, 1)  # (batch, 3, source, width)
    queries = decoder_parts.reshape(batch, 3 * target, width)
    keys = encoder_parts.reshape(batch, 3 * source, width)
    products = (queries * scale) @ keys.mT  # (batch, 3 target, 3 source): one product for all nine
    by_part = products.view(batch, 3, target, 3, source)
    terms = by_part.permute(1, 3, 0, 2, 4)  # (3, 3, batch, target, source)
    return AlignmentTerms.masked(terms, decoder.mask, encoder.mask)


@takes_arrays
def map_parts(
    parts: Parts, weight: Float[Array, "out width"], bias: Float[Array, " out"] | None = None
) -> Parts:
    """Return the parts of `states @ weight.T + bias`, for scores that are bilinear after a linear map.

    Luong's general score maps the encoder states by its matrix; a head of a Transformer maps both sides by
    its projections. The bias is the same for every token and sample, so it belongs to the temporal part;
    padding stays zero.

    Args:
        parts: of states, (batch, length, width) each.
        weight: of the map, (out, width).
        bias: of the map, (out,); None without one.

    Returns:
        the parts of the mapped states, (batch, length, out) each.

    Raises:
        BadInput: the shapes do not fit.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0, 2.0]]])
        >>> parts = Parts(states, 10 * states, 0 * states, mask=torch.tensor([[True]]))
        >>> mapped = map_parts(parts, torch.tensor([[1.0, 1.0]]), torch.tensor([0.5]))
        >>> mapped.temporal.item(), mapped.input.item(), mapped.total().item()
        (3.5, 30.0, 33.5)
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
