"""Intervals over few runs: by hand, by simulation, and where they do not exist."""

import math
from itertools import permutations, product
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from attnlib.errors import BadInput
from companion.results.spearman import spearman_of_points
from companion.results.statistics import (
    hierarchical_bootstrap,
    jackknife_interval,
    mean_interval,
    pair_spread,
    percentile_bootstrap,
    share_difference,
    share_interval,
    takeover_step,
)

# Means


def test_hand_worked_interval():
    """Values 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.3027, half width 4.3027 / sqrt(3)."""
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.value == 2.0
    assert interval.high - 2 == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert interval.low + interval.high == pytest.approx(4.0)
    assert interval.as_dict().keys() == {"value", "low", "high", "n"}


def test_one_value_has_no_interval():
    interval = mean_interval([0.4])
    assert interval.value == 0.4
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_with_three_seeds_student_covers_and_the_bootstrap_does_not():
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(400, 3))
    student = np.mean([abs(row.mean()) <= mean_interval(row).high - row.mean() for row in draws])
    boots = [percentile_bootstrap(row, generator, resamples=200) for row in draws[:200]]
    bootstrap = np.mean([boot.low <= 0 <= boot.high for boot in boots])
    assert 0.92 < student < 0.98
    assert bootstrap < 0.85


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [[1.0], [2.0]]])
def test_bad_values(values):
    with pytest.raises(BadInput, match="finite"):
        mean_interval(values)


def test_a_level_that_is_none_is_refused():
    with pytest.raises(BadInput, match="level=95"):
        mean_interval([1.0, 2.0], level=95)


# Shares


def test_nothing_and_everything_have_an_end_at_the_share_itself():
    assert share_interval(0, 7).low == 0
    assert share_interval(7, 7).high == 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 4)])
def test_what_is_no_share_is_refused(successes, n):
    with pytest.raises(BadInput, match=f"{successes} of {n}"):
        share_interval(successes, n)


# The jackknife


def mean(values):
    return sum(values) / len(values)


def products(values):
    """The mean of x·y over pairs of different values."""
    pairs = [x * y for x, y in permutations(values, 2)]
    return mean(pairs) if pairs else math.nan


def test_of_a_mean_it_is_students_interval():
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert jackknife_interval(values, mean).as_dict() == pytest.approx(mean_interval(values).as_dict())


def test_by_hand_of_pairs():
    """1, 2, 3: mean product 11/3; without each 6, 3, 2, whose squares about 11/3 sum to 26/3; 2/3 of it."""
    found = jackknife_interval([1.0, 2.0, 3.0], products)
    assert found.value == pytest.approx(11 / 3)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 2) * math.sqrt(2 / 3 * 26 / 3))
    assert found.low + found.high == pytest.approx(22 / 3)
    assert found.n == 3


@pytest.mark.parametrize("units", [[2.0], [1.0, 2.0]])
def test_where_a_number_needs_every_unit_there_is_none(units):
    found = jackknife_interval(units, products)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.n == len(units)
    assert math.isnan(jackknife_interval([1.0], mean).low)


def test_no_units_and_levels_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="jackknife of no units"):
        jackknife_interval([], mean)
    with pytest.raises(BadInput, match="level=2"):
        jackknife_interval([1.0], mean, level=2)


# The spread over pairs


def sums(values):
    return {(i, j): values[i] + values[j] for i, j in permutations(range(len(values)), 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0, 5.0), (3.0, -1.0, 4.0, 1.0), (0.0, 0.0, 2.0, 7.0, 1.0)])
def test_of_sums_it_is_root_two_times_the_deviation_of_the_units(values):
    """Two units drawn at random have twice the variance of one, which ``stdev`` squared estimates."""
    assert pair_spread(sums(values)).value == pytest.approx(math.sqrt(2) * stdev(values))


def test_the_plain_variance_of_simulated_pairs_is_too_small_and_the_corrected_one_is_not():
    generator = np.random.default_rng(0)
    for n in (4, 6):
        drawn = [sums(generator.normal(size=n).tolist()) for _ in range(1_500)]
        assert fmean(np.var(list(pairs.values())) for pairs in drawn) == pytest.approx(
            2 * (1 - 2 / n), abs=0.08
        )
        assert fmean(pair_spread(pairs).value ** 2 for pairs in drawn) == pytest.approx(2, abs=0.13)


