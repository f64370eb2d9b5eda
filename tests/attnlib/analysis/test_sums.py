"""Sums of a pass share nothing with what they were made of."""

import copy
from importlib import import_module

import pytest
import torch

from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums, SeenCounts
from attnlib.errors import BadInput
from tests.attnlib.analysis.builders import Toy, fit_of, judged

TOY = Toy()
FIRST, SECOND = TOY(0), TOY(1)
FIT = fit_of([FIRST, SECOND])


def empty_fit():
    return Fit(method="means")


def filled_fit():
    return fit_of([FIRST])


def empty_held_out():
    return JudgedSums(FIT)


def filled_held_out():
    return judged(FIT, [FIRST])


def content_of(sums):
    return copy.deepcopy(sums.state_dict())


def assert_content(sums, expected):
    torch.testing.assert_close(leaves_of(sums.state_dict()), leaves_of(expected), rtol=0, atol=0)


def leaves_of(state, name=""):
    """What a state holds, by the path to it, numbers as tensors."""
    if isinstance(state, dict):
        leaves = [leaves_of(value, f"{name}/{key}") for key, value in state.items()]
        return {path: leaf for named in leaves for path, leaf in named.items()}
    if isinstance(state, torch.Tensor):
        return {name: state}
    return {f"{name}={state}": torch.zeros(())}


KINDS = [
    pytest.param(empty_fit, filled_fit, id="fit"),
    pytest.param(empty_held_out, filled_held_out, id="held-out"),
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
def test_an_update_of_restored_sums_leaves_the_state_alone(empty, filled):
    state = content_of(filled())
    before = copy.deepcopy(state)
    empty().load_state_dict(state).update(SECOND)
    torch.testing.assert_close(leaves_of(state), leaves_of(before), rtol=0, atol=0)


@pytest.mark.parametrize(("empty", "filled"), KINDS)
def test_restored_sums_hold_what_was_summed(empty, filled):
    state = content_of(filled())
    assert_content(empty().load_state_dict(state), state)


def test_sums_by_another_fit_cannot_be_merged():
    with pytest.raises(BadInput, match="same fit"):
        filled_held_out() + JudgedSums(fit_of([SECOND]))


@pytest.mark.parametrize(
    ("module", "former", "present"),
    [
        pytest.param("attnlib.analysis", "Losses", "CorpusGaps", id="gaps of a corpus"),
        pytest.param("attnlib.analysis.stream", "Losses", "CorpusGaps", id="gaps, in their module"),
        pytest.param("attnlib.analysis.judge", "HeldOutSums", "JudgedSums", id="sums of the second pass"),
    ],
)
def test_a_former_name_is_the_present_one(module, former, present):
    loaded = import_module(module)
    with pytest.warns(DeprecationWarning, match=present):
        replaced = getattr(loaded, former)
    assert replaced is getattr(loaded, present)


def test_a_saved_count_of_unseen_positions_keeps_its_key():
    counts = SeenCounts()
    counts.unseen_positions = 3
    assert counts.state_dict()["unseen_places"] == 3
    assert SeenCounts().load_state_dict(counts.state_dict()).unseen_positions == 3
