"""Any module by the names of its modules: one of our own, torch's attention, the lexical probe."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Hooked, Modules
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.adapters.adapter_builders import (
    HEADS,
    HOOKED,
    Reader,
    assert_terms_sum_to_the_scores,
    drawn,
    hooks_on,
    run,
)
from tests.attnlib.adapters.adapter_builders import WORDS as BATCH


def twice(model, batch):
    return run(model, batch), run(model, batch)


# A module written by hand.


def test_scores_are_those_of_the_module():
    model = drawn(Reader())
    found = Modules(model, [HOOKED], run, start=2).trace(BATCH)
    (one,) = found.attended
    read = torch.tensor([[2, 3, 0, 0], [2, 5, 6, 7], [2, 4, 4, 0]])
    assert torch.equal(found.target_tokens[BATCH.target_mask], read[BATCH.target_mask])
    assert torch.equal(found.target_outputs, BATCH.target)
    model.eval()
    expected = model(BATCH.source, BATCH.source_mask, found.target_tokens)
    torch.testing.assert_close(one.attention, expected)
    assert one.attention.std() > 0.2
    for head in range(HEADS):
        own = found.softmax(one, head)[BATCH.target_mask]
        torch.testing.assert_close(own, expected[:, head][BATCH.target_mask], rtol=0, atol=1e-6)
    assert_terms_sum_to_the_scores(found)
    assert set(found.sites()) == {"cross.0.query", "cross.0.key"}


def test_what_batches_say_is_read_is_read():
    found = Modules(drawn(Reader()), [HOOKED], run).trace(replace(BATCH, read=BATCH.target + 1))
    assert torch.equal(found.target_tokens, BATCH.target + 1)
    with pytest.raises(BadInput, match="give it ``read``, or Modules a start"):
        Modules(drawn(Reader()), [HOOKED], run).trace(BATCH)


def test_the_model_is_left_as_it_was():
    model = drawn(Reader())
    model.softmax.eval()
    modes = [module.training for module in model.modules()]
    before = torch.backends.mha.get_fastpath_enabled()

    def fails(model, batch):
        assert hooks_on(model) == 3
        assert not torch.backends.mha.get_fastpath_enabled()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Modules(model, [HOOKED], fails, start=2).trace(BATCH)
    Modules(model, [HOOKED], run, start=2).trace(BATCH)
    assert hooks_on(model) == 0
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == before


# The check, and what is refused.


def test_a_wrong_scale_is_noticed():
    # 1/√4 is what is taken where nothing is said, and what Reader computes with by default.
    model = drawn(Reader(scale=0.6))
    with pytest.raises(BadInput, match=r"cross\.0, head 0: attention from the caught projections is up to"):
        Modules(model, [HOOKED], run, start=2).trace(BATCH)
    said = Hooked("to_q", "to_k", heads=HEADS, attention="softmax", scale=0.6)
    assert Modules(model, [said], run, start=2).trace(BATCH).attended[0].scale == 0.6


def test_what_nothing_checks_is_refused_unless_it_is_said():
    bare = Hooked("to_q", "to_k", heads=HEADS)
    model = drawn(Reader())
    (one,) = Modules(model, [bare], run, start=2, unchecked=True).trace(BATCH).attended
    assert one.attention is None
    checked = Modules(model, [HOOKED], run, start=2).trace(BATCH).attended[0]
    assert torch.equal(one.scores, checked.scores)


@pytest.mark.parametrize(
    ("hooked", "message"),
    [
        ([Hooked("to_qq", "to_k", 2, "softmax")], "no module 'to_qq' in Reader; near are to_q, to_k"),
        ([Hooked("to_q", "to_k", 2, "sofmax")], "no module 'sofmax' in Reader; near are softmax"),
        ([Hooked("to_q", "zzzzzz", 2, "softmax")], "no module 'zzzzzz' in Reader; none is near"),
        ([Hooked("words", "to_k", 2, "softmax")], "words is Embedding; expected nn.Linear, a projection"),
        ([Hooked("to_q", "to_k", attention="softmax")], r"cross\.0: heads is 0; say how many share to_q"),
        ([Hooked("to_q", "to_k", 2)], r"cross\.0: nothing checks the scores made of to_q and to_k"),
        ([], "no attention is hooked: name the modules of one or more"),
        ([HOOKED, HOOKED], r"2 attentions are called cross\.0: give each a layer"),
    ],
)
def test_what_cannot_be_hooked_is_refused(hooked, message):
    with pytest.raises(BadInput, match=message):
        Modules(Reader(), hooked, run)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'cross'"):
        Hooked("to_q", "to_k", heads=2, kind="crosss")


def one_step_less(model, batch):
    return model(batch.source, batch.source_mask, batch.read[:, 1:])


@pytest.mark.parametrize(
    ("hooked", "run", "message"),
    [
        (HOOKED, lambda model, batch: None, "to_q was not run: is it the module of another path"),
        (Hooked("to_q", "to_k", 3, "softmax"), run, "8 dimensions cannot be shared by 3 heads"),
        (
            Hooked("to_q", "to_k", 4, "softmax"),
            run,
            r"softmax returns \(3, 2, 4, 5\); expected .*batch, 4",
        ),
        (Hooked("to_q", "to_k", 2, "to_k"), run, r"to_k returns \(3, 5, 8\); expected attention"),
        (Hooked("to_q", "to_k", 2, "words"), run, "words runs more than once in a pass"),
        (HOOKED, twice, "runs more than once in a pass"),
        (HOOKED, one_step_less, r"cross\.0: states of shape \(3, 3, 6\); expected \(3, 4, 6\)"),
    ],
)
def test_what_comes_out_otherwise_than_said_is_refused(hooked, run, message):
    model = drawn(Reader())
    with pytest.raises(BadInput, match=message):
        Modules(model, [hooked], run, start=2).trace(BATCH)
    assert hooks_on(model) == 0


# torch's own attention, alone and in nn.Transformer.


class Translator(nn.Module):
    """nn.Transformer with embeddings, two layers of two heads of width 4 on either side."""

    def __init__(self, **changes):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        settings = {"dim_feedforward": 8, "dropout": 0.3, "batch_first": True} | changes
        self.transformer = nn.Transformer(8, 2, 2, 2, **settings)

    def forward(self, batch):
        steps = batch.read.shape[1]
        return self.transformer(
            self.words(batch.source),
            self.words(batch.read),
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
            src_key_padding_mask=~batch.source_mask,
            tgt_key_padding_mask=~batch.target_mask,
            memory_key_padding_mask=~batch.source_mask,
        )


PLACES = {
    "encoder_self": "transformer.encoder.layers.{}.self_attn",
    "decoder_self": "transformer.decoder.layers.{}.self_attn",
    "cross": "transformer.decoder.layers.{}.multihead_attn",
}


IN_TORCH = [
    Hooked(name.format(layer), name.format(layer), kind=kind, layer=layer)
    for kind, name in PLACES.items()
    for layer in range(2)
]


def run_torch(model, batch):
    return model(batch)


def oracle(module, query, key, allowed):
    """Attention by head, from torch's module itself on the states that were caught."""
    forbidden = ~allowed.repeat_interleave(module.num_heads, 0)
    return module(query, key, key, attn_mask=forbidden, average_attn_weights=False)[1]


