"""Networks by their equations or torch's own, attention and scores by hand; what holds for every network."""

import math
import re
from collections import defaultdict
from dataclasses import fields, replace
from functools import cache, partial
from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence

from attnlib.models.attention import BILINEAR, Score, Scoring, masked_softmax
from attnlib.models.classifiers import (
    AttentiveClassifier,
    ClassifierConfig,
    classification_loss,
    log_odds_of,
    logit_of,
)
from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import TABLE_ROWS, shuffled_positions, sinusoidal_positions
from attnlib.models.recurrence import FUSED, fused_layer, unroll
from attnlib.models.search import beam_search, greedy_search, translate
from attnlib.models.transformer import REACH, MultiHeadAttention, Transformer, rotation_tables
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.models.vocabulary import BOS, EOS, PAD
from tests.attnlib.models import model_builders as nets
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import refused

BATCH = nets.batch_of()


# VED, AED and AO.


@pytest.mark.signatures
@pytest.mark.parametrize("kind", nets.RECURRENT)
def test_the_fused_layer_gives_the_trace_of_a_loop(kind):
    model = nets.encoder_decoder(kind)
    fused, loop = model(BATCH), model(BATCH, implementation="loop")
    torch.testing.assert_close(loop.logits, fused.logits, rtol=1e-10, atol=1e-10)


def keys_with_scores(trace):
    """Yield sample, step, the keys at valid source positions and their dot products with the state."""
    for i, s in np.ndindex(trace.decoder_states.shape[:2]):
        keys = trace.encoder_states[i, trace.source_mask[i]]
        yield i, s, keys, torch.stack([trace.decoder_states[i, s] @ key for key in keys])


@pytest.mark.signatures
@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_scores_are_dot_products(kind):
    trace = nets.encoder_decoder(kind)(BATCH)
    for i, s, keys, scores in keys_with_scores(trace):
        torch.testing.assert_close(trace.scores[i, s, : len(keys)], scores)


@pytest.mark.signatures
@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_attention_is_the_softmax_of_scores(kind):
    trace = nets.encoder_decoder(kind)(BATCH)
    for i, s, keys, scores in keys_with_scores(trace):
        torch.testing.assert_close(trace.attention[i, s, : len(keys)], scores.softmax(0))
        assert not trace.attention[i, s, len(keys) :].any()


@pytest.mark.signatures
@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_the_context_is_the_mean_of_keys_by_attention(kind):
    trace = nets.encoder_decoder(kind)(BATCH)
    for i, s, keys, scores in keys_with_scores(trace):
        torch.testing.assert_close(trace.context[i, s], scores.softmax(0) @ keys)


def test_attention_without_feedback_leaves_decoder_states_to_the_recurrence():
    """AED's decoder states are VED's: the context never enters the recurrence."""
    with_attention, without = nets.encoder_decoder("AED"), nets.encoder_decoder("VED")
    shared = {name: value for name, value in with_attention.state_dict().items() if "readout" not in name}
    without.load_state_dict(shared, strict=False)
    assert torch.equal(with_attention(BATCH).decoder_states, without(BATCH).decoder_states)


def test_sinusoidal_positions_by_their_formula():
    table = sinusoidal_positions(7, 6)
    for t, i in np.ndindex(7, 3):
        angle = t / 10_000 ** (2 * i / 6)
        assert table[t, 2 * i].item() == pytest.approx(np.sin(angle), abs=1e-6)
        assert table[t, 2 * i + 1].item() == pytest.approx(np.cos(angle), abs=1e-6)


@pytest.mark.signatures
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "shuffled"])
def test_a_later_first_position_is_the_end_of_a_longer_sentence(positions):
    model = nets.encoder_decoder("AO", positions=positions)
    inputs = torch.randn(2, 5, 6, generator=generator(1)).double()
    whole, _ = model.encode_inputs(inputs)
    end, _ = model.encode_inputs(inputs[:, 2:], first_position=2)
    torch.testing.assert_close(end, whole[:, 2:])
    assert not torch.allclose(model.encode_inputs(inputs[:, 2:])[0], end)


def test_shuffled_codes_are_the_same_codes_in_another_order():
    shuffled, plain = shuffled_positions(TABLE_ROWS, 6), sinusoidal_positions(TABLE_ROWS, 6)
    assert sorted(map(tuple, shuffled.tolist())) == sorted(map(tuple, plain.tolist()))
    assert not torch.equal(shuffled, plain)


@pytest.mark.signatures
@pytest.mark.parametrize("cell", FUSED)
@pytest.mark.parametrize("implementation", ["fused", "loop"])
@torch.no_grad()
def test_the_state_handed_on_is_that_of_the_last_valid_step(cell, implementation):
    inputs = torch.randn(1, 5, 6, generator=generator(2)).double()
    layer = nets.drawn(fused_layer(cell, 6).double(), 0.4)
    _, short = unroll(layer, inputs[:, :3], implementation=implementation)
    lengths = torch.tensor([3, 5])
    states, last = unroll(layer, inputs.repeat(2, 1, 1), lengths=lengths, implementation=implementation)
    both = zip(last, short, strict=True) if isinstance(last, tuple) else [(last, short)]
    for state, expected in both:
        torch.testing.assert_close(state.narrow(-2, 0, 1), expected)
    assert torch.all(states[0, 3:] == 0)


