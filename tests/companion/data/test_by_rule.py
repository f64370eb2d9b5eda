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


@pytest.mark.parametrize("name", FEW)
def test_no_source_is_in_both_parts_even_when_there_are_few(name):
    task = registry.load(name, **FEW[name])
    side = 1 if name == "dates" else 0  # no date is in both in any form, so that targets are compared
    train, held_out = ({pair[side] for pair in pairs(task, part)} for part in ("train", "held_out"))
    assert (len(task.train), len(task.held_out)) == (FEW[name]["n_train"], FEW[name]["n_held_out"])
    assert not train & held_out


@pytest.mark.parametrize("name", FEW)
def test_held_out_samples_stay_whatever_is_trained_on_and_the_seed_decides(name):
    options = ({"n_train": 60, "seed": 1}, {"n_train": 300, "seed": 1}, {"seed": 2})
    one, large, other = (registry.load(name, **SMALL | each) for each in options)
    assert pairs(one, "held_out") == pairs(large, "held_out")
    assert one.gold == large.gold
    assert pairs(one, "train") == pairs(registry.load(name, **SMALL, seed=1), "train")
    assert pairs(one, "train") != pairs(other, "train")
    assert pairs(one, "held_out") != pairs(other, "held_out")


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


def test_diagonal_antidiagonal_and_neither():
    assert one_to_one(**SMALL, min_length=3, max_length=3, n_words=26).gold[0] == {(0, 0), (1, 1), (2, 2)}
    assert reversal(**SMALL, min_length=3, max_length=3, n_words=26).gold[0] == {(0, 2), (1, 1), (2, 0)}
    orders = [order_of(permutation(n_train=1, n_held_out=5, seed=seed).gold[0]) for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert all(order not in (sorted(order), sorted(order, reverse=True)) for order in orders)
    alone = set(permutation(n_train=1, n_held_out=40, min_length=16, max_length=16).gold)
    assert alone < set(permutation(n_train=1, n_held_out=40, min_length=15, max_length=17).gold)
