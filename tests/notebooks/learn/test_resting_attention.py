"""The spread over pairs of networks, in where attention rests, and its interval."""

import math
from functools import partial
from itertools import permutations
from statistics import fmean, stdev

import numpy as np
import pytest

from notebooks.learn.resting_attention.experiment import measure_apart, measure_resting, pair_spread
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import computed, tiny
from tests.notebooks.worked import assert_answer, recording_of_lists, store_of


def sums(values):
    return {(i, j): values[i] + values[j] for i, j in permutations(range(len(values)), 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0, 5.0), (3.0, -1.0, 4.0, 1.0), (0.0, 0.0, 2.0, 7.0, 1.0)])
def test_the_spread_of_sums_is_root_two_times_the_deviation_of_the_units(values):
    """Two units drawn at random have twice the variance of one, which ``stdev`` squared estimates."""
    assert pair_spread(sums(values))["value"] == pytest.approx(math.sqrt(2) * stdev(values))


def test_the_interval_of_four_units_covers_in_some_nine_cases_of_ten():
    generator = np.random.default_rng(1)
    intervals = [pair_spread(sums(generator.normal(size=4).tolist())) for _ in range(1_000)]
    assert fmean(
        interval["low"] <= math.sqrt(2) <= interval["high"] for interval in intervals
    ) == pytest.approx(0.89, abs=0.03)


def test_the_interval_of_a_spread_is_not_below_zero():
    one_apart = pair_spread(sums([0.0, 0.0, 0.0, 6.0]))
    assert 0 == one_apart["low"] < one_apart["value"] < one_apart["high"]


def test_the_spread_of_pairs_by_hand():
    one_apart = pair_spread(sums([0.0, 0.0, 0.0, 6.0]))
    assert one_apart["value"] == pytest.approx(math.sqrt(2) * 3)


def test_an_interval_takes_four_units():
    three, two = pair_spread(sums([0.0, 1.0, 5.0])), pair_spread(sums([0.0, 1.0]))
    assert (math.isnan(three["low"]), math.isnan(three["value"]), three["n"]) == (True, False, 3)
    assert (math.isnan(two["value"]), two["n"]) == (True, 2)


def test_units_that_are_alike_have_no_spread():
    alike = pair_spread(dict.fromkeys(permutations(range(5), 2), 0.1))
    assert (alike["value"], alike["low"], alike["high"]) == pytest.approx((0, 0, 0), abs=1e-7)


def test_a_pair_that_is_missing_is_left_out():
    spreads = sums([0.0, 1.0, 5.0, 2.0])
    del spreads[0, 1]
    assert pair_spread(spreads)["value"] > 0


RESTING_FIGURE = tiny("resting_attention")
BEGINS = {
    "texts": 9,
    "begin": 80,
    "end": 5,
    "begin_right": 100,
    "end_right": 90,
    "begin_weight": 30,
    "end_weight": 20,
}
RARER = {**BEGINS, "texts": 3, "begin": 0, "end": 10, "begin_right": 0}
ZERO_ALONE = {"of": {"seed": 0, "others": []}, "is": {"0": BEGINS, "1": RARER}}
ALIKE = {"all": {"both": {"agreement": 90, "chance": 8}}, "words": {"both": {"agreement": 51, "chance": 8}}}
APART = {"both": {"agreement": 10, "chance": 8}}
UNLIKE = {"all": APART, "words": {"both": {"agreement": 52, "chance": 8}}}
UNLIKE_TOO = {"all": APART, "words": {"both": {"agreement": 53, "chance": 8}}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Seeds 0 and 1 rest on the begin mark, right in 0 and 40 % of the rarer label; 2 on the end, in 90 %.
        # Without either of two networks no pair is left, so that their mean has no interval. Without one of
        # three the mean of all pairs is 10, 10 or 90; Student's t of two is 4.303, and 266 is cut.
        pytest.param(
            (
                RESTING_FIGURE,
                store_of(
                    [
                        ZERO_ALONE,
                        {
                            "of": {"seed": 1, "others": []},
                            "is": {"0": BEGINS, "1": {**RARER, "begin_right": 40}},
                        },
                        {
                            "of": {"seed": 2, "others": []},
                            "is": {"0": {**BEGINS, "begin": 5, "end": 80}, "1": {**RARER, "begin_right": 80}},
                        },
                        {"of": {"seed": 0, "others": [1]}, "is": ALIKE},
                        {"of": {"seed": 1, "others": [0]}, "is": ALIKE},
                        {"of": {"seed": 0, "others": [2]}, "is": UNLIKE},
                        {"of": {"seed": 2, "others": [0]}, "is": UNLIKE},
                        {"of": {"seed": 1, "others": [2]}, "is": UNLIKE_TOO},
                        {"of": {"seed": 2, "others": [1]}, "is": UNLIKE_TOO},
                    ]
                ),
            ),
            {
                "values.known_polarity": {
                    "common": "0",
                    "resting": {"begin": 2, "end": 1, "words": 0, "nowhere": 0},
                    "own_mark": {"right.1": {0: 0, 1: 40, 2: 90}, "default": 2, "n": 3},
                    "by_mark": {
                        "same.all": {
                            "mean.value": 90,
                            "mean.low": None,
                            "mean.n": 2,
                            "lowest": 90,
                            "highest": 90,
                            "n": 2,
                        },
                        "different.words": {
                            "mean.value": 52.5,
                            "mean.n": 3,
                            "lowest": 52,
                            "highest": 53,
                            "n": 4,
                        },
                    },
                    "labels": {"0.begin.value": 55, "1.words": {"value": 90, "low": 90, "high": 90, "n": 3}},
                    "pairs.all.both": {
                        "agreement.value": 110 / 3,
                        "agreement.high": 100,
                        "lowest": 10,
                        "highest": 90,
                    },
                }
            },
            id="marks_on_which_networks_rest",
        ),
        # Without a majority a network rests nowhere.
        pytest.param(
            (
                RESTING_FIGURE,
                store_of(
                    [
                        {
                            "of": {"others": []},
                            "is": {
                                "0": {**BEGINS, "begin": 40, "end": 30},
                                "1": {**RARER, "begin": 40, "end": 30},
                            },
                        },
                        {"of": {}, "is": ALIKE},
                    ]
                ),
            ),
            {
                "values.known_polarity": {
                    "resting": {"begin": 0, "end": 0, "words": 0, "nowhere": 3},
                    "by_mark": {},
                    "own_mark.n": 0,
                }
            },
            id="no_majority",
        ),
        # Others that are not known yet are left out.
        pytest.param(
            (RESTING_FIGURE, store_of([ZERO_ALONE])),
            {"values.known_polarity.pairs": {}, "tables.networks.length": 2},
            id="pairs_not_measured_yet",
        ),
    ],
)
def test_tables_computed_by_hand(given, expected):
    assert_answer(computed(*given), expected)


