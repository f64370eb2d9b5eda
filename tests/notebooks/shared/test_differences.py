"""Differences between networks that share a seed."""

import math

import pandas as pd
import pytest

from companion.results.frames import Table
from companion.runs.columns import Column, share
from notebooks.shared.summaries import differences, summarise

COLUMNS = {"link": Column("link"), "seed": Column("seed"), "accuracy": share("right words")}


def networks(link, accuracies):
    rows = {"link": link, "seed": list(accuracies), "accuracy": list(accuracies.values())}
    return Table(pd.DataFrame(rows), COLUMNS, "a network")


def test_numbers_are_subtracted_seed_by_seed():
    difference = differences(networks("a", {0: 0.9, 1: 0.5}), networks("b", {1: 0.75, 0: 0.4}), ["accuracy"])
    assert difference.frame["accuracy"].tolist() == pytest.approx([0.5, -0.25])


def test_a_network_without_a_partner_is_left_out():
    difference = differences(networks("a", {0: 0.9, 2: 0.5}), networks("b", {0: 0.4, 1: 0.3}), ["accuracy"])
    assert difference.frame["seed"].tolist() == [0]


def test_a_difference_keeps_the_columns_of_the_first_networks():
    difference = differences(networks("a", {0: 0.9}), networks("b", {0: 0.4}), ["accuracy"])
    assert difference.frame["link"].tolist() == ["a"]


def test_the_interval_of_differences_of_shares_is_not_cut():
    difference = differences(networks("a", {0: 0.1, 1: 0.9}), networks("b", {0: 0.1, 1: 0.1}), ["accuracy"])
    (row,) = summarise(difference, ["link"], ["accuracy"]).records()
    assert difference.columns["accuracy"].range == (-math.inf, math.inf)
    assert row["low"] < 0


def test_a_number_that_no_network_has_makes_no_difference():
    networks_without = networks("a", {0: None, 1: None}), networks("b", {0: None, 1: None})
    difference = differences(*networks_without, ["accuracy"])
    assert difference.frame["accuracy"].isna().all()
