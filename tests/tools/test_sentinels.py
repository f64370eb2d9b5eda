"""Sentinels: which networks are trained anew, and what counts as the same."""

import math

import pytest

from companion.paths import ARCHIVE
from companion.results.answer import all_measurements
from companion.runs.archive import Archive
from tools.differences import Difference
from tools.sentinels import EQUAL, SHORTENED, choose, judge, size


def test_equal_numbers_are_equal():
    assert judge([], 10, EQUAL) == {"outcome": "equal"}


@pytest.mark.parametrize(
    ("largest", "mean", "outcome"),
    [
        pytest.param(0.2, 0.02, "within", id="small enough"),
        pytest.param(0.05, 0.02, "beyond", id="one is too large"),
        pytest.param(0.2, 0.01, "beyond", id="all together are too large"),
    ],
)
def test_differences_are_judged_by_the_largest_as_by_the_mean(largest, mean, outcome):
    differences = [Difference("loss", 0.5, 0.6), Difference("accuracy", 0.9, 0.91)]
    assert judge(differences, 10, {"largest": largest, "mean": mean})["outcome"] == outcome


def test_the_largest_difference_is_named():
    differences = [Difference("loss", 0.5, 0.6), Difference("accuracy", 0.9, 0.91)]
    assert judge(differences, 10, EQUAL)["largest"] == {"where": "loss", "archived": 0.5, "today": 0.6}


def test_what_has_no_tolerance_has_to_be_equal():
    assert judge([Difference("loss", 0.5, 0.50001)], 10, EQUAL)["outcome"] == "beyond"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(0.5, 0.75, 0.25, id="below one, as it is"),
        pytest.param(100.0, 50.0, 0.5, id="above one, relative to the larger"),
        pytest.param(1.0, "nothing", math.inf, id="no number"),
    ],
)
def test_how_far_two_values_are_apart(before, now, expected):
    assert size(Difference("x", before, now)) == expected


@pytest.fixture(scope="module")
def chosen():
    return choose(Archive(ARCHIVE), all_measurements("paper"))


@pytest.mark.slow
def test_each_kind_of_training_in_the_archive_has_one_sentinel_or_a_reason(chosen):
    sentinels, missing = chosen
    kinds = {run.line["training"] for run in Archive(ARCHIVE).runs()}
    assert sorted([sentinel.kind for sentinel in sentinels] + [*missing]) == sorted(kinds)


@pytest.mark.slow
def test_only_what_needs_a_translator_has_no_sentinel(chosen):
    _, missing = chosen
    assert set(missing) == {"translation_proxy"}


@pytest.mark.slow
def test_all_sentinels_take_less_than_half_an_hour_on_two_cores(chosen):
    sentinels, _ = chosen
    whole = [sentinel for sentinel in sentinels if sentinel.kind not in SHORTENED]
    assert sum(sentinel.seconds for sentinel in whole) < 30 * 60


@pytest.mark.slow
def test_a_shortened_training_has_the_other_settings_of_the_archived_one(chosen):
    (translation,) = [sentinel for sentinel in chosen[0] if sentinel.kind == "translation"]
    archived, anew = translation.measurements[0].spec, translation.anew[0].spec
    assert dict(anew.settings) == dict(archived.settings) | {"steps": 500}


@pytest.mark.slow
def test_a_shortened_training_has_the_seed_of_the_archived_one(chosen):
    (translation,) = [sentinel for sentinel in chosen[0] if sentinel.kind == "translation"]
    archived, anew = translation.measurements[0].spec, translation.anew[0].spec
    assert anew.seed == archived.seed
