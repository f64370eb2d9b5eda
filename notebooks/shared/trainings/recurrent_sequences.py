"""The primer's recurrent networks on any task by name; see :mod:`notebooks.shared.sequence_course`."""

from dataclasses import dataclass, fields
from pathlib import Path

import torch

from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from companion.runs.loop import Report
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import SequenceSettings, record_course, restored, task_of
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

__all__ = ["VERSION", "Settings", "new_network", "record", "recorded_network", "task_of"]


@dataclass(frozen=True)
class Settings(SequenceSettings):
    """The network beside task and training: see
    :class:`~attnlib.models.sequence_to_sequence.SequenceConfig`."""

    link: str = "attention"
    cell: str = "gru"
    layers: int = 1
    bidirectional: bool = False
    reverse: bool = False
    scoring: str = "dot"
    decoder: str = "luong"
    input_feeding: bool = False
    width: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config(1, 1)  # what it cannot be, the network's own settings say

    def config(self, source_size: int, target_size: int) -> SequenceConfig:
        names = {field.name for field in fields(SequenceConfig)} & {field.name for field in fields(self)}
        return SequenceConfig(source_size, target_size, **{name: getattr(self, name) for name in names})


def new_network(settings: Settings, source_size: int, target_size: int) -> SequenceToSequence:
    config = settings.config(source_size, target_size)
    return SequenceToSequence(config, torch.Generator().manual_seed(settings.seed))


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    return record_course(new_network, settings, folder, device=device, report=report)


def recorded_network(recording: Recording) -> SequenceToSequence:
    return restored(new_network, recording)
