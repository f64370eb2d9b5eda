"""One trace of every kind of model: what it gives, what it refuses, and its former names."""

from dataclasses import replace

import pytest
import torch

import attnlib
from attnlib.adapters import Attended, encoder_decoder_pass
from attnlib.errors import BadInput
from attnlib.linear_map import LinearMap
from attnlib.models import transformer
from attnlib.trace import Attention, Trace
from tests.attnlib.models import model_builders as nets

BATCH = nets.batch_of()
IDS = torch.tensor([[5, 6]])
STATES = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
WORDS = {
    "source_tokens": IDS, "source_mask": IDS > 0, "target_tokens": IDS, "target_outputs": IDS,
    "target_mask": IDS > 0,
}  # fmt: skip


def attention_of(**changes):
    alike = LinearMap.none(STATES)
    given = {"query_inputs": STATES, "key_inputs": STATES, "maps": (alike, alike)}
    return Attention("cross", 0, **given | changes)


NETWORKS = {
    "AED": lambda: nets.encoder_decoder("AED gru")(BATCH),
    "bahdanau, dot": lambda: nets.sequence_network("bahdanau_dot")(BATCH),
    "Transformer": lambda: nets.transformer()(BATCH),
    "rotary": lambda: nets.transformer(positions="rotary")(BATCH),
    "relative": lambda: nets.transformer(positions="relative")(BATCH),
    "translator": lambda: nets.translator()(BATCH),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_maps_of_a_network_make_the_scores_that_it_computed(name):
    for attention in NETWORKS[name]().attentions:
        torch.testing.assert_close(attention.from_maps().scores, attention.model_scores)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_trace_of_a_network_is_valid(name):
    with torch.no_grad():
        NETWORKS[name]().validated()


@pytest.mark.signatures
def test_a_trace_is_validated_once():
    trace = nets.transformer()(BATCH).validated()
    assert trace.validated() is trace


def test_a_changed_trace_is_validated_again():
    trace = Trace(**WORDS, attentions=(attention_of(),)).validated()
    spoilt = replace(trace, target_outputs=IDS - 6)
    with pytest.raises(BadInput, match="target_outputs hold -1"):
        spoilt.validated()


def test_maps_are_not_made_before_they_are_asked_for():
    def maps():
        raise AssertionError

    scores = torch.zeros(1, 1, 2, 2)
    trace = Trace(**WORDS, attentions=(attention_of(maps=maps, model_scores=scores, weights=scores),))
    assert torch.equal(trace.scores, scores[:, 0])
    assert trace.attentions[0].heads == 1


@pytest.mark.signatures
def test_additive_scores_are_kept():
    trace = nets.sequence_network("bahdanau")(BATCH)
    assert trace.scores.shape == trace.attention.shape


def test_additive_scores_have_no_terms():
    trace = nets.sequence_network("bahdanau")(BATCH)
    with pytest.raises(BadInput, match="no projections and no nine alignment terms"):
        _ = trace.attentions[0].queries


def test_one_of_several_heads_has_to_be_chosen():
    with pytest.raises(BadInput, match=r"trace.head\('encoder_self', 0, 0\)"):
        _ = nets.transformer()(BATCH).attention


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match=r"head is 3; those of cross\.1 go from 0 to 2"):
        nets.transformer()(BATCH).head("cross", 1, 3)


def test_a_layer_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match=r"there is no attention cross\.7"):
        nets.transformer()(BATCH).head("cross", 7, 0)


def test_a_network_without_attention_has_none():
    trace = nets.encoder_decoder("VED")(BATCH)
    assert trace.attentions == ()
    assert trace.attention is None


@pytest.mark.signatures
def test_general_scores_can_be_analysed():
    network = nets.sequence_network("luong")
    assert encoder_decoder_pass(network, BATCH).attentions[0].has_maps


# Former names.


def test_a_model_pass_is_a_trace():
    with pytest.warns(DeprecationWarning, match="ModelPass is deprecated"):
        model_pass = attnlib.ModelPass(**WORDS, attended=(attention_of(),))
    assert isinstance(model_pass, Trace)
    assert isinstance(model_pass, attnlib.ModelPass)


@pytest.mark.signatures
def test_a_model_pass_of_one_sequence_is_a_trace_of_one():
    tokens, mask = torch.tensor([[4, 5]]), torch.ones(1, 2, dtype=torch.bool)
    with pytest.warns(DeprecationWarning, match="ModelPass is deprecated"):
        model_pass = attnlib.ModelPass.of_one_sequence(tokens, mask, ())
    assert model_pass.is_one_sequence
    assert torch.equal(model_pass.target_tokens, tokens)


def test_attended_is_an_attention_with_both_maps():
    alike = LinearMap.none(STATES)
    with pytest.warns(DeprecationWarning, match="Attended is deprecated"):
        attention = Attended("cross", 0, STATES, STATES, "asks", "answers", alike, alike, scale=2.0)
    assert attention.scores.tolist() == [[[[2, 0], [0, 8]]]]
    assert (attention.query_site, attention.key_site) == ("asks", "answers")


def test_attended_of_a_trace_are_its_attentions():
    trace = Trace(**WORDS, attentions=(attention_of(),))
    with pytest.warns(DeprecationWarning, match="Trace.attentions"):
        assert trace.attended is trace.attentions


def test_a_transformer_trace_is_a_trace():
    with pytest.warns(DeprecationWarning, match="TransformerTrace is deprecated"):
        assert transformer.TransformerTrace is Trace
