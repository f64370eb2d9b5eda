"""What every adapter holds to, and what is of named modules, Hugging Face models and frames alone."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlib import Hooked, HuggingFace, Modules, TokenBatch, analyse, zoo
from attnlib.adapters import lexical_probe, pass_of_tensors, transformer_pass
from attnlib.decomposition import Components
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.adapters.adapter_builders import BATCH, FAMILIES, FRAMES, FULL, HOOKED, KINDS, SIDES, run
from tests.attnlib.models.model_builders import POSITIONS, batch_of, transformer
from tests.attnlib.refusals import assert_refused


def plain_call(name):
    """What a model itself returns for its pass, nothing hooked, and its attention for each caught."""
    model, trace, batch = toys.model_of(name), toys.traced(name), toys.batch_for(name)
    words = {"input_ids": trace.source_tokens, "attention_mask": trace.source_mask.long()}
    reads = {"decoder_input_ids": trace.target_tokens, "decoder_attention_mask": trace.target_mask.long()}
    if name in FRAMES:
        mask = {} if batch.frames_mask is None else {"attention_mask": batch.frames_mask.long()}
        words = {model.main_input_name: batch.frames} | mask
    with torch.no_grad():
        plain = model(**words, **reads, output_attentions=True)
    return plain, [
        plain[f"{attention.kind.removesuffix('_self')}_attentions"][attention.layer]
        for attention in trace.attentions
    ]


def by_reader():
    trace, model = toys.traced("by hand"), toys.adapter_of("by hand").model.eval()
    return trace, [model.attend(trace.source_tokens, trace.source_mask, trace.target_tokens)]


@torch.no_grad()
def by_torch():
    trace, adapter, expected = toys.traced("nn.Transformer"), toys.adapter_of("nn.Transformer"), []
    for attention, hooked in zip(trace.attentions, adapter.hooked, strict=True):
        module, keys = adapter.model.get_submodule(hooked.query).eval(), attention.key_inputs
        hidden = ~trace.allowed(attention).repeat_interleave(attention.heads, 0)
        expected.append(
            module(attention.query_inputs, keys, keys, attn_mask=hidden, average_attn_weights=False)[1]
        )
    return trace, expected


def by_library(positions):
    return as_given(transformer_pass(transformer(positions=positions), batch_of()))


def as_given(trace):
    return trace, [attention.weights for attention in trace.attentions]


def rotated(**layout):
    rotations = {"query_rotation": toys.rotary(4, 4, **layout), "key_rotation": toys.rotary(5, 4, **layout)}
    return as_given(toys.pass_of(toys.checked(**rotations)))


ADAPTERS = {
    **{name: lambda name=name: (toys.traced(name), plain_call(name)[1])
       for name in (*FAMILIES, "EncoderDecoder", *FRAMES)},
    "by hand": by_reader,
    "nn.Transformer": by_torch,
    "tensors": lambda: as_given(pass_of_tensors(FULL)),
    "rotated halves": rotated,
    "rotated neighbours": lambda: rotated(interleaved=True),
    **{f"library, {positions}": partial(by_library, positions)
       for positions in POSITIONS},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTERS)
def test_scores_make_the_models_attention(name):
    trace, expected = ADAPTERS[name]()
    for caught, theirs in zip(trace.attentions, expected, strict=True):
        allowed = trace.allowed(caught)
        for head in range(caught.heads):
            attention, weights = trace.softmax(caught, head), theirs[:, head][allowed]
            torch.testing.assert_close(caught.weights[:, head][allowed], weights)
            torch.testing.assert_close(attention[allowed], weights, rtol=0, atol=1e-5)
            assert not attention[~allowed].any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTERS)
def test_nine_terms_with_the_position_bias_make_the_scores(name):
    trace, _ = ADAPTERS[name]()
    parts = {
        site: Components(states.shape[-1], n_tokens=64, n_positions=10)
        .update(states, trace.tokens(side), trace.mask(side))
        .split(states, trace.tokens(side), trace.mask(side))
        for site, (side, states) in trace.sites().items()
    }
    for caught in trace.attentions:
        allowed = trace.allowed(caught)
        for head in range(caught.heads):
            terms = toys.terms_of(caught, head, parts[caught.query_site], parts[caught.key_site])
            assert terms.shape == (3, 3, *allowed.shape)
            total = terms.sum((0, 1))
            if caught.position_bias is not None:
                total = total + caught.position_bias[:, head]
            scores = caught.scores[:, head][allowed]
            assert (total[allowed] - scores).abs().max() <= 1e-5 * scores.abs().max(), caught.name
            assert scores.std() > 0.05


def hooks_on(model):
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


@pytest.mark.parametrize("name", ["T5", "by hand", "nn.Transformer"])
def test_the_model_is_left_as_it_was(name, monkeypatch):
    adapter = toys.adapter_of(name)
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


@pytest.mark.parametrize("name", ["T5", "Bart", "by hand", "nn.Transformer"])
def test_padding_at_the_left_gives_the_same_pass(name):
    masks = {side: F.pad(getattr(BATCH, f"{side}_mask"), (0, 1)) for side in SIDES}
    moved = {f"{side}_mask": toys.padded_in_front(masks[side], masks, **{side: 1}) for side in SIDES}
    for side in SIDES:
        moved[side] = toys.padded_in_front(F.pad(getattr(BATCH, side), (0, 1)), masks, **{side: 1})
    toys.assert_same_pass(toys.adapter_of(name).trace(TokenBatch(**moved)), toys.traced(name))


@pytest.mark.parametrize("at_padding", [-100, 10**6])
@pytest.mark.parametrize("name", ["T5", "Bart", "MBart", "M2M100"])
def test_what_stands_at_padding_does_not_matter(name, at_padding):
    padded = {
        side: getattr(BATCH, side).masked_fill(~getattr(BATCH, f"{side}_mask"), at_padding) for side in SIDES
    }
    adapter = toys.adapter_of(name)
    toys.assert_same_pass(adapter.trace(replace(BATCH, **padded)), toys.traced(name))
    trace = adapter.trace(replace(BATCH, read=BATCH.target))
    toys.assert_same_pass(adapter.trace(replace(BATCH, **padded, read=padded["target"])), trace)
    soiled = {
        field: getattr(trace, field).masked_fill(~trace.mask(field[:6]), at_padding)
        for field in ("source_tokens", "target_tokens", "target_outputs")
    }
    assert torch.equal(probe_of(adapter, replace(trace, **soiled)), probe_of(adapter, trace))


def alone_in_family(model, trace, place):
    outputs = pytest.importorskip("transformers").modeling_outputs
    states = model.get_encoder()(
        trace.source_tokens, attention_mask=trace.source_mask.long()
    ).last_hidden_state
    encoded = outputs.BaseModelOutput(states[:, place, None])
    return model(encoder_outputs=encoded, decoder_input_ids=trace.target_tokens).logits


def alone_by_hand(model, trace, place):
    """Without an encoder, to see one word is to be given one word."""
    word = trace.source_tokens[:, place, None]
    return model(word, torch.ones_like(word, dtype=torch.bool), trace.target_tokens)


def alone_in_torch(model, trace, place):
    inner, steps = model.transformer, trace.target_tokens.shape[1]
    memory = inner.encoder(model.words(trace.source_tokens), src_key_padding_mask=~trace.source_mask)
    later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    return model.out(inner.decoder(model.words(trace.target_tokens), memory[:, place, None], tgt_mask=later))


PROBES = dict.fromkeys(("T5", "Bart", "Marian"), alone_in_family)
PROBES |= {"by hand": alone_by_hand, "nn.Transformer": alone_in_torch}


def probe_of(adapter, trace):
    return (
        adapter.lexical_probe(trace) if isinstance(adapter, Modules) else lexical_probe(adapter.model, trace)
    )


@pytest.mark.parametrize("name", PROBES)
def test_the_probe_of_a_position_is_what_is_said_with_all_others_cut_away(name):
    trace, adapter = toys.traced(name), toys.adapter_of(name)
    beta, valid = (probe_of(adapter, trace), trace.target_mask[:, :, None] & trace.source_mask[:, None, :])
    assert adapter.model.training == isinstance(adapter, Modules)
    for place in range(trace.source_tokens.shape[1]):
        probability = PROBES[name](adapter.model.eval(), trace, place).softmax(-1)
        expected = probability.gather(-1, trace.target_outputs[..., None])[..., 0] * valid[:, :, place]
        torch.testing.assert_close(beta[:, :, place], expected.detach(), atol=1e-6, rtol=1e-4)
    assert not beta[~valid].any()
    assert beta.std(-1)[trace.target_mask].min() > 0


# Any module by the names of its modules.


ALIKE = {form: "by hand" for form in (*toys.FUNCTIONS, "scaled_dot_product")}  # with nn.Softmax
ALIKE["nn.Transformer, length first"] = "nn.Transformer"


@pytest.mark.signatures
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("name", ALIKE)
def test_the_same_weights_in_another_form_are_caught_alike(name):
    """By functions instead of a module, with other kernels; with the length first, as torch has it."""
    adapter, expected = toys.adapter_of(name), toys.traced(ALIKE[name])
    trace = adapter.trace(BATCH)
    for mine, theirs in zip(trace.attentions, expected.attentions, strict=True):
        valid = expected.allowed(theirs)[:, None].expand_as(theirs.weights)
        torch.testing.assert_close(mine.weights[valid], theirs.weights[valid])
        torch.testing.assert_close(mine.scores[valid], theirs.scores[valid])


@pytest.mark.signatures
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("name", ALIKE)
def test_the_same_weights_in_another_form_are_forced_alike(name):
    adapter, expected = toys.adapter_of(name), toys.traced(ALIKE[name])
    trace = adapter.trace(BATCH)
    beta = toys.adapter_of(ALIKE[name]).lexical_probe(expected)
    torch.testing.assert_close(adapter.lexical_probe(trace), beta, rtol=1e-5, atol=1e-7)


@pytest.mark.signatures
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("name", ALIKE)
def test_another_form_with_a_wrong_scale_is_refused(name):
    adapter = toys.adapter_of(name)
    adapter.hooked = tuple(replace(hooked, scale=0.6) for hooked in adapter.hooked)
    assert_refused(partial(adapter.trace, BATCH), "attention from the caught projections differs")


CALLS = (
    lambda attend, asks, keys, pad: attend(asks, keys, keys, key_padding_mask=pad),
    lambda attend, asks, keys, pad: attend(asks, keys, keys, pad, False),
    lambda attend, asks, keys, pad: attend(query=asks, key=keys, value=keys, key_padding_mask=pad),
)


@pytest.mark.parametrize("width", [8, 6])
def test_arguments_by_name_give_what_those_by_place_give(width):
    attend = nn.MultiheadAttention(8, 2, kdim=width, vdim=width, batch_first=True)
    words = {"words": nn.Embedding(50, 8), "others": nn.Embedding(50, width)}
    model, attentions = toys.drawn(nn.ModuleDict(words | {"attend": attend})), []
    for call in CALLS:

        def run(model, batch, call=call):
            words, keys = model["words"](batch.read), model["others"](batch.source)
            return call(model["attend"], words, keys, ~batch.source_mask)

        attentions += Modules(model, [Hooked("attend", "attend")], run, start=2).trace(BATCH).attentions
    assert {attention.key_inputs.shape[-1] for attention in attentions} == {
        width
    }  # and the scores were checked
    assert torch.equal(attentions[0].weights, attentions[1].weights)
    assert torch.equal(attentions[0].weights, attentions[2].weights)


@pytest.mark.signatures
def test_logits_may_come_in_an_object_or_first_in_a_tuple():
    model, probes = toys.adapter_of("by hand").model, []
    for wrap in (
        lambda given: given,
        lambda given: (given, None),
        lambda given: SimpleNamespace(logits=given),
    ):
        adapter = Modules(model, [HOOKED], lambda *given, wrap=wrap: wrap(run(*given)), start=2)
        probes.append(adapter.lexical_probe(adapter.trace(BATCH)))
    assert torch.equal(probes[0], probes[1])
    assert torch.equal(probes[0], probes[2])


@pytest.mark.signatures
def test_logits_of_modules_are_those_of_a_plain_call():
    adapter = toys.adapter_of("by hand")
    trace = adapter.trace(BATCH)
    with torch.no_grad():
        model = adapter.model.eval()
        expected = model(BATCH.source, BATCH.source_mask, trace.target_tokens, BATCH.target_mask)
    assert torch.equal(adapter.logits(trace), expected)


# Models of Hugging Face.


@pytest.mark.parametrize(("name", "read"), toys.SIZES["reads"].items())
def test_the_decoder_reads_the_target_one_step_later(name, read):
    batch, model = TokenBatch.of_rows([[7, 8], [9]], [[5, 6, 40], [9, 40]]), toys.adapter_of(name)
    trace = model.trace(batch)
    assert torch.equal(trace.target_outputs, batch.target)
    assert trace.target_tokens[batch.target_mask].equal(torch.tensor(read)[batch.target_mask])
    assert torch.equal(model.trace(replace(batch, read=batch.target)).target_tokens, batch.target)


def test_a_decoder_that_does_not_say_what_it_starts_with_takes_what_is_read():
    adapter = HuggingFace(toys.model_of("M2M100", decoder_start_token_id=None))
    assert torch.equal(adapter.trace(replace(BATCH, read=BATCH.target)).target_tokens, BATCH.target)


def test_ignored_tokens_are_seen_by_the_model():
    special = [int(BATCH.source[0, 1]), int(BATCH.target[3, 2])]
    trace = HuggingFace(toys.model_of("T5"), kinds=KINDS, ignored=special).trace(BATCH)
    toys.assert_same_pass(trace, toys.traced("T5"))


def test_ignored_tokens_are_not_counted():
    special = [int(BATCH.source[0, 1]), int(BATCH.target[3, 2])]
    trace = HuggingFace(toys.model_of("T5"), kinds=KINDS, ignored=special).trace(BATCH)
    for side in SIDES:
        tokens, counted = trace.tokens(side), trace.counted(side)
        expected = trace.mask(side) & (tokens != special[0]) & (tokens != special[1])
        assert torch.equal(counted, expected)
        assert torch.equal(toys.traced("T5").counted(side), trace.mask(side))
    assert not trace.counted("source")[0, 1]
    assert not trace.counted("target")[3, 3]  # read one step after it is predicted


def test_only_the_layers_asked_for_are_caught():
    trace = HuggingFace(toys.model_of("T5"), kinds=("cross", "decoder_self"), layers=[1]).trace(BATCH)
    expected = {attention.name: attention for attention in toys.traced("T5").attentions}
    assert [attention.name for attention in trace.attentions] == ["decoder_self.1", "cross.1"]
    for attention in trace.attentions:
        assert torch.equal(attention.scores, expected[attention.name].scores)
    assert set(trace.sites()) == {"decoder.1.self", "decoder.1.cross", "encoder"}


@pytest.mark.parametrize("name", ["Bart", "MBart", "Marian", "Pegasus"])
def test_all_positions_that_a_model_has_are_used(name):
    batch = TokenBatch.of_rows([[5] * 32], [[6] * 32])
    trace = HuggingFace(toys.model_of(name)).trace(batch)
    assert trace.attentions[0].scores.shape == (1, 4, 32, 32)


@pytest.mark.parametrize("name", ["T5", "M2M100"])
def test_computed_positions_have_no_end(name):
    batch = TokenBatch.of_rows([[5] * 50], [[6] * 40])
    trace = HuggingFace(toys.model_of(name)).trace(batch)
    assert trace.attentions[0].scores.shape == (1, 4, 40, 50)


SAMPLES, LENGTH = 32, 64
LARGE = TokenBatch.of_rows(*[toys.rows_of([LENGTH] * SAMPLES, 0)] * 2)


def held(trace):
    """Bytes of all storages that a pass keeps alive, its scores computed; projections' weights left out."""
    storages = {}
    for attended in trace.attentions:
        _ = attended.scores
        for value in vars(attended).values():
            if isinstance(value, torch.Tensor):
                storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