def test_the_interval_of_four_units_covers_in_some_nine_cases_of_ten():
    generator = np.random.default_rng(1)
    found = [pair_spread(sums(generator.normal(size=4).tolist())) for _ in range(1_000)]
    assert fmean(one.low <= math.sqrt(2) <= one.high for one in found) == pytest.approx(0.89, abs=0.03)


def test_what_pairs_have_for_themselves_makes_it_a_little_too_large():
    generator = np.random.default_rng(2)
    n, squares = 4, []
    for _ in range(1_500):
        own = {(i, j): generator.normal() for i in range(n) for j in range(i)}
        squares.append(pair_spread(own | {(j, i): number for (i, j), number in own.items()}).value ** 2)
    assert fmean(squares) == pytest.approx(1 + 2 / ((n - 1) * (n - 2)), abs=0.1)


def test_the_interval_is_not_below_zero_and_takes_four_units():
    one_apart = sums([0.0, 0.0, 0.0, 6.0])
    assert pair_spread(one_apart).low == 0
    assert pair_spread(one_apart).high > pair_spread(one_apart).value == pytest.approx(math.sqrt(2) * 3)
    three, two = pair_spread(sums([0.0, 1.0, 5.0])), pair_spread(sums([0.0, 1.0]))
    assert (math.isnan(three.low), math.isnan(three.value), three.n) == (True, False, 3)
    assert (math.isnan(two.value), two.n) == (True, 2)


def test_equal_numbers_do_not_spread():
    found = pair_spread(dict.fromkeys(permutations(range(5), 2), 0.1))
    assert (found.value, found.low, found.high) == pytest.approx((0, 0, 0), abs=1e-7)


def test_pairs_that_are_missing_are_left_out_and_none_at_all_is_refused():
    some = {pair: number for pair, number in sums([0.0, 1.0, 5.0, 2.0]).items() if pair != (0, 1)}
    assert pair_spread(some).value > 0
    with pytest.raises(BadInput, match="no units"):
        pair_spread({})


# Differences of shares


def pairs_of(both, first, second, neither):
    one, other = [(True, False)] * first, [(False, True)] * second
    return [(True, True)] * both + one + other + [(False, False)] * neither


def wilson(successes, n):
    found = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return found.low, found.high


@pytest.mark.parametrize("counts", [(20, 12, 2, 16), (3, 9, 7, 1), (6, 0, 4, 10), (0, 5, 0, 5), (1, 1, 1, 1)])
def test_it_is_newcombes(counts):
    both, first, second, neither = counts
    n, pairs = sum(counts), pairs_of(*counts)
    (low, high), (other_low, other_high) = wilson(both + first, n), wilson(both + second, n)
    one, other = (both + first) / n, (both + second) / n
    phi = 0.0
    if 0 < one < 1 and 0 < other < 1:
        phi = float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])
        if phi > 0:  # corrected for continuity
            excess = both * neither - first * second
            phi *= max(excess - n / 2, 0) / excess
    found = share_difference(pairs)
    below = (one - low) ** 2 - 2 * phi * (one - low) * (other_high - other) + (other_high - other) ** 2
    above = (high - one) ** 2 - 2 * phi * (high - one) * (other - other_low) + (other - other_low) ** 2
    assert found.value == pytest.approx((first - second) / n)
    assert found.low == pytest.approx(found.value - math.sqrt(below), abs=1e-12)
    assert found.high == pytest.approx(found.value + math.sqrt(above), abs=1e-12)
    assert found.n == n


def test_it_stays_inside_its_bounds_and_turns_round_with_its_shares():
    for counts in product(range(4), repeat=4):
        if sum(counts):
            found = share_difference(pairs_of(*counts))
            assert -1 <= found.low <= found.value <= found.high <= 1
            turned = share_difference([(other, one) for one, other in pairs_of(*counts)])
            assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


def test_pairs_that_are_all_alike_are_no_certainty():
    found = share_difference([(True, False)] * 20)
    assert 0.7 < found.low < found.value == found.high == 1
    assert share_difference([(True, False)]).low < 0  # one pair decides nothing


def test_no_pairs_are_refused():
    with pytest.raises(BadInput, match="no pairs"):
        share_difference([])


# The bootstrap