OFFSETS = [0, 4, 7, 10, 14]
LABELS = [0, 0, 0, 1]
EMPTY = [0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
RESTING = recording_of_lists(
    {
        "validation.offsets": OFFSETS,
        "validation.labels": LABELS,
        "validation.attention": [
            EMPTY,
            [0.4, 0.3, 0.2, 0.1, 0.2, 0.2, 0.6, 0.5, 0.5, 0.0, 0.1, 0.6, 0.2, 0.1],
        ],
        "validation.log_polarity": [EMPTY, [1.0, -1, -1, 2.0, -1.0, 5, 1.0, 3.0, -1, -2.0, -4.0, 9, 9, 1.0]],
    }
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Three texts of label 0 and one of label 1: <bos> a b <eos>, twice <bos> a <eos>, and <bos> a b
        # <eos>, looked at twice; the first snapshot is empty, so that only the last can be meant. The third
        # text has two largest weights, of which the first is the mark.
        pytest.param(
            (RESTING,),
            {
                "0": {
                    "texts": 3,
                    "begin": 200 / 3,
                    "end": 100 / 3,
                    "begin_right": 200 / 3,
                    "end_right": 200 / 3,
                    "begin_weight": 110 / 3,
                    "end_weight": 70 / 3,
                },
                "1": {
                    "texts": 1,
                    "begin": 0,
                    "end": 0,
                    "begin_right": 0,
                    "end_right": 100,
                    "begin_weight": 10,
                    "end_weight": 10,
                },
            },
            id="four_texts",
        )
    ],
)
def test_measure_resting_by_hand(given, expected):
    assert_answer(measure_resting(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # What disagrees over all positions may agree among the words of the same texts. By chance, one of
        # four, three, three and four positions; among words one of two, one, one and two.
        pytest.param(
            (
                RESTING,
                recording_of_lists(
                    {
                        "validation.offsets": OFFSETS,
                        "validation.labels": LABELS,
                        "validation.attention": [
                            EMPTY,
                            [0.1, 0.3, 0.2, 0.4, 0.6, 0.3, 0.1, 0.1, 0.2, 0.7, 0.1, 0.6, 0.2, 0.1],
                        ],
                    }
                ),
            ),
            {
                "all": {
                    "both": {"agreement": 25, "chance": 175 / 6},
                    "0": {"agreement": 0},
                    "1": {"agreement": 100},
                },
                "words": {
                    "both": {"agreement": 100, "chance": 75},
                    "0": {"agreement": 100},
                    "1": {"agreement": 100, "chance": 50},
                },
            },
            id="with_and_without_marks",
        )
    ],
)
def test_measure_apart_by_hand(given, expected):
    assert_answer(measure_apart(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (
                recording_of_lists({"validation.offsets": [0, 2], "validation.labels": [0]}),
                recording_of_lists({"validation.offsets": [0, 3], "validation.labels": [0]}),
            ),
            "other texts",
            id="other_texts",
        )
    ],
)
def test_measure_apart_refuses(given, message):
    assert_refused(partial(measure_apart, *given), message)


@pytest.mark.parametrize(("given", "message"), [pytest.param(({},), "no units", id="no_units")])
def test_pair_spread_refuses(given, message):
    assert_refused(partial(pair_spread, *given), message)
