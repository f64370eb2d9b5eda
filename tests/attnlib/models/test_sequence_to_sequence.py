"""The primer's networks against step-by-step equations, torch's cells and each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.decomposition.components import Parts
from attnlib.decomposition.terms import alignment_terms
from attnlib.errors import BadInput, UnknownName
from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from attnlib.training.corpus import Corpus, collate

CORPUS = Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5, 6, 7]])
BATCH = collate(CORPUS, np.arange(3))
KINDS = {
    **NAMED,
    "plain": {},
    "two_ways": {"bidirectional": True, "scoring": "concat", "layers": 2},
    "bahdanau_dot": {"decoder": "bahdanau"},
    "bahdanau_lstm": {"decoder": "bahdanau", "cell": "lstm", "scoring": "general", "bidirectional": True},
    "fed": {"input_feeding": True, "scoring": "scaled_dot"},
}


def model_of(kind, seed=0, **changes):
    config = SequenceConfig(9, 8, width=6, embedding_scale=1.0, **KINDS[kind] | changes)
    return SequenceToSequence(config, torch.Generator().manual_seed(seed)).double()


def test_a_trace_moves_with_all_that_it_has():
    moved = model_of("luong")(BATCH).to("meta")
    assert {moved.queries.device.type, moved.logits.device.type, moved.attention.device.type} == {"meta"}
    assert model_of("cho")(BATCH).to("meta").queries is None


@pytest.mark.parametrize("kind", KINDS)
def test_word_by_word_and_all_at_once_are_the_same(kind):
    model = model_of(kind)
    reading, logits = model.begin(BATCH.source, BATCH.source_mask), []
    for words in BATCH.target_input.T:
        found, reading = model.write(words, reading)
        logits.append(found)
    torch.testing.assert_close(torch.stack(logits, 1), model(BATCH).logits)


@pytest.mark.parametrize("kind", KINDS)
def test_company_in_a_batch_changes_nothing(kind):
    model, together = model_of(kind), model_of(kind)(BATCH)
    for i in range(3):
        alone = model(collate(CORPUS, [i]))
        target, source = alone.logits.shape[1], alone.encoder_states.shape[1]
        torch.testing.assert_close(together.logits[i : i + 1, :target], alone.logits)
        torch.testing.assert_close(together.encoder_states[i : i + 1, :source], alone.encoder_states)
        if alone.attention is not None:
            torch.testing.assert_close(together.attention[i : i + 1, :target, :source], alone.attention)
            assert not together.attention[i, :, source:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_reversed_reading_is_reading_the_reversed_words(kind):
    words = [4, 7, 8, 5, 6]
    forth, back = (collate(Corpus.from_ids([own], [[4, 5]]), [0]) for own in (words, words[::-1]))
    own = KINDS[kind].get("reverse", False)
    turned = model_of(kind, reverse=not own)(forth)
    plain = model_of(kind, reverse=own)(back)
    torch.testing.assert_close(turned.logits, plain.logits)
    order = [4, 3, 2, 1, 0, 5]  # states stand where their words stand, the end mark last
    torch.testing.assert_close(turned.encoder_states, plain.encoder_states[:, order])


def test_bahdanaus_step_by_its_equations():
    model = model_of("bahdanau")
    trace = model(BATCH)
    states, mask = trace.encoder_states, BATCH.source_mask
    last = torch.stack(
        [torch.cat([row[n - 1, :6], row[0, 6:]]) for row, n in zip(states, mask.sum(1), strict=True)]
    )
    state = torch.tanh(model.start_map(last))
    cell = torch.nn.GRUCell(6 + 12, 6).double()
    cell.load_state_dict({n.removesuffix("_l0"): p for n, p in model.decoder.named_parameters()})
    score = model.score
    for step in range(BATCH.target_input.shape[1]):
        hidden = torch.tanh(score.query_map(state)[:, None] + score.key_map(states))
        energy = score.last(hidden)[..., 0].masked_fill(~mask, -torch.inf)
        context = (energy.softmax(1)[:, :, None] * states).sum(1)
        word = model.embedding_target(BATCH.target_input[:, step])
        torch.testing.assert_close(trace.queries[:, step], state)
        state = cell(torch.cat([word, context], 1), state)
        logits = model.readout(torch.cat([state, word, context], 1))
        torch.testing.assert_close(trace.decoder_states[:, step], state)
        torch.testing.assert_close(trace.logits[:, step], logits)


def test_luongs_step_by_its_equations():
    """With input feeding, one layer and general scores."""
    model = model_of("fed", scoring="general")
    trace, states = model(BATCH), model(BATCH).encoder_states
    lengths = BATCH.source_mask.sum(1)
    state, fed = torch.stack([row[n - 1] for row, n in zip(states, lengths, strict=True)]), torch.zeros(3, 6)
    cell = torch.nn.GRUCell(12, 6).double()
    cell.load_state_dict({n.removesuffix("_l0"): p for n, p in model.decoder.named_parameters()})
    for step in range(BATCH.target_input.shape[1]):
        word = model.embedding_target(BATCH.target_input[:, step])
        state = cell(torch.cat([word, fed.double()], 1), state)
        energy = torch.einsum("bi,ij,btj->bt", state, model.score.key_map.weight, states)
        weights = energy.masked_fill(~BATCH.source_mask, -torch.inf).softmax(1)
        context = torch.einsum("bt,btw->bw", weights, states)
        fed = torch.tanh(model.attentional_map(torch.cat([context, state], 1)))
        torch.testing.assert_close(trace.attention[:, step], weights)
        torch.testing.assert_close(trace.logits[:, step], model.readout(fed))


def cells_of(layer, cell):
    """torch's cells with the parameters of a stack of layers, the bottom one first."""
    found = []
    for level in range(layer.num_layers):
        own = {
            n.removesuffix(f"_l{level}"): p for n, p in layer.named_parameters() if n.endswith(f"_l{level}")
        }
        one = cell(own["weight_ih"].shape[1], layer.hidden_size).double()
        one.load_state_dict(own)
        found.append(one)
    return found


