"""Terms, their shares and typical attention: by hand, against loops, and the laws they must obey."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import Components, GrowingComponents, Parts, alignment_terms, shares, substitution, typicality
from attnlib.decomposition import PART_NAMES, SUBSETS, AttentionCells, ShareSums, SubstitutionSums, map_parts
from attnlib.decomposition.shares import covariance_shares_by_sample, similarity_by_sample
from attnlib.decomposition.substitution import ALL_PAIRS, valid_rows
from tests.attnlib.decomposition import component_builders as made
from tests.attnlib.refusals import refused

CORPORA = made.corpora(width=3, batch=5, words=(1, 7))
TOLERANCES = st.sampled_from([(torch.float64, 1e-12), (torch.float32, 1e-5)])


def side(corpus, dtype):
    """States, zero at padding, their mask and their parts."""
    states, tokens, mask = made.tensors(corpus, dtype)
    parts = made.fitted(corpus, dtype=dtype).split(states, tokens, mask)
    return states.masked_fill(~mask[:, :, None], 0), mask, parts


@given(CORPORA, CORPORA, TOLERANCES)
def test_terms_sum_to_the_score_and_each_is_the_product_of_its_two_parts(first, second, precision):
    dtype, tolerance = precision
    decoder, target_mask, decoder_parts = side(first, dtype)
    encoder, source_mask, encoder_parts = side(second, dtype)
    terms = alignment_terms(decoder_parts, encoder_parts)
    scores = decoder @ encoder.transpose(1, 2)
    slack = 4 * tolerance * decoder.norm(dim=-1).max() * encoder.norm(dim=-1).max()
    assert terms.dtype == dtype
    assert terms.shape == (3, 3, *scores.shape)
    assert (terms.sum((0, 1)) - scores).abs().max() <= slack
    assert not terms[:, :, ~(target_mask[:, :, None] & source_mask[:, None, :])].any()
    halves = alignment_terms(decoder_parts, encoder_parts, scale=0.5)
    for i, left in enumerate(decoder_parts):
        for j, right in enumerate(encoder_parts):
            expected = torch.einsum("btd,bsd->bts", left, right) / 2
            assert (halves[i, j] - expected).abs().max() <= slack


def test_hand_worked_terms_are_decoder_by_encoder():
    place = torch.ones(1, 1, dtype=torch.bool)
    values = torch.tensor([[1.0, 2, 3], [10, 20, 40]])[:, :, None, None, None]
    terms = alignment_terms(*(Parts(*parts, mask=place) for parts in values))
    assert terms[:, :, 0, 0, 0].tolist() == [[10, 20, 40], [20, 40, 80], [30, 60, 120]]
    assert PART_NAMES == ("temporal", "input", "residual")


@given(CORPORA, TOLERANCES, st.booleans())
def test_mapped_parts_are_the_parts_of_the_mapped_states(corpus, precision, with_bias):
    """Fitting commutes with a linear map: splitting W h + b gives the mapped parts."""
    dtype, tolerance = precision
    states, mask, parts = side(corpus, dtype)
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    bias = torch.arange(4.0, dtype=dtype) if with_bias else None
    mapped = torch.nn.functional.linear(states, weight, bias)
    tokens = torch.from_numpy(corpus[1])
    again = Components(corpus[3], mask.shape[1], 4).update(mapped, tokens, mask).split(mapped, tokens, mask)
    scale = states.abs().max() * weight.abs().max() * 3 + 4
    for mine, theirs in zip(map_parts(parts, weight, bias), again, strict=True):
        assert (mine - theirs).abs().max() <= 4 * tolerance * scale


LOG2 = math.log(2)


def terms_of(rows):
    """Terms of one sample and one target, zero but for {(decoder part, encoder part): row}, and masks."""
    source = len(next(iter(rows.values())))
    terms = torch.zeros(3, 3, 1, 1, source, dtype=torch.float64)
    for pair, row in rows.items():
        terms[pair] = torch.tensor(row, dtype=torch.float64)
    return terms, torch.ones(1, 1, dtype=torch.bool), torch.ones(1, source, dtype=torch.bool)


def of_terms(sums, rows):
    return sums.update(*terms_of(rows)).result()


batches = made.term_batches().map(lambda batch: (batch[0].unflatten(0, (3, 3)), *batch[1:]))


def rows_of(terms, target_mask, source_mask):
    """The (9, positions) terms of every row with more than one valid position."""
    for sample, target in target_mask.nonzero().tolist():
        row = terms[:, :, sample, target][:, :, source_mask[sample]].flatten(0, 1)
        if row.shape[1] > 1:
            yield row


def part_of(batch, rows):
    terms, target_mask, source_mask = batch
    return terms[:, :, rows], target_mask[rows], source_mask[rows]


def test_hand_worked_shares():
    """Temporal 1 -1 and input 3 -3 after centring, total 4 -4: a quarter and three quarters, either way."""
    shares = of_terms(ShareSums(), {(0, 0): [6.0, 4.0], (1, 1): [10.0, 4.0]})
    assert shares.mean_absolute[0, 0] == shares.covariance[0, 0] == shares.temporal == 0.25
    assert shares.mean_absolute[1, 1] == shares.covariance[1, 1] == 0.75
    assert (shares.rows, shares.entries, shares.rows_left_out) == (1, 2, 0)


@given(batches, st.integers(0, 12))
def test_agree_with_numpy_sum_to_one_ignore_constants_and_stream(batch, cut):
    rows = [row - row.mean(1, keepdim=True) for row in rows_of(*batch)]
    pooled = torch.cat(rows, 1).numpy()
    total = pooled.sum(0)
    shares = ShareSums().update(*batch).result()
    covariance = [np.cov(term, total, bias=True)[0, 1] / total.var() for term in pooled]
    means = np.abs(pooled).mean(1)
    assert np.allclose(shares.covariance.flatten(), covariance, rtol=1e-9, atol=1e-12)
    assert np.allclose(shares.mean_absolute.flatten(), means / means.sum(), rtol=1e-12)
    assert (shares.rows, shares.entries) == (len(rows), pooled.shape[1])
    assert shares.rows + shares.rows_left_out == int(batch[1].sum())
    assert shares.covariance.sum().item() == pytest.approx(1)
    assert shares.mean_absolute.sum().item() == pytest.approx(1)

    shifted = batch[0] + torch.linspace(-50, 50, 9, dtype=torch.float64).view(3, 3, 1, 1, 1)
    moved = ShareSums().update(shifted, *batch[1:]).result()
    assert torch.allclose(moved.covariance, shares.covariance, atol=1e-8)
    first, second = (ShareSums().update(*part_of(batch, rows)) for rows in (slice(cut), slice(cut, None)))
    merged = (second + first).result()
    assert torch.allclose(merged.covariance, shares.covariance, rtol=1e-10)
    assert torch.allclose(merged.mean_absolute, shares.mean_absolute, rtol=1e-10)
    assert (merged.rows, merged.entries) == (shares.rows, shares.entries)


@pytest.mark.parametrize(
    ("rows", "mean_absolute"),
    [  # 0.1 + 0.2 - 0.3 is not zero in floating point: such a total has no variance to share
        ({(0, 0): [2.0, 2.0, 2.0], (2, 2): [1.0, 1.0, 1.0]}, math.nan),
        ({(0, 0): [0.1, 0.0], (1, 1): [0.2, 0.0], (2, 2): [-0.3, 0.0]}, 0.5),
    ],
)
def test_undefined_where_nothing_varies_or_the_terms_cancel_up_to_rounding(rows, mean_absolute):
    shares = of_terms(ShareSums(), rows)
    assert shares.mean_absolute[2, 2].item() == pytest.approx(mean_absolute, nan_ok=True)
    assert shares.covariance.isnan().all()
    assert covariance_shares_by_sample(*terms_of(rows)).isnan().all()
    assert ShareSums().result().covariance.isnan().all()
    assert math.isnan(SubstitutionSums().result()["uniform"].similarity)


def test_hand_worked_substitution():
    """First entries: temporal alone 2/3 (ratio 2:1), input alone 4/5 (4:1), uniform 1/2, full 8/9 (8:1)."""
    results = of_terms(SubstitutionSums(), {(0, 0): [LOG2, 0.0], (1, 1): [2 * LOG2, 0.0]})
    similarities = {"temporal_only": 2 / 3, "input_only": 4 / 5, "uniform": 1 / 2, "no_residual": 8 / 9}
    similarities |= {"without_temporal_temporal": 4 / 5, "without_residual_input": 8 / 9}
    for name, first in similarities.items():
        assert results[name].similarity == pytest.approx(1 - (8 / 9 - first))


SKEWED = {(0, 0): [0.0, 1.0, 2.0], (2, 1): [9.0, 0.0, 0.0]}
AGREES = {"temporal_only": 0, "without_residual_input": 0, "without_temporal_temporal": 1, "uniform": 1 / 3}
# one word twice: input alone cannot tell the places apart, whatever the last bit of the product says
TWICE = {(1, 1): [1.0, 1.0 + 1e-7, 0.0], (0, 0): [0.5, 0.0, 0.0]}


@pytest.mark.parametrize(
    ("rows", "agreement"), [(SKEWED, AGREES), (TWICE, {"input_only": 1 / 2, "temporal_only": 1})]
)
def test_hand_worked_agreement(rows, agreement):
    terms, *masks = terms_of(rows)
    results = SubstitutionSums().update(terms.float(), *masks).result()
    assert {name: results[name].argmax_agreement for name in agreement} == pytest.approx(agreement)


@given(batches)
def test_substitution_agrees_with_a_loop_of_rows_and_merges_in_any_order_of_names(batch):
    subsets = {"decoder residual": [("residual", part) for part in PART_NAMES], "all": ALL_PAIRS, "none": []}
    results = SubstitutionSums(subsets).update(*batch).result()
    similarity, agreement, uniform = [], [], []
    for row in rows_of(*batch):
        full, part = row.sum(0), row[6:].sum(0)
        similarity.append(float(1 - (full.softmax(0) - part.softmax(0)).abs().sum() / 2))
        agreement.append(float(full.argmax() == part.argmax()))
        uniform.append(1 / len(full))
    assert results["decoder residual"].similarity == pytest.approx(np.mean(similarity))
    assert results["decoder residual"].argmax_agreement == pytest.approx(np.mean(agreement))
    assert results["all"].similarity == pytest.approx(1)
    assert results["all"].argmax_agreement == 1
    assert results["none"].argmax_agreement == pytest.approx(np.mean(uniform))
    assert all(result.rows == len(agreement) for result in results.values())

    first = SubstitutionSums(subsets).update(*part_of(batch, slice(1)))
    turned = SubstitutionSums(dict(reversed(subsets.items()))).update(*part_of(batch, slice(1, None)))
    merged = first.merge(turned).result()
    for name, result in results.items():
        assert merged[name].similarity == pytest.approx(result.similarity)
        assert merged[name].argmax_agreement == pytest.approx(result.argmax_agreement)


# Single samples: the pooled definitions applied to one sample at a time are the oracle.


@given(batches)
def test_each_sample_has_what_it_has_alone(batch):
    shares = covariance_shares_by_sample(*batch)
    similar = {n: similarity_by_sample(*batch, SUBSETS[n]) for n in ("temporal_only", "no_residual")}
    for sample in range(len(batch[1])):
        alone = part_of(batch, slice(sample, sample + 1))
        expected = ShareSums().update(*alone).result().covariance  # NaN where only one position is valid
        torch.testing.assert_close(shares[sample], expected, equal_nan=True)
        rebuilt = SubstitutionSums().update(*alone).result()
        for name, found in similar.items():
            assert float(found[sample]) == pytest.approx(rebuilt[name].similarity, nan_ok=True)


def typicality_loop(matrices, minimum):
    """Each sample against the plain mean of the others of its shape; NaN in small cells."""
    values = []
    for k, matrix in enumerate(matrices):
        others = [other for j, other in enumerate(matrices) if j != k and other.shape == matrix.shape]
        if len(others) + 1 < minimum:
            values.append(math.nan)
        else:
            average = torch.stack(others).double().mean(0)
            values.append(1 - float((matrix.double() - average).abs().sum(-1).mean()) / 2)
    return values


def test_hand_worked():
    """Three samples of one row: (1, 0), (1, 0), (0, 1). Others' means: (1/2, 1/2) twice, (1, 0) once."""
    rows = [torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])]
    result = typicality(rows, minimum=3)
    assert result.per_sample.tolist() == [0.5, 0.5, 0.0]
    assert result.value == pytest.approx(1 / 3)
    assert (result.coverage, result.cells, result.samples) == (1.0, 1, 3)


