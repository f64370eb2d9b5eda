"""Interventions while attention is learned: what they leave alone, on tiny networks, and pairs by hand."""

import pytest
import torch

from attnlib.errors import BadInput
from companion.results.frames import Table
from companion.runs.columns import NETWORK
from companion.runs.identity import run_id
from companion.runs.procedure import RunSpec
from notebooks.learn.steered_attention import experiment
from notebooks.learn.steered_attention.experiment import GROUP, OUTCOME
from notebooks.learn.steered_attention.trainings import steered_copying as steered
from notebooks.shared.trainings import permutation_copying as copying
from tests.notebooks.figure_builders import tiny

TINY = {"length": 4, "width": 8, "batch_size": 8, "held_out": 8, "steps": 3, "every": 1, "seed": 3}


def recorded(folder, **settings):
    return steered.record(steered.Settings(**TINY, **settings), folder)


def left_alone(folder):
    return copying.record(copying.Settings(**TINY), folder)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="nothing is done"),
        pytest.param({"push": "toward", "push_size": 0.0}, id="a push of nothing"),
        pytest.param({"push": "anywhere", "push_for": 0}, id="a push for no update"),
        pytest.param({"freeze": "words", "freeze_for": 0}, id="frozen for no update"),
    ],
)
def test_a_network_left_alone_has_the_bits_of_the_training_that_knows_no_intervention(tmp_path, settings):
    alone, same = left_alone(tmp_path / "alone"), recorded(tmp_path / "same", **settings)
    assert {name: values.tolist() for name, values in same.items()} == {
        name: values.tolist() for name, values in alone.items()
    }


@pytest.mark.parametrize("settings", [{"push": "away"}, {"freeze": "readout"}, {"gold": True}])
def test_an_intervention_changes_the_network(tmp_path, settings):
    alone, changed = left_alone(tmp_path / "alone"), recorded(tmp_path / "changed", **settings)
    assert alone["loss"][-1] != changed["loss"][-1]


def update(model, **settings):
    """Make one update as the training does, and return the names of the parameters that moved."""
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser = torch.optim.Adam(model.parameters())
    batch = steered.batch_of_update(steered.Settings(**TINY, **settings), 0)
    steered.steered_loss(model, batch).backward()
    optimiser.step()
    return {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}


READOUT = {
    f"{module}.{kind}" for module in ("context_map", "hidden", "readout") for kind in ("weight", "bias")
}
QUERIES = {"queries.weight", "queries.bias"}


@pytest.mark.parametrize(
    ("freeze", "still"), [("nothing", set()), ("readout", READOUT), ("attention", QUERIES)]
)
def test_what_is_frozen_does_not_move(freeze, still):
    model = steered.new_network(steered.Settings(**TINY))
    names = {name for name, _ in model.named_parameters()}
    assert update(model, freeze=freeze) == names - still


def test_queries_alone_learn_while_words_are_frozen():
    assert update(steered.new_network(steered.Settings(**TINY)), freeze="words") == QUERIES


def test_readout_with_queries_learns_while_states_are_frozen():
    assert update(steered.new_network(steered.Settings(**TINY)), freeze="states") == QUERIES | READOUT


def test_what_was_frozen_learns_afterwards():
    model = steered.new_network(steered.Settings(**TINY))
    update(model, freeze="words")
    assert update(model) > QUERIES


def test_gold_attention_is_exactly_at_the_due_positions():
    settings = steered.Settings(**TINY, gold=True, order="permuted")
    batch = steered.batch_of_update(settings, 0).sentences
    attention = steered.new_network(settings)(batch).attention[:, 0]  # (batch, target, source)
    words = torch.einsum("bts,bs->bt", attention, batch.source.float())
    assert torch.equal(words, batch.target.float())


def test_held_attention_is_uniform():
    settings = steered.Settings(**TINY)
    batch = steered.batch_of_update(settings, 0).sentences
    attention = steered.new_network(settings)(batch, held=True).attention
    assert torch.equal(attention, torch.full_like(attention, 1 / 4))


def bias_of(push, samples=1000):
    batch = copying.copy_batch(torch.arange(4).expand(samples, -1), 4)
    return steered.pushed(push, 2.0, batch, torch.Generator().manual_seed(0))  # (batch, target, source)


