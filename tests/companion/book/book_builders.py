"""Small checkouts, their notebooks, and the processes that work there."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import nbformat
import psutil

from companion.book.project import Figure, Project

ROOT = Path(__file__).parents[3]
Found = TypeVar("Found")

HEADER = Path(__file__).with_name("header.md").read_text(encoding="utf-8") + "\n"  # of a notebook


def write(project: Project, name: str, *cells: str, header: str = HEADER) -> Figure:
    """A notebook in the part ``attend``: its parameters and some cells."""
    path = project.notebooks / "attend" / f"{name}.md"
    text = "\n".join(f"```{{code-cell}} python3\n{cell}\n```\n" for cell in cells)
    path.write_text(header + text, encoding="utf-8")
    return Figure(f"attend/{name}", path)


def texts(notebook: Path) -> str:
    """Return all that the cells of an executed notebook print."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def copied(folder: Path, *names: str | Path) -> Path:
    """Folders and files of this checkout, there as well."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def checkout_of_two(folder: Path, steps: int = 500) -> Path:
    """A copy of the code, with one figure, of two small networks at the paper profile."""
    figure = "notebooks/attend/temporal_share"
    copied(
        folder,
        "attnlib",
        "companion",
        "claims",
        "profiles",
        "notebooks/shared",
        "Snakefile",
        "pyproject.toml",
    )
    copied(folder, figure, f"{figure}.md")
    small = f"('one_to_one',), architecture=('AED',), seeds=2, width=8, steps={steps}, fit_samples=100"
    with (folder / figure / "experiment.py").open("a") as experiment:
        experiment.write(f"\n\nPROFILES = {{'paper': Config(task={small})}}\n")
    return folder


def output_of(command: list, folder: Path, *, code: int = 0, **environment: str) -> str:
    """All that a command says, which works in a folder and has to end with this code."""
    variables = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr + done.stdout


CONFIGURATION = """
extensions = ["myst_nb"]
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
"""


def built(folder: Path, *options: str) -> Path:
    """The HTML of the pages in a folder, with the marks that the book's pages have."""
    (folder / "conf.py").write_text(CONFIGURATION)
    output_of([sys.executable, "-m", "sphinx", "-q", *options, folder, folder / "html"], folder)
    return folder / "html"


def until(true: Callable[[], Found], seconds: float = 120) -> Found:
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def at_work(folder: Path, *words: str) -> list[int]:
    """Numbers of the processes that work below a folder and whose command has these words after its first."""
    processes = [process.info for process in psutil.process_iter(["pid", "cwd", "cmdline"])]
    below = [process for process in processes if (process["cwd"] or "").startswith(str(folder))]
    return [process["pid"] for process in below if (*process["cmdline"][1 : 1 + len(words)],) == words]


def killed(command: list, folder: Path, begun: Callable[[], object], **environment: str) -> None:
    """What a command is left as, with all that it started, which is killed once it has begun."""
    options = {"env": os.environ | environment, "process_group": 0, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, **options)
    until(begun, 300)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not at_work(folder))
