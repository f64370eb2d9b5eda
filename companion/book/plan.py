"""What a build of the book consists of, for the Snakefile: figures, their results, the models behind them.

Nothing here computes. A result's *stamp* and a model's key are hashes of what goes into them, so that
Snakemake redoes what has changed and nothing else. They are kept as long as no code has changed, and torch is
imported only where one has.
"""

import ast
import atexit
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

from attnlib.errors import AttnlibError, CorruptFile, DataUnavailable
from companion.book.project import Figure, Project
from companion.book.workflow import Memo, code_files, state
from companion.data.sources import check, fetch
from companion.results import registry
from companion.results.config import plain
from companion.results.request import Request
from companion.runs.fingerprint import PACKAGES, ROOT, data_sets, fingerprint
from companion.runs.keys import Spec, model_key

ARCHIVE = "results/paper/archive"  # answers of networks at the paper profile, in the checkout
ANSWERS = "build/answers"  # new ones, until they are packed
LOOK = ("book.mplstyle", "instrument.html.jinja")  # of every figure
CODE_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def _memo(project: Project) -> Memo:
    memo = Memo(project.build / ".plan.json", state(Project(ROOT), code_files(ROOT)))
    atexit.register(memo.save)
    return memo


@dataclass(frozen=True, eq=False)  # told apart by identity: the specs cannot be hashed
class PlannedResult:
    """One experiment at one setting, and what it takes."""

    project: Project
    request: Request

    @property
    def path(self) -> str:
        """The JSON file to make."""
        return f"{self.request.folder}/{self.request.experiment}.json"

    @cached_property
    def specs(self) -> dict[str, Spec]:
        """What defines each trained model it needs, by key."""
        module = registry.load(self.request.experiment)
        return {model_key(spec): spec for spec in module.models(self.request.config)}

    @cached_property
    def _today(self) -> dict:
        """Code, settings and models of a result that is made today."""

        def found() -> dict:
            from companion.results.run import code_of

            config, code = self.request.config, code_of(self.request.experiment)
            measurements = any(True for _ in registry.load(self.request.experiment).measurements(config))
            made = {"code": code, "config": plain(config), "models": list(self.specs)}
            stamp = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]
            return made | {"stamp": stamp, "measurements": measurements}

        key = " ".join(self.request.words)
        return found() if self.request.parameters else _memo(self.project)(key, found)

    @property
    def stamp(self) -> str:
        """Hash of code, settings and models, fewer where data lacks; a result of another is made again."""
        return self._today["stamp"]

    @cached_property
    def current(self) -> bool:
        """Whether the file is there and was made by today's code with these settings."""
        path = self.project.root / self.path
        found, origin = _json(path), _json(path.with_name(f"{path.stem}.provenance.json"))
        made = {"code": origin.get("code"), "config": found.get("config"), "models": origin.get("models")}
        return bool(found) and made.items() <= self._today.items()

    @cached_property
    def archived(self) -> bool:
        """Whether it asks its networks just what the book's paper profile does; answers are then shared."""
        if self.request.profile != "paper" or not self.request.parameters:
            return self.request.profile == "paper" and self._today["measurements"]
        experiment = registry.load(self.request.experiment)
        measurements = set(experiment.measurements(self.request.config))
        keys = {model_key(each.spec) for each in measurements}
        book = experiment.measurements(self.request.standard)
        return bool(measurements) and measurements == {own for own in book if model_key(own.spec) in keys}

    @cached_property
    def cannot_run(self) -> str:
        """Why it cannot be made here, naming the data that is missing; empty when it can."""
        specs = () if self.current else self.specs.values()
        return next(filter(None, (_why_no_data(replace(spec, seed=0)) for spec in specs)), "")

    @property
    def seconds(self) -> float:
        """What the committed result took to train, a guide to which take long; much, where there is none."""
        path = self.project.results("paper") / f"{self.request.experiment}.provenance.json"
        return _json(path).get("training_seconds", 1e5)

    @property
    def arguments(self) -> str:
        """For ``python -m companion.results``."""
        archive = ["--archive", ARCHIVE, "--answers", ANSWERS] if self.archived else []
        out = ["--out", self.request.folder, "--models", "build/models", "--device", "cpu"]
        return shlex.join([*self.request.words, *archive, *out])


@cache
def planned(project: Project, experiment: str, profile: str) -> PlannedResult | None:
    """A result of the book; None when there is no such experiment."""
    return PlannedResult(project, Request(experiment, profile)) if experiment in registry.names() else None


@cache
def planned_run(project: Project, name: str) -> PlannedResult:
    """The result of a run with parameters of its own, by the name of its folder in ``build/runs``."""
    return PlannedResult(project, Request.read(project.build / "runs" / name / "run.json"))


def paper_result(project: Project, figure: Figure) -> str:
    """Digest of the committed result of the paper profile, which a page may show beside its own."""
    path = project.results("paper") / f"{figure.experiment}.json"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else "none"


@cache
def _why_no_data(spec: Spec) -> str:
    """Why a model or a procedure's run cannot be made here; empty where it can."""
    from companion.results.run import data_of

    try:
        data_of((spec,))
    except (DataUnavailable, CorruptFile) as error:
        return str(error)
    return ""


def _json(path: Path) -> dict:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def imports_of(figure: Figure) -> frozenset[str]:
    """What the cells of a notebook import from this project, as ``module:name``.

    A cell that is not Python is passed over: the figure's own job says so, and no other is held up.
    """
    found: set[str] = set()
    for cell in CODE_CELL.findall(figure.path.read_text(encoding="utf-8")):
        with suppress(SyntaxError):
            for node in ast.walk(ast.parse(cell)):
                if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in PACKAGES:
                    found.update(f"{node.module}:{alias.name}" for alias in node.names)
    return frozenset(found)


def drawing_code(project: Project, figure: Figure) -> str:
    """Fingerprint of what a notebook imports, its templates and the look: it is drawn anew as they change."""
    names = sorted(imports_of(figure))
    code = _memo(project)(" ".join(["imports", *names]), lambda: fingerprint(*names))
    files = [*sorted((project.notebooks / figure.id).glob("*.jinja")), *map(Path(__file__).with_name, LOOK)]
    return "-".join([code, *(hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files)])


def bring_data(project: Project, requests: Iterable[Request]) -> None:
    """Download published data that figures read and that is not here, where ``ATTNLIB_DATA`` is not set.

    What cannot be had is said on standard error, and the figures that need it say so on their pages.
    """
    if os.environ.get("ATTNLIB_DATA"):
        return
    results = (PlannedResult(project, one) for one in requests if one.experiment in registry.names())
    roots = {spec.roots for one in results if not one.current for spec in one.specs.values()}
    for constant in sorted({constant for each in roots for constant in data_sets(*each)}):
        module, name = constant.split(":")
        data = getattr(import_module(module), name)
        if all(status.state == "ok" for status in check(data)):
            continue
        print(f"downloading {data.name} …", file=sys.stderr, flush=True)
        try:
            fetch(data)
        except AttnlibError as error:
            print(f"{data.name}: {error}", file=sys.stderr)
