"""What a pass takes: the estimate against the tensors it holds, and the promise for a large model."""

import pytest
import torch

pytest.importorskip("transformers", reason="the hf extra is not installed")

from transformers import MarianConfig, MarianMTModel, T5Config, T5ForConditionalGeneration

from attnlib.adapters import HuggingFace, ModelPass, TokenBatch
from attnlib.decomposition.growing import GrowingComponents

SAMPLES, LENGTH = 32, 64


def model_of(width: int, layers: int) -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=50, d_model=width, d_kv=width // 16, d_ff=2 * width, num_layers=layers, num_heads=16,
        decoder_start_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return T5ForConditionalGeneration(config)


def held(one: ModelPass) -> int:
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


def batch() -> TokenBatch:
    tokens = torch.randint(3, 50, (SAMPLES, LENGTH), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(SAMPLES, LENGTH, dtype=torch.bool)
    return TokenBatch(tokens, mask, tokens, mask)


def test_the_estimate_is_what_is_held():
    """It counts the encoder's states once a layer, though layers share them: so it is an upper bound."""
    model = model_of(64, 6)
    four = HuggingFace(model, layers=[0, 2, 3, 5])
    estimate, found = four.pass_bytes(SAMPLES, LENGTH, LENGTH), held(four.trace(batch()))
    assert found <= estimate <= 1.1 * found
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH, every_layer=True) == 1.5 * estimate
    everything = HuggingFace(model)
    assert held(everything.trace(batch())) > 1.4 * found


def test_four_layers_of_a_large_model_stay_under_two_gigabytes():
    """24 layers, 16 heads, width 1,024, as large as the promise; on the meta device, where no weight is."""
    with torch.device("meta"):
        model = model_of(1_024, 24)
    four = HuggingFace(model, kinds=("cross", "encoder_self", "decoder_self"), layers=[0, 8, 16, 23])
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH) < 2e9
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH, every_layer=True) > 3e9


def test_logits_are_made_of_one_step():
    """Those of a batch and 250,000 words would take 2 GB, whatever is caught."""
    model, made = model_of(32, 1), []
    model.lm_head.register_forward_hook(lambda _, given, logits: made.append(tuple(logits.shape)))
    found = HuggingFace(model).trace(batch())
    assert made == [(SAMPLES, 1, 50)]
    assert found.target_tokens.shape == (SAMPLES, LENGTH)
    assert not model.lm_head._forward_pre_hooks


def test_tables_count_the_words_of_the_half_that_has_the_state():
    """A Marian model with a vocabulary a side."""
    sizes = {"vocab_size": 50, "decoder_vocab_size": 30, "share_encoder_decoder_embeddings": False}
    tokens = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
    layers = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "max_position_embeddings": 8}
    model = MarianMTModel(MarianConfig(**sizes, **tokens, **layers, attn_implementation="eager"))
    of_side = [8 * (words * 4 + (words + 4) * 16) for words in (50, 30)]
    assert HuggingFace(model).table_bytes(4) == sum(of_side)


def test_tables_of_all_words_are_what_is_said():
    model = model_of(32, 2)
    adapter = HuggingFace(model, kinds=("cross", "encoder_self"))
    tables = {}
    tokens = torch.arange(50)[:, None].expand(50, 4)
    everywhere = torch.ones(50, 4, dtype=torch.bool)
    for site, (_, states) in adapter.trace(batch()).sites().items():
        filled = states.new_zeros(50, 4, states.shape[-1])
        tables[site] = GrowingComponents(states.shape[-1]).update(filled, tokens, everywhere).bytes
    assert len(tables) == 5  # the encoder's last states are read by both cross-attentions
    assert sum(tables.values()) == adapter.table_bytes(4)
