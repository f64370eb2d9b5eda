"""Copying permutations with heads whose first queries are chosen one by one (Snell et al. 2021, section 5.2).

What a head's first query map makes of training is asked apart from everything else: all networks of one body
start from the same parameters but for the heads, and what varies between runs of the same heads is the data.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from attnlib.errors import check_at_least
from companion.runs.loop import Report, Schedule, regular_checkpoints, train_network
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots
from notebooks.shared.trainings import permutation_copying as copying
from notebooks.shared.trainings.permutation_copying import (
    Copier,
    CopierConfig,
    CopyBatch,
    draw_sources,
    words_of,
)

VERSION = 1  # of the training: raised when what it trains changes


@dataclass(frozen=True)
class Settings:
    """As :class:`notebooks.shared.trainings.permutation_copying.Settings`, but for the seeds."""

    heads: tuple[int, ...] = (0,)  # a number each, which draws its first query map; equal ones, equal maps
    body: int = 0  # draws all other parameters
    kind: str = "permutation"
    cell: str = "gru"
    length: int = 40
    width: int = 256
    batch_size: int = 128
    learning_rate: float = 1e-3
    steps: int = 200
    every: int = 10
    held_out: int = 128
    seed: int = 0  # draws the sentences, nothing else

    def __post_init__(self) -> None:
        CopierConfig(words_of(self.kind, self.length), self.width, self.cell, len(self.heads))
        check_at_least(1, self, "batch_size", "steps", "every", "held_out")


def new_network(settings: Settings) -> Copier:
    """The untrained network: the body's parameters, and each head's query map from its own number."""
    words, width = words_of(settings.kind, settings.length), settings.width
    config = CopierConfig(words, width, settings.cell, len(settings.heads))
    network = Copier(config, copying.stream(settings.body, copying.PARAMETERS))
    bound = width**-0.5
    with torch.no_grad():
        weights = network.queries.weight.view(len(settings.heads), width, width)
        biases = network.queries.bias.view(len(settings.heads), width)
        for place, head in enumerate(settings.heads):
            generator = copying.stream(head, copying.HEAD)
            weights[place].uniform_(-bound, bound, generator=generator)
            biases[place].uniform_(-bound, bound, generator=generator)
    return network


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """What ``snapshot_of_copier`` sees, and ``head_right``, the weight of each head on the right place."""
    words = words_of(settings.kind, settings.length)

    def batch_of(samples: int, *use: int) -> CopyBatch:
        sources = draw_sources(settings.kind, settings.length, samples, copying.stream(settings.seed, *use))
        return copying.copy_batch(sources, words)

    held_out = batch_of(settings.held_out, copying.HELD_OUT).to(device)

    def visit(step: int, model: Copier) -> None:
        with torch.inference_mode():
            attention = model(held_out).attention
        right = attention.diagonal(dim1=-2, dim2=-1).mean(dim=(0, 2))  # copying: the place of word s is s
        save_snapshot(folder, step, copying.snapshot_of_copier(model, held_out) | {"head_right": right})

    snapshots = regular_checkpoints(settings.steps, settings.every)
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, snapshots)
    train_network(
        new_network(settings), lambda step: batch_of(settings.batch_size, copying.TRAINING, step),
        copying.copier_loss, schedule, folder, visit=visit, device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, snapshots)
