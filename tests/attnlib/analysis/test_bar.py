"""How far an analysis is, as a bar on standard error or by a function of one's own."""

import pytest

from attnlib import Stream, analyse
from tests.attnlib.analysis.builders import Toy


@pytest.mark.signatures
def test_a_bar_counts_the_batches_of_both_passes(capsys):
    analyse(Stream(Toy(), [*range(10)]), progress=True)
    shown = capsys.readouterr().err
    assert "components" in shown
    assert "8/8" in shown
    assert "2/2" in shown


def test_a_corpus_of_unknown_length_has_a_bar_as_well(capsys):
    analyse(Stream(Toy(), lambda: iter(range(10))), progress=True)
    assert "8/?" in capsys.readouterr().err


@pytest.mark.parametrize("progress", [False, None])
def test_no_bar_unless_asked(capsys, progress):
    analyse(Stream(Toy(), [*range(10)]), progress=progress)
    assert capsys.readouterr().err == ""


@pytest.mark.signatures
def test_a_function_is_called_after_each_batch():
    calls = []
    analyse(Stream(Toy(), [*range(5)]), progress=lambda stage, read: calls.append((stage, read)))
    assert calls == [("fit", 1), ("fit", 2), ("fit", 3), ("fit", 4), ("judge", 1)]
