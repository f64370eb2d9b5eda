"""Any module by the names of its modules: one written by hand, torch's attention, the lexical probe."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Hooked, Modules
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    HEADS,
    HOOKED,
    IN_TORCH,
    Answerer,
    Reader,
    TorchAnswerer,
    Translator,
    drawn,
    run,
    run_torch,
    traced,
)


def test_what_is_read_is_the_target_one_step_later_or_what_the_batch_says():
    found, start = traced("by hand"), torch.full((4, 1), 2)
    read = torch.cat([start, BATCH.target[:, :-1]], 1)
    assert torch.equal(found.target_tokens[BATCH.target_mask], read[BATCH.target_mask])
    assert torch.equal(found.target_outputs, BATCH.target)
    assert set(found.sites()) == {"cross.0.query", "cross.0.key"}
    found = Modules(drawn(Reader()), [HOOKED], run).trace(replace(BATCH, read=BATCH.source[:, :6]))
    assert torch.equal(found.target_tokens, BATCH.source[:, :6])


def test_a_scale_is_that_of_the_width_of_a_head_or_what_is_said():
    (one,) = traced("by hand").attended
    assert one.scale == 4**-0.5
    said = Hooked("to_q", "to_k", heads=HEADS, attention="softmax", scale=0.6)
    assert Modules(drawn(Reader(scale=0.6)), [said], run, start=2).trace(BATCH).attended[0].scale == 0.6
    assert {one.scale for one in traced("nn.Transformer").attended} == {0.5}


def test_what_nothing_checks_may_be_said_to_be_so():
    bare = Modules(drawn(Reader()), [Hooked("to_q", "to_k", heads=HEADS)], run, start=2, unchecked=True)
    (one,) = bare.trace(BATCH).attended
    assert one.attention is None
    assert torch.equal(one.scores, traced("by hand").attended[0].scores)


# torch's own attention.


def test_the_output_is_as_without_hooks():
    model, kept = drawn(Translator()).eval(), []
    Modules(model, IN_TORCH, lambda model, batch: kept.append(model(batch)), start=2).trace(BATCH)
    plain = model(replace(BATCH, read=traced("nn.Transformer").target_tokens))
    torch.testing.assert_close(kept[0][BATCH.target_mask], plain[BATCH.target_mask])


class One(nn.Module):
    """One nn.MultiheadAttention over embeddings, called as ``call`` says."""

    def __init__(self, call):
        super().__init__()
        self.words, self.call = nn.Embedding(50, 8), call
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, batch):
        return self.call(self.attend, self.words(batch.read), self.words(batch.source), ~batch.source_mask)


def test_arguments_by_place_and_by_name():
    usual, *others = (
        Modules(drawn(One(call)), [Hooked("attend", "attend")], run_torch, start=2).trace(BATCH).attended[0]
        for call in (
            lambda attend, asks, keys, padding: attend(asks, keys, keys, key_padding_mask=padding),
            lambda attend, asks, keys, padding: attend(asks, keys, keys, padding, False),
            lambda attend, asks, keys, padding: attend(
                query=asks, key=keys, value=keys, key_padding_mask=padding
            ),
        )
    )
    for other in others:
        assert torch.equal(other.attention, usual.attention)


# The lexical probe.


def alone_by_hand(model, one, place):
    """Without an encoder, to see one word is to be given one word."""
    word = one.source_tokens[:, place, None]
    return model(word, torch.ones_like(word, dtype=torch.bool), one.target_tokens)


def alone_in_torch(model, one, place):
    inner, steps = model.transformer, one.target_tokens.shape[1]
    memory = inner.encoder(model.words(one.source_tokens), src_key_padding_mask=~one.source_mask)
    later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    return model.out(inner.decoder(model.words(one.target_tokens), memory[:, place, None], tgt_mask=later))


@pytest.mark.parametrize(
    ("model", "hooked", "run", "alone"),
    [
        (Answerer, [HOOKED], run, alone_by_hand),
        (TorchAnswerer, [one for one in IN_TORCH if one.kind == "cross"], run_torch, alone_in_torch),
    ],
)
def test_the_probe_of_a_position_is_what_is_said_with_it_alone(model, hooked, run, alone):
    adapter = Modules(drawn(model()), hooked, run, start=2)
    one = adapter.trace(BATCH)
    beta = adapter.lexical_probe(one)
    assert adapter.model.training
    valid = one.target_mask[:, :, None] & one.source_mask[:, None, :]
    for place in range(one.source_tokens.shape[1]):
        probability = alone(adapter.model.eval(), one, place).softmax(-1)
        expected = probability.gather(-1, one.target_outputs[..., None])[..., 0] * valid[:, :, place]
        torch.testing.assert_close(beta[:, :, place], expected.detach(), atol=1e-6, rtol=1e-4)
    assert not beta[~valid].any()
    assert beta.std(-1)[one.target_mask].min() > 0


class Output:
    def __init__(self, logits):
        self.logits = logits


def test_logits_may_come_in_an_object_or_first_in_a_tuple():
    model, found = drawn(Answerer()), []
    for wrap in (lambda logits: logits, lambda logits: (logits, None), Output):
        adapter = Modules(model, [HOOKED], lambda *own, wrap=wrap: wrap(run(*own)), start=2)
        found.append(adapter.lexical_probe(adapter.trace(BATCH)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
