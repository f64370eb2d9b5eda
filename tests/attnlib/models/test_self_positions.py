"""Positions in self-attention: what a score depends on, hand-worked numbers, and what cannot be."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.decomposition.components import Components
from attnlib.errors import BadInput
from attnlib.models.multi_head_attention import (
    REACH,
    MultiHeadAttention,
    RelativeAttention,
    RotaryAttention,
    TransformerConfig,
    new_self_attention,
    rotation_tables,
)
from attnlib.models.transformer import Transformer, tie_encoder
from attnlib.training.corpus import Corpus, collate

CONFIG = TransformerConfig(source_size=9, target_size=8, width=16, heads=2, layers=2, hidden=20)
CORPUS = Corpus.from_ids([[4, 5, 6, 4, 5], [7, 8, 4], [5]], [[4, 5], [6, 7, 4, 4], [5, 6, 7]])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def model_of(positions):
    model = Transformer(replace(CONFIG, positions=positions), generator())
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, RelativeAttention):
                module.distance_bias.normal_(generator=generator(7))
    return model.eval()


def batch():
    return collate(CORPUS, range(3))


@pytest.mark.parametrize("positions", ["relative", "rotary"])
def test_the_same_words_further_on_have_the_same_scores(positions):
    """Only distances count: two words in a row see each other alike wherever the pair stands."""
    attention = new_self_attention(replace(CONFIG, positions=positions)).requires_grad_(False)
    if positions == "relative":
        attention.distance_bias.normal_(generator=generator())
    pair = torch.randn(1, 2, CONFIG.width, generator=generator())
    everywhere = torch.ones(1, 1, 2, dtype=torch.bool)
    found = [attention(pair, attention.answer(pair, first), everywhere, first)[1].scores for first in (0, 3)]
    if positions == "relative":  # a query from 3 on that answers stand before: compare like with like
        assert not torch.allclose(*found)
        found[1] = found[1] - attention.position_bias(3, 2, 2) + attention.position_bias(0, 2, 2)
    torch.testing.assert_close(*found)


def test_a_bias_is_looked_up_by_its_distance():
    attention = RelativeAttention(replace(CONFIG, positions="relative")).requires_grad_(False)
    attention.distance_bias.copy_(torch.arange(-REACH, REACH + 1).expand(2, -1))
    found = attention.position_bias(first=2, target=2, source=4)
    assert found[0].tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
    far = attention.position_bias(first=0, target=1, source=REACH + 5)
    assert far[1, 0, -1] == REACH


def test_a_pair_of_coordinates_turns_by_its_angle():
    attention = RotaryAttention(replace(CONFIG, positions="rotary"))
    rows = torch.zeros(1, 2, 1, 8)
    rows[..., 1] = 1.0  # with coordinate 5 it turns by position · 10000^(-1/4) = position / 10
    turned = attention.placed(rows, first=3)[0, 0, 0]
    expected = torch.zeros(8)
    expected[1], expected[5] = torch.tensor(0.3).cos(), torch.tensor(0.3).sin()
    torch.testing.assert_close(turned, expected)
    cos, sin = rotation_tables(4, 8)
    assert torch.equal(cos[:, :4], cos[:, 4:])
    torch.testing.assert_close(cos.square() + sin.square(), torch.ones(4, 8))


def test_before_training_relative_positions_know_nothing():
    both = [
        Transformer(replace(CONFIG, positions=positions), generator()).eval()(batch()).logits
        for positions in ("relative", "none")
    ]
    torch.testing.assert_close(*both)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_terms_of_every_layer_and_head_sum_to_its_scores(positions):
    one = transformer_pass(model_of(positions), batch())
    parts = {}
    for site, (side, states) in one.sites().items():
        components = Components(9, 6, CONFIG.width).update(states, one.tokens(side), one.mask(side))
        parts[site] = components.split(states, one.tokens(side), one.mask(side))
    assert len(one.attended) == 3 * CONFIG.layers
    for attended in one.attended:
        asks, answers = (one.mask(side) for side in one.sides(attended.kind))
        allowed = attended.allowed(asks, answers)
        for head in range(CONFIG.heads):
            terms = attended.terms(head, parts[attended.query_site], parts[attended.key_site]).sum((0, 1))
            if attended.position_bias is not None:
                terms = terms + attended.position_bias[:, head]
            scores = attended.scores[:, head]
            gap = (terms - scores).masked_fill(~allowed, 0).abs().max()
            assert gap <= 1e-5 * scores.masked_fill(~allowed, 0).abs().max()
        biased = positions == "relative" and attended.kind != "cross"
        assert (attended.position_bias is not None) == biased
        turned = positions == "rotary" and attended.kind != "cross"
        assert (attended.query_rotation is not None) == turned


def test_cross_attention_is_left_as_it_is():
    for positions in ("relative", "rotary"):
        for layer in model_of(positions).decoder:
            assert type(layer.cross_attention) is MultiHeadAttention


def test_what_cannot_be_is_refused():
    with pytest.raises(BadInput, match="rotary positions turn pairs"):
        replace(CONFIG, width=6, heads=2, positions="rotary")
    with pytest.raises(BadInput, match="live in the self-attention that would be tied"):
        tie_encoder(model_of("rotary"))
