"""The nine alignment terms: by hand, against the score, and through linear maps."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import PART_NAMES, Components, Parts, alignment_terms, map_parts
from tests.attnlib.decomposition.component_builders import corpora, fitted, tensors

CORPORA = corpora(width=3, batch=5, words=(1, 7))
TOLERANCES = st.sampled_from([(torch.float64, 1e-12), (torch.float32, 1e-5)])


def side(corpus, dtype):
    """States, zero at padding, their mask and their parts."""
    states, tokens, mask = tensors(corpus, dtype)
    parts = fitted(corpus, dtype=dtype).split(states, tokens, mask)
    return states.masked_fill(~mask[:, :, None], 0), mask, parts


@settings(max_examples=60)
@given(CORPORA, CORPORA, TOLERANCES)
def test_terms_sum_to_the_score_and_each_is_the_product_of_its_two_parts(first, second, precision):
    dtype, tolerance = precision
    (decoder, target_mask, decoder_parts), (encoder, source_mask, encoder_parts) = (
        side(corpus, dtype) for corpus in (first, second)
    )
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


@settings(max_examples=30)
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
