"""Correlations over families of tasks and along the dial, from points by hand."""

import numpy as np
import pytest

from notebooks.attend.temporal_share.experiment import _along_dial, _last_less_first, _of_families
from notebooks.shared.measure import ACROSS_SAMPLES
from notebooks.shared.suite import DIAL


def point(task, typicality, share, kind="AED"):
    names = (*ACROSS_SAMPLES, "residual_share")
    return {"task": task, "kind": kind, "typicality": typicality} | dict.fromkeys(names, share)


def test_a_share_that_falls_and_comes_back_differs_by_nothing_between_the_ends():
    """As the input share does in recurrent networks: its ranks rise all the same."""
    means = (0.016, 0.002, 0.004, 0.009, 0.018)
    found = _along_dial([point(task, 0.5, share) for task, share in zip(DIAL, means, strict=True)])
    assert found["input_share"]["value"] == pytest.approx(0.4)
    assert found["ends"]["input_share"]["value"] == pytest.approx(0.002)
    assert found["marks"] == 5


def test_the_ends_are_means_of_the_last_and_the_first_mark():
    assert _last_less_first(np.array([[0, 1.0], [0, 3], [1, 9], [4, 7], [4, 5]])) == 4


def test_two_marks_of_the_dial_tell_nothing_and_say_so():
    found = _along_dial([point(task, 0.5, 0.1) for task in (*DIAL[:2], "scan")])
    assert (found["marks"], found["temporal_share"]["value"], found["temporal_share"]["n"]) == (2, None, 0)
    assert found["ends"]["temporal_share"]["value"] is None


def test_marks_of_one_dial_are_one_family_and_widen_the_interval():
    """Five marks of a dial and one other task: as families, two draws in four are of one family alone."""
    rows = [point(task, at / 10, at / 10) for at, task in enumerate(DIAL)]
    rows += [point("scan", 0.8 + at / 100, 0.2 - at / 100) for at in range(5)]
    found = _of_families(rows)
    assert (found["networks"], found["families"]) == (len(DIAL) + 5, 2)
    interval = found["spearman"]["temporal_share"]
    assert interval["low"] < -0.9 < 0.9 < interval["high"]
    assert _of_families(rows[:-1])["networks"] == len(DIAL) + 4