def test_every_attention_of_a_transformer():
    model = drawn(Translator())
    found = Modules(model, IN_TORCH, run_torch, start=2).trace(BATCH)
    assert [one.name for one in found.attended] == [one.name for one in IN_TORCH]
    for one, hooked in zip(found.attended, IN_TORCH, strict=True):
        allowed = one.allowed(*(found.mask(side) for side in found.sides(one.kind)))
        module = model.get_submodule(hooked.query).eval()
        expected = oracle(module, one.query_inputs, one.key_inputs, allowed).detach()
        rows = found.mask(found.sides(one.kind)[0])
        for head in range(2):
            own = found.softmax(one, head)[rows]
            torch.testing.assert_close(own, expected[:, head][rows], rtol=0, atol=1e-5)
        assert one.scores.std() > 0.5
        assert one.scale == 0.5
    assert_terms_sum_to_the_scores(found)
    assert hooks_on(model) == 0


def test_the_output_is_as_without_hooks():
    model, kept = drawn(Translator()).eval(), []
    Modules(model, IN_TORCH, lambda model, batch: kept.append(model(batch)), start=2).trace(BATCH)
    read = torch.cat([torch.full((3, 1), 2), BATCH.target[:, :-1]], 1)
    plain = model(replace(BATCH, read=read))
    torch.testing.assert_close(kept[0][BATCH.target_mask], plain[BATCH.target_mask])


