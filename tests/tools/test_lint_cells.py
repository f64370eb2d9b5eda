"""ruff reads the cells of notebooks, and names the line of the notebook that has a fault."""

import pytest

from tools.lint_cells import ROOT, code_of, faults

CELLS = """# A title

```{code-cell} python3
:tags: [parameters]

length = 3
```

Prose: import os

```{code-cell} python3
%s
```
"""


@pytest.fixture
def faults_in_cell(tmp_path):
    """What is found in a notebook whose second cell has the given line."""

    def faults_of(line):
        path = tmp_path / "notebooks" / "one.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(CELLS % line, encoding="utf-8")
        return faults([path], tmp_path)

    return faults_of


def test_no_cell_of_the_book_has_a_fault():
    assert faults(sorted((ROOT / "notebooks").rglob("*.md"))) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param("import os", "F401 `os` imported but unused", id="an_unused_import"),
        pytest.param("print(lenght)", "F821 Undefined name `lenght`", id="a_misspelt_name"),
        pytest.param("l = length", "E741 Ambiguous variable name: `l`", id="a_letter_like_a_digit"),
        pytest.param("if length == None: pass", "E711 ", id="a_comparison_with_none"),
    ],
)
def test_a_fault_is_named_with_its_line_in_the_notebook(faults_in_cell, line, fault):
    assert any(message.startswith(f"notebooks/one.md:12: {fault}") for message in faults_in_cell(line))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("length", id="a_value_that_is_shown"),
        pytest.param("import math\n\nmath.sqrt(length)", id="an_import_behind_other_code"),
        pytest.param(f"caption = '{'x' * 200}'", id="a_long_caption"),
    ],
)
def test_what_cells_may_do_is_no_fault(faults_in_cell, line):
    assert faults_in_cell(line) == []


def test_lines_keep_their_numbers():
    lines = code_of(CELLS % "print(length)").split("\n")
    assert lines[5] == "length = 3"
    assert lines[11] == "print(length)"


def test_nothing_but_code_is_left():
    assert "".join(code_of(CELLS % "print(length)").split("\n")) == "length = 3print(length)"
