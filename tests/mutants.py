"""Would the tests notice? ``python -m tests.mutants --count 300`` changes the code in one small way a time.

A seed draws places of the code that numbers come from, the same ones each time; each is changed in a copy of
the checkout, and the tests of its folder run there. A mutant that no test kills is printed, and either shows
what no test looks at or is listed, with the reason, in :data:`EQUIVALENT`.
"""

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {  # code: its tests
    "attnlib/decomposition": "tests/attnlib/decomposition",
    "attnlib/probes": "tests/attnlib/probes",
    "attnlib/training": "tests/attnlib/training",
    "attnlib/sealed.py": "tests/attnlib/test_sealed.py",
    "companion/claims/estimates.py": "tests/companion/claims",
    "companion/claims/verdicts.py": "tests/companion/claims",
    "companion/runs/loop.py": "tests/companion/runs/test_training.py",
    "notebooks/shared/intervals.py": "tests/notebooks/shared/test_intervals.py",
}
SWAPS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.Is: ("is", "is not"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
EQUIVALENT = {
    ("attnlib/training/evaluate.py", "256 → 257"): "a size of batches, which moves last bits alone",
    ("companion/claims/verdicts.py", "1e-9 → 1.000000001"): "slack for floating point",
}
SECONDS = 600  # a mutant that takes longer hangs, and is noticed by that


def mutants(path: Path) -> Iterator[tuple[int, int, str, str]]:
    """Where to change a file: begin and end in bytes, what is there, and what to put."""
    content = path.read_bytes()
    lines = [0]
    for line in content.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def between(first: ast.expr, second: ast.expr, kind: type) -> Iterator[tuple[int, int, str, str]]:
        begin = lines[first.end_lineno - 1] + first.end_col_offset
        end = lines[second.lineno - 1] + second.col_offset
        old, new = SWAPS.get(kind, ("", ""))
        if old and content[begin:end].count(old.encode()) == 1:
            place = begin + content[begin:end].index(old.encode())
            yield place, place + len(old), old, new

    tree = ast.parse(content)
    annotations = {id(each) for node in ast.walk(tree) for name in ("annotation", "returns")
                   if (found := getattr(node, name, None)) for each in ast.walk(found)}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in annotations:
            continue
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from between(left, right, type(op))
            case ast.BinOp(left=left, op=op, right=right):
                yield from between(left, right, type(op))
            case ast.BoolOp(op=op, values=[first, second, *_]):
                yield from between(first, second, type(op))
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                begin, end = (
                    lines[node.lineno - 1] + node.col_offset,
                    lines[node.end_lineno - 1] + node.end_col_offset,
                )
                yield begin, end, content[begin:end].decode(), repr(value + 1)


def tested(copy: Path, code: str, tests: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests, code]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="mutants drawn (default: 60)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="files whose path has this in it")
    options = parser.parse_args()
    places = [
        (path.relative_to(ROOT), code, tests, mutant)
        for code, tests in TESTS.items()
        for path in ([ROOT / code] if code.endswith(".py") else sorted((ROOT / code).glob("*.py")))
        if options.only in str(path)
        for mutant in mutants(path)
    ]
    drawn = random.Random(options.seed).sample(places, min(options.count, len(places)))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("attnlib", "companion", "notebooks", "tests", "claims"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "results", "Snakefile", "_config.yml", "book"):
            (Path(folder) / name).symlink_to(ROOT / name)
        for path, code, tests, (begin, end, old, new) in drawn:
            copy, content = Path(folder) / path, (ROOT / path).read_bytes()
            copy.write_bytes(content[:begin] + new.encode() + content[end:])
            killed = tested(Path(folder), code, tests)
            copy.write_bytes(content)
            reason = EQUIVALENT.get((str(path), f"{old} → {new}"))
            counts["killed" if killed else "equivalent" if reason else "survived"] += 1
            if not killed:
                line = content.count(b"\n", 0, begin) + 1
                print(
                    f"{'equivalent' if reason else 'SURVIVED'}  {path}:{line}  {old} → {new}  {reason or ''}",
                    flush=True,
                )
    print(f"{len(drawn)} of {len(places)} mutants: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    return int(counts["survived"] > 0.05 * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
