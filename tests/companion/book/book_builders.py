"""Small checkouts, their notebooks, and the processes that work there."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from companion.book.project import Figure, Project

ROOT = Path(__file__).parents[3]

HEADER = """---
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A figure

```{code-cell} python3
:tags: [parameters]
profile = "quick"
task = None
```

"""

TWO = '''
"""Two networks."""

from companion.results.config import BaseConfig, Positive
from companion.results.measurements import answers, measurements_of
from companion.runs.suite import spec_of
from notebooks.shared.measure import measure_alignment_terms



class Config(BaseConfig):
    """Settings."""

    steps: Positive = STEPS  #: updates of each training


PROFILES = {"paper": Config()}


def measurements(config):
    small = {"scale": "quick", "steps": config.steps, "width": 8}
    specs = [spec_of("one_to_one", "AED", seed=seed, **small) for seed in range(2)]
    return measurements_of(specs, measure_alignment_terms, fit_samples=100)


def compute(config, store):
    found = answers(measurements(config), store)
    return {"quality": [own["quality"] for _, own in found]}, {}
'''
TWO_PAGE = "---\npart: IV\norder: 15\n---\n# Two\n"


def write(project: Project, name: str, *cells: str, header: str = HEADER) -> Figure:
    """A notebook in the part ``attend``: its parameters and some cells."""
    path = project.notebooks / "attend" / f"{name}.md"
    text = "\n".join(f"```{{code-cell}} python3\n{cell}\n```\n" for cell in cells)
    path.write_text(header + text, encoding="utf-8")
    return Figure(f"attend/{name}", path)


def copied(folder: Path, *names: str) -> Path:
    """Folders and files of this checkout, there as well."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def checkout_of_two(folder: Path, steps: int = 3_000) -> Path:
    """A copy of the code, with one figure at the paper profile, of two networks."""
    copied(folder, "attnlib", "companion", "profiles", "notebooks/shared", "Snakefile", "pyproject.toml")
    own = folder / "notebooks" / "beyond" / "two" / "experiment.py"
    own.parent.mkdir(parents=True)
    own.write_text(TWO.lstrip().replace("STEPS", str(steps)))
    own.parent.with_suffix(".md").write_text(TWO_PAGE)
    return folder


def until(true: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def at_work(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and command of every process that works below a folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(folder)):
                yield int(process.name), (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
