"""What tests of the adapters share: an attention, passes, and models that each adapter takes."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from operator import attrgetter

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlib import Attention, FrameBatch, Hooked, HuggingFace, Modules, TokenBatch, Trace, alignment_terms
from attnlib.adapters import LinearMap, Rotary
from attnlib.decomposition import Parts, map_parts
from tests.attnlib.models.model_builders import drawn, generator, spread
from tests.tables import beside

KINDS = ("encoder_self", "decoder_self", "cross")
SIDES = ("source", "target")
TOKENS = {
    "source_tokens": torch.arange(15).view(3, 5),
    "source_mask": torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] * 4 + [False]]),
    "target_tokens": torch.arange(20, 32).view(3, 4),
    "target_mask": torch.tensor([[True] * 2 + [False] * 2, [True] * 4, [True] * 3 + [False]]),
}
SOURCE_MASK, TARGET_MASK = TOKENS["source_mask"], TOKENS["target_mask"]


# -- one attention, and a pass --


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def attended_of(batch=3, target=4, source=5, width=6, heads=2, kind="cross", **changes):
    maps = (LinearMap(normal(heads, 4, width, seed=n), normal(heads, 4, seed=n + 1)) for n in (10, 20))
    given = {
        "query_inputs": normal(batch, target, width, seed=1),
        "key_inputs": normal(batch, source, width, seed=2),
        "query_site": "decoder",
        "key_site": "encoder",
        "maps": tuple(maps),
        "scale": 0.5,
    }
    return Attention(kind, 1, **given | changes)


def terms_of(attention, head, query, key):
    """The nine terms of a head from the parts of what its projections read: its scores but for their bias."""
    sides = (
        (query, attention.query_map, attention.query_rotation),
        (key, attention.key_map, attention.key_rotation),
    )
    mapped = []
    for parts, linear, rotation in sides:
        parts = map_parts(parts, linear.weight[head], None if linear.bias is None else linear.bias[head])
        mapped.append(parts if rotation is None else Parts(*map(rotation, parts), mask=parts.mask))
    return alignment_terms(*mapped, scale=attention.scale)


def rotary(length, width, *, interleaved=False):
    """Angle of pair i at position t: t / 100^(2i / width), dealt out as the layout says."""
    powers = -torch.arange(0, width, 2, dtype=torch.float64) / width
    pairs = torch.arange(length, dtype=torch.float64)[:, None] * 100.0**powers
    angles = pairs.repeat_interleave(2, dim=1) if interleaved else pairs.repeat(1, 2)
    return Rotary(angles.cos(), angles.sin(), interleaved)


def softmax_of(scores, allowed=SOURCE_MASK[:, None, None]):
    """By hand: exponentials of the scores at valid words, divided by their sum."""
    weights = scores.exp() * allowed
    return weights / weights.sum(-1, keepdim=True)


def pass_of(*attended, **changes):
    outputs = torch.arange(40, 52).view(3, 4)
    return Trace(**TOKENS | {"target_outputs": outputs, "attentions": attended} | changes)


def checked(**changes):
    """An attention with a bias by position, and with the weights that its scores make."""
    attention = attended_of(**{"position_bias": normal(1, 2, 4, 5, seed=9)} | changes)
    return replace(attention, weights=softmax_of(attention.scores))


def full():
    """Tensors of an attention of every kind, with all that may be said of it; two heads of width 4."""
    both = {"source": normal(3, 5, 6, seed=3), "target": normal(3, 4, 6, seed=4)}
    sides = {"cross.3": SIDES[::-1], "encoder_self.0": ("source",) * 2, "decoder_self.11": ("target",) * 2}
    tensors = TOKENS | {"encoder_states": both["source"], "target_outputs": torch.arange(50, 62).view(3, 4)}
    for seed, (place, (asks, answers)) in enumerate(sides.items()):
        inputs, made = {"scale": torch.tensor(0.25), "query_states": both[asks]}, {}
        for at, (name, side) in enumerate((("query", asks), ("key", answers))):
            inputs[f"{name}_weight"] = normal(2, 4, 6, seed=10 * seed + at)
            inputs[f"{name}_bias"] = normal(2, 4, seed=10 * seed + 5 + at)
            made[name] = both[side][:, None] @ inputs[f"{name}_weight"].mT + inputs[f"{name}_bias"][:, None]
        lengths = both[asks].shape[1], both[answers].shape[1]
        inputs["position_bias"] = normal(1, 2, *lengths, seed=seed)
        allowed = TOKENS[f"{answers}_mask"][:, None, None]
        if place.startswith("decoder"):
            allowed = allowed & torch.ones(lengths, dtype=torch.bool).tril()
        scores = 0.25 * made["query"] @ made["key"].mT + inputs["position_bias"]
        inputs["attention"] = softmax_of(scores, allowed)
        tensors |= {f"{place}.{name}": value for name, value in inputs.items()}
    return tensors


def to(given, dtype):
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}


FULL = to(full(), torch.float32)
PLAIN = {"cross.0.query_states": normal(3, 4, 6, seed=1), "encoder_states": normal(3, 5, 6, seed=2)}
PLAIN = TOKENS | to(PLAIN, torch.float32)


def without(given, *names):
    return {name: value for name, value in given.items() if name not in names}


def assert_same_pass(model_pass, expected):
    for name in (*TOKENS, "target_outputs"):
        assert torch.equal(getattr(model_pass, name), getattr(expected, name)), name
    names = attrgetter("name", "query_site", "key_site")
    states = attrgetter("query_inputs", "key_inputs", "position_bias", "weights")
    for mine, theirs in zip(model_pass.attentions, expected.attentions, strict=True):
        assert names(mine) == names(theirs)
        torch.testing.assert_close(states(mine), states(theirs), rtol=0, atol=0)
        torch.testing.assert_close(mine.scores, theirs.scores)  # memory read from a file has other kernels


def padded_in_front(tensor, masks, **axes):
    """With the padding of every row in front, along the axes of some sides."""
    for side, axis in axes.items():
        order = torch.argsort(masks[side].int(), dim=1, stable=True)
        rows = zip(tensor.expand(len(order), *tensor.shape[1:]), order, strict=True)
        tensor = torch.stack([row.index_select(axis - 1, places) for row, places in rows])
    return tensor


# -- models of transformers --

SIZES = beside(__file__, "sizes")
MADE_BY = {  # and how large their weights are drawn
    "words": ("AutoModelForSeq2SeqLM", 32**-0.5),
    "sound": ("AutoModelForSpeechSeq2Seq", 0.5),
    "pictures": ("AutoModelForImageTextToText", 0.5),
}
FAMILIES = ("T5", "MT5", "Bart", "MBart", "Marian", "Pegasus", "M2M100")
FRAMES = (*SIZES["sound"], *SIZES["pictures"])


def rows_of(lengths, seed):
    return [
        torch.randint(3, 50, (length,), generator=generator(seed + length)).tolist() for length in lengths
    ]


BATCH = TokenBatch.of_rows(rows_of((5, 3, 7, 6), 100), rows_of((4, 6, 2, 5), 200))


def model_of(name, **changes):
    """By the class of its configuration, behind which a name may say more."""
    transformers = pytest.importorskip("transformers", reason="models of Hugging Face need transformers")
    (kind,) = (kind for kind in MADE_BY if name in SIZES[kind])
    maker, size = MADE_BY[kind]
    config = getattr(transformers, f"{name.split()[0]}Config")(**deepcopy(SIZES[kind][name]) | changes)
    with torch.random.fork_rng():
        model = getattr(transformers, maker).from_config(config)
    model.set_attn_implementation("eager")
    return spread(model, size)


def half(name):
    """An encoder or a decoder alone."""
    made = getattr(pytest.importorskip("transformers"), name)
    return made(made.config_class(**SIZES["alone"][name]))


def frames_batch(name, seed=0):
    """Speech2Text makes one position of four frames, and is told where there is sound."""
    draw, mask = generator(seed), None
    shape = {"Whisper": (4, 20), "Speech2Text": (32, 4)}.get(name, (3, 8, 8))
    if name == "Speech2Text":
        mask = torch.arange(32) < torch.tensor([32, 32, 24, 32, 16])[:, None]
    target, lengths = torch.randint(3, 8, (5, 4), generator=draw), torch.tensor([4, 2, 3, 4, 4])
    frames = torch.randn(5, *shape, generator=draw)
    return FrameBatch(frames, target, torch.arange(4) < lengths[:, None], frames_mask=mask)


def batch_for(name):
    return frames_batch(name) if name in FRAMES else BATCH


def whisper(**arguments):
    return HuggingFace(model_of("Whisper"), **arguments)


# -- modules --

HEADS, WORDS = 2, 50
PLACES = {
    "encoder_self": "transformer.encoder.layers.{}.self_attn",
    "decoder_self": "transformer.decoder.layers.{}.self_attn",
    "cross": "transformer.decoder.layers.{}.multihead_attn",
}
HOOKED = Hooked("to_q", "to_k", heads=HEADS, attention="softmax")
IN_TORCH = [
    Hooked(*[name.format(n)] * 2, kind=kind, layer=n) for kind, name in PLACES.items() for n in range(2)
]


FUNCTIONS = {
    "torch.softmax": lambda scores: torch.softmax(scores, dim=-1),
    "Tensor.softmax": lambda scores: scores.softmax(-1),
    "F.softmax": lambda scores: F.softmax(scores, dim=-1),
    "by all heads": lambda scores: F.softmax(scores.flatten(0, 1), dim=-1),  # (batch · heads, target, source)
}


class Within(nn.Module):
    """An attention as most people write it: a module that returns the context, a function inside."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, query, key, values, hidden):
        if self.function.startswith("scaled_dot_product"):
            context = F.scaled_dot_product_attention(query, key, values, attn_mask=~hidden)
            if "heads apart" in self.function:
                return context
        else:
            scores = (query @ key.mT * 0.5).masked_fill(hidden, -torch.inf)
            context = FUNCTIONS[self.function](scores).view(scores.shape) @ values
        return context.transpose(1, 2).flatten(2)


