"""What tests of the adapters share: an attention, passes, models of transformers, a module of our own."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from attnlib.adapters import Attended, Hooked, HuggingFace, LinearMap, ModelPass, Rotary, TokenBatch
from attnlib.decomposition import Components

DOUBLE = torch.float64
KINDS = ("encoder_self", "decoder_self", "cross")
SOURCE_MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] * 4 + [False]])
TARGET_MASK = torch.tensor([[True] * 2 + [False] * 2, [True] * 4, [True] * 3 + [False]])


# -- one attention, and a pass --


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def projection(width, out, seed, *, bias=True):
    made = nn.Linear(width, out, bias=bias, dtype=DOUBLE)
    with torch.no_grad():
        for at, own in enumerate(made.parameters()):
            own.copy_(normal(*own.shape, seed=seed + at))
    return made


def attended_of(batch=3, target=4, source=5, width=6, heads=2, **changes):
    """A cross-attention over random states, two heads of width 4, with biases."""
    made = Attended(
        kind="cross",
        layer=1,
        query_inputs=normal(batch, target, width, seed=1),
        key_inputs=normal(batch, source, width, seed=2),
        query_site="decoder",
        key_site="encoder",
        query_map=LinearMap.of(projection(width, 4 * heads, 10), heads),
        key_map=LinearMap.of(projection(width, 4 * heads, 20), heads),
        scale=0.5,
    )
    return replace(made, **changes)


def rotary(length, width, *, interleaved=False, base=100.0):
    """Angle of pair i at position t: t / base^(2i / width), dealt out as the layout says."""
    pairs = torch.arange(length, dtype=DOUBLE)[:, None] * base ** (
        -torch.arange(0, width, 2, dtype=DOUBLE) / width
    )
    angles = pairs.repeat_interleave(2, dim=1) if interleaved else pairs.repeat(1, 2)
    return Rotary(angles.cos(), angles.sin(), interleaved)


def softmax_of(one, source_mask=SOURCE_MASK):
    """By hand: exponentials of the scores at valid words, divided by their sum."""
    weights = one.scores.exp() * source_mask[:, None, None]
    return weights / weights.sum(-1, keepdim=True)


def pass_of(*attended, **changes):
    made = ModelPass(
        source_tokens=torch.arange(15).view(3, 5),
        source_mask=SOURCE_MASK,
        target_tokens=torch.arange(20, 32).view(3, 4),
        target_outputs=torch.arange(40, 52).view(3, 4),
        target_mask=TARGET_MASK,
        attended=attended,
    )
    return replace(made, **changes)


def checked():
    one = attended_of(position_bias=normal(1, 2, 4, 5, seed=9))
    return replace(one, attention=softmax_of(one))


def assert_same_pass(found, expected):
    for name in ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert [one.name for one in found.attended] == [one.name for one in expected.attended]
    for mine, theirs in zip(found.attended, expected.attended, strict=True):
        assert (mine.query_site, mine.key_site) == (theirs.query_site, theirs.key_site)
        for name in ("query_inputs", "key_inputs", "position_bias", "attention"):
            own, other = getattr(mine, name), getattr(theirs, name)
            assert own is other is None or torch.equal(own, other), (mine.name, name)
        assert torch.equal(mine.scores, theirs.scores), mine.name


def assert_terms_sum_to_the_scores(found):
    """The nine terms of components of these very states, and the position bias, wherever keys are seen."""
    parts = {
        site: Components(50, 8, states.shape[-1])
        .update(states, found.tokens(side), found.mask(side))
        .split(states, found.tokens(side), found.mask(side))
        for site, (side, states) in found.sites().items()
    }
    for one in found.attended:
        allowed = found.allowed(one)
        for head in range(one.heads):
            total = one.terms(head, parts[one.query_site], parts[one.key_site]).sum((0, 1))
            total = total if one.position_bias is None else total + one.position_bias[:, head]
            scores = one.scores[:, head][allowed]
            assert (total[allowed] - scores).abs().max() <= 1e-5 * scores.abs().max(), one.name
            assert scores.std() > 0.05


def hooks_on(model):
    """How many hooks stand on a model's modules."""
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


# -- models of transformers --


RELATIVE = dict(
    vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0
)
HALVES = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
ABSOLUTE = {f"{half}_{name}": own for half in ("encoder", "decoder") for name, own in HALVES.items()} | {
    "vocab_size": 50, "d_model": 32, "max_position_embeddings": 32,
    "decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SIZES = {"T5": RELATIVE, "MT5": RELATIVE, "UMT5": RELATIVE}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def rows_of(lengths, seed):
    return [
        torch.randint(3, 50, (length,), generator=generator(seed + length)).tolist() for length in lengths
    ]


ROWS = rows_of((5, 3, 7, 6), 100), rows_of((4, 6, 2, 5), 200)
BATCH = TokenBatch.of_rows(*ROWS)


def model_of(name, **changes):
    """With weights so large that attention is far from uniform, and with biases and norms that differ."""
    transformers = pytest.importorskip("transformers", reason="models of Hugging Face need transformers")
    config = getattr(transformers, f"{name}Config")(**SIZES.get(name, ABSOLUTE) | changes)
    with torch.random.fork_rng():
        model = transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")
    draw = generator(0)
    with torch.no_grad():
        for value in model.parameters():
            noise = torch.randn(value.shape, generator=draw)
            value.copy_(noise * 32**-0.5 if value.dim() > 1 else value + 0.3 * noise)
    return model.eval()


@cache
def traced(name):
    return HuggingFace(model_of(name), kinds=KINDS).trace(BATCH)


# -- a cross-attention written by hand --


HEADS = 2


class Reader(nn.Module):
    """A cross-attention written by hand, of two heads of width 4, over embeddings; dropout before all."""

    def __init__(self, scale=0.5):
        super().__init__()
        self.words, self.dropout = nn.Embedding(12, 6), nn.Dropout(0.5)
        self.to_q, self.to_k = nn.Linear(6, 4 * HEADS), nn.Linear(6, 4 * HEADS, bias=False)
        self.softmax, self.scale = nn.Softmax(dim=-1), scale

    def forward(self, source, source_mask, read):
        asks, answers = (
            project(self.dropout(self.words(tokens))).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for project, tokens in ((self.to_q, read), (self.to_k, source))
        )
        scores = asks @ answers.mT * self.scale
        return self.softmax(scores.masked_fill(~source_mask[:, None, None], -torch.inf))


def drawn(model, seed=0):
    """Weights so large that attention is far from uniform."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(generator=generator)
    return model.train()


def run(model, batch):
    return model(batch.source, batch.source_mask, batch.read)


HOOKED = Hooked("to_q", "to_k", heads=HEADS, attention="softmax")


WORDS = TokenBatch.of_rows([[5, 6, 7, 8, 9], [7, 8], [9, 3, 4, 5]], [[3, 4], [5, 6, 7, 8], [4, 4, 5]])
