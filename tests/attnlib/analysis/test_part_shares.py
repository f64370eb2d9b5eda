"""What parts carry of the terms of heads, in every reading and on either side."""

import math

import pytest
import torch

from attnlib.analysis import Stream
from attnlib.analysis.part_shares import FACTOR_SIDES, PART_COLUMNS, READINGS, readings_of, weights_of
from attnlib.analysis.results import TERM_COLUMNS
from attnlib.decomposition import STATE_PARTS
from attnlib.decomposition.by_part import PART_AXES, ByPart
from attnlib.decomposition.shares import Shares
from attnlib.decomposition.term_names import CONSTANT, NINE, POSITION_BIAS
from attnlib.report import analyse
from tests.attnlib.analysis.builders import ALL, Toy

TWELVE = (*(f"{CONSTANT}·{key}" for key in STATE_PARTS), *NINE, POSITION_BIAS)


@pytest.fixture(scope="module", params=["means", "least_squares"])
def analysis(request):
    return analyse(Stream(Toy(ALL, bias=True), range(10)), method=request.param)


@pytest.mark.parametrize("names", [NINE, TWELVE], ids=["nine", "with a constant"])
def test_split_weights_give_away_each_term_once(names):
    given = dict.fromkeys(names, 0.0)
    for part in STATE_PARTS:
        for term, weight in weights_of(names, part, "split").items():
            given[term] += weight
    assert given.pop(POSITION_BIAS, 0.0) == 0.0
    assert set(given.values()) == {1.0}


@pytest.mark.parametrize("part", STATE_PARTS)
def test_both_sides_split_weights_add_up_to_those_of_the_part(part):
    both = dict.fromkeys(TWELVE, 0.0) | weights_of(TWELVE, part, "split")
    added = dict.fromkeys(TWELVE, 0.0)
    for side in ("query", "keys"):
        for term, weight in weights_of(TWELVE, part, "split", side=side).items():
            added[term] += weight
    assert added == both


def test_a_constant_query_is_no_part_of_the_query():
    """Nothing changes where the temporal part of a query does; that of the key is in it."""
    for reading in READINGS:
        assert "constant·temporal" not in weights_of(TWELVE, "temporal", reading, side="query")
        assert weights_of(TWELVE, "temporal", reading, side="keys")["constant·temporal"] == 1.0


def test_hand_worked_readings_of_a_head():
    """Half of the covariance is temporal·residual: the residual has all of it in any term, half split."""
    covariance = dict.fromkeys(NINE, 0.0) | {"temporal·temporal": 0.3, "temporal·residual": 0.5}
    covariance["input·input"] = 0.2
    readings = readings_of(covariance, covariance, "residual")
    columns = ("own_share", "split_share", "any_term_share", "query_share", "keys_share")
    assert [readings[column] for column in columns] == [0, 0.25, 0.5, 0, 0.5]


@pytest.mark.parametrize("part", STATE_PARTS)
def test_readings_of_nine_terms_are_the_shares_of_parts(part):
    matrix = torch.randn(3, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    table = ByPart.of(matrix, axes=PART_AXES)
    of_parts = Shares(table, table, entries=8, rows=2, rows_left_out=0).of_parts()
    covariance = dict(zip(NINE, matrix.flatten().tolist(), strict=True))
    readings = readings_of(covariance, covariance, part)
    assert readings["own_share"] == pytest.approx(of_parts.own[part])
    assert readings["split_share"] == pytest.approx(of_parts.split[part])
    assert readings["any_term_share"] == pytest.approx(of_parts.any_term[part])
    assert readings["query_share"] == pytest.approx(of_parts.decoder[part])
    assert readings["keys_share"] == pytest.approx(of_parts.encoder[part])
    assert readings["mean_absolute_share"] == pytest.approx(of_parts.mean_absolute[part])


def test_split_shares_with_the_bias_sum_to_one(analysis):
    parts = analysis.tables.parts()
    bias = analysis.tables.heads()["position_bias_share"]
    split = parts.groupby(["kind", "layer", "head"], sort=False)["split_share"].sum()
    assert list(split + bias.to_numpy()) == pytest.approx([1] * len(bias))


def test_columns_of_heads_are_shares_of_parts(analysis):
    parts = analysis.tables.parts().set_index(["kind", "layer", "head", "part"]).sort_index()
    for row in analysis.heads:
        of_head = parts.loc[row["kind"], row["layer"], row["head"]]
        assert row["temporal_share"] == pytest.approx(of_head["own_share"]["temporal"])
        assert row["input_share"] == pytest.approx(of_head["own_share"]["input"])
        assert row["residual_share"] == pytest.approx(of_head["any_term_share"]["residual"])
        for part in STATE_PARTS:
            assert row[f"{part}_split_share"] == pytest.approx(of_head["split_share"][part])
            assert row[f"{part}_split_low"] <= row[f"{part}_split_high"]


def test_an_earlier_analysis_has_split_shares_without_intervals(analysis):
    for row in analysis.heads:
        assert "temporal_split_low" in row
    earlier = [{name: value for name, value in row.items() if "split" not in name} for row in analysis.heads]
    changed = type(analysis)(
        earlier, analysis.terms, [], fitted=1, judged=1, held_out=False, method=analysis.method
    )
    parts = changed.tables.parts()
    assert all(map(math.isnan, parts["split_low"]))
    assert not parts["split_share"].isna().any()


def test_frames_have_the_columns_that_are_declared(analysis):
    assert list(analysis.tables.parts().columns) == list(PART_COLUMNS)
    columns = list(analysis.to_frame().columns)
    assert [name for name in columns if name not in ("query_part", "key_part")] == list(TERM_COLUMNS)
    assert columns[4:6] == ["query_part", "key_part"]


def test_readings_with_their_sides_are_known():
    assert (READINGS, FACTOR_SIDES) == (("own", "split", "any_term"), ("query", "keys", "both"))
