"""The one training loop: Adam along a schedule, with the same final numbers whatever interrupts it."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from attnlib.errors import BadInput, TrainingDiverged
from attnlib.sealed import loads, write_json_atomic
from companion.runs.checkpoint import Progress, load_newest, save_checkpoint
from companion.runs.optimiser import Adam

RECORDS = 50  # points of the loss curve kept


class Movable(Protocol):
    """What one update reads: a tensor, or a dataclass of tensors with a method ``to``."""

    def to(self, device: str) -> Self: ...


Batch = TypeVar("Batch", bound=Movable)
Loss = Callable[[nn.Module, Batch], Tensor]
Report = Callable[[int, int, float], None]  # step, steps, loss
Visit = Callable[[int, nn.Module], None]  # updates made so far, the model in evaluation mode
Penalised = Callable[[str], bool]  # whether weight decay penalises the parameter of this name


@dataclass(frozen=True)
class Schedule:
    """How a network is trained: Adam, by default as Snell et al. configured it, and where to look.

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
    #: updates over which the learning rate rises linearly from zero; none in the paper
    warmup: int = 0
    #: how the learning rate falls afterwards: not at all, or along half a cosine down to zero
    decay: Literal["none", "cosine"] = "none"
    weight_decay: float = 0.0  #: L2 penalty added to the gradient

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise BadInput(f"a schedule of {self.steps} steps; expected at least 1")
        if self.warmup < 0:
            raise BadInput(f"warmup is {self.warmup}; it must be at least 0")
        if self.clip is not None and not self.clip > 0:
            raise BadInput(f"clip is {self.clip}; expected a number above 0, or None")
        if list(self.checkpoints) != sorted(set(self.checkpoints)):
            raise BadInput(f"checkpoints {self.checkpoints}; expected ascending steps, each once")
        if self.checkpoints and not 0 <= self.checkpoints[0] <= self.checkpoints[-1] <= self.steps:
            raise BadInput(f"checkpoints {self.checkpoints}; expected steps from 0 to {self.steps}")

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the update after ``step`` others."""
        rate = self.learning_rate
        if self.warmup:
            rate = rate * min(1.0, (step + 1) / self.warmup)
        if self.decay == "cosine":
            rate = rate * 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return rate


def regular_checkpoints(steps: int, every: int) -> tuple[int, ...]:
    """Return 0, every so many updates, and the last one.

    >>> regular_checkpoints(25, 10)
    (0, 10, 20, 25)
    """
    return (*range(0, steps, every), steps)


def train_network(
    model: nn.Module,
    batch_at: Callable[[int], Batch],
    loss: Loss,
    schedule: Schedule,
    folder: Path | None,
    *,
    visit: Visit | None = None,
    penalised: Penalised | None = None,
    device: str = "cpu",
    report: Report | None = None,
    seconds_between_saves: float = 60.0,
) -> list[dict]:
    """Train ``model`` in place, or resume an interrupted training; the outcome has the same bits.

    Args:
        model: its parameters are where the training starts; those that need no gradient stay as they are.
        batch_at: the batch of an update, a pure function of the step (0, 1, …): a resumed training asks for
            any step first.
        loss: a scalar to minimise; the model is in training mode.
        schedule: how many updates, how large, and when to look.
        folder: for checkpoints and the list of visits made; ``None`` keeps nothing.
        visit: called at each of the schedule's checkpoints with (updates made, model in evaluation mode). It
            writes what it sees into files, atomically: they outlast a kill, after which passed checkpoints
            are not visited again. Only a kill during a visit, or just after it, repeats that visit.
        penalised: which parameters the schedule's weight decay penalises, by name; all by default.
        device: where to train.
        report: called after every update with (step, steps, loss).
        seconds_between_saves: a checkpoint is written after so many seconds, and after the last update.

    Returns:
        Records {step, loss} along the way, the last one of the last update.

    Raises:
        BadInput: the folder holds a training by another schedule.
        TrainingDiverged: the loss is not finite; names step and seed.
    """
    model.to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = _parameter_groups(model, schedule.weight_decay, penalised)
    optimiser = Adam(groups, lr=schedule.learning_rate, fused=True)
    progress = Progress(0, [])
    if folder is not None:
        _require_same_schedule(folder, schedule)
        progress = load_newest(folder, model, optimiser)
    visited = _visits_made(folder)
    # The caller's random state is given back after every update: the CPU's, and that of the device.
    random_devices = [] if torch.device(device).type == "cpu" else [device]
    saved = time.monotonic()
    model.train()
    for step in range(progress.step, schedule.steps + 1):
        if visit is not None and step in schedule.checkpoints and step not in visited:
            model.eval()
            visit(step, model)
            model.train()
            visited.append(step)
            if folder is not None:
                write_json_atomic(folder / "visits.json", visited)
        if step == schedule.steps:
            break
        with torch.random.fork_rng(devices=random_devices):
            _seed_generators(_seed_of_update(schedule.seed, step), device)
            batch = batch_at(step).to(device)
            value = _update(model, trained, optimiser, batch, loss, schedule, step)
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"loss is {value} at step {step} with seed {schedule.seed} (learning rate "
                f"{schedule.learning_rate:g}); lower the learning rate or clip the gradient harder"
            )
        last = step == schedule.steps - 1
        if last or step % max(1, schedule.steps // RECORDS) == 0:
            progress.records.append({"step": step, "loss": round(value, 6)})
        if report is not None:
            report(step + 1, schedule.steps, value)
        if folder is not None and (last or time.monotonic() - saved > seconds_between_saves):
            save_checkpoint(folder, model, optimiser, Progress(step + 1, progress.records))
            saved = time.monotonic()
    model.eval()
    return progress.records


def _parameter_groups(
    model: nn.Module, weight_decay: float, penalised: Penalised | None
) -> list[dict[str, object]]:
    """Return groups of the trained parameters for the optimiser: those with weight decay, those without."""
    with_decay, without_decay = [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if penalised is None or penalised(name):
            with_decay.append(parameter)
        else:
            without_decay.append(parameter)
    groups = ((with_decay, weight_decay), (without_decay, 0.0))
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]


def _seed_generators(seed: int, device: str) -> None:
    """Seed what an update draws from, as ``torch.manual_seed`` does.

    On a CPU that function also notes its whole call stack, for devices that are never used. That takes half a
    millisecond, a twentieth of an update of a small network.
    """
    if torch.device(device).type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _seed_of_update(seed: int, step: int) -> int:
    # One number of 32 bits from two: torch's CPU generator drops the upper half of its seed.
    return int(np.random.SeedSequence((seed, step)).generate_state(1)[0])


def _update(
    model: nn.Module,
    trained: list[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    batch: Batch,
    loss: Loss,
    schedule: Schedule,
    step: int,
) -> float:
    """Make one update and return the loss before it."""
    for group in optimiser.param_groups:
        group["lr"] = schedule.learning_rate_at(step)
    optimiser.zero_grad(set_to_none=True)
    value = loss(model, batch)
    value.backward()
    if schedule.clip is not None:
        nn.utils.clip_grad_norm_(trained, schedule.clip)
    optimiser.step()
    return value.item()


def _require_same_schedule(folder: Path, schedule: Schedule) -> None:
    """Write the schedule into a new folder; raise BadInput if the folder holds another one."""
    path = folder / "schedule.json"
    expected = json.loads(json.dumps(asdict(schedule)))  # as it is read back
    if not path.exists():
        write_json_atomic(path, expected)
        return
    stored = loads(path.read_text(encoding="utf-8"))
    if stored != expected:
        raise BadInput(
            f"{folder} holds a training by another schedule: {stored}, not {expected}; choose another folder"
        )


def _visits_made(folder: Path | None) -> list[int]:
    if folder is None or not (folder / "visits.json").exists():
        return []
    return loads((folder / "visits.json").read_text(encoding="utf-8"))
