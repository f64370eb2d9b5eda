"""Dataclasses of tensors are shown by their shapes, those of networks and texts by kinds and counts."""

import ast
from pathlib import Path

import pytest
from torch import nn

from attnlib import zoo
from attnlib.alignment.gold import Gold, GoldFile
from attnlib.report.pretrained import Checkpoint
from attnlib.report.texts import Sentences

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


class Tokenizer:
    """A tokenizer that marks no languages."""


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(
            lambda: zoo.load("one_to_one_VED"),
            "Trained(EncoderDecoder of 12 source and 12 target words, with 800 sentence pairs)",
            id="a trained network",
        ),
        pytest.param(
            lambda: Checkpoint("folder", nn.Linear(2, 2), Tokenizer()),
            "Checkpoint('folder', Linear with Tokenizer)",
            id="a checkpoint",
        ),
        pytest.param(
            lambda: Sentences(["one", "two"]), "Sentences(2 without translations)", id="sources alone"
        ),
        pytest.param(
            lambda: Sentences(["one"], ["un"]), "Sentences(1 with translations)", id="sentence pairs"
        ),
        pytest.param(
            lambda: GoldFile((Gold([(0, 0)]), None)),
            "GoldFile(2 lines, 1 of them with links)",
            id="gold links",
        ),
    ],
)
def test_the_repr_of_a_network_or_a_text_is_a_line(shown, expected):
    assert repr(shown()) == expected
