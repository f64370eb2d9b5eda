"""Models that cannot be traced, or only in part: what is said, and that no wrong number comes out."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import HuggingFace, TokenBatch
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.adapters.adapter_builders import (
    ABSOLUTE,
    BATCH,
    KINDS,
    RELATIVE,
    assert_same_pass,
    hooks_on,
    model_of,
    traced,
)

transformers = pytest.importorskip("transformers", reason="adapters of Hugging Face models need transformers")


TINY = {"n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 20, "bos_token_id": 0, "eos_token_id": 0}
BERT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
BERT |= {"intermediate_size": 8}


# The implementation of attention.


def test_a_model_that_hides_its_attention_is_switched_with_a_warning():
    model = model_of("T5")
    model.set_attn_implementation("sdpa")
    with pytest.warns(UserWarning, match=r"T5.*by 'sdpa'.*attn_implementation=\"eager\"") as caught:
        adapter = HuggingFace(model, kinds=KINDS)
    assert [one.filename for one in caught] == [__file__]
    assert model.config._attn_implementation == "eager"
    assert_same_pass(adapter.trace(BATCH), traced("T5"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HuggingFace(model)


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_a_model_switched_back_returns_no_attention(name):
    model = model_of(name)
    adapter = HuggingFace(model, kinds=("decoder_self",))
    model.set_attn_implementation("sdpa")
    with pytest.raises(
        BadInput, match=r"decoder_self\.0 returns no attention.*attn_implementation=\"eager\""
    ):
        adapter.trace(BATCH)
    assert hooks_on(model) == 0


# Models of another form.


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "BertModel", "BartForCausalLM", "T5EncoderModel"])
def test_half_a_model_is_refused(name):
    settings = {"GPT2": TINY, "Bert": BERT, "Bart": ABSOLUTE, "T5En": RELATIVE}[name[:4]]
    made = getattr(transformers, name)
    with pytest.raises(BadInput, match=f"{name} lacks an encoder or a decoder, .* whole"):
        HuggingFace(made(made.config_class(**settings)))


def test_a_model_of_another_library_is_refused():
    with pytest.raises(BadInput, match=r"Linear has no config.*see attnlib\.adapters\.Modules"):
        HuggingFace(nn.Linear(2, 2))


def test_attention_of_another_form_is_refused():
    halves = [transformers.BertConfig(**BERT) for _ in range(2)]
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(*halves)
    model = transformers.EncoderDecoderModel(config)
    with pytest.raises(BadInput, match="has no cross-attention in the form of T5, BART, mBART or Marian"):
        HuggingFace(model)


def test_a_kind_of_which_a_model_has_none_is_refused():
    # LED's encoder looks through windows; its cross-attention is BART's.
    model = model_of("LED", attention_window=4)
    with pytest.raises(BadInput, match=r"LED.* has no encoder_self attention of a known form"):
        HuggingFace(model, kinds=("cross", "encoder_self"))
    assert HuggingFace(model).n_layers == {"encoder_self": 0, "decoder_self": 2, "cross": 2}


def test_a_family_that_keeps_its_attention_to_itself_is_refused():
    sizes = {"max_encoder_position_embeddings": 32, "max_decoder_position_embeddings": 32}
    adapter = HuggingFace(model_of("LED", attention_window=8, **sizes))
    with pytest.raises(BadInput, match=r"cross\.0 returns no attention, though .* with attnlib\.adap"):
        adapter.trace(BATCH)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kinds": ("self",)}, UnknownName, "no kind of attention 'self'"),
        ({"kinds": ("encoder-self",)}, UnknownName, "did you mean 'encoder_self'"),
        ({"kinds": ()}, BadInput, "kinds is empty: name one or more, or leave kinds out"),
        ({"layers": []}, BadInput, "layers is empty: name one or more, or leave layers out"),
        ({"layers": [0, 2]}, BadInput, r"layers \[2\] of cross: this model has 2, counted from 0"),
        ({"layers": [-1]}, BadInput, r"layers \[-1\] of cross"),
    ],
)
def test_what_a_model_does_not_have_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        HuggingFace(model_of("Bart"), **arguments)


def test_a_decoder_that_does_not_say_what_it_starts_with_needs_what_it_reads():
    model = model_of("M2M100", decoder_start_token_id=None)
    adapter = HuggingFace(model)
    with pytest.raises(BadInput, match=r"set config\.decoder_start_token_id, or give batches with ``read``"):
        adapter.trace(BATCH)
    assert torch.equal(adapter.trace(replace(BATCH, read=BATCH.target)).target_tokens, BATCH.target)


# A bias that cannot be seen.


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_the_self_attention_of_umt5_is_refused(kind):
    # Not left to the check: in bfloat16, attention that is spread over many words would not give it away.
    model = model_of("UMT5")
    with pytest.raises(BadInput, match=rf"{kind}\.0 adds a bias by position that UMT5Attention does not"):
        HuggingFace(model, kinds=("cross", kind)).trace(BATCH)
    assert hooks_on(model) == 0


# Wrapped projections.


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


# Batches beyond what a model has rows for.


@pytest.mark.parametrize("name", ["Bart", "MBart", "Marian", "Pegasus"])
def test_sentences_longer_than_the_positions_are_refused(name):
    adapter, most, more = HuggingFace(model_of(name)), [5] * 32, [5] * 33
    assert len(adapter.trace(TokenBatch.of_rows([most], [most])).attended) == 2
    for side, rows in (("source", ([more, [4]], [[3], [3]])), ("target", ([[3], [3]], [[4], more]))):
        with pytest.raises(BadInput, match=rf"a {side} has 33 pieces; .* positions for 32: .*--longest 32"):
            adapter.trace(TokenBatch.of_rows(*rows))


@pytest.mark.parametrize("name", ["T5", "M2M100"])
def test_positions_that_are_computed_have_no_end(name):
    found = HuggingFace(model_of(name)).trace(TokenBatch.of_rows([[5] * 50], [[6] * 40]))
    assert found.attended[0].scores.shape == (1, 4, 40, 50)


@pytest.mark.parametrize("name", ["T5", "Bart", "M2M100"])
def test_ids_that_a_model_does_not_embed_are_refused(name):
    adapter = HuggingFace(model_of(name))
    for side, rows in (("source", ([[5, 50], [4]], [[3], [3]])), ("target", ([[3], [3]], [[4], [4, 50]]))):
        with pytest.raises(BadInput, match=rf"a {side} holds id 50; .* embeds 50, from 0: use the tokenizer"):
            adapter.trace(TokenBatch.of_rows(*rows))
