"""Dataclasses of tensors are shown by the shapes of their tensors, never by thousands of numbers."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "attnlib"
FILES = {path.relative_to(LIBRARY).as_posix(): path for path in sorted(LIBRARY.rglob("*.py"))}
ARRAYS = ("Tensor", "ndarray")


def long_reprs(source: str) -> list[str]:
    """Names of the dataclasses that have a field of tensors, and the ``repr`` that dataclasses make."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        fields = [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]
        is_dataclass = any("dataclass" in decorator for decorator in decorators)
        has_tensors = any(array in field for field in fields for array in ARRAYS)
        bases = [ast.unparse(base) for base in node.bases]
        is_mixed_in = "ShowsShapes" in bases and any("repr=False" in decorator for decorator in decorators)
        has_repr = any(getattr(item, "name", "") == "__repr__" for item in node.body)
        if is_dataclass and has_tensors and not is_mixed_in and not has_repr:
            names.append(node.name)
    return names


@pytest.mark.parametrize("name", FILES)
def test_dataclasses_of_tensors_have_a_short_repr(name):
    assert long_reprs(FILES[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "head",
    [
        "@dataclass(eq=False)\nclass Long",
        "@dataclass\nclass Long(ShowsShapes)",  # the repr that dataclasses make comes first
    ],
)
def test_a_long_repr_is_noticed(head):
    assert long_reprs(f"{head}:\n    states: Tensor\n") == ["Long"]
    assert long_reprs("@dataclass(repr=False)\nclass Short(ShowsShapes):\n    states: Tensor\n") == []
