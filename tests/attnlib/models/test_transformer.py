"""The Transformer: against torch's own layers, one attention by hand, and what each step may see."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from attnlib.errors import BadInput
from attnlib.models.encoder_decoder import sinusoidal_positions
from attnlib.models.multi_head_attention import MultiHeadAttention, RelativeAttention, TransformerConfig
from attnlib.models.search import beam_search
from attnlib.models.transformer import Transformer
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import BOS, EOS, PAD

SMALL = TransformerConfig(source_size=9, target_size=8, width=12, heads=3, layers=2, hidden=20)
CORPUS = Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5, 6, 7]])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch_of(*samples):
    return collate(CORPUS, np.array(samples or (0, 1, 2)))


def model_of(seed=0, **changes):
    """In double precision, and with norms that differ, so that a wrong one would show."""
    model, draw = (
        Transformer(replace(SMALL, **changes), generator(seed)).double().eval(),
        generator(seed + 100),
    )
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5, generator=draw)
                module.bias.normal_(generator=draw)
            elif isinstance(module, RelativeAttention):
                module.distance_bias.normal_(generator=draw)
    return model.requires_grad_(False)


# Against torch.


def torchs_state(attention, name):
    three = [attention.query_map, attention.key_map, attention.value_map]
    return {
        f"{name}.in_proj_weight": torch.cat([one.weight for one in three]),
        f"{name}.in_proj_bias": torch.cat([one.bias for one in three]),
        f"{name}.out_proj.weight": attention.output_map.weight,
        f"{name}.out_proj.bias": attention.output_map.bias,
    }


def torchs_stack(kind, stack, norms):
    """torch's encoder or decoder with the weights of ours: every weight of either has its place."""
    with torch.device("meta"):
        sizes = {"dim_feedforward": SMALL.hidden, "dropout": 0.0, "batch_first": True, "norm_first": True}
        one = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}[kind](
            SMALL.width, SMALL.heads, **sizes
        )
        layers = (
            nn.TransformerEncoder(one, SMALL.layers, enable_nested_tensor=False)
            if kind == "encoder"
            else nn.TransformerDecoder(one, SMALL.layers)
        )
    layers = layers.double().to_empty(device="cpu").eval()
    for theirs, ours in zip(layers.layers, stack, strict=True):
        state = torchs_state(ours.self_attention, "self_attn")
        if kind == "decoder":
            state |= torchs_state(ours.cross_attention, "multihead_attn")
        named = {"linear1": ours.feed_forward.widen, "linear2": ours.feed_forward.narrow}
        named |= {f"norm{number}": getattr(ours, norm) for number, norm in enumerate(norms, 1)}
        for name, module in named.items():
            state |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        theirs.load_state_dict(state)
        assert sum(value.numel() for value in state.values()) == sum(p.numel() for p in ours.parameters())
    return layers


def test_the_network_is_that_of_torchs_layers():
    model, batch = model_of(), batch_of()
    encoder = torchs_stack("encoder", model.encoder, ["self_norm", "feed_norm"])
    decoder = torchs_stack("decoder", model.decoder, ["self_norm", "cross_norm", "feed_norm"])
    source, target = (
        embedding(words) + sinusoidal_positions(words.shape[1], SMALL.width)
        for embedding, words in (
            (model.embedding_source, batch.source),
            (model.embedding_target, batch.target_input),
        )
    )
    memory = model.encoder_norm(encoder(source, src_key_padding_mask=~batch.source_mask))
    steps = batch.target_mask.shape[1]
    states = decoder(
        target,
        memory,
        tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~batch.target_mask,
        memory_key_padding_mask=~batch.source_mask,
    )
    logits, trace = model.readout(model.decoder_norm(states)), model(batch)
    torch.testing.assert_close(trace.encoder_states[batch.source_mask], memory[batch.source_mask])
    torch.testing.assert_close(trace.logits[batch.target_mask], logits[batch.target_mask])


def test_one_attention_by_hand():
    # Two heads of width 1. The values are four times the inputs, the output map swaps the heads. A query of
    # log 3 gives 3 times the weight to a key that is greater by 1.
    attention = MultiHeadAttention(TransformerConfig(5, 5, width=2, heads=2))
    with torch.no_grad():
        for module in attention.children():
            module.weight.copy_(torch.eye(2))
            module.bias.zero_()
        attention.value_map.weight.mul_(4)
        attention.output_map.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    keys = torch.tensor([[[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]]])
    queries = torch.tensor([[[0.0, math.log(3)], [math.log(3), 0.0]]])
    seen = torch.tensor([[[True, True, False]]])
    output, attended = attention(queries, attention.answer(keys), seen)
    expected = torch.tensor([[[0.5, 0.5, 0], [0.25, 0.75, 0]], [[0.25, 0.75, 0], [0.5, 0.5, 0]]])
    torch.testing.assert_close(attended.attention, expected[None])
    torch.testing.assert_close(output, torch.tensor([[[3.0, 2.0], [2.0, 3.0]]]))


# What a step depends on.


