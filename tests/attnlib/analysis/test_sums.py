"""Sums of a pass share nothing with what they were made of."""

import copy

import pytest
import torch

from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from tests.attnlib.analysis.builders import Toy, fit_of, judged

TOY = Toy()
FIRST, SECOND = TOY(0), TOY(1)
FIT = fit_of([FIRST, SECOND])


def empty_fit():
    return Fit()


def filled_fit():
    return fit_of([FIRST])


def empty_judgement():
    return Judgement(FIT)


def filled_judgement():
    return judged(FIT, [FIRST])


def content_of(sums):
    tensors = {name: tensor.clone() for name, tensor in sums.tensors().items()}
    return tensors, copy.deepcopy(sums.facts())


def assert_content(sums, expected):
    tensors, facts = expected
    assert sums.facts() == facts
    assert sums.tensors().keys() == tensors.keys()
    for name, tensor in sums.tensors().items():
        assert torch.equal(tensor, tensors[name]), name


KINDS = [
    pytest.param(empty_fit, filled_fit, id="fit"),
    pytest.param(empty_judgement, filled_judgement, id="judgement"),
]


@pytest.mark.parametrize(("empty", "filled"), KINDS)
@pytest.mark.parametrize("empty_first", [True, False])
def test_an_update_of_a_sum_leaves_its_addends_alone(empty, filled, empty_first):
    addend = filled()
    expected = content_of(addend)
    total = empty() + addend if empty_first else addend + empty()
    total.update(SECOND)
    assert_content(addend, expected)


@pytest.mark.parametrize(("empty", "filled"), KINDS)
def test_an_update_of_an_addend_leaves_the_sum_alone(empty, filled):
    addend = filled()
    total = empty() + addend
    expected = content_of(total)
    addend.update(SECOND)
    assert_content(total, expected)


@pytest.mark.parametrize(("empty", "filled"), KINDS)
def test_an_update_of_restored_sums_leaves_the_tensors_alone(empty, filled):
    tensors, facts = content_of(filled())
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    empty().restore(tensors, facts).update(SECOND)
    assert all(torch.equal(tensors[name], before[name]) for name in before)
