"""Verdicts worked by hand, and the numbers they rest on: found by key, told and subtracted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from companion.claims import verdicts
from companion.claims.estimates import Estimate, difference, look_up
from companion.claims.verdicts import Region, Verdict, judge_values, p_value
from tests.tables import beside

YES, OPEN, NO = Verdict.REPRODUCED, Verdict.UNDECIDED, Verdict.NOT_REPRODUCED
CANNOT, NOT_RUN = Verdict.CANNOT_BE_JUDGED, Verdict.NOT_RUN
GIVEN = beside(__file__, "verdicts")
VALUES = GIVEN["estimates"]


def within(distance, published):
    return Region(within=distance, published=published)


def contrast(how):
    return Region(above=0, contrast=how)


@pytest.mark.parametrize("row", GIVEN["statements"], ids=str)
def test_one_estimate_against_one_statement(row):
    judge = Region(**row["judge"])
    judge = judge.beyond(row["beyond"]) if "beyond" in row else judge
    expected = {(*estimate,): verdict for verdict in (YES, OPEN, NO) for estimate in row.get(verdict, ())}
    assert {estimate: verdicts.weigh(judge, Estimate(*estimate)) for estimate in expected} == expected != {}
    for value in (math.nan, math.inf, -math.inf):
        assert verdicts.weigh(judge, Estimate(value)) is CANNOT


@pytest.mark.parametrize(("parts", "verdict", "reason"), GIVEN["several_keys"])
def test_a_claim_with_several_keys_claims_all_of_them(parts, verdict, reason):
    values = dict(zip((YES, OPEN, NO), (VALUES[key] for key in "abc"), strict=True)) | {CANNOT: None}
    judgement = judge_values(Region(above=3), values, parts)
    assert (judgement.verdict, judgement.reason) == (verdict, reason)
    assert judgement.parts.items() >= {part: part for part in parts if part != CANNOT}.items()


LEARNED = verdicts.Presupposition(**GIVEN["presupposed"]["learned"])


@pytest.mark.parametrize(("keys", "verdict", "reason"), GIVEN["presupposed"]["judged"])
def test_what_networks_have_not_learned_cannot_be_judged(keys, verdict, reason):
    """The mean decides: of 0.96, with an interval that begins at 0.9, the networks have learned it."""
    values = GIVEN["presupposed"]["values"]
    judgement = judge_values(Region(above=5), values, keys, presupposes=[LEARNED])
    assert judgement.verdict == verdict
    assert reason in judgement.reason
    if verdict == YES and "scan" in keys[0]:
        assert judgement.presupposed["scan.AED.accuracy"].value == 0.96


def test_a_contrast_has_a_smallest_effect():
    values = {"one": {"AED": {"x": 9, "accuracy": 1.0}, "AO": {"x": 5, "accuracy": 0.5}}}
    keys = ["one.AED.x", "one.AO.x"]
    assert judge_values(contrast("dependent"), values, keys, effects=[3]).verdict is YES
    assert judge_values(contrast("dependent"), values, keys, effects=[4]).verdict is NO


def test_both_keys_of_a_contrast_presuppose():
    values = {"one": {"AED": {"x": 9, "accuracy": 1.0}, "AO": {"x": 5, "accuracy": 0.5}}}
    keys = ["one.AED.x", "one.AO.x"]
    for turned in (keys, keys[::-1]):
        assert judge_values(contrast("dependent"), values, turned, presupposes=[LEARNED]).verdict is CANNOT


def test_each_key_has_its_smallest_effect():
    values = {"one": {"AED": {"x": 9, "accuracy": 1.0}, "AO": {"x": 5, "accuracy": 0.5}}}
    keys = ["one.AED.x", "one.AO.x"]
    rises = Region(above=0)
    for effects, verdict in (([8, 4], YES), ([8, 5], NO), ([9, 4], NO)):
        assert judge_values(rises, values, keys, effects=effects).verdict is verdict


def test_p_inverts_the_interval_at_the_nearest_edge():
    assert p_value(Region(above=5), Estimate(7, 5, 8)) == pytest.approx(0.05)  # the lower half is 2
    assert p_value(Region(below=5), Estimate(7, 5, 8)) == pytest.approx(0.05)  # against it just as much
    far = p_value(Region(above=9), Estimate(7, 5, 8))
    assert far == pytest.approx(0.0001, rel=0.2)  # 3.92 errors of 1/1.96
    assert p_value(within(2, 53), Estimate(54, 53, 55)) == pytest.approx(0.05)
    assert p_value(within(2, 53), Estimate(50, 40, 51)) == pytest.approx(0.05)
    for none in (Estimate(7), Estimate(7, 7, 7), Estimate(float("nan"), 1, 2)):
        assert p_value(Region(above=5), none) is None


@pytest.mark.parametrize("numbers", [(0.3, 0.5, 0.55), (0.2, 0.4, 0.5, 0.9, 0.4, 0.6)])
def test_p_of_few_runs_is_that_of_students_test(numbers):
    test = stats.ttest_1samp(numbers, 0.9)
    interval = Estimate(sum(numbers) / len(numbers), *test.confidence_interval(0.95), n=len(numbers))
    assert p_value(Region(below=0.9), interval) == pytest.approx(test.pvalue)


def p_of_refutation(*keys):
    return judge_values(Region(above=3), VALUES, keys).p


def test_a_refutation_needs_one_part():
    assert p_of_refutation("b") == pytest.approx(0.05)
    assert p_of_refutation("a", "b") == p_of_refutation("b")  # the weakest of all


def test_a_refutation_pays_for_the_choice_of_its_part():
    assert p_of_refutation("b", "c") == pytest.approx(2 * p_of_refutation("c"))


def test_a_refutation_by_a_missing_number_has_no_p():
    assert judge_values(Region(above=3), VALUES | {"none": None}, ["a", "none"]).p is None


def test_p_of_a_refutation_is_at_most_one():
    assert verdicts.p_of_parts(NO, {str(n): (NO, 0.04) for n in range(30)}) == 1  # of however many parts


def test_a_statement_of_which_a_part_fails_is_open():
    parts = {"fails": (NO, 0.03), "holds": (YES, 0.001)}
    assert verdicts.verdict_of_parts(parts) is OPEN


def test_p_of_a_statement_left_open_is_that_of_its_failing_part():
    parts = {"fails": (NO, 0.03), "holds": (YES, 0.001)}
    assert verdicts.p_of_parts(OPEN, parts) == pytest.approx(2 * 0.03)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        pytest.param({"a": (NO, 0.001), "b": (YES, 0.01)}, YES, id="one part shows it"),
        pytest.param({"a": (NO, 0.001), "b": (YES, 0.03)}, OPEN, id="one of two may by chance"),
        pytest.param({"a": (NO, 0.001), "b": (NO, 0.02)}, NO, id="no part does"),
        pytest.param({"a": (NO, 0.001), "b": (OPEN, 0.5)}, OPEN, id="one may yet"),
        pytest.param({"a": (NO, 0.001), "b": (Verdict.CANNOT_BE_JUDGED, None)}, OPEN, id="one is not judged"),
    ],
)
def test_what_can_be_so_needs_one_part(parts, verdict):
    assert verdicts.verdict_if_one_is_enough(parts) is verdict


def test_p_of_what_one_part_can_show_pays_for_its_choice():
    parts = {"shows": (YES, 0.01), "does not": (NO, 0.001)}
    assert verdicts.p_of_parts(YES, parts, one_is_enough=True) == pytest.approx(2 * 0.01)


def test_a_bound_from_below_has_no_upper_end():
    bound = look_up({"x": {"value": 3, "low": 2, "high": None, "n": 3, "at_least": True}}, "x")
    assert (bound.ends, str(bound)) == ((2, math.inf), "at least 2.000, n = 3")
    assert verdicts.weigh(Region(above=1), bound) is YES
    assert verdicts.weigh(Region(below=9), bound) is OPEN  # the truth may be anywhere above
    assert p_value(Region(below=9), bound) is None


def test_an_interval_of_no_length_is_told_as_what_it_is():
    assert str(Estimate(1, 1, 1, 10)) == "1.000 (n = 10, the same in each)"


def test_a_part_that_may_fail_by_chance_leaves_a_statement_open():
    def interval(value, half):
        return {"value": value, "low": value - half, "high": value + half}

    values = {"good": interval(2, 1), "just": interval(-1, 0.9), "far": interval(-1, 0.5), "count": -1}

    def verdict(*keys):
        return judge_values(Region(above=0), values, keys).verdict

    assert verdict("just") is NO  # p = 0.029, which twice is more than 0.05
    assert verdict("good", "just") is OPEN
    assert verdict("good", "just", "far") is NO
    assert verdict("good", "just", "count") is NO  # a count is sure
    nothing = judge_values(Region(above=0), values | {"nothing": None}, ["nothing", "just"])
    assert nothing.verdict is Verdict.CANNOT_BE_JUDGED


@pytest.mark.parametrize(("p", "verdict"), [(0.025, NO), (0.0251, OPEN)])
def test_one_part_of_two_refutes_up_to_half_of_the_level(p, verdict):
    assert verdicts.verdict_of_parts({"one": (NO, p), "other": (YES, 0.9)}) is verdict


@pytest.mark.parametrize(("p", "verdict"), [(0.025, YES), (0.0251, OPEN)])
def test_one_part_of_two_shows_up_to_half_of_the_level_what_can_be_so(p, verdict):
    assert verdicts.verdict_if_one_is_enough({"one": (YES, p), "other": (NO, 0.9)}) is verdict


def test_a_contrast_takes_the_interval_of_the_difference():
    # a - b is 3; widest 0 to 5, independent 3 - √(1 + 4) to 3 + √(1 + 1), paired 2 to 4
    assert judge_values(contrast("dependent"), VALUES, ["a", "b"]).verdict is OPEN
    assert judge_values(contrast("independent"), VALUES, ["a", "b"]).verdict is YES
    paired = judge_values(contrast("a_minus_b"), VALUES, ["a", "b"])
    assert paired.verdict is YES
    assert dict(paired.evidence) == {"a_minus_b": Estimate(3, 2, 4, 3)}
    assert judge_values(contrast("independent"), VALUES, ["b", "a"]).verdict is NO


def test_what_is_missing_is_not_run_while_models_are_not_trained():
    """A lowest accuracy of no networks is None, and has no count of them."""
    for values in ({}, {"a": None}, {"a": {"value": None, "low": None, "high": None, "n": 0}}):
        judgement = judge_values(Region(above=3), values, ["a"], ["toy AED: 3"])
        assert (judgement.verdict, judgement.miswired) == (NOT_RUN, False)
        assert judgement.reason == "models not trained yet (toy AED: 3)"
    assert judge_values(Region(above=3), VALUES, ["a"], ["toy AED: 3"]).verdict is YES


def test_a_relative_tolerance_is_a_share_of_what_is_published():
    judge = Region(within_fraction=0.5).about(-50.0)
    assert (judge.allowed, judge.holds(-26), judge.holds(-24)) == (25, True, False)


RESULT = GIVEN["values"]


@pytest.mark.parametrize(("key", "numbers", "text"), GIVEN["told"])
def test_a_number_has_a_dotted_key(key, numbers, text):
    assert str(look_up(RESULT, key)) == text
    assert numbers is None or look_up(RESULT, key) == Estimate(*numbers)


@pytest.mark.parametrize(("key", "verdict", "reason", "miswired"), GIVEN["no_number"])
def test_a_key_that_leads_to_no_number_decides_nothing(key, verdict, reason, miswired):
    judgement = judge_values(Region(above=0.1), RESULT, ["spearman", key])
    assert (judgement.verdict, judgement.miswired) == (verdict, miswired)


@pytest.mark.parametrize(("key", "verdict", "reason", "miswired"), GIVEN["no_number"])
def test_a_key_that_leads_to_no_number_says_why(key, verdict, reason, miswired):
    judgement = judge_values(Region(above=0.1), RESULT, ["spearman", key])
    assert reason in judgement.reason


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
def test_the_widest_interval_holds_the_others(first, second):
    a, b = (Estimate(value, low, high) for low, value, high in (first, second))
    narrow, wide = difference(a, b, independent=True), difference(a, b, independent=False)
    assert wide.low - 1e-9 <= narrow.low <= narrow.value <= narrow.high <= wide.high + 1e-9
