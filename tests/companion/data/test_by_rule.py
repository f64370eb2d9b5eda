"""Synthetic tasks: what all of them promise, and sequences relabelled, permuted and copied."""

from operator import itemgetter

import pytest

from companion.data import registry
from notebooks.shared.tasks.synthetic import one_to_one, permutation, reversal
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import pairs
from tests.tables import beside

SMALL = {"n_train": 60, "n_held_out": 60}
FEW = beside(__file__, "by_rule")


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_no_source_is_in_both_parts_even_when_there_are_few(name):
    task = registry.load(name, **FEW[name])
    side = 1 if name == "dates" else 0  # no date is in both in any form, so that targets are compared
    train, held_out = ({pair[side] for pair in pairs(task, part)} for part in ("train", "held_out"))
    assert (len(task.train), len(task.held_out)) == (FEW[name]["n_train"], FEW[name]["n_held_out"])
    assert not train & held_out


@pytest.mark.parametrize("name", FEW)
def test_held_out_samples_stay_whatever_is_trained_on(name):
    few, many = (registry.load(name, **SMALL | {"n_train": n_train, "seed": 1}) for n_train in (60, 300))
    assert pairs(few, "held_out") == pairs(many, "held_out")
    assert few.gold == many.gold


@pytest.mark.parametrize("name", FEW)
def test_one_seed_draws_always_the_same(name):
    first, again = (registry.load(name, **SMALL | {"n_train": 60, "seed": 1}) for _ in range(2))
    assert pairs(first, "train") == pairs(again, "train")


@pytest.mark.parametrize("part", ["train", "held_out"])
@pytest.mark.parametrize("name", FEW)
def test_another_seed_draws_others(name, part):
    first, other = (registry.load(name, **SMALL | {"seed": seed}) for seed in (1, 2))
    assert pairs(first, part) != pairs(other, part)


@pytest.mark.parametrize(("option", "least"), [("n_train", 1), ("n_held_out", 1), ("seed", 0)])
@pytest.mark.parametrize("name", FEW)
def test_sizes_below_the_least_are_refused(name, option, least):
    message = f"task {name}: {option} must be at least {least}; got {least - 1}"
    assert_refused(lambda: registry.load(name, **{option: least - 1}), message)


def order_of(links):
    """The source position of each target position; fails where the links are no bijection."""
    places, targets = zip(*sorted(links, key=itemgetter(1)), strict=True)
    assert targets == tuple(range(len(links))) == tuple(sorted(places))
    return list(places)


def test_one_to_one_links_along_the_diagonal():
    task = one_to_one(**SMALL, min_length=3, max_length=3, n_words=26)
    assert task.gold[0] == {(0, 0), (1, 1), (2, 2)}


def test_reversal_links_along_the_antidiagonal():
    task = reversal(**SMALL, min_length=3, max_length=3, n_words=26)
    assert task.gold[0] == {(0, 2), (1, 1), (2, 0)}


def test_a_permutation_is_drawn_by_its_seed():
    orders = [order_of(permutation(n_train=1, n_held_out=5, seed=seed).gold[0]) for seed in (1, 2)]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_permutation_is_neither_the_diagonal_nor_the_antidiagonal(seed):
    order = order_of(permutation(n_train=1, n_held_out=5, seed=seed).gold[0])
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_a_permutation_of_one_length_is_among_those_of_several():
    alone = set(permutation(n_train=1, n_held_out=40, min_length=16, max_length=16).gold)
    assert alone < set(permutation(n_train=1, n_held_out=40, min_length=15, max_length=17).gold)
