"""A batch of a large model: what the adapter takes beside the model's own pass.

    python benchmarks/large_model.py

A T5 of the shape of t5-large, drawn at random, reads 32 × 64 tokens. Each line, a process of its own, is the
largest resident memory beyond the loaded model, for the model alone and for a pass with four layers caught of
every kind of attention, its scores computed and checked. Linux only.
"""

import time
from pathlib import Path

import torch
from timing import apart, resident
from transformers import T5Config, T5ForConditionalGeneration

from attnlib.adapters import HuggingFace, TokenBatch

SAMPLES, LENGTH, WORDS, LAYERS = 32, 64, 32_128, (0, 8, 16, 23)
KINDS = ("cross", "encoder_self", "decoder_self")


def model() -> T5ForConditionalGeneration:
    """Of the shape of t5-large, in float32."""
    config = T5Config(
        vocab_size=WORDS, d_model=1_024, d_kv=64, d_ff=4_096, num_layers=24, num_heads=16,
        decoder_start_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


def batch() -> TokenBatch:
    """Whole rows, so that nothing is cut off."""
    rng = torch.Generator().manual_seed(0)
    tokens = torch.randint(3, WORDS, (2, SAMPLES, LENGTH), generator=rng)
    mask = torch.ones(SAMPLES, LENGTH, dtype=torch.bool)
    return TokenBatch(tokens[0], mask, tokens[1], mask)


@torch.no_grad()
def measure(what: str) -> dict[str, float]:
    """Seconds of a pass, and the rise of the largest resident memory over what the model takes, in bytes."""
    own, one = model(), batch()
    adapter = HuggingFace(own, kinds=KINDS, layers=LAYERS)
    Path("/proc/self/clear_refs").write_text("5")  # the largest is from now on
    loaded, started = resident(), time.perf_counter()
    if what == "model alone":
        own(input_ids=one.source, decoder_input_ids=one.target, use_cache=False)
    else:
        adapter.trace(one)
    size = SAMPLES, LENGTH, LENGTH
    return {
        "seconds": time.perf_counter() - started,
        "rise": resident("VmHWM") - loaded,
        "model": sum(weights.nbytes for weights in own.parameters()),
        "estimate": adapter.pass_bytes(*size),
        "every_layer": adapter.pass_bytes(*size, every_layer=True),
    }


def main() -> None:
    for what in ("model alone", "a pass"):
        found = apart(measure, what)
        gigabytes = {name: f"{value / 1e9:.2f} GB" for name, value in found.items() if name != "seconds"}
        print(f"{what}: {found['seconds']:.0f} s; {gigabytes}", flush=True)


if __name__ == "__main__":
    main()
