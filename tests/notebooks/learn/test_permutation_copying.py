"""Copying, and a fixed order against it, on tiny networks."""

import math

import pytest
import torch

from companion.results.frames import Table
from companion.runs.columns import NETWORK
from companion.runs.identity import run_id
from companion.runs.procedure import RunSpec
from notebooks.learn.fixed_permutation import experiment as fixed
from notebooks.shared.copying import OUTCOME, events
from notebooks.shared.plan import settings_of
from notebooks.shared.trainings import permutation_copying as procedure
from notebooks.shared.trainings.permutation_copying import (
    BagOfWords,
    Copier,
    CopierConfig,
    copy_batch,
    draw_sources,
)
from notebooks.shared.trainings.place_codes import Settings, new_network
from tests.notebooks.figure_builders import computed, tiny
from tests.notebooks.worked import assert_answer, store_of


def test_a_snapshot_says_what_a_network_that_copies_by_attention_does():
    model = Copier(CopierConfig(words=4, width=4), torch.Generator().manual_seed(0))
    held_out = copy_batch(draw_sources("permutation", 4, 10, torch.Generator().manual_seed(1)), 4)
    with torch.no_grad():
        trace = model(held_out)
    seen = procedure.snapshot_of_copier(model, held_out)
    words = [(n, s) for n in range(10) for s in range(4)]
    attended = [int(trace.attention[n, 0, s].argmax()) == s for n, s in words]
    right = [int(trace.logits[n, s].argmax()) == held_out.target[n, s] for n, s in words]
    assert seen["attention_accuracy"].item() == pytest.approx(sum(attended) / 40)
    assert seen["accuracy"].item() == pytest.approx(float(sum(right)) / 40)
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


def test_equal_seeds_see_the_same_sentences():
    settings = procedure.Settings(length=6, seed=3)
    drawn = procedure._sources(settings, 4, procedure.TRAINING, 0)
    assert torch.equal(drawn, procedure._sources(settings, 4, procedure.TRAINING, 0))


def test_uses_do_not_share_sentences():
    settings = procedure.Settings(length=6, seed=3)
    drawn = procedure._sources(settings, 4, procedure.TRAINING, 0)
    others = [(procedure.TRAINING, 1), (procedure.HELD_OUT,)]
    assert not any(torch.equal(drawn, procedure._sources(settings, 4, *use)) for use in others)


def test_a_copy_has_no_order():
    settings = procedure.Settings(length=6, seed=3)
    assert procedure._order(settings) is None  # copied


def test_every_seed_has_its_permutation():
    orders = [procedure._order(procedure.Settings(length=20, seed=seed, order="permuted")) for seed in (0, 1)]
    assert [sorted(order.tolist()) for order in orders] == 2 * [list(range(20))]
    assert len({(*range(20),), *map(tuple, (order.tolist() for order in orders))}) == 3


# A fixed order against copying: the same words and parameters, in pairs by seed.


def test_networks_of_one_seed_differ_in_the_order_of_their_targets_alone(store):
    settings = settings_of(tiny("fixed_permutation"), "length", "width", "steps", "every")
    settings |= {"kind": "sample", "network": "proxy"}
    specs = [RunSpec.of("permutation_copying", order=order, **settings) for order in ("copy", "permuted")]
    copied, permuted = map(store.recording, specs)
    assert run_id(specs[0]) != run_id(specs[1])
    # A bag of words does not see the order, so its course is the same.
    torch.testing.assert_close(copied["loss"], permuted["loss"])
    torch.testing.assert_close(copied["probe_right"], permuted["probe_right"])


def test_doublings_of_pairs_lie_between_snapshots():
    """Who never gets there counts with all its updates, without an upper end."""
    at_10, at_40 = {"steps_to_learn": 10, "before": 0}, {"steps_to_learn": 40, "before": 10}
    never = {"steps_to_learn": None, "before": 80}
    times = {"copy": [at_10, at_40, at_10], "permuted": [at_40, at_40, never]}
    records = [
        {"order": order, "network": "learned", "seed": seed, "steps": 80} | reached
        for order, networks in times.items()
        for seed, reached in enumerate(networks)
    ]
    columns = fixed.GROUP | {"seed": NETWORK["seed"]} | OUTCOME | fixed.SEEN
    pairs = fixed.doublings(Table.of(records, columns, "a trained network")).frame
    assert pairs["seed"].tolist() == [0, 1, 2]
    assert pairs["doublings"].tolist() == [2, 0, 3]
    assert pairs["least"].tolist() == [0, -2, 3]
    assert pairs["most"].tolist() == pytest.approx([math.log2(40), 2, math.inf])


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
    same = {
        torch.allclose(parameter.grad, other.grad, atol=1e-7)
        for parameter, other in pairs
        if parameter.grad is not None
    }
    assert same == {not recurrent}