class One(nn.Module):
    """One nn.MultiheadAttention over embeddings, called as ``call`` says."""

    def __init__(self, call, **settings):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True, **settings)
        self.call = call

    def forward(self, batch):
        return self.call(self.attend, self.words(batch.read), self.words(batch.source), ~batch.source_mask)


def usual(attend, asks, answers, padding):
    return attend(asks, answers, answers, key_padding_mask=padding)


def traced_alone(call, **settings):
    model = drawn(One(call, **settings))
    (one,) = Modules(model, [Hooked("attend", "attend")], run_torch, start=2).trace(BATCH).attended
    return one


@pytest.mark.parametrize(
    "call",
    [
        lambda attend, asks, answers, padding: attend(
            query=asks, key=answers, value=answers, key_padding_mask=padding
        ),
        lambda attend, asks, answers, padding: attend(asks, answers, answers, padding, False),
    ],
    ids=["names", "places"],
)
def test_arguments_by_place_and_by_name(call):
    assert torch.equal(traced_alone(call).attention, traced_alone(usual).attention)


@pytest.mark.parametrize("settings", [{}, {"kdim": 6, "batch_first": True}])
def test_attention_that_cannot_be_split_is_refused(settings):
    model = nn.Sequential(nn.MultiheadAttention(8, 2, **settings))
    with pytest.raises(BadInput, match="make it with batch_first=True and one width"):
        Modules(model, [Hooked("0", "0")], run_torch)
    with pytest.raises(BadInput, match="0 makes queries and keys: name it for both, not 'words'"):
        Modules(model, [Hooked("0", "words")], run_torch)


def test_attention_to_more_than_the_words_is_refused():
    with pytest.raises(BadInput, match=r"attention of shape \(3, 2, 4, 6\); expected \(3, 2, 4, 5\)"):
        traced_alone(usual, add_zero_attn=True)  # a column that is no word


# The lexical probe.


ANSWERS = 12


class Answerer(Reader):
    """A reader that answers with the words attended to, by two heads."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6 * HEADS, ANSWERS)

    def forward(self, source, source_mask, read):
        attention = super().forward(source, source_mask, read)
        context = attention @ self.dropout(self.words(source))[:, None]
        return self.out(context.transpose(1, 2).flatten(2))


class TorchAnswerer(Translator):
    """nn.Transformer with an output layer."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, ANSWERS)

    def forward(self, batch):
        return self.out(super().forward(batch))


CROSSING = [Hooked(PLACES["cross"].format(n), PLACES["cross"].format(n), layer=n) for n in range(2)]


def of_right_words(logits, one):
    return logits.softmax(-1).gather(-1, one.target_outputs[..., None])[..., 0]


def test_a_position_alone_is_a_source_of_one_word():
    """Without an encoder, to see one word is to be given one word."""
    model = drawn(Answerer())
    adapter = Modules(model, [HOOKED], run, start=2)
    one = adapter.trace(BATCH)
    beta = adapter.lexical_probe(one)
    model.eval()
    for place in range(5):
        word, there = one.source_tokens[:, place, None], one.source_mask[:, place]
        expected = of_right_words(model(word, torch.ones(3, 1, dtype=torch.bool), one.target_tokens), one)
        expected = expected * (one.target_mask & there[:, None])
        torch.testing.assert_close(beta[:, :, place], expected.detach())
    assert beta.std(-1)[one.target_mask].min() > 0


