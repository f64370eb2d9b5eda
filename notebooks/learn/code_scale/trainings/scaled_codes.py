"""Copying LSTMs whose words carry position codes of a given scale (ours).

A layer reads e(word) + scale · p(place). Both e and p begin with entries from N(0, 1), and both are learned.
At a scale of 0 the network is the one without codes, at 1 that of ``place_codes``.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from companion.runs.loop import Report
from notebooks.shared.snapshots import Tensors
from notebooks.shared.trainings import permutation_copying as copying
from notebooks.shared.trainings.permutation_copying import Copier, CopyBatch, written_and_attended
from notebooks.shared.trainings.place_codes import placed_copier, record_copier

VERSION = 1  # of the training: raised when what it trains changes


@dataclass(frozen=True)
class Settings(copying.Settings):
    kind: str = "sample"
    scale: float = 1.0  # of the codes, as a multiple of that of the word embeddings


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train a network, and return by checkpoint what :func:`snapshot` sees."""
    network = placed_copier(settings, recurrent=True, scale=settings.scale)
    return record_copier(network, settings, folder, snapshot=snapshot, device=device, report=report)


@torch.inference_mode()
def snapshot(model: Copier, held_out: CopyBatch) -> Tensors:
    """Return which words are right and where attention is: little, since every update is looked at."""
    return written_and_attended(model, model(held_out), held_out)
