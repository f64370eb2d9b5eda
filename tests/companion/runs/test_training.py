"""Training is a function of the spec: bit-identical, whatever interrupts it."""

import re
from dataclasses import replace
from functools import partial
from unittest import TestCase
from unittest.mock import Mock

import pytest
import torch

from attnlib import sealed
from attnlib.errors import TrainingDiverged
from companion.runs.checkpoint import Progress, discard_unsound, load_newest, save_checkpoint
from companion.runs.encoder_decoder import new_model, prediction_loss, schedule_of, train
from companion.runs.evaluate import evaluate
from companion.runs.spec import ModelSpec
from companion.runs.store import load_task
from companion.runs.suite import _training
from tests.attnlib.refusals import assert_refused
from tests.companion.book.book_builders import ROOT
from tests.tables import beside

TINY = (("max_length", 5), ("min_length", 4), ("n_held_out", 20), ("n_train", 60))
SPEC = ModelSpec("one_to_one", "AED", 12, width=8, batch_size=16, task_options=TINY)


def task():
    return load_task(SPEC.task, SPEC.task_options)


def weights(model):
    return torch.cat([value.flatten() for value in model.state_dict().values()])


@pytest.mark.parametrize("stop", [1, 5, 11])
def test_an_interrupted_training_ends_in_the_same_bits(tmp_path, stop):
    whole, records = train(SPEC, task(), tmp_path / "whole")
    report = Mock(side_effect=[*[None] * stop, KeyboardInterrupt, *[None] * SPEC.steps])
    with pytest.raises(KeyboardInterrupt):
        train(SPEC, task(), tmp_path / "cut", report=report, seconds_between_saves=0)
    resumed, same = train(SPEC, task(), tmp_path / "cut", report=report)
    steps = [call.args[0] for call in report.call_args_list]
    assert steps == [*range(1, stop + 2), *range(stop + 1, 13)], "only the interrupted step is made again"
    assert torch.equal(weights(whole), weights(resumed))
    assert records == same


TWO_SEEDS = [replace(SPEC, seed=seed) for seed in (0, 1)]


def test_a_seed_draws_the_parameters():
    assert not torch.equal(*[weights(new_model(spec, task())) for spec in TWO_SEEDS])


def test_a_seed_draws_the_order_of_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("companion.runs.encoder_decoder.new_model", lambda _, task: new_model(SPEC, task))
    trained = [weights(train(spec, task(), tmp_path / str(spec.seed))[0]) for spec in TWO_SEEDS]
    assert not torch.equal(*trained)


def test_the_gradient_is_clipped(tmp_path):
    still, _ = train(replace(SPEC, steps=1, clip=1e-12), task(), tmp_path)
    torch.testing.assert_close(weights(still), weights(new_model(SPEC, task())), rtol=0, atol=1e-5)


def checkpoints(folder, *steps):
    """A model and its optimiser, saved at steps."""
    model = new_model(SPEC, task())
    optimiser = torch.optim.Adam(model.parameters())
    for step in steps:
        save_checkpoint(folder, model, optimiser, Progress(step, [{"step": step}]))
    return model, optimiser


def test_the_last_two_checkpoints_are_kept(tmp_path):
    checkpoints(tmp_path, 100, 200, 300)
    paths = [tmp_path / f"step-00000{step}.safetensors" for step in (200, 300)]
    assert sorted(tmp_path.iterdir()) == paths


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    trained = checkpoints(tmp_path, 100, 200, 300)
    paths = [tmp_path / f"step-00000{step}.safetensors" for step in (200, 300)]
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    with TestCase().assertLogs() as logs:
        assert load_newest(tmp_path, *trained) == Progress(200, [{"step": 200}])
    assert "step-00000300.safetensors is damaged" in logs.output[0]
    paths[0].write_bytes(b"")
    assert load_newest(tmp_path, *trained) == Progress(0, [])


def test_a_damaged_checkpoint_pushes_out_no_sound_one(tmp_path):
    trained = checkpoints(tmp_path, 100, 200, 300)
    paths = [tmp_path / f"step-00000{step}.safetensors" for step in (200, 300)]
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    paths[0].write_bytes(b"")
    assert discard_unsound(tmp_path) == paths
    checkpoints(tmp_path, 50, 60)
    assert load_newest(tmp_path, *trained).step == 60


def test_a_file_of_tensors_without_progress_is_no_checkpoint(tmp_path):
    trained = checkpoints(tmp_path, 100)
    sealed.save_file({"model.weight": torch.zeros(1)}, tmp_path / "step-00000200.safetensors")
    assert load_newest(tmp_path, *trained).step == 100


def test_a_loss_that_is_not_finite_stops_the_training(tmp_path):
    message = r"one_to_one AED-gru .*: loss is (nan|inf) at step \d+ with seed 0"
    with pytest.raises(TrainingDiverged, match=message):
        train(replace(SPEC, learning_rate=float("inf")), task(), tmp_path)


def test_the_learning_rate_by_hand():
    rates = [schedule_of(SPEC).learning_rate_at(step) for step in (0, 6, 12)]
    assert rates == pytest.approx([SPEC.learning_rate, SPEC.learning_rate / 2, 0])


def test_the_loss_by_hand():
    logits = torch.tensor([[[0.0, 0.0], [100.0, -100.0]]])
    mask = torch.tensor([[True, False]])  # padding does not count
    assert prediction_loss(logits, torch.tensor([[1, 1]]), mask).item() == pytest.approx(0.6931472)


@pytest.mark.slow
def test_training_learns(tmp_path):
    spec = replace(SPEC, steps=150, width=16, learning_rate=1e-2)
    trained, _ = train(spec, task(), tmp_path)
    before, after = (evaluate(model, task().held_out) for model in (new_model(spec, task()), trained))
    assert after["token_accuracy"] > before["token_accuracy"] + 0.2


@pytest.mark.slow
def test_training_keeps_some_fifty_records(tmp_path):
    spec = replace(SPEC, steps=150, width=16, learning_rate=1e-2)
    _, records = train(spec, task(), tmp_path)
    assert [record["step"] for record in records] == [*range(0, 150, 3), 149]


def test_the_notes_give_the_plan():
    notes = (ROOT / "book/reproduction_notes.md").read_text(encoding="utf-8")
    for name, task_name in beside(__file__, "notes").items():
        cells = re.search(rf"^\| {re.escape(name)} \| (.*) \| (.*) \|$", notes, re.M)
        for scale, cell in zip(("quick", "paper"), cells.groups(), strict=True):
            cut = scale == "quick" and task_name == "europarl_de_en"  # by its chapter
            if cell != "not run" and not cut:
                plan = _training(scale, task_name)
                assert cell.startswith(f"{plan['steps']:,} ({plan['seeds']})"), (name, scale)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(("one_to_one", "AED", 0), "steps is 0", id="no update")]
)
def test_model_spec_refuses(given, message):
    assert_refused(partial(ModelSpec, *given), message)
