"""What is dear to see is seen of a network where it was best, and nowhere else.

A checkpoint is chosen afterwards where the network was best, the earliest of equals, so that no other look
is ever asked. Every part of the data chooses for itself: the tables of training samples have the network
where it was best on these. Which looks those are is known in the end: until then the network is kept as it
was where it is best so far.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attnlib.files import atomic_path, write_json_atomic
from attnlib.recipes.qualities import CHOOSING

_NOTES = "qualities.json"
Notes = Mapping[int, Mapping[str, Mapping[str, float]]]  # by step and part, a number a measure and group


def keep_if_best(
    folder: Path, step: int, network: nn.Module, found: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> None:
    """Keep the network if on any part, by any measure, on any group that may choose, it is at its best.

    Kept are files in ``folder``, so that a killed run goes on alike; those that are best no longer go.

    Args:
        step: of the look; steps ascend, the last one may come again.
        found: by part, see :func:`~attnlib.recipes.qualities.qualities`.
    """
    own = {
        part: {f"{name}.{group}": groups[group] for name, groups in measures.items() for group in CHOOSING}
        for part, measures in found.items()
    }
    notes = _notes(folder) | {step: own}
    best = set().union(*_best(notes).values())
    if step in best:
        with atomic_path(_path(folder, step)) as temporary:
            state = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
            temporary.write_bytes(save(state))
    write_json_atomic(folder / _NOTES, {str(step): note for step, note in notes.items()})
    for earlier in notes.keys() - best:
        _path(folder, earlier).unlink(missing_ok=True)


def seen_where_best(
    folder: Path,
    network: nn.Module,
    steps: Sequence[int],
    see: Callable[[nn.Module, str], dict[str, Tensor]],
) -> dict[str, Tensor]:
    """What ``see`` finds of the network where it was best, checkpoints first, NaN at all other ``steps``.

    The network is in evaluation mode meanwhile, and afterwards what it was before.

    Args:
        see: of the network on one part, which is the part that it was best on; names of its own a part.
    """
    final = {name: value.clone() for name, value in network.state_dict().items()}
    rows: dict[str, Tensor] = {}
    network.eval()
    looks = [(part, step) for part, best in _best(_notes(folder)).items() for step in sorted(best)]
    for part, step in looks:
        network.load_state_dict(load_file(_path(folder, step)))
        for name, values in see(network, part).items():
            stacked = rows.setdefault(name, values.new_full((len(steps), *values.shape), torch.nan))
            stacked[list(steps).index(step)] = values
    network.load_state_dict(final)
    return rows


def _best(notes: Notes) -> dict[str, set[int]]:
    """By part the steps where some quality is highest, of equals the earliest."""
    steps = sorted(notes)
    return {
        part: {max(steps, key=lambda step: notes[step][part][name]) for name in names}
        for part, names in notes[steps[0]].items()
    }


def _notes(folder: Path) -> dict[int, dict[str, dict[str, float]]]:
    path = folder / _NOTES
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {int(step): note for step, note in found.items()}


def _path(folder: Path, step: int) -> Path:
    return folder / f"best-{step:08d}.safetensors"
