"""The nine alignment terms: {temporal, input, residual} of the decoder by the same of the encoder."""

from dataclasses import replace
from itertools import product

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import Array, takes_arrays
from attnlib.decomposition.components import PART_NAMES, Parts
from attnlib.errors import BadInput

Pair = tuple[str, str]  # (decoder part, encoder part)
PAIRS: tuple[Pair, ...] = tuple(product(PART_NAMES, PART_NAMES))  # in the order of the terms


def alignment_terms(
    decoder: Parts, encoder: Parts, *, scale: float = 1.0
) -> Float[Tensor, "3 3 batch target source"]:
    """terms[i, j] = scale * decoder part i . encoder part j, in the order of `PART_NAMES`.

    The nine sum to the score, decoder states . encoder states (times `scale`), and are zero wherever target
    or source is padding. The score is bilinear, so splitting both states (Aitken et al. 2021, contribution 1)
    into three parts splits it into nine terms.

    Raises BadInput where batch, width, dtype or device of the two sides differ.
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
    products = (queries * scale) @ keys.transpose(
        1, 2
    )  # (batch, 3 target, 3 source): one product for all nine
    return products.view(batch, 3, target, 3, source).permute(1, 3, 0, 2, 4)


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
