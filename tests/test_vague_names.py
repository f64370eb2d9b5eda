"""Names in companion and in the modules of figures say what a thing is, as those of attnlib do."""

import ast

import pytest

from companion.paths import ROOT
from tests.attnlib.test_names import bound_names

VAGUE = {"each", "found", "one", "own", "said", "some", "told"}
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("companion", "notebooks")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
]


@pytest.mark.parametrize("name", FILES)
def test_names_say_what_a_thing_is(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert [f"{name}:{line}: {word}" for line, word in bound_names(tree) if word in VAGUE] == []
