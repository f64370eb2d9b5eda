"""Self-attention with one map for queries and keys: symmetric scores, and nothing else changed."""

import torch

from attnlib.models.transformer import Transformer, tie_encoder
from tests.attnlib.models.test_transformer import SMALL, batch_of, generator


def test_scores_of_the_encoder_are_symmetric_and_no_others():
    trace = tie_encoder(Transformer(SMALL, generator()).double())(batch_of(1))
    for heads in trace.encoder_self:
        for head in heads:
            torch.testing.assert_close(head.scores, head.scores.mT)
            assert not torch.allclose(head.attention, head.attention.mT, atol=1e-3)
    for head in (trace.decoder_self[1][0], trace.cross[1][0]):
        assert not torch.allclose(head.scores[:, :4, :4], head.scores[:, :4, :4].mT, atol=1e-3)


def test_all_else_is_what_was_drawn():
    free, tied = (Transformer(SMALL, generator()) for _ in range(2))
    state = tie_encoder(tied).state_dict()
    left = {name for name in free.state_dict() if "encoder" in name and ".self_attention.key_map." in name}
    assert set(state) == set(free.state_dict()) - left
    assert len(left) == 2 * SMALL.layers  # weight and bias
    for name, value in state.items():
        assert torch.equal(value, free.state_dict()[name])
    assert sum(p.numel() for p in free.parameters()) - sum(p.numel() for p in tied.parameters()) == (
        SMALL.layers * SMALL.width * (SMALL.width + 1)
    )


def test_it_is_the_free_network_whose_key_map_is_the_query_map():
    free, tied = (Transformer(SMALL, generator(3)) for _ in range(2))
    tie_encoder(tied)
    with torch.no_grad():
        for layer in free.encoder:
            layer.self_attention.key_map.load_state_dict(layer.self_attention.query_map.state_dict())
    torch.testing.assert_close(tied(batch_of()).logits, free(batch_of()).logits, rtol=0, atol=0)
    query, key = tied.projections("encoder_self", layer=0, head=1)
    torch.testing.assert_close(query.weight * SMALL.head_width**0.5, key.weight)
