"""The nine alignment terms: by hand, against the score, and through linear maps."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import PART_NAMES, Components, Parts, alignment_terms, map_parts


def side(batch, length, width, dtype, generator, scale):
    """(states, mask, parts) of a random side, states at padding not finite."""
    states = scale + torch.randn(batch, length, width, generator=generator, dtype=torch.float64).to(dtype)
    tokens = torch.randint(7, (batch, length), generator=generator)
    mask = torch.arange(length) < torch.randint(1, length + 1, (batch, 1), generator=generator)
    states[~mask] = torch.nan
    parts = Components(7, length, width).update(states, tokens, mask).split(states, tokens, mask)
    return states.masked_fill(~mask[:, :, None], 0), mask, parts


@st.composite
def both_sides(draw):
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, target, source, width = (draw(st.integers(1, high)) for high in (8, 5, 6, 9))
    dtype, tolerance = draw(st.sampled_from([(torch.float64, 1e-12), (torch.float32, 1e-5)]))
    scale = draw(st.sampled_from([0.0, 30.0]))
    return *(side(batch, length, width, dtype, generator, scale) for length in (target, source)), tolerance


@settings(max_examples=60)
@given(both_sides())
def test_terms_sum_to_the_score_and_each_is_the_product_of_its_two_parts(sides):
    (decoder, target_mask, decoder_parts), (encoder, source_mask, encoder_parts), tolerance = sides
    terms = alignment_terms(decoder_parts, encoder_parts)
    scores = decoder @ encoder.transpose(1, 2)
    scale = decoder.norm(dim=-1).max() * encoder.norm(dim=-1).max()
    assert terms.dtype == decoder.dtype
    assert terms.shape == (3, 3, *scores.shape)
    assert (terms.sum((0, 1)) - scores).abs().max() <= tolerance * scale
    valid = target_mask[:, :, None] & source_mask[:, None, :]
    assert not terms[:, :, ~valid].any()
    halves = alignment_terms(decoder_parts, encoder_parts, scale=0.5)
    for i, left in enumerate(decoder_parts):
        for j, right in enumerate(encoder_parts):
            expected = torch.einsum("btd,bsd->bts", left, right) / 2
            slack = tolerance * left.abs().max().item()
            assert torch.allclose(halves[i, j], expected, rtol=tolerance, atol=slack)


def test_hand_worked_terms_are_decoder_by_encoder():
    place = torch.ones(1, 1, dtype=torch.bool)
    values = torch.tensor([[1.0, 2, 3], [10, 20, 40]])[:, :, None, None, None]
    terms = alignment_terms(*(Parts(*parts, mask=place) for parts in values))
    assert terms[:, :, 0, 0, 0].tolist() == [[10, 20, 40], [20, 40, 80], [30, 60, 120]]
    assert PART_NAMES == ("temporal", "input", "residual")


@settings(max_examples=30)
@given(both_sides(), st.booleans())
def test_mapped_parts_are_the_parts_of_the_mapped_states(sides, with_bias):
    """Fitting commutes with a linear map: splitting W h + b gives the mapped parts."""
    (decoder, mask, parts), _, tolerance = sides
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(4, decoder.shape[2], generator=generator, dtype=torch.float64).to(decoder.dtype)
    bias = torch.arange(4.0, dtype=decoder.dtype) if with_bias else None
    mapped = map_parts(parts, weight, bias)
    states = torch.nn.functional.linear(decoder, weight, bias)
    scale = decoder.abs().max() * weight.abs().max() * decoder.shape[2] + 4
    assert (mapped.total() - states)[mask].abs().max() <= tolerance * scale
    assert not mapped.total()[~mask].any()

    tokens = torch.zeros(decoder.shape[:2], dtype=torch.int64)
    before, after = (
        Components(1, *own.shape[1:]).update(own, tokens, mask).split(own, tokens, mask)
        for own in (decoder, states)
    )
    for mine, theirs in zip(map_parts(before, weight, bias), after, strict=True):
        assert (mine - theirs).abs().max() <= tolerance * scale