FIRST = math.tanh(2.75)  # of a vanilla step
GATED = (1 - expit(2.75)) * math.tanh(0.25)
KEPT = expit(0.75 - GATED)


@pytest.mark.signatures
@pytest.mark.parametrize("implementation", ["fused", "loop"])
@pytest.mark.parametrize(
    ("cell", "parameters", "expected"),
    [
        ("vanilla", (2.0, -1.0, 0.5, 0.25), [FIRST, math.tanh(-FIRST + 0.75)]),
        # The gate and the candidate: from the input, from the state, and two biases.
        ("ugrnn", ((2, 0.5), (-1, 1), (0.75, -0.25), (0, 0)),
         [GATED, KEPT * GATED + (1 - KEPT) * math.tanh(GATED - 0.25)]),
    ],
)  # fmt: skip
@torch.no_grad()
def test_two_steps_by_hand(cell, parameters, expected, implementation):
    layer = fused_layer(cell, 1)
    for parameter, values in zip(layer.parameters(), parameters, strict=True):
        parameter.copy_(torch.tensor(values).view_as(parameter))
    states, _ = unroll(layer, torch.tensor([[[1.0], [0.0]]]), implementation=implementation)
    assert states.flatten().tolist() == pytest.approx(expected)


# Scoring functions.

QUERY, KEYS = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, -1.0], [0.5, 1.0]]])


def score_of(scoring, query_width=2, key_width=2, **weights):
    score = nets.drawn(Score(scoring, query_width, key_width))
    score.load_state_dict(
        {f"{name}.weight": torch.tensor(rows) for name, rows in weights.items()}, strict=False
    )
    return score


UNIT, LAST = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 10.0]]
# tanh of the sum of q and k, weighted by 1 and 10.
OF_SUMS = [math.tanh(4) + 10 * math.tanh(1), math.tanh(1.5) + 10 * math.tanh(3)]


@pytest.mark.parametrize(
    ("scoring", "weights", "expected"),
    [
        ("dot", {}, [1.0, 2.5]),
        ("scaled_dot", {}, [1 / math.sqrt(2), 2.5 / math.sqrt(2)]),
        # The map turns (3, −1) to (−1, 3) and (0.5, 1) to (1, 0.5).
        ("general", {"key_map": UNIT[::-1]}, [5.0, 2.0]),
        ("additive", {"query_map": UNIT, "key_map": UNIT, "last": LAST}, OF_SUMS),
        ("concat", {"joined_map": [[1.0, 0, 1.0, 0], [0, 1.0, 0, 1.0]], "last": LAST}, OF_SUMS),
    ],
)
def test_scores_worked_by_hand(scoring, weights, expected):
    scores = score_of(scoring, **weights)(QUERY, KEYS)
    torch.testing.assert_close(scores, torch.tensor([[expected]]))


@pytest.mark.signatures
def test_concat_is_the_additive_function():
    concat = score_of("concat", 3, 5)
    additive = Score("additive", 3, 5)
    with torch.no_grad():
        additive.query_map.weight.copy_(concat.joined_map.weight[:, :3])
        additive.key_map.weight.copy_(concat.joined_map.weight[:, 3:])
        additive.last.weight.copy_(concat.last.weight)
    queries, keys = (torch.randn(2, *size, generator=generator(2)) for size in ((4, 3), (6, 5)))
    torch.testing.assert_close(concat(queries, keys), additive(queries, keys))
    joined = torch.cat([queries[:, :, None].expand(-1, -1, 6, -1), keys[:, None].expand(-1, 4, -1, -1)], -1)
    plain = concat.last(torch.tanh(concat.joined_map(joined)))[..., 0]
    torch.testing.assert_close(concat(queries, keys), plain)


@pytest.mark.parametrize("scoring", get_args(Scoring))
def test_only_the_bilinear_ones_are_linear_in_the_keys(scoring):
    score = score_of(scoring, 4, 4)
    queries, keys, two = torch.randn(3, 1, 2, 4, generator=generator(3))
    apart, together = score(queries, keys) + score(queries, two), score(queries, keys + two)
    assert torch.allclose(apart, together, atol=1e-5) == (scoring in BILINEAR)


# The primer's networks.


