"""Copying: its sentences, the network by its equations, its attention moved, and what becomes of it."""

from functools import partial
from itertools import permutations
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from companion.results.frames import Table
from notebooks.shared import copying
from notebooks.shared.copying import check_checkpoints, until
from notebooks.shared.trainings import permutation_copying as copier
from notebooks.shared.trainings.classifier_proxy import ClassifierProxy
from notebooks.shared.trainings.permutation_copying import (
    CopierConfig,
    copy_batch,
    draw_sources,
    moved_attention,
    weight_on_later,
    words_of,
)
from notebooks.shared.trainings.translation_proxy import TranslationProxy
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused
from tests.notebooks.worked import assert_answer

# Sentences.


def drawn(kind, length=6, samples=400, seed=0):
    return draw_sources(kind, length, samples, generator(seed))


def test_a_permutation_has_every_word():
    assert drawn("permutation").sort(dim=1).values.eq(torch.arange(6)).all()


def test_all_orders_are_equally_likely():
    orders = [tuple(sentence) for sentence in drawn("permutation", length=3, samples=6000).tolist()]
    for order in permutations(range(3)):
        assert abs(orders.count(order) / 6000 - 1 / 6) < 0.02


def test_a_sample_has_no_word_twice():
    assert all(len(set(sentence)) == 6 for sentence in drawn("sample", samples=3000).tolist())


def test_a_sample_has_all_words_equally_often():
    sample = drawn("sample", samples=3000)
    shares = torch.bincount(sample.flatten(), minlength=9) / 3000
    assert (shares - 2 / 3).abs().max() < 0.04  # four standard errors


def test_a_mixture_is_of_either_half():
    halves = drawn("mixture") // 6
    assert halves.eq(halves[:, :1]).all()
    assert 0.4 < halves[:, 0].float().mean() < 0.6


def test_a_mixture_has_every_word_of_its_half():
    assert (drawn("mixture") % 6).sort(dim=1).values.eq(torch.arange(6)).all()


def test_sentences_to_copy_come_from_the_seed():
    assert torch.equal(drawn("sample"), drawn("sample"))
    assert not torch.equal(drawn("sample"), drawn("sample", seed=1))


# The network.


def new_copier(seed=0, **changes):
    return copier.Copier(copier.CopierConfig(**{"words": 5, "width": 6} | changes), generator(seed)).double()


def a_batch(order=None, length=5, samples=3):
    return copy_batch(draw_sources("permutation", length, samples, generator()), length, order)


def passes_of(implementation, batch):
    """The trace and gradients of the same network by either implementation."""
    model = new_copier()
    trace = model(batch, implementation)
    nn.functional.cross_entropy(trace.logits.flatten(0, 1), batch.target.flatten()).backward()
    return trace, {name: value.grad for name, value in model.named_parameters()}


@pytest.mark.parametrize("threads", [1, 2])
def test_fast_recurrence_agrees_with_plain(monkeypatch, threads):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    batch = a_batch()
    fast, fast_gradients = passes_of("fast", batch)
    plain, plain_gradients = passes_of("plain", batch)
    torch.testing.assert_close(fast.logits, plain.logits)
    torch.testing.assert_close(fast.encoder_states, plain.encoder_states)
    torch.testing.assert_close(fast_gradients, plain_gradients)


@pytest.mark.parametrize(("threads", "scans"), [(1, 2), (2, 0)])
def test_several_threads_leave_recurrence_to_torch(monkeypatch, threads, scans):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    calls, scan = [], copier.lstm_scan
    monkeypatch.setattr(copier, "lstm_scan", lambda *given: calls.append(1) or scan(*given))
    for implementation in ("fast", "plain"):
        passes_of(implementation, a_batch())
    assert len(calls) == scans  # encoder and decoder


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_one_word_of_several_heads_by_the_equations(cell):
    model, batch = new_copier(heads=2, cell=cell), a_batch()
    trace = model(batch)
    _, last = model.encoder(model.embedding(batch.source))
    states, _ = model.decoder(model.embedding(batch.target_read), last)  # starts where the encoder ends
    torch.testing.assert_close(trace.decoder_states, states)
    sample, step = 1, 3
    h, d = trace.encoder_states[sample], trace.decoder_states[sample, step]
    weights, biases = model.queries.weight.view(2, 6, 6), model.queries.bias.view(2, 6)
    context = torch.zeros(6, dtype=torch.float64)
    for head in range(2):
        scores = torch.stack([(weights[head] @ d + biases[head]) @ state for state in h])
        attention = torch.exp(scores) / torch.exp(scores).sum()
        torch.testing.assert_close(trace.attention[sample, head, step], attention)
        context = context + attention @ h
    joined = torch.cat([model.context_map(context), d])
    logits = model.readout(torch.tanh(model.hidden(joined)))
    torch.testing.assert_close(trace.context[sample, step], context)
    torch.testing.assert_close(trace.logits[sample, step], logits)


