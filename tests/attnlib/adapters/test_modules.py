"""Any module by the names of its modules: one written by hand, torch's attention, the lexical probe."""

from dataclasses import replace
from types import SimpleNamespace

import torch
from torch import nn

from attnlib.adapters import Hooked, Modules
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    HEADS,
    HOOKED,
    IN_TORCH,
    Reader,
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
    Modules(model, IN_TORCH, lambda *own: kept.append(run_torch(*own)), start=2).trace(BATCH)
    plain = run_torch(model, replace(BATCH, read=traced("nn.Transformer").target_tokens))
    torch.testing.assert_close(kept[0][BATCH.target_mask], plain[BATCH.target_mask])


def test_arguments_by_place_and_by_name():
    def attended_with(call):
        def run(model, batch):
            asks, keys = model["words"](batch.read), model["words"](batch.source)
            return call(model["attend"], asks, keys, ~batch.source_mask)

        attend = nn.MultiheadAttention(8, 2, batch_first=True)
        model = drawn(nn.ModuleDict({"words": nn.Embedding(50, 8), "attend": attend}))
        return Modules(model, [Hooked("attend", "attend")], run, start=2).trace(BATCH).attended[0].attention

    usual = attended_with(lambda attend, asks, keys, pad: attend(asks, keys, keys, key_padding_mask=pad))
    places = attended_with(lambda attend, asks, keys, pad: attend(asks, keys, keys, pad, False))
    names = attended_with(
        lambda attend, asks, keys, pad: attend(query=asks, key=keys, value=keys, key_padding_mask=pad)
    )
    assert torch.equal(usual, places)
    assert torch.equal(usual, names)


def test_logits_may_come_in_an_object_or_first_in_a_tuple():
    model, found = drawn(Reader()), []
    for wrap in (lambda own: own, lambda own: (own, None), lambda own: SimpleNamespace(logits=own)):
        adapter = Modules(model, [HOOKED], lambda *own, wrap=wrap: wrap(run(*own)), start=2)
        found.append(adapter.lexical_probe(adapter.trace(BATCH)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
