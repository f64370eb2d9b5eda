"""Sums of terms: on nine terms what the decomposition's own sums say, and by hand what these lack."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.analysis.judge import NINE, POSITION_BIAS, TermSums
from attnlib.decomposition import PART_NAMES, SUBSETS, ShareSums, SubstitutionSums
from tests.attnlib.decomposition.component_builders import term_batches

TEN = (*NINE, POSITION_BIAS)
LOG2 = math.log(2)


def allowed_of(batch):
    return batch[1][:, :, None] & batch[2][:, None, :]


def sums_of(terms, allowed):
    return TermSums(NINE if len(terms) == 9 else TEN).update(terms, allowed)


def shares_of(rows, dtype=torch.float64):
    """Shares of one sample and one row of ten terms, which are zero but for {name: row}."""
    terms = torch.zeros(10, 1, 1, len(next(iter(rows.values()))), dtype=dtype)
    for name, row in rows.items():
        terms[TEN.index(name), 0, 0] = torch.tensor(row, dtype=dtype)
    return sums_of(terms, torch.ones(terms.shape[1:], dtype=torch.bool)).result()


@settings(max_examples=80)
@given(term_batches(twins=True))
def test_nine_terms_are_summed_as_the_decomposition_sums_them(batch):
    terms, *masks = batch
    found = sums_of(terms, allowed_of(batch)).result()
    shares = ShareSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    for mine, theirs in ((found.covariance, shares.covariance), (found.mean_absolute, shares.mean_absolute)):
        assert list(mine.values()) == pytest.approx(theirs.flatten().tolist(), abs=1e-10)
    for name in ("entries", "rows", "rows_left_out"):
        assert getattr(found, name) == getattr(shares, name)

    rebuilt = SubstitutionSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    names = {
        name: name.replace("_", " ") for name in ("uniform", "temporal_only", "input_only", "no_residual")
    }
    names |= {f"without_{d}_{e}": f"without {d}·{e}" for d in PART_NAMES for e in PART_NAMES}
    assert names.keys() == SUBSETS.keys()
    assert found.similarity.keys() == found.agreement.keys() == set(names.values())
    for theirs, mine in names.items():
        assert found.similarity[mine] == pytest.approx(rebuilt[theirs].similarity, abs=1e-12)
        assert found.agreement[mine] == pytest.approx(rebuilt[theirs].argmax_agreement, abs=1e-6)


def assert_same(found, expected):
    for name, own in vars(expected).items():
        assert getattr(found, name) == pytest.approx(own, abs=1e-9, nan_ok=True)


@settings(max_examples=50)
@given(term_batches(count=10, twins=True), st.integers(0, 8))
def test_shares_sum_to_one_ignore_constants_and_halves_are_the_whole(batch, cut):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    assert sum(whole.covariance.values()) == pytest.approx(1)
    assert sum(whole.mean_absolute.values()) == pytest.approx(1)
    moved = sums_of(terms + torch.linspace(-9, 9, 10, dtype=terms.dtype)[:, None, None, None], allowed)
    halves = sums_of(terms[:, cut:], allowed[cut:]) + sums_of(terms[:, :cut], allowed[:cut])
    assert_same(moved.result(), whole)
    assert_same(halves.result(), whole)


@settings(max_examples=30)
@given(term_batches())
def test_causal_rows_are_prefixes(batch):
    """A triangle is as many samples of one row each, of growing length."""
    terms, target_mask, source_mask = batch
    pieces = TermSums(NINE)
    for row in range(terms.shape[2]):
        prefix = source_mask & (torch.arange(terms.shape[3]) <= row)
        pieces.update(terms[:, :, row, None], target_mask[:, row, None, None] & prefix[:, None, :])
    whole = sums_of(terms, allowed_of(batch).tril()).result()
    assert_same(whole, pieces.result())
    assert whole.rows_left_out >= len(terms[0])  # the first row of each sample sees one position


def test_the_position_bias_is_a_tenth_term():
    """First entries: bias alone 4/5 (4:1), temporal alone 2/3 (2:1), both, which is all, 8/9 (8:1)."""
    shares = shares_of({"temporal·temporal": [LOG2, 0.0], POSITION_BIAS: [2 * LOG2, 0.0]})
    assert shares.covariance[POSITION_BIAS] == pytest.approx(2 / 3)
    assert shares.similarity["position bias only"] == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert shares.similarity["temporal and position bias"] == pytest.approx(1.0)
    assert shares.similarity["no residual"] == pytest.approx(1.0)
    assert shares.similarity[f"without {POSITION_BIAS}"] == pytest.approx(1 - (8 / 9 - 2 / 3))


def test_ties_but_for_rounding_are_ties():
    """One word twice: input alone cannot tell the places apart, whatever the last bit says."""
    rows = {"input·input": [1.0, 1.0 + 1e-7, 0.0], "temporal·temporal": [0.5, 0.0, 0.0]}
    shares = shares_of(rows, torch.float32)
    assert (shares.agreement["input only"], shares.agreement["temporal only"]) == (0.5, 1.0)


def test_undefined_where_nothing_varies():
    """Flat rows have no share, but a spread, which is zero; nothing at all has neither."""
    flat, nothing = shares_of({POSITION_BIAS: [1.0, 1.0, 1.0]}), TermSums(NINE).result()
    undefined = [*flat.covariance.values(), *flat.mean_absolute.values()]
    undefined += [*nothing.covariance.values(), *nothing.similarity.values(), nothing.spread]
    assert all(map(math.isnan, undefined))
    assert (flat.spread, flat.similarity["uniform"]) == (0.0, 1.0)
    rows = {"temporal·temporal": [0.1, 0.0], "input·input": [0.2, 0.0], "residual·residual": [-0.3, 0.0]}
    cancelling = shares_of(rows)  # but for rounding
    assert all(map(math.isnan, cancelling.covariance.values()))
    assert cancelling.mean_absolute["residual·residual"] == pytest.approx(0.5)