def test_torchs_attention_sees_one_state_of_the_encoder():
    model = drawn(TorchAnswerer())
    adapter = Modules(model, CROSSING, lambda model, batch: model(batch), start=2)
    one = adapter.trace(BATCH)
    beta = adapter.lexical_probe(one)
    assert model.training
    assert hooks_on(model) == 0
    inner = model.eval().transformer
    memory = inner.encoder(model.words(one.source_tokens), src_key_padding_mask=~one.source_mask)
    steps = torch.ones(4, 4, dtype=torch.bool).triu(1)
    valid = one.target_mask[:, :, None] & one.source_mask[:, None, :]
    for place in range(5):
        states = inner.decoder(model.words(one.target_tokens), memory[:, place, None], tgt_mask=steps)
        expected = of_right_words(model.out(states), one) * valid[:, :, place]
        torch.testing.assert_close(beta[:, :, place], expected.detach(), atol=1e-6, rtol=1e-4)
    assert bool((beta[valid] > 0).all())
    assert not beta[~valid].any()


def test_logits_may_come_in_an_object_or_first_in_a_tuple():
    model, found = drawn(Answerer()), []
    for wrap in (lambda logits: logits, lambda logits: (logits, None), lambda logits: Output(logits)):
        adapter = Modules(model, [HOOKED], lambda model, batch, wrap=wrap: wrap(run(model, batch)), start=2)
        found.append(adapter.lexical_probe(adapter.trace(BATCH)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


class Output:
    def __init__(self, logits):
        self.logits = logits


class Aside(Answerer):
    """Its attention is shown by a module and computed beside it."""

    def forward(self, source, source_mask, read):
        self.shown = Reader.forward(self, source, source_mask, read)
        return self.out(torch.cat([self.words(read)] * HEADS, -1))


class Shared(Answerer):
    """One softmax for attention to what was read and to the source."""

    def forward(self, source, source_mask, read):
        Reader.forward(self, read, torch.ones_like(read, dtype=torch.bool), read)
        return super().forward(source, source_mask, read)


def test_a_module_that_several_attentions_run_cannot_be_told_apart():
    model = drawn(Shared())
    with pytest.raises(BadInput, match="to_q runs more than once in a pass, so its attentions cannot be"):
        Modules(model, [HOOKED], run, start=2).trace(BATCH)
    assert hooks_on(model) == 0
    one = Modules(drawn(Answerer()), [HOOKED], run, start=2).trace(BATCH)
    with pytest.raises(BadInput, match="softmax runs more than once in a pass"):
        Modules(model, [HOOKED], run, start=2).lexical_probe(one)


def refused(model, hooked=HOOKED, run=run, **settings):
    adapter = Modules(model, [hooked], run, start=2, **settings)
    with pytest.raises(BadInput) as refusal:
        adapter.lexical_probe(adapter.trace(BATCH))
    return str(refusal.value)


def test_attention_that_the_model_does_not_go_on_with_is_refused():
    said = "cross.0: the model does not go on with the attention that softmax returns"
    assert said in refused(drawn(Aside()))
    unnamed = replace(HOOKED, attention=None)
    said = "cross.0: name the module that makes its attention"
    assert said in refused(drawn(Answerer()), unnamed, unchecked=True)


def test_a_model_that_returns_no_logits_is_refused():
    assert "run returns shape (3, 2, 4, 5); expected logits of shape (3, 4) by 9" in refused(drawn(Reader()))
    assert "run returns list" in refused(drawn(Answerer()), run=lambda *given: list(run(*given)))


def test_without_a_cross_attention_there_is_nothing_to_force():
    model = drawn(TorchAnswerer())
    name = PLACES["encoder_self"].format(0)
    hooked = Hooked(name, name, kind="encoder_self")
    assert "no cross-attention is hooked" in refused(model, hooked, lambda model, batch: model(batch))
