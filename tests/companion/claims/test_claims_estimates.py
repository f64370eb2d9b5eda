"""Numbers of a result: found by key, told with their interval, subtracted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.claims.estimates import CannotBeRun, Estimate, MissingKey, NotRun, difference, look_up

NOTHING = {"value": None, "low": None, "high": None, "n": 0}
VALUES = {
    "spearman": {"value": 0.6, "low": 0.2, "high": 0.9, "n": 18},
    "one_to_one": {"AO": {"typicality": {"value": 0.9, "low": 0.8, "high": 0.95, "n": 3}, "vocabulary": 7}},
    "undefined": {"value": None, "low": None, "high": None, "n": 3},
    "multi30k_en_fr": {"cannot_be_run": "data: Multi30k is not at hand"},
    "bad": {"failed": NOTHING, "not_run": "3 heads are bad"},
    "gap": NOTHING | {"not_run": "so too"},
    "text": "much",
    "truth": True,
}


def test_an_interval_and_a_bare_number_are_found_by_their_dotted_keys():
    assert look_up(VALUES, "one_to_one.AO.typicality") == Estimate(0.9, 0.8, 0.95, 3)
    assert look_up(VALUES, "one_to_one.AO.vocabulary") == Estimate(7.0)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("one_to_one.AOO.x", MissingKey, r"nothing named 'AOO' under 'one_to_one'\); did you mean 'AO'"),
        ("sperman", MissingKey, r"nothing named 'sperman' at the top.*did you mean 'spearman'"),
        ("one_to_one.AO", MissingKey, r"leads to a branch \(typicality, vocabulary\)"),
        ("text", MissingKey, "leads to 'much'"),
        ("truth", MissingKey, "leads to True"),
        ("multi30k_en_fr", CannotBeRun, "data: Multi30k is not at hand"),
        ("multi30k_en_fr.AO.typicality", CannotBeRun, "data: Multi30k is not at hand"),
        ("bad.failed", NotRun, "3 heads are bad"),
        ("gap", NotRun, "so too"),
        ("bad.faild", MissingKey, "did you mean 'failed'"),
    ],
)
def test_a_key_that_leads_to_no_number_says_why(key, error, message):
    with pytest.raises(error, match=message):
        look_up(VALUES, key)


def test_null_is_undefined():
    assert not look_up(VALUES, "undefined").defined
    assert str(look_up(VALUES, "undefined")) == "undefined"
    assert look_up(VALUES, "undefined").as_json() == {"value": None, "low": None, "high": None, "n": 3}


def test_how_a_number_is_told():
    assert str(Estimate(0.62, 0.55, 0.7, 5)) == "0.620 [0.550, 0.700], n = 5"
    assert str(Estimate(-0.5)) == "−0.500 (no interval)"
    assert str(Estimate(53.456, n=1)) == "53.5 (n = 1, no interval)"
    column = {"value": 0.62, "low": 0.55, "high": 0.7, "n": 5, "weakest_of": ["sms", "sst"]}
    assert str(look_up({"a": column}, "a")) == "0.620 [0.550, 0.700], n = 5, the weakest of 2: sms, sst"


def test_difference_of_independent_numbers_by_hand():
    # 10 (7 to 14) less 4 (0 to 8): arms 3 and 4 below, 4 and 4 above
    independent = difference(Estimate(10, 7, 14, 5), Estimate(4, 0, 8, 3), independent=True)
    assert independent == Estimate(6, 1, 6 + math.sqrt(32), 3)
    widest = difference(Estimate(10, 7, 14, 5), Estimate(4, 0, 8, 3), independent=False)
    assert widest == Estimate(6, -1, 14, 3)


def test_a_difference_without_both_intervals_has_none():
    assert difference(Estimate(10, 7, 14, 5), Estimate(4), independent=True) == Estimate(6, n=5)


@given(
    st.lists(st.integers(-100, 100), min_size=3, max_size=3),
    st.lists(st.integers(-100, 100), min_size=3, max_size=3),
)
def test_the_widest_interval_holds_the_independent_one_and_the_point(first, second):
    low, value, high = sorted(first)
    a, b = Estimate(value, low, high), Estimate(sorted(second)[1], min(second), max(second))
    narrow, wide = difference(a, b, independent=True), difference(a, b, independent=False)
    assert wide.low - 1e-9 <= narrow.low <= narrow.value <= narrow.high <= wide.high + 1e-9
