"""Models of Hugging Face are left as they were, and take batches as their library has them."""

from collections import UserDict
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib import FrameBatch, HuggingFace, Modules, TokenBatch
from attnlib.adapters import lexical_probe
from attnlib.errors import BadInput
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.adapters.adapter_builders import BATCH, HOOKED, Reader, run

FUSED = "sdpa"


def fused(name, **changes):
    model = toys.model_of(name, **changes)
    model.set_attn_implementation(FUSED)
    return model


def implementations(model):
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    return {config._attn_implementation for config in configs}


# How attention is computed.


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_a_model_that_hides_its_attention_is_traced(name):
    toys.assert_same_pass(HuggingFace(fused(name), kinds=toys.KINDS).trace(BATCH), toys.traced(name))


@pytest.mark.parametrize("name", ["T5", "Bart", "VisionEncoderDecoder GPT2"])
def test_a_trace_leaves_the_implementation_of_attention_as_it_was(name):
    model = fused(name)
    HuggingFace(model).trace(toys.batch_for(name))
    assert implementations(model) == {FUSED}


def test_an_interrupted_trace_leaves_the_implementation_as_it_was(monkeypatch):
    adapter = HuggingFace(fused("T5"))

    def interrupted(batch):
        assert implementations(adapter.model) == {"eager"}
        raise KeyboardInterrupt

    monkeypatch.setattr(adapter, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        adapter.trace(BATCH)
    assert implementations(adapter.model) == {FUSED}


def test_halves_of_different_implementations_stay_different():
    model = toys.model_of("VisionEncoderDecoder GPT2")
    model.get_encoder().set_attn_implementation(FUSED)
    before = [module.config._attn_implementation for module in model.modules() if hasattr(module, "config")]
    HuggingFace(model).trace(toys.batch_for("VisionEncoderDecoder GPT2"))
    after = [module.config._attn_implementation for module in model.modules() if hasattr(module, "config")]
    assert after == before


def test_logits_are_those_of_the_pass():
    model = fused("T5")
    adapter = HuggingFace(model)
    model_pass = adapter.trace(BATCH)
    expected = HuggingFace(toys.model_of("T5"))
    assert torch.equal(adapter.logits(model_pass), expected.logits(model_pass))
    assert implementations(model) == {FUSED}


def test_the_probe_is_that_of_the_pass():
    model = fused("T5")
    adapter = HuggingFace(model)
    model_pass = adapter.trace(BATCH)
    expected = HuggingFace(toys.model_of("T5"))
    assert torch.equal(lexical_probe(model, model_pass), lexical_probe(expected.model, model_pass))
    assert implementations(model) == {FUSED}


# What the decoder reads.


@pytest.mark.parametrize("error", [AttributeError("of its own"), ValueError("of its own")])
def test_an_error_of_the_models_own_method_is_not_hidden(monkeypatch, error):
    model = toys.model_of("Bart")

    def broken(labels):
        raise error

    monkeypatch.setattr(model, "prepare_decoder_input_ids_from_labels", broken)
    with pytest.raises(type(error), match="of its own"):
        HuggingFace(model).trace(BATCH)


# Batches as the transformers library has them.

NAMED = {
    "input_ids": BATCH.source,
    "attention_mask": BATCH.source_mask.long(),
    "labels": BATCH.target.masked_fill(~BATCH.target_mask, -100),
}
MAPPINGS = [
    pytest.param(NAMED, id="dictionary"),
    pytest.param(UserDict(NAMED), id="like BatchEncoding"),
    pytest.param({name: tensor.numpy() for name, tensor in NAMED.items()}, id="arrays"),
    pytest.param({name: tensor.tolist() for name, tensor in NAMED.items()}, id="lists"),
]


@pytest.mark.parametrize("batch", MAPPINGS)
def test_a_mapping_is_traced_as_the_batch_that_it_holds(batch):
    adapter = HuggingFace(toys.model_of("T5"), kinds=toys.KINDS)
    toys.assert_same_pass(adapter.trace(batch), adapter.trace(BATCH))


def test_what_the_decoder_reads_may_be_in_a_mapping():
    adapter, read = HuggingFace(toys.model_of("T5")), BATCH.target.roll(1, 0)
    model_pass = adapter.trace(NAMED | {"decoder_input_ids": read})
    toys.assert_same_pass(model_pass, adapter.trace(replace(BATCH, read=read)))


def test_a_mask_of_the_decoder_may_tell_where_labels_end():
    named = NAMED | {"labels": BATCH.target, "decoder_attention_mask": BATCH.target_mask.long()}
    adapter = HuggingFace(toys.model_of("T5"))
    toys.assert_same_pass(adapter.trace(named), adapter.trace(BATCH))


def test_without_a_mask_all_of_the_source_counts():
    adapter = HuggingFace(toys.model_of("T5"))
    model_pass = adapter.trace({"input_ids": [[5, 6, 7]], "labels": [[8, 9]]})
    assert model_pass.source_mask.all()


@pytest.mark.signatures
def test_frames_may_be_in_a_mapping():
    adapter, batch = toys.whisper(), toys.frames_batch("Whisper")
    labels = batch.target.masked_fill(~batch.target_mask, -100)
    model_pass = adapter.trace({"input_features": batch.frames, "labels": labels})
    logits = adapter.logits(model_pass)
    expected = adapter.trace(batch)
    toys.assert_same_pass(model_pass, expected)
    assert torch.equal(logits, adapter.logits(expected))


def test_modules_take_a_mapping_that_says_what_is_read():
    adapter = Modules(Reader(), [HOOKED], run, start=2)
    toys.assert_same_pass(adapter.trace(NAMED), adapter.trace(BATCH))


REFUSED = [
    pytest.param({"input_ids": [[5]]}, "labels", id="no labels"),
    pytest.param({"labels": [[5]]}, "input_ids", id="no source"),
    pytest.param(NAMED | {"token_type_ids": BATCH.source}, "token_type_ids", id="unknown name"),
    pytest.param({"input_ids": [[5]], "labels": [[6, 0]]}, "-100", id="labels padded with an id"),
    pytest.param(NAMED | {"decoder_attention_mask": [[1]]}, "decoder_attention_mask", id="mask of a shape"),
    pytest.param([[4, 5, 1]], "TokenBatch", id="list"),
    pytest.param(BATCH.source, "TokenBatch", id="tensor"),
    pytest.param(None, "TokenBatch", id="nothing"),
]


@pytest.mark.parametrize(("batch", "named"), REFUSED)
def test_batches_that_cannot_be_read_are_refused(batch, named):
    with pytest.raises(BadInput, match=named):
        HuggingFace(toys.model_of("T5")).trace(batch)


FRAMES = FrameBatch(torch.ones(1, 2), torch.tensor([[3]]), torch.tensor([[True]]))


@pytest.mark.parametrize("batch", [[[4]], np.ones((1, 2)), FRAMES])
def test_what_is_no_batch_of_tokens_is_refused_by_modules(batch):
    with pytest.raises(BadInput, match="TokenBatch"):
        Modules(Reader(), [HOOKED], run, start=2).trace(batch)


def test_an_end_mark_that_is_padding_as_well_is_a_label():
    model = toys.model_of("Bart", pad_token_id=1, eos_token_id=1)
    model_pass = HuggingFace(model).trace({"input_ids": [[5, 1]], "labels": [[6, 1]]})
    assert model_pass.target_mask.all()


# What projections were seen to make.


def test_seen_projections_leave_the_attention_that_they_were_seen_of_alone():
    attended = toys.attended_of()
    expected = attended.queries
    zeros = torch.zeros_like(attended.query_map(attended.query_inputs).transpose(1, 2).flatten(2))
    zeros_of_keys = torch.zeros_like(attended.key_map(attended.key_inputs).transpose(1, 2).flatten(2))
    fresh = replace(attended)
    known = fresh.with_projection_outputs(zeros, zeros_of_keys)
    assert torch.equal(fresh.queries, expected)
    assert not known.queries.any()


def test_seen_projections_are_not_carried_over_to_other_states():
    attended = toys.attended_of()
    rows = attended.query_map(attended.query_inputs).transpose(1, 2).flatten(2)
    keys = attended.key_map(attended.key_inputs).transpose(1, 2).flatten(2)
    known = attended.with_projection_outputs(rows, keys)
    changed = replace(known, query_inputs=attended.query_inputs * 0)
    expected = replace(attended, query_inputs=attended.query_inputs * 0).queries
    assert torch.equal(changed.queries, expected)


def test_a_batch_of_tokens_is_itself():
    adapter = HuggingFace(toys.model_of("T5"))
    batch = TokenBatch.of_rows([[5]], [[6]])
    assert adapter._batch_of(batch) is batch


# Models in other forms.


@pytest.mark.parametrize("name", ["LED", "Mvp"])
def test_attention_that_is_returned_when_asked_for_is_asked_for(name):
    window = {"attention_window": 8} if name == "LED" else {}
    model = toys.model_of(name, **window)
    trace = HuggingFace(model, layers=0).trace(BATCH)
    expected = model(
        input_ids=trace.source_tokens * trace.source_mask,
        attention_mask=trace.source_mask.long(),
        decoder_input_ids=trace.target_tokens * trace.target_mask,
        decoder_attention_mask=trace.target_mask.long(),
        output_attentions=True,
    ).cross_attentions[0]
    caught = trace.attentions[0].weights
    torch.testing.assert_close(
        caught[trace.target_mask[:, None].expand(caught.shape[:3])],
        expected[trace.target_mask[:, None].expand(caught.shape[:3])],
    )


def compiled_whole(model):
    return torch.compile(model, backend="eager")


def compiled_in_place(model):
    model.compile(backend="eager")
    return model


def compiled_within(model):
    model.model.decoder = torch.compile(model.model.decoder, backend="eager")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [compiled_whole, compiled_in_place, compiled_within])
