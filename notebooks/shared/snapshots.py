"""What a procedure sees at its checkpoints, kept in files so that a killed run does not look twice."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attnlib.errors import CorruptFile
from attnlib.files import atomic_path
from attnlib.probes.agreement import halves
from attnlib.sealed import load_file, loads, save, write_json_atomic
from notebooks.shared.bleu import bleu

Tensors = dict[str, Tensor]


def save_snapshot(folder: Path, step: int, tensors: Tensors, kind: str = "look") -> None:
    """Write what was seen after ``step`` updates; the file appears whole or not at all."""
    with atomic_path(_path(folder, step, kind)) as temporary:
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


def _path(folder: Path, step: int, kind: str = "look") -> Path:
    return folder / f"{kind}-{step:08d}.safetensors"


# What is costly to see is seen of a network where it was best, the earliest of equals, and nowhere else.
# Every part of the data chooses for itself. Which snapshots those are is known in the end: until then the
# network is kept as it was where it is best so far.

# The samples that quality is taken of. A checkpoint is chosen on all, the paper's way, or on half of them.
GROUPS = ("all", "selecting", "reporting")
CHOOSING = ("all", "selecting")


def qualities(snapshot: Mapping[str, Tensor], part: str) -> dict[str, dict[str, float]]:
    """Accuracy, and for translations BLEU, in percent, of one part of a checkpoint, by :data:`GROUPS`.

    From ``<part>.correct`` of texts; of sentence pairs from ``<part>.right``, ``<part>.target_mask`` and,
    where sentences were written, ``<part>.bleu_counts``. Accuracy is that of texts, or of words under
    teacher forcing.
    """
    text = f"{part}.correct" in snapshot
    right = snapshot[f"{part}.correct" if text else f"{part}.right"].double()
    words = torch.ones_like(right) if text else snapshot[f"{part}.target_mask"].sum(1)  # a text has one label
    members = _members(len(right))
    by_measure = {
        "accuracy": {
            n: 100 * float(right[of_group].sum() / words[of_group].sum()) for n, of_group in members.items()
        }
    }
    if f"{part}.bleu_counts" in snapshot:
        counts = snapshot[f"{part}.bleu_counts"].cpu().numpy()
        by_measure["bleu"] = {name: bleu(counts[group.numpy()]) for name, group in members.items()}
    return by_measure


def _members(samples: int) -> dict[str, Bool[Tensor, " samples"]]:
    selects = torch.zeros(samples, dtype=torch.bool)
    selects[halves(samples)[0]] = True
    return dict(zip(GROUPS, (torch.ones_like(selects), selects, ~selects), strict=True))


_NOTES, _WEIGHTS = "qualities.json", "best"
Notes = Mapping[int, Mapping[str, Mapping[str, float]]]  # by step and part, a number a measure and group


def keep_if_best(
    folder: Path, step: int, network: nn.Module, measured: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> None:
    """Keep the network if on any part, by any measure, on any group that may choose, it is at its best.

    Kept are files in ``folder``, so that a killed run goes on alike; those that are best no longer go. Steps
    ascend, the last one may come again.
    """
    line = {
        part: {f"{name}.{group}": groups[group] for name, groups in measures.items() for group in CHOOSING}
        for part, measures in measured.items()
    }
    notes = _notes(folder) | {step: line}
    best = set().union(*_best(notes).values())
    if step in best:
        save_snapshot(folder, step, network.state_dict(), _WEIGHTS)
    write_json_atomic(folder / _NOTES, {str(step): note for step, note in notes.items()})
    for earlier in notes.keys() - best:
        _path(folder, earlier, _WEIGHTS).unlink(missing_ok=True)


def seen_where_best(
    folder: Path, network: nn.Module, steps: Sequence[int], see: Callable[[nn.Module, str], Tensors]
) -> Tensors:
    """What ``see`` finds of the network on a part, where it was best on this: NaN at all other ``steps``.

    The network is in evaluation mode meanwhile, and afterwards what it was before.
    """
    final = {name: value.clone() for name, value in network.state_dict().items()}
    rows: dict[str, Tensor] = {}
    network.eval()
    snapshots = [(part, step) for part, best in _best(_notes(folder)).items() for step in sorted(best)]
    for part, step in snapshots:
        network.load_state_dict(load_file(_path(folder, step, _WEIGHTS)))
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
    notes = loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {int(step): note for step, note in notes.items()}
