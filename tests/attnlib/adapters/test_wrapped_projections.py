"""Projections that are wrapped or quantised: refused by name, their layers not left out in silence."""

import pytest
from torch import nn

from attnlib.adapters import HuggingFace
from attnlib.errors import BadInput
from tests.attnlib.adapters.test_hugging_face import BATCH, model_of


class Wrapped(nn.Module):
    """As LoRA wraps a projection."""

    def __init__(self, inner):
        super().__init__()
        self.base_layer = inner

    def forward(self, *given, **named):
        return self.base_layer(*given, **named)


class Coarse(nn.Linear):
    """As quantised projections do, it computes otherwise than with its weight."""

    def forward(self, states):
        return super().forward(states).round()


@pytest.mark.parametrize("wrap", [Wrapped, lambda inner: Coarse(inner.in_features, inner.out_features)])
@pytest.mark.parametrize("side", ["q", "k"])
def test_a_wrapped_projection_is_refused_and_its_layer_not_left_out(side, wrap):
    model = model_of("T5")
    attention = model.decoder.block[1].layer[1].EncDecAttention
    setattr(attention, side, wrap(getattr(attention, side)))
    with pytest.raises(
        BadInput, match=rf"decoder\.block\.1\.layer\.1\.EncDecAttention\.{side} is .*merge_and_unload"
    ):
        HuggingFace(model)
    assert len(HuggingFace(model, kinds=("encoder_self",)).trace(BATCH).attended) == 2


def test_a_wrapped_attention_is_refused_and_its_layer_not_left_out():
    model = model_of("Bart")
    layer = model.get_decoder().layers[0]
    layer.encoder_attn = Wrapped(layer.encoder_attn)
    with pytest.raises(BadInput, match=r"decoder\.layers\.0\.encoder_attn is Wrapped, which has no query"):
        HuggingFace(model)
