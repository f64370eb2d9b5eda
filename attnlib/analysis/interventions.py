"""Measure how far attention moves when a part of the states is replaced: effects to compare shares with.

A share says how much of the variation of scores a term explains. It does not say how attention
would change with another part, which this module measures. Scores are bilinear in the states of both sides,
so attention follows from the states and the projections alone: no further pass of the model is needed. The
effect on the output of the model is not computed.

One part is replaced, on the side of the queries, of the keys, or of both. Two ways differ in where the new
part comes from, among the positions that count:

    part        exchange                             resample
    temporal    another position of the same sample  the same as exchange
    input       the same position of another sample  any position of any sample
    residual    the same position of another sample  any position of any sample
    state       the same position of another sample  another position of the same sample

The state is all three parts at once. A temporal part depends on the position alone, so another sample would
provide the same one. An **exchange** keeps the positions of a sentence together: all parts come from one
other sample, or, where that sample is too short, from the next one that is long enough. A **resampling**
ablation draws each position independently: the dependence of a part on its neighbours and on its position is
lost as well, so it moves attention further where the parts of a sentence depend on each other. The book's
chapter on interchange exchanges parts in the forward pass of its networks; it takes them from where
*resample* does.

The **effect** is the mean total variation between the rows of attention before and after: 0 if attention
stays, 1 if all of it moves. Rows with a single visible position are left out, and with least squares so are
words that the fit has not seen.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.heads import Head, kind_and_layer
from attnlib.analysis.part_shares import FACTOR_SIDES, FactorSide, weighted_sum, weights_of
from attnlib.analysis.terms import AttentionTerms
from attnlib.arrays import ShowsShapes
from attnlib.decomposition.components import STATE_PARTS, PlaceComponents
from attnlib.decomposition.rows import ChosenRows, total_variation
from attnlib.linear_map import LinearMap, Rotation
from attnlib.softmax import softmax_over
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

Way = Literal["exchange", "resample"]
WAYS: tuple[Way, ...] = ("exchange", "resample")
STATE = "state"  # all three parts
MOVED_PARTS = (*STATE_PARTS, STATE)
EVERY_PART = "every"  # each of the three parts, compared together
ATTRIBUTIONS = ("own", "split", "any_term", "mean_absolute", "substitution")
FEWEST_POINTS = 3  # for a rank correlation

#: the columns of a row of :func:`intervention_rows`
INTERVENTION_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0",
    "head": "number of the head, from 0",
    "way": "exchange or resample",
    "side": "whose part is replaced: query, keys or both",
    "part": "that is replaced: temporal, input, residual, or state for all three",
    "moved": "mean total variation between rows of attention before and after, from 0 to 1",
    "rows": "number of rows of attention that the mean is of",
}

#: the columns of a row of :func:`calibration_rows`
CALIBRATION_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "way": "exchange or resample",
    "side": "whose part is replaced: query, keys or both",
    "part": "temporal, input or residual; every for all three, with a point for each",
    "attribution": "own, split, any_term, mean_absolute or substitution",
    "rank_correlation": "Spearman's, between attribution and effect; NaN for fewer than three points",
    "heads": "number of heads that it is of; heads that attend almost uniformly are left out",
}


# -- where parts come from --


@dataclass(frozen=True, eq=False, repr=False)
class Origin(ShowsShapes):
    """The places that a part is taken from: their samples and their positions."""

    sample: Int[Tensor, "samples length"]
    position: Int[Tensor, "samples length"]

    def of(self, part: Float[Tensor, "samples length *rest"]) -> Float[Tensor, "samples length *rest"]:
        """Return a part as it is at these places."""
        return part[self.sample.to(part.device), self.position.to(part.device)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Donors(ShowsShapes):
    """For each place of one side of a batch, the places that parts come from.

    Attributes:
        within: the position in the same sample that the temporal part comes from.
        partner: the sample that provides the same position.
        across_sample, across_position: the sample and position drawn from the whole batch.
    """

    within: Int[Tensor, "samples length"]
    partner: Int[Tensor, "samples length"]
    across_sample: Int[Tensor, "samples length"]
    across_position: Int[Tensor, "samples length"]

    @classmethod
    def drawn(
        cls, mask: Bool[Tensor, "samples length"], order: Int[Tensor, " samples"], draw: torch.Generator
    ) -> "Donors":
        """Draw donors among the places that count; other places keep their parts.

        Args:
            mask: True at places that count.
            order: of the samples; each takes parts from the next one that has the same position.
            draw: a generator on the CPU.
        """
        mask = mask.cpu()
        itself = _every_place(*mask.shape)

        within = itself.position.clone()  # (samples, length)
        for sample, is_counted in enumerate(mask):
            positions = is_counted.nonzero()[:, 0]
            within[sample, positions] = positions[torch.randperm(len(positions), generator=draw)]

        partner = itself.sample.clone()  # (samples, length)
        for position in range(mask.shape[1]):
            samples = order[mask[order, position]]  # those long enough, in order
            partner[samples, position] = samples.roll(-1)

        shuffled = torch.randperm(int(mask.sum()), generator=draw)
        across_sample, across_position = itself.sample.clone(), itself.position.clone()
        across_sample[mask] = itself.sample[mask][shuffled]
        across_position[mask] = itself.position[mask][shuffled]
        return cls(
            within=within, partner=partner, across_sample=across_sample, across_position=across_position
        )

    def origin(self, way: Way, part: str) -> Origin:
        """Return where each place takes a part from."""
        itself = _every_place(*self.within.shape)
        if part == "temporal" or (part == STATE and way == "resample"):
            return Origin(itself.sample, self.within)
        if way == "exchange":
            return Origin(self.partner, itself.position)
        return Origin(self.across_sample, self.across_position)


def _every_place(samples: int, length: int) -> Origin:
    """Return the sample and the position of each place of a batch."""
    sample = torch.arange(samples)[:, None].expand(samples, length)
    position = torch.arange(length).expand(samples, length)
    return Origin(sample, position)


# -- one side of an attention --


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _ReplaceableSide(ShowsShapes):
    """One side of an attention: the projected parts of its states, before rotation and scale.

    Attributes:
        parts: by name; the constant that all states share is in the temporal part, whose exchange leaves it
            unchanged.
        rotation: by position; None without one.
        scale: that the projection is multiplied with.
        donors: where new parts come from.
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
        place_components: PlaceComponents,
        *,
        rotation: Rotation | None,
        donors: Donors,
        scale: float = 1.0,
    ) -> "_ReplaceableSide":
        """Project the parts of states.

        Args:
            linear: the projection.
            states: of the side.
            place_components: the components at the places of these states.
            rotation: by position; None without one.
            donors: where new parts come from.
            scale: that the projection is multiplied with.
        """
        projected = linear(states).transpose(1, 2)  # (samples, length, heads, head_width)
        temporal = linear(place_components.temporal[None]).transpose(1, 2)  # (1, length, heads, head_width)
        words = linear.without_bias(place_components.input).transpose(0, 1)  # (words, heads, head_width)
        inputs = words[place_components.word]  # (samples, length, heads, head_width)
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
        """Return queries or keys: as they are, or with one part replaced."""
        vectors = self.parts[STATE]  # (samples, length, heads, head_width)
        if way is not None:
            replaced = self.parts[part]  # (samples, length, heads, head_width)
            new = self.donors.origin(way, part).of(replaced)
            vectors = new if part == STATE else vectors - replaced + new
        vectors = vectors.transpose(1, 2)  # (samples, heads, length, head_width)
        if self.rotation is not None:
            vectors = self.rotation(vectors)
        return vectors * self.scale


