"""Tasks are found wherever a module names them in a table, with an annotation or without."""

import pytest

from companion.paths import ROOT, TABLE_OF_TASKS, modules_with


@pytest.mark.parametrize(
    ("line", "is_table"),
    [
        ('TASKS = {"dates": dates}', True),
        ('TASKS: dict = {"dates": dates}', True),
        ('TASKS: dict[str, Callable[..., "Task"]] = {', True),
        ('TASKS = ("one_to_one", "scan")', False),
        ("    TASKS = {}", False),
        ("MY_TASKS = {}", False),
    ],
)
def test_a_table_of_tasks_is_found_by_the_beginning_of_its_line(tmp_path, monkeypatch, line, is_table):
    monkeypatch.setattr("companion.paths.ROOT", tmp_path)
    (tmp_path / "tasks.py").write_text(f'"""Tasks."""\n\n{line}\n', encoding="utf-8")
    assert bool(modules_with(TABLE_OF_TASKS, "*.py")) == is_table


def test_all_tables_of_this_checkout_are_found():
    names = set(modules_with(TABLE_OF_TASKS, "companion/data/*.py").values())
    names |= set(modules_with(TABLE_OF_TASKS).values())
    assert {"companion.data.parallel", "notebooks.shared.tasks", "notebooks.primer.one_vector.dates"} <= names
    assert all((ROOT / f"{name.replace('.', '/')}.py").is_file() for name in names)
