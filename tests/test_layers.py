"""One direction of flow between the three rooms, and what a bare node runs needs four packages."""

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from companion.paths import PACKAGES as ROOMS
from companion.paths import ROOT, TASKS, TRAININGS, path_of
from tests.tables import beside

FILES = {room: sorted((ROOT / room).rglob("*.py")) for room in ROOMS}
BARE = {"numpy", "torch", "safetensors", "jaxtyping", *ROOMS}
WHERE_USED = beside(__file__, "where_used")


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def import_statements(path: Path) -> tuple[list[ast.AST], list[ast.AST]]:
    """Those that are executed, and those that only type checkers read; the rest of a tree is not kept."""
    executed, typing = [], []
    waiting = [(ast.parse(path.read_text(encoding="utf-8")), executed)]
    while waiting:
        node, statements = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            statements.append(node)
        elif not isinstance(node, ast.expr):  # which holds no statements
            statements = typing if is_for_type_checkers(node) else statements
            waiting += [(child, statements) for child in ast.iter_child_nodes(node)]
    return executed, typing


@cache
def imports(path: Path, *, executed: bool = False) -> frozenset[str]:
    """What a module imports; with ``executed`` without what only type checkers read."""
    statements, typing = import_statements(path)
    imported = set()
    for node in statements if executed else [*statements, *typing]:
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: imports are absolute, so that code can be traced"
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(imported)


def rooms(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)} & set(ROOMS)


def test_the_three_rooms_have_one_direction():
    for path in FILES["attnlib"]:
        assert rooms(path) <= {"attnlib"}, path
    for path in FILES["companion"]:
        assert "notebooks" not in rooms(path), path


def test_a_figure_imports_no_other_figure_but_one():
    allowed = (("beyond", "your_own_model"), ("beyond", "transformer_heads"))
    for path in FILES["notebooks"]:
        figure = path.relative_to(ROOT).parts[1:-1]
        names = {tuple(name.split(".")[1:3]) for name in imports(path) if name.startswith("notebooks.")}
        others = {name for name in names if name[0] != "shared" and name != figure}
        assert {(figure, name) for name in others} <= {allowed}, path


def calls_backward(path: Path) -> bool:
    if "backward" not in (source := path.read_text(encoding="utf-8")):
        return False  # without parsing it
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "backward" for call in calls)


def test_all_networks_are_trained_in_one_loop():
    files = [*FILES["attnlib"], *FILES["companion"], *FILES["notebooks"]]
    assert [path for path in files if calls_backward(path)] == [ROOT / "companion" / "runs" / "loop.py"]


# No circles in the library, and none in the companion.

WITHOUT_CIRCLES = ("attnlib", "companion")


def modules_of(package: str) -> dict[str, Path]:
    names = {}
    for path in FILES[package]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names[name.removesuffix(".__init__")] = path
    return names


def arrows_between_modules(package: str) -> dict[str, set[str]]:
    """By module what it imports of its own package, in functions and for type checkers as well."""
    modules = modules_of(package)
    arrows = {}
    for module, path in modules.items():
        imported = set()
        for name in imports(path):
            home = name if name in modules else name.rpartition(".")[0]
            imported |= {home} & modules.keys()
        arrows[module] = imported - {module}
    return arrows


def folder_of(module: str) -> str:
    """The folder or the module right below the package."""
    return ".".join(module.split(".")[:2])


def arrows_between_folders(package: str) -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = {}
    for module, imported in arrows_between_modules(package).items():
        folder = folder_of(module)
        arrows.setdefault(folder, set()).update({folder_of(name) for name in imported} - {folder})
    return arrows


def circle_in(arrows: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.mark.parametrize("package", WITHOUT_CIRCLES)
def test_no_modules_import_each_other_in_a_circle(package):
    assert circle_in(arrows_between_modules(package)) == []


@pytest.mark.parametrize("package", WITHOUT_CIRCLES)
def test_no_folders_import_each_other_in_a_circle(package):
    assert circle_in(arrows_between_folders(package)) == []


def test_the_ground_of_the_companion_imports_nothing_of_it():
    arrows = arrows_between_modules("companion")
    assert arrows["companion.paths"] == arrows["companion.rounding"] == set()


def test_folders_of_companion_import_downwards_only():
    floors = ["companion.data", "companion.runs", "companion.results", "companion.claims", "companion.book"]
    arrows = arrows_between_folders("companion")
    for height, floor in enumerate(floors):
        assert arrows[floor].isdisjoint(floors[height:]), floor


def test_an_analysis_knows_nothing_of_its_views():
    arrows = arrows_between_folders("attnlib")
    knowing = {folder for folder, names in arrows.items() if "attnlib.report" in names}
    assert knowing == {"attnlib", "attnlib.commands"}


@pytest.mark.parametrize(
    ("arrows", "circle"),
    [
        pytest.param({"a": {"b"}, "b": {"c"}, "c": set()}, [], id="a chain"),
        pytest.param({"a": {"b"}, "b": {"a"}}, ["a", "b"], id="a pair"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"a"}}, ["a", "b", "c"], id="a ring"),
    ],
)
def test_a_circle_is_found(arrows, circle):
    assert sorted(set(circle_in(arrows))) == circle


# What a bare node runs.


NODE = [
    *(path for path in FILES["companion"] if path.parent.name in ("data", "runs")),
    ROOT / "companion" / "results" / "answer.py",
    *(path for path in FILES["notebooks"] if path.name in ("experiment.py", "measure.py")),
    *(path for path in FILES["notebooks"] if path.parent.name in (TASKS, TRAININGS)),
]


@pytest.mark.parametrize("start", NODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_bare_node_runs_needs_four_packages(start):
    """So does all of this project that it imports, directly or not."""
    reached, waiting = set(), [start]
    while waiting:
        if (path := waiting.pop()) not in reached:
            reached.add(path)
            needed = {name: name.partition(".")[0] for name in imports(path, executed=True)}
            allowed = BARE | {*WHERE_USED.get(path.relative_to(ROOT).as_posix(), ())}
            assert {*needed.values()} <= allowed | sys.stdlib_module_names, path
            modules = [name for name in needed if needed[name] in ROOMS]  # module or module.name
            waiting += filter(None, (path_of(name) or path_of(name.rpartition(".")[0]) for name in modules))
