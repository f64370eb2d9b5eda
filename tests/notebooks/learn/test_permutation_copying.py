"""Copying, and a fixed order against it: tiny networks, courses by hand, and what is counted as failed."""

import math

import pytest
import torch

from companion.runs.keys import model_key
from companion.runs.procedure import RunSpec
from notebooks.learn.fixed_permutation.experiment import _late_rise, doublings, furthest
from notebooks.learn.fixed_permutation.place_codes import Settings, new_network
from notebooks.learn.permutation_copying.experiment import compute, events, knowledge_first
from notebooks.shared import permutation_copying as procedure
from notebooks.shared.copying import ATTENTION, PROBES
from notebooks.shared.permutation_copying import BagOfWords, Copier, CopierConfig, copy_batch, draw_sources
from notebooks.shared.plan import settings_of
from tests.notebooks.figure_builders import NOTHING, Given, by_seed, tiny


def computed(accuracies, **changes):
    """Values of a store that knows the courses of networks that learn to attend, on permutations."""

    def answer(spec, measure):
        if (spec.resolved.network, spec.resolved.kind) != ("learned", "permutation"):
            return None
        accuracy = accuracies[spec.seed]
        course = {name: [0.5] * len(accuracy) for name in ("loss", *ATTENTION, *PROBES)}
        return course | {"steps": [0, 2, 4, 6][: len(accuracy)], "accuracy": accuracy}

    return compute(tiny("permutation_copying", **changes), Given(answer))[0]


def test_what_fails_is_told_from_what_is_slow():
    """Of three networks below 95 % after four updates one learns later; a fourth forgets."""
    courses = [[0.1, 0.5, 0.9, 0.96], [0.1, 0.5, 0.9, 0.94], [0.1, 0.2, 0.2, 0.2], [0.1, 0.95, 0.96, 0.5]]
    values = computed(courses, seeds=4, followed=6)
    assert values["mixture"]["failed"] == NOTHING
    found, later = values["permutation"], values["permutation"]["followed"]
    assert (found["failed"]["value"], later["failed"]["value"], later["late"]) == (0.75, 0.75, 1)
    assert (found["never"], later["never"], later["steps"]) == (3, 2, 6)
    assert found["steps_to_learn"]["value"] == (4 + 4 + 4 + 2) / 4
    assert later["steps_to_learn"]["value"] == (6 + 6 + 6 + 2) / 4
    assert later["late_attending"] == 0  # all attend at half of the words
    turned = found["turned"]["drawn"]
    assert (turned["n"], turned["weight"]["value"], found["turned"]["away"]["n"]) == (3, 0.5 * 4, 0)


def test_a_snapshot_says_what_a_network_that_copies_by_attention_does():
    model = Copier(CopierConfig(words=4, width=4), torch.Generator().manual_seed(0))
    held_out = copy_batch(draw_sources("permutation", 4, 10, torch.Generator().manual_seed(1)), 4)
    with torch.no_grad():
        trace = model(held_out)
    seen = procedure.snapshot_of_copier(model, held_out)
    words = [(n, s) for n in range(10) for s in range(4)]
    attended = [int(trace.attention[n, 0, s].argmax()) == s for n, s in words]
    said = [int(trace.logits[n, s].argmax()) == held_out.target[n, s] for n, s in words]
    assert seen["attention_accuracy"].item() == pytest.approx(sum(attended) / 40)
    assert seen["accuracy"].item() == pytest.approx(float(sum(said)) / 40)
    weight = sum(float(trace.attention[n, 0, s, s]) for n, s in words) / 40
    assert seen["attention_right"].item() == pytest.approx(weight, rel=1e-5)


