"""Compare the numbers of two states of the code: every experiment's tiny run, digit for digit.

    python -m tools.same_numbers              with the last commit that passed, which same_numbers.json names
    python -m tools.same_numbers COMMIT       with another one
    python -m tools.same_numbers --accept     and note this commit as the last that passed

The code of the base is checked out beside this one, and both run on this machine, side by side. A measurement
fails where a digit differs and neither its version nor its training's was raised, and a version fails that
was raised while nothing differs. So does a run that is asked for with other settings than before, say because
a default changed, unless ``same_numbers.json`` names the experiment under ``accepted``, with the reason.
Runs and measurements that only today's code has are new, and pass.

What ``compute`` makes of measurements is not compared here: the golden test recomputes published results.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from attnlib.errors import BadInput
from attnlib.files import write_json_atomic
from companion.paths import ROOT
from companion.runs.command import errors_in_a_line
from tools.differences import differences as places_that_differ

NOTED = Path(__file__).with_name("same_numbers.json")
RECORD = ("training", "settings", "task", "data")  # of a run, all but its version
TRAINED = ("records", "held_out", "parameters", "tensors")  # of a history, what a training determines
SHOWN = 40


@dataclass(frozen=True)
class Measured:
    """One measurement of a tiny run, or the outcome of a training (``measure`` is then empty)."""

    run: str  #: its id, for messages
    measure: str
    versions: tuple[int, int]  #: of the training, of the measurement (0 for a training)
    numbers: object
    record: dict


@dataclass(frozen=True)
class TinyRuns:
    """What the tiny runs of one state of the code left: measurements by what they are, and who asked."""

    measured: dict[str, Measured]
    asked: dict[str, set[str]] = field(default_factory=dict)  #: experiments by run id
    left_out: dict[str, str] = field(default_factory=dict)  #: why an experiment could not run


def read_runs(folder: Path) -> TinyRuns:
    """Read what :mod:`tools.tiny_runs` left in a folder."""
    lines = []
    for path in sorted(folder.glob("models/answers/loose/*.jsonl")):
        lines += map(json.loads, path.read_text(encoding="utf-8").splitlines())
    asked: dict[str, set[str]] = {}
    for experiment, runs in json.loads((folder / "asked.json").read_text(encoding="utf-8")).items():
        for run in runs:
            asked.setdefault(run, set()).add(experiment)
    left_out = json.loads((folder / "left_out.json").read_text(encoding="utf-8"))
    return TinyRuns(by_meaning(lines), asked, left_out)


def by_meaning(lines: list[dict]) -> dict[str, Measured]:
    """Lines of an archive by all that says what they are but versions, so that two states can be matched."""
    records = {line["run"]: line for line in lines if "found" not in line}
    meanings = {run: _json({name: record.get(name) for name in RECORD}) for run, record in records.items()}
    measured = {}
    for line in lines:
        run, record = line["run"], records[line["run"]]
        if "found" in line:
            others = [meanings.get(other, other) for other in line.get("with", ())]
            key = _json([meanings[run], line["measure"], line["settings"], others])
            versions = (record["version"], line["version"])
            measured[key] = Measured(run, line["measure"], versions, line["found"], record)
        else:
            history = {name: record["history"].get(name) for name in TRAINED}
            measured[meanings[run]] = Measured(run, "", (record["version"], 0), history, record)
    return measured


def differences(base: TinyRuns, today: TinyRuns, accepted: dict[str, str]) -> Iterator[str]:
    """A line for each number that moved without a version, and for each version raised for nothing."""
    raised: dict[str, bool] = {}  # version, in words → whether anything differs
    for key, before in base.measured.items():
        now = today.measured.get(key)
        if now is None:
            yield from _asked_otherwise(before, base, today, accepted)
            continue
        place = next(places_that_differ(before.numbers, now.numbers), None)
        names = _raised_versions(before, now)
        for name in names:
            raised[name] = raised.get(name, False) or place is not None
        if place is not None and not names:
            what = before.measure or f"the training, {before.record['training']},"
            yield f"{now.run}: {what} gives other numbers and no version was raised: {place}"
    for name, differs in raised.items():
        if not differs:
            yield f"{name}, and no number of the tiny runs differs"


def _raised_versions(before: Measured, now: Measured) -> list[str]:
    kinds = (f"the training {now.record['training']}", f"the measurement {now.measure}")
    pairs = zip(kinds, before.versions, now.versions, strict=True)
    return [f"the version of {kind} went from {old} to {new}" for kind, old, new in pairs if new > old]


def _asked_otherwise(
    before: Measured, base: TinyRuns, today: TinyRuns, accepted: dict[str, str]
) -> Iterator[str]:
    """A line for what the base measured and today's code does not, unless all who asked are accepted."""
    askers = base.asked.get(before.run, set())
    if askers and askers <= accepted.keys() | today.left_out.keys():
        return
    nearest = min(
        (_changed_settings(before.record, other.record) for other in today.measured.values()
         if other.record["training"] == before.record["training"]),
        key=len, default=[],
    )  # fmt: skip
    how = f"; nearest today: {', '.join(nearest)}" if 0 < len(nearest) <= 4 else ""
    yield f"{before.run}: {before.measure or 'its training'} is not asked for any more{how}"


