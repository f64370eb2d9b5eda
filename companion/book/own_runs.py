"""Runs with a reader's parameters, below ``build/runs``: names, main numbers, and how two differ."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import AttnlibError, BadInput, UnknownName
from companion.book.project import Project, find, minutes
from companion.claims.estimates import CannotBeRun, Estimate, MissingKey, NotRun, look_up
from companion.data import registry
from companion.results.request import Request
from companion.results.result import Result

if TYPE_CHECKING:
    from companion.claims.model import Claim, Paper

MAIN = 8  # numbers that open a run
ACCURACIES = (
    "token_accuracy",
    "accuracy",
    "word_accuracy",
    "exact_match",
    "bleu",
)  # the first that a run has
MOST_ACCURACIES = 3
OWN_TASKS = ("parallel", "aligned", "own")  # names that results give to a reader's own text
NEAREST_TASKS = (  # texts of the book, the first that a result has is compared with a reader's own
    "multi30k_en_fr", "multi30k_en_de", "multi30k_de_en", "tatoeba_en_fr", "europarl_de_en", "iwslt14_de_en",
    "sst", "sms_spam", "ag_news", "imdb",
)  # fmt: skip
MOST_DIFFERENCES = 30  # that are printed


@dataclass(frozen=True)
class OwnRun:
    """A run that ``attnlib run -p`` recorded."""

    project: Project
    request: Request

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.request.name

    @property
    def folder(self) -> Path:
        return self.project.root / self.request.folder

    @property
    def settings(self) -> str:
        """Its parameters as a reader types them, files without their folders.

        >>> request = Request("attend/readout", "quick", {"task": ["scan"], "source": "/texts/my.en"})
        >>> OwnRun(Project(Path()), request).settings
        'source=my.en task=scan'
        """
        words = [f"{name}={shown(value)}" for name, value in sorted(self.request.parameters.items())]
        if self.request.profile != "quick":
            words.insert(0, f"--profile {self.request.profile}")
        return " ".join(words)

    @property
    def started(self) -> datetime:
        """When it was recorded."""
        return datetime.fromtimestamp((self.folder / "run.json").stat().st_mtime)

    @property
    def notebook(self) -> Path:
        return self.folder / f"{self.request.experiment}.ipynb"

    @property
    def result_file(self) -> Path:
        return self.folder / f"{self.request.experiment}.json"

    @property
    def state(self) -> str:
        """``finished``, ``failed`` or ``not finished``."""
        if self.notebook.with_suffix(".error.txt").is_file():
            return "failed"
        return "finished" if self.notebook.is_file() else "not finished"

    @property
    def minutes(self) -> float | None:
        return minutes(self.folder, self.request.experiment)

    @cached_property
    def result(self) -> Result:
        """What it computed. Raises BadInput: it has not been computed."""
        if not self.result_file.is_file():
            raise BadInput(f"{self.name} has no result yet: run it again to finish it")
        return Result.load(self.result_file)


def shown(value: object) -> str:
    """A setting in a few letters: lists with commas, files without their folders."""
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value))
    text = str(value)
    return Path(text).name if "/" in text else text


def own_runs(project: Project) -> list[OwnRun]:
    """All recorded runs, the newest first; what is no such folder is passed over."""
    runs = []
    for path in (project.build / "runs").glob("*/run.json"):
        with suppress(BadInput):
            run = OwnRun(project, Request.read(path))
            if run.folder == path.parent:  # one that an older version named otherwise cannot be continued
                runs.append(run)
    return sorted(runs, key=_start, reverse=True)


def _start(run: OwnRun) -> datetime:
    return run.started


def find_run(project: Project, name: str) -> OwnRun:
    """The run with this number of ``attnlib status``, this name, or this end of a name.

    A number is never the end of a name.

    Raises UnknownName: there is none. BadInput: no run has this number, or the end belongs to several.
    """
    runs = own_runs(project)
    if not runs:
        raise BadInput("there is no run yet: `attnlib run FIGURE -p NAME=VALUE` makes one")
    if name.removeprefix("-").isdecimal():
        if not 1 <= int(name) <= len(runs):
            known = "the only run is 1" if len(runs) == 1 else f"there are {len(runs)} runs, 1 to {len(runs)}"
            raise BadInput(f"no run {name}: {known}; `attnlib status` lists them")
        return runs[int(name) - 1]
    named = [run for run in runs if run.name.endswith(Path(name).name) or name == run.name]
    if not named:
        raise UnknownName("run", name, [run.name for run in runs])
    if len(named) > 1:
        raise BadInput(f"{name} is the end of {len(named)} runs: {', '.join(run.name for run in named)}")
    return named[0]


# The main numbers of a run.


def main_numbers(project: Project, request: Request, result: Result) -> dict[str, Estimate]:
    """Return the numbers that open a run, by key, at most eight.

    Accuracy comes first. Then come the numbers of the figure's claims, those that a paper claims above all
    before the others, taken at the run's own tasks and kinds of networks. Where that leaves room, the largest
    numbers of each other group follow.
    """
    from companion.claims.model import load_papers

    keys = list(accuracies(result.values))
    for claim in _central_first(load_papers(project.root / "claims"), request.experiment):
        for key in claim.keys:
            keys += keys_of_run(result.values, key)
    numbers: dict[str, Estimate] = {}
    for key in [*dict.fromkeys(keys), *_largest_first(result.values)]:
        with suppress(MissingKey, CannotBeRun, NotRun):
            estimate = look_up(result.values, key)
            if estimate.defined:
                numbers[key] = estimate
        if len(numbers) == MAIN:
            break
    return numbers


def _central_first(papers: "Iterable[Paper]", experiment: str) -> "list[Claim]":
    """Return the claims about an experiment, what a paper claims above all before the rest."""
    central, others = [], []
    for paper in papers:
        for claim in paper.claims:
            if claim.experiment == experiment:
                (central if claim.id in paper.central else others).append(claim)
    return central + others


def accuracies(values: Mapping) -> list[str]:
    """Return the keys of how well the networks do, one for each kind where there are few kinds.

    >>> accuracies({"scan": {"AED-lstm": {"token_accuracy": 0.98, "probe": {"accuracy": 0.7}}}})
    ['scan.AED-lstm.token_accuracy']
    """
    keys = list(leaves(values))
    for name in ACCURACIES:
        named = [key for key in keys if key.rpartition(".")[2] == name]
        if named:
            depth = min(key.count(".") for key in named)
            return [key for key in named if key.count(".") == depth][:MOST_ACCURACIES]
    return []


def keys_of_run(values: Mapping, key: str) -> list[str]:
    """Return the keys of a run that say what a claim's key says of the book's tasks and networks.

    A kind of network stands for its variants, such as ``AED-lstm`` for ``AED``; a task that the run lacks
    stands for the tasks that it has.

    >>> keys_of_run({"mine": {"AED-lstm": {"share": 0.5}}}, "scan.AED.share")
    ['mine.AED-lstm.share']
    """
    with suppress(MissingKey, CannotBeRun, NotRun):
        look_up(values, key)
        return [key]
    return list(_paths(values, key.split("."), ()))


def _paths(content: object, pieces: list[str], path: tuple[str, ...]) -> Iterator[str]:
    if not pieces:
        yield ".".join(path)
        return
    if not isinstance(content, Mapping):
        return
    first, *rest = pieces
    names = [first] if first in content else [name for name in content if name.startswith(f"{first}-")]
    if not names and (not path or first in registry.names()):
        names = list(content)
    for name in names:
        yield from _paths(content[name], rest, (*path, name))


def _largest_first(values: Mapping) -> Iterator[str]:
    """Yield the keys of all numbers, those of one branch together with the largest first."""
    branches: dict[str, list[str]] = {}
    for key in leaves(values):
        branches.setdefault(key.rpartition(".")[0], []).append(key)

    def smallness(key: str) -> float:
        with suppress(MissingKey, CannotBeRun, NotRun):
            value = look_up(values, key).value
            return math.inf if math.isnan(value) else -abs(value)
        return math.inf

    for keys in branches.values():
        yield from sorted(keys, key=smallness)


def leaves(values: object, key: str = "") -> Iterator[str]:
    """Dotted keys of all numbers.

    >>> list(leaves({"scan": {"AED": {"value": 0.5, "low": 0.4}, "n": 3}, "text": "no number"}))
    ['scan.AED', 'scan.n']
    """
    if isinstance(values, Mapping):
        if "value" in values:
            yield key
            return
        for name, content in values.items():
            yield from leaves(content, f"{key}.{name}" if key else str(name))
    elif isinstance(values, int | float) and not isinstance(values, bool):
        yield key


def opening(project: Project, request: Request, result: Result) -> str:
    """Markdown that opens the notebook of a run: what it is, and its main numbers."""
    figure = find(project, request.figure)
    run = OwnRun(project, request)
    lines = [
        f"**Your run** of *{figure.title}* with `{run.settings}`. Its numbers are in the table; plots and "
        "tables below are of this run as well. Numbers and verdicts in sentences are the book's.",
        "",
        "| number | this run |",
        "|---|---|",
    ]
    lines += [f"| `{key}` | {number} |" for key, number in main_numbers(project, request, result).items()]
    return "\n".join(lines) + "\n"


# Two runs compared.


@dataclass(frozen=True)
class Comparison:
    """Settings and numbers in which two results differ, by name or key: the first's, the second's."""

    settings: dict[str, tuple[object, object]]
    numbers: dict[str, tuple[str, str]]
    equal: int  #: numbers that are the same
    apart: tuple[int, int]  #: numbers that only the first has, and only the second
    #: names of the second, of a text or a cell, that the first lacks, with the name they are compared with
    compared_as: dict[str, str] = field(default_factory=dict)


def compare(first: Result, second: Result) -> Comparison:
    """Compare two results of one experiment.

    Raises BadInput: they are of different experiments.
    """
    if first.experiment != second.experiment:
        raise BadInput(
            f"{first.experiment} and {second.experiment} measure different things; compare two runs of one "
            "figure"
        )
    settings = {
        name: (first.config.get(name), second.config.get(name))
        for name in sorted(first.config.keys() | second.config.keys())
        if first.config.get(name) != second.config.get(name)
    }
    pairs, compared_as = pair_keys(first.values, second.values)
    numbers, equal = {}, 0
    for key_of_first, key in pairs:
        with suppress(AttnlibError):  # a branch that could not be run has no number
            estimates = look_up(first.values, key_of_first), look_up(second.values, key)
            if estimates[0] == estimates[1]:
                equal += 1
            else:
                numbers[key] = (str(estimates[0]), str(estimates[1]))
    only_first = set(leaves(first.values)) - {key_of_first for key_of_first, _ in pairs}
    only_second = set(leaves(second.values)) - {key for _, key in pairs}
    return Comparison(settings, numbers, equal, (len(only_first), len(only_second)), compared_as)


def pair_keys(first: Mapping, second: Mapping) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Pair the keys of two results' values, accuracy first.

    A text of the reader's own is paired with the nearest task of the other result, and another cell with the
    usual one, where the other result has no such name.

    Returns:
        pairs: the first's key and the second's.
        compared_as: names of the second that are paired with another name, with that name of the first.

    >>> pair_keys({"scan": {"AED": {"share": 0.4}}}, {"scan": {"AED-lstm": {"share": 0.5}}})
    ([('scan.AED.share', 'scan.AED-lstm.share')], {'AED-lstm': 'AED'})
    """
    of_first, of_second = list(leaves(first)), list(leaves(second))
    of_first = [*dict.fromkeys([*accuracies(first), *of_first])]
    of_second = [*dict.fromkeys([*accuracies(second), *of_second])]
    known, known_to_second = set(of_first), set(of_second)
    pairs: dict[str, str] = {}  # by key of the second
    for key in of_second:
        counterpart = key if key in known else counterpart_of(key, first)
        if counterpart in known:
            pairs[key] = counterpart
    paired = set(pairs.values())
    for key in of_first:
        if key not in paired:
            counterpart = counterpart_of(key, second)
            if counterpart in known_to_second and counterpart not in pairs:
                pairs[counterpart] = key
    compared_as = {}
    for key, key_of_first in pairs.items():
        for piece, piece_of_first in zip(key.split("."), key_of_first.split("."), strict=True):
            if piece != piece_of_first:
                compared_as[piece] = piece_of_first
    return [(key_of_first, key) for key, key_of_first in pairs.items()], compared_as


