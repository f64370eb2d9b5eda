"""Trained models as products: made once for each spec, found again by everyone who needs them."""

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from attnlib.code_hash import code_hash
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path, write_json_atomic
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.tasks import registry
from attnlib.tasks.task import Task
from attnlib.training.evaluate import evaluate
from attnlib.training.keys import model_key
from attnlib.training.loop import Report, new_model, train
from attnlib.training.recovery import discard_unsound
from attnlib.training.spec import ModelSpec


@dataclass(frozen=True)
class TrainedModel:
    """A finished product: the network in evaluation mode, its task and the record of its training."""

    spec: ModelSpec
    task: Task
    model: EncoderDecoder
    history: dict  # records of the loss, held-out quality, seconds, threads: see Store._train


class Store:
    """A folder of trained models, ``<folder>/<key>/{model.safetensors, history.json, spec.json}``.

    Args:
        folder: where products and checkpoints live.
        device: where models are trained and returned (``"cpu"`` or ``"cuda"``).
        report: called after every update with the spec and (step, steps, loss).
    """

    def __init__(self, folder: str | Path, device: str = "cpu", report=None):
        self.folder, self.device, self.report = Path(folder), device, report

    def product(self, spec: ModelSpec) -> Path:
        """The folder of a spec's product, made or not."""
        return self.folder / model_key(spec)

    def model(self, spec: ModelSpec) -> TrainedModel:
        """The trained model of a spec, from the folder if it is there, else trained now.

        Raises:
            TrainingDiverged: see :func:`attnlib.training.loop.train`.
            CorruptFile: the product cannot be read; the message says what to delete.
        """
        folder = self.product(spec)
        task = load_task(spec.task, spec.task_options)
        with _locked(folder):
            if not (folder / "history.json").is_file():
                self._train(spec, task, folder)
        network = new_model(spec, task).to(self.device)
        try:
            network.load_state_dict(load_file(folder / "model.safetensors", device=self.device))
        except (SafetensorError, RuntimeError, OSError) as error:
            raise CorruptFile(
                f"{folder / 'model.safetensors'} cannot be read ({error}); delete the folder "
                f"{folder.name} and the model is trained anew"
            ) from error
        return TrainedModel(spec, task, network.eval(), self.history(spec))

    def history(self, spec: ModelSpec) -> dict:
        """The record of a finished training: see :class:`TrainedModel`."""
        return json.loads((self.product(spec) / "history.json").read_text(encoding="utf-8"))

    def kept(self, spec: ModelSpec, measure: Callable[..., dict], **settings: object) -> dict:
        """What ``measure(trained model, **settings)`` finds, as JSON beside the model; measured once.

        Other settings, or other code in the module of ``measure`` and what it imports, are measured anew.
        """
        inputs = f"{measure.__qualname__} {code_hash(measure.__module__)} {sorted(settings.items())}"
        digest = hashlib.sha256(inputs.encode()).hexdigest()[:12]
        path = self.product(spec) / f"{measure.__name__}-{digest}.json"
        with _locked(path.parent, f".{path.stem}.lock"):  # a lock of its own: measuring takes the model's
            if not path.is_file():
                write_json_atomic(path, measure(self.model(spec), **settings))
        return json.loads(path.read_text(encoding="utf-8"))

    def _train(self, spec: ModelSpec, task: Task, folder: Path) -> None:
        started = time.monotonic()
        report: Report | None = None
        if self.report is not None:

            def report(step: int, steps: int, loss: float) -> None:
                self.report(spec, step, steps, loss)

        discard_unsound(folder / "checkpoints")
        network, records = train(spec, task, folder / "checkpoints", device=self.device, report=report)
        history = {
            "records": records,
            "held_out": evaluate(network.eval(), task.held_out),
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "seconds": round(time.monotonic() - started, 1),  # of this process: less after a resumption
            "threads": torch.get_num_threads(),
            "device": self.device,
        }
        with atomic_path(folder / "model.safetensors") as temporary:
            temporary.write_bytes(save({name: value.cpu() for name, value in network.state_dict().items()}))
        write_json_atomic(folder / "spec.json", json.loads(spec.to_json()))
        write_json_atomic(
            folder / "history.json", history
        )  # last: its presence says that the product is whole
        for checkpoint in (folder / "checkpoints").glob("step-*"):
            checkpoint.unlink()


@cache
def load_task(name: str, options: tuple[tuple[str, object], ...]) -> Task:
    """A task by name and options, loaded once a process."""
    return registry.load(name, **dict(options))


@contextmanager
def _locked(folder: Path, name: str = ".lock") -> Iterator[None]:
    """Two processes never make the same product at once; the lock goes with the process that holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / name).open("w")
    except OSError as error:
        raise BadInput(
            f"cannot write {folder}: {error.strerror}; choose a folder you may write to"
        ) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