@pytest.mark.slow
def test_the_estimate_is_what_is_held():
    """It counts the encoder's states once a layer, though layers share them: so it is an upper bound."""
    model = toys.model_of("T5", d_model=64, num_layers=6, num_heads=16)
    four = HuggingFace(model, layers=[0, 2, 3, 5])
    estimate, size = four.pass_bytes(SAMPLES, LENGTH, LENGTH), held(four.trace(LARGE))
    assert size <= estimate <= 1.1 * size
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH, every_layer=True) == 1.5 * estimate
    assert held(HuggingFace(model).trace(LARGE)) > 1.4 * size


def test_logits_are_made_of_one_step():
    """Those of a batch and 250,000 words would take 2 GB, whatever is caught."""
    model, made = toys.model_of("T5", num_layers=1), []
    model.lm_head.register_forward_hook(lambda _, given, logits: made.append(tuple(logits.shape)))
    trace = HuggingFace(model).trace(LARGE)
    assert made == [(SAMPLES, 1, 50)]
    assert trace.target_tokens.shape == (SAMPLES, LENGTH)


def test_tables_of_all_words_are_what_is_said():
    adapter = HuggingFace(toys.model_of("T5"), kinds=("cross", "encoder_self"))
    tokens = torch.arange(50)[:, None].expand(50, 4)
    tables = [
        Components(width).update(torch.zeros(50, 4, width), tokens, tokens >= 0).nbytes
        for width in (states.shape[-1] for _, states in adapter.trace(LARGE).sites().values())
    ]
    assert len(tables) == 5  # the encoder's last states are read by both cross-attentions
    assert sum(tables) == adapter.table_bytes(4)


