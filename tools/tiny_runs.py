"""Run every experiment at its tiny profile, with networks and measurements made anew: ``… tiny_runs FOLDER``.

``FOLDER/models/answers/loose`` then has what was measured, one line of JSON a run and a measurement, and
``FOLDER/asked.json`` which experiment asked for which of them. An experiment whose data is not here is left
out, and named in ``FOLDER/left_out.json`` with the reason.
"""

import json
import sys
from pathlib import Path

import torch

from attnlib.errors import DataUnavailable
from companion.results import registry
from companion.results.request import Request
from companion.results.run import run
from companion.runs.identity import run_id


def run_all(folder: Path, names: list[str]) -> None:
    """Run some experiments one after the other, in their order, so that networks are shared alike."""
    torch.set_num_threads(1)
    asked: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        experiment = registry.load(name)
        config = experiment.PROFILES["tiny"]
        request = Request(name, parameters=vars(config))
        try:
            run(request, out=folder / "results", models=folder / "models")
        except DataUnavailable as error:
            left_out[name] = str(error)
            continue
        asked[name] = sorted({run_id(spec) for spec in experiment.models(config)})
        print(f"{name}: {len(asked[name])} runs", flush=True)
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    (folder / "left_out.json").write_text(json.dumps(left_out), encoding="utf-8")


if __name__ == "__main__":
    destination, *chosen = sys.argv[1:]
    Path(destination).mkdir(parents=True, exist_ok=True)
    run_all(Path(destination), chosen or list(registry.names()))
