"""One direction of flow between the three rooms, and what a bare node runs needs four packages."""

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from companion.paths import PACKAGES as ROOMS
from companion.paths import ROOT, path_of
from tests.tables import beside

FILES = {room: sorted((ROOT / room).rglob("*.py")) for room in ROOMS}
BARE = {"numpy", "torch", "safetensors", "jaxtyping", *ROOMS}
WHERE_USED = beside(__file__, "where_used")


@cache
def imports(path: Path, *, executed: bool = False) -> frozenset[str]:
    """What a module imports; with ``executed`` without what only type checkers read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked = (each for each in ast.walk(tree) if isinstance(each, ast.If))
    typing = {own for each in checked if ast.unparse(each.test) == "TYPE_CHECKING" for own in ast.walk(each)}
    found = set()
    for node in {*ast.walk(tree)} - (typing if executed else set()):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that code can be traced"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def rooms(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)} & set(ROOMS)


def test_the_three_rooms_have_one_direction():
    for path in FILES["attnlib"]:
        assert rooms(path) <= {"attnlib"}, path
    for path in FILES["companion"]:
        assert "notebooks" not in rooms(path), path


def test_a_figure_imports_no_other_figure_but_one():
    one = (("beyond", "your_own_model"), ("beyond", "transformer_heads"))
    for path in FILES["notebooks"]:
        own = path.relative_to(ROOT).parts[1:-1]
        names = {tuple(name.split(".")[1:3]) for name in imports(path) if name.startswith("notebooks.")}
        others = {name for name in names if name[0] != "shared" and name != own}
        assert {(own, name) for name in others} <= {one}, path


# No circles in the library.


def modules_of_the_library() -> dict[str, Path]:
    names = {}
    for path in FILES["attnlib"]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names[name.removesuffix(".__init__")] = path
    return names


def arrows_between_modules() -> dict[str, set[str]]:
    """By module what it imports of the library, in functions and for type checkers as well."""
    modules = modules_of_the_library()
    arrows = {}
    for module, path in modules.items():
        imported = set()
        for name in imports(path):
            home = name if name in modules else name.rpartition(".")[0]
            imported |= {home} & modules.keys()
        arrows[module] = imported - {module}
    return arrows


def room_of(module: str) -> str:
    """The folder or the module right below ``attnlib``."""
    return ".".join(module.split(".")[:2])


def circle_in(arrows: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_modules_of_the_library_import_each_other_in_a_circle():
    assert circle_in(arrows_between_modules()) == []


def test_no_folders_of_the_library_import_each_other_in_a_circle():
    arrows: dict[str, set[str]] = {}
    for module, imported in arrows_between_modules().items():
        room = room_of(module)
        arrows.setdefault(room, set()).update({room_of(name) for name in imported} - {room})
    assert circle_in(arrows) == []


def test_an_analysis_knows_nothing_of_its_views():
    arrows = arrows_between_modules()
    knowing = {room_of(module) for module, names in arrows.items() if "attnlib.report" in map(room_of, names)}
    assert knowing == {"attnlib", "attnlib.commands", "attnlib.report"}


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
    *(path for path in FILES["notebooks"] if path.name in ("experiment.py", "measure.py")),
    *(path for path in FILES["notebooks"] if "\ndef record(" in path.read_text(encoding="utf-8")),
]


@pytest.mark.parametrize("start", NODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_bare_node_runs_needs_four_packages(start):
    """So does all of this project that it imports, directly or not."""
    found, waiting = set(), [start]
    while waiting:
        if (path := waiting.pop()) not in found:
            found.add(path)
            needed = {name: name.partition(".")[0] for name in imports(path, executed=True)}
            allowed = BARE | {*WHERE_USED.get(path.relative_to(ROOT).as_posix(), ())}
            assert {*needed.values()} <= allowed | sys.stdlib_module_names, path
            own = [name for name in needed if needed[name] in ROOMS]  # module or module.name
            waiting += filter(None, (path_of(name) or path_of(name.rpartition(".")[0]) for name in own))