def test_cells_of_thirty():
    result = typicality([torch.eye(3)] * 30 + [torch.eye(2)] * 29)
    assert (result.value, result.coverage, result.cells) == (1.0, 30 / 59, 1)
    for few in ([torch.eye(3)] * 29 + [torch.eye(2)], []):
        with pytest.warns(
            UserWarning, match=f"is NaN: {max(len(few) - 1, 0)} matrices at most are of one size; give"
        ):
            found = typicality(few)
        assert math.isnan(found.value)
        assert found.coverage == 0 or math.isnan(found.coverage) == (not few)


@given(made.attention_matrices(), st.integers(2, 8), st.integers(1, 9))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_lists_padded_batches_and_a_loop_agree(matrices, minimum, size):
    expected = torch.tensor(typicality_loop(matrices, minimum), dtype=torch.float64)
    listed = typicality(matrices, minimum=minimum)
    assert torch.allclose(listed.per_sample, expected, atol=1e-12, equal_nan=True)

    batches = [made.padded(matrices[start : start + size]) for start in range(0, len(matrices), size)]
    first, second = AttentionCells(), AttentionCells()
    for k, batch in enumerate(batches):
        (first, second)[k % 2].update(*batch)
    cells = second.merge(first)
    judged = torch.cat([cells.judge(*batch, minimum=minimum) for batch in batches])
    streamed = cells.result(judged, minimum=minimum)
    assert torch.allclose(judged, expected, atol=1e-12, equal_nan=True)
    assert streamed.value == pytest.approx(listed.value, nan_ok=True)
    assert (streamed.coverage, streamed.cells) == (listed.coverage, listed.cells)


