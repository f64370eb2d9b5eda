"""Would the tests notice? ``python -m tests.mutants`` changes the code in one small way a time.

A seed draws places of the code that numbers come from, the same ones each time. For each, a process that has
loaded torch forks, and runs the tests of the folder in a copy of the checkout with this one change, those
first that enter the function that has it. A mutant that no test kills is printed, and either shows what no
test looks at or is listed, with the reason, in ``mutants.txt``. What was killed is kept in
``build/mutants.jsonl``, from where the same command goes on.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import scipy.stats  # noqa: F401, once here, not in every fork
import torch  # noqa: F401

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "mutants.jsonl"
REFUSALS = "tests/attnlib/test_refusals.py"
TESTS = {  # code: its tests
    "attnlib/decomposition": f"tests/attnlib/decomposition {REFUSALS}",
    "attnlib/probes": f"tests/attnlib/probes {REFUSALS}",
    "attnlib/training": f"tests/attnlib/training {REFUSALS}",
    "attnlib/sealed.py": "tests/attnlib/test_files.py",
    "companion/claims/estimates.py": "tests/companion/claims",
    "companion/claims/verdicts.py": "tests/companion/claims",
    "companion/runs/loop.py": "tests/companion/runs/test_training.py",
    "notebooks/shared/intervals.py": "tests/notebooks/shared/test_intervals.py",
}
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.Is: ast.IsNot, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EQUIVALENT = dict(
    line.rsplit("  # ", 1)
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)
SECONDS = 900  # a mutant that takes longer hangs, and is noticed by that; so is one that takes CPU seconds
MEMORY = 16 * 2**30


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    source: str  # of this line
    change: str
    text: str
    function: str  # whose body has the change, or nothing
    around: str  # this function, or the module

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.change}"

    @property
    def reason(self) -> str:
        """Why no test can kill it, if so."""
        return EQUIVALENT.get(f"{self.path}  {self.source}  {self.change}", "")

    def key(self, seed: int) -> str:
        """What it is drawn by and kept under, which an edit of another function leaves."""
        return hashlib.sha256(f"{seed} {self.path} {self.function}\n{self.around}".encode()).hexdigest()


def mutants(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    outside = {id(each) for node in ast.walk(tree) for name in ("annotation", "returns")
               if (found := getattr(node, name, None)) for each in ast.walk(found)}  # fmt: skip
    inside: dict[int, tuple[str, ast.AST]] = {}

    def note(node: ast.AST, name: str) -> None:
        for own in ast.iter_child_nodes(node):
            if isinstance(own, ast.FunctionDef):
                inside.update(
                    (id(each), (name + own.name, own)) for line in own.body for each in ast.walk(line)
                )
            elif isinstance(own, ast.ClassDef):
                note(own, f"{name}{own.name}.")

    note(tree, "")
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in SWAPS:
                field, value = "ops", [SWAPS[type(op)]()]
            case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
                field, value = "op", SWAPS[type(op)]()
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                field, value = "value", number + 1
            case _:
                continue
        if id(node) not in outside:
            old, before = getattr(node, field), ast.unparse(node)
            setattr(node, field, value)
            name, around = inside.get(id(node), ("", tree))
            yield Mutant(
                str(path.relative_to(ROOT)),
                node.lineno,
                lines[node.lineno - 1].strip(),
                f"{before} → {ast.unparse(node)}",
                ast.unparse(tree),
                name,
                ast.unparse(around),
            )
            setattr(node, field, old)


def forked(work: Callable[[], bool], cpu: float) -> bool:
    """Whether some work in a process of its own comes to the end and says yes."""
    if (child := os.fork()) == 0:
        code = 3
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu)))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = int(not work())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    end = time.monotonic() + SECONDS
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(ended[1] if ended[0] else os.waitpid(child, 0)[1])
    if code == 3:
        raise RuntimeError("the round itself is at fault")
    return code == 0


def copy(folder: Path) -> None:
    for name in ("attnlib", "companion", "notebooks", "tests", "claims"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "results", "Snakefile", "_config.yml", "book"):
        (folder / name).symlink_to(ROOT / name)


class Round:
    """The tests of a piece of code, once, in some order.

    Attributes:
        failed: the first test that failed
        took: seconds of each test
        entered: functions of the code that each test entered, where they are watched
    """

    def __init__(self, order: Callable[[str], object], watched: Path | None = None):
        self.order, self.watched = order, str(watched)
        self.failed = ""
        self.took: dict[str, float] = {}
        self.entered: dict[str, list[str]] = {}

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: self.order(item.nodeid))

    def pytest_runtest_logreport(self, report):
        self.took[report.nodeid] = self.took.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed = self.failed or report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        own: set[str] = set()

        def entered(frame, event, _):
            if event == "call" and frame.f_code.co_filename.startswith(self.watched):
                own.add(frame.f_code.co_qualname)

        sys.setprofile(entered if self.watched != "None" else None)
        yield
        sys.setprofile(None)
        self.entered[item.nodeid] = sorted(own)


def passes(folder: Path, code: str, own: Round) -> bool:
    """Whether all tests pass in a copy of the checkout, as if this process had started there."""
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path[:] = [str(folder), *(own for own in sys.path if Path(own).resolve() != ROOT)]
    sys.modules.pop("tests", None)
    with open(folder / "said", "a") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    (folder / "note").write_text(json.dumps({"failed": "ended"}))
    ended = pytest.main(
        ["-x", "-q", "-s", "-p", "no:cacheprovider", *TESTS[code].split(), code], plugins=[own]
    )
    facts = {"failed": own.failed or f"exit code {ended}", "took": own.took, "entered": own.entered}
    (folder / "note").write_text(json.dumps(facts))
    return ended == 0


def try_all(folder: Path, code: str, drawn: list[Mutant], seed: int) -> None:
    """Try mutants of a piece of code in a copy of the checkout."""
    shuffled = Round(lambda _: random.random(), folder / code)
    if not forked(lambda: passes(folder, code, shuffled), SECONDS):
        raise SystemExit(f"tests fail without a mutant: {(folder / 'said').read_text()[-9000:]}")
    plain = json.loads((folder / "note").read_text())
    seconds = 60 + 3 * sum(plain["took"].values())

    for mutant in drawn:

        def first(test: str, mutant: Mutant = mutant) -> tuple[bool, float]:
            entered = any(own.startswith(mutant.function) for own in plain["entered"][test])
            return not entered, plain["took"][test]

        start = time.monotonic()
        (folder / mutant.path).write_text(mutant.text, encoding="utf-8")
        killed = not forked(lambda first=first: passes(folder, code, Round(first)), seconds)
        shutil.copy(ROOT / mutant.path, folder / mutant.path)
        by = json.loads((folder / "note").read_text())["failed"] if killed else ""
        took = round(time.monotonic() - start, 1)
        with RESULTS.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps({"key": mutant.key(seed), "by": by, "seconds": took}) + "\n")
        print(f"{'killed  ' if by else 'SURVIVED'} {took:6} {mutant}  {by}", flush=True)


def found_before() -> dict[str, str]:
    """The test that killed a mutant, or nothing, by the mutant's key."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.is_file() else []
    return {own["key"]: own["by"] for own in map(json.loads, lines)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="mutants drawn (default: 300)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="files whose path has this in it")
    options = parser.parse_args()
    places = {
        mutant.key(options.seed): (code, mutant)
        for code in TESTS
        for path in ([ROOT / code] if code.endswith(".py") else sorted((ROOT / code).glob("*.py")))
        if options.only in str(path)
        for mutant in mutants(path)
    }
    drawn = {key: places[key] for key in sorted(places)[: options.count]}
    RESULTS.parent.mkdir(exist_ok=True)
    before = found_before()
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder))
        for code in TESTS:
            left = [mutant for key, (own, mutant) in drawn.items() if own == code and not before.get(key)]
            if left:
                try_all(Path(folder), code, left, options.seed)
    by = found_before()
    alive = [mutant for key, (_, mutant) in drawn.items() if not by[key]]
    true = [mutant for mutant in alive if not mutant.reason]
    for mutant in alive:
        print(f"{mutant}  {mutant.reason or 'SURVIVED'}")
    print(f"{len(drawn)} of {len(places)} mutants: {len(drawn) - len(alive)} killed, "
          f"{len(alive) - len(true)} equivalent, {len(true)} survived")  # fmt: skip
    return int(len(true) > 0.05 * (len(drawn) - len(alive) + len(true)))


if __name__ == "__main__":
    sys.exit(main())