def test_a_compiled_model_that_has_run_is_traced(compiled):
    model = compiled(toys.model_of("Bart"))
    expected = toys.traced("Bart")
    with torch.no_grad():
        model(
            input_ids=expected.source_tokens * expected.source_mask, decoder_input_ids=expected.target_tokens
        )
    trace = HuggingFace(model).trace(BATCH)
    assert torch.equal(trace.attentions[0].scores, expected.layers("cross")[0].scores)


def two_widths():
    transformers = pytest.importorskip("transformers")
    encoder = transformers.BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    decoder = transformers.GPT2Config(
        vocab_size=50,
        n_embd=12,
        n_layer=1,
        n_head=2,
        n_positions=40,
        is_decoder=True,
        add_cross_attention=True,
    )
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id = 2, 0
    return transformers.EncoderDecoderModel(config).eval()


def switch():
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 50, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_heads": 2}
    experts = {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 2}
    config = transformers.SwitchTransformersConfig(
        **sizes, **experts, decoder_start_token_id=0, expert_capacity=64
    )
    return transformers.SwitchTransformersForConditionalGeneration(config).eval()


@pytest.mark.signatures
@pytest.mark.parametrize("made", [two_widths, switch])
def test_the_probe_is_what_a_source_of_one_position_predicts(made):
    """Of a sample with one source position, whose every attention sees that one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = made()
    adapter = HuggingFace(model)
    trace = adapter.trace(TokenBatch.of_rows([[5]], [[8, 9, 3]]))
    right = adapter.logits(trace).softmax(-1).gather(-1, trace.target_outputs[..., None])  # (1, 3, 1)
    torch.testing.assert_close(lexical_probe(model, trace), right)


def test_a_model_that_was_probed_is_not_tried_again():
    model = toys.model_of("Bart")
    trace = HuggingFace(model).trace(BATCH)
    n_passes = []
    for _ in range(2):
        passes = []
        hook = model.register_forward_hook(lambda *_, passes=passes: passes.append(1))
        lexical_probe(model, trace)
        hook.remove()
        n_passes.append(len(passes))
    first, second = n_passes
    assert second == first - 2  # a pass of the source itself, and one of the encoder's states
