"""What a build of the book consists of, for the Snakefile: figures, their results, the models behind them.

Nothing here computes. A result's *stamp* and a model's key are hashes of what goes into them, so that
Snakemake redoes what has changed and nothing else.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import AttnlibError, CorruptFile, DataUnavailable
from attnlib.files import atomic_path, write_json_atomic
from companion.book.project import Figure, Project, discover, find
from companion.data.sources import Dataset, check, fetch
from companion.runs.fingerprint import PACKAGES, data_sets, fingerprint

if TYPE_CHECKING:
    from companion.runs.keys import Spec
    from companion.runs.product import ProductSpec
    from companion.runs.spec import ModelSpec


# Bring the data that figures read before they run: what a reader without a mirror expects of one command.


def bring_data(plan: Plan) -> None:
    """Download the published data that the figures of a plan read and that is not here; never fails.

    With ``ATTNLIB_DATA`` set nothing is downloaded. What cannot be had is said on standard error, and the
    figures that need it say so on their pages.
    """
    if os.environ.get("ATTNLIB_DATA"):
        return
    waiting = [result for result in plan.results.values() if not result.current]
    for data in data_of_specs(spec for result in waiting for spec in result.specs.values()):
        if all(status.state == "ok" for status in check(data)):
            continue
        print(f"downloading {data.name} …", file=sys.stderr, flush=True)
        try:
            fetch(data)
        except AttnlibError as error:
            print(f"{data.name}: {error}", file=sys.stderr)


def data_of_specs(specs: Iterable[Spec]) -> list[Dataset]:
    """The data sets that models and recipes read: those that the code behind them refers to."""
    constants = {constant for roots in {spec.roots for spec in specs} for constant in data_sets(*roots)}
    found = {getattr(import_module(module), name) for module, name in (one.split(":") for one in constants)}
    return sorted(found, key=lambda data: data.name)


# Trainings in batches: what the same figures need is trained in one process, which starts only once.

LARGEST = 16  # products a batch: few starts, and still enough batches to share out among cores
LARGEST_ON_DATA = 3  # models of published text: they take longest, and no core should wait for one batch


@dataclass(frozen=True)
class Batch:
    """Products of one kind, by key, that are made in turn by one job.

    Attributes:
        module: what makes them, for ``python -m``.
        specs: key → spec.
    """

    module: str
    specs: Mapping[str, ModelSpec | ProductSpec]

    @property
    def arguments(self) -> str:
        """For ``python -m <module>``."""
        return shlex.join(word for spec in self.specs.values() for word in ("--spec", spec.to_json()))

    @property
    def name(self) -> str:
        """The first product's setting, how many there are, and a hash of their keys."""
        first = next(iter(self.specs)).rpartition("-")[0]
        more = f"-and-{len(self.specs) - 1}-more" if len(self.specs) > 1 else ""
        return f"{first}{more}-{hashlib.sha256(' '.join(self.specs).encode()).hexdigest()[:12]}"


def batches(needed: Mapping[str, Mapping[str, ModelSpec | ProductSpec]]) -> list[Batch]:
    """Batches of everything that is needed.

    A figure never waits for a product that it does not need: products share a batch where the same results
    need them and either all or none are models of published text. Neighbours in the order of their keys,
    which begin with the task, stay together.

    Args:
        needed: result → the products it needs, key → spec.
    """
    specs = {key: spec for own in needed.values() for key, spec in own.items()}
    groups: dict[tuple[str, bool, frozenset[str]], list[str]] = defaultdict(list)
    for key in sorted(specs):
        users = frozenset(result for result, own in needed.items() if key in own)
        groups[maker(specs[key]), _reads_text(specs[key]), users].append(key)
    return [
        Batch(module, {key: specs[key] for key in part})
        for (module, on_data, _), keys in groups.items()
        for part in _evenly(keys, LARGEST_ON_DATA if on_data else LARGEST)
    ]


def maker(spec: ModelSpec | ProductSpec) -> str:
    """The module that makes the product of a spec."""
    from companion.runs.spec import ModelSpec

    return "companion.runs.train" if isinstance(spec, ModelSpec) else "companion.runs.record"


