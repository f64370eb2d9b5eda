"""Run one experiment: train what is missing, compute, and leave the result with its origin."""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import torch

from attnlib.errors import BadInput, DataUnavailable, NotMeasured
from attnlib.files import write_text_atomic
from companion.data import sources
from companion.results import registry
from companion.results.config import plain
from companion.results.request import Request
from companion.results.result import Result
from companion.rounding import rounded
from companion.runs import registry as trainings
from companion.runs.archive import Archive
from companion.runs.identity import Spec, digest, run_id, run_record
from companion.runs.measure import versions
from companion.runs.procedure import RunSpec
from companion.runs.store import Store, origin
from companion.runs.suite import task_name_of


def run(
    request: Request,
    *,
    out: str | Path,
    models: str | Path,
    device: str = "cpu",
    threads: int = 1,
    report=None,
    archive: Archive | str | Path | None = None,
    trains: bool = True,
) -> Result:
    """Compute an experiment and save its result.

    Args:
        out: folder for ``<name>.json``, its tables and its provenance.
        threads: torch threads while computing; another number gives other last bits.
        models, device, report, archive, trains: of the :class:`~companion.runs.store.Store`. One that does
            not train computes from what has been measured; ``Result.missing`` says what has not.

    Raises BadInput: a name or a value that cannot be used. NotMeasured, DataUnavailable: ``trains`` is False
    and no answer is there; a data set is not.
    """
    request.config  # noqa: B018  refused before anything else is looked at
    _check_machine(device, threads)
    for folder in (out, models):  # before hours of work, not after
        probe = Path(folder) / f".{request.experiment}.writable"
        write_text_atomic(probe, "")
        probe.unlink(missing_ok=True)  # another process may have probed at the same moment
    started = time.monotonic()
    with ExitStack() as after:
        after.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(threads)
        store = Store(models, device, report, archive=archive, trains=trains)
        result = _computed(request, store, started)
    result.save(out)
    return result


def _computed(request: Request, store: Store, started: float) -> Result:
    name, config = request.experiment, request.config
    module = registry.load(name)
    specs = module.models(config)
    if not store.trains:  # then it knows what it lacks
        for measurement in module.measurements(config):
            with suppress(NotMeasured):
                measurement.answer(store)
    specs = tuple(spec for spec in specs if spec not in store.lacking)
    if store.lacking and not specs:
        raise NotMeasured(f"nothing is measured yet of what {name} asks at the {request.profile} profile")
    try:  # what is not available here stops the run before anything is trained
        data = data_of(specs)
    except DataUnavailable:
        if store.trains:
            raise
        data = {}  # measurements outlive data as well: the ids of their runs have its checksums
    outcome = computed(module, config, store)
    values, tables = rounded(outcome.values), rounded(outcome.tables)
    used = [spec for spec in dict.fromkeys([*specs, *store.used]) if spec not in store.lacking]
    return Result(
        experiment=name,
        profile=request.profile,
        config=plain(config),
        values=values,
        tables=tables,
        data=data,
        missing=_in_words(store.lacking),
        schemas=outcome.schemas,
        provenance=origin(store.device, time.monotonic() - started)
        | {"computed": digest([plain(config), values, tables])}
        | {"models": [run_id(spec) for spec in specs], "measured": versions(module.measurements(config))}
        | _training([store.history(spec) for spec in used]),
    )


@dataclass(frozen=True)
class Outcome:
    """What an experiment computes, as fields of a :class:`~companion.results.result.Result`."""

    values: dict
    tables: dict[str, list[dict]]
    schemas: dict[str, dict]


def computed(module: ModuleType, config: object, store: Store) -> Outcome:
    """Compute the numbers of an experiment.

    ``compute`` returns tables, and ``values`` of the same module makes the dotted keys of them.
    """
    tables = module.compute(config, store)
    return Outcome(
        values=module.values(config, tables),
        tables={name: table.records() for name, table in tables.items()},
        schemas={name: table.schema() for name, table in tables.items()},
    )


def _in_words(missing: Iterable[Spec]) -> list[str]:
    """Kinds of model with the number missing, say ``scan AED-gru: 3``."""

    def kind(spec: Spec) -> str:
        if isinstance(spec, RunSpec):
            return spec.kind
        cell = "" if spec.architecture == "AO" else f"-{spec.cell}"
        return f"{task_name_of(spec)} {spec.architecture}{cell}"

    return [f"{words}: {number}" for words, number in Counter(map(kind, missing)).items()]


def _training(histories: list[dict]) -> dict:
    """How long networks were trained, where, when and with what, as far as their records tell.

    Networks that were trained again, for a later question, count with all of their trainings. Networks of the
    archive's first days have the commit that brought them, its date and its lock's versions.
    """
    trainings = [training for history in histories for training in (history, *history.get("earlier", ()))]
    known = [training.get("first_committed", training) for training in trainings]
    dates = sorted(training["date"][:10] for training in known if "date" in training)
    packages = set()
    for training in known:
        for package, version in training.get("packages", {}).items():
            if version:
                packages.add(f"{package} {version}")
    return {
        "networks": len(histories),  # those too that were chosen by what became of others
        "training_seconds": round(sum(training["seconds"] for training in trainings), 1),
        "trained_on": sorted({_place_of(training) for training in trainings}),
        "trained_between": [dates[0], dates[-1]] if dates else [],
        "trained_with": sorted(packages),
    }


def _place_of(history: dict) -> str:
    """Say on what a network was trained: device, instruction set of a CPU if it is known, threads."""
    instructions = history.get("instruction_set")
    device = f"{history['device']} with {instructions}" if instructions else history["device"]
    return f"{device}, {history['threads']} thread(s)"


def _check_machine(device: str, threads: int) -> None:
    if threads < 1:
        raise BadInput(f"threads is {threads}; it must be at least 1")
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        available = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise BadInput(f"device {device!r} is not available; choose from: {available}")


def data_of(specs: Iterable[Spec]) -> dict[str, str]:
    """Checksums of all files that the runs of an experiment read, published ones and a reader's own.

    Raises DataUnavailable, CorruptFile: a file is not here, or is another one than it should be.
    """
    files: dict[str, str | None] = {}
    for spec in dict.fromkeys(replace(spec, seed=0) for spec in specs):
        training = trainings.load(spec.procedure) if isinstance(spec, RunSpec) else None
        data = run_record(spec)["data"]
        if hasattr(training, "require"):
            training.require(spec.resolved)
        else:
            sources.require(data)
        files |= data
    return {name: checksum or sources.checksum(name) for name, checksum in sorted(files.items())}
