"""Dot-product attention over the valid positions of a source."""

from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.errors import BadInput


def dot_scores(
    queries: Float[Tensor, "batch target width"], keys: Float[Tensor, "batch source width"]
) -> Float[Tensor, "batch target source"]:
    """Scores a_st = h^D_s · h^E_t, unscaled (Luong et al. 2015, equation 8, "dot"; Aitken et al. 2021)."""
    return queries @ keys.transpose(1, 2)


def masked_softmax(
    scores: Float[Tensor, "batch target source"], source_mask: Bool[Tensor, "batch source"]
) -> Float[Tensor, "batch target source"]:
    """Attention α_st: softmax of the scores over the valid source positions, zero at padding.

    Raises:
        BadInput: a row of ``source_mask`` has no valid position (its softmax does not exist).
    """
    empty = (~source_mask.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        raise BadInput(f"source rows {empty[:5]} are all padding; drop them before asking for attention")
    return scores.masked_fill(~source_mask[:, None, :], float("-inf")).softmax(dim=-1)
