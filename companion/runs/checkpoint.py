"""Checkpoints in safetensors: written whole, verified by checksum, the last two kept."""

import hashlib
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from attnlib.errors import CorruptFile
from attnlib.files import atomic_path
from attnlib.sealed import loads, write_json_atomic

log = logging.getLogger(__name__)
KEPT = 2


@dataclass(frozen=True)
class Progress:
    """How far a training has come: the number of updates made and the records along the way."""

    step: int
    records: list[dict]


def save_checkpoint(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress
) -> None:
    """Write ``step-N.safetensors`` and its checksum, then drop all but the last two."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": value for name, value in state.items()}
    content = save(_apart(tensors))
    path = folder / f"step-{progress.step:08d}.safetensors"
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    # The side file is written last: a checkpoint without one never counts.
    write_json_atomic(
        path.with_suffix(".json"),
        {"sha256": hashlib.sha256(content).hexdigest(), "step": progress.step, "records": progress.records},
    )
    for old in sorted(folder.glob("step-*.safetensors"))[:-KEPT]:
        old.with_suffix(".json").unlink(missing_ok=True)
        old.unlink()


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, none sharing memory with another, such as tied weights do."""
    apart: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.contiguous().cpu()
        if tensor.untyped_storage().data_ptr() in memory:
            tensor = tensor.clone()
        memory.add(tensor.untyped_storage().data_ptr())
        apart[name] = tensor
    return apart


def load_newest(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
    """Bring model and optimiser to the newest sound checkpoint; a damaged one is passed over and reported.

    Returns:
        the progress it holds, or step 0 when there is none.
    """
    for path in sorted(folder.glob("step-*.safetensors"), reverse=True):
        if (progress := _sound(path)) is not None:
            _restore(load(path.read_bytes()), model, optimiser)
            return progress
        log.warning("checkpoint %s is corrupt or incomplete; falling back to the one before", path.name)
    return Progress(0, [])


def _restore(tensors: dict[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name in [name for name in tensors if name.startswith("optimiser.")]:
        _, index, field = name.split(".")
        state.setdefault(int(index), {})[field] = tensors.pop(name)
    model.load_state_dict({name.removeprefix("model."): value for name, value in tensors.items()})
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def discard_unsound(folder: Path) -> list[Path]:
    """Delete the damaged or incomplete checkpoints of a folder, say so, and return them.

    One that stayed would count among the newest when old ones are dropped, and push a sound one out.
    """
    deleted = []
    for path in sorted(folder.glob("step-*.safetensors")):
        if _sound(path) is None:
            log.warning("checkpoint %s is corrupt or incomplete; going on from the one before", path.name)
            path.with_suffix(".json").unlink(missing_ok=True)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            deleted.append(path)
    return deleted


def _sound(path: Path) -> Progress | None:
    """How far a checkpoint is; None where it is not as it was written, or its side file is not there."""
    try:
        side = loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        whole = side["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        named = path.stem == f"step-{side['step']:08d}"
        return Progress(side["step"], list(side["records"])) if whole and named else None
    except (OSError, CorruptFile, ValueError, KeyError, TypeError):
        return None
