"""Where attention rests: places and pairs of networks counted by hand, and their spread."""

import math
from itertools import permutations
from statistics import fmean, stdev

import numpy as np
import pytest

from notebooks.learn.resting_attention import experiment
from notebooks.learn.resting_attention.experiment import measure_resting, pair_spread
from tests.notebooks.figure_builders import Given


def computed(*known, torn=False):
    """Of networks with some seeds: seed 2 rests elsewhere than the others, and ``torn`` ones nowhere."""

    def answer(spec, measure, other_specs=()):
        seeds = [run.seed for run in (spec, *other_specs)]
        if not set(seeds) <= set(known):
            return None
        if measure is measure_resting:
            begin = 5.0 if spec.seed == 2 else 80.0
            common = {"texts": 9, "begin": begin, "end": 85 - begin, "begin_right": 100.0, "end_right": 90.0}
            common |= {"begin_weight": 30.0, "end_weight": 20.0}
            rarer = {"texts": 3, "begin": 0.0, "end": 10.0, "begin_right": 40.0 * spec.seed}
            undecided = {"begin": 40.0, "end": 30.0} if torn else {}
            return {"0": common | undecided, "1": common | rarer | undecided}
        cell = {"agreement": 10.0 if 2 in seeds else 90.0, "chance": 8.0}
        return {"all": {"both": cell}, "words": {"both": cell | {"agreement": 50.0 + sum(seeds)}}}

    return experiment.compute(experiment.Config(data=("known_polarity",), beside=()), Given(answer))


def test_places_and_pairs_are_counted_and_averaged():
    found = computed(0, 1, 2)[0]["known_polarity"]
    assert found["common"] == "0"
    assert found["resting"] == {"begin": 2, "end": 1, "words": 0, "nowhere": 0}
    # Seeds 0 and 1 rest on the begin mark, right in 0 and 40 % of the rarer; 2 on the end, in 90 %.
    assert found["own_mark"]["right"]["1"] == {"0": 0, "1": 40, "2": 90}
    assert (found["own_mark"]["default"], found["own_mark"]["n"]) == (2, 3)
    same, different = found["by_mark"]["same"]["all"], found["by_mark"]["different"]["words"]
    assert same == {"mean": same["mean"], "lowest": 90, "highest": 90, "n": 2}
    assert different == {"mean": different["mean"], "lowest": 52, "highest": 53, "n": 4}
    assert (same["mean"]["value"], different["mean"]["value"]) == (90, 52.5)
    assert (same["mean"]["n"], different["mean"]["n"]) == (2, 3)  # networks, of which pairs are made
    assert math.isnan(same["mean"]["low"])  # without either of two networks no pair is left
    assert found["labels"]["0"]["begin"]["value"] == 55
    assert found["labels"]["1"]["words"] == {"value": 90, "low": 90, "high": 90, "n": 3}
    both = found["pairs"]["all"]["both"]
    assert both["agreement"]["value"] == pytest.approx((90 * 2 + 10 * 4) / 6)
    assert (both["lowest"], both["highest"]) == (10, 90)
    # Without one of the networks the mean is 10, 10 or 90; Student's t of two is 4.303, and 266 is cut.
    assert both["agreement"]["high"] == min(100, 110 / 3 + 4.302653 * 160 / 3)


def test_a_network_without_a_majority_rests_nowhere():
    found = computed(0, 1, 2, torn=True)[0]["known_polarity"]
    assert found["resting"] == {"begin": 0, "end": 0, "words": 0, "nowhere": 3}
    assert (found["by_mark"], found["own_mark"]["n"]) == ({}, 0)
    alone, tables = computed(0)  # the others are not known yet
    assert (alone["known_polarity"]["pairs"], len(tables["networks"])) == ({}, 2)


# The spread over pairs of networks, and its interval.


def sums(values):
    return {(i, j): values[i] + values[j] for i, j in permutations(range(len(values)), 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0, 5.0), (3.0, -1.0, 4.0, 1.0), (0.0, 0.0, 2.0, 7.0, 1.0)])
def test_the_spread_of_sums_is_root_two_times_the_deviation_of_the_units(values):
    """Two units drawn at random have twice the variance of one, which ``stdev`` squared estimates."""
    assert pair_spread(sums(values))["value"] == pytest.approx(math.sqrt(2) * stdev(values))


def test_the_interval_of_four_units_covers_in_some_nine_cases_of_ten():
    generator = np.random.default_rng(1)
    found = [pair_spread(sums(generator.normal(size=4).tolist())) for _ in range(1_000)]
    assert fmean(one["low"] <= math.sqrt(2) <= one["high"] for one in found) == pytest.approx(0.89, abs=0.03)


def test_the_interval_is_not_below_zero_and_takes_four_units():
    one_apart = pair_spread(sums([0.0, 0.0, 0.0, 6.0]))
    assert 0 == one_apart["low"] < one_apart["value"] < one_apart["high"]
    assert one_apart["value"] == pytest.approx(math.sqrt(2) * 3)
    three, two = pair_spread(sums([0.0, 1.0, 5.0])), pair_spread(sums([0.0, 1.0]))
    assert (math.isnan(three["low"]), math.isnan(three["value"]), three["n"]) == (True, False, 3)
    assert (math.isnan(two["value"]), two["n"]) == (True, 2)
    alike = pair_spread(dict.fromkeys(permutations(range(5), 2), 0.1))
    assert (alike["value"], alike["low"], alike["high"]) == pytest.approx((0, 0, 0), abs=1e-7)
    some = sums([0.0, 1.0, 5.0, 2.0])
    del some[0, 1]
    assert pair_spread(some)["value"] > 0  # a pair that is missing is left out