def test_a_proxy_that_knows_the_dictionary_agrees_everywhere(monkeypatch):
    model = BagOfWords(4, 4, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.embedding.copy_(9 * torch.eye(4))
        model.readout.copy_(torch.eye(4))
    order = torch.tensor([2, 0, 3, 1])
    held_out = copy_batch(draw_sources("permutation", 4, 5, torch.Generator().manual_seed(1)), 4, order)
    seen = procedure._snapshot_of_proxy(model, held_out)
    assert seen["probe_agreement"].item() == 1
    assert seen["probe_right"].item() == pytest.approx(math.exp(9) / (math.exp(9) + 3), rel=1e-5)
    assert seen["loss"].item() == pytest.approx(math.log(4), rel=1e-5)  # the set alone says nothing
    assert seen["above_floor"].item() == pytest.approx(0, abs=1e-12)


def test_equal_seeds_see_the_same_sentences_and_uses_do_not_share_them():
    settings = procedure.Settings(length=6, seed=3)
    drawn = procedure._sources(settings, 4, procedure.TRAINING, 0)
    assert torch.equal(drawn, procedure._sources(settings, 4, procedure.TRAINING, 0))
    others = [(procedure.TRAINING, 1), (procedure.HELD_OUT,)]
    assert not any(torch.equal(drawn, procedure._sources(settings, 4, *use)) for use in others)
    assert procedure._order(settings) is None  # copied
    orders = [procedure._order(procedure.Settings(length=20, seed=seed, order="permuted")) for seed in (0, 1)]
    assert [sorted(order.tolist()) for order in orders] == 2 * [list(range(20))]
    assert len({(*range(20),), *map(tuple, (order.tolist() for order in orders))}) == 3


# Which way attention goes, when, and what networks that never attend know of words by then.

LENGTH = 10


def course(weights, attended=(0, 0, 0, 0), known=(0, 0, 0, 0), accuracy=(0, 0, 0, 0.5)):
    columns = {"attention_right": weights, "attention_accuracy": attended, "probe_agreement": known}
    return {"steps": [0, 10, 20, 30], "accuracy": accuracy} | columns


DRAWN = course((0.1, 0.19, 0.2, 0.9), (0, 0.2, 0.5, 1), (0.1, 0.5, 0.8, 0.9), (0, 0.2, 0.95, 1))
AWAY = course((0.1, 0.06, 0.04, 0.5))  # it comes back; where it went first counts
STAYS = course((0.1, 0.12, 0.08, 0.19))
HELD = [course((0.1,) * 4, known=(0, 0.1, known, 0.9)) for known in (0.2, 0.3)]


def first_of(*learned, held=HELD):
    return knowledge_first(by_seed(*learned), by_seed(*held), LENGTH)


def test_attention_has_left_at_twice_or_half_of_its_equal_share_and_words_may_be_known_before():
    assert [events(own, LENGTH)["way"] for own in (DRAWN, AWAY, STAYS)] == ["drawn", "away", None]
    found = first_of(DRAWN, AWAY, STAYS)
    assert (found["stays"], found["drawn"]["n"], found["away"]["n"]) == (1, 1, 1)
    assert found["drawn"]["left"]["value"] == found["away"]["left"]["value"] == 20
    # Words and attention are there from half of the words on.
    drawn, away = found["drawn"], found["away"]
    assert (drawn["known"]["value"], drawn["there"]["value"], drawn["lead"]["value"]) == (10, 20, 10)
    assert (drawn["first"], away["first"]) == (1, 0)
    assert away["known"]["value"] is away["there"]["value"] is away["held"]["value"] is None
    assert (drawn["soonest"], drawn["latest"], away["soonest"]) == (20, 20, None)
    # Networks held at uniform attention are asked after as many updates.
    assert (drawn["held"]["value"], drawn["held"]["n"]) == (pytest.approx(0.25), 2)
    # At the same snapshot neither comes first, and words that never come do not.
    together = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1), (0, 0.2, 0.5, 0.9))
    without = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1))
    drawn = first_of(together, without)["drawn"]
    assert (drawn["first"], drawn["lead"]["n"], drawn["there"]["n"]) == (0, 1, 2)


def test_networks_that_get_there_later_than_the_others_were_followed_are_held_against_nothing():
    short = [{name: values[:2] for name, values in held.items()} for held in HELD]
    for held in (short, []):
        drawn = first_of(DRAWN, held=held)["drawn"]
        assert drawn["held"] == NOTHING
        assert (drawn["n_held"], drawn["there"]["value"]) == (0, 20)


