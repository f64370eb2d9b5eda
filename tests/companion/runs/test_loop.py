"""The training loop: the same bits whatever interrupts it, every checkpoint visited once."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import nn

from attnlib.errors import BadInput, TrainingDiverged
from companion.runs.checkpoint import Progress, discard_unsound, save_checkpoint
from companion.runs.loop import Schedule, _seed_of_update, train_network
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused, flip

SCHEDULE = Schedule(steps=12, seed=3, checkpoints=(0, 4, 9, 12))


def new_network():
    """Dropout, so that every update draws; its weights always start from the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))


def batch_at(step):
    return torch.randn(5, 3, generator=generator(step))


def squared(model, batch):
    return (model(batch)[:, 0] - batch.sum(1)).square().mean()


def weights(model):
    return torch.cat([value.detach().flatten() for value in model.parameters()]).tolist()


def run(folder, schedule=SCHEDULE, *, visit=lambda step, model: None, loss=squared, **options):
    """The weights that a training ends in, and its records."""
    model = new_network()
    records = train_network(model, batch_at, loss, schedule, folder, visit=visit, **options)
    return weights(model), records


def test_an_update_draws_what_torch_draws_from_its_seed():
    drawn = []

    def loss(model, batch):
        drawn.append(torch.rand(4))
        return squared(model, batch)

    run(None, Schedule(steps=2, seed=3), loss=loss)
    for step, values in enumerate(drawn):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_seed_of_update(3, step))
            batch_at(step)
            assert values.tolist() == torch.rand(4).tolist()


def test_what_an_update_draws_comes_from_seed_with_step():
    drawn = []

    def loss(model, batch):
        drawn.append(torch.rand(4))
        return squared(model, batch)

    for seed in (3, 4):
        run(None, Schedule(steps=3, seed=seed), loss=loss)
    run(None, Schedule(steps=3, seed=3, checkpoints=(0, 1, 2)), loss=loss, visit=lambda *_: torch.rand(7))
    assert torch.equal(torch.stack(drawn[:3]), torch.stack(drawn[6:]))
    assert len({tuple(values.tolist()) for values in drawn[:6]}) == 6


def test_training_leaves_the_callers_random_state_untouched():
    before = torch.random.get_rng_state()
    for seed in (3, 4):
        run(None, Schedule(steps=3, seed=seed))
    assert torch.equal(torch.random.get_rng_state(), before)


class Snapshots(list):
    """The weights at each checkpoint that a training visits."""

    def __call__(self, step, model):
        assert not model.training
        self.append((step, weights(model)))


def interrupted_run(folder, stop, *, visit):
    """The weights and records of a training that ends after some updates and is resumed from its folder."""

    def interrupt(step, steps, loss):
        if step == stop + 1:
            raise SystemExit

    with pytest.raises(SystemExit):
        run(folder, visit=visit, report=interrupt, seconds_between_saves=0)
    return run(folder, visit=visit)


INTERRUPTED = pytest.mark.parametrize("stop", [0, 1, 4, 5, 9, 11])


@INTERRUPTED
def test_an_interrupted_training_ends_in_the_same_bits(tmp_path, stop):
    assert interrupted_run(tmp_path, stop, visit=Snapshots()) == run(None, visit=Snapshots())


@INTERRUPTED
def test_an_interrupted_training_looks_once_at_each_checkpoint(tmp_path, stop):
    snapshots, expected = Snapshots(), Snapshots()
    run(None, visit=expected)
    interrupted_run(tmp_path, stop, visit=snapshots)
    assert snapshots == expected
    assert [step for step, _ in snapshots] == [0, 4, 9, 12]


def test_only_a_visit_that_was_cut_short_is_made_again(tmp_path):
    snapshots = []

    def snapshot(step, model):
        snapshots.append(step)
        if snapshots == [0, 4]:
            raise SystemExit

    with pytest.raises(SystemExit):
        run(tmp_path, visit=snapshot)  # no state was saved: the resumed training makes all updates again
    assert run(tmp_path, visit=snapshot) == run(None)
    assert snapshots == [0, 4, 4, 9, 12]


def test_a_finished_training_is_read_not_run(tmp_path):
    done = run(tmp_path)
    assert run(tmp_path, loss=None, visit=None) == done  # it neither trains nor looks
    assert_refused(partial(run, tmp_path, replace(SCHEDULE, seed=5)), "another schedule")


def test_only_a_damaged_checkpoint_is_deleted(tmp_path):
    model = new_network()
    for step in (1, 2):
        save_checkpoint(tmp_path, model, torch.optim.Adam(model.parameters()), Progress(step, []))
    first, second = sorted(tmp_path.glob("*.safetensors"))
    flip(second)
    assert discard_unsound(tmp_path) == [second]
    assert list(tmp_path.iterdir()) == [first]


