"""Luong's decoder asked by the previous state, trained as the others: see
:mod:`attnlib.models.sequence_to_sequence`.

Settings, and what is recorded, are those of :mod:`companion.runs.recurrent_sequences`.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlib.models.sequence_to_sequence import AskedBefore, check_present_asks
from attnlib.training.course import Report
from companion.runs import recurrent_sequences
from companion.runs.recipe import Recording
from companion.runs.sequence_course import builders, checksums, record_course, restored

__all__ = ["Settings", "builders", "checksums", "new_network", "record", "recorded_network"]


@dataclass(frozen=True)
class Settings(recurrent_sequences.Settings):
    """Those of the other recipe; a network in which there is no present state to replace is refused."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_present_asks(self.config(1, 1))


def new_network(settings: Settings, source_size: int, target_size: int) -> AskedBefore:
    """The untrained network; of one seed, the parameters of the network that the present state asks."""
    config = settings.config(source_size, target_size)
    return AskedBefore(config, torch.Generator().manual_seed(settings.seed))


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the network and look at it along the way; errors as :func:`record_course`."""
    return record_course(new_network, settings, folder, device=device, report=report)


def recorded_network(recording: Recording) -> AskedBefore:
    """The trained network, in evaluation mode."""
    return restored(new_network, recording)
