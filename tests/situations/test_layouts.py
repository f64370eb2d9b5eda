"""Projections that make several things at once, heads that share keys, and layers that read length first."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlib import Hooked, Modules
from attnlib.errors import BadInput
from tests.attnlib.models.model_builders import drawn
from tests.situations.builders import BATCH

HEADS, WIDTH, WORDS = 4, 8, 60


def by_head(rows):
    """(batch, length, rows) as heads of width 2, (batch, heads, length, 2)."""
    return rows.unflatten(-1, (-1, 2)).transpose(1, 2)


class Cross(nn.Module):
    """A cross-attention of four heads; its layout says which layers make queries, keys and values."""

    def __init__(self, layout):
        super().__init__()
        self.layout = layout
        self.to_q, self.to_k, self.to_v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.to_kv, self.to_qkv = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.few_keys, self.few_values = nn.Linear(WIDTH, WIDTH // 2), nn.Linear(WIDTH, WIDTH // 2)
        self.few_kv = nn.Linear(WIDTH, WIDTH)  # two heads of keys, and two of values

    def projected(self, states, context):
        match self.layout:
            case "keys and values in one":
                return self.to_q(states), *self.to_kv(context).chunk(2, -1)
            case "grouped queries":
                return self.to_q(states), self.few_keys(context), self.few_values(context)
            case "grouped queries, keys and values in one":
                return self.to_q(states), *self.few_kv(context).chunk(2, -1)
            case _:
                return self.to_q(states), self.to_k(context), self.to_v(context)

    def forward(self, states, context, mask):
        if self.layout == "length first":
            query, key = self.to_q(states.transpose(0, 1)), self.to_k(context.transpose(0, 1))
            projected = query.transpose(0, 1), key.transpose(0, 1), self.to_v(context)
        else:
            projected = self.projected(states, context)
        query, key, value = (by_head(rows) for rows in projected)
        is_grouped = self.layout.startswith("grouped")
        seen = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask[:, None, None], enable_gqa=is_grouped
        )
        return seen.transpose(1, 2).flatten(2)


class Translator(nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.words, self.cross, self.out = nn.Embedding(WORDS, WIDTH), Cross(layout), nn.Linear(WIDTH, WORDS)

    def forward(self, batch):
        return self.out(self.cross(self.words(batch.read), self.words(batch.source), batch.source_mask))


def run(model, batch):
    return model(batch)


def hooked(query="cross.to_q", key="cross.to_k", **changes):
    return Hooked(query, key, heads=HEADS, attention="cross", **changes)


LAYOUTS = [
    pytest.param("keys and values in one", hooked(key="cross.to_kv:0/2"), id="half of to_kv"),
    pytest.param("keys and values in one", hooked(key="cross.to_kv[0:8]"), id="rows of to_kv"),
    pytest.param("grouped queries", hooked(key="cross.few_keys", key_heads=2), id="grouped queries"),
    pytest.param(
        "grouped queries, keys and values in one",
        hooked(key="cross.few_kv:0/2", key_heads=2),
        id="grouped queries, half of a layer",
    ),
    pytest.param("length first", hooked(length_first=True), id="length first"),
    pytest.param("each its layer", hooked(), id="each its layer"),
]


def adapter_of(layout, place):
    return Modules(drawn(Translator(layout)), place, run, start=1)


@pytest.mark.parametrize(("layout", "place"), LAYOUTS)
def test_scores_are_those_of_the_model(layout, place):
    """They are compared with the attention that the model's own function makes, in every trace."""
    trace = adapter_of(layout, place).trace(BATCH)
    assert trace.attentions[0].weights is not None
    assert trace.attentions[0].scores.shape == (2, HEADS, 3, 4)


@pytest.mark.parametrize(("layout", "place"), LAYOUTS)
def test_the_probe_sees_one_position(layout, place):
    adapter = adapter_of(layout, place)
    trace = adapter.trace(BATCH)
    alone = adapter.trace(BATCH.rows(torch.tensor([1])))
    assert torch.allclose(adapter.lexical_probe(trace)[1, :2, :2], adapter.lexical_probe(alone)[0, :2, :2])


class OneStream(nn.Module):
    """Self-attention whose queries, keys and values come from one layer, as in GPT-like code."""

    def __init__(self):
        super().__init__()
        self.words, self.to_qkv = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.softmax, self.out = nn.Softmax(-1), nn.Linear(WIDTH, WORDS)

    def forward(self, batch):
        query, key, value = (by_head(rows) for rows in self.to_qkv(self.words(batch.read)).chunk(3, -1))
        scores = query @ key.mT * 2**-0.5
        is_later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        attention = self.softmax(scores.masked_fill(is_later, -torch.inf))
        return self.out((attention @ value).transpose(1, 2).flatten(2))


def of_one_layer(query, key):
    place = Hooked(query, key, heads=HEADS, attention="softmax", kind="decoder_self")
    return Modules(drawn(OneStream()), place, run, start=1)


def test_thirds_of_a_layer_are_told_apart():
    (attention,) = of_one_layer("to_qkv:0/3", "to_qkv:1/3").trace(BATCH).attentions
    assert attention.query_site == attention.key_site
    assert attention.scores.shape == (2, HEADS, 3, 3)


def test_rows_of_other_thirds_are_noticed():
    with pytest.raises(BadInput, match="caught projections"):
        of_one_layer("to_qkv:0/3", "to_qkv:2/3").trace(BATCH)


def test_a_layer_named_for_both_sides_is_said_to_have_parts():
    with pytest.raises(BadInput, match="'to_qkv:0/3' and 'to_qkv:1/3'"):
        of_one_layer("to_qkv", "to_qkv").trace(BATCH)


REFUSED = [
    pytest.param("keys and values in one", hooked(key="cross.to_kv"), "cross.to_kv:0/2", id="to_kv"),
    pytest.param("grouped queries", hooked(key="cross.few_keys"), "key_heads=2", id="fewer keys"),
    pytest.param("grouped queries", hooked(key="cross.few_keys", key_heads=3), "divisor", id="three of four"),
    pytest.param("keys and values in one", hooked(key="cross.to_kv:0/5"), "equal parts", id="fifths"),
    pytest.param("keys and values in one", hooked(key="cross.to_kv:2/2"), "has 16", id="a third half"),
    pytest.param("keys and values in one", hooked(key="cross.to_kv[4:20]"), "has 16", id="rows beyond"),
    pytest.param("keys and values in one", hooked(key="words:0/2"), "Embedding", id="part of no layer"),
    pytest.param("keys and values in one", hooked(key="cross.to_k_v:0/2"), "to_kv", id="part of no module"),
    pytest.param("length first", hooked(), "length_first=True", id="length first"),
]


@pytest.mark.parametrize(("layout", "place", "way_out"), REFUSED)
def test_a_refusal_names_the_way_out(layout, place, way_out):
    with pytest.raises(BadInput, match=way_out):
        adapter_of(layout, place).trace(BATCH)
