"""Where this checkout lies, what is in it, and which file a module is: the ground all folders stand on."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("attnlib", "companion", "notebooks")

RESULTS = {"quick": "build/results/quick", "paper": "results/paper"}  # folder of each profile's results
PROFILES = tuple(RESULTS)  # of the book; experiments have ``tiny`` besides, for tests

PAPER = ROOT / "results" / "paper"
ARCHIVE = PAPER / "archive"  # measurements of the paper profile, packed
SENTINELS = "results/sentinels.json"  # in a checkout: the last outcome of `make sentinels`
TRAININGS = "trainings"  # folders of the figures with trainings, each a module with ``record``
TASKS = "tasks"  # folders of the figures with tasks, each a module with a table ``TASKS``
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


def modules_in(folder: str) -> dict[Path, str]:
    """Find the modules in every folder of this name below ``notebooks``, by path; none is imported.

    Args:
        folder: a name, such as ``trainings``.

    Returns:
        The name of each module by its path, in the order of paths.
    """
    paths = sorted(ROOT.glob(f"notebooks/**/{folder}/*.py"))
    return {path: module_of(path) for path in paths}


def module_of(path: Path) -> str:
    """Return the name of a module of this project from the path of its file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
