"""Hugging Face encoder–decoders: every family against its own numbers; what a model is given and takes."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.decomposition.growing import GrowingComponents
from attnlib.errors import BadInput
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    KINDS,
    ROWS,
    assert_same_pass,
    assert_terms_sum_to_the_scores,
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
