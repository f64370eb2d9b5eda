"""What holds for every network of the family: masks, causality, symmetries of the architectures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import (
    TABLE_ROWS,
    EncoderDecoder,
    shuffled_positions,
    sinusoidal_positions,
)
from attnlib.training.corpus import Batch, Corpus, collate

KINDS = [("VED", "gru"), ("AED", "gru"), ("AED", "lstm"), ("AED", "vanilla"), ("AED", "ugrnn"), ("AO", "gru")]
WITH_ATTENTION = [kind for kind in KINDS if kind[0] != "VED"]


def model_of(architecture: str, cell: str, seed: int = 0) -> EncoderDecoder:
    config = ModelConfig(architecture, source_size=9, target_size=8, cell=cell, width=6)
    return EncoderDecoder(config, torch.Generator().manual_seed(seed)).double()


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5, 6, 7]])


@pytest.fixture
def batch(corpus) -> Batch:
    return collate(corpus, np.arange(3))


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_loop_and_fused_give_the_same_trace(architecture, cell, batch):
    model = model_of(architecture, cell)
    fused, loop = model(batch), model(batch, implementation="loop")
    torch.testing.assert_close(loop.logits, fused.logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_padding_and_company_do_not_change_a_sample(architecture, cell, corpus, batch):
    model = model_of(architecture, cell)
    together = model(batch)
    for i in range(len(corpus)):
        alone = model(collate(corpus, [i]))
        rows, columns = int(alone.target_mask.sum()), int(alone.source_mask.sum())
        torch.testing.assert_close(together.logits[i, :rows], alone.logits[0])
        torch.testing.assert_close(together.encoder_states[i, :columns], alone.encoder_states[0])


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_a_prediction_does_not_see_later_target_words(architecture, cell, corpus):
    model = model_of(architecture, cell)
    other = Corpus.from_ids([corpus.source(1)], [[6, 7, 5, 6]])  # differs from the third word on
    first, second = model(collate(corpus, [1])), model(collate(other, [0]))
    torch.testing.assert_close(first.logits[0, :3], second.logits[0, :3], rtol=0, atol=0)
    assert not torch.allclose(first.logits[0, 3], second.logits[0, 3])


@pytest.mark.parametrize(("architecture", "cell"), WITH_ATTENTION)
def test_attention_is_the_softmax_of_dot_products_and_the_context_its_mean(architecture, cell, batch):
    trace = model_of(architecture, cell)(batch)
    for i in range(3):
        columns = int(trace.source_mask[i].sum())
        encoder_states = trace.encoder_states[i, :columns]
        for s in range(trace.decoder_states.shape[1]):
            scores = torch.stack([trace.decoder_states[i, s] @ state for state in encoder_states])
            torch.testing.assert_close(trace.scores[i, s, :columns], scores)
            torch.testing.assert_close(trace.attention[i, s, :columns], scores.softmax(0))
            torch.testing.assert_close(trace.context[i, s], scores.softmax(0) @ encoder_states)
    assert torch.all(trace.attention[~trace.source_mask[:, None, :].expand_as(trace.attention)] == 0)


def test_attention_without_feedback_leaves_decoder_states_to_the_recurrence(batch):
    """AED's decoder states are VED's: the context never enters the recurrence."""
    with_attention, without = model_of("AED", "gru"), model_of("VED", "gru")
    shared = {name: value for name, value in with_attention.state_dict().items() if "readout" not in name}
    without.load_state_dict(shared, strict=False)
    assert torch.equal(with_attention(batch).decoder_states, without(batch).decoder_states)
    assert without(batch).attention is None


def test_attention_only_knows_order_from_positions_alone(batch):
    config = ModelConfig("AO", source_size=9, target_size=8, width=6, positions="none")
    model = EncoderDecoder(config, torch.Generator().manual_seed(0)).double()
    turned = replace(batch, source=batch.source.flip(1), source_mask=batch.source_mask.flip(1))
    torch.testing.assert_close(model(turned).logits, model(batch).logits)
    assert not torch.allclose(model_of("AO", "gru")(turned).logits, model_of("AO", "gru")(batch).logits)


def test_parameters_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = model_of("AED", "gru", 1), model_of("AED", "gru", 1), model_of("AED", "gru", 2)
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
        assert not torch.equal(value, other.state_dict()[name])


def test_sinusoidal_positions_by_their_formula():
    table = sinusoidal_positions(7, 6)
    for t in range(7):
        for i in range(3):
            angle = t / 10_000 ** (2 * i / 6)
            assert table[t, 2 * i].item() == pytest.approx(np.sin(angle), abs=1e-6)
            assert table[t, 2 * i + 1].item() == pytest.approx(np.cos(angle), abs=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "shuffled"])
def test_a_later_first_position_is_the_end_of_a_longer_sentence(positions):
    config = ModelConfig("AO", source_size=9, target_size=8, width=6, positions=positions)
    model = EncoderDecoder(config, torch.Generator().manual_seed(0))
    inputs = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(1))
    whole, _ = model.encode_inputs(inputs)
    end, _ = model.encode_inputs(inputs[:, 2:], first_position=2)
    torch.testing.assert_close(end, whole[:, 2:])
    assert not torch.allclose(model.encode_inputs(inputs[:, 2:])[0], end)


def test_shuffled_codes_are_the_same_codes_in_another_order():
    shuffled, plain = shuffled_positions(TABLE_ROWS, 6), sinusoidal_positions(TABLE_ROWS, 6)
    assert sorted(map(tuple, shuffled.tolist())) == sorted(map(tuple, plain.tolist()))
    assert not torch.equal(shuffled, plain)


def test_what_an_architecture_does_not_have_is_refused(batch):
    inputs = torch.zeros(1, 3, 6)
    with pytest.raises(BadInput, match="shift it with first_position"):
        model_of("AO", "gru").encode_inputs(inputs.double(), initial=torch.zeros(1, 6))
    with pytest.raises(BadInput, match="0 for a recurrent network"):
        model_of("AED", "gru").encode_inputs(inputs.double(), first_position=1)
    config = ModelConfig("AO", source_size=9, target_size=8, width=6, positions="learned")
    model = EncoderDecoder(config, torch.Generator().manual_seed(0))
    with pytest.raises(BadInput, match="position 128 is beyond the 128 rows"):
        model.encode_inputs(inputs, first_position=126)


@pytest.mark.parametrize(("architecture", "cell"), WITH_ATTENTION)
def test_attending_from_its_own_states_is_the_forward_pass(architecture, cell, batch):
    model = model_of(architecture, cell)
    trace = model(batch)
    again = model.attend(batch, trace.encoder_states, trace.decoder_states)
    assert torch.equal(again.logits, trace.logits)


def test_dot_scores_by_hand():
    queries, keys = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [-1.0, 0.0]]])
    assert dot_scores(queries, keys).tolist() == [[[11.0, -1.0]]]


def test_a_source_of_padding_alone_is_refused():
    with pytest.raises(BadInput, match=r"rows \[1\] are all padding"):
        masked_softmax(torch.zeros(2, 1, 2), torch.tensor([[True, False], [False, False]]))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"architecture": "AEDD"}, UnknownName, "did you mean 'AED'"),
        ({"cell": "gruu"}, UnknownName, "did you mean 'gru'"),
        ({"width": 0}, BadInput, "width is 0"),
        ({"embedding_scale": 0.0}, BadInput, "embedding_scale is 0.0"),
        ({"width": 5, "architecture": "AO"}, BadInput, "width 5 is odd"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        ModelConfig(**{"architecture": "AED", "source_size": 9, "target_size": 9} | wrong)
