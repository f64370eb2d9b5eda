"""Verdicts worked by hand."""

import pytest

from attnlib.companion.estimates import Estimate
from attnlib.companion.verdicts import (
    UNDECIDED,
    Inequality,
    Order,
    Tolerance,
    Trend,
    Verdict,
    judge_values,
    read_judge,
    weakest,
    weigh,
)
from attnlib.errors import BadInput, UnknownName

YES, PARTLY, NO = Verdict.REPRODUCED, Verdict.PARTLY, Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("judge", "estimate", "verdict"),
    [
        (Inequality(">", 5), Estimate(7, 6, 8), YES),
        (Inequality(">", 5), Estimate(7, 5, 8), PARTLY),  # the end is not above 5
        (Inequality(">=", 5), Estimate(7, 5, 8), YES),
        (Inequality(">", 5), Estimate(5, 4, 8), NO),
        (Inequality(">", 5), Estimate(7), YES),  # no interval: the point decides
        (Inequality(">", 5), Estimate(5), NO),
        (Inequality("<", 5), Estimate(3, 2, 6), PARTLY),
        (Inequality("<", 5), Estimate(3, 2, 4), YES),
        (Inequality("<=", 5), Estimate(5, 5, 5), YES),
        (Inequality(">", 5), Estimate(float("nan")), NO),
        (Inequality("<", 5), Estimate(float("-inf")), NO),
        (Trend(+1), Estimate(2, 1, 3), YES),
        (Trend(+1), Estimate(2, 0, 3), PARTLY),  # 0 is not excluded
        (Trend(+1), Estimate(2, -1, 3), PARTLY),
        (Trend(+1), Estimate(0, 0, 0), NO),
        (Trend(+1), Estimate(-2, -3, -1), NO),
        (Trend(-1), Estimate(-2, -3, -1), YES),
        (Trend(-1), Estimate(-2, -3, 1), PARTLY),
        (Trend(-1), Estimate(2, 1, 3), NO),
        (Tolerance(53, 2), Estimate(54, 52, 55), YES),
        (Tolerance(53, 2), Estimate(54, 52, 56), PARTLY),
        (Tolerance(53, 2), Estimate(54, 50, 55), PARTLY),
        (Tolerance(53, 2), Estimate(56, 52, 60), NO),  # the interval holds 53, the point is off
        (Tolerance(53, 0.1), Estimate(53.1), YES),  # 53.1 - 53 is more than 0.1 in floating point
        (Tolerance(8180544, 0), Estimate(8180544), YES),
        (Tolerance(8180544, 0), Estimate(8180545), NO),
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
    verdicts = [judge_values(Inequality(">", 3), VALUES, keys).verdict for keys in ("a", "ab", "abc")]
    assert verdicts == [YES, PARTLY, NO]
    assert weakest([YES, NO, PARTLY]) is NO


def test_order_takes_the_interval_of_the_difference():
    # a - b is 3; widest 0 to 5, independent 3 - √(1 + 4) to 3 + √(1 + 1), paired 2 to 4
    assert judge_values(Order(), VALUES, ["a", "b"]).verdict is PARTLY
    assert judge_values(Order(independent=True), VALUES, ["a", "b"]).verdict is YES
    paired = judge_values(Order(paired="a_minus_b"), VALUES, ["a", "b"])
    assert paired.verdict is YES
    assert dict(paired.evidence) == {"a_minus_b": Estimate(3, 2, 4, 3)}
    assert judge_values(Order(), VALUES, ["b", "a"]).verdict is NO


@pytest.mark.parametrize(
    ("judge", "span", "reason"),
    [
        (Tolerance(0, 0.01), (-0.08, -0.25, 0.09), UNDECIDED),  # holds the whole band, and neither end does
        (Tolerance(0, 0.01), (-0.08, -0.25, -0.005), UNDECIDED),
        (Tolerance(0, 0.01), (-0.13, -0.21, -0.04), ""),
        (Inequality(">", 0), (-0.1, -0.3, 0.1), UNDECIDED),
        (Inequality(">", 0), (-0.1, -0.3, -0.01), ""),
        (Trend(-1), (0.1, -0.1, 0.3), UNDECIDED),
        (Trend(-1), (0.1, None, None), ""),
    ],
)
def test_a_point_that_fails_with_an_interval_that_does_not_is_called_undecided(judge, span, reason):
    values = {"a": dict(zip(("value", "low", "high"), span, strict=True)) | {"n": 3}}
    judgement = judge_values(judge, values, ["a"])
    assert (judgement.verdict, judgement.reason) == (NO, reason)


def test_one_key_that_speaks_against_it_decides():
    values = {
        "open": {"value": -1, "low": -3, "high": 2, "n": 3},
        "no": {"value": -1, "low": -2, "high": -0.5, "n": 3},
    }
    assert judge_values(Inequality(">", 0), values, ["open", "no"]).reason == ""
    values["no"] = {"value": 1, "low": 0.5, "high": 2, "n": 3}
    assert judge_values(Inequality(">", 0), values, ["open", "no"]).reason == UNDECIDED


def test_a_missing_key_is_no_verdict_but_a_problem():
    judgement = judge_values(Inequality(">", 3), VALUES, ["a", "d"])
    assert (judgement.verdict, judgement.miswired) == (Verdict.NOT_RUN, True)
    assert "no key 'd'" in judgement.reason


def test_data_that_is_not_there_cannot_be_run():
    judgement = judge_values(Inequality(">", 3), VALUES, ["a", "there.AO.share"])
    assert (judgement.verdict, judgement.reason) == (Verdict.CANNOT_BE_RUN, "data: not at hand")
    assert not judgement.miswired


def test_numbers_without_a_network_are_no_evidence_against_the_statement():
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    values = {"bad": {"failed": nothing, "not_run": "too few"}, "good": {"failed": nothing | {"n": 3}}}
    judgement = judge_values(Inequality(">", 3), values, ["bad.failed"])
    assert (judgement.verdict, judgement.reason, judgement.miswired) == (Verdict.NOT_RUN, "too few", False)
    assert judge_values(Inequality(">", 3), values, ["bad.faild"]).miswired
    assert judge_values(Inequality(">", 3), values, ["good.failed"]).verdict is NO


def test_an_undefined_number_is_not_reproduced_and_named():
    judgement = judge_values(Inequality(">", 3), {"a": None}, ["a"])
    assert (judgement.verdict, judgement.reason) == (NO, "undefined: a")


def test_only_three_verdicts_rest_on_numbers():
    assert [verdict for verdict in Verdict if verdict.judged] == [NO, PARTLY, YES]
    classes = [verdict.css_class for verdict in Verdict]
    assert classes == [
        "by-construction",
        "cannot-be-run",
        "not-run",
        "not-reproduced",
        "partly",
        "reproduced",
    ]


def test_judges_are_read_from_their_fields():
    assert read_judge({"kind": "trend", "direction": "negative"}, None) == Trend(-1)
    assert read_judge({"kind": "inequality", "relation": "<=", "threshold": 2}, None) == Inequality("<=", 2.0)
    assert read_judge({"kind": "order", "independent": True}, None) == Order(None, True)
    assert read_judge({"kind": "tolerance", "absolute": 2}, 53.0) == Tolerance(53.0, 2.0)
    assert read_judge({"kind": "tolerance", "relative": 0.5}, -50.0) == Tolerance(-50.0, 25.0)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"kind": "tolerence", "absolute": 2}, UnknownName, "did you mean 'tolerance'"),
        ("trend", UnknownName, "no judge kind 'trend'"),
        ({"kind": "trend", "direction": "positve"}, UnknownName, "did you mean 'positive'"),
        ({"kind": "inequality", "relation": "=>", "threshold": 1}, UnknownName, "no relation"),
        (
            {"kind": "inequality", "relation": ">", "threshold": "1"},
            BadInput,
            "needs a number as 'threshold'",
        ),
        ({"kind": "inequality", "relation": ">", "treshold": 1}, BadInput, "did you mean 'threshold'"),
        ({"kind": "order", "paired": "a", "independent": True}, BadInput, "either paired or independent"),
        ({"kind": "tolerance"}, BadInput, "exactly one"),
        ({"kind": "tolerance", "absolute": 1, "relative": 1}, BadInput, "exactly one"),
        ({"kind": "tolerance", "absolute": True}, BadInput, "needs a number"),
    ],
)
def test_a_judge_that_cannot_be_read_says_what_was_expected(content, error, message):
    with pytest.raises(error, match=message):
        read_judge(content, 53.0)


def test_a_tolerance_needs_a_published_number():
    with pytest.raises(BadInput, match="one published number"):
        read_judge({"kind": "tolerance", "absolute": 1}, None)
