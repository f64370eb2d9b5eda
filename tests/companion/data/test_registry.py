"""Tasks and trainings are found by the folder that they lie in."""

import ast

import pytest

from companion.data import registry as tasks
from companion.paths import ROOT, TASKS, TRAININGS, modules_in
from companion.runs import registry as trainings

MODULES = [path for path in sorted(ROOT.glob("notebooks/**/*.py")) if "__" not in path.name]


def defined_in(path, name):
    """Return the function of this name at the top of a module, or the value that is assigned to it."""
    source = path.read_text(encoding="utf-8")
    if name not in source:
        return None  # without parsing it
    names = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names[ast.unparse(target)] = node.value
    return names.get(name)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one module in a folder that is looked into and one outside."""
    for name in ("notebooks/learn/one/trainings/copier.py", "notebooks/learn/one/helper.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def record(): ...\n", encoding="utf-8")
    monkeypatch.setattr("companion.paths.ROOT", tmp_path)
    return tmp_path


def test_modules_are_found_by_their_folder(checkout):
    path = checkout / "notebooks/learn/one/trainings/copier.py"
    assert modules_in(TRAININGS) == {path: "notebooks.learn.one.trainings.copier"}


def test_every_training_lies_in_a_folder_of_trainings():
    with_record = {path for path in MODULES if defined_in(path, "record")}
    assert with_record == set(modules_in(TRAININGS))


def test_every_table_of_tasks_lies_in_a_folder_of_tasks():
    tables = {path: defined_in(path, "TASKS") for path in MODULES}
    with_table = {path for path, value in tables.items() if isinstance(value, ast.Dict | ast.DictComp)}
    assert with_table == set(modules_in(TASKS))


@pytest.mark.parametrize("name", ["multi30k_en_fr", "scan", "dates", "lexicon_summary", "copying_sample"])
def test_tasks_of_all_folders_have_their_names(name):
    assert name in tasks.names()


@pytest.mark.parametrize("name", ["translation", "word_counts"])
def test_trainings_of_all_folders_have_their_names(name):
    assert trainings.load(name).__name__.endswith(f".trainings.{name}")