def test_average_attention_of_a_cell():
    cells = AttentionCells().update(*made.padded([torch.eye(2), torch.eye(2).flip(0), torch.eye(3)]))
    assert cells.average_attention((2, 2)).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert torch.equal(cells.average_attention((3, 3)), torch.eye(3, dtype=torch.float64))


def test_sums_of_terms_and_matrices_take_arrays_and_no_masks():
    draw = torch.Generator().manual_seed(0)
    mask = torch.ones(2, 4, dtype=torch.bool)
    parts = Parts(*torch.randn(3, 2, 4, 3, generator=draw), mask=mask)
    terms = alignment_terms(map_parts(parts, np.eye(3, dtype=np.float32)), parts)
    for sums in (ShareSums, SubstitutionSums):
        assert str(sums().update(terms.numpy()).result()) == str(sums().update(terms, mask, mask).result())
    attention = terms.sum((0, 1)).softmax(-1)
    cells = AttentionCells().update(attention.numpy())
    judged = cells.judge(attention.numpy(), mask, mask, minimum=2)
    assert torch.equal(cells.judge(attention, minimum=2), judged)
    assert typicality([np.eye(3)] * 30).value == 1


# What cannot be.

TERMS = torch.zeros(3, 3, 2, 4, 5)
FOUR, FIVE = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
WIDE = Parts(*(torch.zeros(2, 4, 4),) * 3, mask=FOUR)
NARROW = Parts(*(torch.zeros(2, 4, 1),) * 3, mask=FOUR)
MEANS, EXACT = Components(3, 3, 4), Components(3, 3, 4, method="least_squares")
CELLS = AttentionCells().update(torch.ones(1, 2, 3), FOUR[:1, :2], FIVE[:1, :3])