def climb(cells, inputs, states):
    """One step of a stack of LSTM cells; states are (h, memory), the bottom one first."""
    after = []
    for cell, state in zip(cells, states, strict=True):
        after.append(cell(inputs, state))
        inputs = after[-1][0]
    return after


def lstm_last(model, words):
    """What the encoder's LSTM ends in at every layer, one sentence."""
    states = [(torch.zeros(1, 6).double(), torch.zeros(1, 6).double())] * model.config.layers
    for word in words:
        embedded = model.embedding_source(torch.tensor([word]))
        states = climb(cells_of(model.encoder, torch.nn.LSTMCell), embedded, states)
    return states


def test_chos_step_by_its_equations():
    """h_t = f(h_{t-1}, x_t); c = tanh(V h_n); s_i = f(s_{i-1}, y_{i-1}, c); logits of s_i, y_{i-1} and c."""
    model = model_of("cho")
    trace, lengths = model(BATCH), BATCH.source_mask.sum(1)
    (encoder,), (decoder,) = (cells_of(layer, torch.nn.GRUCell) for layer in (model.encoder, model.decoder))
    for sample, length in enumerate(lengths.tolist()):
        state = torch.zeros(1, 6).double()
        for word in BATCH.source[sample, :length]:
            state = encoder(model.embedding_source(word[None]), state)
        summary, state = torch.tanh(model.summary_map(state)), torch.tanh(model.start_map(state))
        for step in range(int(BATCH.target_mask[sample].sum())):
            word = model.embedding_target(BATCH.target_input[sample, step][None])
            state = decoder(torch.cat([word, summary], 1), state)
            logits = model.readout(torch.cat([state, word, summary], 1))
            torch.testing.assert_close(trace.decoder_states[sample, step], state[0])
            torch.testing.assert_close(trace.logits[sample, step], logits[0])
    assert trace.attention is None
    assert trace.queries is None


