"""Aggregate shares and rebuilt attention over heads: those of a layer, or of all attentions of a kind.

A share is a ratio: what terms explain, divided by how much scores vary. A mean of shares gives a head whose
scores hardly vary, and whose share is noise, the same weight as a head with large scores. By default the sums
are therefore **pooled**: what terms explain in all heads, divided by how much all scores vary, which weighs
each head by the variance of its scores. Rebuilt attention is a mean over rows, and all heads of one attention
have the same number of rows, so pooling is the mean. ``weigh="heads"`` takes the plain **mean over heads**
instead, without those that attend almost uniformly: it describes the typical head, whatever its scale.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import torch

from attnlib.analysis.block_ratios import MEASURES, Ratios, ratios_of
from attnlib.analysis.heads import Head, kind_and_layer
from attnlib.errors import BadInput, check_known
from attnlib.trace import KINDS

By = Literal["layer", "kind"]
Weigh = Literal["scores", "heads"]
Group = tuple[str, int | None]  # kind and layer; None for all layers

#: the columns of a row of :func:`aggregate_rows`
AGGREGATE_COLUMNS = {
    "kind": "of the attentions: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0; None for all layers",
    "measure": "a column of the heads: a share or how well attention is rebuilt",
    "value": "of the heads together; shares as shares of one, rebuilt attention from 0 to 1",
    "low": "lower end of its interval of 95 %; NaN where nothing was held out",
    "high": "upper end of it",
    "heads": "number of heads that it is of",
    "even": "number of heads of the group that attend almost uniformly",
}


def aggregate_rows(
    blocks: Mapping[Head, torch.Tensor],
    *,
    by: By = "layer",
    weigh: Weigh = "scores",
    even: Mapping[Head, bool],
    variance_factor: float,
) -> list[dict[str, Any]]:
    """Return a row for each measure of each group of heads, with the columns of :data:`AGGREGATE_COLUMNS`.

    Args:
        blocks: sums by block of each head, see :attr:`~attnlib.analysis.judge.HeadSums.blocks`.
        by: "layer" groups the heads of an attention, "kind" those of all layers.
        weigh: "scores" pools sums, "heads" takes the mean over heads that do not attend almost uniformly.
        even: by head, whether it attends almost uniformly.
        variance_factor: how much larger the variance is because of the error of the fit; NaN where nothing
            was held out.

    Returns:
        rows by kind, layer and measure.

    Raises:
        BadInput: there are no blocks.
        UnknownName: an unknown ``by`` or ``weigh``.
    """
    check_known("by", by, get_args(By))
    check_known("weigh", weigh, get_args(Weigh))
    if not blocks:
        raise BadInput("this analysis has no blocks of sentences to aggregate: make it again with analyse")
    rows = []
    for group, heads in sorted(_groups(blocks, by).items(), key=_group_rank):
        n_even = sum(even[head] for head in heads)
        chosen = heads
        if weigh == "heads":
            chosen = [head for head in heads if not even[head]]
        if not chosen:
            continue
        kind, layer = group
        columns = {"kind": kind, "layer": layer, "heads": len(chosen), "even": n_even}
        ratios = _aggregated([blocks[head] for head in chosen], weigh)
        for measure in _measure_rows(ratios, variance_factor):
            row = columns | measure
            rows.append({column: row[column] for column in AGGREGATE_COLUMNS})
    return rows


def _groups(heads: Iterable[Head], by: By) -> dict[Group, list[Head]]:
    """Return the heads of each group; a group of several layers has None for its layer."""
    groups: dict[Group, list[Head]] = defaultdict(list)
    for head in heads:
        attention, _ = head
        kind, layer = kind_and_layer(attention)
        group = (kind, layer if by == "layer" else None)
        groups[group].append(head)
    return groups


def _group_rank(item: tuple[Group, list[Head]]) -> tuple[int, int]:
    (kind, layer), _ = item
    return KINDS.index(kind), -1 if layer is None else layer


def _measure_rows(ratios: Ratios, variance_factor: float) -> Iterator[dict[str, Any]]:
    """Yield each measure with its value and its interval."""
    half_widths = ratios.half_width(variance_factor)  # (measures,)
    for number, measure in enumerate(MEASURES):
        value = float(ratios.value[number])
        middle = float(ratios.middle[number])
        half_width = float(half_widths[number])
        if measure == "position_bias_share" and value == 0.0:  # the attention has no position bias
            continue
        yield {"measure": measure, "value": value, "low": middle - half_width, "high": middle + half_width}


def _aggregated(blocks: list[torch.Tensor], weigh: Weigh) -> Ratios:
    """Return the ratios of several heads together, from the sums of blocks of each head."""
    if weigh == "scores":
        pooled = torch.stack(blocks).sum(0)  # (blocks, sums)
        return ratios_of(pooled)
    of_heads = [ratios_of(sums) for sums in blocks]
    values = torch.stack([ratios.value for ratios in of_heads])  # (heads, measures)
    middles = torch.stack([ratios.middle for ratios in of_heads])  # (heads, measures)
    moves = torch.stack([ratios.moves for ratios in of_heads])  # (heads, blocks, measures)
    sizes = torch.stack([ratios.size for ratios in of_heads])  # (heads, measures)
    return Ratios(value=values.mean(0), middle=middles.mean(0), moves=moves.mean(0), size=sizes.amin(0))
