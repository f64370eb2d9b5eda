"""How far attention moves when a part of the states comes from elsewhere: effects to compare shares with.

A share says how much of the variation of scores goes together with a term. What attention would do with
another part in its place is a different question, which this module answers. Scores are bilinear in the
states of both sides, so that attention follows from the states and the projections alone: no further pass
of the model is needed. What the model would make of the changed attention is not computed.

One part is taken from elsewhere, on the side of the queries, of the keys, or of both. Two ways differ in
where it comes from, among the places that count:

    part        exchange                             resample
    temporal    another position of the same sample  the same as exchange
    input       the same position of another sample  any place of the batch
    residual    the same position of another sample  any place of the batch
    state       the same position of another sample  another position of the same sample

The state is all three parts at once. A temporal part depends on the position alone, so another sample's at
the same position would be the same. An **exchange** keeps together what a sentence has at all of its
positions: parts come from one other sample, and attention follows what they say together. Where that sample
is shorter, the next one that is long enough gives the part. A **resampling** ablation draws every place by
itself: what a part shares with its neighbours and with its position is lost as well, so it moves attention
further where the parts of a sentence belong together. The book's chapter on interchange exchanges parts in
the forward pass of its networks; it takes them from where *resample* does.

The **effect** is the mean total variation between the rows of attention before and after, 0 where nothing
moves and 1 where all of it does. Rows with one position to choose from are left out, and so are words that
were not fitted on (with least squares).
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.part_shares import SIDES, Side, weighted, weights_of
from attnlib.analysis.terms import AttentionTerms
from attnlib.decomposition.components import PART_NAMES, Means
from attnlib.decomposition.rows import ChosenRows, softmax_of_rows, total_variation
from attnlib.linear_map import LinearMap, Rotation
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

Way = Literal["exchange", "resample"]
WAYS: tuple[Way, ...] = ("exchange", "resample")
STATE = "state"  # all three parts
MOVED_PARTS = (*PART_NAMES, STATE)
ATTRIBUTIONS = ("own", "split", "any_term", "mean_absolute", "substitution")
FEWEST = 3  # points that a rank correlation is taken of

#: of a row of :func:`intervention_rows`
INTERVENTION_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0",
    "head": "number of the head, from 0",
    "way": "exchange or resample",
    "side": "whose part is replaced: query, keys or both",
    "part": "that is replaced: temporal, input, residual, or state for all three",
    "moved": "mean total variation between rows of attention before and after, from 0 to 1",
    "rows": "how many rows of attention the mean is of",
}

#: of a row of :func:`calibration_rows`
CALIBRATION_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "way": "exchange or resample",
    "side": "whose part is replaced: query, keys or both",
    "part": "temporal, input or residual; every for all three, each a point of its own",
    "attribution": "own, split, any_term, mean_absolute or substitution",
    "rank_correlation": "Spearman's, between attribution and effect; NaN for fewer than three points",
    "heads": "how many heads it is of; heads that attend evenly are left out",
}


# Where parts come from.


@dataclass(frozen=True, eq=False)
class Donors:
    """For each place of one side of a batch, the places that parts come from.

    Attributes:
        within: position in the same sample, for the temporal part.
        partner: sample that has the same position.
        across_sample, across_position: any place of the batch.
    """

    within: Int[Tensor, "samples length"]
    partner: Int[Tensor, "samples length"]
    across_sample: Int[Tensor, "samples length"]
    across_position: Int[Tensor, "samples length"]

    @classmethod
    def drawn(
        cls, mask: Bool[Tensor, "samples length"], order: Int[Tensor, " samples"], draw: torch.Generator
    ) -> "Donors":
        """Draw them among the places that count; the others keep their own.

        Args:
            mask: places that count.
            order: of the samples: each takes from the next one that has the same position.
            draw: on the CPU.
        """
        mask = mask.cpu()
        samples, length = mask.shape
        own_sample = torch.arange(samples)[:, None].expand(samples, length)
        own_position = torch.arange(length).expand(samples, length)
        within, partner = own_position.clone(), own_sample.clone()
        for sample in range(samples):
            positions = mask[sample].nonzero()[:, 0]
            within[sample, positions] = positions[torch.randperm(len(positions), generator=draw)]
        for position in range(length):
            reaching = order[mask[order, position]]  # samples with this position, in order
            partner[reaching, position] = reaching.roll(-1)
        places = torch.randperm(int(mask.sum()), generator=draw)
        across_sample, across_position = own_sample.clone(), own_position.clone()
        across_sample[mask] = own_sample[mask][places]
        across_position[mask] = own_position[mask][places]
        return cls(
            within=within, partner=partner, across_sample=across_sample, across_position=across_position
        )

    def places(
        self, way: Way, part: str
    ) -> tuple[Int[Tensor, "samples length"], Int[Tensor, "samples length"]]:
        """Return the sample and the position that each place takes a part from."""
        own_sample = torch.arange(len(self.within))[:, None].expand_as(self.within)
        own_position = torch.arange(self.within.shape[1]).expand_as(self.within)
        if part == "temporal" or (part == STATE and way == "resample"):
            return own_sample, self.within
        if way == "exchange":
            return self.partner, own_position
        return self.across_sample, self.across_position

    def taken(
        self, values: Float[Tensor, "samples length *rest"], way: Way, part: str
    ) -> Float[Tensor, "samples length *rest"]:
        """Return what each place takes from elsewhere.

        Args:
            values: what every place has of the part.
            way: "exchange" or "resample".
            part: one of :data:`MOVED_PARTS`, which says where it comes from.
        """
        sample, position = self.places(way, part)
        return values[sample.to(values.device), position.to(values.device)]


# One side of an attention.


@dataclass(frozen=True, eq=False)
class _Side:
    """What a projection makes of the parts of states, before its rotation and its scale.

    Attributes:
        parts: by name; what all states have in common is in the temporal part, whose exchange leaves it
            alone.
        rotation: of the side.
        scale: of the side.
        donors: where parts come from.
    """

    parts: Mapping[str, Float[Tensor, "samples length heads head_width"]]
    rotation: Rotation | None
    scale: float
    donors: Donors

    @classmethod
    def of(
        cls,
        linear: LinearMap,
        states: Float[Tensor, "samples length width"],
        means: Means,
        *,
        rotation: Rotation | None,
        donors: Donors,
        scale: float = 1.0,
    ) -> "_Side":
        projected = linear(states).transpose(1, 2)  # (samples, length, heads, head_width)
        temporal = linear(means.temporal[None]).transpose(1, 2)  # (1, length, heads, head_width)
        words = linear.without_bias(means.input).transpose(0, 1)  # (words, heads, head_width)
        inputs = words[means.word]  # (samples, length, heads, head_width)
        parts = {
            "temporal": temporal.expand_as(projected),
            "input": inputs,
            "residual": projected - temporal - inputs,
            STATE: projected,
        }
        return cls(parts=parts, rotation=rotation, scale=scale, donors=donors)

    def vectors(
        self, way: Way | None = None, part: str = STATE
    ) -> Float[Tensor, "samples heads length head_width"]:
        """Return queries or keys: as they are, or with a part from elsewhere."""
        vectors = self.parts[STATE]  # (samples, length, heads, head_width)
        if way is not None:
            own = self.parts[part]
            other = self.donors.taken(own, way, part)
            vectors = other if part == STATE else vectors - own + other
        vectors = vectors.transpose(1, 2)
        if self.rotation is not None:
            vectors = self.rotation(vectors)
        return vectors * self.scale


# Sums over a corpus.


class InterventionSums(StreamingSums):
    """How far the heads of one attention moved, summed over rows.

    Args:
        heads: their numbers.

    Attributes:
        moved: total variation, (heads, ways, sides, parts) in the order of :data:`WAYS`, ``SIDES`` and
            :data:`MOVED_PARTS`.
        rows: how many rows were summed.
    """

    SUMS = ("moved", "rows")

    def __init__(self, heads: Collection[int]):
        self.heads = tuple(heads)
        sizes = (len(self.heads), len(WAYS), len(SIDES), len(MOVED_PARTS))
        self.moved = torch.zeros(sizes, dtype=torch.float64)
        self.rows = 0

    def settings(self) -> dict[str, Any]:
        """Return the heads; sums of others cannot be merged."""
        return {"heads": self.heads}

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed, and the numbers of the heads."""
        return super().state_dict() | {"heads": list(self.heads)}

    def update(
        self,
        query: _Side,
        keys: _Side,
        allowed: Bool[Tensor, "samples target source"],
        *,
        bias: Float[Tensor, "samples heads target source"] | None = None,
    ) -> "InterventionSums":
        """Add a batch, and return these sums."""
        chosen = ChosenRows.of(allowed)
        if not len(chosen):
            return self

        def attention(queries: Tensor, keys: Tensor) -> Float[Tensor, "heads row source"]:
            scores = queries @ keys.mT  # (samples, heads, target, source)
            if bias is not None:
                scores = scores + bias
            return softmax_of_rows(chosen.values(scores.transpose(0, 1)).double(), chosen.valid)

        own_queries, own_keys = query.vectors(), keys.vectors()
        before = attention(own_queries, own_keys)  # (heads, row, source)
        for way_number, way in enumerate(WAYS):
            for part_number, part in enumerate(MOVED_PARTS):
                queries, other_keys = query.vectors(way, part), keys.vectors(way, part)
                after = {
                    "query": attention(queries, own_keys),
                    "keys": attention(own_queries, other_keys),
                    "both": attention(queries, other_keys),
                }
                for side_number, side in enumerate(SIDES):
                    moved = total_variation(after[side], before).sum(-1)  # (heads,)
                    self.moved[:, way_number, side_number, part_number] += moved.cpu()
        self.rows += len(chosen)
        return self

    def effects(self) -> Iterator[tuple[int, Way, str, str, float]]:
        """Yield head, way, side, part, and how far attention moved; NaN without rows."""
        means = self.moved / self.rows if self.rows else torch.full_like(self.moved, math.nan)
        for place, head in enumerate(self.heads):
            for way_number, way in enumerate(WAYS):
                for side_number, side in enumerate(SIDES):
                    for part_number, part in enumerate(MOVED_PARTS):
                        yield head, way, side, part, float(means[place, way_number, side_number, part_number])