def test_sutskevers_step_by_its_equations():
    """Two layers of LSTM, words backwards; every layer's state and memory goes to its own layer."""
    model = model_of("sutskever")
    trace = model(BATCH)
    decoder = cells_of(model.decoder, torch.nn.LSTMCell)
    for sample, length in enumerate(BATCH.source_mask.sum(1).tolist()):
        *words, end = BATCH.source[sample, :length].tolist()
        states = lstm_last(model, [*words[::-1], end])
        for step in range(int(BATCH.target_mask[sample].sum())):
            word = model.embedding_target(BATCH.target_input[sample, step][None])
            states = climb(decoder, word, states)
            torch.testing.assert_close(trace.decoder_states[sample, step], states[-1][0][0])
            torch.testing.assert_close(trace.logits[sample, step], model.readout(states[-1][0])[0])


def test_luongs_step_by_its_equations_in_two_layers():
    """The network that has his name: memory handed over, the top layer asks, input feeding."""
    model = model_of("luong")
    trace = model(BATCH)
    decoder = cells_of(model.decoder, torch.nn.LSTMCell)
    for sample, length in enumerate(BATCH.source_mask.sum(1).tolist()):
        read = trace.encoder_states[sample, :length]
        states, fed = lstm_last(model, BATCH.source[sample, :length].tolist()), torch.zeros(1, 6).double()
        torch.testing.assert_close(read[-1:], states[-1][0])
        for step in range(int(BATCH.target_mask[sample].sum())):
            word = model.embedding_target(BATCH.target_input[sample, step][None])
            states = climb(decoder, torch.cat([word, fed], 1), states)
            top = states[-1][0]
            context = (top @ model.score.key_map.weight @ read.T).softmax(1) @ read
            fed = torch.tanh(model.attentional_map(torch.cat([context, top], 1)))
            torch.testing.assert_close(trace.logits[sample, step], model.readout(fed)[0])


def test_of_two_layers_bahdanaus_decoder_asks_with_the_top_one():
    model = model_of("bahdanau", layers=2)
    trace = model(BATCH)
    _, carried = model.encode(BATCH.source, BATCH.source_mask)
    torch.testing.assert_close(trace.queries[:, 0], carried.hidden[:, 1])
    torch.testing.assert_close(trace.queries[:, 1:], trace.decoder_states[:, :-1])
    assert not torch.allclose(carried.hidden[:, 0], carried.hidden[:, 1])


def test_one_vector_alone_links_source_and_target():
    """Sources that end in the same state get the same translation, with either of the two older networks."""
    for kind in ("cho", "sutskever"):
        model = model_of(kind)
        source, carried = model.encode(BATCH.source, BATCH.source_mask)
        other = replace(source, states=torch.randn_like(source.states))
        torch.testing.assert_close(
            model.decode(BATCH, other, carried).logits, model.decode(BATCH, source, carried).logits
        )


@pytest.mark.parametrize("kind", ["plain", "fed", "bahdanau_dot"])
def test_the_nine_terms_of_queries_and_states_are_the_dot_scores(kind):
    trace = model_of(kind, scoring="dot")(BATCH)
    sides = (trace.queries, BATCH.target_mask), (trace.encoder_states, BATCH.source_mask)
    terms = alignment_terms(*(Parts(x / 4, x / 2, x / 4, mask) for x, mask in sides))
    both = BATCH.target_mask[:, :, None] & BATCH.source_mask[:, None]
    torch.testing.assert_close(terms.sum((0, 1))[both], trace.scores[both])


def test_parameters_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    one, two, other = model_of("luong"), model_of("luong"), model_of("luong", seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, two.get_parameter(name))
        assert not torch.equal(parameter, other.get_parameter(name))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"link": "atention"}, UnknownName, "did you mean 'attention'"),
        ({"scoring": "aditive"}, UnknownName, "did you mean 'additive'"),
        ({"width": 0}, BadInput, "width is 0"),
        ({"embedding_scale": 0.0}, BadInput, "must be positive"),
        ({"input_feeding": True, "decoder": "bahdanau"}, BadInput, "part of Luong's decoder"),
        ({"input_feeding": True, "link": "initial"}, BadInput, "part of Luong's decoder"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        SequenceConfig(9, 8, **changes)


def test_dot_scores_need_one_width():
    with pytest.raises(BadInput, match="use general"):
        model_of("plain", bidirectional=True)
