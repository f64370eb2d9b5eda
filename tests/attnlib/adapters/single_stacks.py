"""Small decoders and encoders alone, of the transformers library, and a batch for them."""

from copy import deepcopy

import pytest
import torch

from attnlib import SequenceBatch
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.models.model_builders import spread

WIDE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
ROTARY = {**WIDE, "vocab_size": 50, "max_position_embeddings": 32, "pad_token_id": None}
GROUPED = {**ROTARY, "num_key_value_heads": 2}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 8}
HALF_ROTARY = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
ABSOLUTE = {**WIDE, "vocab_size": 50, "max_position_embeddings": 16}
GPT2 = {
    **{"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16},
    **{"bos_token_id": None, "eos_token_id": None},
}

DECODERS = {  # by the class of the configuration, behind which a name may say more
    "GPT2": GPT2,
    "GPT2 scaled by layer": {**GPT2, "scale_attn_by_inverse_layer_idx": True},
    "GPTNeoX": {**ROTARY, "rope_parameters": HALF_ROTARY, "bos_token_id": None, "eos_token_id": None},
    "OPT": {
        "vocab_size": 50,
        "hidden_size": 32,
        "ffn_dim": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 16,
        "word_embed_proj_dim": 32,
    },
    "Llama": GROUPED,
    "Llama with biases": {**GROUPED, "attention_bias": True},
    "Llama with scaled tables": {**GROUPED, "rope_parameters": YARN},
    "Mistral": {**GROUPED, "sliding_window": 3},
    "Mistral without a window": {**GROUPED, "sliding_window": None},
    "Qwen2": GROUPED,
    "Qwen2 with one window": {
        **GROUPED,
        "use_sliding_window": True,
        "sliding_window": 3,
        "max_window_layers": 1,
    },
    "Gemma": {**GROUPED, "head_dim": 16},
    "Phi": {**ROTARY, "rope_parameters": HALF_ROTARY},
}
ENCODERS = {
    "Bert": ABSOLUTE,
    "Roberta": {**ABSOLUTE, "pad_token_id": 1},
    "DistilBert": {"vocab_size": 50, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
                   "max_position_embeddings": 16},
}  # fmt: skip
ALL = {**DECODERS, **ENCODERS}
ROTATED = [name for name in DECODERS if not name.startswith(("GPT2", "OPT"))]
BATCH = SequenceBatch.of_rows(toys.rows_of((7, 3, 5, 6), 300))
LENGTHS = BATCH.mask.sum(1).tolist()


def model_of(name, **changes):
    settings = deepcopy(ALL[name]) | changes
    transformers = pytest.importorskip("transformers", reason="models of Hugging Face need transformers")
    config = getattr(transformers, f"{name.split()[0]}Config")(**settings)
    maker = "AutoModelForCausalLM" if name in DECODERS else "AutoModelForMaskedLM"
    with torch.random.fork_rng():
        model = getattr(transformers, maker).from_config(config)
    model.set_attn_implementation("eager")
    return spread(model, 32**-0.5).eval()
