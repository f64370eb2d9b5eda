"""Names in attnlib say what a thing is, and each names one thing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "attnlib"
FILES = {path.relative_to(LIBRARY).as_posix(): path for path in sorted(LIBRARY.rglob("*.py"))}
SAY_NOTHING = {
    "asked",
    "each",
    "found",
    "given",
    "got",
    "one",
    "own",
    "said",
    "several",
    "some",
    "told",
    "wanted",
}
READINGS = {
    "own"
}  # the field PartShares.own, a reading of shares, which a table and the papers' terms name so


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every variable, attribute, parameter, function and class that the source binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def classes_of(files: dict[str, Path]) -> dict[str, list[str]]:
    """The files that define a class, by name of the class."""
    homes = defaultdict(list)
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    return homes


@pytest.mark.parametrize("name", FILES)
def test_names_say_what_a_thing_is(name):
    left_out = READINGS if name == "decomposition/shares.py" else set()
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    vague = [f"{name}:{line}: {word}" for line, word in bound_names(tree) if word in SAY_NOTHING - left_out]
    assert not vague


def test_no_two_classes_have_one_name():
    shared = {name: homes for name, homes in classes_of(FILES).items() if len(homes) > 1}
    assert not shared


def test_every_kind_of_binding_is_noticed():
    source = "def one(own): pass\nclass Some: some = 1\nfor each in x.found: x.told = each\n"
    words = {word for _, word in bound_names(ast.parse(source))}
    assert words == {"one", "own", "Some", "some", "each", "told"}