# -- sums over a corpus --


class InterventionSums(StreamingSums):
    """Sums over rows of how far the heads of one attention move.

    Args:
        heads: numbers of the heads.

    Attributes:
        moved: total variation, (heads, ways, sides, parts), in the order of :data:`WAYS`, ``FACTOR_SIDES``
            and :data:`MOVED_PARTS`.
        rows: number of rows summed.
    """

    SUMS = ("moved", "rows")

    def __init__(self, heads: Collection[int]):
        self.heads = tuple(heads)
        sizes = (len(self.heads), len(WAYS), len(FACTOR_SIDES), len(MOVED_PARTS))
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
        query: _ReplaceableSide,
        keys: _ReplaceableSide,
        allowed: Bool[Tensor, "samples target source"],
        *,
        bias: Float[Tensor, "samples heads target source"] | None = None,
    ) -> "InterventionSums":
        """Add a batch, and return these sums.

        Args:
            query: the side of the queries.
            keys: the side of the keys.
            allowed: True where a query may see a key.
            bias: the position bias, which is added to the scores.
        """
        chosen = ChosenRows.of(allowed)
        if not len(chosen):
            return self

        def attention(queries: Tensor, keys: Tensor) -> Float[Tensor, "heads row source"]:
            scores = queries @ keys.mT  # (samples, heads, target, source)
            if bias is not None:
                scores = scores + bias
            rows = chosen.values(scores.transpose(0, 1))  # (heads, row, source)
            return softmax_over(rows.double(), chosen.valid)

        old_queries, old_keys = query.vectors(), keys.vectors()
        before = attention(old_queries, old_keys)  # (heads, row, source)
        for way_number, way in enumerate(WAYS):
            for part_number, part in enumerate(MOVED_PARTS):
                new_queries, new_keys = query.vectors(way, part), keys.vectors(way, part)
                after = {
                    "query": attention(new_queries, old_keys),
                    "keys": attention(old_queries, new_keys),
                    "both": attention(new_queries, new_keys),
                }
                for side_number, side in enumerate(FACTOR_SIDES):
                    moved = total_variation(after[side], before).sum(-1)  # (heads,)
                    self.moved[:, way_number, side_number, part_number] += moved.cpu()
        self.rows += len(chosen)
        return self

    def effects(self) -> Iterator[dict[str, Any]]:
        """Yield head, way, side, part, and how far attention moves; NaN without rows."""
        means = self.moved / self.rows  # (heads, ways, sides, parts); 0 / 0 is NaN
        numbered = (enumerate(names) for names in (self.heads, WAYS, FACTOR_SIDES, MOVED_PARTS))
        for entries in product(*numbered):
            index = tuple(number for number, _ in entries)
            head, way, side, part = (name for _, name in entries)
            yield {"head": head, "way": way, "side": side, "part": part, "moved": float(means[index])}