class Reader(nn.Module):
    """A cross-attention by hand, two heads of width 4; with another function, within a module of contexts."""

    def __init__(self, scale=0.5, function="by hand"):
        super().__init__()
        self.words, self.dropout = nn.Embedding(WORDS, 6), nn.Dropout(0.5)
        self.to_q, self.to_k = nn.Linear(6, 4 * HEADS), nn.Linear(6, 4 * HEADS, bias=False)
        self.softmax = nn.Softmax(dim=-1) if function == "by hand" else Within(function)
        self.scale, self.out = scale, nn.Linear(6 * HEADS, WORDS)

    def projected(self, source, read):
        query, key = self.to_q(self.dropout(self.words(read))), self.to_k(self.dropout(self.words(source)))
        return (states.unflatten(-1, (HEADS, -1)).transpose(1, 2) for states in (query, key))

    def attend(self, source, source_mask, read):
        query, key = self.projected(source, read)
        scores = query @ key.mT * self.scale
        return self.softmax(scores.masked_fill(~source_mask[:, None, None], -torch.inf))

    def forward(self, source, source_mask, read, read_mask=None):
        values = self.dropout(self.words(source))[:, None].expand(-1, HEADS, -1, -1)
        if isinstance(self.softmax, Within):
            context = self.softmax(*self.projected(source, read), values, ~source_mask[:, None, None])
        else:
            context = self.attend(source, source_mask, read) @ values
        return self.out(context if context.dim() == 3 else context.transpose(1, 2).flatten(2))


