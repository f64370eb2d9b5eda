"""torch's own attention, nn.MultiheadAttention, alone and in nn.Transformer."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Hooked, Modules
from attnlib.errors import BadInput
from tests.attnlib.adapters.test_adapter_hooks import hooks_on
from tests.attnlib.adapters.test_modules import BATCH, assert_terms_sum_to_the_scores, drawn


class Translator(nn.Module):
    """nn.Transformer with embeddings, two layers of two heads of width 4 on either side."""

    def __init__(self, **changes):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        settings = {"dim_feedforward": 8, "dropout": 0.3, "batch_first": True} | changes
        self.transformer = nn.Transformer(8, 2, 2, 2, **settings)

    def forward(self, batch):
        steps = batch.read.shape[1]
        return self.transformer(
            self.words(batch.source),
            self.words(batch.read),
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
            src_key_padding_mask=~batch.source_mask,
            tgt_key_padding_mask=~batch.target_mask,
            memory_key_padding_mask=~batch.source_mask,
        )


PLACES = {
    "encoder_self": "transformer.encoder.layers.{}.self_attn",
    "decoder_self": "transformer.decoder.layers.{}.self_attn",
    "cross": "transformer.decoder.layers.{}.multihead_attn",
}
HOOKED = [
    Hooked(name.format(layer), name.format(layer), kind=kind, layer=layer)
    for kind, name in PLACES.items()
    for layer in range(2)
]


def run(model, batch):
    return model(batch)


def oracle(module, query, key, allowed):
    """Attention by head, from torch's module itself on the states that were caught."""
    forbidden = ~allowed.repeat_interleave(module.num_heads, 0)
    return module(query, key, key, attn_mask=forbidden, average_attn_weights=False)[1]


def test_every_attention_of_a_transformer():
    model = drawn(Translator())
    found = Modules(model, HOOKED, run, start=2).trace(BATCH)
    assert [one.name for one in found.attended] == [one.name for one in HOOKED]
    for one, hooked in zip(found.attended, HOOKED, strict=True):
        allowed = one.allowed(*(found.mask(side) for side in found.sides(one.kind)))
        module = model.get_submodule(hooked.query).eval()
        expected = oracle(module, one.query_inputs, one.key_inputs, allowed).detach()
        rows = found.mask(found.sides(one.kind)[0])
        for head in range(2):
            own = found.softmax(one, head)[rows]
            torch.testing.assert_close(own, expected[:, head][rows], rtol=0, atol=1e-5)
        assert one.scores.std() > 0.5
        assert one.scale == 0.5
    assert_terms_sum_to_the_scores(found)
    assert hooks_on(model) == 0


def test_self_attention_reads_one_sequence_and_cross_attention_the_encoders_states():
    model = drawn(Translator())
    found = Modules(model, HOOKED, run, start=2).trace(BATCH)
    for one in found.attended:
        assert (one.query_site == one.key_site) == (one.kind != "cross")
        assert (one.query_inputs is one.key_inputs) == (one.kind != "cross")
    memory = model.eval().transformer.encoder(
        model.words(BATCH.source), src_key_padding_mask=~BATCH.source_mask
    )
    for one in found.attended[-2:]:
        torch.testing.assert_close(one.key_inputs[BATCH.source_mask], memory[BATCH.source_mask])


def test_the_output_is_as_without_hooks():
    model, kept = drawn(Translator()).eval(), []
    Modules(model, HOOKED, lambda model, batch: kept.append(model(batch)), start=2).trace(BATCH)
    read = torch.cat([torch.full((3, 1), 2), BATCH.target[:, :-1]], 1)
    plain = model(replace(BATCH, read=read))
    torch.testing.assert_close(kept[0][BATCH.target_mask], plain[BATCH.target_mask])


class One(nn.Module):
    """One nn.MultiheadAttention over embeddings, called as ``call`` says."""

    def __init__(self, call, **settings):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True, **settings)
        self.call = call

    def forward(self, batch):
        return self.call(self.attend, self.words(batch.read), self.words(batch.source), ~batch.source_mask)


def usual(attend, asks, answers, padding):
    return attend(asks, answers, answers, key_padding_mask=padding)


def traced_alone(call, **settings):
    model = drawn(One(call, **settings))
    (one,) = Modules(model, [Hooked("attend", "attend")], run, start=2).trace(BATCH).attended
    return one


@pytest.mark.parametrize(
    "call",
    [
        lambda attend, asks, answers, padding: attend(
            query=asks, key=answers, value=answers, key_padding_mask=padding
        ),
        lambda attend, asks, answers, padding: attend(asks, answers, answers, padding, False),
        lambda attend, asks, answers, padding: attend(
            asks, answers, answers, padding, need_weights=True, average_attn_weights=True
        ),
    ],
    ids=["names", "places", "average"],
)
def test_arguments_by_place_and_by_name(call):
    assert torch.equal(traced_alone(call).attention, traced_alone(usual).attention)


def test_attention_without_biases():
    assert traced_alone(usual, bias=False).query_map.bias is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    found = Modules(drawn(Translator()).to(dtype), HOOKED, run, start=2).trace(BATCH)
    computed = torch.promote_types(dtype, torch.float32)
    for one in found.attended:
        assert one.attention.dtype == dtype
        assert one.scores.dtype == one.query_inputs.dtype == computed


@pytest.mark.parametrize(
    "made",
    [
        nn.MultiheadAttention(8, 2),
        nn.MultiheadAttention(8, 2, kdim=6, batch_first=True),
    ],
)
def test_attention_that_cannot_be_split_is_refused(made):
    model = nn.Sequential(made)
    with pytest.raises(BadInput, match="make it with batch_first=True and one width"):
        Modules(model, [Hooked("0", "0")], run)


def test_torchs_attention_is_named_for_both():
    name = PLACES["cross"].format(0)
    with pytest.raises(BadInput, match=f"{name} makes queries and keys: name it for both, not 'words'"):
        Modules(Translator(), [Hooked(name, "words")], run)


def test_attention_to_more_than_the_words_is_refused():
    with pytest.raises(BadInput, match=r"attention of shape \(3, 2, 4, 6\); expected \(3, 2, 4, 5\)"):
        traced_alone(usual, add_zero_attn=True)  # a column that is no word
