"""What a part of the states counts for, read from one network's nine covariance shares in several ways.

The nine shares sum to one. They are a matrix, decoder part by encoder part, and a part may be given

    own share     its product with itself alone, say μ·μ
    split share   that, and half of every term it is one side of: the Shapley value of the two sides, which
                  sums to one over the three parts
    any share     all of every term it is on either side of; over the three parts this sums to more than one
    side's share  all terms it is in on one side: the sum of its row (queries) or of its column (keys)

The readings differ by what they do with a term of two different parts. Pooled, input and residual are one
part, *input-delta*, all that is not temporal.
"""

from collections.abc import Iterable, Mapping

from attnlib.decomposition.components import STATE_PARTS
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns
from companion.runs.spec import ModelSpec
from notebooks.shared.measure import measure_interchange

SIDES = {"query": "decoder", "keys": "encoder"}  # as a reader calls them; as results do


def _columns_of_readings() -> Columns:
    """Return what each reading is, in the order in which :func:`readings` has them."""
    columns = {}
    for part in STATE_PARTS:
        columns |= {
            f"{part}_own": Column(f"covariance share of the product of the {part} part with itself"),
            f"{part}_split": Column(f"covariance shares of the {part} part, mixed terms halved"),
            f"{part}_any": Column(f"covariance share of all terms with the {part} part on either side"),
            f"query_{part}": Column(f"covariance share of all terms with the {part} part of queries"),
            f"keys_{part}": Column(f"covariance share of all terms with the {part} part of keys"),
        }
    pooled = "input and residual parts together"
    return columns | {
        "input_delta_own": Column(f"covariance share of the product of {pooled} with themselves"),
        "temporal_input_delta": Column(f"covariance share of temporal queries with {pooled} of keys"),
    }


def _columns_of_effects() -> Columns:
    """Return what each effect is, in the order in which :func:`effects_of_exchange` has them."""
    columns = {}
    for part in STATE_PARTS:
        moved = f"mean total variation of attention when the {part} part is exchanged"
        columns |= {
            part: Column(f"{moved}, mean over queries and keys"),
            f"query_{part}": Column(f"{moved} in the queries"),
            f"keys_{part}": Column(f"{moved} in the keys"),
        }
    return columns


READINGS = _columns_of_readings()
EFFECTS = _columns_of_effects()


def readings(shares: Mapping[str, float]) -> dict[str, float]:
    """Return every reading of nine covariance shares.

    Args:
        shares: by ``<decoder part>_<encoder part>``, as ``measure_alignment_terms`` has them.

    Returns:
        ``<part>_own``, ``<part>_split``, ``<part>_any``, ``query_<part>`` and ``keys_<part>`` of each part;
        ``input_delta_own``, the four terms of pooled input and residual; ``temporal_input_delta``, a temporal
        query with pooled keys.

    >>> names = [f"{first}_{second}" for first in STATE_PARTS for second in STATE_PARTS]
    >>> numbers = readings(dict(zip(names, [0.4, 0, 0.2, 0, 0.1, 0, 0, 0, 0.3])))
    >>> [round(numbers[f"temporal_{reading}"], 3) for reading in ("own", "split", "any")]
    [0.4, 0.5, 0.6]
    """
    query = {part: sum(shares[f"{part}_{other}"] for other in STATE_PARTS) for part in STATE_PARTS}
    keys = {part: sum(shares[f"{other}_{part}"] for other in STATE_PARTS) for part in STATE_PARTS}
    numbers = {}
    for part in STATE_PARTS:
        alone = shares[f"{part}_{part}"]
        numbers |= {
            f"{part}_own": alone,
            f"{part}_split": (query[part] + keys[part]) / 2,
            f"{part}_any": query[part] + keys[part] - alone,
            f"query_{part}": query[part],
            f"keys_{part}": keys[part],
        }
    pooled = STATE_PARTS[1:]
    return numbers | {
        "input_delta_own": sum(shares[f"{first}_{second}"] for first in pooled for second in pooled),
        "temporal_input_delta": sum(shares[f"temporal_{second}"] for second in pooled),
    }


def exchange_measurements(
    specs: Iterable[ModelSpec], fit_samples: int, samples: int
) -> tuple[Measurement, ...]:
    """Ask of each network what exchanging parts of its states does; two figures ask the same."""
    return measurements_of(specs, measure_interchange, fit_samples=fit_samples, samples=samples)


def effects_of_exchange(exchanges: Mapping) -> dict[str, float]:
    """Return how far attention moves when a part is exchanged.

    ``query_<part>`` in the queries, ``keys_<part>`` in the keys, ``<part>`` the mean of both.

    Args:
        exchanges: what ``measure_interchange`` found of one network.
    """
    moved = exchanges["exchanged"]
    effects = {}
    for part in STATE_PARTS:
        query, keys = (float(moved[side][part]["variation"]) for side in SIDES.values())
        effects |= {part: (query + keys) / 2, f"query_{part}": query, f"keys_{part}": keys}
    return effects