def counterpart_of(key: str, values: Mapping) -> str | None:
    """Return the key in other values of the same number at the nearest task and cell; None without one."""
    content: object = values
    path = []
    for piece in key.split("."):
        name = _nearest_name(piece, content) if isinstance(content, Mapping) else None
        if name is None:
            return None
        path.append(name)
        content = content[name]
    return ".".join(path)


def _nearest_name(piece: str, content: Mapping) -> str | None:
    if piece in content:
        return piece
    architecture = piece.partition("-")[0]
    for name in content:
        if name.partition("-")[0] == architecture:
            return name
    if piece in OWN_TASKS:
        tasks = [*NEAREST_TASKS, *(name for name in content if name in registry.names())]
        return next((name for name in tasks if name in content), None)
    return None


def diff_lines(comparison: Comparison, names: tuple[str, str], *, everything: bool) -> Iterator[str]:
    """A comparison in words: settings, then numbers, with how many are equal."""
    yield f"first: {names[0]}"
    yield f"second: {names[1]}"
    for name, (first, second) in comparison.settings.items():
        yield f"  {name}: {shown(first)} → {shown(second)}"
    for name, other in comparison.compared_as.items():
        if {name, other} & {*OWN_TASKS}:
            yield f"the numbers of your own text are beside those of another: {other} → {name}"
        else:
            yield f"the numbers of {name} are beside those of {other}"
    total = len(comparison.numbers)
    if not total and not comparison.equal:
        yield "they have no number in common: compare runs of the same task and architecture"
    yield f"{total} numbers differ, {comparison.equal} are equal"
    only_first, only_second = comparison.apart
    if only_first or only_second:
        yield f"{only_first} numbers only in the first, {only_second} only in the second"
    keys = list(comparison.numbers)
    for key in keys if everything else keys[:MOST_DIFFERENCES]:
        first, second = comparison.numbers[key]
        yield f"  {key}: {first} → {second}"
    if total > MOST_DIFFERENCES and not everything:
        yield f"  … and {total - MOST_DIFFERENCES} more: --all"


def book_result(project: Project, request: Request) -> Result:
    """The book's result that a run departs from. Raises BadInput: it has not been computed here."""
    path = project.results(request.profile) / f"{request.experiment}.json"
    if not path.is_file():
        raise BadInput(
            f"the book's result is not here: `attnlib run {request.figure} --profile {request.profile}` "
            "makes it"
        )
    return Result.load(path)


def as_json(comparison: Comparison) -> str:
    """A comparison for programs."""
    content = {"settings": comparison.settings, "numbers": comparison.numbers, "equal": comparison.equal}
    content["compared_as"] = comparison.compared_as
    return json.dumps(content, indent=1, ensure_ascii=False)