@RECURRENT
def test_states_are_those_of_torchs_lstm_which_without_recurrence_starts_anew_for_every_word(recurrent):
    network, last = new_network(Settings(length=5, width=8, recurrent=recurrent)), None
    batch = copy_batch(SOURCE, 7)
    trace = network(batch)
    encoder = network.encoder, batch.source, network.source_codes, trace.encoder_states
    decoder = network.decoder, batch.target_read, network.target_codes, trace.decoder_states
    for layer, words, codes, states in (encoder, decoder):
        inputs = network.embedding(words) + codes
        expected, last = layer(inputs, last) if recurrent else layer(inputs.view(-1, 1, 8))
        torch.testing.assert_close(states, expected.view(6, 5, 8))


STEPS = [0, 10, 20, 30]
DRAWN = {
    "steps": STEPS,
    "accuracy": [0, 0.2, 0.95, 1],
    "attention_right": [0.1, 0.19, 0.2, 0.9],
    "attention_accuracy": [0, 0.2, 0.5, 1],
    "probe_agreement": [0.1, 0.5, 0.8, 0.9],
}
LATE = [0, 0, 0, 0.5]
NEVER = [0, 0, 0, 0]
AWAY = {
    "steps": STEPS,
    "accuracy": LATE,
    "attention_right": [0.1, 0.06, 0.04, 0.5],
    "attention_accuracy": NEVER,
    "probe_agreement": NEVER,
}
STAYS = {**AWAY, "attention_right": [0.1, 0.12, 0.08, 0.19]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Attention has left at twice or half of its equal share; where it went first counts, even if it comes
        # back.
        pytest.param((DRAWN, 10), {"way": "drawn"}, id="drawn"),
        pytest.param((AWAY, 10), {"way": "away"}, id="driven_away"),
        pytest.param((STAYS, 10), {"way": None}, id="stays"),
    ],
)
def test_events_by_hand(given, expected):
    assert_answer(events(*given), expected)


def followed(**changes):
    """Settings under which networks that copy permutations of ten words are followed for 30 updates."""
    settings = {"kind": ["permutation"], "length": 10, "steps": 30, "every": 10, "followed": 30}
    return tiny("permutation_copying", **(settings | changes))


