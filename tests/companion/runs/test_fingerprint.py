"""The fingerprint: blind to what can move no number, and to nothing else."""

from functools import cache

import pytest

from companion.runs import fingerprint as module
from companion.runs.fingerprint import fingerprint, symbols
from tests.companion.data.data_builders import put
from tests.tables import beside

TREE = beside(__file__, "fingerprint")
FIRST = TREE["files"]
_, MAIN, NUMBERS = FIRST.values()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Fingerprint of a function in a tree of modules given as texts."""

    def found(files, root="attnlib.toy.main:measure"):
        monkeypatch.setattr(module, "_DIGESTS", {})
        for name in ("_module", "_resolve", "_form", "_checksums"):
            monkeypatch.setattr(module, name, cache(getattr(module, name).__wrapped__))
        for path in tmp_path.rglob("*.py"):
            path.unlink()
        put(tmp_path, files)
        return fingerprint(root)

    monkeypatch.setattr(module, "ROOT", tmp_path)
    return found


def edited(old, new, name="attnlib/toy/numbers.py"):
    assert old in FIRST[name], "the edit must do something"
    return FIRST | {name: FIRST[name].replace(old, new)}


@pytest.mark.parametrize(("old", "new"), TREE["no_number_moves"] + TREE["a_number_moves"])
def test_what_can_move_no_number_does_not_count_and_what_can_does(tree, old, new):
    assert (tree(edited(old, new)) == tree(FIRST)) == ([old, new] in TREE["no_number_moves"])


def test_moving_merging_and_renaming_change_nothing(tree):
    before, main = tree(FIRST), "attnlib/toy/main.py"
    merged = {"companion/one.py": NUMBERS + MAIN.replace("from attnlib.toy.numbers", "#")}
    assert tree(merged, "companion.one:measure") == before
    renamed = {name: text.replace("Box", "Crate").replace("UNIT", "STEP").replace("scaled", "stretched")
               for name, text in FIRST.items()}  # fmt: skip
    assert tree(renamed) == before
    text = MAIN.replace("numbers import Box, scaled", "numbers import Box\nfrom attnlib import toy")
    assert tree(FIRST | {main: text.replace("scaled(", "toy.scaled(")}) == before


def test_which_of_two_functions_is_meant_counts_also_where_they_call_each_other(tree):
    texts = [TREE["two_functions"].format(term) for term in TREE["terms"]]
    assert len({tree({"attnlib/m.py": each}, "attnlib.m:measure") for each in texts}) == len(texts)
    of = {name: tree(FIRST, f"attnlib.toy.numbers:{name}") for name in ("even", "odd")}
    assert of["even"] != of["odd"]
    changed = edited("return n != 0 and even(n - 1)", "return n != 1 and even(n - 1)")
    assert tree(changed, "attnlib.toy.numbers:even") != of["even"]


@pytest.mark.parametrize(("name", "equal"), [("TinySettings", True), ("Tiny", False)])
def test_fields_of_settings_are_in_the_key_and_not_in_the_code(tree, name, equal):
    text = TREE["settings"].format(name=name)
    texts = (text, text.replace("width: int = 3", "width: int = 3\n    depth: int = 1"))
    one, two = (tree({"attnlib/m.py": text}, "attnlib.m:measure") for text in texts)
    assert (one == two) == equal


def test_a_data_set_counts_with_its_checksums(monkeypatch):
    from companion.data.parallel import MULTI30K

    root = "companion.data.parallel:multi30k_en_de"
    assert module.data_sets(root) == ("companion.data.parallel:MULTI30K",)
    before = module._form(("companion.data.parallel", "MULTI30K")).text
    assert all(file.sha256 in before for file in MULTI30K.files)
    assert "github" not in before


def test_a_root_that_is_no_definition_is_refused():
    with pytest.raises(ValueError, match="no top-level function or class"):
        fingerprint("attnlib.files:nothing")


def test_what_is_left_out_by_name_is_there():
    paths = [path for package in ("attnlib", "companion") for path in (module.ROOT / package).rglob("*.py")]
    defined = "\n".join(path.read_text() for path in paths)
    assert all(f"def {name}(" in defined or f"\n{name} = " in defined for name in module.OUTSIDE)
    assert not {name for name in symbols("companion.runs.loop:train") if name.startswith("attnlib.files:")}
