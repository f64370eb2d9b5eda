"""Names in companion, in the modules of figures and in tests say what a thing is, as those of attnlib do."""

import ast
import re

import pytest

from companion.paths import ROOT
from tests.attnlib.test_names import bound_names

VAGUE = {"each", "found", "one", "own", "said", "some", "told"}
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("companion", "notebooks", "tests")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
]


@pytest.mark.parametrize("name", FILES)
def test_names_say_what_a_thing_is(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert [f"{name}:{line}: {word}" for line, word in bound_names(tree) if word in VAGUE] == []


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("tests/")])
def test_the_name_of_a_test_joins_no_two_facts(name):
    names = re.findall(r"^ *def (test_\w+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert [joined for joined in names if "_and_" in joined] == []