def test_a_later_target_word_changes_no_earlier_logits():
    model, batch = model_of(), batch_of()
    before = model(batch).logits
    for step in range(1, batch.target_input.shape[1]):
        words = batch.target_input.clone()
        words[:, step] = 4 + (words[:, step] + 1) % 4
        after = model(replace(batch, target_input=words)).logits
        assert torch.equal(after[:, :step], before[:, :step])
        read = batch.target_mask[:, step]
        assert (after[read, step] != before[read, step]).any(dim=-1).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_a_sample_alone_and_padded_in_a_batch_has_the_same_logits(positions):
    model, together = model_of(positions=positions), batch_of()
    padded = model(together)
    # Whatever word stands at padding.
    fill = replace(
        together,
        source=together.source.masked_fill(~together.source_mask, 5),
        target_input=together.target_input.masked_fill(~together.target_mask, 6),
    )
    filled = model(fill)
    for sample in range(3):
        alone, one = model(batch_of(sample)), batch_of(sample)
        words, steps = one.source.shape[1], one.target_input.shape[1]
        for trace in (padded, filled):
            torch.testing.assert_close(trace.logits[sample, :steps], alone.logits[0])
            found = trace.cross[1][0].attention[sample, :steps, :words]
            torch.testing.assert_close(found, alone.cross[1][0].attention[0])


def test_the_order_of_the_source_is_known_from_positions_alone():
    source, mask = torch.tensor([[4, 5, 6, EOS]]), torch.ones(1, 4, dtype=torch.bool)
    turned = source[:, [2, 0, 1, 3]]
    for positions, same in (("none", True), ("sinusoidal", False), ("learned", False)):
        model = model_of(positions=positions)
        states, _ = model.encode(source, mask)
        states_turned, _ = model.encode(turned, mask)
        assert torch.allclose(states[:, [2, 0, 1, 3]], states_turned) == same


# Writing.


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_word_by_word_gives_the_logits_of_the_teacher_forced_pass(positions):
    model, batch = model_of(positions=positions), batch_of()
    logits, prefix = model(batch).logits, model.begin(batch.source, batch.source_mask)
    for step, words in enumerate(batch.target_input.T):
        found, prefix = model.write(words, prefix)
        read = batch.target_mask[:, step]
        torch.testing.assert_close(found[read], logits[read, step])


def test_a_beams_probability_is_that_of_its_words():
    # The states of the beams are reordered at every step: a state that is not would give another number.
    model, batch = model_of(), batch_of()
    written = beam_search(model, batch.source, batch.source_mask, 5, beams=4)
    for beam in range(4):
        words = written.words[:, beam]
        read = torch.cat([torch.full((3, 1), BOS), words[:, :-1]], dim=1)
        pass_ = model(replace(batch, target_input=read, target_output=words, target_mask=words != PAD))
        logits = pass_.logits.clone()
        logits[..., [PAD, BOS]] = -torch.inf
        says = logits.log_softmax(-1).gather(2, words[..., None])[..., 0]
        total = says.masked_fill(words == PAD, 0).sum(1)
        torch.testing.assert_close(written.log_probability[:, beam], total.to(written.log_probability))


# Building.


def test_parameters_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (Transformer(SMALL, generator(seed)) for seed in (0, 0, 1))
    first(batch_of())
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(name))
        assert "norm" in name or not torch.equal(value, other.get_parameter(name))


def test_the_scale_of_what_is_drawn():
    config = TransformerConfig(60, 50, width=64, heads=4, layers=1, positions="learned", embedding_scale=0.3)
    model = Transformer(config, generator())
    for embedding in (model.embedding_source, model.positions_target):
        assert embedding.weight.std().item() == pytest.approx(0.3, rel=0.05)
    assert model.encoder[0].feed_forward.narrow.weight.abs().max().item() == pytest.approx(
        256**-0.5, rel=0.01
    )
    assert torch.equal(model.decoder[0].cross_norm.weight, torch.ones(64))
    assert torch.equal(model.decoder_norm.bias, torch.zeros(64))


def test_every_parameter_but_the_keys_bias_has_a_gradient():
    model, batch = model_of(positions="learned").requires_grad_(), batch_of()
    logits = model(batch).logits[batch.target_mask]
    nn.functional.cross_entropy(logits, batch.target_output[batch.target_mask]).backward()
    for name, value in model.named_parameters():
        largest = value.grad.abs().max().item()
        assert largest < 1e-15 if name.endswith("key_map.bias") else largest > 1e-6, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 5}, "width is 12, which 5 heads do not divide; take a multiple such as 15"),
        ({"width": 9}, "width is 9; sinusoidal positions need an even one"),
        ({"layers": 0}, "layers is 0"),
        ({"hidden": 0}, "hidden is 0"),
        ({"embedding_scale": 0.0}, "embedding_scale is 0.0"),
        ({"positions": "sinusoid"}, "did you mean 'sinusoidal'"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        replace(SMALL, **changes)


def test_the_hidden_layer_is_four_times_as_wide_and_odd_widths_do_without_sines():
    assert TransformerConfig(9, 8, width=12).hidden_width == 48
    assert SMALL.hidden_width == 20
    assert replace(SMALL, width=9, positions="none").head_width == 3


def test_what_cannot_be_read_is_refused():
    batch = batch_of()
    with pytest.raises(BadInput, match=r"source rows \[1\] begin with padding"):
        model_of()(replace(batch, source_mask=batch.source_mask & torch.tensor([[True], [False], [True]])))
    with pytest.raises(BadInput, match=r"target rows \[0, 2\] begin with padding"):
        model_of()(replace(batch, target_mask=batch.target_mask & torch.tensor([[False], [True], [False]])))
    long = torch.full((1, 129), 5)
    with pytest.raises(BadInput, match="position 128 is beyond the 128 rows"):
        model_of(positions="learned").begin(long, long == 5)
