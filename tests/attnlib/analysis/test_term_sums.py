"""Sums of terms: on nine terms what the decomposition's own sums say, and by hand what these lack."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.analysis.judge import NINE, POSITION_BIAS, TermSums
from attnlib.decomposition import PART_NAMES, SUBSETS, ShareSums, SubstitutionSums
from attnlib.errors import BadInput

TEN = (*NINE, POSITION_BIAS)
LOG2 = math.log(2)


@st.composite
def batches(draw, *, count=9):
    """(terms, target mask, source mask): rows of several lengths, some of one position, garbage elsewhere."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, target, source = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(3, 6))
    terms = torch.randn(count, batch, target, source, generator=generator, dtype=torch.float64)
    if draw(st.booleans()):  # a word that stands twice
        terms[..., 1] = terms[..., 0]
    target_mask = torch.arange(target) < torch.randint(1, target + 1, (batch, 1), generator=generator)
    source_mask = torch.arange(source) < torch.randint(1, source + 1, (batch, 1), generator=generator)
    source_mask[0] = True
    valid = target_mask[:, :, None] & source_mask[:, None, :]
    return terms.masked_fill(~valid, draw(st.sampled_from([0.0, math.nan, 1e9]))), target_mask, source_mask


def allowed_of(batch):
    return batch[1][:, :, None] & batch[2][:, None, :]


def sums_of(terms, allowed, names=None):
    return TermSums(names or (NINE if len(terms) == 9 else TEN)).update(terms, allowed)


def terms_of(rows, names=NINE):
    """Terms of one sample and one row each: {name: row}; the others are zero."""
    length = len(next(iter(rows.values())))
    terms = torch.zeros(len(names), 1, 1, length, dtype=torch.float64)
    for name, row in rows.items():
        terms[names.index(name), 0, 0] = torch.tensor(row, dtype=torch.float64)
    return terms, torch.ones(1, 1, length, dtype=torch.bool)


# Against the sums of the decomposition.


@settings(max_examples=50)
@given(batches())
def test_shares_of_nine_terms_are_those_of_share_sums(batch):
    found = sums_of(batch[0], allowed_of(batch)).result()
    expected = ShareSums().update(batch[0].unflatten(0, (3, 3)), *batch[1:]).result()
    assert list(found.covariance.values()) == pytest.approx(expected.covariance.flatten().tolist(), abs=1e-10)
    absolute = expected.mean_absolute.flatten().tolist()
    assert list(found.mean_absolute.values()) == pytest.approx(absolute, abs=1e-12)
    for name in ("entries", "rows", "rows_left_out"):
        assert getattr(found, name) == getattr(expected, name)


@settings(max_examples=50)
@given(batches())
def test_rebuilt_attention_of_nine_terms_is_that_of_substitution_sums(batch):
    found = sums_of(batch[0], allowed_of(batch)).result()
    expected = SubstitutionSums().update(batch[0].unflatten(0, (3, 3)), *batch[1:]).result()
    names = {"uniform": "uniform", "temporal_only": "temporal only", "input_only": "input only"}
    names |= {"no_residual": "no residual"}
    names |= {f"without_{d}_{e}": f"without {d}·{e}" for d in PART_NAMES for e in PART_NAMES}
    assert names.keys() == SUBSETS.keys()
    assert set(names.values()) == found.similarity.keys() == found.agreement.keys()
    for theirs, mine in names.items():
        assert found.similarity[mine] == pytest.approx(expected[theirs].similarity, abs=1e-12)
        assert found.agreement[mine] == pytest.approx(expected[theirs].argmax_agreement, abs=1e-6)


# Laws.


@settings(max_examples=50)
@given(batches(count=10), st.integers(0, 8))
def test_shares_sum_to_one_ignore_constants_and_halves_are_the_whole(batch, cut):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    assert sum(whole.covariance.values()) == pytest.approx(1)
    assert sum(whole.mean_absolute.values()) == pytest.approx(1)

    moved = sums_of(terms + torch.linspace(-9, 9, 10, dtype=terms.dtype)[:, None, None, None], allowed)
    halves = sums_of(terms[:, cut:], allowed[cut:]) + sums_of(terms[:, :cut], allowed[:cut])
    for other in (moved.result(), halves.result()):
        for name in ("covariance", "mean_absolute", "similarity", "agreement"):
            assert getattr(other, name) == pytest.approx(getattr(whole, name), abs=1e-9)
        assert (other.entries, other.rows, other.rows_left_out) == (
            whole.entries, whole.rows, whole.rows_left_out
        )  # fmt: skip
        assert other.spread == pytest.approx(whole.spread)