def test_uniform_attention_ignores_the_queries():
    model, batch = new_copier(attention="uniform", heads=2), a_batch()
    assert torch.all(model(batch).attention == 1 / 5)


def test_uniform_attention_gives_queries_no_gradient():
    model, batch = new_copier(attention="uniform", heads=2), a_batch()
    copier.copier_loss(model, batch).backward()
    assert model.queries.weight.grad is None
    assert model.encoder.weight_hh_l0.grad.abs().sum() > 0


def test_the_probe_is_what_the_network_says_when_all_attention_stands_at_one_place():
    model, batch = new_copier(heads=2), a_batch()
    trace = model(batch)
    probe = copier.lexical_probe(model, trace, batch)
    assert probe.shape == (3, 5, 5)
    sample, step, place = 2, 1, 4
    context = 2 * trace.encoder_states[sample, place]  # both heads look there
    says = model.read_out(context, trace.decoder_states[sample, step]).softmax(dim=-1)
    torch.testing.assert_close(probe[sample, step, place], says[batch.target[sample, step]])


def test_what_is_drawn_has_torchs_own_scale():
    model = copier.Copier(copier.CopierConfig(words=30, width=64), generator(4))
    assert model.embedding.weight.std().item() == pytest.approx(1, abs=0.05)
    assert model.hidden.weight.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)


def test_the_bags_loss_is_the_mean_over_steps_of_one_distribution():
    model = copier.BagOfWords(5, 4, generator()).double()
    source, target = torch.tensor([[0, 1, 4]]), torch.tensor([[2, 2, 3]])
    says = (model.readout @ model.embedding[[0, 1, 4]].mean(0)).softmax(0)
    expected = -(2 * says[2].log() + says[3].log()) / 3
    torch.testing.assert_close(copier.bag_of_words_loss(model, source, target), expected)
    torch.testing.assert_close(model.dictionary()[4], (model.readout @ model.embedding[4]).softmax(0))


