"""The lexical probe: what a decoder predicts whose encoder has one position, and no other."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.errors import BadInput
from tests.attnlib.adapters.test_hugging_face import BATCH, model_of

transformers = pytest.importorskip("transformers", reason="the probe forces models of transformers")
FAMILIES = ("T5", "Bart", "Marian")


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


@pytest.mark.parametrize("name", FAMILIES)
def test_a_position_alone_is_the_rest_cut_away(name):
    model, one, beta = probed(name)
    for sample, (sources, targets) in enumerate(zip(one.source_mask, one.target_mask, strict=True)):
        found = beta[sample][targets][:, sources]
        torch.testing.assert_close(found, alone(model, one, sample), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_it_depends_on_the_position_and_is_zero_at_padding(name):
    _, one, beta = probed(name)
    valid = one.target_mask[:, :, None] & one.source_mask[:, None, :]
    assert beta.shape == valid.shape
    assert bool((beta[valid] > 0).all())
    assert not beta[~valid].any()
    assert not valid.all()
    assert float(beta[0].std(-1)[one.target_mask[0]].min()) > 0


def test_a_source_of_one_word_leaves_no_choice():
    """All that can be attended to is attended to: β is the model's own probability."""
    model = probed("T5")[0]
    batch = TokenBatch.of_rows([[5], [9]], [[7, 8, 1], [4, 1]])
    one = HuggingFace(model).trace(batch)
    with torch.no_grad():
        logits = model(input_ids=one.source_tokens, decoder_input_ids=one.target_tokens).logits
    expected = logits.softmax(-1).gather(-1, one.target_outputs[..., None]) * one.target_mask[..., None]
    torch.testing.assert_close(lexical_probe(model, one), expected)


def test_half_precision_gives_probabilities_in_single():
    model = model_of("T5").bfloat16()
    one = HuggingFace(model).trace(BATCH)
    beta = lexical_probe(model, one)
    assert beta.dtype == torch.float32
    torch.testing.assert_close(beta, probed("T5")[2], atol=0.01, rtol=0.2)


def test_the_model_is_left_as_it_was():
    model = model_of("T5").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lexical_probe(model, probed("T5")[1])
    assert all(module.training for module in model.modules())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("at_padding", [-100, 10**6])
def test_what_stands_at_padding_does_not_matter(at_padding):
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
