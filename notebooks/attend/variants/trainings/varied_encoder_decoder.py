"""The encoder-decoder of a :class:`~companion.runs.spec.ModelSpec`, built differently in one respect.

It is trained as :func:`companion.runs.encoder_decoder.train` trains the plain one. A recording holds the
parameters of the trained network, ``network.<parameter>``.
"""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlib.errors import BadInput, check_known
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from companion.data.task import Task
from companion.runs import store
from companion.runs.encoder_decoder import BatchesInOrder, loss_of, schedule_of
from companion.runs.loop import Report, train_network
from companion.runs.procedure import Recording
from companion.runs.spec import ModelSpec
from notebooks.attend.variants.names import ARCHITECTURES_OF, PLAIN
from notebooks.attend.variants.networks import VARIANTS

VERSION = 1  # of the training: raised when what it trains changes
_NETWORK = "network."


@dataclass(frozen=True)
class Settings:
    """Which network, and how it is trained: what of a `ModelSpec` the variants share."""

    task: str = "one_to_one"
    architecture: str = "AO"
    variant: str = PLAIN
    _: KW_ONLY
    options: tuple[tuple[str, object], ...] = ()
    width: int = 128
    steps: int = 1_000
    batch_size: int = 64
    learning_rate: float = 2e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_known("variant", self.variant, tuple(VARIANTS))
        if self.architecture not in ARCHITECTURES_OF[self.variant]:
            raise BadInput(
                f"variant {self.variant} of {self.architecture}; it is one of "
                f"{' and '.join(ARCHITECTURES_OF[self.variant])}"
            )
        object.__setattr__(self, "options", tuple(sorted(self.options)))
        self.config(1, 1)  # what the network cannot be, its own settings say
        schedule_of(self.spec)

    @property
    def spec(self) -> ModelSpec:
        """The plain network that is trained in the same way."""
        return ModelSpec(
            self.task,
            self.architecture,
            self.steps,
            width=self.width,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
            task_options=self.options,
        )

    def config(self, source_size: int, target_size: int) -> ModelConfig:
        """Return the size of the network for vocabularies of these sizes."""
        return ModelConfig(self.architecture, source_size, target_size, width=self.width)


def task_of(settings: Settings) -> tuple[str, dict[str, object]]:
    """Return the task that is trained on, by name, and its options."""
    return settings.task, dict(settings.options)


def load_task(settings: Settings) -> Task:
    """Return the task, made once a process."""
    return store.load_task(settings.task, settings.options)


def new_network(settings: Settings, task: Task) -> EncoderDecoder:
    """Return the untrained network, its parameters drawn from the seed."""
    config = settings.config(len(task.source_vocabulary), len(task.target_vocabulary))
    return VARIANTS[settings.variant](config, torch.Generator().manual_seed(settings.seed))


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the network and return its parameters."""
    task = load_task(settings)
    network = new_network(settings, task)
    batches = BatchesInOrder(task.train, settings.batch_size, settings.seed)
    train_network(network, batches, loss_of, schedule_of(settings.spec), folder, device=device, report=report)
    return {f"{_NETWORK}{name}": value.cpu() for name, value in network.state_dict().items()}


def recorded_network(recording: Recording) -> EncoderDecoder:
    """Return the trained network of a recording, in evaluation mode."""
    settings = recording.spec.resolved
    network = new_network(settings, load_task(settings))
    state = {
        name.removeprefix(_NETWORK): value
        for name, value in recording.tensors.items()
        if name.startswith(_NETWORK)
    }
    network.load_state_dict(state)
    return network.eval()
