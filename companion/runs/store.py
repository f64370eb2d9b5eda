"""Trained models as products: made once for each spec, found again by everyone who needs them."""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from torch import Tensor

from attnlib import sealed
from attnlib.errors import Altered, CorruptFile, NotMeasured
from attnlib.files import atomic_path, locked, write_json_atomic
from attnlib.models.encoder_decoder import EncoderDecoder
from companion.data import registry
from companion.data.task import Task
from companion.paths import ROOT
from companion.rounding import rounded
from companion.runs import registry as procedures
from companion.runs.archive import Archive
from companion.runs.checkpoint import discard_unsound
from companion.runs.encoder_decoder import new_model, train
from companion.runs.evaluate import evaluate
from companion.runs.identity import Spec, run_id, run_record
from companion.runs.measure import Measurement
from companion.runs.memory import keep_freed_memory
from companion.runs.procedure import Recording, RunSpec
from companion.runs.spec import ModelSpec

KERNEL_SETTINGS = (  # variables of the environment by which the libraries choose kernels
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
)
PACKAGES = ("attnlib", "torch", "numpy", "safetensors", "jaxtyping")  # whose versions are recorded


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A finished product: the network in evaluation mode, its task and the record of its training."""

    spec: ModelSpec
    task: Task
    model: EncoderDecoder
    history: dict  # records of the loss, held-out quality, and its origin


class Store:
    """A folder of products, ``<folder>/<id>/{model or recording.safetensors, history.json, run.json}``.

    Args:
        folder: where products and checkpoints live.
        device: where models are trained and returned (``"cpu"`` or ``"cuda"``).
        report: called after every update with the spec and (step, steps, loss).
        archive: where measurements are kept for when the models are gone; ``<folder>/answers`` by default.
        trains: whether a model that is missing may be trained; if not, asking for one raises NotMeasured.

    ``used`` are the models with an answer among those that were asked, ``lacking`` those without, in order.
    """

    def __init__(
        self,
        folder: str | Path,
        device: str = "cpu",
        report=None,
        *,
        archive: Archive | str | Path | None = None,
        trains: bool = True,
    ):
        self.folder, self.device, self.trains = Path(folder), device, trains
        self.report = report or (lambda *arguments: None)
        self.used: dict[Spec, None] = {}
        self.lacking: dict[Spec, None] = {}
        self.archive = (
            archive if isinstance(archive, Archive) else Archive(archive or self.folder / "answers")
        )

    def model(self, spec: ModelSpec) -> TrainedModel:
        """The trained model of a spec, from the folder if it is there, else trained now.

        Raises:
            TrainingDiverged: see :func:`companion.runs.encoder_decoder.train`.
            NotMeasured: it has to be trained, and this store does not.
            CorruptFile: the product cannot be read; the message says what to delete.
        """
        task = load_task(spec.task, spec.task_options)
        network = new_model(spec, task).to(self.device)
        tensors = self._tensors(spec)
        try:
            network.load_state_dict(tensors)
        except RuntimeError as error:
            raise self._damaged(spec, error) from error
        if not all(bool(value.isfinite().all()) for value in tensors.values()):
            raise self._damaged(spec, "weights are not finite")
        return TrainedModel(spec, task, network.eval(), self.history(spec))

    def recording(self, spec: RunSpec) -> Recording:
        """What a procedure's run records, from the folder if it is there, else made now; errors as above."""
        tensors, history = self._tensors(spec), self.history(spec)
        if _shapes(tensors) != history["tensors"]:
            raise self._damaged(spec, "its tensors have other shapes than were recorded")
        return Recording(spec, tensors, history)

    def open(self, spec: Spec) -> TrainedModel | Recording:
        return self.model(spec) if isinstance(spec, ModelSpec) else self.recording(spec)

    def _tensors(self, spec: Spec) -> dict[str, Tensor]:
        """What a product holds, made by this process or another."""
        folder = self.folder / run_id(spec)
        try:
            with locked(folder, wait=True):
                if not (folder / "history.json").is_file():
                    if not self.trains:
                        raise NotMeasured(f"{spec.setting} is not trained yet")
                    self._make(spec, folder)
                # Here, since whoever made it may have been killed before.
                shutil.rmtree(folder / "checkpoints", ignore_errors=True)
            return sealed.load_file(folder / _file(spec), device=self.device)
        except Altered as error:
            raise self._damaged(spec, error) from error

    def _damaged(self, spec: Spec, why: object) -> CorruptFile:
        folder = self.folder / run_id(spec)
        return CorruptFile(f"a trained network is damaged ({why}): delete {folder}, and it is made anew")

    def history(self, spec: Spec) -> dict:
        """The record of a finished training: see :class:`TrainedModel`."""
        path = self.folder / run_id(spec) / "history.json"
        if not path.is_file() and (archived := self.archive.history(spec)):
            return archived
        try:
            history = sealed.loads(path.read_text(encoding="utf-8"))
            if not isinstance(history, dict) or not {"seconds", "threads", "device"} <= history.keys():
                raise Altered(f"{path.name} is no record of a training")
        except (Altered, OSError, UnicodeDecodeError) as error:
            raise self._damaged(spec, error) from error
        return history

    def cached(
        self, spec: Spec, measure: Callable[..., dict], *, other_specs: Sequence[Spec] = (), **settings
    ) -> dict:
        """What ``measure(model or recording, **settings)`` finds, as plain JSON; measured once.

        Other settings, or another version of the measurement or of a training, are measured anew. The archive
        is asked before a model is trained, and told what was found. What is asked of several products
        together is kept with the first; ``measure`` gets those of ``other_specs`` after it.

        Raises NotMeasured: neither folder nor archive has it, and this store does not train.
        """
        measurement = Measurement(spec, measure, tuple(sorted(settings.items())), tuple(other_specs))
        answer = self.archive.get(measurement)
        if answer is None:
            answer = self._measured(measurement)
        self.used |= dict.fromkeys((spec, *other_specs))
        return answer

    def _measured(self, measurement: Measurement) -> dict:
        """Measure now, unless another process did while this one waited for it."""
        specs = (measurement.spec, *measurement.other_specs)
        # A lock of its own: measuring takes the network's.
        with locked(self.folder / run_id(measurement.spec), f".{measurement.id}.lock", wait=True):
            archived = self.archive.get(measurement)
            if archived is not None:
                return archived
            try:
                networks = [self.open(spec) for spec in specs]
            except NotMeasured:
                self.lacking[measurement.spec] = None
                raise
            answer = rounded(measurement.measure(*networks, **dict(measurement.settings)))
            numbers = json.loads(json.dumps(answer))  # refuses what is no JSON
            self.archive.put(measurement, self.history(measurement.spec), numbers)
            return numbers

    def _make(self, spec: Spec, folder: Path) -> None:
        """Write a product, its history last: its presence says that the product is whole."""
        keep_freed_memory()
        report = partial(self.report, spec)
        started, checkpoints = time.monotonic(), folder / "checkpoints"
        checkpoints.mkdir(parents=True, exist_ok=True)
        discard_unsound(checkpoints)
        if isinstance(spec, ModelSpec):
            task = load_task(spec.task, spec.task_options)
            network, records = train(spec, task, checkpoints, device=self.device, report=report)
            results = {
                "records": records,
                "held_out": evaluate(network.eval(), task.held_out),
                "parameters": sum(parameter.numel() for parameter in network.parameters()),
            }
            tensors = network.state_dict()
        else:
            record = procedures.load(spec.procedure).record
            tensors = record(spec.resolved, checkpoints, device=self.device, report=report)
            results = {"tensors": _shapes(tensors)}
        with atomic_path(folder / _file(spec)) as temporary:
            sealed.save_file(tensors, temporary)
        made = origin(self.device, time.monotonic() - started)  # seconds of this process, less if resumed
        write_json_atomic(folder / "run.json", run_record(spec))
        sealed.write_json_atomic(folder / "history.json", results | made)


