"""Verdicts worked by hand."""

import pytest

from companion.claims.estimates import Estimate
from companion.claims.verdicts import (
    UNDECIDED,
    Inequality,
    Order,
    Tolerance,
    Trend,
    Verdict,
    judge_values,
    weigh,
)

YES, PARTLY, NO = Verdict.REPRODUCED, Verdict.PARTLY, Verdict.NOT_REPRODUCED
RISES, FALLS = Trend(direction="positive"), Trend(direction="negative")


def limit(relation, threshold):
    return Inequality(relation=relation, threshold=threshold)


def within(absolute, published):
    return Tolerance(absolute=absolute, published=published)


@pytest.mark.parametrize(
    ("judge", "estimate", "verdict"),
    [
        (limit(">", 5), Estimate(7, 6, 8), YES),
        (limit(">", 5), Estimate(7, 5, 8), PARTLY),  # the end is not above 5
        (limit(">=", 5), Estimate(7, 5, 8), YES),
        (limit(">", 5), Estimate(5, 4, 8), NO),
        (limit(">", 5), Estimate(7), YES),  # no interval: the point decides
        (limit(">", 5), Estimate(5), NO),
        (limit("<", 5), Estimate(3, 2, 6), PARTLY),
        (limit("<", 5), Estimate(3, 2, 4), YES),
        (limit("<=", 5), Estimate(5, 5, 5), YES),
        (limit(">", 5), Estimate(float("nan")), NO),
        (limit("<", 5), Estimate(float("-inf")), NO),
        (RISES, Estimate(2, 1, 3), YES),
        (RISES, Estimate(2, 0, 3), PARTLY),  # 0 is not excluded
        (RISES, Estimate(0, 0, 0), NO),
        (FALLS, Estimate(-2, -3, -1), YES),
        (FALLS, Estimate(-2, -3, 1), PARTLY),
        (FALLS, Estimate(2, 1, 3), NO),
        (within(2, 53), Estimate(54, 52, 55), YES),
        (within(2, 53), Estimate(54, 52, 56), PARTLY),
        (within(2, 53), Estimate(54, 50, 55), PARTLY),
        (within(2, 53), Estimate(56, 52, 60), NO),  # the interval holds 53, the point is off
        (within(0.1, 53), Estimate(53.1), YES),  # 53.1 - 53 is more than 0.1 in floating point
        (within(0, 8180544), Estimate(8180544), YES),
        (within(0, 8180544), Estimate(8180545), NO),
        (Order(), Estimate(2, 1, 3), YES),
        (Order(), Estimate(2, 0, 3), PARTLY),
        (Order(), Estimate(-1, -3, 1), NO),
    ],
)
def test_one_estimate_against_one_statement(judge, estimate, verdict):
    assert weigh(judge, estimate) is verdict


VALUES = {
    "a": {"value": 7, "low": 6, "high": 8, "n": 3},
    "b": {"value": 4, "low": 3, "high": 6, "n": 3},
    "c": {"value": 1, "low": 0, "high": 2, "n": 3},
    "a_minus_b": {"value": 3, "low": 2, "high": 4, "n": 3},
    "there": {"cannot_be_run": "data: not at hand"},
}


def test_a_claim_with_several_keys_is_as_weak_as_its_weakest():
    verdicts = [judge_values(limit(">", 3), VALUES, keys).verdict for keys in ("a", "ab", "abc")]
    assert verdicts == [YES, PARTLY, NO]


def test_order_takes_the_interval_of_the_difference():
    # a - b is 3; widest 0 to 5, independent 3 - √(1 + 4) to 3 + √(1 + 1), paired 2 to 4
    assert judge_values(Order(), VALUES, ["a", "b"]).verdict is PARTLY
    assert judge_values(Order(independent=True), VALUES, ["a", "b"]).verdict is YES
    paired = judge_values(Order(paired="a_minus_b"), VALUES, ["a", "b"])
    assert paired.verdict is YES
    assert dict(paired.evidence) == {"a_minus_b": Estimate(3, 2, 4, 3)}
    assert judge_values(Order(), VALUES, ["b", "a"]).verdict is NO


def test_what_is_missing_is_not_run_while_models_are_not_trained():
    """A lowest accuracy of no networks is None, and has no count of them."""
    for values in ({}, {"a": None}, {"a": {"value": None, "low": None, "high": None, "n": 0}}):
        judgement = judge_values(limit(">", 3), values, ["a"], ["toy AED: 3"])
        assert (judgement.verdict, judgement.miswired) == (Verdict.NOT_RUN, False)
        assert judgement.reason == "models not trained yet (toy AED: 3)"
    assert judge_values(limit(">", 3), VALUES, ["a"], ["toy AED: 3"]).verdict is YES


@pytest.mark.parametrize(
    ("judge", "span", "reason"),
    [
        (within(0.01, 0), (-0.08, -0.25, 0.09), UNDECIDED),  # holds the whole band, and neither end does
        (within(0.01, 0), (-0.08, -0.25, -0.005), UNDECIDED),
        (within(0.01, 0), (-0.13, -0.21, -0.04), ""),
        (limit(">", 0), (-0.1, -0.3, 0.1), UNDECIDED),
        (limit(">", 0), (-0.1, -0.3, -0.01), ""),
        (FALLS, (0.1, -0.1, 0.3), UNDECIDED),
        (FALLS, (0.1, None, None), ""),
    ],
)
def test_a_point_that_fails_with_an_interval_that_does_not_is_called_undecided(judge, span, reason):
    values = {"a": dict(zip(("value", "low", "high"), span, strict=True)) | {"n": 3}}
    judgement = judge_values(judge, values, ["a"])
    assert (judgement.verdict, judgement.reason) == (NO, reason)


def test_one_key_that_speaks_against_it_decides():
    values = {"open": {"value": -1, "low": -3, "high": 2}, "no": {"value": -1, "low": -2, "high": -0.5}}
    values["yes"] = {"value": 1, "low": 0.5, "high": 2}
    reasons = [judge_values(limit(">", 0), values, ["open", other]).reason for other in ("no", "yes")]
    assert reasons == ["", UNDECIDED]


@pytest.mark.parametrize(
    ("keys", "verdict", "reason", "miswired"),
    [
        (["a", "d"], Verdict.NOT_RUN, "the result has no key 'd'", True),
        (["a", "there.AO.share"], Verdict.CANNOT_BE_RUN, "data: not at hand", False),
        (["bad.failed"], Verdict.NOT_RUN, "too few", False),  # no evidence against the statement
        (["bad.faild"], Verdict.NOT_RUN, "the result has no key 'bad.faild'", True),
        (["good"], NO, "undefined: good", False),
        (["nothing"], NO, "undefined: nothing", False),
    ],
)
def test_where_there_is_no_number(keys, verdict, reason, miswired):
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    values = VALUES | {"bad": {"failed": nothing, "not_run": "too few"}, "good": nothing | {"n": 3}}
    judgement = judge_values(limit(">", 3), values | {"nothing": None}, keys)
    assert (judgement.verdict, judgement.miswired) == (verdict, miswired)
    assert judgement.reason.startswith(reason)


def test_a_relative_tolerance_is_a_share_of_what_is_published():
    judge = Tolerance(relative=0.5).about(-50.0)
    assert (judge.allowed, judge.holds(-26), judge.holds(-24)) == (25, True, False)
