"""Train the cheapest archived network of each kind anew, and compare what is measured of it with the archive.

    make sentinels                              all kinds: at most half an hour on two cores
    python -m tools.sentinels multi_head        one kind, and nothing is written

``make same`` compares two versions of the code on networks of a few updates. This compares the code of today
with the published numbers: the network has the size of the paper profile, and is made from its spec and the
data alone, in a store that does not see the archive. Equal machines give equal digits. Another processor
adds in another order, so two trainings part by rounding at first and then by what training makes of it;
``tools/sentinel_tolerances.json`` says how far, and why.

What is trained is kept in ``build/sentinels/<commit>``, so that a run that was stopped goes on. The outcome
is ``results/sentinels.json``, which the reproduction notes of the book show.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from attnlib.errors import check_known
from attnlib.files import write_json_atomic
from companion.paths import ARCHIVE, ROOT, SENTINELS
from companion.results.answer import all_measurements, report_progress
from companion.rounding import rounded
from companion.runs.archive import Archive, Run
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.identity import run_id
from companion.runs.measure import Measurement
from companion.runs.procedure import RunSpec
from companion.runs.store import Store, origin
from tools.differences import Difference, differences, is_number

OUTCOME = ROOT / SENTINELS
TOLERANCES = Path(__file__).with_name("sentinel_tolerances.json")
CODE = ("attnlib", "companion/data", "companion/runs", "notebooks")  # what trains and measures
EQUAL = {"largest": 0.0, "mean": 0.0}  # the tolerance of a kind that the file does not name
HISTORY = ("records", "held_out", "parameters")  # numbers in the history of a training


# An archived training may take so many seconds, the networks included that it is measured together with. A
# network whose training was stopped in between has the seconds after the last stop, which are too few.
LONGEST = 900
# Trainings that take an hour are cut to so many updates, and what is measured along training is compared: the
# learning rate is constant and batches are drawn in order, so later updates leave the first as they are.
SHORTENED = {"translation": 500}
ALONG_TRAINING = "course"  # the measurement of a shortened training


@dataclass(frozen=True)
class Sentinel:
    """The cheapest archived run of one kind of training.

    Attributes:
        kind: name of the training.
        run: its line and measurements in the archive.
        measurements: what the archive has of it that is measured anew.
    """

    kind: str
    run: Run
    measurements: tuple[Measurement, ...]

    @property
    def seconds(self) -> float:
        return _seconds(self.run)

    @property
    def needs_others(self) -> bool:
        """Return True if a measurement takes the network of another sentinel as well."""
        return any(measurement.other_specs for measurement in self.measurements)

    @property
    def anew(self) -> list[Measurement]:
        """The measurements that are made, of a training with fewer updates if it would take too long."""
        if self.kind not in SHORTENED:
            return list(self.measurements)
        spec = self.measurements[0].spec
        settings = dict(spec.settings) | {"steps": SHORTENED[self.kind]}
        shorter = RunSpec.of(self.kind, seed=spec.seed, **settings)
        return [replace(measurement, spec=shorter) for measurement in self.measurements]

    def compared(self, found: dict) -> dict:
        """The part of a measurement that is compared: all of it, or its first checkpoints."""
        if self.kind not in SHORTENED:
            return found
        return first_checkpoints(found, SHORTENED[self.kind])


def first_checkpoints(course: dict, steps: int) -> dict[str, object]:
    """Return the part of a course of training up to some update.

    >>> first_checkpoints({"steps": [0, 50, 90], "parts": {"loss": [3.0, 2.0, 1.0]}, "chance": 0.5}, 50)
    {'steps': [0, 50], 'parts': {'loss': [3.0, 2.0]}}
    """
    kept = sum(step <= steps for step in course["steps"])

    def cut(content: object) -> object:
        if isinstance(content, dict):
            return {name: cut(value) for name, value in content.items()}
        return content[:kept]

    return {name: cut(course[name]) for name in ("steps", "parts")}


def choose(archive: Archive, asked: dict[str, list[Measurement]]) -> tuple[list[Sentinel], dict[str, str]]:
    """Choose the cheapest run of each kind.

    A run that is measured only together with another network counts that network's seconds, unless it is a
    sentinel itself. Runs of graphics cards are no choice: they part from any processor.

    Args:
        archive: of the paper profile.
        asked: the measurements that experiments ask for, by id of the run.

    Returns:
        the sentinels, the longest first and those that need another one last; and by kind the reason that
        there is none.
    """
    measured = {}  # by id of the run, what the archive has at today's versions
    for name, measurements in asked.items():
        found = [measurement for measurement in measurements if _can_be_compared(measurement, archive)]
        if found:
            measured[name] = found
    runs = {run.id: run for run in archive.runs() if run.id in measured}
    kinds: dict[str, list[Run]] = {}
    for run in runs.values():
        if _can_be_chosen(run):
            kinds.setdefault(run.line["training"], []).append(run)

    chosen: dict[str, Run] = {}
    for kind, candidates in kinds.items():
        alone = [run for run in candidates if any(not one.other_specs for one in measured[run.id])]
        if alone:
            chosen[kind] = min(alone, key=_seconds)
    trained = {kind: run.id for kind, run in chosen.items() if kind not in SHORTENED}
    missing = {}
    for kind in kinds.keys() - chosen.keys():
        costs = {
            run.id: _seconds(run) + min(_seconds_of_others(one, runs, trained) for one in measured[run.id])
            for run in kinds[kind]
        }
        cheapest = min(costs, key=costs.__getitem__)
        chosen[kind] = runs[cheapest]
        if costs[cheapest] > LONGEST:
            missing[kind] = f"takes {costs[cheapest]:.0f} seconds with the networks that it is measured with"
            del chosen[kind]

    sentinels = []
    for kind, run in chosen.items():
        costs = [_seconds_of_others(one, runs, trained) for one in measured[run.id]]
        cheap = [one for one, cost in zip(measured[run.id], costs, strict=True) if cost == min(costs)]
        sentinels.append(Sentinel(kind, run, tuple(cheap)))
    return sorted(sentinels, key=lambda sentinel: (sentinel.needs_others, -sentinel.seconds)), missing


def _can_be_compared(measurement: Measurement, archive: Archive) -> bool:
    """Return True if the archive has a measurement and, of a shortened training, it is along training."""
    spec = measurement.spec
    is_shortened = isinstance(spec, RunSpec) and spec.procedure in SHORTENED
    if is_shortened and measurement.name != ALONG_TRAINING:
        return False
    return archive.get(measurement) is not None


def _can_be_chosen(run: Run) -> bool:
    history = run.line["history"]
    return history["threads"] == 1 and not history["device"].startswith("NVIDIA")


def _seconds(run: Run) -> float:
    return run.line["history"]["seconds"]


def _seconds_of_others(measurement: Measurement, runs: dict[str, Run], trained: dict[str, str]) -> float:
    """Seconds to train the other networks of a measurement, but for those that are trained anyway."""
    others = {run_id(spec) for spec in measurement.other_specs} - set(trained.values())
    return sum(_seconds(runs[other]) if other in runs else math.inf for other in others)


def train_and_measure(sentinel: Sentinel, folder: Path) -> None:
    """Make the network of a sentinel and all its measurements, unless they are in the folder already."""
    torch.set_num_threads(1)
    store = store_of(folder, report_progress())
    for measurement in sentinel.anew:
        measurement.answer(store)


def store_of(folder: Path, report=None) -> Store:
    """A store that keeps everything in a folder and sees no archive but its own."""
    return Store(folder / "models", report=report, archive=Archive(folder / "packed", folder / "answers"))


def compare(sentinel: Sentinel, archive: Archive, store: Store, tolerances: dict) -> dict[str, object]:
    """Compare the measurements of a sentinel with the archive, and say how far they are apart.

    Returns:
        a row of the outcome: ``outcome`` is ``equal``, ``within`` (the tolerances) or ``beyond``.
    """
    history = store.history(sentinel.anew[0].spec)
    row = {
        "kind": sentinel.kind,
        "run": sentinel.run.id,
        "archived_seconds": sentinel.seconds,
        "archived_on": sentinel.run.line["history"]["device"],
        "seconds": history["seconds"],
        "measurements": len(sentinel.measurements),
    }
    parts = [("history", _numbers_of(sentinel.run.line["history"]), _numbers_of(rounded(history)))]
    for measurement, anew in zip(sentinel.measurements, sentinel.anew, strict=True):
        archived, today = archive.get(measurement), store.archive.get(anew)
        parts.append((measurement.name, sentinel.compared(archived), sentinel.compared(today)))
    found: list[Difference] = []
    numbers = 0
    if sentinel.kind in SHORTENED:
        row["updates"] = SHORTENED[sentinel.kind]
    for name, archived, today in parts:
        numbers += sum(1 for _ in leaves(archived))
        found += differences(archived, today, name)
    row |= {"numbers": numbers, "differ": len(found)}
    allowed = tolerances.get(sentinel.kind, EQUAL)
    return row | judge(found, numbers, allowed)


def judge(found: list[Difference], numbers: int, allowed: dict[str, object]) -> dict[str, object]:
    """Say whether differences are within what is allowed.

    Args:
        numbers: how many were compared; those that do not differ count in the mean.
        allowed: the ``largest`` difference and the ``mean`` one, both as :func:`size` has them.
    """
    if not found:
        return {"outcome": "equal"}
    largest = max(found, key=size)
    mean = sum(map(size, found)) / numbers
    within = size(largest) <= allowed["largest"] and mean <= allowed["mean"]
    return {
        "outcome": "within" if within else "beyond",
        "mean_difference": float(f"{mean:.2g}"),
        "largest_difference": float(f"{size(largest):.2g}"),
        "largest": {"where": largest.path, "archived": largest.before, "today": largest.now},
    }


def size(difference: Difference) -> float:
    """How far two numbers are apart, relative to the larger where that is above one; else infinite."""
    before, now = difference.before, difference.now
    if not (is_number(before) and is_number(now)):
        return math.inf
    return abs(before - now) / max(1.0, abs(before), abs(now))


def leaves(content: object) -> Iterator[object]:
    """The values in a nested content that are neither lists nor dicts."""
    if isinstance(content, dict):
        content = list(content.values())
    if not isinstance(content, list):
        yield content
        return
    for value in content:
        yield from leaves(value)


def _numbers_of(history: dict) -> dict[str, object]:
    return {name: history[name] for name in HISTORY if name in history}


def run_all(sentinels: list[Sentinel], folder: Path, jobs: int) -> dict[str, str]:
    """Train and measure in processes, some at once.

    Returns:
        the message of each kind that could not be run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    def run(sentinel: Sentinel) -> str:
        command = [sys.executable, "-m", "tools.sentinels", "--train", str(folder), sentinel.kind]
        log = folder / f"{sentinel.kind}.log"
        with log.open("w", encoding="utf-8") as output:
            code = subprocess.run(command, cwd=ROOT, env=environment, stderr=output, check=False).returncode
        print(f"{sentinel.kind}: {'trained and measured' if code == 0 else 'failed'}", flush=True)
        lines = log.read_text(encoding="utf-8").splitlines()
        if code == 0:
            return ""
        return lines[-1].removeprefix("error: ") if lines else f"exit code {code}"

    with ThreadPoolExecutor(jobs) as pool:
        messages = list(pool.map(run, sentinels))
    failed = zip(sentinels, messages, strict=True)
    return {sentinel.kind: message for sentinel, message in failed if message}


