"""Correlations over families and along the dial from points by hand, and the published ones by scipy."""

import pandas as pd
import pytest
from scipy.stats import spearmanr

from companion.paths import PAPER
from companion.results.frames import Table
from companion.results.result import Result
from notebooks.attend.temporal_share import experiment
from notebooks.attend.temporal_share.experiment import LEARNED, POINT, SUITE
from notebooks.shared.suite import DIAL


def point(task, typicality, share, **others):
    """A network that has learned its task, with one number for all its shares but `others`."""
    numbers = dict.fromkeys((*experiment.QUANTITIES, "residual_share"), share)
    network = {"task": task, "architecture": "AED", "cell": "gru", "seed": 0, "kind": "AED", "learned": True}
    return network | {"typicality": typicality} | numbers | others


def networks(*points):
    return Table.of(points, SUITE | LEARNED | POINT, "a trained network")


def estimate(table, quantity, **group):
    """The only row of a table for a group of networks and a quantity."""
    wanted = group | {"quantity": quantity}
    (row,) = (row for row in table.records() if wanted.items() <= row.items())
    return row


def of_two_families(scan=5):
    """Shares that rise along the dial, and fall over networks of one other task."""
    rising = [point(task, mark / 10, mark / 10) for mark, task in enumerate(DIAL)]
    falling = [point("scan", 0.8 + seed / 100, 0.2 - seed / 100, seed=seed) for seed in range(scan)]
    return networks(*rising, *falling)


@pytest.mark.slow
def test_marks_of_one_dial_widen_the_interval_as_one_family():
    """Of two families, two draws in four are of one family alone."""
    interval = estimate(
        experiment.over_families(of_two_families()), "temporal_share", among="learned", kind="all"
    )
    assert interval["low"] < -0.9 < 0.9 < interval["high"]


def test_counts_are_of_networks_in_families():
    (all_kinds, *_) = experiment.counts(of_two_families(scan=4)).records()
    assert (all_kinds["networks"], all_kinds["families"]) == (len(DIAL) + 4, 2)


SHARE_THAT_COMES_BACK = (
    0.016,
    0.002,
    0.004,
    0.009,
    0.018,
)  # along the dial, as the input share of recurrent networks


def along(shares):
    marks = zip(DIAL, shares, strict=False)
    return networks(*(point(task, 0.5, 0.1, input_share=share) for task, share in marks))


@pytest.mark.slow
def test_ranks_of_a_share_that_recovers_rise_along_the_dial():
    interval = estimate(experiment.along_dial(along(SHARE_THAT_COMES_BACK)), "input_share", among="learned")
    assert interval["value"] == pytest.approx(0.4)


@pytest.mark.slow
def test_ends_of_the_dial_differ_by_their_means():
    interval = estimate(experiment.dial_ends(along(SHARE_THAT_COMES_BACK)), "input_share", among="learned")
    assert interval["value"] == pytest.approx(0.002)


def test_two_marks_of_the_dial_tell_nothing():
    two = networks(point(DIAL[0], 0.5, 0.1), point(DIAL[1], 0.5, 0.2), point("scan", 0.5, 0.3))
    assert not experiment.along_dial(two).records()
    assert not experiment.dial_ends(two).records()


@pytest.fixture(scope="module")
def published():
    """Numbers of the committed result, and a row for each of its networks that has learned its task."""
    result = Result.load(PAPER / "temporal_share.json")
    points = pd.DataFrame(result.tables["points"])
    return result.values["learned"], points[points["learned"]]


def rank_correlation(points, first, second):
    known = points[[first, second]].dropna().astype(float)
    return spearmanr(known[first], known[second]).statistic, len(known)


@pytest.mark.parametrize(
    "quantity", ["temporal_share", "temporal_split", "temporal_moves", "input_share", "input_split"]
)
def test_the_published_correlation_with_typicality_is_that_of_scipy(published, quantity):
    values, points = published
    expected, networks = rank_correlation(points, "typicality", quantity)
    estimated = values["spearman"][quantity]
    assert (estimated["value"], estimated["n"]) == (pytest.approx(expected, abs=1e-6), networks)


def test_the_published_correlation_along_the_dial_is_that_of_scipy(published):
    values, points = published
    on_dial = points[(points["kind"] == "AED") & points["task"].isin(DIAL)]
    on_dial = on_dial.assign(mark=on_dial["task"].map(DIAL.index))
    expected, networks = rank_correlation(on_dial, "mark", "temporal_share")
    estimated = values["dial"]["AED"]["temporal_share"]
    assert (estimated["value"], estimated["n"]) == (pytest.approx(expected, abs=1e-6), networks)


def test_the_published_fall_along_the_dial_is_the_difference_of_two_means(published):
    values, points = published
    means = points[points["kind"] == "AED"].groupby("task")["temporal_share"].mean()
    fall = values["dial"]["AED"]["ends"]["temporal_share"]["value"]
    assert fall == pytest.approx(means[DIAL[-1]] - means[DIAL[0]], abs=1e-6)


def test_no_published_correlation_is_outside_its_interval(published):
    for quantity, interval in published[0]["spearman"].items():
        assert interval["low"] <= interval["value"] <= interval["high"], quantity
