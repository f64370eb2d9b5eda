"""Compare all numbers of the tiny runs before and after a change, digit for digit.

    make same                                  with the last commit that passed, which same_numbers.json names
    make same BASE=main                        with another one
    python -m tools.same_numbers --accept      and note today's commit as the last that passed

The code of the base, in a worktree that is removed afterwards, and the code of today each run every
experiment at its tiny profile, side by side on one machine, with one thread each and without the archive. It
fails

* where a number differs and no version was raised: of a trained network (its tensors, and the numbers in the
  history of its training) or of a measurement;
* where a version was raised and nothing differs, or a version went back;
* where a default of a training is another, or a setting is new or gone, and its version is the same: specs
  that leave it unsaid then mean something else;
* where something cannot be compared: a network or a measurement of the base has no partner today, because it
  is no longer asked for or is asked for with other settings; a tiny profile was changed; an experiment stops
  with an error. A raised version excuses its training or measurement, and a removed experiment what it alone
  asked for;
* where the values or tables of a result differ although its measurements are equal, so that ``compute``
  changed. If the committed paper result of the experiment changed as well, the change is on view in it, the
  golden test holds it to the code, and it passes.

What is new passes: an experiment, a network, a measurement, a value or a column of a result. What fails in
the last three ways and is meant passes where ``same_numbers.json`` names the experiment, training or
measurement under ``accepted``, with the reason.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file

from attnlib.errors import BadInput, check_known
from attnlib.files import write_json_atomic
from companion.paths import PAPER, ROOT
from companion.results import registry
from companion.runs.command import errors_in_a_line, parser_of
from tools.comparison import Compared, Comparison, Report, Side
from tools.differences import Difference, difference_of_tensors

NOTED = Path(__file__).with_name("same_numbers.json")
CODE = ("attnlib", "companion", "notebooks", "tools/tiny_runs.py")  # what the tiny runs run


# What the tiny runs of two checkouts left.


def compare(before: Path, now: Path, on_view: set[str], accepted: set[str]) -> tuple[Report, str]:
    """Compare the numbers and networks in two folders.

    Args:
        on_view, accepted: see :class:`tools.comparison.Comparison`.

    Returns:
        the report, and how much was compared, in words.
    """
    base, today = side_in(before), side_in(now)
    compared = networks_compared(before / "models", now / "models")
    report = Comparison(base, today, compared, on_view, accepted).made()
    numbers = (len(base.measurements), len(base.runs), len(base.experiments))
    return report, "measurements: {}, networks: {}, results: {}".format(*numbers)


def side_in(folder: Path) -> Side:
    return Side(json.loads((folder / "numbers.json").read_text(encoding="utf-8")))


def networks_compared(before: Path, now: Path) -> Compared:
    """Return the comparison of networks in two folders of models."""

    def compared(id_before: str, id_now: str) -> Difference | None:
        file = next((before / id_before).glob("*.safetensors"))
        tensors, tensors_now = load_file(file), load_file(now / id_now / file.name)
        for name in sorted({*tensors} & {*tensors_now}):  # what is new or renamed shows in measurements
            found = difference_of_tensors(tensors[name], tensors_now[name], name)
            if found:
                return found
        return None

    return compared


# Two checkouts.


def git(*arguments: str, check: bool = True) -> str:
    """Return what a git command in this checkout prints. Raises BadInput: it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise BadInput(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(name: str) -> str:
    """Return the hash of a commit. Raises BadInput: this clone does not have it."""
    found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
    if not found:
        way_out = f"fetch it (git fetch --unshallow, or git fetch origin {name})"
        raise BadInput(
            f"commit {name} is not in this clone; {way_out}, or name another (make same BASE=main)"
        )
    return found


def code_differs(commit: str) -> bool:
    """Return True if this checkout has other code than a commit, committed or not."""
    edited = git("status", "--porcelain", "--untracked-files=all", "--", *CODE)
    committed = git("diff", "--name-only", commit, "HEAD", "--", *CODE)
    return bool(edited or committed)


def changed_paper_results(commit: str) -> set[str]:
    """Return the experiments whose committed result of the paper profile is not that of a commit."""
    folder = PAPER.relative_to(ROOT).as_posix()
    names = git("diff", "--name-only", commit, "--", folder).splitlines()
    return {Path(name).stem for name in names if name.endswith(".json")}


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A worktree of a commit, which goes when the block ends, however it ends."""
    with tempfile.TemporaryDirectory(prefix="attnlib-base-") as folder:
        path = Path(folder) / "checkout"
        try:
            git("worktree", "add", "--quiet", "--detach", str(path), commit)
            if not (path / "tools" / "tiny_runs.py").is_file():
                raise BadInput(
                    f"commit {commit[:12]} has no tiny runs; name a later one (make same BASE=main)"
                )
            yield path
        finally:
            git("worktree", "remove", "--force", str(path), check=False)
            git("worktree", "prune", check=False)


def run_both(checkouts: list[Path], outs: list[Path], experiments: list[str]) -> None:
    """Run the tiny runs of two checkouts side by side. Raises BadInput: one of them ends with an error."""
    running = []
    try:
        for path, out in zip(checkouts, outs, strict=True):
            running.append(start(path, out, experiments))
        for process, path, out in zip(running, checkouts, outs, strict=True):
            if process.wait() != 0:
                lines = (out / "log").read_text(encoding="utf-8", errors="replace").splitlines()
                message = lines[-1] if lines else f"exit code {process.returncode}"
                raise BadInput(f"the tiny runs of {path} failed: {message}")
    finally:
        for process in running:
            process.terminate()
            process.wait()


def start(path: Path, out: Path, experiments: list[str]) -> subprocess.Popen:
    """Start the tiny runs of a checkout, with what they print in ``log``."""
    out.mkdir()
    environment = os.environ | {"PYTHONPATH": str(path), "ATTNLIB_ROOT": str(path), "OMP_NUM_THREADS": "1"}
    if data := os.environ.get("ATTNLIB_DATA"):
        environment["ATTNLIB_DATA"] = str(Path(data).absolute())
    command = [sys.executable, "-m", "tools.tiny_runs", str(out), *experiments]
    with (out / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=path, env=environment, stdout=log, stderr=log)


def compare_with(commit: str, experiments: list[str], accepted: set[str]) -> tuple[Report, str]:
    """Run the code of a commit and that of today, and compare them; returns what :func:`compare` does."""
    with checkout(commit) as base, tempfile.TemporaryDirectory(prefix="attnlib-same-") as folder:
        before, now = Path(folder) / "before", Path(folder) / "now"
        run_both([base, ROOT], [before, now], experiments)
        return compare(before, now, changed_paper_results(commit), accepted)


def note_base() -> None:
    """Note today's commit as the last that passed.

    Raises BadInput: the code has edits that are not committed.
    """
    if git("status", "--porcelain", "--", *CODE):
        raise BadInput("the code has edits that are not committed; commit them, and give the command again")
    head = git("rev-parse", "HEAD")
    write_json_atomic(NOTED, {"base": head, "accepted": {}})
    print(f"{NOTED.relative_to(ROOT)} names {head[:12]} now; commit it")


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Compare with a commit, and print a line for each difference; exit code 1 if there is a failure."""
    noted = json.loads(NOTED.read_text(encoding="utf-8"))
    parser = parser_of("tools.same_numbers", __doc__)
    parser.add_argument("base", nargs="?", default=noted["base"], help=f"a commit (default: {noted['base']})")
    parser.add_argument("--experiment", action="append", default=[], metavar="NAME", help="only this one")
    parser.add_argument("--accept", action="store_true", help="if all is well, note HEAD as the next base")
    options = parser.parse_args(arguments)
    if options.accept and options.experiment:
        parser.error("--accept goes with a comparison of all experiments")
    for name in options.experiment:
        check_known("experiment", name, registry.names())
    commit = commit_of(options.base)
    if code_differs(commit):
        report, amount = compare_with(commit, options.experiment, set(noted["accepted"]))
        for line in [*report.notes, *report.failures]:
            print(line)
        if report.failures:
            print(f"{len(report.failures)} lines of failures; compared with {commit[:12]}: {amount}")
            return 1
        print(f"all is well; compared with {commit[:12]}: {amount}")
    else:
        print(f"all is well; the code is that of {commit[:12]}")
    if options.accept:
        note_base()
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
