"""The nine alignment terms: by hand, against the score, and through linear maps."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import PART_NAMES, Components, Parts, alignment_terms, map_parts, require_bilinear
from attnlib.errors import BadInput, UnknownName


def side(batch, length, width, dtype, generator, scale=1.0):
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
    decoder = side(batch, target, width, dtype, generator, scale)
    encoder = side(batch, source, width, dtype, generator, scale)
    return decoder, encoder, tolerance


@settings(max_examples=60)
@given(both_sides())
def test_terms_sum_to_the_score_and_are_zero_at_padding(sides):
    (decoder, target_mask, decoder_parts), (encoder, source_mask, encoder_parts), tolerance = sides
    terms = alignment_terms(decoder_parts, encoder_parts)
    scores = decoder @ encoder.transpose(1, 2)
    scale = decoder.norm(dim=-1).max() * encoder.norm(dim=-1).max()
    assert terms.dtype == decoder.dtype
    assert terms.shape == (3, 3, *scores.shape)
    assert (terms.sum((0, 1)) - scores).abs().max() <= tolerance * scale
    valid = target_mask[:, :, None] & source_mask[:, None, :]
    assert not terms[:, :, ~valid].any()


@settings(max_examples=20)
@given(both_sides())
def test_each_term_is_the_product_of_its_two_parts(sides):
    (_, _, decoder), (_, _, encoder), tolerance = sides
    terms = alignment_terms(decoder, encoder, scale=0.5)
    for i, left in enumerate(decoder):
        for j, right in enumerate(encoder):
            expected = torch.einsum("btd,bsd->bts", left, right) / 2
            assert torch.allclose(
                terms[i, j], expected, rtol=tolerance, atol=tolerance * left.abs().max().item()
            )


def constant_parts(*values):
    """One place, width one, with these parts."""
    return Parts(
        *(torch.tensor([[[float(value)]]]) for value in values), mask=torch.ones(1, 1, dtype=torch.bool)
    )


def test_hand_worked_terms_are_decoder_by_encoder():
    terms = alignment_terms(constant_parts(1, 2, 3), constant_parts(10, 20, 40))
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
    before = Components(1, decoder.shape[1], decoder.shape[2]).update(decoder, tokens, mask)
    after = Components(1, decoder.shape[1], 4).update(states, tokens, mask)
    first, second = (
        map_parts(before.split(decoder, tokens, mask), weight, bias),
        after.split(states, tokens, mask),
    )
    for mine, theirs in zip(first, second, strict=True):
        assert (mine - theirs).abs().max() <= tolerance * scale


def test_mapping_with_the_identity_changes_nothing():
    parts = constant_parts(1, 2, 3)
    mapped = map_parts(parts, torch.eye(1), torch.tensor([5.0]))
    assert [part.item() for part in mapped] == [6.0, 2.0, 3.0]  # the bias is no word's and no sample's


def test_shapes_that_do_not_fit():
    wide = Parts(*(torch.zeros(1, 2, 4),) * 3, mask=torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(BadInput, match="width must agree"):
        alignment_terms(wide, constant_parts(1, 2, 3))
    double = Parts(*(part.double() for part in wide), mask=wide.mask)
    with pytest.raises(BadInput, match="one dtype"):
        alignment_terms(wide, double)
    with pytest.raises(BadInput, match=r"expected \(out, 4\)"):
        map_parts(wide, torch.zeros(3, 5))
    with pytest.raises(BadInput, match=r"expected \(3,\)"):
        map_parts(wide, torch.zeros(3, 4), torch.zeros(4))


@pytest.mark.parametrize("name", ["dot", "general", "scaled_dot"])
def test_bilinear_scores_pass(name):
    require_bilinear(name)


@pytest.mark.parametrize("name", ["additive", "concat"])
def test_scores_without_nine_terms_are_refused(name):
    with pytest.raises(BadInput, match=f"The {name} score has no nine alignment terms"):
        require_bilinear(name)


def test_unknown_score():
    with pytest.raises(UnknownName, match="'general'"):
        require_bilinear("genral")
