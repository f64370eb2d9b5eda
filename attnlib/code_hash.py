"""The hash of the code behind a number: the modules it imports, without comments and docstrings."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "attnlib"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def code_hash(*modules: str) -> str:
    """Sixteen hex digits over the given modules and all of attnlib that they import, directly or not.

    A package's ``__init__`` counts only where something is imported from it directly, so that a name
    re-exported for users does not tie every result to every module. Formatting, comments and docstrings do
    not count.

    >>> code_hash("attnlib.errors") == code_hash("attnlib.errors", "attnlib.errors")
    True
    """
    digest = hashlib.sha256()
    for module in sorted(imported_modules(*modules)):
        digest.update(f"{module}\n{_syntax(module)}\n".encode())
    return digest.hexdigest()[:16]


@cache
def imported_modules(*modules: str) -> frozenset[str]:
    """The given modules and the attnlib modules they import, transitively."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(_direct_imports(module))
    return frozenset(found)


@cache
def _source(module: str) -> Path | None:
    """The file of a module, found by its name so that nothing is imported; None where there is none."""
    base = Path(__file__).parent.joinpath(*module.split(".")[1:])
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    source = _source(module)
    if source is None:
        raise ModuleNotFoundError(f"no source for module {module!r}")
    return ast.parse(source.read_text(encoding="utf-8"))


@cache
def _direct_imports(module: str) -> frozenset[str]:
    found = set()
    for node in _executed(_tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(name if _is_module(name) else node.module for name in names)
    return frozenset(name for name in found if _is_module(name))


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, those within others too, without blocks that only type checkers read."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not (
                isinstance(child, ast.If)
                and isinstance(child.test, ast.Name)
                and child.test.id == "TYPE_CHECKING"
            ):
                yield child
                waiting.append(child)


def _is_module(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE and _source(name) is not None


@cache
def _syntax(module: str) -> str:
    return _dump(_tree(module))


def _dump(node: object) -> str:
    """Like :func:`ast.dump`, without docstrings and without empty fields: Python versions differ there."""
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    shown = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(node, _DOCUMENTED) and _has_docstring(node):
            value = value[1:]
            shown.append(f"{name}={_dump(value)}")
        elif value is not None and value != []:
            shown.append(f"{name}={_dump(value)}")
    return f"{type(node).__name__}({','.join(shown)})"


def _has_docstring(node: ast.AST) -> bool:
    return ast.get_docstring(node, clean=False) is not None
