"""A Transformer whose encoder has queries and keys of one map."""

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.transformer import Transformer
from notebooks.shared.transformer_sequences import tie_encoder
from tests.attnlib.models.model_builders import SMALL, batch_of, generator, transformer

BATCH = batch_of()


def test_scores_of_a_tied_encoder_are_symmetric_and_no_others():
    trace = tie_encoder(Transformer(SMALL, generator()).double())(batch_of(1))
    for heads in trace.encoder_self:
        for head in heads:
            torch.testing.assert_close(head.scores, head.scores.mT)
            assert not torch.allclose(head.attention, head.attention.mT, atol=1e-3)
    for head in (trace.decoder_self[1][0], trace.cross[1][0]):
        assert not torch.allclose(head.scores[:, :4, :4], head.scores[:, :4, :4].mT, atol=1e-3)


def test_a_tied_encoder_is_the_free_one_whose_key_map_is_the_query_map():
    free, tied = (Transformer(SMALL, generator(3)) for _ in range(2))
    state = tie_encoder(tied).state_dict()
    left = {name for name in free.state_dict() if "encoder" in name and ".self_attention.key_map." in name}
    assert set(state) == set(free.state_dict()) - left
    with torch.no_grad():
        for layer in free.encoder:
            layer.self_attention.key_map.load_state_dict(layer.self_attention.query_map.state_dict())
    torch.testing.assert_close(tied(BATCH).logits, free(BATCH).logits, rtol=0, atol=0)
    query, key = tied.projections("encoder_self", layer=0, head=1)
    torch.testing.assert_close(query.weight * SMALL.head_width**0.5, key.weight)


def test_positions_inside_self_attention_are_refused():
    with pytest.raises(BadInput, match="self-attention that would be tied"):
        tie_encoder(transformer(positions="rotary"))