def donors_of(
    trace: Trace,
    place_components: Mapping[str, PlaceComponents],
    whole: Bool[Tensor, " batch"],
    *,
    leaves_out_unseen: bool,
    seed: int,
) -> dict[str, Donors]:
    """Draw for both sides of a batch where parts come from; all attentions of the batch share them.

    Args:
        trace: of the batch.
        place_components: components at the places of the whole samples, by name of the states.
        whole: True for samples that have a counted position on both sides.
        leaves_out_unseen: whether places that the fit has not seen provide no part, see
            :attr:`~attnlib.analysis.fit.Fit.leaves_out_unseen`.
        seed: of the draws.

    Returns:
        the donors by side, "source" and "target".
    """
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(int(whole.sum()), generator=draw)
    donors = {}
    for site, (side, _) in sorted(trace.sites().items()):
        if side in donors:
            continue
        mask = trace.counted(side)[whole]
        if leaves_out_unseen:
            mask = mask & place_components[site].known
        donors[side] = Donors.drawn(mask, order, draw)
    return donors


def add_interventions(
    sums: InterventionSums,
    head_terms: AttentionTerms,
    *,
    place_components: Mapping[str, PlaceComponents],
    whole: Bool[Tensor, " batch"],
    donors: tuple[Donors, Donors],
) -> None:
    """Add the effects of all interventions on the heads of an attention.

    Args:
        sums: of this attention; changed in place.
        head_terms: the attention and the terms of its heads.
        place_components: components at the places of the whole samples, by name of the states.
        whole: True for samples that have a counted position on both sides.
        donors: of the side of the queries and of the side of the keys.
    """
    attention = head_terms.attention
    query_donors, key_donors = donors
    query_map = attention.query_map.of_heads(head_terms.heads)
    key_map = attention.key_map.of_heads(head_terms.heads)
    query = _ReplaceableSide.of(
        query_map,
        attention.query_inputs[whole],
        place_components[attention.query_site],
        rotation=attention.query_rotation,
        donors=query_donors,
        scale=attention.scale,
    )
    keys = _ReplaceableSide.of(
        key_map,
        attention.key_inputs[whole],
        place_components[attention.key_site],
        rotation=attention.key_rotation,
        donors=key_donors,
    )
    bias = attention.position_bias
    if bias is not None:
        of_batch = bias.expand(len(whole), -1, -1, -1)  # (batch, heads, target, source)
        bias = of_batch[whole][:, head_terms.heads]
    sums.update(query, keys, head_terms.known_pairs, bias=bias)


# -- rows of the results --


def intervention_rows(sums: Mapping[str, InterventionSums]) -> list[dict]:
    """Return a row for each head, way, side and part, with the columns of :data:`INTERVENTION_COLUMNS`.

    Args:
        sums: by name of the attention, such as "cross.0".
    """
    rows = []
    for name, attention_sums in sums.items():
        kind, layer = kind_and_layer(name)
        columns = {"kind": kind, "layer": layer, "rows": attention_sums.rows}
        for effect in attention_sums.effects():
            row = columns | effect
            rows.append({column: row[column] for column in INTERVENTION_COLUMNS})
    return rows