def test_same_generator_same_interval():
    values = [0.1, 0.5, 0.2, 0.9]
    first, second = (percentile_bootstrap(values, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    assert first.low < first.value < first.high
    assert first.n == 4


def test_constant_values_have_no_width():
    interval = percentile_bootstrap([2.0] * 5, np.random.default_rng(0))
    assert (interval.value, interval.low, interval.high) == (2.0, 2.0, 2.0)


def test_mean_of_zero_and_one_follows_the_binomial():
    """50 zeros and 50 ones: the resampled mean is Binomial(100, 1/2) / 100, 2.5 % points 0.40 and 0.60."""
    interval = percentile_bootstrap([0.0, 1.0] * 50, np.random.default_rng(0), resamples=5000)
    assert interval.low == pytest.approx(0.40, abs=0.011)
    assert interval.high == pytest.approx(0.60, abs=0.011)


def test_seeds_that_agree_within_a_task_do_not_narrow_the_interval():
    groups = {"a": [0.0] * 20, "b": [1.0] * 20}
    nested = hierarchical_bootstrap(groups, np.random.default_rng(0))
    flat = percentile_bootstrap(np.concatenate(list(groups.values())), np.random.default_rng(0))
    assert (nested.low, nested.high) == (0.0, 1.0)  # both draws the same task: one time in two
    assert flat.high - flat.low < 0.4
    assert nested.n == flat.n == 40


def test_one_group_is_the_flat_bootstrap():
    values = np.arange(6.0)
    assert hierarchical_bootstrap([values], np.random.default_rng(1)) == percentile_bootstrap(
        values, np.random.default_rng(1)
    )


def test_points_under_a_correlation():
    points = [np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 3.0], [4.0, 5.0]])]
    interval = hierarchical_bootstrap(
        points, np.random.default_rng(0), statistic=spearman_of_points, resamples=300
    )
    assert interval.value == interval.low == interval.high == pytest.approx(1.0)


def test_all_resamples_undefined():
    points = np.array([[1.0, 1.0], [1.0, 2.0]])
    interval = percentile_bootstrap(
        points, np.random.default_rng(0), statistic=spearman_of_points, resamples=10
    )
    assert math.isnan(interval.value)
    assert math.isnan(interval.low)


def test_bad_groups():
    generator = np.random.default_rng(0)
    with pytest.raises(BadInput, match="Group 'scan' has no rows"):
        hierarchical_bootstrap({"scan": []}, generator)
    with pytest.raises(BadInput, match="one width"):
        hierarchical_bootstrap([[1.0], [[1.0, 2.0]]], generator)
    with pytest.raises(BadInput, match="0 groups"):
        hierarchical_bootstrap([], generator)
    with pytest.raises(BadInput, match="resamples=0"):
        percentile_bootstrap([1.0], generator, resamples=0)


# When a quantity takes over


def test_it_is_where_the_line_over_the_logarithm_crosses_the_middle():
    # The middle of 0.2 and 1.0 is 0.6, a fifth of the way from 0.5 to 1.0, where log2 goes from 2 to 4.
    found = takeover_step([0, 3, 15], [0.2, 0.5, 1.0], least=0.1)
    assert found == pytest.approx(2 ** (2 + 2 / 5) - 1)


def test_the_first_crossing_counts_and_a_look_on_the_middle_is_one():
    assert takeover_step([0, 1, 3, 7], [0, 0.5, 0.1, 1], least=0.1) == pytest.approx(1)


def test_a_quantity_may_overshoot_and_come_back():
    found = takeover_step([0, 1, 3], [0.0, 1.0, 0.4], least=0.1)
    assert found == pytest.approx(2 ** (0.2 * math.log2(2)) - 1)


@pytest.mark.parametrize("values", [[0.0, 0.9, 0.04], [0.5, 0.7, 0.1], [0.0, 0.3, math.nan]])
def test_what_does_not_rise_has_none(values):
    assert takeover_step([0, 1, 3], values, least=0.05) is None


@pytest.mark.parametrize(("steps", "values"), [([0], [1.0]), ([0, 2], [1.0]), ([0, 2, 2], [0, 1, 2])])
def test_lists_that_do_not_fit_are_refused(steps, values):
    with pytest.raises(BadInput, match="expected as many"):
        takeover_step(steps, values, least=0.05)
