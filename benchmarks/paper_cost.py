"""What the paper profile of Parts I and III would still cost, timed on the networks themselves.

    python benchmarks/paper_cost.py            # every kind that is not answered yet; minutes
    python benchmarks/paper_cost.py --steps 33 --experiment agreement

Of each kind of network one is trained for a few updates by the very code that would train it. Updates are
timed from one report to the next, the last snapshot from the last report to the end, and saliency, which is
seen once training is over, by what it adds: processor time of one thread, without loading. Texts are batched
by length within windows of 32 batches, and long ones take several times as long as short ones: so the mean
over a whole window counts, not the median. An update that follows a snapshot is left out, since the time of
both is one.
"""

import statistics
import tempfile
import time
from dataclasses import fields
from itertools import pairwise

import torch
import typer

from companion.results import registry
from companion.results.answer import all_measurements, unanswered
from companion.runs.archive import Archive
from companion.runs.loop import regular_checkpoints
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.trainings import classification
from notebooks.shared.trainings.translation import paper_checkpoints


def checkpoints_of(spec: RunSpec) -> tuple[int, ...]:
    """After how many updates the network is looked at."""
    settings = spec.resolved
    if spec.procedure.startswith("translation"):
        return paper_checkpoints(settings.steps)
    if spec.procedure.startswith("classif"):
        return classification.checkpoints(settings.steps)
    if spec.procedure == "along_training":
        return settings.snapshots
    every = settings.every if hasattr(settings, "every") else max(1, settings.steps // settings.snapshots)
    return regular_checkpoints(settings.steps, every)


def timed(spec: RunSpec, steps: int) -> tuple[float, float, float]:
    """Processor seconds of one update (mean), of one snapshot, and of saliency where it is asked for."""
    if not getattr(spec.resolved, "saliency", False):
        return *run_shortly(spec, steps), 0.0
    without = RunSpec.of(spec.procedure, seed=spec.seed, **dict(spec.settings) | {"saliency": False})
    update, snapshot = run_shortly(without, steps)
    return update, snapshot, run_shortly(spec, steps)[1] - snapshot


def run_shortly(spec: RunSpec, steps: int) -> tuple[float, float]:
    """Processor seconds of one update (mean), and from the last update to the end."""
    settings = {field.name for field in fields(spec.resolved)}
    changes = {"steps": steps} | ({"snapshots": 1} if "snapshots" in settings else {})
    short = RunSpec.of(spec.procedure, seed=spec.seed, **dict(spec.settings) | changes)
    reports: list[float] = []  # processor time after the first update, the second, and so on
    with tempfile.TemporaryDirectory() as folder:
        Store(folder, report=lambda *_: reports.append(time.process_time())).recording(short)
    end = time.process_time()
    looked_at = checkpoints_of(short)
    gaps = [
        after - before
        for updates, (before, after) in enumerate(pairwise(reports), start=1)
        if updates not in looked_at
    ]
    return statistics.fmean(gaps), end - reports[-1]


def lacking(names: list[str]) -> dict[str, dict[str, list[RunSpec]]]:
    """Networks without an answer, by experiment and kind; each in the first experiment that asks it."""
    measurements, keys = all_measurements("paper"), set(unanswered("paper", Archive("results/paper/archive")))
    specs = {measurements[key][0].spec for key in keys}
    found: dict[str, dict[str, list[RunSpec]]] = {}
    for name in names:
        experiment = registry.load(name)
        for spec in experiment.models(experiment.PROFILES["paper"]):
            if isinstance(spec, RunSpec) and hasattr(spec.resolved, "steps") and spec in specs:
                specs.discard(spec)
                found.setdefault(name, {}).setdefault(spec.kind, []).append(spec)
    return found


def main(steps: int = 33, experiment: list[str] | None = None) -> None:
    torch.set_num_threads(1)
    print("experiment | networks | update, ms | snapshot, s | a network, min | together, h | kind")
    for name, kinds in lacking(experiment or list(registry.names())).items():
        total = 0.0
        for kind, specs in kinds.items():
            update, snapshot, once = timed(specs[0], steps)
            seconds = specs[0].resolved.steps * update + len(checkpoints_of(specs[0])) * snapshot + once
            total += seconds * len(specs)
            hours = seconds * len(specs) / 3600
            cost = f"{1000 * update:.0f} | {snapshot:.2f} | {seconds / 60:.1f} | {hours:.1f}"
            print(f"{name} | {len(specs)} | {cost} | {kind}", flush=True)
        print(f"{name} | together, processor hours: {total / 3600:.1f}", flush=True)


if __name__ == "__main__":
    main.__doc__ = __doc__
    typer.run(main)