def attributions(terms: Collection[Mapping[str, Any]], part: str, side: FactorSide) -> dict[str, float]:
    """Return the value of each attribution for a part of a head, larger for parts that should matter more.

    ``own``, ``split`` and ``any_term`` are covariance shares of the terms that the part enters on this side,
    see :mod:`attnlib.analysis.part_shares`; ``mean_absolute`` is the mean absolute share, split likewise;
    ``substitution`` is 1 − similarity of the attention rebuilt without the term of the part with itself. For
    one side alone, split and any-term shares hardly differ in rank: both count all terms that the part
    enters.

    Args:
        terms: rows of the terms of one head.
        part: "temporal", "input" or "residual".
        side: "query", "keys" or "both".

    Returns:
        the values by name of the attribution.
    """
    covariance = {row["term"]: row["covariance_share"] for row in terms}
    mean_absolute = {row["term"]: row["mean_absolute_share"] for row in terms}
    similarity = {row["term"]: row["similarity_without"] for row in terms}
    names = tuple(covariance)
    own_weights = weights_of(names, part, "own", side=side)
    split_weights = weights_of(names, part, "split", side=side)
    any_term_weights = weights_of(names, part, "any_term", side=side)
    return {
        "own": weighted_sum(covariance, own_weights),
        "split": weighted_sum(covariance, split_weights),
        "any_term": weighted_sum(covariance, any_term_weights),
        "mean_absolute": weighted_sum(mean_absolute, split_weights),
        "substitution": 1 - similarity[f"{part}·{part}"],
    }


def calibration_rows(
    terms: Iterable[Mapping[str, Any]], effects: Iterable[Mapping[str, Any]], even: Collection[Head] = ()
) -> list[dict]:
    """Return the rank correlation over heads between each attribution and the effect of each intervention.

    Args:
        terms: rows of the terms of all heads.
        effects: rows of :func:`intervention_rows`.
        even: the heads that attend almost uniformly, which are left out: their
            scores hardly vary, so that their shares are noise.

    Returns:
        rows with the columns of :data:`CALIBRATION_COLUMNS`.
    """
    terms_of_head: dict[Head, list] = defaultdict(list)
    for row in terms:
        terms_of_head[Head.of_row(row)].append(row)
    points: dict[_Comparison, list[tuple[float, float]]] = defaultdict(list)
    for row in effects:
        head = Head.of_row(row)
        if row["part"] == STATE or head in even:
            continue
        values = attributions(terms_of_head[head], row["part"], row["side"])
        for attribution, value in values.items():
            for part in (row["part"], EVERY_PART):
                comparison = _Comparison(row["kind"], row["way"], row["side"], part, attribution)
                points[comparison].append((value, row["moved"]))
    rows = []
    for comparison in sorted(points, key=_Comparison.order):
        pairs = points[comparison]
        row = comparison._asdict()
        row["rank_correlation"] = math.nan
        if len(pairs) >= FEWEST_POINTS:
            row["rank_correlation"] = spearman(np.array(pairs))
        row["heads"] = len(pairs)
        if comparison.part == EVERY_PART:
            row["heads"] = len(pairs) // len(STATE_PARTS)
        rows.append(row)
    return rows


class _Comparison(NamedTuple):
    """The two things that a rank correlation compares; fields as columns of :data:`CALIBRATION_COLUMNS`."""

    kind: str
    way: Way
    side: FactorSide
    part: str
    attribution: str

    def order(self) -> tuple[str, int, int, int, int]:
        return (
            self.kind,
            WAYS.index(self.way),
            FACTOR_SIDES.index(self.side),
            (*STATE_PARTS, EVERY_PART).index(self.part),
            ATTRIBUTIONS.index(self.attribution),
        )


def spearman(pairs: Float[np.ndarray, "points 2"]) -> float:
    """Return the rank correlation of two columns, ties at their mean rank; NaN where a column is constant.

    Example:
        >>> round(spearman(np.array([[1.0, 10.0], [2.0, 30.0], [2.0, 20.0], [4.0, 90.0]])), 4)
        0.9487
    """
    if not np.isfinite(pairs).all():
        return math.nan
    ranks = np.stack([_ranks(column) for column in pairs.T])  # (2, points)
    if (ranks.std(1) == 0).any():
        return math.nan
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    last_rank = counts.cumsum()  # of the values equal to each distinct value
    mean_rank = last_rank - (counts - 1) / 2
    return mean_rank[number]
