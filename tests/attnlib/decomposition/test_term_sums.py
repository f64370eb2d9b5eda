"""Sums of terms for all heads of an attention at once, against single heads, samples and blocks."""

import json

import pytest
import torch
from hypothesis import given

from attnlib.decomposition import term_sums
from attnlib.decomposition.term_sums import TermSums
from attnlib.errors import BadInput
from tests.attnlib.decomposition.component_builders import term_batches

TERMS = ("a", "b", "c")
SUBSETS = {"none": (), "a": ("a",), "a and b": ("a", "b")}
ALLOWED = torch.ones(1, 1, 2, dtype=torch.bool)


def sums_of(terms, allowed, **options):
    blocks = options.pop("in_blocks", None)
    return TermSums(TERMS, SUBSETS, heads=len(terms), **options).update(terms, allowed, blocks)


def assert_same_sums(sums, expected, names=TermSums.SUMS):
    for name in names:
        torch.testing.assert_close(
            torch.as_tensor(getattr(sums, name)), torch.as_tensor(getattr(expected, name))
        )


def three_heads(batch):
    """Three heads of three terms out of nine terms, and what is allowed."""
    terms, target_mask, source_mask = batch
    return terms.unflatten(0, (3, 3)), target_mask[:, :, None] & source_mask[:, None, :]


@given(term_batches())
def test_heads_at_once_are_as_heads_alone(batch):
    terms, allowed = three_heads(batch)
    together = sums_of(terms, allowed)
    for head in range(3):
        alone = sums_of(terms[head, None], allowed)
        torch.testing.assert_close(vars(together.result(head)), vars(alone.result()), equal_nan=True)


@given(term_batches())
def test_heads_in_groups_are_as_heads_at_once(batch):
    terms, allowed = three_heads(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_sums, "_ENTRIES_AT_ONCE", 1)
        in_groups = sums_of(terms, allowed)
    assert_same_sums(in_groups, sums_of(terms, allowed))


@given(term_batches())
def test_a_block_has_the_sums_of_its_samples(batch):
    terms, allowed = three_heads(batch)
    block = torch.arange(len(allowed)) % 2
    sums = sums_of(terms, allowed, blocks=2, in_blocks=block)
    for number in range(2):
        alone = sums_of(terms[:, :, block == number], allowed[block == number])
        torch.testing.assert_close(sums.explained[:, :, number], alone.explained[:, :, 0])
        torch.testing.assert_close(sums.similarity[:, :, number], alone.similarity[:, :, 0])
        assert int(sums.rows_of_block[number]) == alone.rows


@given(term_batches())
def test_moments_are_products_of_what_terms_explain_of_each_sample(batch):
    terms, allowed = three_heads(batch)
    moments = torch.zeros(3, 3, 3, dtype=torch.float64)
    for sample in range(len(allowed)):
        explained = sums_of(terms[:, :, sample, None], allowed[sample, None]).explained  # (heads, terms, 1)
        moments += explained @ explained.mT
    torch.testing.assert_close(sums_of(terms, allowed).moments, moments)


@given(term_batches())
def test_samples_are_those_with_a_row_of_two_positions(batch):
    terms, allowed = three_heads(batch)
    assert sums_of(terms, allowed).samples == int((allowed.sum(-1) >= 2).any(1).sum())


@given(term_batches())
def test_a_state_through_json_is_what_was_summed(batch):
    sums = sums_of(*three_heads(batch))
    plain = {name: value for name, value in sums.state_dict().items() if not isinstance(value, torch.Tensor)}
    state = sums.state_dict() | json.loads(json.dumps(plain))
    assert_same_sums(TermSums(TERMS, SUBSETS, heads=3).load_state_dict(state), sums)


def test_nothing_is_undefined_but_counts():
    result = TermSums(TERMS, SUBSETS).result()
    assert result.rows == result.entries == result.rows_left_out == 0
    assert all(value != value for value in (*result.covariance.values(), *result.similarity.values()))


SIZES = pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])


def scores_of(first, second):
    """Terms a and b of one head at one target and two source positions; the term c is zero."""
    return torch.tensor([first, second, [0.0, 0.0]], dtype=torch.float64)[None, :, None, None]


@SIZES
def test_shares_are_those_of_scores_of_any_size(size):
    shares = sums_of(size * scores_of([2.0, 0.0], [1.0, 0.0]), ALLOWED).covariance_shares()
    assert shares[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])


@SIZES
def test_scores_that_are_mere_rounding_of_their_terms_have_no_shares(size):
    shares = sums_of(size * scores_of([1.0, 0.0], [-1 - 1e-9, 0.0]), ALLOWED).covariance_shares()
    assert shares.isnan().all()


def test_attention_is_rebuilt_of_scores_whose_exponentials_overflow():
    similarities = sums_of(scores_of([1000.0, -1000.0], [0.0, 0.0]), ALLOWED).similarities()
    assert similarities[0].tolist() == [0.5, 1, 1]  # no term attends uniformly, a alone to one position


def test_terms_that_are_not_finite_leave_the_sums_as_they_were():
    sums = TermSums(TERMS, SUBSETS)
    with pytest.raises(BadInput, match="not finite"):
        sums.update(torch.full((1, 3, 1, 1, 2), torch.nan), ALLOWED)
    assert_same_sums(sums, TermSums(TERMS, SUBSETS))


def test_sums_over_other_subsets_cannot_be_merged():
    with pytest.raises(BadInput, match="same subsets"):
        TermSums(TERMS, SUBSETS) + TermSums(TERMS)
