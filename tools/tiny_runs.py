"""Run every experiment at its tiny profile with the code of this checkout, and write down all its numbers.

    python -m tools.tiny_runs OUT                       all experiments: about two minutes of one core
    python -m tools.tiny_runs OUT temporal_share        some of them

``tools.same_numbers`` runs this in two checkouts and compares what they wrote. An older checkout runs its own
copy, so the command and the form of ``OUT/numbers.json`` stay as they are:

``trainings``
    version and default settings of each kind of training, by name;
``runs``
    of each trained network, by id, its record and the numbers in the history of its training; the network
    itself is in ``OUT/models``;
``measurements``
    lines of the archive: run, measure, version, settings, and what was found;
``experiments``
    settings, values and tables of each result, and which measurements it asked for;
``failed``
    the reason, by experiment, that it could not be run, and whether data are lacking for it.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from unittest.mock import patch

import torch

from attnlib import sealed
from attnlib.errors import DataUnavailable
from attnlib.files import write_json_atomic
from companion.results import registry
from companion.results.measurements import specs_of
from companion.results.request import Request
from companion.results.run import run
from companion.rounding import rounded
from companion.runs import store
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.identity import Spec, plain, run_id, run_record
from companion.runs.spec import ModelSpec

HISTORY = ("records", "held_out", "parameters")  # of a training's history; the rest varies from run to run


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Leave out what moves no number and takes a fifth of the time of networks as small as these.

    Files need not outlive a power cut, git is asked once instead of after every training which files are
    edited, and no task is made twice.
    """
    with (
        patch.object(os, "fsync", lambda handle: None),
        patch.object(store, "uncommitted", cache(store.uncommitted)),
        patch.object(store, "load_task", cache(store.load_task.__wrapped__)),
    ):
        yield


def tiny_runs(out: Path, names: list[str]) -> dict[str, dict]:
    """Run experiments, with networks and results in a folder, and return all their numbers."""
    experiments, failed = {}, {}
    trainings: dict[str, dict] = {}
    for name in names:
        module = registry.load(name)
        config = module.PROFILES["tiny"]
        try:
            measurements = list(module.measurements(config))
            request = Request(name, parameters=vars(config))
            result = run(request, out=out / "results", models=out / "models")
        except Exception as error:  # whatever it is, the other experiments are compared
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            failed[name] = {"reason": reason, "lacks_data": isinstance(error, DataUnavailable)}
            continue
        for spec in specs_of(measurements):
            record = run_record(spec)
            trainings[record["training"]] = {"version": record["version"], "defaults": defaults_of(spec)}
        experiments[name] = {
            "config": result.config,
            "values": result.values,
            "tables": result.tables,
            "asks": [{"run": run_id(each.spec)} | each.question for each in measurements],
        }
    return {
        "trainings": trainings,
        "runs": runs_in(out / "models"),
        "measurements": measurements_in(out / "models" / "answers" / "loose"),
        "experiments": experiments,
        "failed": failed,
    }


def defaults_of(spec: Spec) -> dict[str, object]:
    """Return the default settings of the training of a run."""
    settings = ModelSpec if isinstance(spec, ModelSpec) else type(spec.resolved)
    return plain({field.name: field.default for field in fields(settings) if field.default is not MISSING})


def runs_in(models: Path) -> dict[str, dict]:
    """Return the record of every trained network in a folder and the numbers in its history, by id."""
    runs = {}
    for path in sorted(models.glob("*/run.json")):
        history = sealed.loads(path.with_name("history.json").read_text(encoding="utf-8"))
        numbers = {name: history[name] for name in HISTORY if name in history}
        record = json.loads(path.read_text(encoding="utf-8"))
        runs[path.parent.name] = {"record": record, "history": rounded(numbers)}
    return runs


def measurements_in(loose: Path) -> list[dict]:
    """Return the lines of measurements in a folder of an archive."""
    found = []
    for path in sorted(loose.glob("*.jsonl")):
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        found += [line for line in lines if "found" in line]
    return found


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Run the experiments with one thread, and write ``numbers.json``."""
    parser = parser_of("tools.tiny_runs", __doc__)
    parser.add_argument("out", help="folder for networks, results and numbers.json")
    parser.add_argument("experiment", nargs="*", help="default: all")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    out = Path(options.out)
    with without_waiting():
        numbers = tiny_runs(out, options.experiment or list(registry.names()))
    write_json_atomic(out / "numbers.json", numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