def donors_of(
    model_pass: Trace, means: Mapping[str, Means], whole: Bool[Tensor, " batch"], *, method: str, seed: int
) -> dict[str, Donors]:
    """Draw for both sides of a batch where parts come from; attentions that read the same states share them.

    Args:
        model_pass: the pass of the model.
        means: components at the places of the whole samples, by name of the states.
        whole: samples of which something counts on both sides.
        method: of the components; by least squares, places that were not fitted on give nothing.
        seed: of the draws.

    Returns:
        by side, "source" and "target".
    """
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(int(whole.sum()), generator=draw)
    donors = {}
    for site, (side, _) in sorted(model_pass.sites().items()):
        if side in donors:
            continue
        mask = model_pass.counted(side)[whole]
        if method != "means":
            mask = mask & means[site].known
        donors[side] = Donors.drawn(mask, order, draw)
    return donors


def add_interventions(
    sums: InterventionSums,
    batch: AttentionTerms,
    *,
    means: Mapping[str, Means],
    whole: Bool[Tensor, " batch"],
    donors: tuple[Donors, Donors],
) -> None:
    """Add what interventions do to the heads of an attention.

    Args:
        sums: of this attention.
        batch: the attention and its terms.
        means: components at the places of the whole samples, by name of the states.
        whole: samples of which something counts on both sides.
        donors: of the side of the queries and of that of the keys.
    """
    attended = batch.attended
    query = _Side.of(
        attended.query_map.of_heads(batch.heads),
        attended.query_inputs[whole],
        means[attended.query_site],
        rotation=attended.query_rotation,
        donors=donors[0],
        scale=attended.scale,
    )
    keys = _Side.of(
        attended.key_map.of_heads(batch.heads),
        attended.key_inputs[whole],
        means[attended.key_site],
        rotation=attended.key_rotation,
        donors=donors[1],
    )
    bias = attended.position_bias
    if bias is not None:
        bias = bias.expand(len(whole), -1, -1, -1)[whole][:, batch.heads]
    sums.update(query, keys, batch.fitted, bias=bias)