@settings(max_examples=30)
@given(batches())
def test_causal_rows_are_prefixes(batch):
    """A triangle is as many samples of one row each, of growing length."""
    terms, target_mask, source_mask = batch
    causal = allowed_of(batch).tril()
    pieces = TermSums(NINE)
    for row in range(terms.shape[2]):
        prefix = source_mask.clone()
        prefix[:, row + 1 :] = False
        pieces.update(terms[:, :, row, None], target_mask[:, row, None, None] & prefix[:, None, :])
    whole, apart = sums_of(terms, causal).result(), pieces.result()
    assert (whole.rows, whole.entries, whole.rows_left_out) == (
        apart.rows,
        apart.entries,
        apart.rows_left_out,
    )
    assert whole.rows_left_out >= len(terms[0])  # the first row of each sample sees one position
    assert whole.covariance == pytest.approx(apart.covariance, abs=1e-10, nan_ok=True)
    assert whole.similarity == pytest.approx(apart.similarity, abs=1e-12, nan_ok=True)


# By hand.


def test_two_positions():
    """Centred: temporal ±1, input ±3, total ±4; first entries 2^2 : 1 and so on, in powers of e^2."""
    shares = sums_of(*terms_of({"temporal·temporal": [6.0, 4.0], "input·input": [10.0, 4.0]})).result()
    assert shares.covariance["temporal·temporal"] == shares.mean_absolute["temporal·temporal"] == 0.25
    assert shares.covariance["input·input"] == shares.mean_absolute["input·input"] == 0.75
    assert shares.spread == 4.0
    assert (shares.entries, shares.rows, shares.rows_left_out) == (2, 1, 0)


def test_two_positions_rebuilt():
    """First entries: temporal alone 2/3 (2:1), input alone 4/5 (4:1), none 1/2, all 8/9 (8:1)."""
    shares = sums_of(*terms_of({"temporal·temporal": [LOG2, 0.0], "input·input": [2 * LOG2, 0.0]})).result()
    assert shares.similarity["temporal only"] == pytest.approx(1 - (8 / 9 - 2 / 3))
    assert shares.similarity["input only"] == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert shares.similarity["uniform"] == pytest.approx(1 - (8 / 9 - 1 / 2))
    assert shares.similarity["without temporal·temporal"] == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert shares.agreement["uniform"] == 0.5
    assert shares.agreement["temporal only"] == 1.0


def test_the_position_bias_is_a_tenth_term():
    """Bias alone 4:1, with temporal 8:1, which is all there is."""
    terms, allowed = terms_of({"temporal·temporal": [LOG2, 0.0], POSITION_BIAS: [2 * LOG2, 0.0]}, TEN)
    shares = sums_of(terms, allowed).result()
    assert shares.covariance[POSITION_BIAS] == pytest.approx(2 / 3)
    assert shares.similarity["position bias only"] == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert shares.similarity["temporal and position bias"] == pytest.approx(1.0)
    assert shares.similarity["no residual"] == pytest.approx(1.0)
    assert shares.similarity[f"without {POSITION_BIAS}"] == pytest.approx(1 - (8 / 9 - 2 / 3))


def test_ties_but_for_rounding_are_ties():
    """One word twice: input alone cannot tell the places apart, whatever the last bit says."""
    terms, allowed = terms_of({"input·input": [1.0, 1.0 + 1e-7, 0.0], "temporal·temporal": [0.5, 0.0, 0.0]})
    shares = sums_of(terms.float(), allowed).result()
    assert shares.agreement["input only"] == 0.5
    assert shares.agreement["temporal only"] == 1.0


def test_undefined_where_nothing_varies():
    """Flat rows have no share, but a spread, which is zero; nothing at all has neither."""
    flat = sums_of(torch.ones(9, 1, 1, 3), torch.ones(1, 1, 3, dtype=torch.bool)).result()
    assert all(map(math.isnan, [*flat.covariance.values(), *flat.mean_absolute.values()]))
    assert flat.spread == 0.0
    assert flat.similarity["uniform"] == 1.0
    nothing = TermSums(NINE).result()
    assert all(map(math.isnan, [*nothing.covariance.values(), *nothing.similarity.values(), nothing.spread]))


def test_undefined_where_terms_cancel_but_for_rounding():
    rows = {"temporal·temporal": [0.1, 0.0], "input·input": [0.2, 0.0], "residual·residual": [-0.3, 0.0]}
    shares = sums_of(*terms_of(rows)).result()
    assert all(map(math.isnan, shares.covariance.values()))
    assert shares.mean_absolute["residual·residual"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("terms", "allowed"),
    [((10, 2, 3, 4), (2, 3, 4)), ((9, 2, 3, 4), (2, 4, 3)), ((9, 2, 3, 4), (1, 3, 4)), ((9, 2, 3), (2, 3))],
)
def test_wrong_shapes_are_refused(terms, allowed):
    sums = TermSums(NINE)
    with pytest.raises(BadInput, match=r"expected \(9, batch, target, source\)"):
        sums.update(torch.zeros(terms), torch.ones(allowed, dtype=torch.bool))
    assert sums.result().rows == 0


def test_other_terms_do_not_merge():
    with pytest.raises(BadInput, match="cannot merge"):
        TermSums(NINE) + TermSums(TEN)
