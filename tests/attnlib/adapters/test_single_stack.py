"""Decoders and encoders alone: their self-attention, checked against what the models return themselves."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import attnlib
from attnlib import Attention, HuggingFace, SequenceBatch, Stream, TokenBatch, adapter_of, sequence_batches
from attnlib.adapters import LinearMap, Rotary, SingleStack, single_stack
from attnlib.decomposition import Components
from attnlib.errors import BadInput
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.adapters.single_stacks import ALL, BATCH, DECODERS, GROUPED, LENGTHS, ROTATED, model_of
from tests.attnlib.models.model_builders import spread

transformers = pytest.importorskip("transformers", reason="models of Hugging Face need transformers")


def attentions_of_row(model, row):
    """What the model returns of one sequence without padding: of each layer (heads, length, length)."""
    tokens = BATCH.tokens[row : row + 1, : LENGTHS[row]]
    with torch.no_grad():
        output = model(input_ids=tokens, output_attentions=True)
    return [attention[0] for attention in output.attentions]


def parts_of(model_pass):
    parts = {}
    for site, (side, states) in model_pass.sites().items():
        given = states, model_pass.tokens(side), model_pass.mask(side)
        parts[site] = Components(states.shape[-1]).update(*given).split(*given)
    return parts


# The attention is the model's own.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_scores_make_the_attention_of_each_sequence_alone(name, dtype):
    model = model_of(name).to(dtype)
    model_pass = adapter_of(model).trace(BATCH)
    assert [attended.layer for attended in model_pass.attentions] == [0, 1]
    for row, length in enumerate(LENGTHS):
        expected = attentions_of_row(model, row)
        for attended in model_pass.attentions:
            for head in range(4):
                made = model_pass.softmax(attended, head)[row, :length, :length]
                weights = expected[attended.layer][head].to(made.dtype)
                torch.testing.assert_close(made, weights, rtol=0, atol=2e-6)
    for attended in model_pass.attentions:
        allowed = model_pass.allowed(attended)
        assert attended.scores.transpose(0, 1)[:, allowed].std(-1).min() > 0.02


@pytest.mark.parametrize("name", ["Bert", "GPT2", "GPTNeoX", "Llama", "Mistral"])
def test_attention_of_half_precision_is_within_its_rounding(name):
    model_pass = adapter_of(model_of(name).to(torch.bfloat16)).trace(BATCH)
    assert model_pass.attentions[0].query_inputs.dtype == torch.float32
    assert model_pass.unchecked == ()


@pytest.mark.parametrize("name", ALL)
def test_terms_sum_to_the_scores(name):
    """The parts of a state go through projection and rotation one by one."""
    model_pass = adapter_of(model_of(name).double()).trace(BATCH)
    parts = parts_of(model_pass)
    for attended in model_pass.attentions:
        allowed = model_pass.allowed(attended)
        for head in range(4):
            terms = toys.terms_of(attended, head, parts[attended.query_site], parts[attended.key_site])
            total = terms.sum((0, 1))[allowed]
            torch.testing.assert_close(total, attended.scores[:, head][allowed], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_padding_at_the_left_gives_the_same_pass(name):
    masks = {"source": BATCH.mask}
    tokens, mask = (toys.padded_in_front(given, masks, source=1) for given in (BATCH.tokens, BATCH.mask))
    adapter = adapter_of(model_of(name))
    toys.assert_same_pass(adapter.trace(SequenceBatch(tokens, mask)), adapter.trace(BATCH))


@pytest.mark.parametrize("name", ["GPT2", "Llama", "Bert"])
def test_a_fused_attention_is_traced_as_a_plain_one(name):
    model = model_of(name)
    expected = adapter_of(model).trace(BATCH)
    model.set_attn_implementation("sdpa")
    toys.assert_same_pass(adapter_of(model).trace(BATCH), expected)


@pytest.mark.parametrize("name", ["GPT2", "Llama", "Bert"])
def test_tracing_leaves_a_fused_attention_fused(name):
    model = model_of(name)
    model.set_attn_implementation("sdpa")
    adapter_of(model).trace(BATCH)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "BertModel", "BartForCausalLM"])
def test_halves_of_other_models_are_models_of_one_stack(name):
    batch = SequenceBatch.of_rows([[5, 6, 7], [8, 9]])
    model_pass = adapter_of(spread(toys.half(name), 0.3)).trace(batch)
    assert model_pass.unchecked == ()
    assert len(model_pass.attentions) == 2


# Rotation, grouped queries and windows, by hand.


def test_a_rotation_by_a_quarter_turn():
    """At position 1 the first two coordinates turn by 90°, (x, y) to (-y, x); the third stays."""
    rotary = Rotary(cos=torch.tensor([[1.0, 1.0], [0.0, 0.0]]), sin=torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    states = torch.tensor([[[2.0, 3.0, 5.0], [2.0, 3.0, 5.0]]])
    assert rotary(states).tolist() == [[[2, 3, 5], [-3, 2, 5]]]
    plain = LinearMap(torch.eye(3)[None])
    attended = Attention(
        kind="decoder_self", layer=0, query_inputs=states, key_inputs=states, query_site="decoder.0.self",
        key_site="decoder.0.self", maps=(plain, plain), query_rotation=rotary,
        key_rotation=rotary, causal=True,
    )  # fmt: skip
    # 4 + 9 + 25 at equal positions; the turned pair is at right angles to the one that is not
    assert attended.scores.tolist() == [[[[38, 25], [25, 38]]]]


@pytest.mark.parametrize("name", ROTATED)
def test_scores_depend_on_the_distance_alone_where_all_tokens_are_one(name):
    """Su et al. 2021, section 3.2.2: a rotated product is a function of the difference of positions."""
    one_token = SequenceBatch(torch.full((1, 6), 7), torch.ones(1, 6, dtype=torch.bool))
    first = adapter_of(model_of(name).double(), layers=0).trace(one_token).attentions[0]
    scores = first.scores[0, 0]
    for distance in range(6):
        diagonal = scores.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-5, atol=1e-6)
    assert scores[:, 0].std() > 1e-3


def test_query_heads_share_the_keys_of_their_group():
    model = model_of("Llama")
    attended = adapter_of(model).trace(BATCH).attentions[0]
    weight = model.model.layers[0].self_attn.k_proj.weight.unflatten(0, (2, 8))
    for head in range(4):
        assert torch.equal(attended.key_map.weight[head], weight[head // 2])


def test_rows_of_a_projection_that_is_interleaved_by_head():
    model = model_of("GPTNeoX")
    attended = adapter_of(model).trace(BATCH).attentions[0]
    weight = model.gpt_neox.layers[0].attention.query_key_value.weight.unflatten(0, (4, 24))
    assert torch.equal(attended.query_map.weight, weight[:, :8])
    assert torch.equal(attended.key_map.weight, weight[:, 8:16])


def windows_of(name):
    return [attended.window for attended in adapter_of(model_of(name)).trace(BATCH).attentions]


def test_windows_are_those_of_the_model():
    assert windows_of("Mistral") == [3, 3]
    assert windows_of("Mistral without a window") == [None, None]
    assert windows_of("Qwen2 with one window") == [None, 3]


def test_a_step_sees_only_its_window():
    model_pass = adapter_of(model_of("Mistral")).trace(SequenceBatch.of_rows([[5, 6, 7, 8]]))
    seen = model_pass.allowed(model_pass.attentions[0])[0].int().tolist()
    assert seen == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]


def test_a_window_that_the_model_does_not_have_is_noticed():
    adapter = adapter_of(model_of("Mistral without a window"))
    adapter.attentions = (replace(adapter.attentions[0], window=3),)
    with pytest.raises(BadInput, match="masked here"):
        adapter.trace(BATCH)


# Whatever is mistaken about a model is noticed.


@pytest.mark.parametrize("name", ROTATED)
def test_a_rotation_that_is_left_out_is_noticed(name, monkeypatch):
    monkeypatch.setattr(single_stack, "_rotation_of", lambda hooks, path: None)
    with pytest.raises(BadInput, match="caught projections"):
        adapter_of(model_of(name)).trace(BATCH)


@pytest.mark.signatures
def test_key_heads_in_another_order_are_noticed(monkeypatch):
    def tiled(linear, heads):
        return LinearMap(linear.weight.repeat(heads // linear.heads, 1, 1))

    monkeypatch.setattr(LinearMap, "shared_by", tiled)
    with pytest.raises(BadInput, match="caught projections"):
        adapter_of(model_of("Llama")).trace(BATCH)


@pytest.mark.parametrize("name", ["GPT2", "GPTNeoX"])
def test_rows_of_another_layout_are_noticed(name):
    adapter = adapter_of(model_of(name))
    attention = adapter.attentions[0]
    layouts = {"thirds": "by head", "by head": "thirds"}
    family = replace(attention.family, layout=layouts[attention.family.layout])
    adapter.attentions = (replace(attention, family=family),)
    with pytest.raises(BadInput, match="caught projections"):
        adapter.trace(BATCH)


def test_a_rotation_of_other_pairs_is_refused():
    cohere = of("CohereForCausalLM", **GROUPED, bos_token_id=None, eos_token_id=None)
    with pytest.raises(BadInput, match=r"CohereForCausalLM rotates.*pass_of_tensors"):
        adapter_of(spread(cohere, 32**-0.5)).trace(BATCH)


# A pass has one sequence.


def test_both_sides_are_the_sequence_that_is_read():
    model_pass = adapter_of(model_of("GPT2")).trace(SequenceBatch.of_rows([[5, 6, 7], [8, 9]]))
    assert model_pass.is_one_sequence
    assert model_pass.source_tokens.tolist() == model_pass.target_tokens.tolist() == [[5, 6, 7], [8, 9, 0]]
    assert model_pass.target_outputs[0].tolist() == [6, 7, 7]
    assert model_pass.predicts.tolist() == [[True, True, False], [True, False, False]]
    assert not toys.traced("T5").is_one_sequence


def test_kinds_are_named_by_what_the_model_is():
    assert [attention.name for attention in adapter_of(model_of("GPT2")).trace(BATCH).attentions] == [
        "decoder_self.0",
        "decoder_self.1",
    ]
    (last,) = adapter_of(model_of("Bert"), kinds="encoder_self", layers=1).trace(BATCH).attentions
    assert (last.name, last.causal) == ("encoder_self.1", False)


@pytest.mark.signatures
def test_logits_are_those_of_a_plain_call():
    model = model_of("Llama")
    adapter = adapter_of(model)
    model_pass = adapter.trace(BATCH)
    with torch.no_grad():
        expected = model(input_ids=BATCH.tokens, attention_mask=BATCH.mask.long()).logits
    torch.testing.assert_close(adapter.logits(model_pass)[BATCH.mask], expected[BATCH.mask])


def test_ignored_tokens_count_on_neither_side():
    special = int(BATCH.tokens[0, 0])
    model_pass = adapter_of(model_of("GPT2"), ignored=special).trace(BATCH)
    for side in ("source", "target"):
        assert not model_pass.counted(side)[0, 0]


# Batches.

NAMED = {"input_ids": BATCH.tokens, "attention_mask": BATCH.mask.long()}
RAGGED = {"input_ids": [row[:length] for row, length in zip(BATCH.tokens.tolist(), LENGTHS, strict=True)]}
MAPPINGS = [
    pytest.param(NAMED, id="dictionary"),
    pytest.param({name: given.tolist() for name, given in NAMED.items()}, id="lists"),
    pytest.param(RAGGED, id="not padded"),
    pytest.param(RAGGED | {"attention_mask": [[1] * length for length in LENGTHS]}, id="not padded, masked"),
    pytest.param(NAMED | {"labels": BATCH.tokens}, id="with labels"),
    pytest.param(transformers.BatchEncoding(NAMED), id="BatchEncoding"),
]


@pytest.mark.parametrize("batch", MAPPINGS)
def test_a_mapping_is_traced_as_the_sequences_that_it_holds(batch):
    adapter = adapter_of(model_of("GPT2"))
    toys.assert_same_pass(adapter.trace(batch), adapter.trace(BATCH))


def test_types_of_tokens_are_read():
    types = torch.zeros_like(BATCH.tokens)
    types[:, 2:] = 1
    adapter = adapter_of(model_of("Bert"))
    plain, typed = adapter.trace(NAMED), adapter.trace(NAMED | {"token_type_ids": types})
    apart = (plain.attentions[0].query_inputs - typed.attentions[0].query_inputs).abs().sum(-1)
    assert bool((apart[:, :2] == 0).all())
    assert bool((apart[:, 2:][BATCH.mask[:, 2:]] > 0).all())


def test_texts_become_batches():
    def tokenizer(text, **_):
        return {"input_ids": [[3 + len(word) for word in line.split()] for line in text]}

    batches = list(sequence_batches(tokenizer, ["a house", "  ", "yes", "we do not know"], batch_size=2))
    assert [batch.tokens.tolist() for batch in batches] == [[[4, 8], [6, 0]], [[5, 5, 6, 7]]]
    assert adapter_of(model_of("GPT2")).trace(batches[0]).source_mask.tolist() == [
        [True, True],
        [True, False],
    ]


# What is refused, and in which words.


def of(name, **settings):
    maker = getattr(transformers, name)
    return maker(maker.config_class(**settings))


def wrapped(name, path):
    model = model_of(name)
    place, _, last = path.rpartition(".")
    setattr(model.get_submodule(place), last, nn.Sequential(model.get_submodule(path)))
    return model


FALCON = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
GEMMA2 = {**GROUPED, "head_dim": 8, "attn_logit_softcapping": 50.0}
REFUSED_MODELS = [
    pytest.param(lambda: of("Qwen3ForCausalLM", **GROUPED, head_dim=8), "q_norm.*not linear", id="norms"),
    pytest.param(lambda: of("Gemma2ForCausalLM", **GEMMA2), "attn_logit_softcapping", id="capped scores"),
    pytest.param(lambda: of("OlmoForCausalLM", **GROUPED, clip_qkv=8.0), "clip_qkv", id="clipped"),
    pytest.param(lambda: of("FalconForCausalLM", **FALCON), "FalconForCausalLM has no self-", id="Falcon"),
    pytest.param(
        lambda: of("BloomForCausalLM", vocab_size=50, hidden_size=32, n_layer=1, n_head=4),
        "BloomForCausalLM has no self-attention.*pass_of_tensors",
        id="Bloom",
    ),
    pytest.param(
        lambda: of("GPTBigCodeForCausalLM", vocab_size=50, n_embd=32, n_layer=1, n_head=4),
        "GPTBigCodeForCausalLM has no self-attention",
        id="GPT-BigCode",
    ),
    pytest.param(lambda: of("T5EncoderModel", **toys.SIZES["alone"]["T5EncoderModel"]), "T5Enc", id="T5"),
    pytest.param(lambda: wrapped("GPT2", "transformer.h.1.attn.c_attn"), "merge_and_unload", id="wrapped"),
    pytest.param(lambda: wrapped("Llama", "model.layers.0.self_attn.k_proj"), "k_proj is", id="wrapped key"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED_MODELS)
def test_models_that_are_refused_by_name(make, message):
    model = make()
    with pytest.raises(BadInput, match=message) as caught:
        adapter_of(model)
    assert "\n" not in str(caught.value)


REFUSED_OPTIONS = [
    pytest.param("GPT2", {"kinds": "cross"}, "kinds='decoder_self'", id="cross of a decoder"),
    pytest.param("Bert", {"kinds": ["decoder_self"]}, "an encoder alone", id="decoder of an encoder"),
    pytest.param("GPT2", {"kinds": ()}, "kinds is empty", id="no kind"),
    pytest.param("GPT2", {"kinds": "crosss"}, "did you mean", id="unknown kind"),
    pytest.param("GPT2", {"layers": [1, 2]}, r"layers \[2\] of decoder_self: this model has 2", id="layer"),
    pytest.param("GPT2", {"layers": ()}, "layers is empty", id="no layer"),
]


@pytest.mark.parametrize(("name", "options", "message"), REFUSED_OPTIONS)
def test_options_that_are_refused(name, options, message):
    with pytest.raises(attnlib.AttnlibError, match=message):
        adapter_of(model_of(name), **options)


REFUSED_BATCHES = [
    pytest.param("GPT2", TokenBatch.of_rows([[5]], [[6]]), "reads one sequence", id="two sides"),
    pytest.param("GPT2", ["a house"], "reads one sequence", id="texts"),
    pytest.param("GPT2", {"attention_mask": [[1]]}, "input_ids", id="no ids"),
    pytest.param("GPT2", NAMED | {"position_ids": BATCH.tokens}, "position_ids", id="positions"),
    pytest.param("GPT2", {"input_ids": [[5] * 17]}, "positions for 16", id="long for GPT-2"),
    pytest.param("OPT", {"input_ids": [[5] * 17]}, "positions for 16", id="long for OPT"),
    pytest.param("Bert", {"input_ids": [[5] * 17]}, "positions for 16", id="long for BERT"),
    pytest.param("Roberta", {"input_ids": [[5] * 15]}, "positions for 14", id="long for RoBERTa"),
    pytest.param("GPT2", {"input_ids": [[5, 50]]}, "id 50.*embeds 50", id="unknown id"),
    pytest.param("GPT2", {"input_ids": [[5]], "attention_mask": [[0]]}, "all padding", id="padding alone"),
    pytest.param("Llama", NAMED | {"token_type_ids": BATCH.tokens}, "token_type_ids", id="types of tokens"),
]


@pytest.mark.parametrize(("name", "batch", "message"), REFUSED_BATCHES)
def test_batches_that_are_refused(name, batch, message):
    with pytest.raises(BadInput, match=message):
        adapter_of(model_of(name)).trace(batch)


def test_an_encoder_predicts_nothing():
    adapter = adapter_of(model_of("Bert"))
    with pytest.raises(BadInput, match="leave logits out"):
        adapter.logits(adapter.trace(BATCH))


def test_a_decoder_without_its_output_layer_predicts_nothing():
    adapter = adapter_of(model_of("GPT2").transformer)
    with pytest.raises(BadInput, match="AutoModelForCausalLM"):
        adapter.logits(adapter.trace(BATCH))


@pytest.mark.parametrize("settings", [{"causal": False, "window": 2}, {"causal": True, "window": 0}])
def test_windows_without_a_meaning_are_refused(settings):
    with pytest.raises(BadInput, match="window"):
        toys.attended_of(**settings)


# From the model to an analysis.


def stream_of(name, batches=10):
    adapter = adapter_of(model_of(name))
    rows = [SequenceBatch.of_rows(toys.rows_of((7, 5, 6, 8), 10 * number)) for number in range(batches)]
    logits = adapter.logits if name in DECODERS else None
    return Stream(adapter.trace, rows, logits=logits)


@pytest.mark.parametrize("name", ["GPT2", "Mistral", "Bert"])
def test_an_analysis_of_one_stack(name, tmp_path):
    analysis = attnlib.report(stream_of(name), tmp_path, name=lambda side, token: f"word{token}")
    kind = "encoder_self" if name == "Bert" else "decoder_self"
    assert {row["kind"] for row in analysis.heads} == {kind}
    assert len(analysis.heads) == 8
    assert analysis.no_probe == analysis.unchecked == ()
    for row in analysis.heads:
        shares = [row[f"{part}_share"] for part in ("temporal", "input", "mixed", "residual")]
        assert sum(shares) == pytest.approx(1)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Cross-attention: " not in page
    assert "lexical probe</" not in page
    assert "sentence pair" not in page
    assert "<bdi>word" in page
    assert f'data-kind="{kind}"' in page


def test_what_a_decoder_predicts_is_judged_but_for_the_last_step():
    analysis = attnlib.analyse(stream_of("GPT2"))
    assert analysis.learned["words"] == 2 * (7 + 5 + 6 + 8 - 4)


def test_a_decoder_alone_has_the_adapter_of_one_stack():
    assert isinstance(adapter_of(model_of("GPT2")), SingleStack)


def test_an_encoder_decoder_has_the_adapter_of_two_halves():
    assert isinstance(adapter_of(toys.model_of("T5")), HuggingFace)


def test_the_class_of_encoder_decoders_warns_of_a_decoder_alone():
    with pytest.warns(DeprecationWarning, match="adapter_of"):
        adapter = HuggingFace(model_of("GPT2"))
    assert isinstance(adapter, SingleStack)
