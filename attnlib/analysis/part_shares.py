"""Shares that each part of the states has in a head's scores, in several readings of the shares of its terms.

A term is the product of a part of the query and a part of the key. The terms of a part with itself, and with
the constant that all states share, are its pure terms. All others are cross terms, of two different parts,
and the readings differ in how they count these:

    own share       no cross term
    split share     half of each; the other half is the other part's (the Shapley value of the two sides)
    any-term share  all of each, which then counts for both of its parts

Split shares of the three parts, and the share of a position bias, sum to one. Among the columns of the heads,
``temporal_share`` and ``input_share`` are own shares, and ``residual_share`` is an any-term share.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attnlib.analysis.heads import Head
from attnlib.decomposition.components import STATE_PARTS
from attnlib.decomposition.term_names import CONSTANT, POSITION_BIAS, group_of

FactorSide = Literal["query", "keys", "both"]
Reading = Literal["own", "split", "any_term"]
FACTOR_SIDES: tuple[FactorSide, ...] = ("query", "keys", "both")
READINGS: tuple[Reading, ...] = ("own", "split", "any_term")

#: the columns of a row of :func:`part_rows`; all but the first four are shares of one
PART_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0",
    "head": "number of the head, from 0",
    "part": "of the states: temporal, input or residual",
    "own_share": "covariance share of the part's terms with itself and with the constant",
    "split_share": "own share and half of each cross term of the part; the three and the bias sum to one",
    "split_low": "lower end of the interval of 95 % of the split share; NaN where there is none",
    "split_high": "upper end of it",
    "any_term_share": "covariance share of all terms that the part is a side of",
    "query_share": "covariance share of all terms with this part of the query",
    "keys_share": "covariance share of all terms with this part of the keys",
    "mean_absolute_share": "mean absolute shares of terms, split as for the split share",
}


def weights_of(
    terms: Iterable[str], part: str, reading: Reading, *, side: FactorSide = "both"
) -> dict[str, float]:
    """Return the weight with which each term counts for a part; terms of weight zero are left out.

    Args:
        terms: names of terms, such as "temporal·input".
        part: one of `STATE_PARTS`.
        reading: "own", "split" or "any_term".
        side: the side whose part is meant. For one side alone the split reading leaves half of a part's term
            with itself to the other side, so that the weights of both sides add up to those of "both".

    Returns:
        weights from 0 to 1, by name of the term.

    Example:
        >>> names = ("temporal·temporal", "temporal·input", "constant·temporal", "input·input")
        >>> weights_of(names, "temporal", "split")
        {'temporal·temporal': 1.0, 'temporal·input': 0.5, 'constant·temporal': 1.0}
        >>> weights_of(names, "temporal", "split", side="query")
        {'temporal·temporal': 0.5, 'temporal·input': 0.5}
    """
    weights = {}
    for term in terms:
        if term == POSITION_BIAS:
            continue
        query, key = term.split("·")
        weight = 0.0
        if side == "both":
            weight = _weight(query, key, part=part, reading=reading)
        elif side == "query" and query == part:
            weight = _weight_of_side(part, key, reading)
        elif side == "keys" and key == part:
            weight = _weight_of_side(part, query, reading)
        if weight:
            weights[term] = weight
    return weights


def _weight(query: str, key: str, *, part: str, reading: Reading) -> float:
    """Return the weight of a term for a part of both sides."""
    is_pure = {query, key} <= {part, CONSTANT} and group_of(f"{query}·{key}") == part
    if is_pure:
        return 1.0
    if part not in (query, key) or reading == "own":
        return 0.0
    if reading == "split":
        return 0.5
    return 1.0


def _weight_of_side(part: str, other: str, reading: Reading) -> float:
    """Return the weight of a term for a part of one side, by the part of the other side."""
    if other == CONSTANT or reading == "any_term":
        return 1.0
    if reading == "split":
        return 0.5
    return 1.0 if other == part else 0.0


def weighted_sum(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the sum of shares times their weights; a share without a weight does not count."""
    return sum(weight * shares[term] for term, weight in weights.items())


def readings_of(
    covariance: Mapping[str, float], mean_absolute: Mapping[str, float], part: str
) -> dict[str, float]:
    """Return the shares of a part in every reading, by column of :data:`PART_COLUMNS`.

    For the nine terms of the papers, :meth:`attnlib.decomposition.shares.Shares.of_parts` returns the same
    shares. There queries are decoder states and keys are encoder states, so that ``query_share`` is
    ``decoder``, and ``keys_share`` is ``encoder``.

    Args:
        covariance: covariance shares of the terms of a head, by name of the term.
        mean_absolute: mean absolute shares of these terms.
        part: one of `STATE_PARTS`.

    Returns:
        shares of one, by column.

    Example:
        >>> covariance = {"temporal·temporal": 0.5, "temporal·residual": 0.5}
        >>> shares = readings_of(covariance, covariance, "residual")
        >>> shares["own_share"], shares["split_share"], shares["any_term_share"], shares["query_share"]
        (0, 0.25, 0.5, 0)
    """
    terms = tuple(covariance)
    own_weights = weights_of(terms, part, "own")
    split_weights = weights_of(terms, part, "split")
    any_term_weights = weights_of(terms, part, "any_term")
    query_weights = weights_of(terms, part, "any_term", side="query")
    key_weights = weights_of(terms, part, "any_term", side="keys")
    return {
        "own_share": weighted_sum(covariance, own_weights),
        "split_share": weighted_sum(covariance, split_weights),
        "any_term_share": weighted_sum(covariance, any_term_weights),
        "query_share": weighted_sum(covariance, query_weights),
        "keys_share": weighted_sum(covariance, key_weights),
        "mean_absolute_share": weighted_sum(mean_absolute, split_weights),
    }


def part_rows(heads: Iterable[Mapping[str, Any]], terms: Iterable[Mapping[str, Any]]) -> list[dict]:
    """Return a row for each part of each head, with the columns of :data:`PART_COLUMNS`.

    Args:
        heads: rows of the heads of an analysis. A head without terms has no rows, and a head whose row has no
            interval of the split shares, as in an analysis by an earlier version, has NaN instead.
        terms: rows of the terms of these heads.

    Returns:
        rows in the order of the heads and of `STATE_PARTS`.
    """
    covariance: dict[Head, dict[str, float]] = defaultdict(dict)  # by head and term
    mean_absolute: dict[Head, dict[str, float]] = defaultdict(dict)
    for row in terms:
        head = Head.of_row(row)
        covariance[head][row["term"]] = row["covariance_share"]
        mean_absolute[head][row["term"]] = row["mean_absolute_share"]
    rows = []
    for row in heads:
        head = Head.of_row(row)
        if head not in covariance:
            continue
        for part in STATE_PARTS:
            values = head.columns | {"part": part}
            values |= readings_of(covariance[head], mean_absolute[head], part)
            values["split_low"] = row.get(f"{part}_split_low", math.nan)
            values["split_high"] = row.get(f"{part}_split_high", math.nan)
            rows.append({column: values[column] for column in PART_COLUMNS})
    return rows