def test_parameters_without_gradient_stay():
    model = new_network()
    model[0].requires_grad_(False)
    before = [value.detach().clone() for value in model.parameters()]
    records = train_network(model, batch_at, squared, SCHEDULE, None, visit=lambda *_: None)
    assert [record["step"] for record in records] == [*range(12)]
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert changed == [False, False, True, True]


def linear(model, batch):
    """A loss whose gradient is the same at every step: 1000 for each weight."""
    return 1_000 * sum(value.sum() for value in model.parameters())


def test_the_learning_rate_stays_once_it_has_risen():
    """Adam's update on a constant gradient is the learning rate itself."""
    assert Schedule(6, 0).learning_rate == torch.optim.Adam([torch.zeros(1)]).defaults["lr"]
    seen, schedule = [], Schedule(6, 0, learning_rate=0.1, checkpoints=tuple(range(7)), warmup=4)
    network = nn.Linear(1, 1)
    train_network(
        network, batch_at, linear, schedule, None, visit=lambda *_: seen.append(network.weight.item())
    )
    moved = [before - after for before, after in pairwise(seen)]
    assert moved == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1], rel=1e-4)


@pytest.mark.parametrize(("clip", "expected"), [(None, 2_000.0), (1e6, 2_000.0), (0.5, 0.5)])
def test_the_gradient_is_clipped_at_its_norm_over_all_parameters(clip, expected):
    """Four weights, each with a gradient of 1000."""
    model = nn.Linear(3, 1)
    train_network(model, batch_at, linear, Schedule(steps=1, seed=0, clip=clip), None, visit=lambda *_: None)
    norm = torch.cat([value.grad.flatten() for value in model.parameters()]).norm().item()
    assert norm == pytest.approx(expected, rel=1e-4)


def test_a_loss_that_is_not_finite_is_named_with_its_step():
    def loss(model, batch):
        bad = torch.equal(batch, batch_at(7))
        return squared(model, batch) * (float("nan") if bad else 1.0)

    message = "nan at step 7 with seed 3 … lower the learning rate"
    assert_refused(lambda: run(None, loss=loss), message, TrainingDiverged)


def test_the_learning_rate_falls_along_half_a_cosine():
    schedule = Schedule(steps=12, seed=0, learning_rate=0.5, decay="cosine")
    rates = [schedule.learning_rate_at(step) for step in (0, 6, 12)]
    assert rates == pytest.approx([0.5, 0.25, 0.0])


def test_weight_decay_pulls_weights_to_zero():
    """The gradient is that of the penalty alone, and Adam's first update is the learning rate."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 3.0)
    schedule = Schedule(steps=1, seed=0, learning_rate=0.1, weight_decay=1e-2)
    train_network(model, batch_at, lambda model, _: 0 * model.weight.sum(), schedule, None)
    assert model.weight.item() == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"steps": 0}, "0 steps", id="no steps"),
        pytest.param({"checkpoints": (3, 1)}, "ascending", id="order of checkpoints"),
        pytest.param({"checkpoints": (1, 1)}, "each once", id="a checkpoint twice"),
        pytest.param({"checkpoints": (0, 6)}, "from 0 to 5", id="a checkpoint past the end"),
        pytest.param({"checkpoints": (-1,)}, "from 0 to 5", id="a checkpoint before the start"),
        pytest.param({"warmup": -1}, "warmup is -1", id="warmup"),
        pytest.param({"clip": 0.0}, "clip is 0.0", id="clip of zero"),
        pytest.param({"clip": -1.0}, "clip is -1.0", id="negative clip"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        Schedule(**{"steps": 5, "seed": 0} | settings)


def test_weight_decay_penalises_the_parameters_that_are_named():
    def without_gradient(model, batch):
        return 0 * squared(model, batch)

    model, untrained = new_network(), new_network()
    schedule = Schedule(steps=3, seed=0, weight_decay=0.1)
    train_network(
        model, batch_at, without_gradient, schedule, None, penalised=lambda name: name == "0.weight"
    )
    changed = {
        name
        for name, value in model.state_dict().items()
        if not torch.equal(value, untrained.state_dict()[name])
    }
    assert changed == {"0.weight"}


def test_a_training_with_some_parameters_penalised_is_resumed_to_the_same_bits(tmp_path):
    schedule = replace(SCHEDULE, weight_decay=0.1)

    def first_layer(name):
        return name.startswith("0.")

    def stopped(step, model):
        if step == 9:
            raise KeyboardInterrupt

    expected, _ = run(tmp_path / "whole", schedule, penalised=first_layer)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "twice", schedule, visit=stopped, penalised=first_layer, seconds_between_saves=0)
    resumed, _ = run(tmp_path / "twice", schedule, penalised=first_layer)
    assert resumed == expected