# What they come to.


def intervention_rows(sums: Mapping[str, InterventionSums]) -> list[dict]:
    """Return a row for each head, way, side and part, with the columns of :data:`INTERVENTION_COLUMNS`.

    Args:
        sums: by name of the attention, such as "cross.0".
    """
    rows = []
    for name, of_attention in sums.items():
        kind, layer = name.split(".")
        for head, way, side, part, moved in of_attention.effects():
            values = (kind, int(layer), head, way, side, part, moved, of_attention.rows)
            rows.append(dict(zip(INTERVENTION_COLUMNS, values, strict=True)))
    return rows


def attributions(terms: Collection[Mapping[str, Any]], part: str, side: Side) -> dict[str, float]:
    """Return what each attribution says of a part of a head, by name; larger for what should matter more.

    ``own``, ``split`` and ``any_term`` are covariance shares of the terms that the part enters on this side,
    see :mod:`attnlib.analysis.part_shares`; ``mean_absolute`` are mean absolute shares of terms, split
    likewise; ``substitution`` is 1 − similarity of the attention that is rebuilt without the part's own term.
    For one side alone, split and any-term shares hardly differ in rank: both count all terms that the side's
    part enters.

    Args:
        terms: rows of the terms of one head.
        part: "temporal", "input" or "residual".
        side: "query", "keys" or "both".
    """
    covariance = {row["term"]: row["covariance_share"] for row in terms}
    absolute = {row["term"]: row["mean_absolute_share"] for row in terms}
    similarity = {row["term"]: row["similarity_without"] for row in terms}
    names = tuple(covariance)
    split = weights_of(names, part, "split", side=side)
    return {
        "own": weighted(covariance, weights_of(names, part, "own", side=side)),
        "split": weighted(covariance, split),
        "any_term": weighted(covariance, weights_of(names, part, "any_term", side=side)),
        "mean_absolute": weighted(absolute, split),
        "substitution": 1 - similarity[f"{part}·{part}"],
    }