HELD = {**AWAY, "attention_right": [0.1, 0.1, 0.1, 0.1], "probe_agreement": [0, 0.1, 0.2, 0.9]}
HELD_FIRST = {"of": {"network": "uniform", "seed": 0}, "is": HELD}
HELD_SECOND = {"of": {"network": "uniform", "seed": 1}, "is": {**HELD, "probe_agreement": [0, 0.1, 0.3, 0.9]}}
TOGETHER = {
    "steps": STEPS,
    "accuracy": LATE,
    "attention_right": [0.1, 0.3, 0.5, 0.9],
    "attention_accuracy": [0, 0.2, 0.5, 1],
    "probe_agreement": [0, 0.2, 0.5, 0.9],
}
NOTHING = {"value": None, "low": None, "high": None, "n": 0}
HALF = [0.5, 0.5, 0.5, 0.5]
LEARNS_LATE = {
    "steps": [0, 2, 4, 6],
    "accuracy": [0.1, 0.5, 0.9, 0.96],
    "loss": HALF,
    "attention_right": HALF,
    "attention_accuracy": HALF,
    "attention_later": HALF,
    "probe_right": HALF,
    "probe_elsewhere": HALF,
    "probe_agreement": HALF,
    "says_shown": HALF,
    "says_left_out": HALF,
    "right_without": HALF,
    "right_at_uniform": HALF,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Words and attention are there from half of the words on; networks held at uniform attention are
        # asked after as many updates.
        pytest.param(
            (
                followed(seeds=3, controls=2),
                store_of(
                    [
                        {"of": {"network": "learned", "seed": 0}, "is": DRAWN},
                        {"of": {"network": "learned", "seed": 1}, "is": AWAY},
                        {"of": {"network": "learned", "seed": 2}, "is": STAYS},
                        HELD_FIRST,
                        HELD_SECOND,
                    ]
                ),
            ),
            {
                "values.permutation.ways": {
                    "stays": 1,
                    "drawn": {
                        "n": 1,
                        "left.value": 20,
                        "known.value": 10,
                        "there.value": 20,
                        "lead.value": 10,
                        "first": 1,
                        "soonest": 20,
                        "latest": 20,
                        "held.value": 0.25,
                        "held.n": 2,
                        "n_held": 1,
                    },
                    "away": {
                        "n": 1,
                        "left.value": 20,
                        "known.value": None,
                        "there.value": None,
                        "held.value": None,
                        "first": 0,
                        "soonest": None,
                    },
                }
            },
            id="two_ways_to_copy",
        ),
        # At the same snapshot neither comes first, and words that never come do not.
        pytest.param(
            (
                followed(seeds=2, controls=2),
                store_of(
                    [
                        {"of": {"network": "learned", "seed": 0}, "is": TOGETHER},
                        {
                            "of": {"network": "learned", "seed": 1},
                            "is": {**TOGETHER, "probe_agreement": NEVER},
                        },
                        HELD_FIRST,
                        HELD_SECOND,
                    ]
                ),
            ),
            {"values.permutation.ways.drawn": {"first": 0, "lead.n": 1, "there.n": 2}},
            id="both_at_one_snapshot",
        ),
        # Networks that get there later than the others were followed are held against nothing, nor are they
        # without these.
        pytest.param(
            (
                followed(seeds=1, controls=1, steps=10),
                store_of(
                    [
                        {"of": {"network": "learned"}, "is": DRAWN},
                        {
                            "of": {"network": "uniform"},
                            "is": {
                                "steps": [0, 10],
                                "accuracy": [0, 0],
                                "attention_right": [0.1, 0.1],
                                "attention_accuracy": [0, 0],
                                "probe_agreement": [0, 0.1],
                            },
                        },
                    ]
                ),
            ),
            {"values.permutation.ways.drawn": {"held": NOTHING, "n_held": 0, "there.value": 20}},
            id="followed_too_briefly",
        ),
        pytest.param(
            (followed(seeds=1), store_of([{"of": {"network": "learned"}, "is": DRAWN}])),
            {"values.permutation.ways.drawn": {"held": NOTHING, "n_held": 0, "there.value": 20}},
            id="no_controls",
        ),
        # Of three networks below 95 % after four updates one learns later; a fourth forgets. All attend at
        # half of the words.
        pytest.param(
            (
                tiny("permutation_copying", seeds=4, followed=6),
                store_of(
                    [
                        {"of": {"network": "learned", "kind": "permutation", "seed": 0}, "is": LEARNS_LATE},
                        {
                            "of": {"network": "learned", "kind": "permutation", "seed": 1},
                            "is": {**LEARNS_LATE, "accuracy": [0.1, 0.5, 0.9, 0.94]},
                        },
                        {
                            "of": {"network": "learned", "kind": "permutation", "seed": 2},
                            "is": {**LEARNS_LATE, "accuracy": [0.1, 0.2, 0.2, 0.2]},
                        },
                        {
                            "of": {"network": "learned", "kind": "permutation", "seed": 3},
                            "is": {**LEARNS_LATE, "accuracy": [0.1, 0.95, 0.96, 0.5]},
                        },
                    ]
                ),
            ),
            {
                "values": {
                    "mixture.failed": NOTHING,
                    "permutation": {
                        "failed.value": 0.75,
                        "never": 3,
                        "steps_to_learn.value": 3.5,
                        "turned.drawn": {"n": 3, "weight.value": 2},
                        "turned.away.n": 0,
                    },
                    "permutation.followed": {
                        "failed.value": 0.75,
                        "late": 1,
                        "never": 2,
                        "steps": 6,
                        "steps_to_learn.value": 5,
                        "late_attending": 0,
                    },
                }
            },
            id="learned_late_never_or_forgotten",
        ),
    ],
)
def test_tables_computed_by_hand(given, expected):
    assert_answer(computed(*given), expected)
