"""The networks of the task suite with weight decay on some of their weights alone (ours)."""

from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import check_known
from companion.runs import store
from companion.runs.encoder_decoder import new_model, train
from companion.runs.evaluate import evaluate
from companion.runs.loop import Report
from companion.runs.procedure import Recording
from companion.runs.spec import ModelSpec
from companion.runs.store import TrainedModel
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

DECODER, ENCODER = (
    "decoder.weight_hh_l0",
    "encoder.weight_hh_l0",
)  # recurrent weights, as parameters are named
PENALISED = {
    "nothing": lambda name: False,
    "decoder_recurrence": lambda name: name == DECODER,
    "encoder_recurrence": lambda name: name == ENCODER,
    "decoder_layer": lambda name: name.startswith("decoder."),
    "others": lambda name: name not in (DECODER, ENCODER),
    "everything": lambda name: True,
}


@dataclass(frozen=True)
class Settings(ModelSpec):
    """A network of the suite, and which of its weights the penalty is on."""

    task: str = "one_to_one"
    architecture: str = "AED"
    steps: int = 1000
    penalised: str = "decoder_recurrence"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known("penalised weights", self.penalised, list(PENALISED))


def task_of(settings: Settings) -> tuple[str, dict[str, object]]:
    """Return the task that is trained on, by name, and its options."""
    return settings.task, dict(settings.task_options)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train a network, and return its parameters by name."""
    task = store.load_task(settings.task, settings.task_options)
    penalised = PENALISED[settings.penalised]
    network, _ = train(settings, task, folder, penalised=penalised, device=device, report=report)
    return {name: value.cpu() for name, value in network.state_dict().items()}


def trained_network(recording: Recording) -> TrainedModel:
    """Return the network of a recording as the store returns those of the suite."""
    settings = recording.spec.resolved
    task = store.load_task(settings.task, settings.task_options)
    network = new_model(settings, task)
    network.load_state_dict(dict(recording.tensors))
    network.eval()
    return TrainedModel(settings, task, network, {"held_out": evaluate(network, task.held_out)})
