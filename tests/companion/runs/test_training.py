"""Training is a function of the spec: bit-identical, whatever interrupts it."""

import platform
import re
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch

from attnlib.errors import TrainingDiverged
from companion.runs.checkpoint import Progress, discard_unsound, load_newest, save_checkpoint
from companion.runs.evaluate import evaluate
from companion.runs.loop import learning_rate_at, new_model, prediction_loss, train
from companion.runs.spec import ModelSpec
from companion.runs.store import load_task
from companion.runs.suite import _training
from tests.companion.book.book_builders import ROOT, output_of
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
        train(SPEC, task(), tmp_path / "cut", report=report, seconds_between_checkpoints=0)
    resumed, same = train(SPEC, task(), tmp_path / "cut", report=report)
    steps = [call.args[0] for call in report.call_args_list]
    assert steps == [*range(1, stop + 2), *range(stop + 1, 13)], "only the interrupted step is made again"
    assert torch.equal(weights(whole), weights(resumed))
    assert records == same


def test_a_seed_draws_the_parameters_and_the_order_of_batches(tmp_path, monkeypatch):
    specs = [replace(SPEC, seed=seed) for seed in (0, 1)]
    drawn = [weights(new_model(spec, task())) for spec in specs]
    assert not torch.equal(*drawn)
    monkeypatch.setattr("companion.runs.loop.new_model", lambda _, task: new_model(SPEC, task))
    assert not torch.equal(*(weights(train(s, task(), tmp_path / str(s.seed))[0]) for s in specs))


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


@pytest.mark.parametrize("damaged", [b"cut", b"", b"{}", b"not json", None])
def test_a_damaged_checkpoint_counts_for_nothing(tmp_path, caplog, damaged):
    """It falls back to the one before, and pushes out no sound one."""
    trained = checkpoints(tmp_path, 100, 200, 300)
    names = [f"step-00000{step}.safetensors" for step in (200, 300)]
    assert sorted(path.name for path in tmp_path.glob("*.safetensors")) == names
    newest = (tmp_path / names[1]).with_suffix(".safetensors" if damaged == b"cut" else ".json")
    newest.unlink() if damaged is None else newest.write_bytes(damaged)
    assert load_newest(tmp_path, *trained) == Progress(200, [{"step": 200}])
    assert "step-00000300.safetensors is corrupt or incomplete" in caplog.text
    (tmp_path / names[0]).write_bytes(b"cut")
    assert load_newest(tmp_path, *trained) == Progress(0, [])
    assert [path.name for path in discard_unsound(tmp_path)] == names
    checkpoints(tmp_path, 50, 60)
    assert load_newest(tmp_path, *trained).step == 60


def test_a_loss_that_is_not_finite_stops_with_step_seed_and_setting(tmp_path):
    told = r"loss is (nan|inf) at step \d+ with seed 0 \(one_to_one AED-gru"
    with pytest.raises(TrainingDiverged, match=told):
        train(replace(SPEC, learning_rate=float("inf")), task(), tmp_path)


def test_learning_rate_and_loss_by_hand():
    rates = [learning_rate_at(step, SPEC) for step in (0, 6, 12)]
    assert rates == pytest.approx([SPEC.learning_rate, SPEC.learning_rate / 2, 0])
    logits = torch.tensor([[[0.0, 0.0], [100.0, -100.0]]])
    mask = torch.tensor([[True, False]])  # padding does not count
    assert prediction_loss(logits, torch.tensor([[1, 1]]), mask).item() == pytest.approx(0.6931472)


@pytest.mark.slow
def test_training_learns_and_keeps_some_fifty_records(tmp_path):
    spec = replace(SPEC, steps=150, width=16, learning_rate=1e-2)
    trained, records = train(spec, task(), tmp_path)
    before, after = (evaluate(model, task().held_out) for model in (new_model(spec, task()), trained))
    assert after["token_accuracy"] > before["token_accuracy"] + 0.2
    assert [record["step"] for record in records] == [*range(0, 150, 3), 149]


COUNT = """
import resource
import torch
from companion.runs.command import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(2**25)  # glibc maps 128 MiB, or cuts them off the end of its heap when freed
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
print(keep_freed_memory())
faults()  # the memory that is then kept
print(faults() < given_back / 10)
"""


@pytest.mark.slow
def test_a_process_that_keeps_its_memory_gets_no_new_pages():
    told, fewer = output_of([sys.executable, "-c", COUNT], ROOT).split()
    glibc = platform.libc_ver()[0] == "glibc"
    assert told == str(glibc)
    assert fewer == "True" or not glibc


def test_the_notes_give_the_updates_and_seeds_of_the_plan():
    notes = (ROOT / "book/reproduction_notes.md").read_text(encoding="utf-8")
    for name, task_name in beside(__file__, "notes").items():
        cells = re.search(rf"^\| {re.escape(name)} \| (.*) \| (.*) \|$", notes, re.M)
        for scale, cell in zip(("quick", "paper"), cells.groups(), strict=True):
            cut = scale == "quick" and task_name == "europarl_de_en"  # by its chapter
            if cell != "not run" and not cut:
                own = _training(scale, task_name)
                assert cell.startswith(f"{own['steps']:,} ({own['seeds']})"), (name, scale)
