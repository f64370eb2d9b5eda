"""Every family of encoder–decoders in transformers is traced as it is, and its positions are known."""

import pytest
import torch

from attnlib import FrameBatch, HuggingFace, TokenBatch, lexical_probe
from attnlib.adapters.hugging_face import position_limit
from tests.situations.builders import (
    BATCH,
    BEGIN,
    END,
    FAMILIES,
    INFINITE,
    MARKS,
    PAD,
    WORDS,
    difference,
    family,
    made,
    plain_call,
    transformers,
)

ROUNDING = 1e-6
MANY = 200  # positions of a model that computes them


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_the_models_own(name):
    model = family(name)
    trace = HuggingFace(model).trace(BATCH)
    expected = plain_call(model, trace, output_attentions=True).cross_attentions
    assert len(trace.attentions) == len(expected)
    for attention, weights in zip(trace.attentions, expected, strict=True):
        assert difference(trace, attention, weights) < ROUNDING


@pytest.mark.parametrize("name", FAMILIES)
def test_the_probe_is_what_a_source_of_one_position_predicts(name):
    model = family(name)
    adapter = HuggingFace(model)
    trace = adapter.trace(TokenBatch.of_rows([[5]], [[8, 9, 1]]))
    right = adapter.logits(trace).softmax(-1).gather(-1, trace.target_outputs[..., None])  # (1, 3, 1)
    torch.testing.assert_close(lexical_probe(model, trace), right)


def runs(model, n_source, n_target):
    source, target = torch.full((1, n_source), 7), torch.full((1, n_target), 9)
    try:
        with torch.no_grad():
            model(input_ids=source, attention_mask=source * 0 + 1, decoder_input_ids=target, use_cache=False)
    except (IndexError, RuntimeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", FAMILIES)
def test_positions_of_both_halves_are_known(name):
    model = family(name)
    _, n_source, n_target = FAMILIES[name]
    assert (position_limit(model.get_encoder()), position_limit(model.get_decoder())) == (n_source, n_target)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_runs_on_all_positions(name):
    _, n_source, n_target = FAMILIES[name]
    assert runs(family(name), int(min(n_source, MANY)), int(min(n_target, MANY)))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_does_not_run_beyond_its_positions(name):
    model = family(name)
    _, n_source, n_target = FAMILIES[name]
    assert n_source == INFINITE or not runs(model, n_source + 1, 3)
    assert n_target == INFINITE or not runs(model, 3, n_target + 1)


def moonshine():
    heads = {
        f"{half}_{name}": number
        for half in ("encoder", "decoder")
        for name, number in (("num_hidden_layers", 2), ("num_attention_heads", 4), ("num_key_value_heads", 4))
    }
    sizes = {"vocab_size": WORDS, "hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 64}
    config = transformers.MoonshineConfig(**sizes, **heads, **MARKS, decoder_start_token_id=BEGIN)
    return transformers.MoonshineForConditionalGeneration(config)


def test_attention_to_sound_is_the_models_own():
    model = made(moonshine)
    sound = torch.randn(2, 4000, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[5, 6, END], [7, END, PAD]])
    trace = HuggingFace(model).trace(FrameBatch(sound, target, target != PAD))
    with torch.no_grad():
        expected = model(
            input_values=sound,
            decoder_input_ids=trace.target_tokens * trace.target_mask,
            decoder_attention_mask=trace.target_mask.long(),
            output_attentions=True,
            use_cache=False,
        ).cross_attentions
    for attention, weights in zip(trace.attentions, expected, strict=True):
        assert difference(trace, attention, weights) < ROUNDING
