"""Luong's decoder with one thing changed: the state of the step before asks, not the present one.

In Luong et al. 2015, section 3.1, the present state h_t is compared with the encoder states, and the context
enters the output alone. Here e_tj = score(s_{t-1}, h_j), the first of them asked by the state that the
decoder starts in; recurrence, context and output are Luong's. So the state that asks has not read the word
y_{t-1}, which the state that answers has.

Settings, and what is recorded, are those of :mod:`notebooks.shared.trainings.recurrent_sequences`.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import Carried, SequenceConfig, SequenceToSequence, Source, Steps
from companion.runs.loop import Report
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import Tensors, record_course, restored, task_of
from notebooks.shared.trainings import recurrent_sequences

VERSION = 1  # of the training: raised when what it trains changes

__all__ = ["VERSION", "Settings", "new_network", "record", "recorded_network", "task_of"]


def check_previous_can_query(config: SequenceConfig) -> None:
    if not config.attends or config.decoder != "luong" or config.input_feeding:
        raise BadInput(
            f"link {config.link}, decoder {config.decoder}, input_feeding {config.input_feeding}: the "
            "previous state can replace the present one in Luong's decoder with attention and without input "
            "feeding; in Bahdanau's it asks anyway"
        )


class PreviousStateQueries(SequenceToSequence):
    """The network of a config, its parameters drawn alike, in which the previous state asks."""

    def __init__(self, config: SequenceConfig, generator: torch.Generator):
        check_previous_can_query(config)
        super().__init__(config, generator)

    def advance(self, inputs: Tensor, source: Source, carried: Carried) -> tuple[Steps, Carried]:
        states, hidden, memory = self._recur(inputs, carried)
        queries = torch.cat([carried.hidden[:, -1:], states[:, :-1]], dim=1)
        scores, attention, context = self._attend(queries, source)
        features = torch.tanh(self.attentional_map(torch.cat([context, states], dim=-1)))
        steps = Steps(
            states=states,
            queries=queries,
            scores=scores,
            attention=attention,
            context=context,
            features=features,
        )
        return steps, Carried(hidden, memory, None)


@dataclass(frozen=True)
class Settings(recurrent_sequences.Settings):
    def __post_init__(self) -> None:
        super().__post_init__()
        check_previous_can_query(self.config(1, 1))


def new_network(settings: Settings, source_size: int, target_size: int) -> PreviousStateQueries:
    """The untrained network; of one seed, the parameters of the network that the present state asks."""
    config = settings.config(source_size, target_size)
    return PreviousStateQueries(config, torch.Generator().manual_seed(settings.seed))


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    return record_course(new_network, settings, folder, device=device, report=report)


def recorded_network(recording: Recording) -> PreviousStateQueries:
    return restored(new_network, recording)