def by_definition(model, source, target, *, previous_query=False):
    """Encoder and decoder states, queries, attention and logits of one sentence, word by word."""
    config = model.config
    words = [*(source[::-1] if config.reverse else source), EOS]
    encoded, last = model.encoder(model.embedding_source.weight[words])
    if config.reverse:
        encoded = torch.cat([encoded[:-1].flip(0), encoded[-1:]])
    lasts = [
        last_state.reshape(config.layers, -1) for last_state in (last if config.cell == "lstm" else [last])
    ]
    bahdanau = config.link == "attention" and config.decoder == "bahdanau"
    luong = config.link == "attention" and config.decoder == "luong"
    summary = model.summary_map(lasts[0][-1]).tanh() if config.link == "every_step" else None
    if config.bidirectional or config.link == "every_step" or bahdanau:
        lasts[0] = model.start_map(lasts[0]).tanh()
        lasts[1:] = [torch.zeros_like(lasts[0])] * (config.cell == "lstm")

    def attend(query):
        row = model.score(query[None, None], encoded[None])[0, 0].softmax(-1)
        steps["queries"].append(query)
        steps["attention"].append(row)
        return row @ encoded

    steps = {name: [] for name in ("queries", "attention", "decoder_states", "logits")}
    fed = torch.zeros(config.width).double()
    for token in [BOS, *target]:
        before = lasts[0][-1]
        parts = [model.embedding_target.weight[token]]
        parts += [summary] if summary is not None else []
        parts += [fed] if config.input_feeding else []
        parts += [attend(before)] if bahdanau else []
        state = tuple(lasts) if config.cell == "lstm" else lasts[0]
        (x,), state = model.decoder(torch.cat(parts)[None], state)
        lasts = list(state) if config.cell == "lstm" else [state]
        if luong:
            context = attend(before if previous_query else x)
            features = fed = model.attentional_map(torch.cat([context, x])).tanh()
        else:
            features = x if config.link == "initial" else torch.cat([x, *parts])
        steps["decoder_states"].append(x)
        steps["logits"].append(model.readout(features))
    return {"encoder_states": encoded} | {name: torch.stack(rows) for name, rows in steps.items() if rows}


def check_against_definition(model, definition=by_definition, **options):
    trace = model(nets.batch_of())
    for sample, (source, target) in enumerate(nets.PAIRS):
        defined = definition(model, source, target, **options)
        for name, expected in defined.items():
            whole = trace.attentions[0].query_inputs if name == "queries" else getattr(trace, name)
            ours = whole[sample, : len(expected)]
            torch.testing.assert_close(ours[..., : expected.shape[-1]], expected)
            assert not ours[..., expected.shape[-1] :].any()  # attention at padding
        assert (trace.attention is None) == ("attention" not in defined)


@pytest.mark.parametrize("kind", nets.SEQUENCES)
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(kind):
    check_against_definition(nets.sequence_network(kind))


# The second paper's networks: sizes to the last parameter, equations, what is trained, what is written.


@pytest.mark.parametrize(
    ("network", "config", "total", "but_the_words"),
    [
        (BilinearTranslator, TranslatorConfig(attention="learned"), 8_180_544, 6_132_544),
        (BilinearTranslator, TranslatorConfig(attention="uniform"), 8_180_544, 6_132_544),
        (AttentiveClassifier, ClassifierConfig(words=4_691), 2_682_182, 1_274_882),  # A.8, for SMS
    ],
)
def test_as_many_parameters_as_published(network, config, total, but_the_words):
    model = network(config, generator())
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert (counted, counted - model.embedding.weight.numel()) == (total, but_the_words)


