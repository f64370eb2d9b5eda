"""Run one experiment: train what is missing, compute, and leave the result with its origin."""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import torch

from attnlib.errors import BadInput, DataUnavailable, NotMeasured
from attnlib.files import rounded, write_text_atomic
from companion.data import registry as tasks_by_name
from companion.results import registry
from companion.results.config import plain
from companion.results.request import Request
from companion.results.result import Result
from companion.runs.archive import Archive
from companion.runs.fingerprint import data_sets, fingerprint
from companion.runs.keys import Spec, model_key
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, load_task, origin
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
    code = code_of(name)  # read at once: an edit while this runs must not pass for what ran
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
        data = {}  # answers outlive data as well: they are of the code that has its checksums
    values, tables = module.compute(config, store)
    used = [spec for spec in dict.fromkeys([*specs, *store.used]) if spec not in store.lacking]
    return Result(
        experiment=name,
        profile=request.profile,
        config=plain(config),
        values=rounded(values),
        tables=rounded(tables),
        data=data,
        missing=_in_words(store.lacking),
        provenance=origin(store.device, time.monotonic() - started)
        | {"code": code, "models": [model_key(spec) for spec in specs]}
        | _training([store.history(spec) for spec in used]),
    )


def _in_words(missing: Iterable[Spec]) -> list[str]:
    """Kinds of model with the number missing, say ``scan AED-gru: 3``."""

    def kind(spec: Spec) -> str:
        if isinstance(spec, RunSpec):
            return spec.kind
        cell = "" if spec.architecture == "AO" else f"-{spec.cell}"
        return f"{task_name_of(spec)} {spec.architecture}{cell}"

    return [f"{each}: {number}" for each, number in Counter(map(kind, missing)).items()]


def _training(histories: list[dict]) -> dict:
    """How long networks were trained, where, when and with what, as far as their records tell.

    Networks of the archive's first days have the commit that brought them, its date and its lock's versions.
    """
    known = [history.get("first_committed", history) for history in histories]
    places = {f"{history['device']}, {history['threads']} thread(s)" for history in histories}
    dates = sorted(own["date"][:10] for own in known if "date" in own)
    packages = {" ".join(each) for own in known for each in own.get("packages", {}).items() if each[1]}
    return {
        "networks": len(histories),  # those too that were chosen by what became of others
        "training_seconds": round(sum(history["seconds"] for history in histories), 1),
        "trained_on": sorted(places),
        "trained_between": [dates[0], dates[-1]] if dates else [],
        "trained_with": sorted(packages),
    }


def _check_machine(device: str, threads: int) -> None:
    if threads < 1:
        raise BadInput(f"threads is {threads}; it must be at least 1")
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        have = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise BadInput(f"device {device!r} is not to be had here; there is: {have}")


def code_of(name: str) -> str:
    """The fingerprint of what computes an experiment."""
    return fingerprint(registry.load(name).compute)


def data_of(specs: tuple[Spec, ...]) -> dict[str, str]:
    """Checksums of all data files that the models and recordings of an experiment read.

    Raises DataUnavailable where some are not available here.
    """
    tasks = dict.fromkeys((spec.task, spec.task_options) for spec in specs if isinstance(spec, ModelSpec))
    read = [load_task(*task).checksums for task in tasks if not _made_by_rule(*task)]
    runs = dict.fromkeys(replace(spec, seed=0) for spec in specs if isinstance(spec, RunSpec))
    read += [spec.checksums for spec in runs]
    return {file: digest for checksums in read for file, digest in sorted(checksums.items())}


def _made_by_rule(task: str, options: tuple[tuple[str, object], ...]) -> bool:
    """Whether a task reads neither published data nor files of the reader's own."""
    return not ({"source", "target"} & dict(options).keys() or data_sets(tasks_by_name.builder(task)))
