"""Counts behind BLEU, worked by hand."""

from functools import partial

import numpy as np
import pytest

from notebooks.shared.bleu import bleu, bleu_counts, corpus_bleu
from tests.attnlib.refusals import assert_refused
from tests.notebooks.worked import assert_answer

REFERENCES = ["the cat sat on the mat"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (["the cat sat on a mat"], REFERENCES), [[6, 6, 5, 3, 2, 1, 6, 5, 4, 3]], id="one_word_missing"
        ),
        pytest.param(([""], REFERENCES), [[0, 6, 0, 0, 0, 0, 0, 0, 0, 0]], id="nothing_written"),
    ],
)
def test_bleu_counts_by_hand(given, expected):
    assert_answer(bleu_counts(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of nothing, and of three wrong words for as many.
        pytest.param(
            (np.array([[0, 6, 0, 0, 0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0, 3, 2, 1, 0]]),),
            0,
            id="no_word_right",
        )
    ],
)
def test_bleu_by_hand(given, expected):
    assert_answer(bleu(*given), expected)


@pytest.mark.parametrize(
    "given", [pytest.param((["a"], []), id="one hypothesis"), pytest.param(([], []), id="no text")]
)
def test_counts_of_unequal_numbers_of_texts_are_refused(given):
    assert_refused(partial(bleu_counts, *given), "hypotheses and 0 references; give one each")


@pytest.mark.parametrize(
    "given", [pytest.param((["a"], []), id="one hypothesis"), pytest.param(([], []), id="no text")]
)
def test_bleu_of_unequal_numbers_of_texts_is_refused(given):
    assert_refused(partial(corpus_bleu, *given), "hypotheses and 0 references; give one each")
