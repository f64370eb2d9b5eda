"""Dot-product attention over the valid positions of a source."""

from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.errors import BadInput, check_known
from attnlib.linear_map import LinearMap, compared_as_they_are


def dot_scores(
    queries: Float[Tensor, "batch target width"], keys: Float[Tensor, "batch source width"]
) -> Float[Tensor, "batch target source"]:
    """Scores a_st = h^D_s · h^E_t, unscaled (Luong et al. 2015, equation 8, "dot")."""
    return queries @ keys.transpose(1, 2)


def is_checked(mask: Tensor) -> bool:
    """Whether a network looks into a mask before it computes.

    In training on an accelerator it does not, since it would wait for the device at every step, nor in a
    graph that is being compiled: there a loss that is no number tells.
    """
    if torch.compiler.is_compiling():
        return False
    return mask.device.type == "cpu" or not torch.is_grad_enabled()


def masked_softmax(
    scores: Float[Tensor, "batch target source"], source_mask: Bool[Tensor, "batch source"]
) -> Float[Tensor, "batch target source"]:
    """Attention α_st: softmax of the scores over the valid source positions, zero at padding.

    Raises:
        BadInput: a row of ``source_mask`` has no valid position (its softmax does not exist); see
            :func:`is_checked`.
    """
    if is_checked(source_mask):
        empty = (~source_mask.any(dim=1)).nonzero().flatten().tolist()
        if empty:
            raise BadInput(f"source rows {empty[:5]} are all padding; drop them before asking for attention")
    return scores.masked_fill(~source_mask[:, None, :], float("-inf")).softmax(dim=-1)


# Scoring functions of attention behind one interface: ``score(queries, keys)``.
#
# ==============  ====================================  =============================================
# ``scaled_dot``  q · k / √width                        Vaswani et al. 2017, equation 1
# ``dot``         q · k                                 Luong et al. 2015, equation 8
# ``general``     q · W k                               Luong et al. 2015, equation 8
# ``concat``      v · tanh(W [q ; k])                   Luong et al. 2015, equation 8
# ``additive``    v · tanh(W q + U k)                   Bahdanau et al. 2015, appendix A.1.2
# ==============  ====================================  =============================================
#
# The last two are one function: a matrix times [q ; k] is the sum of its two halves times q and k. They
# differ in what their parameters are drawn from, since the joined input is twice as wide. None has a bias.
#
# What depends on the keys alone is computed once for all queries (:meth:`Score.project`).

Scoring = Literal["additive", "dot", "general", "concat", "scaled_dot"]
BILINEAR: tuple[Scoring, ...] = ("dot", "general", "scaled_dot")  # those of which the nine terms exist


class Score(nn.Module):
    """The score of each query with each key.

    Args:
        query_width, key_width: of decoder and encoder states; equal for the two without a map.

    Raises:
        UnknownName: no such function. BadInput: ``dot`` or ``scaled_dot`` of two widths.
    """

    def __init__(self, scoring: Scoring, query_width: int, key_width: int):
        super().__init__()
        check_known("scoring", scoring, get_args(Scoring))
        if scoring in ("dot", "scaled_dot") and query_width != key_width:
            raise BadInput(
                f"{scoring} multiplies queries of width {query_width} with keys of width {key_width}; "
                "use general, which maps one to the other"
            )
        self.scoring, self.query_width, self.key_width = scoring, query_width, key_width
        if scoring == "general":
            self.key_map = nn.Linear(key_width, query_width, bias=False)
        elif scoring == "concat":
            self.joined_map = nn.Linear(query_width + key_width, query_width, bias=False)
        elif scoring == "additive":
            self.query_map = nn.Linear(query_width, query_width, bias=False)
            self.key_map = nn.Linear(key_width, query_width, bias=False)
        if scoring in ("concat", "additive"):
            self.last = nn.Linear(query_width, 1, bias=False)

    def forward(
        self,
        queries: Float[Tensor, "batch target query_width"],
        keys: Float[Tensor, "batch source key_width"],
    ) -> Float[Tensor, "batch target source"]:
        """Scores before softmax, padding included."""
        return self.compare(queries, self.project(keys))

    @property
    def scale(self) -> float:
        """The factor of the product of a mapped query and a mapped key."""
        return self.key_width**-0.5 if self.scoring == "scaled_dot" else 1.0

    def maps(
        self,
        queries: Float[Tensor, "batch target query_width"],
        keys: Float[Tensor, "batch source key_width"],
    ) -> tuple[LinearMap, LinearMap]:
        """Return the maps of queries and keys whose product, times :attr:`scale`, is the score.

        Raises:
            BadInput: the score is no such product.
        """
        if self.scoring not in BILINEAR:
            raise BadInput(f"{self.scoring!r} scores are no product of a query and a key")
        if self.scoring == "general":
            return LinearMap.none(queries), LinearMap.of(self.key_map, 1)
        return compared_as_they_are(queries, keys)

    def project(
        self, keys: Float[Tensor, "batch source key_width"]
    ) -> Float[Tensor, "batch source projected"]:
        """The part that depends on the keys alone, of the queries' width."""
        if self.scoring == "scaled_dot":
            return keys * self.key_width**-0.5
        if self.scoring == "concat":
            return keys @ self.joined_map.weight[:, self.query_width :].T
        return keys if self.scoring == "dot" else self.key_map(keys)

    def compare(
        self,
        queries: Float[Tensor, "batch target query_width"],
        projected: Float[Tensor, "batch source projected"],
    ) -> Float[Tensor, "batch target source"]:
        """Scores from projected keys."""
        if self.scoring in BILINEAR:
            return queries @ projected.transpose(1, 2)
        if self.scoring == "concat":
            mapped = queries @ self.joined_map.weight[:, : self.query_width].T
        else:
            mapped = self.query_map(queries)
        return self.last(torch.tanh(mapped[:, :, None] + projected[:, None]))[..., 0]

    def products(self, target: int, source: int) -> int:
        """Multiplications for ``target`` queries on ``source`` keys of one sample, softmax not counted."""
        query, key, pairs = self.query_width, self.key_width, target * source
        return {
            "dot": pairs * query,
            "scaled_dot": pairs * query + source * key,
            "general": pairs * query + source * key * query,
            "concat": (target * query + source * key) * query + pairs * query,
            "additive": (target * query + source * key) * query + pairs * query,
        }[self.scoring]
