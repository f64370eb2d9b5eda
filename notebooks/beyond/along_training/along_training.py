"""Part II's network with attention (AED), trained on any task by name, its parameters kept along the way.

What a recording holds:

``steps``
    updates made at each snapshot; snapshots are spaced by a constant ratio, since most of what attention
    becomes is decided early.
``look.<parameter>``
    by snapshot, the parameter of :class:`~attnlib.models.encoder_decoder.EncoderDecoder`. Whatever can be
    measured of a network can so be measured of each snapshot, afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from attnlib.errors import check_at_least, check_known
from attnlib.models.attention import masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.trace import Trace
from attnlib.training.corpus import Batch, Task
from attnlib.training.course import Course, Report, run_course
from companion.data import registry
from companion.runs.procedure import Recording
from notebooks.shared.pieces import EqualLengthBatches
from notebooks.shared.sequence_course import loss_of, task_named
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

Attention = Literal["learned", "uniform"]
_SNAPSHOT = "look."


class UniformEncoderDecoder(EncoderDecoder):
    """The same weight on every valid source position, whatever the scores are; all else as in its base.

    Snell et al. 2021 train such networks to ask what is learned before attention is: β^uf is their lexical
    probe (section 4). A network and its uniform twin draw the same parameters at the start.
    """

    def attend(self, batch: Batch, encoder_states: Tensor, decoder_states: Tensor) -> Trace:
        learned = super().attend(batch, encoder_states, decoder_states)
        scores = torch.zeros_like(learned.scores)
        attention = masked_softmax(scores, batch.source_mask)
        context = attention @ encoder_states
        logits = self.readout(torch.cat([decoder_states, context], dim=-1))
        return replace(learned, scores=scores, attention=attention, context=context, logits=logits)


@dataclass(frozen=True)
class Settings:
    """One network and how it is trained; the cell is a GRU.

    ``attention``: ``learned``, or held ``uniform``. The ``learning_rate`` does not fall, so that late
    snapshots are not of a network that hardly moves. ``clip``: largest norm of the gradient of all
    parameters together.
    """

    task: str = "one_to_one"
    options: tuple[tuple[str, object], ...] = ()
    attention: str = "learned"
    width: int = 64
    embedding_scale: float = 0.3
    steps: int = 300
    batch_size: int = 64
    learning_rate: float = 4e-3
    clip: float = 1.0
    first_snapshot: int = 2
    snapshots_per_doubling: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, self, "steps", "batch_size", "first_snapshot", "snapshots_per_doubling")
        check_known("attention", self.attention, get_args(Attention))
        self.config(1, 1)  # what the network cannot be, its own settings say
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def config(self, source_size: int, target_size: int) -> ModelConfig:
        return ModelConfig(
            "AED", source_size, target_size, width=self.width, embedding_scale=self.embedding_scale
        )

    @property
    def snapshots(self) -> tuple[int, ...]:
        return spaced_checkpoints(self.steps, self.first_snapshot, self.snapshots_per_doubling)


def spaced_checkpoints(steps: int, first: int, per_doubling: int) -> tuple[int, ...]:
    """0, then a geometric sequence from ``first`` on, rounded, and the last update."""
    found, place = {0, steps}, 0
    while (step := round(first * 2 ** (place / per_doubling))) < steps:
        found.add(step)
        place += 1
    return tuple(sorted(found))


def builders(settings: Settings) -> tuple[Callable[..., Task], ...]:
    return (registry.builder(settings.task),)


def checksums(settings: Settings) -> dict[str, str]:
    """sha256 of the content of each data file read, by "dataset/file"; none for tasks made by rule."""
    return load_task(settings).checksums


def load_task(settings: Settings) -> Task:
    return task_named(settings.task, settings.options)


def new_network(settings: Settings, source_size: int, target_size: int) -> EncoderDecoder:
    kind = UniformEncoderDecoder if settings.attention == "uniform" else EncoderDecoder
    config = settings.config(source_size, target_size)
    return kind(config, torch.Generator().manual_seed(settings.seed))


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train a new network and keep its parameters at every snapshot; see the module."""
    task = load_task(settings)
    network = new_network(settings, len(task.source_vocabulary), len(task.target_vocabulary))
    snapshots = settings.snapshots
    run_course(
        network, EqualLengthBatches(task.train, settings.batch_size, settings.seed), loss_of,
        Course(settings.steps, settings.seed, settings.learning_rate, snapshots, settings.clip), folder,
        visit=lambda step, seen: save_snapshot(
            folder, step, {f"{_SNAPSHOT}{name}": value for name, value in seen.state_dict().items()}
        ),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, snapshots)


def network_at(recording: Recording, snapshot: int) -> EncoderDecoder:
    """The network as it was at a snapshot, counted from 0 (−1 is the last), in evaluation mode."""
    state = {
        name.removeprefix(_SNAPSHOT): value[snapshot]
        for name, value in recording.tensors.items()
        if name.startswith(_SNAPSHOT)
    }
    sizes = (len(state[f"{side}_embedding.weight"]) for side in ("source", "target"))
    network = new_network(recording.spec.resolved, *sizes)
    network.load_state_dict(state)
    return network.eval()