def _shapes(tensors: dict[str, Tensor]) -> dict[str, list[int]]:
    return {name: list(value.shape) for name, value in sorted(tensors.items())}


def _file(spec: Spec) -> str:
    return "model.safetensors" if isinstance(spec, ModelSpec) else "recording.safetensors"


@lru_cache(maxsize=8)  # a figure asks its networks in random order, about a handful of tasks
def load_task(name: str, options: tuple[tuple[str, object], ...]) -> Task:
    """A task by name and options, loaded once a process."""
    return registry.load(name, **dict(options))


def origin(device: str, seconds: float) -> dict:
    """What varies between two runs of one input: what one needs to judge and repeat it."""
    edited = uncommitted()
    on_gpu = device.startswith("cuda")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if edited is None else bool(edited),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if on_gpu else _cpu_name(),
        # Instructions of another width sum in another order, which a network that still learns amplifies.
        "instruction_set": None if on_gpu else torch.backends.cpu.get_cpu_capability(),
        "kernels": None if on_gpu else matrix_kernels(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def matrix_kernels() -> dict[str, object]:
    """Return what decides how a CPU multiplies matrices, beside its instruction set.

    ``library`` is the linear algebra that torch was built with. MKL takes narrower kernels on processors of
    other makers, unless a library that is loaded first answers for them: ``answered_for`` is true where one
    does (``benchmarks/wide_vectors.sh``). ``settings`` are variables that choose kernels.
    """
    built = torch.__config__.show()
    library = re.search(r"BLAS_INFO=(\w+)", built)
    version_of_mkl = re.search(r"Math Kernel Library Version ([\d.]+)", built)
    matches = (library, version_of_mkl)
    names = [match.group(1) for match in matches if match]
    return {
        "library": " ".join(names),
        "answered_for": hasattr(ctypes.CDLL(None), "mkl_serv_intel_cpu_true"),
        "settings": {name: os.environ[name] for name in KERNEL_SETTINGS if name in os.environ},
    }


def uncommitted(root: Path = ROOT) -> list[str] | None:
    """Files of the code that differ from the last commit; None where there is no repository or no git."""
    changes = _git("status", "--porcelain", "--", "attnlib", "companion", "notebooks", root=root)
    return None if changes is None else [line[3:] for line in changes.splitlines()]


def _version(package: str) -> str | None:
    with suppress(PackageNotFoundError):  # a checkout on the path, not installed
        return version(package)


def _git(*arguments: str, root: Path = ROOT) -> str | None:
    """Output of a git command in the project, or None where there is no repository or no git."""
    options = {"cwd": root, "capture_output": True, "text": True, "timeout": 30, "check": True}
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(["git", *arguments], **options).stdout.rstrip()


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} × {len(names)}" if names else platform.machine()
