"""Readings of nine covariance shares and effects of exchange, worked by hand."""

import pytest

from attnlib.decomposition.components import STATE_PARTS
from notebooks.shared.readings import effects_of_exchange, readings

# A temporal query meets temporal keys in 0.2, input keys in 0.1 and residual keys in 0.4; the rest is two own
# terms and a residual query with temporal keys.
SHARES = {
    "temporal_temporal": 0.2, "temporal_input": 0.1, "temporal_residual": 0.4,
    "input_temporal": 0.0, "input_input": 0.1, "input_residual": 0.0,
    "residual_temporal": 0.1, "residual_input": 0.0, "residual_residual": 0.1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("reading", "share"),
    [
        ("temporal_own", 0.2),
        ("temporal_split", 0.2 + (0.1 + 0.4 + 0.1) / 2),
        ("input_split", 0.1 + 0.1 / 2),
        ("residual_split", 0.1 + (0.4 + 0.1) / 2),
        ("temporal_any", 0.2 + 0.1 + 0.4 + 0.1),
        ("query_temporal", 0.7),
        ("keys_temporal", 0.3),
        ("keys_residual", 0.5),
        ("input_delta_own", 0.1 + 0.1),
        ("temporal_input_delta", 0.1 + 0.4),
    ],
)
def test_a_reading_of_nine_shares_by_hand(reading, share):
    assert readings(SHARES)[reading] == pytest.approx(share)


def test_split_shares_divide_everything_between_the_parts():
    assert sum(readings(SHARES)[f"{part}_split"] for part in STATE_PARTS) == pytest.approx(1)


def test_an_effect_is_the_mean_over_both_sides():
    moved = {"decoder": 0.2, "encoder": 0.6}
    exchanged = {side: {part: {"variation": far} for part in STATE_PARTS} for side, far in moved.items()}
    effects = effects_of_exchange({"exchanged": exchanged})
    means = [effects[name] for name in ("query_input", "keys_input", "input")]
    assert means == pytest.approx([0.2, 0.6, 0.4])
