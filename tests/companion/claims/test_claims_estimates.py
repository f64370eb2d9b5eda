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
    "undefined": NOTHING | {"n": 3},
    "chosen": {"value": 0.62, "low": 0.55, "high": 0.7, "n": 5, "weakest_of": ["sms", "sst"]},
    "steps": [2, 4],
    "multi30k_en_fr": {"cannot_be_run": "data: Multi30k is not at hand"},
    "bad": {"failed": NOTHING, "not_run": "3 heads are bad"},
    "gap": NOTHING | {"not_run": "so too"},
    "text": "much",
    "truth": True,
}


@pytest.mark.parametrize(
    ("key", "found", "told"),
    [
        ("one_to_one.AO.typicality", Estimate(0.9, 0.8, 0.95, 3), "0.900 [0.800, 0.950], n = 3"),
        ("one_to_one.AO.vocabulary", Estimate(7.0), "7.000 (no interval)"),
        ("steps.1", Estimate(4.0), "4.000 (no interval)"),
        ("undefined", None, "undefined"),
        ("chosen", None, "0.620 [0.550, 0.700], n = 5, the weakest of 2: sms, sst"),
    ],
)
def test_a_number_is_found_by_its_dotted_key_and_told(key, found, told):
    assert str(look_up(VALUES, key)) == told
    assert found in (None, look_up(VALUES, key))


def test_how_a_number_without_an_interval_is_told():
    assert [str(Estimate(-0.5)), str(Estimate(53.456, n=1))] == [
        "−0.500 (no interval)",
        "53.5 (n = 1, no interval)",
    ]


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("one_to_one.AOO.x", MissingKey, r"nothing named 'AOO' under 'one_to_one'\); did you mean 'AO'"),
        ("sperman", MissingKey, r"nothing named 'sperman' at the top.*did you mean 'spearman'"),
        ("one_to_one.AO", MissingKey, r"leads to a branch \(typicality, vocabulary\)"),
        ("steps.2", MissingKey, "nothing named '2' under 'steps'"),
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


@pytest.mark.parametrize(
    ("second", "independent", "expected"),
    [
        # 10 (7 to 14) less 4 (0 to 8): arms 3 and 4 below, 4 and 4 above
        (Estimate(4, 0, 8, 3), True, Estimate(6, 1, 6 + math.sqrt(32), 3)),
        (Estimate(4, 0, 8, 3), False, Estimate(6, -1, 14, 3)),
        (Estimate(4), True, Estimate(6, 3, 10, 5)),  # a number of the data, not of runs, is exact
        (Estimate(4, n=1), True, Estimate(6, n=1)),  # no interval where one run has none
    ],
)
def test_differences_by_hand(second, independent, expected):
    assert difference(Estimate(10, 7, 14, 5), second, independent=independent) == expected


THREE = st.lists(st.integers(-100, 100), min_size=3, max_size=3).map(sorted)


@given(THREE, THREE)
def test_the_widest_interval_holds_the_independent_one_and_the_point(first, second):
    a, b = (Estimate(value, low, high) for low, value, high in (first, second))
    narrow, wide = difference(a, b, independent=True), difference(a, b, independent=False)
    assert wide.low - 1e-9 <= narrow.low <= narrow.value <= narrow.high <= wide.high + 1e-9