def _changed_settings(before: dict, now: dict) -> list[str]:
    old, new = before["settings"], now["settings"]
    names = sorted(old.keys() | new.keys())
    return [f"{name} {old.get(name)} → {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def _json(content: object) -> str:
    return json.dumps(content, sort_keys=True)


# Two checkouts, side by side.


@contextmanager
def checkout_of(commit: str, folder: Path) -> Iterator[Path]:
    """The code of a commit in a folder, which is gone afterwards.

    Raises BadInput: this repository does not have the commit.
    """
    known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True)
    if known.returncode:
        raise BadInput(f"no commit {commit} here; in a shallow clone, `git fetch --unshallow` brings it")
    tree = folder / "base"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)
    try:
        yield tree
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def start(checkout: Path, folder: Path, names: list[str]) -> subprocess.Popen:
    """Begin the tiny runs by the code of a checkout."""
    paths = {"PYTHONPATH": str(checkout), "ATTNLIB_ROOT": str(checkout)}
    environment = os.environ | paths | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tools.tiny_runs", str(folder), *names]
    return subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL)


def compare(base: str, accepted: dict[str, str], names: list[str]) -> tuple[list[str], TinyRuns]:
    """Run both states of the code; the differences, and what today's left.

    Raises BadInput: the base is not known, or one of the two could not run.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with checkout_of(base, folder) as tree:
            processes = {
                "today's code": start(ROOT, folder / "today", names),
                f"the code of {base}": start(tree, folder / "before", names),
            }
            try:
                failed = [code for code, process in processes.items() if process.wait() != 0]
            finally:
                for process in processes.values():
                    process.kill()
        if failed:
            raise BadInput(f"the tiny runs by {' and by '.join(failed)} failed; the error is above")
        today = read_runs(folder / "today")
        return list(differences(read_runs(folder / "before"), today, accepted)), today


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Compare, say what differs; exit code 1 where something does."""
    parser = argparse.ArgumentParser(prog="python -m tools.same_numbers", description=__doc__.splitlines()[0])
    noted = json.loads(NOTED.read_text(encoding="utf-8"))
    parser.add_argument("base", nargs="?", default=noted["base"], help=f"default: {noted['base']}")
    parser.add_argument("--experiment", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--accept", action="store_true", help="note HEAD as the last commit that passed")
    options = parser.parse_args(arguments)
    lines, today = compare(options.base, noted["accepted"], options.experiment)
    for name, reason in today.left_out.items():
        print(f"not compared: {name}: {reason}")
    print("\n".join(lines[:SHOWN]))
    if len(lines) > SHOWN:
        print(f"… and {len(lines) - SHOWN} more")
    print(f"{len(today.measured)} trainings and measurements, {len(lines)} differences from {options.base}")
    if options.accept and not lines:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        write_json_atomic(NOTED, {"base": head.stdout.strip(), "accepted": {}})
    return min(1, len(lines))


if __name__ == "__main__":
    sys.exit(main())
