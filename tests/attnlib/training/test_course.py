"""A course of training: the same bits whatever interrupts it, every checkpoint looked at once."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from attnlib.errors import TrainingDiverged
from attnlib.sealed import loads
from attnlib.training.checkpoint import Progress, discard_unsound, save_checkpoint
from attnlib.training.course import Course, run_course
from attnlib.training.evaluate import evaluate
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused, flip

COURSE = Course(steps=12, seed=3, checkpoints=(0, 4, 9, 12))


class Interrupted(Exception):
    pass


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
    return torch.cat([value.detach().flatten() for value in model.parameters()])


def run(folder, course=COURSE, *, visit=lambda step, model: None, loss=squared, **options):
    model = new_network()
    return model, run_course(model, batch_at, loss, course, folder, visit=visit, **options)


def test_what_an_update_draws_comes_from_seed_and_step_and_the_callers_random_state_is_untouched():
    drawn = []

    def loss(model, batch):
        drawn.append(torch.rand(4))
        return squared(model, batch)

    before = torch.random.get_rng_state()
    for seed in (3, 4):
        run(None, Course(steps=3, seed=seed), loss=loss)
    assert torch.equal(torch.random.get_rng_state(), before)
    run(None, Course(steps=3, seed=3, checkpoints=(0, 1, 2)), loss=loss, visit=lambda *_: torch.rand(7))
    assert torch.equal(torch.stack(drawn[:3]), torch.stack(drawn[6:]))
    assert len({tuple(values.tolist()) for values in drawn[:6]}) == 6


@pytest.mark.parametrize("stop", [0, 1, 4, 5, 9, 11])
def test_an_interrupted_course_ends_in_the_same_bits_and_looks_once_at_each_checkpoint(tmp_path, stop):
    def interrupt(step, steps, loss):
        if step == stop + 1:
            raise Interrupted

    def snapshot(step, model):
        assert not model.training
        snapshots.append((step, weights(model).tolist()))

    snapshots = []
    whole, records = run(None, visit=snapshot)
    expected, snapshots = snapshots, []
    with pytest.raises(Interrupted):
        run(tmp_path, visit=snapshot, report=interrupt, seconds_between_saves=0)
    resumed, resumed_records = run(tmp_path, visit=snapshot)
    assert torch.equal(weights(whole), weights(resumed))
    assert records == resumed_records
    assert snapshots == expected
    assert [step for step, _ in snapshots] == [0, 4, 9, 12]


def test_a_checkpoint_whose_visit_was_cut_short_is_visited_again_and_no_other(tmp_path):
    snapshots = []

    def snapshot(step, model):
        snapshots.append(step)
        if snapshots == [0, 4]:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(tmp_path, visit=snapshot)  # no state was saved: the resumed course makes all updates again
    model, _ = run(tmp_path, visit=snapshot)
    assert snapshots == [0, 4, 4, 9, 12]
    assert torch.equal(weights(model), weights(run(None)[0]))


def test_a_finished_course_is_read_not_run(tmp_path):
    def no_more(*_):
        raise AssertionError("a finished course must neither train nor look")

    done, records = run(tmp_path)
    again, same_records = run(tmp_path, loss=no_more, visit=no_more)
    assert torch.equal(weights(done), weights(again))
    assert records == same_records
    assert_refused(partial(run, tmp_path, replace(COURSE, seed=5)), "another course")


def kill_nine(folder, code, *words):
    """A process that trains into a folder, killed once it has saved a state there."""
    process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=Path(__file__).parents[3])
    patience = time.monotonic() + 60
    while not list(folder.glob("step-*.json")) and process.poll() is None and time.monotonic() < patience:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it must not have finished by itself"


@pytest.mark.slow
def test_kill_nine_and_resume_in_a_new_process(tmp_path):
    course = Course(steps=1000, seed=3, checkpoints=(500,))
    code = (
        "import sys, pathlib\nfrom tests.attnlib.training.test_course import Course, run\n"
        f"run(pathlib.Path(sys.argv[1]), {course!r}, seconds_between_saves=0.02)\n"
    )
    kill_nine(tmp_path, code, str(tmp_path))
    saved = max(loads(path.read_text())["step"] for path in tmp_path.glob("step-*.json"))
    assert 0 < saved < 1000
    resumed, records = run(tmp_path, course)
    whole, whole_records = run(None, course)
    assert torch.equal(weights(resumed), weights(whole))
    assert records == whole_records


def test_a_damaged_checkpoint_is_deleted_and_no_other(tmp_path):
    model = new_network()
    for step in (1, 2):
        save_checkpoint(tmp_path, model, torch.optim.Adam(model.parameters()), Progress(step, []))
    first, second = sorted(tmp_path.glob("*.safetensors"))
    flip(second)
    assert discard_unsound(tmp_path) == [second]
    assert {*tmp_path.glob("step-*")} == {first, first.with_suffix(".json")}


def test_quality_by_hand(monkeypatch):
    """Of a sample's two words the first is right, of another's one; of three words one has a logit of 2."""
    logits = torch.tensor([2.0, 0, 0]).expand(2, 2, 3)
    outputs, mask = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[True, True], [True, False]])
    trace = SimpleNamespace(logits=logits, target_outputs=outputs, target_mask=mask)
    monkeypatch.setattr("attnlib.training.evaluate.traces", lambda *_: [trace, trace])
    right, wrong = logits[0, 0].log_softmax(0)[:2].tolist()
    expected = {"loss": -(2 * right + wrong) / 3, "token_accuracy": 2 / 3, "exact_match": 1 / 2}
    assert evaluate(None, None) == pytest.approx(expected)


def test_parameters_without_gradient_stay():
    model = new_network()
    model[0].requires_grad_(False)
    before = [value.detach().clone() for value in model.parameters()]
    records = run_course(model, batch_at, squared, COURSE, None, visit=lambda *_: None)
    assert [own["step"] for own in records] == [*range(12)]
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert changed == [False, False, True, True]


def linear(model, batch):
    """A loss whose gradient is the same at every step: 1000 for each weight."""
    return 1_000 * sum(value.sum() for value in model.parameters())


def test_the_learning_rate_rises_over_the_warm_up_and_stays():
    """Adam's update on a constant gradient is the learning rate itself."""
    assert Course(6, 0).learning_rate == torch.optim.Adam([torch.zeros(1)]).defaults["lr"]
    seen, course = [], Course(6, 0, learning_rate=0.1, checkpoints=tuple(range(7)), warmup=4)
    one = nn.Linear(1, 1)
    run_course(one, batch_at, linear, course, None, visit=lambda *_: seen.append(one.weight.item()))
    moved = [before - after for before, after in pairwise(seen)]
    assert moved == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1], rel=1e-4)


@pytest.mark.parametrize(("clip", "expected"), [(None, 2_000.0), (1e6, 2_000.0), (0.5, 0.5)])
def test_the_gradient_is_clipped_at_its_norm_over_all_parameters(clip, expected):
    """Four weights, each with a gradient of 1000."""
    model = nn.Linear(3, 1)
    run_course(model, batch_at, linear, Course(steps=1, seed=0, clip=clip), None, visit=lambda *_: None)
    norm = torch.cat([value.grad.flatten() for value in model.parameters()]).norm().item()
    assert norm == pytest.approx(expected, rel=1e-4)


def test_a_loss_that_is_not_finite_names_step_and_seed():
    def loss(model, batch):
        bad = torch.equal(batch, batch_at(7))
        return squared(model, batch) * (float("nan") if bad else 1.0)

    with pytest.raises(TrainingDiverged, match=r"nan at step 7 with seed 3 .*lower the learning rate"):
        run(None, loss=loss)
