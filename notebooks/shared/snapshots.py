"""What a procedure sees at its checkpoints, kept in files so that a killed run does not look twice."""

from pathlib import Path

import torch
from torch import Tensor

from attnlib.errors import CorruptFile
from attnlib.files import atomic_path
from attnlib.sealed import load_file, save

Tensors = dict[str, Tensor]


def save_snapshot(folder: Path, step: int, tensors: Tensors) -> None:
    """Write what was seen after ``step`` updates; the file appears whole or not at all."""
    with atomic_path(_path(folder, step)) as temporary:
        temporary.write_bytes(save({name: value.cpu().contiguous() for name, value in tensors.items()}))


def stacked_snapshots(folder: Path, steps: tuple[int, ...]) -> Tensors:
    """All snapshots on top of each other, checkpoints first; ``steps`` among them."""
    missing = [step for step in steps if not _path(folder, step).is_file()]
    if missing:
        raise CorruptFile(
            f"{folder} lacks the snapshots at steps {missing}; delete the folder, and it starts anew"
        )
    snapshots = [load_file(_path(folder, step)) for step in steps]
    return {"steps": torch.tensor(steps)} | {
        name: torch.stack([snapshot[name] for snapshot in snapshots]) for name in snapshots[0]
    }


def _path(folder: Path, step: int) -> Path:
    return folder / f"look-{step:08d}.safetensors"
