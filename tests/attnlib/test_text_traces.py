"""What other tools left in a text is taken back, and the lines with it are counted."""

import pytest

from attnlib.text_traces import undone

LEFTOVERS = [
    pytest.param("lei@@ sur@@ ely walks", "leisurely walks", id="BPE"),
    pytest.param("cut off@@", "cut off", id="BPE at the end"),
    pytest.param("the lei ##sure ##ly walks", "the leisurely walks", id="WordPiece"),
    pytest.param("▁the ▁hou se ▁.", "the house .", id="SentencePiece"),
    pytest.param("▁lei sure ly ▁walks", "leisurely walks", id="pieces without a mark"),
    pytest.param("hello ￭, it", "hello, it", id="joiners of OpenNMT"),
    pytest.param("l'￭ homme", "l'homme", id="joiners before a blank"),
    pytest.param("a well @-@ known house", "a well-known house", id="hyphens of Moses"),
    pytest.param("we &apos;re here &amp; there", "we 're here & there", id="entities"),
    pytest.param("Gr&#252;n &#91; &#x5d;", "Grün [ ]", id="numbered entities"),
]


@pytest.mark.parametrize(("line", "plain"), LEFTOVERS)
def test_what_a_tool_left_is_undone(line, plain):
    lines, _ = undone([line])
    assert lines == [plain]


@pytest.mark.parametrize(("line", "plain"), LEFTOVERS)
def test_lines_that_a_tool_changed_are_counted(line, plain):
    _, counts = undone([line, plain])
    assert list(counts.values()) == [1]


def test_entities_are_read_once():
    lines, _ = undone(["&amp;quot;"])
    assert lines == ["&quot;"]


def test_what_two_tools_left_in_a_line_is_undone():
    lines, _ = undone(["we &apos;re lei@@ sur@@ ely"])
    assert lines == ["we 're leisurely"]


def test_each_tool_has_its_own_count():
    _, counts = undone(["a@@ b", "c", "d &lt; e"])
    assert counts == {"pieces of BPE (@@)": 1, "entities such as &apos;": 1}


def test_plain_text_stays():
    line = "AT&T mails me@example.org @ noon"
    assert undone([line]) == ([line], {})


def test_a_sign_in_one_line_of_many_is_meant_as_it_is():
    lines = ["plain"] * 500 + ["price @@ 5", "x ##y"]
    assert undone(lines)[0] == lines