test_what_cannot_be_is_refused = refused(
    (lambda: MEANS + Components(3, 3, 2), "'width': 4} with those of … 'width': 2}"),
    (lambda: EXACT + MEANS, "'least_squares' with those of 'means'"),
    (lambda: GrowingComponents(2) + GrowingComponents(3), "width 2 by means with those of width 3 by means"),
    (lambda: MEANS.variance_explained(), "keep no sum of squares"),
    (lambda: EXACT.variance_explained(), "call update before"),
    (lambda: alignment_terms(WIDE, NARROW), "width must agree"),
    (lambda: alignment_terms(WIDE, Parts(*WIDE.stack().double(), mask=FOUR)), "one dtype"),
    (lambda: map_parts(WIDE, torch.zeros(3, 5)), "expected (out, 4)"),
    (lambda: map_parts(WIDE, torch.zeros(3, 4), torch.zeros(4)), "expected (3,)"),
    (lambda: ShareSums().update(TERMS, FIVE, FOUR), "expected"),
    (lambda: valid_rows(TERMS, FOUR[:1], FIVE), "target mask of"),
    (lambda: SubstitutionSums({"mine": [("temporal", "residuals")]}), "did you mean 'residual'"),
    (lambda: SubstitutionSums().merge(SubstitutionSums({"none": []})), "same subsets"),
    (lambda: typicality([torch.eye(2)] * 3, minimum=1), "minimum=1"),
    (lambda: CELLS.update(torch.ones(2, 4, 5), FIVE, FOUR), "expected"),
    (lambda: CELLS.average_attention((9, 9)), "(9, 9); cells with most samples: [(3, 2)"),
    (lambda: typicality([torch.randn(3, 4)] * 30), "away from a sum of one, or below 0: give what a softmax"),
    (lambda: typicality([torch.eye(3)[None]] * 30), "of shape (1, 3, 3); expected (target, source)"),
    *(
        (partial(measure, torch.zeros(shape), FOUR, FIVE), "expected (3, 3, batch, target, source)")
        for measure in (shares, substitution)
        for shape in ((2, 4, 5), (9, 2, 4, 5), (2, 3, 2, 4, 5), ())
    ),
    (lambda: shares(None), "terms is NoneType, of which no tensor can be made; give a torch.Tensor"),
    (lambda: shares(TERMS, FOUR, FIVE.double()), "source_mask of torch.float64: expected torch.bool"),
    (lambda: typicality([None]), "an attention matrix is NoneType, of which no tensor can be made"),
    (lambda: shares(TERMS, FOUR[0], FIVE), "target_mask of shape (4,); expected (batch, target)"),
)