@pytest.mark.parametrize("network", [copier.BagOfWords, TranslationProxy, ClassifierProxy, copier.Copier])
def test_parameters_come_from_the_generator_alone(network):
    before = torch.random.get_rng_state()
    sizes = [copier.CopierConfig(12, 5)] if network is copier.Copier else [12, 5]
    first, again, other = (network(*sizes, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert not torch.equal(value, other.get_parameter(part))


# Attention moved to one word, and to all but one.


def moved(batch, read_out, states=None, heads=1):
    """By a network that says what ``read_out`` makes of the context; states are the words themselves."""
    reader = SimpleNamespace(config=SimpleNamespace(heads=heads), read_out=read_out)
    states = functional.one_hot(batch.source, 6).float() if states is None else states
    return moved_attention(reader, SimpleNamespace(encoder_states=states, decoder_states=states), batch)


ORDERS = pytest.mark.parametrize("order", [None, torch.tensor([3, 0, 5, 1, 4, 2])])


def says(order, sign):
    """What a network says that reads the word most, or least, present in the context."""
    shares = moved(a_batch(order, 6, 8), lambda context, _: sign * context)
    return {name: share.item() for name, share in shares.items()}


@ORDERS
def test_who_reads_the_context_says_what_is_shown(order):
    shares = says(order, 1)
    assert (shares["says_shown"], shares["says_left_out"], shares["right_without"]) == (1, 0, 0)


@ORDERS
def test_who_reads_the_least_of_the_context_says_what_is_missing(order):
    shares = says(order, -1)
    assert (shares["says_shown"], shares["says_left_out"], shares["right_without"]) == (0, 1, 1)


@ORDERS
def test_at_uniform_attention_one_word_is_right(order):
    assert says(order, 1)["right_at_uniform"] == pytest.approx(1 / 6)  # ties: one word, whatever is due


@ORDERS
def test_the_weight_on_later_words_is_theirs_alone(order):
    batch = a_batch(order, 6, 8)
    time = torch.empty(6, dtype=torch.long)  # of a source place: when its word is due
    time[batch.place] = torch.arange(6)
    steps = torch.arange(6)[:, None]
    for weight, expected in (((time > steps).float(), 1), ((time <= steps).float(), 0)):
        assert weight_on_later(weight.expand(8, 6, 6), batch).item() == pytest.approx(expected)


def test_the_words_asked_for_are_those_that_the_decoder_has_not_read():
    batch, seen = a_batch(None, 6, 8), []
    moved(batch, lambda *given: seen.append(given) or given[0])
    shown, asked = seen[0][0].argmax(-1), seen[0][1].shape[1]
    assert asked == 6 // 2
    assert torch.equal(shown, batch.target[:, 6 // 2 :])
    for step in range(asked):
        assert not (batch.target_read[:, : step + 1] == shown[:, step, None]).any()


def test_several_heads_make_a_context_as_many_times_as_long():
    norms = []
    for heads in (1, 3):
        says = lambda context, states: norms.append(context.mean().item()) or states  # noqa: E731
        moved(a_batch(None, 6, 8), says, torch.ones(8, 6, 8), heads)
    assert norms == pytest.approx([1] * 4 + [3] * 4)


# What becomes of networks.


def test_networks_that_failed_are_parted_by_where_their_attention_is():
    """They have 0.2, 0.4 and 3 times uniform attention, 1/10, on the right word; one has learned."""
    failed = {"accuracy": [0.1, 0.5], "attention_later": [0.1, 0.1], "says_shown": [0.1, 0.0]}
    failed |= {"says_left_out": [0.1, 0.6], "right_without": [0.1, 0.7], "right_at_uniform": [0.1, 0.2]}
    courses = [
        failed | {"attention_right": [0.1, 0.02]},
        failed | {"attention_right": [0.1, 0.9], "accuracy": [0.1, 0.99]},
        failed | {"attention_right": [0.1, 0.04]},
        failed | {"attention_right": [0.1, 0.3]},
    ]
    records = [
        {"kind": "sample", "seed": seed} | copying.outcome_record(course | {"steps": [0, 10]})
        for seed, course in enumerate(courses)
    ]
    names = {"kind": copying.SIDE["side"], "seed": copying.SIDE["side"]}
    networks = Table.of(records, names | copying.OUTCOME, "a trained network")
    estimates = copying.turned_estimates(copying.turned_away(networks, 10), ["kind"])
    means = {(row["side"], row["quantity"]): (row["value"], row["n"]) for row in estimates.records()}
    assert means["drawn", "weight"] == pytest.approx((3, 1))
    assert means["away", "weight"] == pytest.approx((0.3, 2))
    assert means["away", "later_less_weight"] == pytest.approx((0.7, 2))
    assert means["away", "left_out_less_shown"] == pytest.approx((0.6, 2))
    assert means["away", "without_less_uniform"] == pytest.approx((0.5, 2))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # A start mark is read, and then what was said; an order of places is that of the words to write.
        pytest.param(
            (torch.tensor([[3, 1, 0], [2, 3, 1]]), 4),
            {"target": [[3, 1, 0], [2, 3, 1]], "target_read": [[4, 3, 1], [4, 2, 3]], "place": [0, 1, 2]},
            id="in_the_order_read",
        ),
        pytest.param(
            (torch.tensor([[3, 1, 0]]), 4, torch.tensor([2, 0, 1])),
            {"target": [[0, 3, 1]], "place": [2, 0, 1]},
            id="in_another_order",
        ),
    ],
)
def test_copy_batch_by_hand(given, expected):
    assert_answer(copy_batch(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(("permutation", 1, 400, None), "length 1", id="length_1")]
)
def test_draw_sources_refuses(given, message):
    assert_refused(partial(draw_sources, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param(("permutations", 4), "did you mean 'permutation'", id="misspelt kind")],
)
def test_words_of_refuses(given, message):
    assert_refused(partial(words_of, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((5, 8, "lstm", 1, "uniforn"), "did you mean 'uniform'", id="misspelt attention"),
        pytest.param((5, 8, "lstm", 0), "heads is 0", id="no head"),
    ],
)
def test_copier_config_refuses(given, message):
    assert_refused(partial(CopierConfig, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (15, 10, 40), "steps is 15, and a network that is trained for longer", id="snapshot after the end"
        )
    ],
)
def test_check_checkpoints_refuses(given, message):
    assert_refused(partial(check_checkpoints, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param(({"steps": [0]}, 4), "no snapshot after 4 updates", id="snapshot that was not taken")],
)
def test_until_refuses(given, message):
    assert_refused(partial(until, *given), message)
