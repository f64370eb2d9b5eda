"""Compute dot-product attention over the valid positions of a source, and the scores of other forms."""

from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.errors import BadInput, check_known
from attnlib.linear_map import LinearMap, compared_as_they_are
from attnlib.softmax import softmax_over


def dot_scores(
    queries: Float[Tensor, "batch target width"], keys: Float[Tensor, "batch source width"]
) -> Float[Tensor, "batch target source"]:
    """Return scores a_st = h^D_s · h^E_t, unscaled (Luong et al. 2015, equation 8, "dot").

    Args:
        queries: h^D, one state a target position.
        keys: h^E, one state a source position.

    Returns:
        The score of each pair of positions.

    Example:
        >>> dot_scores(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [5.0, 6.0]]])).tolist()
        [[[11.0, 17.0]]]
    """
    return queries @ keys.transpose(1, 2)


def is_checked(mask: Tensor) -> bool:
    """Return True if a network should look into a mask before it computes.

    In training on an accelerator it should not, because it would wait for the device at every step; nor in a
    graph that is being compiled. There a loss of NaN shows the mistake.

    Args:
        mask: of the source or of the target.

    Returns:
        True on a CPU, and elsewhere without gradients.

    Example:
        >>> is_checked(torch.ones(1, 2, dtype=torch.bool))
        True
    """
    if torch.compiler.is_compiling():
        return False
    return mask.device.type == "cpu" or not torch.is_grad_enabled()


def masked_softmax(
    scores: Float[Tensor, "batch target source"], source_mask: Bool[Tensor, "batch source"]
) -> Float[Tensor, "batch target source"]:
    """Return the attention α_st: the softmax of scores over the valid source positions, zero at padding.

    Args:
        scores: a_st, padding included.
        source_mask: True at valid positions.

    Returns:
        Weights, each row of which sums to one.

    Raises:
        BadInput: a row of ``source_mask`` has no valid position, so that its softmax does not exist; see
            :func:`is_checked`.

    Example:
        >>> masked_softmax(torch.zeros(1, 1, 3), torch.tensor([[True, True, False]])).tolist()
        [[[0.5, 0.5, 0.0]]]
    """
    if is_checked(source_mask):
        empty = (~source_mask.any(dim=1)).nonzero().flatten().tolist()
        if empty:
            raise BadInput(f"source rows {empty[:5]} are all padding; drop them first")
    return softmax_over(scores, source_mask[:, None, :])


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
# The part that depends on the keys alone is computed once for all queries (:meth:`Score.project`).

Scoring = Literal["additive", "dot", "general", "concat", "scaled_dot"]
BILINEAR: tuple[Scoring, ...] = ("dot", "general", "scaled_dot")  # those of which the nine terms exist


class Score(nn.Module):
    """The score of each query with each key, in one of the forms of :data:`Scoring`.

    Args:
        scoring: the form of the score.
        query_width: of decoder states.
        key_width: of encoder states; equal to ``query_width`` for ``dot`` and ``scaled_dot``, which have no
            map.

    Raises:
        UnknownName: there is no such form.
        BadInput: ``dot`` or ``scaled_dot`` with two widths.

    Example:
        >>> score = Score("scaled_dot", query_width=4, key_width=4)
        >>> score(torch.ones(1, 2, 4), torch.ones(1, 3, 4)).tolist()
        [[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]]
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
        """Return the scores before softmax, padding included.

        Args:
            queries: decoder states.
            keys: encoder states.

        Returns:
            The score of each pair.
        """
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

        Args:
            queries: decoder states.
            keys: encoder states.

        Returns:
            The map of queries, then that of keys.

        Raises:
            BadInput: the score is not such a product.
        """
        if self.scoring not in BILINEAR:
            raise BadInput(f"{self.scoring!r} scores are not products of a query and a key")
        if self.scoring == "general":
            return LinearMap.none(queries), LinearMap.of(self.key_map, 1)
        return compared_as_they_are(queries, keys)

    def project(
        self, keys: Float[Tensor, "batch source key_width"]
    ) -> Float[Tensor, "batch source projected"]:
        """Return the part of the score that depends on keys alone, computed once for all queries.

        Args:
            keys: encoder states.

        Returns:
            One vector a key, of the width of the queries.
        """
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
        """Return the scores of queries with projected keys.

        Args:
            queries: decoder states.
            projected: what :meth:`project` returned.

        Returns:
            The score of each pair.
        """
        if self.scoring in BILINEAR:
            return queries @ projected.transpose(1, 2)
        if self.scoring == "concat":
            mapped = queries @ self.joined_map.weight[:, : self.query_width].T  # (batch, target, projected)
        else:
            mapped = self.query_map(queries)  # (batch, target, projected)
        hidden = torch.tanh(mapped[:, :, None] + projected[:, None])  # (batch, target, source, projected)
        return self.last(hidden)[..., 0]

    def products(self, target: int, source: int) -> int:
        """Return the number of multiplications for one sample, softmax not counted.

        Args:
            target: number of queries.
            source: number of keys.
        """
        n_pairs = target * source
        compared = n_pairs * self.query_width
        match self.scoring:
            case "dot":
                return compared
            case "scaled_dot":
                return compared + source * self.key_width
            case "general":
                return compared + source * self.key_width * self.query_width
            case _:  # concat and additive map both
                mapped = (target * self.query_width + source * self.key_width) * self.query_width
                return mapped + compared