class Translator(nn.Module):
    """nn.Transformer between embeddings and words, two layers of two heads of width 4 on either side."""

    def __init__(self, **settings):
        super().__init__()
        self.words, self.out = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)
        settings = {"dim_feedforward": 8, "dropout": 0.3, "batch_first": True} | settings
        self.transformer = nn.Transformer(8, 2, 2, 2, **settings)

    def forward(self, source, source_mask, read, read_mask):
        first = self.transformer.batch_first
        turned = (lambda states: states) if first else (lambda states: states.transpose(0, 1))
        masks = dict.fromkeys(("src_key_padding_mask", "memory_key_padding_mask"), ~source_mask)
        masks["tgt_mask"] = torch.ones(read.shape[1], read.shape[1]).triu(1).bool()
        words = turned(self.words(source)), turned(self.words(read))
        return self.out(turned(self.transformer(*words, **masks, tgt_key_padding_mask=~read_mask)))


def run(model, batch):
    return model(batch.source, batch.source_mask, batch.read, batch.target_mask)


def adapter_of(name):
    if name in (*FAMILIES, "EncoderDecoder", *FRAMES):
        return HuggingFace(model_of(name), kinds=KINDS)
    if name.startswith("nn.Transformer"):
        return Modules(drawn(Translator(batch_first="length" not in name)), IN_TORCH, run, start=2)
    return Modules(drawn(Reader(function=name)), [HOOKED], run, start=2)


@cache
def traced(name):
    return adapter_of(name).trace(batch_for(name))