# Encoders of pictures and sound: the source has positions and no words.


@pytest.mark.parametrize("name", FRAMES)
def test_frames_have_the_positions_that_the_encoder_leaves(name):
    adapter = toys.adapter_of(name)
    trace = adapter.trace(toys.frames_batch(name))
    lengths = {"Whisper": [10] * 5, "Speech2Text": [8, 8, 6, 8, 4]}.get(name, [5] * 5)
    assert trace.source_mask.sum(1).tolist() == lengths


@pytest.mark.parametrize("name", FRAMES)
def test_every_attention_to_frames_has_its_name(name):
    adapter = toys.adapter_of(name)
    trace = adapter.trace(toys.frames_batch(name))
    assert len(trace.attentions) == len({attention.name for attention in trace.attentions}) >= 5


@pytest.mark.parametrize("name", FRAMES)
def test_predictions_from_frames_are_those_of_a_plain_call(name):
    adapter = toys.adapter_of(name)
    trace = adapter.trace(toys.frames_batch(name))
    logits = plain_call(name)[0].logits
    torch.testing.assert_close(adapter.logits(trace)[trace.target_mask], logits[trace.target_mask])


@pytest.mark.parametrize("plain", [toys.frames_batch("Speech2Text"), BATCH], ids=["frames", "tokens"])
def test_batches_may_come_in_any_array_or_list(plain):
    """As processors make them: short integers, and masks as zeros and ones."""
    tensors = {name: tensor for name, tensor in vars(plain).items() if isinstance(tensor, torch.Tensor)}
    made = {name: tensor.numpy() for name, tensor in tensors.items()} | {"target": plain.target.tolist()}
    made |= {name: mask.astype(np.int32) for name, mask in made.items() if name.endswith("mask")}
    if "source" in made:
        made["source"] = made["source"].astype(np.int16)
    again = type(plain)(**made)
    for name, tensor in tensors.items():
        assert torch.equal(getattr(again, name), tensor), name
        assert getattr(again, name).dtype == tensor.dtype, name
    assert again.read is None


def test_one_thing_need_not_be_in_a_list():
    """A kind, a layer, an id that is ignored, a module, a head."""
    alone, listed = (
        HuggingFace(toys.model_of("Bart"), kinds=kinds, layers=layers, ignored=ignored)
        for kinds, layers, ignored in (("encoder_self", 1, 5), (["encoder_self"], [1], [5]))
    )
    toys.assert_same_pass(alone.trace(BATCH), listed.trace(BATCH))
    reader = toys.drawn(toys.Reader())
    toys.assert_same_pass(Modules(reader, HOOKED, run, start=2).trace(BATCH), toys.traced("by hand"))
    stream = zoo.load("reordering").stream(kinds="decoder_self")
    assert {(row["kind"], row["head"]) for row in analyse(stream, heads=1).heads} == {("decoder_self", 1)}


def test_ids_of_frames_are_never_among_the_ignored():
    trace = toys.whisper(ignored=[0, 1, 3]).trace(toys.frames_batch("Whisper"))
    assert trace.source_tokens.unique().tolist() == [2]
    assert bool(trace.counted("source").all())
