"""One training loop for every procedure: the same final numbers, whatever interrupts it."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from attnlib.errors import BadInput, TrainingDiverged
from attnlib.sealed import loads, write_json_atomic
from companion.runs.checkpoint import Progress, load_newest, save_checkpoint

Report = Callable[[int, int, float], None]  # step, steps, loss

RECORDS = 50  # points of the loss curve kept


class Movable(Protocol):
    """What one update reads: a tensor, or a dataclass of tensors with a method ``to``."""

    def to(self, device: str) -> Self: ...


Batch = TypeVar("Batch", bound=Movable)
Visit = Callable[[int, nn.Module], None]  # updates made so far, the model in evaluation mode


@dataclass(frozen=True)
class Course:
    """How a network is trained: Adam, at its defaults as Snell et al. configured it, and where to look.

    Raises:
        BadInput: no steps, a negative warm-up, a clip that is not positive, or checkpoints that are not
            ascending numbers between 0 and ``steps``.
    """

    steps: int  #: number of updates
    seed: int  #: what is drawn during an update (dropout) is a function of this seed and the step alone
    learning_rate: float = 1e-3  #: Adam's
    #: numbers of updates after which the model is looked at, ascending; 0 is before training
    checkpoints: tuple[int, ...] = ()
    #: largest norm of the gradient of all parameters together; None leaves it as it is, as the paper does
    clip: float | None = None
    #: updates over which the learning rate rises from zero, linearly, to where it stays; none in the paper
    warmup: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise BadInput(f"a course of {self.steps} steps; expected at least 1")
        if self.warmup < 0 or not (self.clip is None or self.clip > 0):
            raise BadInput(
                f"warmup {self.warmup}, clip {self.clip}; expected at least 0, and above 0 or None"
            )
        if list(self.checkpoints) != sorted(set(self.checkpoints)):
            raise BadInput(f"checkpoints {self.checkpoints}; expected ascending steps, each once")
        if self.checkpoints and not 0 <= self.checkpoints[0] <= self.checkpoints[-1] <= self.steps:
            raise BadInput(f"checkpoints {self.checkpoints}; expected steps from 0 to {self.steps}")


def regular_checkpoints(steps: int, every: int) -> tuple[int, ...]:
    """0, every so many updates, and the last one.

    >>> regular_checkpoints(25, 10)
    (0, 10, 20, 25)
    """
    return (*range(0, steps, every), steps)


def run_course(
    model: nn.Module,
    batch_at: Callable[[int], Batch],
    loss: Callable[[nn.Module, Batch], Tensor],
    course: Course,
    folder: Path | None,
    *,
    visit: Visit,
    device: str = "cpu",
    report: Report | None = None,
    seconds_between_saves: float = 60.0,
) -> list[dict]:
    """Train ``model`` in place, or go on where an interrupted course left off; the outcome has the same bits.

    Args:
        model: its parameters are where the course starts; those that need no gradient stay as they are.
        batch_at: the batch of an update, a pure function of the step (0, 1, …): a resumed course asks for
            any step first.
        loss: a scalar to go down along; the model is in training mode.
        folder: for checkpoints and the list of visits made; ``None`` keeps nothing.
        visit: called once a checkpoint with (updates made, model in evaluation mode). It writes what it finds
            into files of its own, atomically: they outlast a kill, after which passed checkpoints are not
            visited again. Only a kill during a visit, or just after it, repeats that one.
        report: called after every update with (step, steps, loss).

    Returns:
        records {step, loss} along the way, the last one of the last update.

    Raises:
        BadInput: the folder holds another course.
        TrainingDiverged: the loss is not finite; names step and seed.
    """
    model.to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.Adam(trained, lr=course.learning_rate, fused=True)
    progress = Progress(0, []) if folder is None else _resume(folder, model, optimiser, course)
    visited = _visits_made(folder)
    saved = time.monotonic()
    # One device at most draws beside the CPU; the caller's random state is given back after every update.
    drawing = [] if torch.device(device).type == "cpu" else [device]
    model.train()
    for step in range(progress.step, course.steps + 1):
        if step in course.checkpoints and step not in visited:
            model.eval()
            visit(step, model)
            model.train()
            visited.append(step)
            if folder is not None:
                write_json_atomic(folder / "visits.json", visited)
        if step == course.steps:
            break
        with torch.random.fork_rng(devices=drawing):
            torch.manual_seed(_mixed(course.seed, step))
            value = _update(model, optimiser, batch_at(step).to(device), loss, course, step)
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"loss is {value} at step {step} with seed {course.seed} (learning rate "
                f"{course.learning_rate:g}); lower the learning rate"
            )
        if step % max(1, course.steps // RECORDS) == 0 or step == course.steps - 1:
            progress.records.append({"step": step, "loss": round(value, 6)})
        if report:
            report(step + 1, course.steps, value)
        last = step == course.steps - 1
        if folder is not None and (last or time.monotonic() - saved > seconds_between_saves):
            save_checkpoint(folder, model, optimiser, Progress(step + 1, progress.records))
            saved = time.monotonic()
    model.eval()
    return progress.records


def _mixed(seed: int, step: int) -> int:
    # One number of 32 bits from two: torch's CPU generator drops the upper half of what it is seeded with.
    return int(np.random.SeedSequence((seed, step)).generate_state(1)[0])


def _update(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    batch: Batch,
    loss: Callable[[nn.Module, Batch], Tensor],
    course: Course,
    step: int,
) -> float:
    if course.warmup:
        for group in optimiser.param_groups:
            group["lr"] = course.learning_rate * min(1.0, (step + 1) / course.warmup)
    optimiser.zero_grad(set_to_none=True)
    value = loss(model, batch)
    value.backward()
    if course.clip is not None:
        nn.utils.clip_grad_norm_(
            [parameter for parameter in model.parameters() if parameter.requires_grad], course.clip
        )
    optimiser.step()
    return value.item()


def _resume(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, course: Course) -> Progress:
    """Bring model and optimiser to where the course in ``folder`` was left; step 0 in a new folder."""
    path = folder / "course.json"
    here = json.loads(json.dumps(asdict(course)))
    if path.exists():
        there = loads(path.read_text(encoding="utf-8"))
        if there != here:
            raise BadInput(f"{folder} holds another course: {there}, not {here}; choose another folder")
    else:
        write_json_atomic(path, here)
    return load_newest(folder, model, optimiser)


def _visits_made(folder: Path | None) -> list[int]:
    path = None if folder is None else folder / "visits.json"
    return loads(path.read_text(encoding="utf-8")) if path and path.exists() else []
