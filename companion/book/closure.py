"""Which files of this project a module rests on: itself, what it imports, and what these import.

Imports are read from the syntax, those within functions too, so that nothing is imported to find them. Two
registries look modules up by name while the code runs. Whoever reaches one of them rests on every module that
it could find: all that figures share, and those of a figure's own folder.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from companion.paths import ROOT, TASKS, TRAININGS, modules_in, path_of

SHARED = ROOT / "notebooks" / "shared"

# By registry the name of the folders whose modules it finds.
REGISTRIES = {
    ROOT / "companion" / "runs" / "registry.py": TRAININGS,
    ROOT / "companion" / "data" / "registry.py": TASKS,
}


def files_behind(start: Iterable[Path]) -> set[Path]:
    """The files that some modules of this project rest on, given by their paths, themselves included."""
    start = set(start)
    figures = {path.parent for path in start}
    reached: set[Path] = set()
    waiting = list(start)
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        waiting.extend(imported_files(path))
        waiting.extend(module for module in _found_by(path) if _owner_of(module) in {SHARED, *figures})
    return reached


@cache
def imported_files(path: Path) -> frozenset[Path]:
    """The files of this project that a module imports, without what only type checkers read."""
    return frozenset(_imported_by(ast.parse(path.read_text(encoding="utf-8"))))


def files_imported_by_cells(sources: Iterable[str]) -> set[Path]:
    """The files of this project that the cells of a notebook import.

    A cell that is not Python is passed over: the figure's own job says so, and no other is held up.
    """
    files: set[Path] = set()
    for source in sources:
        try:
            files.update(_imported_by(ast.parse(source)))
        except SyntaxError:
            continue
    return files


def _imported_by(tree: ast.AST) -> Iterator[Path]:
    for name in _imported_names(tree):
        # ``from package import name`` may mean a module or something that a module defines.
        for module in (name, name.rpartition(".")[0]):
            path = path_of(module) if module else None
            if path is not None:
                yield path


def _imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr) or _is_for_type_checkers(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _imported_names(node)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def _found_by(path: Path) -> frozenset[Path]:
    """The modules that a registry finds; none for any other file."""
    if path not in REGISTRIES:
        return frozenset()
    return frozenset(modules_in(REGISTRIES[path]))


def _owner_of(module: Path) -> Path:
    """Return the folder of the figure that has a training or a task, or that of all figures."""
    return module.parents[1]
