"""Hugging Face encoder–decoders: every family against its own numbers; what is given, taken, refused."""

import warnings
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.decomposition.growing import GrowingComponents
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.adapters.adapter_builders import (
    ABSOLUTE,
    BATCH,
    KINDS,
    RELATIVE,
    ROWS,
    assert_same_pass,
    assert_terms_sum_to_the_scores,
    hooks_on,
    model_of,
    traced,
)

transformers = pytest.importorskip("transformers", reason="adapters of Hugging Face models need transformers")


FAMILIES = ("T5", "MT5", "Bart", "MBart", "Marian", "Pegasus", "M2M100")
RETURNED = {
    "encoder_self": "encoder_attentions",
    "decoder_self": "decoder_attentions",
    "cross": "cross_attentions",
}


@cache
def returned_by(name):
    """A plain call of the model, nothing hooked."""
    found = traced(name)
    with torch.no_grad():
        return model_of(name)(
            input_ids=found.source_tokens,
            attention_mask=found.source_mask.long(),
            decoder_input_ids=found.target_tokens,
            decoder_attention_mask=found.target_mask.long(),
            output_attentions=True,
        )


# Every family.


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_the_nine_terms_and_the_position_bias_sum_to_the_scores(name):
    found = traced(name)
    assert len(found.attended) == 6
    assert_terms_sum_to_the_scores(found)
    for one in found.attended:
        assert (one.position_bias is not None) == (name in ("T5", "MT5") and one.kind != "cross")


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_what_a_plain_call_returns_and_the_softmax_of_the_scores(name):
    found, plain = traced(name), returned_by(name)
    assert [one.name for one in found.attended] == [
        "encoder_self.0", "encoder_self.1", "decoder_self.0", "cross.0", "decoder_self.1", "cross.1",
    ]  # fmt: skip
    for one in found.attended:
        expected, allowed = plain[RETURNED[one.kind]][one.layer], found.allowed(one)
        torch.testing.assert_close(one.attention, expected, rtol=0, atol=0)
        for head in range(4):
            own = found.softmax(one, head)
            torch.testing.assert_close(own[allowed], expected[:, head][allowed], rtol=0, atol=1e-6)
            assert not own[~allowed].any()


# What the model is given.


def padded_left(batch):
    """The same with padding at the left of every row, and one column more of it."""
    moved = {}
    for side in ("source", "target"):
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        order = torch.argsort(mask, dim=1, stable=True)
        one = torch.zeros_like(tokens[:, :1])
        moved[side] = torch.cat([one, tokens.take_along_dim(order, 1)], 1)
        moved[f"{side}_mask"] = torch.cat([one.bool(), mask.take_along_dim(order, 1)], 1)
    return TokenBatch(**moved)


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_padding_at_the_left_gives_the_same_pass(name):
    assert_same_pass(HuggingFace(model_of(name), kinds=KINDS).trace(padded_left(BATCH)), traced(name))


@pytest.mark.parametrize("name", ["T5", "Bart", "MBart", "M2M100"])
@pytest.mark.parametrize("at_padding", [-100, 10**6])
def test_what_stands_at_padding_does_not_matter(name, at_padding):
    padded = {
        side: getattr(BATCH, side).masked_fill(~getattr(BATCH, f"{side}_mask"), at_padding)
        for side in ("source", "target")
    }
    model = model_of(name)
    found = HuggingFace(model, kinds=KINDS).trace(replace(BATCH, **padded))
    assert_same_pass(found, traced(name))
    given = replace(BATCH, **padded, read=padded["target"])
    assert_same_pass(
        HuggingFace(model).trace(given), HuggingFace(model).trace(replace(BATCH, read=BATCH.target))
    )


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("T5", [[0, 5, 6], [0, 9, 40]]),
        ("Bart", [[2, 5, 6], [2, 9, 40]]),
        ("M2M100", [[2, 5, 6], [2, 9, 40]]),  # has no function that says so: from its config
        ("MBart", [[40, 5, 6], [40, 9, 40]]),  # the last token, a language's, moves to the front
    ],
)
def test_the_decoder_reads_the_target_one_step_later(name, read):
    batch = TokenBatch.of_rows([[7, 8], [9]], [[5, 6, 40], [9, 40]])
    model = HuggingFace(model_of(name))
    found = model.trace(batch)
    assert torch.equal(found.target_outputs, batch.target)
    valid = batch.target_mask
    assert found.target_tokens[valid].tolist() == torch.tensor(read)[valid].tolist()
    assert torch.equal(model.trace(replace(batch, read=batch.target)).target_tokens, batch.target)


def test_ignored_tokens_are_seen_by_the_model_and_not_counted():
    special = [ROWS[0][0][1], ROWS[1][3][2]]
    found = HuggingFace(model_of("T5"), kinds=KINDS, ignored=special).trace(BATCH)
    assert_same_pass(found, traced("T5"))
    for side in ("source", "target"):
        tokens, counted = found.tokens(side), found.counted(side)
        expected = found.mask(side) & (tokens != special[0]) & (tokens != special[1])
        assert torch.equal(counted, expected)
        assert torch.equal(traced("T5").counted(side), found.mask(side))
    assert not found.counted("source")[0, 1]
    assert not found.counted("target")[3, 3]  # read one step after it is predicted


def test_only_the_layers_asked_for_are_caught():
    found = HuggingFace(model_of("T5"), kinds=("cross", "decoder_self"), layers=[1]).trace(BATCH)
    expected = {one.name: one for one in traced("T5").attended}
    assert [one.name for one in found.attended] == ["decoder_self.1", "cross.1"]
    for one in found.attended:
        assert torch.equal(one.scores, expected[one.name].scores)
    assert set(found.sites()) == {"decoder.1.self", "decoder.1.cross", "encoder"}


