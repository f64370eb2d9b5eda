"""Functions that promise to take arrays and lists take integers, and refuse the rest in their own words."""

import math

import numpy as np
import pytest
import torch

from attnlib import Components, agreement, shares, substitution, typicality
from attnlib.decomposition import AttentionCells, Parts
from attnlib.decomposition.shares import covariance_shares_by_sample
from attnlib.decomposition.substitution import ALL_PAIRS, similarity_by_sample
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement_with_ties_broken, chance_agreement
from attnlib.probes.alignment_error import AlignmentSums

ROWS = [[1, 2, 3], [3, 1, 2]]
TERMS = np.arange(9 * 2 * 2 * 3).reshape(3, 3, 2, 2, 3)
OF_ROWS = [agreement, agreement_with_ties_broken]
OF_TERMS = [shares, substitution, covariance_shares_by_sample]


@pytest.mark.parametrize("measure", OF_ROWS)
def test_rows_of_integers_are_as_rows_of_numbers(measure):
    result = measure(ROWS, ROWS[::-1])
    expected = measure(np.array(ROWS, dtype=float), np.array(ROWS[::-1], dtype=float))
    assert torch.equal(result, expected)


def test_chance_takes_integers():
    expected = chance_agreement(torch.tensor(ROWS, dtype=torch.float64))
    assert torch.equal(chance_agreement(ROWS), expected)


@pytest.mark.parametrize("measure", OF_TERMS)
@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy, np.ndarray.tolist])
def test_terms_of_integers_are_as_terms_of_numbers(measure, make):
    result, expected = measure(make(TERMS)), measure(TERMS.astype(float))
    assert repr(result) == repr(expected)


@pytest.mark.parametrize("kind", [lambda: Components(1, n_tokens=3, n_positions=2), lambda: Components(1)])
def test_states_of_integers_are_as_states_of_numbers(kind):
    states, tokens = [[[1], [2]], [[3], [5]]], [[0, 1], [1, 2]]
    parts = kind().update(states, tokens).split(states, tokens)
    numbers = np.array(states, dtype=float)
    expected = kind().update(numbers, tokens).split(numbers, tokens)
    assert torch.equal(parts.stack(), expected.stack())


@pytest.mark.parametrize("measure", OF_ROWS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(torch.rand(2, 3), torch.rand(3, 3), id="leading axes"),
        pytest.param(torch.rand(2, 3), torch.rand(2, 4), id="lengths"),
        pytest.param(torch.rand(()), torch.rand(()), id="no axes"),
        pytest.param([["a", "b"]], [["c", "d"]], id="words"),
        pytest.param([[1j]], [[1j]], id="complex"),
        pytest.param([[True]], [[False]], id="truth values"),
    ],
)
def test_rows_that_do_not_fit_are_refused(measure, first, second):
    with pytest.raises(BadInput):
        measure(first, second)


@pytest.mark.parametrize("measure", OF_TERMS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_terms_that_are_not_finite_are_refused_by_their_place(measure, wrong):
    terms = TERMS.astype(float)
    terms[1, 2, 1, 0, 2] = wrong
    with pytest.raises(BadInput, match="sample 1, target position 0, source position 2"):
        measure(terms)


@pytest.mark.signatures
def test_similarity_by_sample_refuses_terms_that_are_not_finite():
    terms = torch.full((3, 3, 1, 1, 2), torch.nan)
    with pytest.raises(BadInput, match="not finite"):
        similarity_by_sample(terms, torch.ones(1, 1).bool(), torch.ones(1, 2).bool(), pairs=ALL_PAIRS)


@pytest.mark.signatures
@pytest.mark.parametrize("measure", OF_TERMS)
def test_terms_that_are_not_finite_at_padding_do_not_matter(measure):
    terms = TERMS.astype(float)
    terms[..., 2] = math.nan
    source_mask = [[True, True, False]] * 2
    result, expected = measure(terms, None, source_mask), measure(TERMS[..., :2])
    assert repr(result) == repr(expected)


def test_masks_of_another_shape_are_refused():
    with pytest.raises(BadInput, match="source mask of"):
        covariance_shares_by_sample(TERMS, None, [[True]])


def test_attention_that_is_not_finite_is_refused_before_anything_is_added():
    cells = AttentionCells()
    with pytest.raises(BadInput, match="sample 1"):
        cells.update(torch.tensor([[[0.5, 0.5]], [[0.5, math.nan]]]))
    assert cells.counts == {}


def test_alignments_that_are_not_finite_are_refused():
    everywhere = torch.ones(1, 2).bool()
    with pytest.raises(BadInput, match="not finite"):
        AlignmentSums().update(
            torch.full((1, 2, 2), math.nan),
            torch.eye(2).bool()[None],
            target_words=everywhere,
            source_words=everywhere,
        )


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_matrix_without_entries_is_refused(shape):
    with pytest.raises(BadInput, match="no entries"):
        typicality([torch.zeros(shape)])


@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_matrices_of_integers_have_a_typicality():
    assert typicality([np.eye(3, dtype=int)] * 30).value == 1


@pytest.mark.parametrize("size", [4.0, "4", None, 0])
def test_sizes_that_are_no_whole_numbers_are_refused(size):
    with pytest.raises(BadInput, match="whole numbers"):
        Components(size)


@pytest.mark.parametrize("size", [4.0, "4", 0])
@pytest.mark.parametrize("name", ["n_tokens", "n_positions"])
def test_given_sizes_that_are_no_whole_numbers_are_refused(name, size):
    with pytest.raises(BadInput, match=f"{name}=.*whole numbers"):
        Components(2, **{name: size})


def test_sizes_of_numpy_are_taken():
    assert Components(2, n_tokens=np.int64(4), n_positions=3).n_tokens == 4


def test_the_unseen_share_of_nothing_is_undefined():
    nothing = torch.zeros(0, 3, 2)
    parts = Parts(nothing, nothing, nothing, mask=torch.zeros(0, 3).bool())
    assert math.isnan(parts.unseen_share)
