"""Shares and rebuilt attention of several heads together: of a layer, or of all attentions of a kind.

A share is a ratio, what terms explain over how much scores vary. A mean of shares gives a head whose scores
hardly vary, and whose share is noise, as much weight as one that decides. So sums are **pooled** by
default: what terms explain in all heads over what all scores vary, which weighs each head by the variance
of its scores. Rebuilt attention is a mean over rows, of which heads of one attention have as many each, so
pooling is the mean. ``weigh="heads"`` takes the plain **mean over heads** instead, without those that
attend evenly: how the typical head is made, whatever its scale.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.block_ratios import MEASURES, Ratios, ratios_of
from attnlib.analysis.fit import Head
from attnlib.errors import BadInput, check_known

By = Literal["layer", "kind"]
Weigh = Literal["scores", "heads"]

#: of a row of :func:`aggregate_rows`
AGGREGATE_COLUMNS = {
    "kind": "of the attentions: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0; None for all layers",
    "measure": "a column of the heads: a share or how well attention is rebuilt",
    "value": "of the heads together; shares as shares of one, rebuilt attention from 0 to 1",
    "low": "lower end of its interval of 95 %; NaN where nothing was held out",
    "high": "upper end of it",
    "heads": "how many heads it is of",
    "even": "how many heads of the group attend evenly",
}


def aggregate_rows(
    blocks: Mapping[Head, torch.Tensor],
    *,
    by: By = "layer",
    weigh: Weigh = "scores",
    even: Mapping[Head, bool],
    unsure: float,
) -> list[dict[str, Any]]:
    """Return a row for each measure of each group of heads, with the columns of :data:`AGGREGATE_COLUMNS`.

    Args:
        blocks: sums by block of each head, see :attr:`~attnlib.analysis.judge.HeadSums.blocks`.
        by: "layer" puts the heads of an attention together, "kind" those of all layers.
        weigh: "scores" pools sums, "heads" takes the mean over heads that do not attend evenly.
        even: whether a head attends evenly.
        unsure: factor of the variance for what the fit does not know; NaN where nothing was held out.

    Raises:
        BadInput: no blocks.
        UnknownName: another ``by`` or ``weigh``.
    """
    check_known("by", by, get_args(By))
    check_known("weigh", weigh, get_args(Weigh))
    if not blocks:
        raise BadInput("this analysis has no blocks of sentences to aggregate: make it again with analyse")
    groups: dict[tuple[str, int | None], list[Head]] = {}
    for head in blocks:
        kind, layer = head[0].split(".")
        group = (kind, int(layer) if by == "layer" else None)
        groups.setdefault(group, []).append(head)
    rows = []
    for kind, layer in sorted(groups, key=_order):
        heads = groups[kind, layer]
        n_even = sum(even[head] for head in heads)
        chosen = heads
        if weigh == "heads":
            chosen = [head for head in heads if not even[head]]
        if not chosen:
            continue
        ratios = _together([blocks[head] for head in chosen], weigh)
        half = ratios.half_width(unsure)
        for place, measure in enumerate(MEASURES):
            middle = float(ratios.middle[place])
            value = float(ratios.value[place])
            ends = (middle - float(half[place]), middle + float(half[place]))
            if measure == "position_bias_share" and value == 0.0:  # there is none
                continue
            values = (kind, layer, measure, value, *ends, len(chosen), n_even)
            rows.append(dict(zip(AGGREGATE_COLUMNS, values, strict=True)))
    return rows


def _order(group: tuple[str, int | None]) -> tuple[int, int]:
    kind, layer = group
    return KINDS.index(kind), -1 if layer is None else layer


def _together(blocks: list[torch.Tensor], weigh: Weigh) -> Ratios:
    """Return the ratios of several heads together."""
    if weigh == "scores":
        return ratios_of(torch.stack(blocks).sum(0))
    of_heads = [ratios_of(sums) for sums in blocks]
    return Ratios(
        value=torch.stack([ratios.value for ratios in of_heads]).mean(0),
        middle=torch.stack([ratios.middle for ratios in of_heads]).mean(0),
        moves=torch.stack([ratios.moves for ratios in of_heads]).mean(0),
        size=torch.stack([ratios.size for ratios in of_heads]).amin(0),
    )
