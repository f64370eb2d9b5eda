"""What every adapter holds to: its scores are the model's, nine terms make them, padding does not matter."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import Modules, TokenBatch, lexical_probe, pass_of_tensors, transformer_pass
from attnlib.decomposition import Components
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    FAMILIES,
    FULL,
    SIDES,
    adapter_of,
    assert_same_pass,
    checked,
    hooks_on,
    model_of,
    pass_of,
    rotary,
    traced,
)
from tests.attnlib.models.model_builders import POSITIONS, batch_of, transformer


def by_family(name):
    """A plain call of the model, nothing hooked."""
    found = traced(name)
    with torch.no_grad():
        plain = model_of(name)(
            input_ids=found.source_tokens,
            attention_mask=found.source_mask.long(),
            decoder_input_ids=found.target_tokens,
            decoder_attention_mask=found.target_mask.long(),
            output_attentions=True,
        )
    return found, [plain[f"{one.kind.removesuffix('_self')}_attentions"][one.layer] for one in found.attended]


@torch.no_grad()
def by_reader():
    found, model = traced("by hand"), adapter_of("by hand").model.eval()
    return found, [model.attend(found.source_tokens, found.source_mask, found.target_tokens)]


@torch.no_grad()
def by_torch():
    """From torch's modules themselves on the states that were caught."""
    found, adapter, expected = traced("nn.Transformer"), adapter_of("nn.Transformer"), []
    for one, hooked in zip(found.attended, adapter.hooked, strict=True):
        module, keys = adapter.model.get_submodule(hooked.query).eval(), one.key_inputs
        hidden = ~found.allowed(one).repeat_interleave(one.heads, 0)
        expected.append(module(one.query_inputs, keys, keys, attn_mask=hidden, average_attn_weights=False)[1])
    return found, expected


def as_given(found):
    return found, [one.attention for one in found.attended]


def rotated(**layout):
    return as_given(
        pass_of(checked(query_rotation=rotary(4, 4, **layout), key_rotation=rotary(5, 4, **layout)))
    )


ADAPTERS = {
    **{name: lambda name=name: by_family(name) for name in FAMILIES},
    "by hand": by_reader,
    "nn.Transformer": by_torch,
    "tensors": lambda: as_given(pass_of_tensors(FULL)),
    "rotated halves": rotated,
    "rotated neighbours": lambda: rotated(interleaved=True),
    **{f"library, {own}": lambda own=own: as_given(transformer_pass(transformer(positions=own), batch_of()))
       for own in POSITIONS},
}  # fmt: skip


@pytest.mark.parametrize("name", ADAPTERS)
def test_scores_make_the_models_attention_and_nine_terms_and_the_position_bias_make_the_scores(name):
    found, expected = ADAPTERS[name]()
    parts = {
        site: Components(64, 8, states.shape[-1])
        .update(states, found.tokens(side), found.mask(side))
        .split(states, found.tokens(side), found.mask(side))
        for site, (side, states) in found.sites().items()
    }
    for one, theirs in zip(found.attended, expected, strict=True):
        allowed = found.allowed(one)
        for head in range(one.heads):
            own, weights = found.softmax(one, head), theirs[:, head][allowed]
            torch.testing.assert_close(one.attention[:, head][allowed], weights)
            torch.testing.assert_close(own[allowed], weights, rtol=0, atol=1e-5)
            assert not own[~allowed].any()
            terms = one.terms(head, parts[one.query_site], parts[one.key_site])
            assert terms.shape == (3, 3, *allowed.shape)
            total = terms.sum((0, 1))
            total = total if one.position_bias is None else total + one.position_bias[:, head]
            scores = one.scores[:, head][allowed]
            assert (total[allowed] - scores).abs().max() <= 1e-5 * scores.abs().max(), one.name
            assert scores.std() > 0.05


@pytest.mark.parametrize("name", [*POSITIONS, *FAMILIES])
def test_which_attentions_there_are_and_which_have_a_bias_or_a_rotation_by_position(name):
    names = ["encoder_self.0", "encoder_self.1", "decoder_self.0", "cross.0", "decoder_self.1", "cross.1"]
    if name in FAMILIES:
        found = traced(name).attended
    else:
        names = ["cross.0", "cross.1", *names[:3], "decoder_self.1"]
        found = transformer_pass(transformer(positions=name), batch_of()).attended
    assert [one.name for one in found] == names
    for one in found:
        own = one.kind != "cross"
        assert (one.position_bias is not None) == (own and name in ("relative", "T5", "MT5"))
        assert (one.query_rotation is not None) == (own and name == "rotary")