def calibration_rows(
    terms: Iterable[Mapping[str, Any]],
    effects: Iterable[Mapping[str, Any]],
    even: Collection[tuple[str, int, int]] = (),
) -> list[dict]:
    """Return the rank correlation over heads between each attribution and the effect of each intervention.

    Args:
        terms: rows of the terms of all heads.
        effects: rows of :func:`intervention_rows`.
        even: kind, layer and number of the heads that attend evenly, which are left out: their scores hardly
            vary, so that their shares are those of noise.

    Returns:
        rows with the columns of :data:`CALIBRATION_COLUMNS`.
    """
    terms_of_head: dict[tuple, list] = {}
    for row in terms:
        terms_of_head.setdefault(_head(row), []).append(row)
    points: dict[tuple, list[tuple[float, float]]] = {}
    for row in effects:
        head = _head(row)
        if row["part"] == STATE or head in even:
            continue
        found = attributions(terms_of_head[head], row["part"], row["side"])
        for attribution, value in found.items():
            for part in (row["part"], "every"):
                group = (row["kind"], row["way"], row["side"], part, attribution)
                points.setdefault(group, []).append((value, row["moved"]))
    rows = []
    for group, pairs in points.items():
        n_heads = len(pairs) // (len(PART_NAMES) if group[3] == "every" else 1)
        correlation = spearman(np.array(pairs)) if len(pairs) >= FEWEST else math.nan
        rows.append(dict(zip(CALIBRATION_COLUMNS, (*group, correlation, n_heads), strict=True)))
    return sorted(rows, key=_order)


def _head(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["kind"], row["layer"], row["head"]


def _order(row: Mapping[str, Any]) -> tuple:
    parts = (*PART_NAMES, "every")
    numbers = (
        WAYS.index(row["way"]),
        SIDES.index(row["side"]),
        parts.index(row["part"]),
        ATTRIBUTIONS.index(row["attribution"]),
    )
    return row["kind"], *numbers


def spearman(pairs: Float[np.ndarray, "points 2"]) -> float:
    """Return the rank correlation of two columns, ties at their mean rank; NaN where a column is constant.

    >>> round(spearman(np.array([[1.0, 10.0], [2.0, 30.0], [2.0, 20.0], [4.0, 90.0]])), 4)
    0.9487
    """
    if not np.isfinite(pairs).all():
        return math.nan
    ranks = np.stack([_ranks(column) for column in pairs.T])
    if (ranks.std(1) == 0).any():
        return math.nan
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[place]