# A fixed order against copying: the same words and parameters, in pairs by seed.


def test_networks_of_one_seed_differ_in_the_order_of_their_targets_alone(store):
    settings = settings_of(tiny("fixed_permutation"), "length", "width", "steps", "every")
    settings |= {"kind": "sample", "network": "proxy"}
    specs = [RunSpec.of("permutation_copying", order=order, **settings) for order in ("copy", "permuted")]
    copied, permuted = map(store.recording, specs)
    assert model_key(specs[0]) != model_key(specs[1])
    # A bag of words does not see the order, so its course is the same.
    torch.testing.assert_close(copied["loss"], permuted["loss"])
    torch.testing.assert_close(copied["probe_right"], permuted["probe_right"])


def test_the_widest_gap_on_the_way_is_found_and_held_against_one_order():
    course = {"steps": [0, 10, 20]}
    copied, permuted = (
        by_seed(*(course | {"probe_right": probe} for probe in probes))
        for probes in (([0.0, 0.5, 0.9], [0.0, 0.6, 1.0]), ([0.0, 0.8, 1.0], [0.0, 0.9, 1.0]))
    )
    found = furthest(copied, permuted)
    assert (found["value"], found["steps"], found["looks"], found["n"]) == (pytest.approx(-0.3), 10, 3, 2)
    assert found["among"] == pytest.approx(0.1)


def test_a_rise_at_the_end_is_of_the_last_quarter():
    course = {"accuracy": [0.0, 0.1, 0.2, 0.3, 0.9]}
    assert _late_rise(course) == pytest.approx(0.6)


# Codes of places, with recurrence and without.

SOURCE = draw_sources("sample", 5, 6, torch.Generator().manual_seed(1))
RECURRENT = pytest.mark.parametrize("recurrent", [False, True])


@RECURRENT
def test_without_recurrence_a_fixed_order_is_copying_with_the_places_renamed(recurrent):
    """Gradients are the same to rounding, so no order is easier. With recurrence it is another task."""
    order, renamed = torch.tensor([3, 0, 4, 2, 1]), torch.empty_like(SOURCE)
    renamed[:, order] = SOURCE
    copying, permuting = (new_network(Settings(length=5, width=8, recurrent=recurrent)) for _ in range(2))
    permuting.source_codes.data[order] = copying.source_codes.data.clone()
    procedure.copier_loss(copying, copy_batch(SOURCE, 7)).backward()
    procedure.copier_loss(permuting, copy_batch(renamed, 7, order)).backward()
    permuting.source_codes.grad = permuting.source_codes.grad[order]
    pairs = zip(copying.parameters(), permuting.parameters(), strict=True)
    same = {torch.allclose(one.grad, other.grad, atol=1e-7) for one, other in pairs if one.grad is not None}
    assert same == {not recurrent}


@RECURRENT
def test_states_are_those_of_torchs_lstm_which_without_recurrence_starts_anew_for_every_word(recurrent):
    network, last = new_network(Settings(length=5, width=8, recurrent=recurrent)), None
    batch = copy_batch(SOURCE, 7)
    found = network(batch)
    encoder = network.encoder, batch.source, network.source_codes, found.encoder_states
    decoder = network.decoder, batch.target_read, network.target_codes, found.decoder_states
    for layer, words, codes, states in (encoder, decoder):
        inputs = network.embedding(words) + codes
        expected, last = layer(inputs, last) if recurrent else layer(inputs.view(-1, 1, 8))
        torch.testing.assert_close(states, expected.view(6, 5, 8))


def test_doublings_are_of_pairs_and_who_never_gets_there_counts_with_all_updates():
    def learned_at(*steps):
        return by_seed(*({"steps": [0, 10, 40], "accuracy": [0, at == 10, at <= 40]} for at in steps))

    found = doublings({"copy": learned_at(10, 40, 10), "permuted": learned_at(40, 40, 99)}, 80)
    assert [doubled for _, doubled in found] == [2, 0, 3]
