"""Correlations over families of tasks and along the dial, from points by hand."""

from notebooks.attend.temporal_share.experiment import _of_families
from notebooks.shared.measure import ACROSS_SAMPLES
from notebooks.shared.suite import DIAL


def point(task, typicality, share, kind="AED"):
    names = (*ACROSS_SAMPLES, "residual_share")
    return {"task": task, "kind": kind, "typicality": typicality} | dict.fromkeys(names, share)


def test_marks_of_one_dial_are_one_family_and_widen_the_interval():
    """Five marks of a dial and one other task: as families, two draws in four are of one family alone."""
    rows = [point(task, at / 10, at / 10) for at, task in enumerate(DIAL)]
    rows += [point("scan", 0.8 + at / 100, 0.2 - at / 100) for at in range(5)]
    found = _of_families(rows)
    assert (found["networks"], found["families"]) == (len(DIAL) + 5, 2)
    interval = found["spearman"]["temporal_share"]
    assert interval["low"] < -0.9 < 0.9 < interval["high"]
    assert _of_families(rows[:-1])["networks"] == len(DIAL) + 4
