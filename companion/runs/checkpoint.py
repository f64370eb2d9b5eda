"""Checkpoints of a training: one file each, which knows its own checksum; the last two are kept."""

import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attnlib import sealed
from attnlib.errors import CorruptFile
from attnlib.files import atomic_path

log = logging.getLogger(__name__)

KEPT = 2
_PATTERN = "step-*.safetensors"
_MODEL = "model."  # in front of the names of the model's tensors
_OPTIMISER = "optimiser."


@dataclass(frozen=True)
class Progress:
    """How far a training has come."""

    step: int  #: number of updates made
    records: list[dict]  #: of the loss, along the way


def save_checkpoint(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress
) -> None:
    """Write ``step-N.safetensors``, then delete all checkpoints but the last two.

    Tensors that share memory, as tied weights do, are written once each.
    """
    tensors = {f"{_MODEL}{name}": value for name, value in model.state_dict().items()}
    for index, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"{_OPTIMISER}{index}.{name}"] = value
    metadata = {"step": str(progress.step), "records": json.dumps(progress.records)}
    with atomic_path(folder / f"step-{progress.step:08d}.safetensors") as temporary:
        sealed.save_file(tensors, temporary, metadata)
    for path in sorted(folder.glob(_PATTERN))[:-KEPT]:
        path.unlink()


def load_newest(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
    """Bring model and optimiser to the newest sound checkpoint; a damaged one is passed over and reported.

    Returns:
        The progress that the checkpoint holds, or step 0 if there is none.
    """
    for path in sorted(folder.glob(_PATTERN), reverse=True):
        try:
            tensors, progress = _read(path)
        except CorruptFile:
            log.warning("checkpoint %s is damaged; falling back to the one before", path.name)
            continue
        _restore(tensors, model, optimiser)
        return progress
    return Progress(0, [])


def discard_unsound(folder: Path) -> list[Path]:
    """Delete the damaged checkpoints of a folder, and report and return them.

    A damaged one that stayed would count among the newest when old ones are deleted, and push out a sound
    one.
    """
    deleted = []
    for path in sorted(folder.glob(_PATTERN)):
        try:
            _read(path)
        except CorruptFile:
            log.warning("checkpoint %s is damaged; it is deleted", path.name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            deleted.append(path)
    return deleted


def _read(path: Path) -> tuple[dict[str, Tensor], Progress]:
    """Read a checkpoint.

    Raises:
        CorruptFile: it is not as it was written.
    """
    tensors = sealed.load_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
        return tensors, Progress(int(metadata["step"]), json.loads(metadata["records"]))
    except (SafetensorError, OSError, TypeError, KeyError, ValueError) as error:
        raise CorruptFile(f"{path} is no checkpoint ({error!r})") from error


def _restore(tensors: dict[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    weights: dict[str, Tensor] = {}
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(_MODEL):
            weights[name.removeprefix(_MODEL)] = tensor
        else:
            _, index, field = name.split(".")
            states.setdefault(int(index), {})[field] = tensor
    model.load_state_dict(weights)
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
