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
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.Is: ast.IsNot, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EQUIVALENT = {
    ("attnlib/training/evaluate.py", "256 → 257"): "a size of batches, which moves last bits alone",
    ("companion/claims/verdicts.py", "1e-09 → 1.000000001"): "slack for floating point",
}
SECONDS = 600  # a mutant that takes longer hangs, and is noticed by that


def mutants(path: Path) -> Iterator[tuple[str, str]]:
    """What is changed, and the whole text with the change."""
    tree = ast.parse(path.read_bytes())
    annotations = {id(each) for node in ast.walk(tree) for name in ("annotation", "returns")
                   if (found := getattr(node, name, None)) for each in ast.walk(found)}  # fmt: skip
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
        if id(node) not in annotations:
            old, before = getattr(node, field), ast.unparse(node)
            setattr(node, field, value)
            yield f"{path.relative_to(ROOT)}:{node.lineno}  {before} → {ast.unparse(node)}", ast.unparse(tree)
            setattr(node, field, old)


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
        for path, code, tests, (change, text) in drawn:
            copy = Path(folder) / path
            copy.write_text(text, encoding="utf-8")
            killed = tested(Path(folder), code, tests)
            shutil.copy(ROOT / path, copy)
            reason = EQUIVALENT.get((str(path), change.partition("  ")[2]))
            counts["killed" if killed else "equivalent" if reason else "survived"] += 1
            if not killed:
                print(f"{'equivalent' if reason else 'SURVIVED'}  {change}  {reason or ''}", flush=True)
    print(f"{len(drawn)} of {len(places)} mutants: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    return int(counts["survived"] > 0.05 * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
