"""Words of the command line as typed values."""

from pathlib import Path

import pytest

from attnlib.errors import BadInput
from companion.book.parameters import check_parallel, defaults, parameters_cell, split_assignments


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

    for path in (Path(__file__).parents[3] / "notebooks").rglob("*.md"):
        cell = parameters_cell(jupytext.read(path).cells, path.stem)
        assert [line for line in cell["source"].splitlines() if line.count("=") > 1] == [], path


@pytest.mark.parametrize(("text", "pairs"), [("", 0), ("\n \n", 0), ("one\n" * 9 + "\n", 9)])
def test_text_files_with_next_to_nothing_in_them_are_refused_by_name(tmp_path, text, pairs):
    source, target = tmp_path / "my.en", tmp_path / "my.fr"
    for path in (source, target):
        path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=rf"my\.en and .*my\.fr have {pairs} pairs of lines .* at least 10"):
        check_parallel(source, target)


def test_ten_pairs_are_enough_and_one_line_more_on_one_side_is_not(tmp_path):
    source, target = tmp_path / "my.en", tmp_path / "my.fr"
    for path in (source, target):
        path.write_text("one\n" * 10, encoding="utf-8")
    check_parallel(source, target)
    source.write_text("one\n" * 11, encoding="utf-8")
    with pytest.raises(BadInput, match="line 11 of"):
        check_parallel(source, target)
