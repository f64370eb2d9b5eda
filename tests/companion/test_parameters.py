"""Words of the command line as typed values."""

from pathlib import Path

import pytest

from attnlib.companion.parameters import defaults, from_word, parameters_cell, split_assignments
from attnlib.errors import BadInput


@pytest.mark.parametrize(
    ("word", "default", "value"),
    [
        ("scan", "one_to_one", "scan"),
        ("3", 1, 3),
        ("1e-3", 0.1, 0.001),
        ("0,1", (5,), (0, 1)),
        ("(0, 1)", (5,), (0, 1)),
        ("AED, AO", ("VED",), ("AED", "AO")),
        ("false", True, False),
        ("3", None, 3),
        ("scan", None, "scan"),
    ],
)
def test_a_word_takes_the_type_of_the_default(word, default, value):
    result = from_word("name", word, default)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("word", "default", "message"),
    [
        ("three", 3, "'seeds' got 'three'; expected a whole number, such as 3"),
        ("3.5", 3, "expected a whole number"),
        ("much", 0.5, "expected a number"),
        ("perhaps", True, "expected true or false"),
        ("1,x", (0,), "got 'x'; expected a whole number"),
    ],
)
def test_a_word_of_the_wrong_type_says_what_was_expected(word, default, message):
    with pytest.raises(BadInput, match=message):
        from_word("seeds", word, default)


def test_assignments():
    assert split_assignments(["task=scan", "path=a=b"]) == {"task": "scan", "path": "a=b"}
    for words, message in [
        (["task"], "expected name=value"),
        (["=1"], "expected"),
        (["a=1", "a=2"], "given twice"),
    ]:
        with pytest.raises(BadInput, match=message):
            split_assignments(words)


def test_the_parameters_cell_must_be_one_and_plain():
    tagged = {"metadata": {"tags": ["parameters"]}, "source": "a: int = 1\nb = None"}
    assert parameters_cell([{"metadata": {}}, tagged], "x") is tagged
    assert defaults(tagged["source"], "x") == {"a": 1, "b": None}
    with pytest.raises(BadInput, match="2 cells tagged"):
        parameters_cell([tagged, tagged], "attend/x")
    with pytest.raises(BadInput, match="default of 'a'"):
        defaults("a = open('x')", "attend/x")
    with pytest.raises(BadInput, match="line 2 of the parameters cell is not"):
        defaults("a = 1\nimport os", "attend/x")


def test_papermill_can_read_every_line_of_parameters():
    """A second equals sign in a line, be it in a comment, makes it warn of an unknown parameter."""
    import jupytext

    for path in (Path(__file__).parents[2] / "notebooks").rglob("*.md"):
        cell = parameters_cell(jupytext.read(path).cells, path.stem)
        assert [line for line in cell["source"].splitlines() if line.count("=") > 1] == [], path