# What becomes of the model.


@pytest.mark.parametrize("name", ["T5", "Bart", "Marian"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(name, dtype):
    model = model_of(name).to(dtype)
    found = HuggingFace(model, kinds=KINDS).trace(BATCH)
    computed = torch.promote_types(dtype, torch.float32)
    tolerance = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float64: 1e-5}[dtype]
    for one, single in zip(found.attended, traced(name).attended, strict=True):
        assert one.attention.dtype == dtype
        assert one.query_inputs.dtype == one.key_inputs.dtype == one.scores.dtype == computed
        allowed = found.allowed(one)[:, None].expand_as(one.attention)
        gap = (one.attention - single.attention).abs()[allowed]
        assert gap.max() <= tolerance


# Memory.


SAMPLES, LENGTH = 32, 64


def t5(width: int, layers: int):
    config = transformers.T5Config(
        vocab_size=50, d_model=width, d_kv=width // 16, d_ff=2 * width, num_layers=layers, num_heads=16,
        decoder_start_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def held(one):
    """Bytes of all storages that a pass keeps alive, its scores computed; projections' weights left out."""
    weights = {
        own.weight.untyped_storage().data_ptr()
        for attended in one.attended
        for own in (attended.query_map, attended.key_map)
    }
    storages = {}
    for attended in one.attended:
        _ = attended.scores
        for value in vars(attended).values():
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
    return sum(size for pointer, size in storages.items() if pointer not in weights)


def batch():
    tokens = torch.randint(3, 50, (SAMPLES, LENGTH), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(SAMPLES, LENGTH, dtype=torch.bool)
    return TokenBatch(tokens, mask, tokens, mask)


@pytest.mark.slow
def test_the_estimate_is_what_is_held():
    """It counts the encoder's states once a layer, though layers share them: so it is an upper bound."""
    model = t5(64, 6)
    four = HuggingFace(model, layers=[0, 2, 3, 5])
    estimate, found = four.pass_bytes(SAMPLES, LENGTH, LENGTH), held(four.trace(batch()))
    assert found <= estimate <= 1.1 * found
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH, every_layer=True) == 1.5 * estimate
    everything = HuggingFace(model)
    assert held(everything.trace(batch())) > 1.4 * found


def test_logits_are_made_of_one_step():
    """Those of a batch and 250,000 words would take 2 GB, whatever is caught."""
    model, made = t5(32, 1), []
    model.lm_head.register_forward_hook(lambda _, given, logits: made.append(tuple(logits.shape)))
    found = HuggingFace(model).trace(batch())
    assert made == [(SAMPLES, 1, 50)]
    assert found.target_tokens.shape == (SAMPLES, LENGTH)
    assert not model.lm_head._forward_pre_hooks


def test_tables_of_all_words_are_what_is_said():
    model = t5(32, 2)
    adapter = HuggingFace(model, kinds=("cross", "encoder_self"))
    tables = {}
    tokens = torch.arange(50)[:, None].expand(50, 4)
    everywhere = torch.ones(50, 4, dtype=torch.bool)
    for site, (_, states) in adapter.trace(batch()).sites().items():
        filled = states.new_zeros(50, 4, states.shape[-1])
        tables[site] = GrowingComponents(states.shape[-1]).update(filled, tokens, everywhere).bytes
    assert len(tables) == 5  # the encoder's last states are read by both cross-attentions
    assert sum(tables.values()) == adapter.table_bytes(4)


# The lexical probe.


PROBED = ("T5", "Bart", "Marian")


@cache
def probed(name):
    model = model_of(name)
    one = HuggingFace(model).trace(BATCH)
    return model, one, lexical_probe(model, one)


def alone(model, one, sample):
    """β of one sample: as many samples as it has source positions, each an encoder's only one."""
    sources, targets = one.source_mask[sample], one.target_mask[sample]
    read, right = one.target_tokens[sample, targets], one.target_outputs[sample, targets]
    with torch.no_grad():
        states = model.get_encoder()(input_ids=one.source_tokens[sample, sources][None]).last_hidden_state
        encoded = transformers.modeling_outputs.BaseModelOutput(states[0][:, None])
        logits = model(encoder_outputs=encoded, decoder_input_ids=read.expand(states.shape[1], -1)).logits
    return logits.softmax(-1)[:, torch.arange(len(right)), right].T


@pytest.mark.parametrize("name", PROBED)
def test_a_position_alone_is_the_rest_cut_away(name):
    model, one, beta = probed(name)
    for sample, (sources, targets) in enumerate(zip(one.source_mask, one.target_mask, strict=True)):
        found = beta[sample][targets][:, sources]
        torch.testing.assert_close(found, alone(model, one, sample), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("at_padding", [-100, 10**6])
def test_a_probe_does_not_depend_on_what_stands_at_padding(at_padding):
    model, one, beta = probed("Bart")
    padded = {
        name: getattr(one, name).masked_fill(~one.mask(name.partition("_")[0]), at_padding)
        for name in ("source_tokens", "target_tokens", "target_outputs")
    }
    assert torch.equal(lexical_probe(model, replace(one, **padded)), beta)


def test_a_right_word_that_the_model_does_not_predict_is_refused():
    model, one, _ = probed("Bart")
    with pytest.raises(BadInput, match="a right word has id 50; the model predicts 50 words, from 0"):
        lexical_probe(model, replace(one, target_outputs=one.target_outputs.clamp(min=50)))


def test_a_model_without_an_output_layer_is_refused():
    model, one, _ = probed("Bart")
    with pytest.raises(BadInput, match=r"BartModel predicts no words.*AutoModelForSeq2SeqLM"):
        lexical_probe(model.model, one)


# What cannot be traced, or only in part: what is said, and that no wrong number comes out.


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