TOKENS = torch.tensor([[1, 5, 6, 7, 2, 0], [1, 4, 2, 0, 0, 0], [1, 9, 8, 11, 10, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [1] * 6]).bool()


FROZEN = [(made, *row) for made, rows in nets.GIVEN["frozen"].items() for row in rows.items()]


@pytest.mark.signatures
@pytest.mark.parametrize(("made", "attention", "frozen"), FROZEN)
def test_what_is_trained(made, attention, frozen):
    model = getattr(nets, made)(attention=attention)
    if made == "classifier":
        loss = classification_loss(logit_of(model(TOKENS, MASK)), torch.tensor([0, 1, 1]))
    else:
        loss = model.loss(BATCH)
    loss.backward()
    moved = {
        name.partition(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None
    }
    assert moved == {name for name, _ in model.named_children()} - set(frozen)


@pytest.mark.signatures
@pytest.mark.parametrize("form", ["summed", "joined"])
def test_the_logit_of_one_word_is_that_among_all(form):
    readout = nets.translator(form=form).readout
    summed = torch.randn(7, 5, generator=nets.generator(0), dtype=torch.float64)
    words = torch.arange(7)
    expected = readout.logits(summed).gather(1, words[:, None])[:, 0]
    torch.testing.assert_close(readout.logit_of(summed, words), expected)


def translator_by_definition(model, source, target):
    """One sentence, step by step, with neither padding nor batch."""
    config = model.config
    states, last = model.encoder(model.embedding.weight[[*source, EOS]])
    carried = [state.unflatten(0, (config.layers, 2)).mean(1) for state in last]  # over the directions
    steps = {name: [] for name in ("scores", "attention", "context", "logits")}
    for token in [BOS, *target]:
        (x,), carried = model.decoder(model.embedding.weight[[token]], tuple(carried))
        scores = states @ (model.query.weight @ x + model.query.bias)
        scores = scores if config.attention == "learned" else torch.zeros_like(scores)
        mean = scores.softmax(0) @ states
        context = model.readout.context(mean)
        joined = model.readout.hidden(torch.cat([context, x])).relu() if config.form == "joined" else None
        logits = model.readout.output(context + x if joined is None else joined)
        for name, row in zip(steps, (scores, scores.softmax(0), mean, logits), strict=True):
            steps[name].append(row)
    return {"encoder_states": states} | {name: torch.stack(rows) for name, rows in steps.items()}


@pytest.mark.parametrize("attention", ["learned", "uniform"])
@pytest.mark.parametrize(("form", "layers"), [("joined", 2), ("summed", 2), ("joined", 1)])
def test_a_padded_batch_of_translations_is_what_the_equations_say_of_each_sentence(attention, form, layers):
    model = nets.translator(attention=attention, form=form, layers=layers)
    check_against_definition(model, translator_by_definition)


def test_loss_is_the_mean_over_valid_words_of_the_whole_pass():
    model = nets.translator()
    trace = model(BATCH)
    chosen = trace.logits.log_softmax(-1).gather(-1, BATCH.target_output[:, :, None])[:, :, 0]
    plain = -chosen[BATCH.target_mask].sum() / BATCH.target_mask.sum()
    torch.testing.assert_close(model.loss(BATCH), plain)
    gradients = [torch.autograd.grad(value, list(model.parameters())) for value in (model.loss(BATCH), plain)]
    torch.testing.assert_close(*gradients)


def test_dropout_between_layers_while_training_alone():
    model = nets.translator().train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert model.loss(BATCH).item() != model.loss(BATCH).item()
    model.eval()
    assert model.loss(BATCH).item() == model.loss(BATCH).item()
    assert model.encoder.dropout == model.decoder.dropout == 0.5


@pytest.mark.parametrize("kind", ["learned", "uniform"])
def test_a_text_is_what_the_paper_says_position_by_position(kind):
    """Of the states of an LSTM in either direction over the text alone."""
    model = nets.classifier(kind)
    trace = model(TOKENS, MASK)
    hidden, score, readout = model.attention_hidden, model.attention_score, model.readout
    for row, length in enumerate(MASK.sum(1).tolist()):
        inputs = model.embedding.weight[TOKENS[row, :length]]
        backwards, _ = model.backwards(inputs.flip(0))
        states = torch.cat([model.forwards(inputs)[0], backwards.flip(0)], dim=1)
        torch.testing.assert_close(trace.encoder_states[row, :length], states)
        scores = [score(torch.clamp(hidden.weight @ state + hidden.bias, min=0))[0] for state in states]
        attention = torch.stack(scores).softmax(0)
        attention = attention if kind == "learned" else torch.full_like(attention, 1 / length)
        torch.testing.assert_close(trace.attention[row, 0, :length], attention)
        context = (attention[:, None] * states).sum(0)
        torch.testing.assert_close(logit_of(trace)[row], readout.weight[0] @ context + readout.bias[0])
    assert torch.all(trace.attention[:, 0][~MASK] == 0)


def test_texts_of_unlike_length_are_run_in_groups_with_the_same_outcome(monkeypatch):
    lengths = torch.tensor([6, 1, 40, 25, 3, 9, 10])
    mask = torch.arange(40) < lengths[:, None]
    tokens = torch.randint(12, mask.shape, generator=generator(0))
    outcomes = []
    for large in (10**9, 0):
        monkeypatch.setattr("attnlib.models.classifiers._LARGE", large)
        model = nets.classifier()
        logit = logit_of(model(tokens, mask))
        classification_loss(logit, torch.tensor([0, 1, 1, 0, 0, 1, 1])).backward()
        outcomes.append([logit, *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(*outcomes)


@pytest.mark.signatures
def test_attention_can_be_given():
    model = nets.classifier()
    given = torch.tensor([[0, 0, 1, 0, 0, 9], [1, 0, 0, 9, 9, 9], [0, 0, 0, 0, 0.5, 0.5]]).double()
    trace = model(TOKENS, MASK, attention=given)
    log_odds = log_odds_of(trace)
    expected = [log_odds[0, 2], log_odds[1, 0], log_odds[2, 4:].mean()]
    torch.testing.assert_close(logit_of(trace), torch.stack(expected))
    whole = model(TOKENS, MASK)
    again = model(TOKENS, MASK, attention=whole.attention[:, 0])
    torch.testing.assert_close(logit_of(again), logit_of(whole))


def test_the_loss_is_minus_the_log_of_the_right_label():
    logits = torch.tensor([0.0, 2.0, -1.0]).double()
    right = torch.sigmoid(torch.tensor([0.0, 2.0, 1.0]).double())
    torch.testing.assert_close(classification_loss(logits, torch.tensor([1, 1, 0])), -right.log().mean())


# The Transformer against torch's own layers, each head as a trace, and positions by hand.


def torchs_twin(model):
    """torch's Transformer with the weights of ours: every weight of either's layers has its place."""
    parameters, small = defaultdict(list), nets.SMALL
    for name, value in model.state_dict().items():
        for ours, theirs in nets.GIVEN["torchs_names"].items():
            name = re.sub(ours, theirs, name)
        if name.startswith(("encoder", "decoder")):
            parameters[name].append(value)
    sizes = small.width, small.heads, small.layers, small.layers, small.hidden
    twin = nn.Transformer(*sizes, dropout=0.0, batch_first=True, norm_first=True).double().eval()
    twin.load_state_dict({name: torch.cat(tensors) for name, tensors in parameters.items()})
    return twin


def test_one_attention_by_hand():
    # Two heads of width 1. The values are four times the inputs, the output map swaps the heads. A query of
    # log 3 gives 3 times the weight to a key that is greater by 1.
    attention = MultiHeadAttention(replace(nets.SMALL, width=2, heads=2), "cross", 0)
    with torch.no_grad():
        for module in attention.children():
            module.weight.copy_(torch.eye(2))
            module.bias.zero_()
        attention.value_map.weight.mul_(4)
        attention.output_map.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    keys = torch.tensor([[[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]]])
    queries = torch.tensor([[[0.0, math.log(3)], [math.log(3), 0.0]]])
    seen = torch.tensor([[[True, True, False]]])
    output, attended = attention(queries, attention.keys_and_values(keys), seen, key_inputs=keys)
    expected = torch.tensor([[[0.5, 0.5, 0], [0.25, 0.75, 0]], [[0.25, 0.75, 0], [0.5, 0.5, 0]]])
    torch.testing.assert_close(attended.weights, expected[None])
    torch.testing.assert_close(output, torch.tensor([[[3.0, 2.0], [2.0, 3.0]]]))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
def test_the_network_is_that_of_torchs_layers():
    model = nets.transformer()
    twin = torchs_twin(model)
    words = model.embedding_source(BATCH.source), model.embedding_target(BATCH.target_input)
    source, target = (
        embedded + sinusoidal_positions(embedded.shape[1], nets.SMALL.width) for embedded in words
    )
    memory = twin.encoder(source, src_key_padding_mask=~BATCH.source_mask)
    steps = BATCH.target_mask.shape[1]
    padding = {"tgt_key_padding_mask": ~BATCH.target_mask, "memory_key_padding_mask": ~BATCH.source_mask}
    states = twin.decoder(target, memory, tgt_mask=torch.ones(steps, steps).triu(1).bool(), **padding)
    logits, trace = model.readout(states), model(BATCH)
    torch.testing.assert_close(trace.encoder_states[BATCH.source_mask], memory[BATCH.source_mask])
    torch.testing.assert_close(trace.logits[BATCH.target_mask], logits[BATCH.target_mask])


SIDES = {"encoder_self": "ss", "decoder_self": "tt", "cross": "ts"}  # of the queries and of the keys


@pytest.mark.parametrize("kind", SIDES)
def test_each_head_is_torchs_attention_on_the_inputs_that_are_kept(kind):
    model = nets.transformer()
    side = model.encoder if kind == "encoder_self" else model.decoder
    trace = model(BATCH)
    key_mask = BATCH.target_mask if kind == "decoder_self" else BATCH.source_mask
    for layer, recorded in enumerate(trace.layers(kind)):
        attention = side[layer].cross_attention if kind == "cross" else side[layer].self_attention
        for number in range(recorded.heads):
            head = recorded.head(number)
            allowed = key_mask[:, None].repeat(1, head.weights.shape[2], 1)
            allowed = allowed.tril() if kind == "decoder_self" else allowed
            rows = slice(number * nets.SMALL.head_width, (number + 1) * nets.SMALL.head_width)
            maps = attention.query_map, attention.key_map, attention.value_map
            inputs = head.query_inputs, head.key_inputs, head.key_inputs
            queries, keys, values = (
                linear_map(x)[..., rows] for linear_map, x in zip(maps, inputs, strict=True)
            )
            identity = torch.eye(keys.shape[1], dtype=keys.dtype).expand(3, -1, -1)
            for computed, vectors in ((head.weights[:, 0], identity), (head.context[:, 0], values)):
                expected = scaled_dot_product_attention(queries, keys, vectors, attn_mask=allowed)
                torch.testing.assert_close(computed, expected)
            torch.testing.assert_close(head.values[:, 0], values)
            query, key = model.projections(kind, layer, number)
            torch.testing.assert_close(head.queries, query(head.query_inputs))
            torch.testing.assert_close(head.keys, key(head.key_inputs))
            products = head.queries @ head.keys.mT
            torch.testing.assert_close(head.scores, products, rtol=0, atol=1e-14)
            assert torch.isfinite(head.scores).all()


@pytest.mark.signatures
@pytest.mark.parametrize("kind", SIDES)
def test_a_head_of_a_trace_is_that_head_of_its_attention(kind):
    trace = nets.transformer()(BATCH)
    head, recorded = trace.head(kind, 1, 2), trace.layers(kind)[1]
    assert torch.equal(head.attention, recorded.weights[:, 2])
    for name in ("scores", "context", "values"):
        assert torch.equal(getattr(head, name), getattr(recorded, name)[:, 2]), name
    assert torch.equal(head.attentions[0].queries[:, 0], recorded.queries[:, 2])
    assert head.source_tokens is trace.source_tokens


def test_cross_attention_reads_the_encoder_states():
    trace = nets.transformer()(BATCH)
    assert trace.layers("cross")[1].key_inputs is trace.encoder_states


def test_turned_by_their_positions_the_same_words_further_on_have_the_same_scores():
    attention = nets.transformer(positions="rotary").encoder[0].self_attention
    pair = torch.randn(1, 2, nets.SMALL.width, generator=generator()).double()
    everywhere = torch.ones(1, 1, 2, dtype=torch.bool)
    scores = []
    for first in (0, 3):
        source = attention.keys_and_values(pair, first)
        scores.append(attention(pair, source, everywhere, first=first, key_inputs=pair)[1].scores)
    torch.testing.assert_close(*scores)


def test_a_position_bias_is_looked_up_by_its_distance():
    attention = nets.transformer(positions="relative").encoder[0].self_attention
    attention.distance_bias.copy_(torch.arange(-REACH, REACH + 1).expand(3, -1))
    bias = attention.position_bias(first=2, target=2, source=4)
    assert bias[0].tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
    far = attention.position_bias(first=0, target=1, source=REACH + 5)
    assert far[1, 0, -1] == REACH


def test_a_position_bias_starts_at_zero():
    untrained = Transformer(replace(nets.SMALL, positions="relative"), generator())
    assert not untrained.encoder[1].self_attention.distance_bias.any()


@pytest.mark.parametrize("positions", ["relative", "rotary"])
def test_cross_attention_is_left_as_it_is(positions):
    layers = nets.transformer(positions=positions).decoder
    assert all(type(layer.cross_attention) is MultiHeadAttention for layer in layers)


def test_a_pair_of_coordinates_turns_by_its_angle():
    attention = nets.transformer(width=16, heads=2, positions="rotary").encoder[0].self_attention
    rows = torch.zeros(1, 2, 1, 8)
    rows[..., 1] = 1.0  # with coordinate 5 it turns by position · 10000^(-1/4) = position / 10
    turned = attention.at_positions(rows, first=3)[0, 0, 0]
    expected = torch.zeros(8)
    expected[1], expected[5] = torch.tensor(0.3).cos(), torch.tensor(0.3).sin()
    torch.testing.assert_close(turned, expected)
    cos, sin = rotation_tables(4, 8)
    assert torch.equal(cos[:, :4], cos[:, 4:])
    torch.testing.assert_close(cos.square() + sin.square(), torch.ones(4, 8))


# Every network.

RECURRENT = {kind: partial(nets.encoder_decoder, kind) for kind in (*nets.RECURRENT, "AO")}
OF_POSITIONS = {positions: partial(nets.transformer, positions=positions) for positions in nets.POSITIONS}
SEQUENCES = {kind: partial(nets.sequence_network, kind) for kind in nets.SEQUENCES}
FORCED = {"AO none": partial(nets.encoder_decoder, "AO", positions="none")} | RECURRENT | OF_POSITIONS
WRITERS = SEQUENCES | OF_POSITIONS
UNTRAINED = {"translator": nets.translator, "classifier": nets.classifier} | RECURRENT | SEQUENCES
UNTRAINED["transformer"] = lambda seed: Transformer(replace(nets.SMALL, positions="learned"), generator(seed))


@pytest.mark.parametrize("name", UNTRAINED)
def test_parameters_come_from_the_generator_alone(name):
    before = torch.random.get_rng_state()
    first, again, other = (UNTRAINED[name](seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert "norm" in part or not torch.equal(value, other.get_parameter(part))


def test_one_seed_starts_every_kind_of_attention_in_the_same_place():
    for made, others in ((nets.translator, ["uniform"]), (nets.classifier, ["uniform", "alone"])):
        for other in others:
            twin = made(attention=other)
            assert all(
                torch.equal(parameter, twin.get_parameter(name))
                for name, parameter in made().named_parameters()
            )


@pytest.mark.parametrize("name", FORCED)
def test_padding_does_not_change_the_logits_of_a_sample(name):
    model = FORCED[name]()
    source = BATCH.source.masked_fill(~BATCH.source_mask, 5)
    filled = replace(BATCH, source=source, target_input=BATCH.target_input.masked_fill(~BATCH.target_mask, 6))
    for trace in model(BATCH), model(filled):
        for sample in range(3):
            alone = model(nets.batch_of(sample))
            steps, words = alone.logits.shape[1], alone.encoder_states.shape[1]
            torch.testing.assert_close(trace.logits[sample, :steps], alone.logits[0])
            torch.testing.assert_close(trace.encoder_states[sample, :words], alone.encoder_states[0])


@pytest.mark.parametrize("name", FORCED)
def test_a_later_target_word_changes_no_earlier_logits(name):
    model = FORCED[name]()
    before = model(BATCH).logits
    for step in range(1, BATCH.target_input.shape[1]):
        words = BATCH.target_input.clone()
        words[:, step] = 4 + (words[:, step] + 1) % 4
        after = model(replace(BATCH, target_input=words)).logits
        read = BATCH.target_mask[:, step]
        assert torch.equal(after[:, :step], before[:, :step])
        assert (after[read, step] != before[read, step]).any(dim=-1).all()


@pytest.mark.parametrize("name", FORCED)
def test_the_order_of_the_source_is_known_but_to_attention_without_positions(name):
    model, batch = FORCED[name](), nets.batch_of(1)
    turned = replace(batch, source=batch.source.flip(1))
    assert torch.allclose(model(turned).logits, model(batch).logits) == name.endswith("none")


@pytest.mark.signatures
@pytest.mark.parametrize("name", WRITERS)
def test_word_by_word_gives_the_logits_of_the_teacher_forced_pass(name):
    model = WRITERS[name]()
    logits, state = model(BATCH).logits, model.begin(BATCH.source, BATCH.source_mask)
    for step, words in enumerate(BATCH.target_input.T):
        written, state = model.write(words, state)
        read = BATCH.target_mask[:, step]
        torch.testing.assert_close(written[read], logits[read, step])


TRACES = [make()(BATCH) for make in (FORCED["AED gru"], FORCED["VED"], WRITERS["luong"], WRITERS["cho"])]


@pytest.mark.parametrize("trace", [BATCH, *TRACES, nets.transformer()(BATCH)])
def test_a_trace_or_batch_moves_with_all_that_it_has(trace):
    moved = trace.to("meta")
    for given, taken in ((trace, moved), *zip(attentions_of(trace), attentions_of(moved), strict=True)):
        for name in (field.name for field in fields(given)):
            if isinstance(getattr(given, name), torch.Tensor):
                assert getattr(taken, name).is_meta, name


def attentions_of(trace):
    return getattr(trace, "attentions", ())


LARGE = torch.full((1, 129), 5)
ROWS = torch.tensor([[True], [False], [True]])  # leaves nothing of the second sample
TABLE = "position 128 is beyond the 128 rows"


test_what_cannot_be_is_refused = refused(
    (lambda: nets.sequence_network(bidirectional=True), "use general"),
    (lambda: nets.classifier()(BATCH.source, BATCH.source_mask & ROWS), "all padding"),
    (lambda: masked_softmax(torch.zeros(3, 1, 1), ROWS), "rows [1] are all padding"),
    (lambda: nets.encoder_decoder("AO").encode_inputs(torch.zeros(1, 3, 6), initial=torch.zeros(1, 6)),
     "shift it with first_position"),
    (lambda: nets.encoder_decoder("AED").encode_inputs(torch.zeros(1, 3, 6), first_position=1),
     "0 for a recurrent network"),
    (lambda: nets.encoder_decoder("AO", positions="learned").encode(LARGE, LARGE == 5), TABLE),
    (lambda: nets.transformer(positions="learned").begin(LARGE, LARGE == 5), TABLE),
    (lambda: nets.transformer()(replace(BATCH, source_mask=BATCH.source_mask & ROWS)),
     "source rows [1] begin with padding"),
    (lambda: nets.transformer()(replace(BATCH, target_mask=BATCH.target_mask & ~ROWS)),
     "target rows [0, 2] begin with padding"),
    (lambda: nets.transformer().projections("crosss", 0, 0), "did you mean 'cross'"),
    (lambda: nets.transformer().projections("cross", 0, 3), "head is 3; … has heads 0 to 2"),
    (lambda: nets.transformer().projections("encoder_self", -1, 0), "layer is -1"),
    (lambda: translate(nets.translator(), BATCH.source, BATCH.source_mask, max_steps=0), "max_steps is 0"),
)  # fmt: skip


# Greedy and beam search against exhaustive search on a tiny vocabulary.


WORDS, STEPS = 6, 4  # pad, bos, eos, unk and two words
SHORT = nets.batch_of(pairs=[([4, 5, 4], [4]), ([5, 4, 4, 5, 5], [4]), ([5], [4])])


def targets():
    """All that may be written: ended within the steps, or cut off."""
    others = [word for word in range(WORDS) if word not in (PAD, BOS, EOS)]
    for length in range(STEPS):
        yield from ((*words, EOS) for words in product(others, repeat=length))
    yield from product(others, repeat=STEPS)


TARGETS = pad_sequence([torch.tensor(words) for words in targets()], batch_first=True, padding_value=PAD)


def known(model, sample):
    """Of all targets the likeliest words, of which padding and BOS are none, and the log-probabilities."""
    source = SHORT.source[sample, SHORT.source_mask[sample]].expand(len(TARGETS), -1)
    read = torch.cat([torch.full_like(TARGETS[:, :1], BOS), TARGETS[:, :-1]], dim=1)
    every = Batch(
        source,
        source > PAD,
        read,
        target_output=TARGETS,
        target_mask=TARGETS != PAD,
        indices=torch.arange(len(TARGETS)),
    )
    logits = model(every).logits.detach().clone()
    logits[..., [PAD, BOS]] = -torch.inf
    chosen = logits.log_softmax(-1).gather(2, TARGETS[..., None])[..., 0]
    return logits.argmax(-1), chosen.masked_fill(~every.target_mask, 0).sum(1)


def greedy(likeliest):
    """The only target of which every word is the likeliest."""
    (index,) = ((likeliest == TARGETS) | (TARGETS == PAD)).all(1).nonzero().flatten()
    return TARGETS[index]


SEARCHES = pytest.mark.parametrize(
    ("seed", "penalty"), [(2, 0.0), pytest.param(3, 0.6, marks=pytest.mark.signatures), (4, 1.0)]
)


@cache
def written_by(name, seed):
    """A network, its likeliest words after every beginning, and the log-probability of every target."""
    model = nets.spread(WRITERS[name](target_size=WORDS), 1.0, seed)
    return model, [known(model, sample) for sample in range(len(SHORT.source))]


def wide_beam(model, penalty):
    return beam_search(
        model,
        SHORT.source,
        SHORT.source_mask,
        max_steps=STEPS,
        beams=len(TARGETS) + 1,
        length_penalty=penalty,
    )


@pytest.mark.slow
@SEARCHES
@pytest.mark.parametrize("name", WRITERS)
def test_a_beam_that_holds_everything_is_exhaustive_search(name, seed, penalty):
    model, answers = written_by(name, seed)
    beams = wide_beam(model, penalty)
    for sample, (_, total) in enumerate(answers):
        ranked = (total / (TARGETS != PAD).sum(1) ** penalty).argsort(descending=True)
        assert torch.equal(torch.stack([*beams.words[sample][:-1]]), TARGETS[ranked])
        torch.testing.assert_close(beams.log_probability[sample, :-1], total[ranked])
        assert total.exp().sum().item() == pytest.approx(1)  # they are all that can be written


@pytest.mark.slow
@SEARCHES
@pytest.mark.parametrize("name", WRITERS)
def test_a_beam_with_nothing_left_to_hold_is_empty(name, seed, penalty):
    model, _ = written_by(name, seed)
    beams = wide_beam(model, penalty)
    for sample, words in enumerate(beams.words):
        assert (beams.log_probability[sample, -1], set(words[-1].tolist())) == (-torch.inf, {PAD})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("name", WRITERS)
def test_greedy_search_takes_the_likeliest_word(name, seed):
    model, answers = written_by(name, seed)
    written = greedy_search(model, SHORT.source, SHORT.source_mask, max_steps=STEPS)
    for sample, (likeliest, _) in enumerate(answers):
        words = written.words[sample, 0]
        assert torch.equal(words, greedy(likeliest)[: len(words)])
        assert EOS in words or len(words) == STEPS


@pytest.mark.slow
@SEARCHES
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_has_its_log_probability(name, seed, penalty):
    model, answers = written_by(name, seed)
    given = model, SHORT.source, SHORT.source_mask
    alone = greedy_search(*given, max_steps=STEPS)
    few = beam_search(*given, max_steps=STEPS, beams=3, length_penalty=penalty)
    for sample, (_, total) in enumerate(answers):
        for beam in (alone, few):
            for words, log_probability in zip(beam.words[sample], beam.log_probability[sample], strict=True):
                padding = torch.full([TARGETS.shape[1] - len(words)], PAD)
                same = (torch.cat([words, padding]) == TARGETS).all(1)
                torch.testing.assert_close(log_probability, total[same][0])


@pytest.mark.signatures
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_translation_has_the_likeliest_word_at_every_step(seed):
    model = nets.spread(nets.translator(words=WORDS), 1.0, seed)
    for sample, words in enumerate(translate(model, SHORT.source, SHORT.source_mask, max_steps=STEPS)):
        likeliest, _ = known(model, sample)
        assert torch.equal(words, greedy(likeliest)[: len(words)])
        assert EOS in words or len(words) == STEPS
