"""Intervals over models, and on which side of a threshold they are."""

import pytest

from companion.book.intervals import side
from notebooks.shared.sentences import over_models


def interval(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


UNDEFINED = {"value": None, "low": None, "high": None, "n": 0}
ALONE = {"value": 0.3, "low": None, "high": None, "n": 1}


def test_an_interval_is_on_a_side_only_as_a_whole():
    sides = [side(found) for found in (interval(0.1), interval(-0.1), interval(0.01), ALONE, UNDEFINED)]
    assert sides == ["above", "below", "open", "open", "open"]
    assert side(interval(0.6), 0.5) == "above"


def test_one_model_has_no_interval_and_none_no_mean():
    assert over_models([0.5]) == {"value": 0.5, "low": None, "high": None, "n": 1}
    assert over_models([None]) == UNDEFINED
    found = over_models([0.4, 0.6])  # 0.5 ± 12.706 · 0.1
    assert found["low"] == pytest.approx(0.5 - 1.2706, abs=1e-4)
