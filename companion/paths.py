"""Where this checkout lies, what is in it, and which file a module is: the ground all folders stand on."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("attnlib", "companion", "notebooks")

RESULTS = {"quick": "build/results/quick", "paper": "results/paper"}  # folder of each profile's results
PROFILES = tuple(RESULTS)  # of the book; experiments have ``tiny`` besides, for tests

PAPER = ROOT / "results" / "paper"
ARCHIVE = PAPER / "archive"  # measurements of the paper profile, packed
SENTINELS = "results/sentinels.json"  # in a checkout: the last outcome of `make sentinels`
TABLE_OF_TASKS = r"TASKS(: [^=\n]+)? = \{"  # beginning of the line in a module that has tasks
MEASUREMENTS = ROOT / "build" / "answers"  # new ones, until they are packed


def path_of(module: str) -> Path | None:
    """Return the file of a module of this project, found by its name alone; None if there is none."""
    if module.partition(".")[0] not in PACKAGES:
        return None
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def modules_with(beginning: str, where: str = "notebooks/**/*.py") -> dict[Path, str]:
    """Find the modules with a line that begins so, by path; nothing is imported to find them.

    Args:
        beginning: of the line, a regular expression.
        where: the modules that are looked at, a pattern below the checkout.
    """
    line = re.compile(f"^{beginning}", re.MULTILINE)
    modules = {}
    for path in sorted(ROOT.glob(where)):
        if line.search(path.read_text(encoding="utf-8")):
            modules[path] = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return modules