@pytest.mark.parametrize("name", ["T5", "by hand", "nn.Transformer"])
def test_the_model_is_left_as_it_was(name, monkeypatch):
    adapter = adapter_of(name)
    model, before = adapter.model.train(), torch.backends.mha.get_fastpath_enabled()
    next(model.children()).eval()
    modes = [module.training for module in model.modules()]

    def fails(batch):
        assert hooks_on(model) >= 3
        assert not any((model.training, torch.is_grad_enabled(), torch.backends.mha.get_fastpath_enabled()))
        raise RuntimeError

    adapter.trace(BATCH)
    monkeypatch.setattr(adapter, "_run", fails)
    with pytest.raises(RuntimeError):
        adapter.trace(BATCH)
    assert hooks_on(model) == 0
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == before


def padded_left(batch):
    """The same with padding at the left of every row, and one column more of it."""
    moved = {}
    for side in SIDES:
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        order = torch.argsort(mask, dim=1, stable=True)
        one = torch.zeros_like(tokens[:, :1])
        moved[side] = torch.cat([one, tokens.take_along_dim(order, 1)], 1)
        moved[f"{side}_mask"] = torch.cat([one.bool(), mask.take_along_dim(order, 1)], 1)
    return TokenBatch(**moved)


@pytest.mark.parametrize("name", ["T5", "Bart", "by hand", "nn.Transformer"])
def test_padding_at_the_left_gives_the_same_pass(name):
    assert_same_pass(adapter_of(name).trace(padded_left(BATCH)), traced(name))


@pytest.mark.parametrize("at_padding", [-100, 10**6])
@pytest.mark.parametrize("name", ["T5", "Bart", "MBart", "M2M100"])
def test_what_stands_at_padding_does_not_matter(name, at_padding):
    padded = {
        side: getattr(BATCH, side).masked_fill(~getattr(BATCH, f"{side}_mask"), at_padding) for side in SIDES
    }
    adapter = adapter_of(name)
    assert_same_pass(adapter.trace(replace(BATCH, **padded)), traced(name))
    given = replace(BATCH, **padded, read=padded["target"])
    assert_same_pass(adapter.trace(given), adapter.trace(replace(BATCH, read=BATCH.target)))


# The lexical probe.


def alone_in_family(model, one, place):
    outputs = pytest.importorskip("transformers").modeling_outputs
    states = model.get_encoder()(one.source_tokens, attention_mask=one.source_mask.long()).last_hidden_state
    encoded = outputs.BaseModelOutput(states[:, place, None])
    return model(encoder_outputs=encoded, decoder_input_ids=one.target_tokens).logits


def alone_by_hand(model, one, place):
    """Without an encoder, to see one word is to be given one word."""
    word = one.source_tokens[:, place, None]
    return model(word, torch.ones_like(word, dtype=torch.bool), one.target_tokens)


def alone_in_torch(model, one, place):
    inner, steps = model.transformer, one.target_tokens.shape[1]
    memory = inner.encoder(model.words(one.source_tokens), src_key_padding_mask=~one.source_mask)
    later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    return model.out(inner.decoder(model.words(one.target_tokens), memory[:, place, None], tgt_mask=later))


PROBES = dict.fromkeys(("T5", "Bart", "Marian"), alone_in_family)
PROBES |= {"by hand": alone_by_hand, "nn.Transformer": alone_in_torch}


def probe_of(adapter, one):
    return adapter.lexical_probe(one) if isinstance(adapter, Modules) else lexical_probe(adapter.model, one)


@pytest.mark.parametrize("name", PROBES)
def test_the_probe_of_a_position_is_what_is_said_with_all_others_cut_away(name):
    one, adapter = traced(name), adapter_of(name)
    beta, valid = probe_of(adapter, one), one.target_mask[:, :, None] & one.source_mask[:, None, :]
    assert adapter.model.training == isinstance(adapter, Modules)
    for place in range(one.source_tokens.shape[1]):
        probability = PROBES[name](adapter.model.eval(), one, place).softmax(-1)
        expected = probability.gather(-1, one.target_outputs[..., None])[..., 0] * valid[:, :, place]
        torch.testing.assert_close(beta[:, :, place], expected.detach(), atol=1e-6, rtol=1e-4)
    assert not beta[~valid].any()
    assert beta.std(-1)[one.target_mask].min() > 0


@pytest.mark.parametrize("at_padding", [-100, 10**6])
def test_a_probe_does_not_depend_on_what_stands_at_padding(at_padding):
    adapter, one = adapter_of("Bart"), traced("Bart")
    padded = {
        name: getattr(one, name).masked_fill(~one.mask(name[:6]), at_padding)
        for name in ("source_tokens", "target_tokens", "target_outputs")
    }
    assert torch.equal(probe_of(adapter, replace(one, **padded)), probe_of(adapter, one))
