"""Would the tests notice? ``python -m tests.mutants`` changes the code in one small way a time.

A seed draws places of the code that numbers come from, the same ones each time. In a copy of the checkout
each is changed by itself, and the tests of its folder run until one fails, the one that failed last before
all others: it often notices the next change of the same function too. A mutant that no test kills is printed,
and either shows what no test looks at or is listed, with the reason, in ``mutants.txt``. What was killed is
kept in ``build/mutants.jsonl``, from where the same command goes on.
"""

import argparse
import ast
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.tables import beside

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "mutants.jsonl"
TESTS = beside(__file__, "mutants")
NAMES = beside(__file__, "swaps")
SWAPS = {getattr(ast, old): getattr(ast, new) for old, new in NAMES.items()}
EQUIVALENT = dict(
    line.rsplit("  # ", 1)
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)
SECONDS = 900  # a mutant that takes longer hangs, and is noticed by that
MEMORY = 16 * 2**30


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    source: str  # of this line
    change: str
    text: str
    around: str  # the function whose body has the change, below its name, or the module

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.change}"

    @property
    def entry(self) -> str:
        """What ``mutants.txt`` lists it by."""
        return f"{self.path}  {self.source}  {self.change}"

    @property
    def reason(self) -> str:
        """Why no test can kill it, if so."""
        return EQUIVALENT.get(self.entry, "")

    def key(self, seed: int) -> str:
        """What it is drawn by and kept under, which an edit of another function leaves."""
        return hashlib.sha256(f"{seed} {self.path} {self.around}".encode()).hexdigest()


def mutants(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    outside = {id(part) for node in ast.walk(tree) for name in ("annotation", "returns")
               if (annotation := getattr(node, name, None)) for part in ast.walk(annotation)}  # fmt: skip
    inside = {}  # the function whose body has a node, below its name
    for owner in ast.walk(tree):
        prefix = f"{owner.name}." if isinstance(owner, ast.ClassDef) else ""
        for function in (
            function for function in ast.iter_child_nodes(owner) if isinstance(function, ast.FunctionDef)
        ):
            for part in (part for line in function.body for part in ast.walk(line)):
                inside.setdefault(id(part), (prefix + function.name, function))
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
            place = str(path.relative_to(ROOT)), node.lineno, lines[node.lineno - 1].strip()
            changed = f"{before} → {ast.unparse(node)}", ast.unparse(tree), f"{name}\n{ast.unparse(around)}"
            yield Mutant(*place, *changed)
            setattr(node, field, old)


def copy(folder: Path) -> None:
    compiled = shutil.ignore_patterns("__pycache__")
    for name in ("attnlib", "companion", "notebooks", "tests", "claims"):
        # Links stay links: a situation of the tests has one that leads nowhere.
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=compiled)
    for name in ("pyproject.toml", "results", "Snakefile", "_config.yml", "book"):
        (folder / name).symlink_to(ROOT / name)


def failed(folder: Path, code: str) -> str:
    """The first test of a piece of code that fails in a copy of the checkout; nothing if all pass."""
    options = ["-x", "-q", "--ff", "-o", f"cache_dir={folder / 'cache'}"]
    command = [sys.executable, "-m", "pytest", *options, *TESTS[code].split(), code]
    given = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(folder)}, "timeout": SECONDS}
    bounded = partial(resource.setrlimit, resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=bounded, **given)
    except subprocess.TimeoutExpired:
        return "it hangs"
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if done.returncode == 0 else (failures or [f"exit code {done.returncode}"])[0]


def try_all(folder: Path, code: str, drawn: list[Mutant], seed: int) -> None:
    if failure := failed(folder, code):
        raise SystemExit(f"without a mutant: {failure}")
    for mutant in sorted(drawn, key=str):
        start = time.monotonic()
        (folder / mutant.path).write_text(mutant.text, encoding="utf-8")
        by = failed(folder, code)
        shutil.copy(ROOT / mutant.path, folder / mutant.path)
        took = round(time.monotonic() - start, 1)
        with RESULTS.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps({"key": mutant.key(seed), "by": by, "seconds": took}) + "\n")
        print(f"{'killed  ' if by else 'SURVIVED'} {took:6} {mutant}  {by}", flush=True)


def found_before() -> dict[str, str]:
    """The test that killed a mutant, or nothing, by the mutant's key."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.is_file() else []
    return {entry["key"]: entry["by"] for entry in map(json.loads, lines)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="mutants drawn (default: 300)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    places = {
        mutant.key(options.seed): (code, mutant)
        for code in TESTS
        for path in ([ROOT / code] if code.endswith(".py") else sorted((ROOT / code).glob("*.py")))
        for mutant in mutants(path)
    }
    drawn = {key: places[key] for key in sorted(places)[: options.count]}
    RESULTS.parent.mkdir(exist_ok=True)
    before = found_before()
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder))
        for code in TESTS:
            left = [
                mutant for key, (target, mutant) in drawn.items() if target == code and not before.get(key)
            ]
            if left:
                try_all(Path(folder), code, left, options.seed)
    by = found_before()
    alive = [mutant for key, (_, mutant) in drawn.items() if not by[key]]
    true = [mutant for mutant in alive if not mutant.reason]
    for entry in sorted(EQUIVALENT.keys() - {mutant.entry for _, mutant in places.values()}):
        print(f"mutants.txt lists what is no mutant any more: {entry}")
    for mutant in alive:
        print(f"{mutant}  {mutant.reason or 'SURVIVED'}")
    print(f"{len(drawn)} of {len(places)} mutants: {len(drawn) - len(alive)} killed, "
          f"{len(alive) - len(true)} equivalent, {len(true)} survived")  # fmt: skip
    return int(len(true) > 0.05 * (len(drawn) - len(alive) + len(true)))


if __name__ == "__main__":
    sys.exit(main())
