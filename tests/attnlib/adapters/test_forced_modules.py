"""The lexical probe of named modules: what a model predicts that sees one source position, and no other."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Hooked, Modules
from attnlib.errors import BadInput
from tests.attnlib.adapters.test_adapter_hooks import hooks_on
from tests.attnlib.adapters.test_modules import BATCH, HEADS, HOOKED, Reader, drawn, run
from tests.attnlib.adapters.test_modules_of_torch import PLACES, Translator

WORDS = 12


class Answerer(Reader):
    """A reader that answers with the words attended to, by two heads."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6 * HEADS, WORDS)

    def forward(self, source, source_mask, read):
        attention = super().forward(source, source_mask, read)
        context = attention @ self.dropout(self.words(source))[:, None]
        return self.out(context.transpose(1, 2).flatten(2))


class TorchAnswerer(Translator):
    """nn.Transformer with an output layer."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, WORDS)

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


class Partly(Answerer):
    """It goes on with the attention at the first step, and answers the others without."""

    def forward(self, source, source_mask, read):
        first = super().forward(source, source_mask, read)[:, :1]
        return torch.cat([first, self.out(torch.cat([self.words(read)] * HEADS, -1))[:, 1:]], 1)


class Shared(Answerer):
    """One softmax for attention to what was read and to the source."""

    def forward(self, source, source_mask, read):
        Reader.forward(self, read, torch.ones_like(read, dtype=torch.bool), read)
        return super().forward(source, source_mask, read)


@pytest.mark.parametrize("at_padding", [-100, 11])
def test_labels_at_padding_do_not_matter(at_padding):
    adapter = Modules(drawn(Answerer()), [HOOKED], run, start=2)
    labels = BATCH.target.masked_fill(~BATCH.target_mask, at_padding)
    one = adapter.trace(replace(BATCH, target=labels))
    assert torch.equal(adapter.lexical_probe(one), adapter.lexical_probe(adapter.trace(BATCH)))


def test_a_module_that_several_attentions_run_cannot_be_told_apart():
    model = drawn(Shared())
    with pytest.raises(BadInput, match=r"to_q runs more than once in a pass, so that one attention cannot"):
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
    for model in (Aside(), Partly()):
        said = "cross.0: the model does not go on with the attention that softmax returns"
        assert said in refused(drawn(model))


def test_attention_that_nothing_returns_is_refused():
    unnamed = replace(HOOKED, attention=None)
    assert "cross.0: name the module that makes its attention" in refused(
        drawn(Answerer()), unnamed, unchecked=True
    )


def test_a_model_that_returns_no_logits_is_refused():
    assert "run returns shape (3, 2, 4, 5); expected logits of shape (3, 4) by 9" in refused(drawn(Reader()))
    assert "run returns list" in refused(drawn(Answerer()), run=lambda *given: list(run(*given)))


def test_without_a_cross_attention_there_is_nothing_to_force():
    model = drawn(TorchAnswerer())
    name = PLACES["encoder_self"].format(0)
    hooked = Hooked(name, name, kind="encoder_self")
    assert "no cross-attention is hooked" in refused(model, hooked, lambda model, batch: model(batch))