@pytest.mark.parametrize(("push", "size"), [("toward", 2.0), ("away", -2.0)])
def test_a_push_is_at_due_positions_alone(push, size):
    assert torch.equal(bias_of(push), size * torch.eye(4).expand(1000, -1, -1))


@pytest.mark.parametrize(("push", "chance"), [("elsewhere", 0), ("anywhere", 1 / 4)])
def test_a_push_to_a_drawn_position_is_at_the_due_one_as_often_as_said(push, chance):
    bias = bias_of(push)
    at_due = bias.diagonal(dim1=1, dim2=2) / 2
    assert torch.equal(bias.sum(dim=-1), torch.full((1000, 4), 2.0))
    assert at_due.mean().item() == pytest.approx(chance, abs=0.03)


def test_attention_is_pushed_in_the_updates_that_were_asked_for():
    settings = steered.Settings(**TINY, push="toward", push_from=4, push_for=2)
    assert [step for step in range(9) if steered.batch_of_update(settings, step).bias is not None] == [4, 5]


def test_something_is_frozen_in_the_updates_that_were_asked_for():
    settings = steered.Settings(**TINY, freeze="states", freeze_from=2, freeze_for=3)
    frozen = [settings.frozen_at(step) for step in range(7)]
    assert frozen == 2 * ["nothing"] + 3 * ["states"] + 2 * ["nothing"]


def test_whatever_is_frozen_from_the_start_is_frozen_later_as_well():
    runs = [
        measurement.spec.resolved
        for measurement in experiment.measurements(tiny("steered_attention", freeze_from=3))
    ]
    begins = {(run.freeze, run.freeze_from) for run in runs if run.freeze != "nothing"}
    assert begins == {(freeze, start) for freeze in experiment.FROZEN for start in (0, 3)}


def test_gold_attention_cannot_be_pushed():
    with pytest.raises(BadInput, match="gold"):
        steered.Settings(gold=True, push="toward")


def test_what_is_done_to_a_network_is_part_of_its_id():
    specs = {
        run_id(RunSpec.of("steered_copying", **settings))
        for settings in ({}, {"push": "away"}, {"gold": True})
    }
    assert len(specs) == 3


def network(intervention, seed, *, drawn, steps=50, kind="permutation"):
    numbers = dict.fromkeys(OUTCOME, 0.0) | {"drawn": drawn, "steps_to_learn": steps, "reaches": True}
    return {"kind": kind, "intervention": intervention, "seed": seed} | numbers


def networks(*rows):
    return Table.of(rows, GROUP | {"seed": NETWORK["seed"]} | OUTCOME, "a trained network")


PUSHED = networks(
    network("alone", 0, drawn=True, steps=40),
    network("alone", 1, drawn=False, steps=80),
    network("toward", 0, drawn=True),
    network("toward", 1, drawn=True),
    network("away", 0, drawn=True),
    network("away", 1, drawn=False),
    network("gold", 0, drawn=True, steps=10),
    network("gold", 1, drawn=True, steps=40),
)


def test_a_push_counts_as_against_where_it_is_to_the_other_side():
    pairs = experiment.paired_sides(PUSHED).query("pair == 'against'").records()
    assert [(pair["seed"], pair["turned"]) for pair in pairs] == [(1, True), (0, False)]


def test_the_time_with_attention_given_is_a_share_of_the_same_seeds_time():
    shares = experiment.shares_of_time(PUSHED).frame["share_of_time"]
    assert shares.tolist() == [10 / 40, 40 / 80]


def test_a_network_that_never_learns_counts_with_all_updates():
    course = {
        "steps": [0, 2, 4],
        "accuracy": [0.1, 0.2, 0.3],
        "attention_right": [0.25, 0.2, 0.1],
        "attention_accuracy": [0.0, 0.1, 0.6],
        "probe_agreement": [0.0, 0.5, 0.6],
        "probe_right": [0.1, 0.1, 0.2],
    }
    outcome = experiment.outcome(course, length=4)
    assert (outcome["steps_to_learn"], outcome["reaches"]) == (4, False)
    assert (outcome["known"], outcome["sure"], outcome["there"], outcome["drawn"]) == (2, None, 4, False)
