"""Estimates over networks and pairs of these: means and shares, with intervals."""

import pandas as pd
import pytest
from scipy import stats

from attnlib.errors import BadInput
from companion.results.frames import Table, joined
from companion.runs.columns import Column, share
from notebooks.shared.intervals import jackknife_interval, share_interval
from notebooks.shared.summaries import level_key, shares, summarise, summarise_pairs, wide
from tests.notebooks.worked import assert_answer

COLUMNS = {
    "task": Column("task"),
    "seed": Column("seed"),
    "accuracy": share("right words"),
    "loss": Column("loss"),
    "failed": Column("whether it failed"),
    "second_seed": Column("seed of the second network"),
}


def networks(**columns):
    return Table(pd.DataFrame(columns), COLUMNS, "a network")


def test_the_interval_of_a_group_is_students():
    losses = [1.0, 2.0, 4.0]
    (row,) = summarise(networks(task=["a"] * 3, seed=[0, 1, 2], loss=losses), ["task"], ["loss"]).records()
    low, high = stats.t.interval(0.95, 2, loc=7 / 3, scale=stats.sem(losses))
    assert (row["value"], row["low"], row["high"], row["n"]) == pytest.approx((7 / 3, low, high, 3))


def test_an_interval_ends_where_the_numbers_of_its_column_end():
    table = networks(task=["a"] * 2, seed=[0, 1], accuracy=[0.8, 1.0], loss=[0.8, 1.0])
    bounded, unbounded = summarise(table, ["task"], ["accuracy", "loss"]).records()
    assert (bounded["low"], bounded["high"]) == (0.0, 1.0)
    assert unbounded["low"] < 0 < 1 < unbounded["high"]


def test_a_renamed_column_keeps_its_interval():
    table = networks(task=["a"] * 2, seed=[0, 1], accuracy=[0.8, 1.0])
    renamed = Table(
        table.frame.rename(columns={"accuracy": "right"}), COLUMNS | {"right": COLUMNS["accuracy"]}, ""
    )
    before = summarise(table, ["task"], ["accuracy"]).frame.drop(columns="quantity")
    after = summarise(renamed, ["task"], ["right"]).frame.drop(columns="quantity")
    pd.testing.assert_frame_equal(before, after)


def test_a_network_without_the_number_is_left_out():
    table = networks(task=["a"] * 3, seed=[0, 1, 2], loss=[1.0, None, 3.0])
    (row,) = summarise(table, ["task"], ["loss"]).records()
    assert (row["value"], row["n"]) == (2.0, 2)


def test_rows_of_one_unit_are_refused_as_not_independent():
    table = networks(task=["a"] * 2, seed=[0, 0], loss=[1.0, 2.0])
    with pytest.raises(BadInput, match="seed"):
        summarise(table, ["task"], ["loss"])


def test_groups_are_in_the_order_of_their_first_network():
    table = networks(task=["b", "a"], seed=[0, 0], loss=[1.0, 2.0])
    assert [row["task"] for row in summarise(table, ["task"], ["loss"]).records()] == ["b", "a"]


def wide_row(**columns):
    quantities = {name: COLUMNS[name] for name in ("accuracy", "loss") if name in columns}
    table = wide(summarise(networks(**columns), ["task"], quantities), quantities, row="a task")
    (row,) = table.records()
    return row


def test_a_wide_row_has_each_quantity_with_its_ends():
    row = wide_row(task=["a"] * 2, seed=[0, 1], accuracy=[0.8, 1.0], loss=[2.0, 2.0])
    ends = {"accuracy_low": 0.0, "accuracy_high": 1.0, "loss_low": 2.0, "loss_high": 2.0}
    assert row == pytest.approx({"accuracy": 0.9, "loss": 2.0, **ends, "n": 2} | {"task": "a"})


def test_a_wide_row_counts_the_networks_of_its_most_complete_quantity():
    row = wide_row(task=["a"] * 2, seed=[0, 1], accuracy=[0.8, None], loss=[2.0, 2.0])
    assert row["n"] == 2


def test_groups_of_wide_rows_are_in_the_order_of_their_first_network():
    table = networks(task=["b", "a"], seed=[0, 0], loss=[1.0, 2.0])
    loss = {"loss": COLUMNS["loss"]}
    rows = wide(summarise(table, ["task"], loss), loss, row="a task").records()
    assert [row["task"] for row in rows] == ["b", "a"]


def test_a_unit_may_be_named_by_several_columns():
    table = networks(task=["a"] * 2, seed=[0, 0], second_seed=[1, 2], loss=[1.0, 2.0])
    (row,) = summarise(table, ["task"], ["loss"], unit=["seed", "second_seed"]).records()
    assert row["n"] == 2


def test_a_share_has_wilsons_interval():
    table = networks(task=["a"] * 4, seed=range(4), failed=[True, False, False, False])
    (row,) = shares(table, ["task"], ["failed"]).records()
    assert {name: row[name] for name in ("value", "low", "high", "n")} == share_interval(1, 4)


def test_a_mean_over_pairs_has_the_jackknifes_interval_over_networks():
    pairs = [(0, 1), (0, 2), (1, 2)]
    first, second = zip(*pairs, strict=True)
    table = networks(task=["a"] * 3, seed=first, second_seed=second, loss=[1.0, 2.0, 4.0])
    (row,) = summarise_pairs(table, ["task"], ["loss"]).records()
    of_pair = dict(zip(pairs, (1.0, 2.0, 4.0), strict=True))
    expected = jackknife_interval(
        range(3),
        lambda units: (
            sum(of_pair[pair] for pair in pairs if set(pair) <= set(units))
            / sum(set(pair) <= set(units) for pair in pairs)
        ),
    )
    assert {name: row[name] for name in ("value", "low", "high", "n")} == pytest.approx(expected)


def test_a_pair_that_comes_twice_is_refused():
    table = networks(task=["a"] * 2, seed=[0, 0], second_seed=[1, 1], loss=[1.0, 2.0])
    with pytest.raises(BadInput, match="seed, second_seed"):
        summarise_pairs(table, ["task"], ["loss"])


def test_joined_estimates_say_what_all_of_their_quantities_are():
    table = networks(task=["a"] * 2, seed=[0, 1], loss=[1.0, 2.0], failed=[True, False])
    both = joined([summarise(table, ["task"], ["loss"]), shares(table, ["task"], ["failed"])])
    assert both.frame["quantity"].tolist() == ["loss", "failed"]
    assert both.columns["quantity"].categories == {"loss": "loss", "failed": "whether it failed"}


@pytest.mark.parametrize(
    ("given", "expected"), [pytest.param((1.0e-4,), "0p0001", id="a_small_number_without_a_dot")]
)
def test_level_key_by_hand(given, expected):
    assert_answer(level_key(*given), expected)
