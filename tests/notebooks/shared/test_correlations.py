"""Rank correlations and differences of ends, with a bootstrap over stated units."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from companion.results.frames import Table
from companion.runs.columns import Column
from notebooks.shared.summaries import Bootstrap, correlations, end_differences

NAMES = ("task", "network", "part", "typicality", "share", "other")
COLUMNS = {name: Column(name) for name in NAMES}
TASKS = Bootstrap(groups="task")
KEPT = Bootstrap(groups="task", draws_groups=False)


def points(**columns):
    return Table(pd.DataFrame(columns), COLUMNS, "a point")


def correlation(table, resampled=TASKS, **how):
    (row,) = correlations(table, "typicality", ["share"], resampled=resampled, **how).records()
    return row


def test_a_rank_correlation_by_hand():
    """Ranks differ by 1 at all four points: 1 − 6 · 4 / (4 · 15) = 0.6. One row a task: draws are equal."""
    table = points(task=list("abcd"), typicality=[1.0, 2.0, 3.0, 4.0], share=[0.2, 0.1, 0.4, 0.3])
    row = correlation(table, KEPT)
    assert (row["value"], row["low"], row["high"], row["n"]) == pytest.approx((0.6, 0.6, 0.6, 4))


def test_the_correlation_is_that_of_pandas():
    draw = np.random.default_rng(0)
    numbers = draw.integers(0, 6, size=(30, 2)).astype(float)  # with ties
    table = points(task=["a", "b", "c"] * 10, typicality=numbers[:, 0], share=numbers[:, 1])
    expected = table.frame["typicality"].corr(table.frame["share"], method="spearman")
    assert correlation(table)["value"] == pytest.approx(expected)


def exact_percentiles(tasks):
    """Percentiles over all equally likely samples of a bootstrap that draws tasks of one point each."""
    values = []
    for drawn in product(tasks, repeat=len(tasks)):
        sample = pd.DataFrame(drawn)
        if sample.nunique().min() > 1:  # of a constant there is no correlation
            values.append(sample[0].corr(sample[1], method="spearman"))
    return np.quantile(values, [0.025, 0.975])


@pytest.mark.slow
def test_the_interval_is_that_of_all_samples_there_can_be():
    tasks = [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)]
    typicality, share = map(list, zip(*tasks, strict=True))
    row = correlation(points(task=list("abcde"), typicality=typicality, share=share))
    assert [row["low"], row["high"]] == pytest.approx(exact_percentiles(tasks), abs=0.05)


def test_rows_of_a_unit_are_drawn_together():
    """Points of one network rise, those of the other fall: 1 or −1 of a network alone, 0.8 of both."""
    rising, falling = [(1.0, 1.0), (4.0, 4.0)], [(2.0, 3.0), (3.0, 2.0)]
    typicality, share = map(list, zip(*rising, *falling, strict=True))
    table = points(task=["a"] * 4, network=[0, 0, 1, 1], typicality=typicality, share=share)
    row = correlation(table, Bootstrap(groups="task", units=["network"]))
    assert (row["value"], row["low"], row["high"], row["n"]) == pytest.approx((0.8, -1, 1, 2))


def test_a_unit_may_have_more_rows_than_another():
    table = points(task=["a"] * 4, network=[0, 0, 0, 1], typicality=[1.0, 2, 3, 4], share=[4.0, 3, 2, 1])
    row = correlation(table, Bootstrap(groups="task", units=["network"]))
    assert (row["value"], row["n"]) == (-1, 2)


def test_a_row_that_lacks_a_number_is_left_out():
    table = points(task=list("abcd"), typicality=[1.0, 2, 3, None], share=[1.0, 2, 3, 0])
    row = correlation(table)
    assert (row["value"], row["n"]) == (1, 3)


def test_of_two_rows_nothing_is_said():
    row = correlation(points(task=["a", "b"], typicality=[1.0, 2], share=[1.0, 2]))
    assert (row["value"], row["low"], row["high"], row["n"]) == (None, None, None, 2)


def test_a_constant_has_no_correlation():
    row = correlation(points(task=list("abc"), typicality=[1.0, 2, 3], share=[1.0, 1, 1]))
    assert (row["value"], row["n"]) == (None, 3)


def test_parts_of_a_table_are_correlated_by_themselves():
    columns = {"task": list("abc") * 2, "part": ["x"] * 3 + ["y"] * 3}
    table = points(**columns, typicality=[1.0, 2, 3] * 2, share=[1.0, 2, 3, 3, 2, 1])
    rows = correlations(table, "typicality", ["share"], by=["part"], resampled=TASKS).records()
    assert [(row["part"], row["value"]) for row in rows] == [("x", 1), ("y", -1)]


def test_a_table_without_rows_has_an_estimate_of_nothing():
    empty = points(task=[], typicality=[], share=[])
    assert correlation(empty)["n"] == 0


def test_the_categories_of_quantities_are_those_named():
    table = points(task=list("abc"), typicality=[1.0, 2, 3], share=[1.0, 2, 3], other=[3.0, 2, 1])
    result = correlations(table, "typicality", ["share", "other"], resampled=TASKS)
    assert result.frame["quantity"].tolist() == list(result.columns["quantity"].categories)


def test_a_row_says_along_which_number_it_is():
    table = points(task=list("abc"), typicality=[1.0, 2, 3], share=[1.0, 2, 3])
    assert correlation(table)["along"] == "typicality"


def test_the_same_rows_have_the_same_interval():
    draw = np.random.default_rng(1).random((2, 12))
    table = points(task=list("abc") * 4, typicality=draw[0], share=draw[1])
    assert correlation(table) == correlation(table)


def test_another_seed_draws_other_samples():
    draw = np.random.default_rng(1).random((2, 12))
    table = points(task=list("abc") * 4, typicality=draw[0], share=draw[1])
    assert correlation(table)["low"] != correlation(table, Bootstrap(groups="task", seed=1))["low"]


def test_ends_differ_by_their_means():
    """5 and 7 at the last mark, 1 and 3 at the first; the mark between does not count."""
    table = points(task=list("abcde"), typicality=[0.0, 0, 1, 4, 4], share=[1.0, 3, 9, 7, 5])
    (row,) = end_differences(table, "typicality", ["share"], resampled=KEPT).records()
    assert (row["value"], row["n"]) == (4, 5)