def _reads_text(spec: ModelSpec | ProductSpec) -> bool:
    return maker(spec) == "companion.runs.train" and bool(data_of_specs([spec]))


def _evenly(keys: list[str], largest: int) -> Iterable[list[str]]:
    number = -(-len(keys) // largest)
    return (keys[i * len(keys) // number : (i + 1) * len(keys) // number] for i in range(number))


ARCHIVE = "results/paper/archive"  # answers of networks at the paper profile, in the checkout
ANSWERS = "build/answers"  # new ones, until they are packed


@dataclass(frozen=True)
class Run:
    """A figure with parameters of its own, as ``attnlib run -p`` leaves it in ``<folder>/run.json``.

    Attributes:
        parameters: name → value, all of the notebook's; those of the experiment are among them.
        caller: the folder the command was last given in. It stands apart, in ``<folder>/caller.txt``: the
            workflow depends on ``run.json``, and a run is the same from wherever it is asked for.
    """

    figure: str
    profile: str
    parameters: dict[str, object]
    caller: str
    folder: str

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """The run recorded in ``path``; the caller is its folder where no note says otherwise."""
        path = Path(path).resolve()
        folder, note = str(path.parent), path.with_name("caller.txt")
        caller = os.fsdecode(note.read_bytes()) if note.is_file() else folder
        return cls(**json.loads(path.read_text(encoding="utf-8")), caller=caller, folder=folder)

    def write(self) -> Path:
        """Record it for :meth:`read`; ``run.json`` is left as it is where it says the same already."""
        path = Path(self.folder) / "run.json"
        content = {"figure": self.figure, "profile": self.profile, "parameters": self.parameters}
        if _json(path) != content:
            write_json_atomic(path, content)
        with atomic_path(path.with_name("caller.txt")) as temporary:
            temporary.write_bytes(os.fsencode(self.caller))
        return path


@dataclass(frozen=True, eq=False)  # told apart by identity: the specs cannot be hashed
class PlannedResult:
    """One experiment at one setting.

    Attributes:
        path: the JSON file to make, relative to the checkout where it lies in it.
        specs: what defines each trained model it needs, by key.
        stamp: hash of code and settings; a result made under another stamp is made again.
        current: whether the file is there and was made by today's code with these settings.
        settings: what differs from the profile, name → value.
        archived: whether it asks its networks just what the book's paper profile asks these, as a row of a
            table does: answers are then those of the book, in the same archive.
    """

    experiment: str
    profile: str
    path: str
    specs: Mapping[str, object]
    stamp: str
    current: bool
    models_folder: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    archived: bool = False

    @cached_property
    def cannot_run(self) -> str:
        """Why it cannot be made here, naming the data that is missing; empty when it can."""
        if self.current:
            return ""
        for key, spec in self.specs.items():
            made = (self.models_folder / key / "history.json").is_file()
            if not made and (reason := _why_no_data(spec)):
                return reason
        return ""

    @property
    def arguments(self) -> str:
        """For ``python -m companion.results``."""
        import shlex

        words = [self.experiment, "--profile", self.profile, "--out", str(Path(self.path).parent)]
        for name, value in self.settings.items():
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += ["-p", f"{name}={text}"]
        words += ["--archive", ARCHIVE, "--answers", ANSWERS] if self.archived else []
        return shlex.join([*words, "--models", "build/models"])


class Plan:
    """The figures of one profile, or one run, and the results they are drawn from.

    Args:
        project: the checkout.
        profile: of the figures.
        run: a figure with parameters of its own, instead of the book's.
    """

    def __init__(self, project: Project, profile: str = "quick", run: Run | None = None):
        self.project, self.profile = project, profile
        self.figures = {run.figure: find(project, run.figure)} if run else discover(project)
        self.results: dict[str, PlannedResult] = {}  # by experiment
        from companion.results import registry

        for figure in self.figures.values():
            if figure.experiment in registry.names():
                self.results[figure.experiment] = self._planned(figure.experiment, run)

    def _planned(self, experiment: str, run: Run | None) -> PlannedResult:
        from companion.results import registry
        from companion.results.config import config_hash, override, plain
        from companion.results.run import code_of
        from companion.runs.keys import model_key

        profile = registry.profile_config(experiment, self.profile)
        settings = {
            name: value for name, value in (run.parameters if run else {}).items() if hasattr(profile, name)
        }
        config = override(profile, settings)
        path = (Path(run.folder) if run else self.project.results(self.profile)) / f"{experiment}.json"
        module = registry.load(experiment)
        specs = {model_key(spec): spec for spec in module.models(config)}
        archived = self.profile == "paper" and _asks_as_the_book(module, config, profile)
        code = code_of(experiment)
        relative = path.relative_to(self.project.root) if path.is_relative_to(self.project.root) else path
        return PlannedResult(
            experiment, self.profile, relative.as_posix(), specs, f"{code} {config_hash(config)}",
            _is_current(path, code, plain(config), list(specs)), self.project.models, settings, archived,
        )  # fmt: skip

    def result_of(self, figure: str) -> PlannedResult | None:
        """The result that a figure is drawn from; None when no experiment has its name."""
        return self.results.get(self.figures[figure].experiment)

    @cached_property
    def batches(self) -> list[Batch]:
        """The trainings behind its results, as jobs."""
        return batches({result.experiment: result.specs for result in self.results.values()})

    @cached_property
    def long_tails(self) -> list[str]:
        """Results whose own job trains further networks, one after the other: best begun before all else."""
        from companion.results import registry

        return [name for name in self.results if getattr(registry.load(name), "TRAINS_ON", False)]

    def trained(self, result: PlannedResult) -> list[str]:
        """Marks of the batches that a result needs; their products are in ``build/models``."""
        return [f"build/trained/{batch.name}" for batch in self.batches if batch.specs.keys() & result.specs]

    def drawing_code(self, figure: str) -> str:
        """Fingerprint of what a notebook imports, so that it is drawn anew when that changes."""
        return fingerprint(*imports_of(self.figures[figure]))

    def paper_result(self, figure: str) -> str:
        """Digest of the committed result of the paper profile, which a page may show beside its own."""
        path = self.project.results("paper") / f"{self.figures[figure].experiment}.json"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else "none"


def _asks_as_the_book(experiment, config, profile) -> bool:
    """Whether at ``config`` all that ``profile`` asks of the same networks is asked, and nothing else."""
    from companion.runs.keys import model_key

    asks = set(experiment.asks(config))
    keys = {model_key(asked.spec) for asked in asks}
    of_the_book = {asked for asked in experiment.asks(profile) if model_key(asked.spec) in keys}
    return bool(asks) and asks == of_the_book


def _why_no_data(spec) -> str:
    """Why a model or a recipe's run cannot be made here; empty where it can."""
    from companion.runs.spec import ModelSpec

    if isinstance(spec, ModelSpec):
        return _why_no_task(spec.task, spec.task_options)
    return _why_no_recipe(replace(spec, seed=0))


@cache
def _why_no_recipe(spec) -> str:
    from companion.results.run import data_of

    try:
        data_of((spec,))
    except (DataUnavailable, CorruptFile) as error:
        return str(error)
    return ""


@cache
def _why_no_task(name: str, options: tuple) -> str:
    from companion.data import registry

    if not data_sets(registry.builder(name)) and not {"source", "target"} & dict(options).keys():
        return ""  # made by rule: no file is read, a reader's own neither
    try:
        registry.load(name, **dict(options))
    except (DataUnavailable, CorruptFile) as error:
        return str(error)
    return ""


def _is_current(path: Path, code: str, config: dict, models: list[str]) -> bool:
    found, origin = _json(path) or {}, _json(path.with_name(f"{path.stem}.provenance.json")) or {}
    return (origin.get("code"), found.get("config"), origin.get("models")) == (code, config, models)


def _json(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def imports_of(figure: Figure) -> frozenset[str]:
    """What the cells of a notebook import from this project, as ``module:name``.

    A cell that is not Python is passed over: the figure's own job says so, and no other is held up.
    """
    import jupytext

    found: set[str] = set()
    for cell in jupytext.read(figure.path).cells:
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PACKAGES:
                found.update(f"{node.module}:{alias.name}" for alias in node.names)
    return frozenset(found)