def folder_of_today() -> Path:
    """Where networks of today's code are kept: a folder by the last commit of what trains and measures."""
    command = ["git", "log", "-1", "--format=%h", "--abbrev=12", "--", *CODE]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return ROOT / "build" / "sentinels" / commit


def in_words(row: dict[str, object]) -> str:
    """One line on a sentinel."""
    start = f"{row['kind']}: {row['outcome']}"
    if "largest" not in row:
        return start
    largest = row["largest"]
    apart = f"{largest['where']} was {largest['archived']} and is {largest['today']}"
    counted = f"{row['differ']} of {row['numbers']} numbers differ by {row['mean_difference']:g} in the mean"
    return f"{start}; {counted}, and most of all {apart}"


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Train, measure, compare; exit code 1 if a network is beyond its tolerance."""
    parser = parser_of("tools.sentinels", __doc__)
    parser.add_argument("kind", nargs="*", help="kinds of training (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (default: 2)")
    parser.add_argument("--train", metavar="FOLDER", help=argparse.SUPPRESS)  # of a process of its own
    options = parser.parse_args(arguments)
    archive = Archive(ARCHIVE)
    sentinels, missing = choose(archive, all_measurements("paper"))
    for kind in options.kind:
        check_known("kind of training", kind, [sentinel.kind for sentinel in sentinels])
    wanted = [sentinel for sentinel in sentinels if not options.kind or sentinel.kind in options.kind]
    if options.train:
        for sentinel in wanted:
            train_and_measure(sentinel, Path(options.train))
        return 0
    folder = folder_of_today()
    failed = run_all(wanted, folder, options.jobs)
    store, tolerances = store_of(folder), json.loads(TOLERANCES.read_text(encoding="utf-8"))
    rows = []
    for sentinel in wanted:
        if sentinel.kind in failed:
            outcome = f"cannot be run: {failed[sentinel.kind]}"
            rows.append({"kind": sentinel.kind, "run": sentinel.run.id, "outcome": outcome})
        else:
            rows.append(compare(sentinel, archive, store, tolerances))
        print(in_words(rows[-1]))
    if not options.kind:
        rows += [{"kind": kind, "outcome": f"not run: {reason}"} for kind, reason in missing.items()]
        write_outcome(rows)
    return 1 if any(row["outcome"] == "beyond" for row in rows) else 0


def write_outcome(rows: list[dict[str, object]]) -> None:
    made = origin("cpu", 0.0)
    machine = {name: made[name] for name in ("device", "threads", "python", "platform", "packages")}
    today = {"date": made["date"], "commit": made["commit"], "dirty": made["dirty"], "machine": machine}
    write_json_atomic(OUTCOME, today | {"sentinels": rows})


if __name__ == "__main__":
    sys.exit(main())
