"""Measures that agreement tables rest on, worked by hand, and pairs of networks that cannot be compared."""

import math
from functools import partial

import pytest
import torch

from notebooks.shared.agreement import (
    measure_agreement,
    measure_course,
    measure_saliency_variants,
    measure_ties,
    padded,
)
from tests.attnlib.refusals import assert_refused
from tests.notebooks.worked import assert_answer, recording_of_lists


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Quality counts words, not sentences. The first of the two selects; two of four words to write are
        # end marks; four fifths of the words are right and all longer n-grams: BLEU is 100 · 0.8^(1/4).
        pytest.param(
            (
                recording_of_lists(
                    {
                        "steps": [0],
                        "validation.log_probe": [[0.0, 0, 0, 0]],
                        "validation.source_mask": [[True], [True]],
                        "validation.target_mask": [[True, True, True], [True, False, False]],
                        "validation.right": [[1, 1]],
                        "validation.target_output": [[7, 8, 2], [2, 0, 0]],
                        "validation.bleu_counts": [
                            [[4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]]
                        ],
                    }
                ),
            ),
            {
                "majority.validation": 50,
                "parts.validation": {
                    "accuracy": {"all": [50], "selecting": [100 / 3], "reporting": [100]},
                    "bleu.all": [94.5741609],
                },
            },
            id="words_and_not_sentences_count",
        )
    ],
)
def test_measure_course_by_hand(given, expected):
    assert_answer(measure_course(*given), expected)


TWICE = [0, 10]
TWO_WORDS = [[True, True], [True, True], [True, True], [True, True]]
ONE_WORD = [[True], [True], [True], [True]]
ENDS = [[2], [2], [9], [9]]
RIGHT = [[0, 0, 0, 0], [1, 1, 1, 1]]
FREE = [[-1.0, 0, -1, 0, -1, 0, -1, 0], [0.0, -1, 0, -1, 0, -1, 0, -1]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Translators looked at twice on four sentences of two words whose translation is one; the first two
        # sentences select. Free, one attends to the first word at its better second snapshot. At uniform
        # attention β is larger at the second word at the first snapshot; at the second it is tied in the
        # samples that select, and larger at the first word in the others. Both words of a tie are at the top.
        pytest.param(
            {
                "sides": "attention",
                "first": recording_of_lists(
                    {
                        "steps": TWICE,
                        "validation.source_mask": TWO_WORDS,
                        "validation.target_mask": ONE_WORD,
                        "validation.target_output": ENDS,
                        "validation.right": RIGHT,
                        "validation.log_probe": FREE,
                        "validation.attention": FREE,
                    }
                ),
                "second": recording_of_lists(
                    {
                        "steps": TWICE,
                        "validation.source_mask": TWO_WORDS,
                        "validation.target_mask": ONE_WORD,
                        "validation.target_output": ENDS,
                        "validation.right": RIGHT,
                        "validation.log_probe": [
                            [-1.0, 0, -1, 0, -1, 0, -1, 0],
                            [0.0, 0, 0, 0, 0, -1, 0, -1],
                        ],
                        "validation.attention": FREE,
                    }
                ),
            },
            {
                "steps": [0, 10],
                "tied": [0, 50],
                "tied_ends": [0, 50],
                "chance": [50, 75],
                "chance_broken": 50,
                "attention.counted": {
                    "selecting": [[0, 2, 0], [2, 2, 0]],
                    "reporting": [[0, 2, 0], [2, 2, 0]],
                },
                "attention.broken": {
                    "selecting": [[0, 2, 0], [1, 2, 0]],
                    "reporting": [[0, 2, 0], [2, 2, 0]],
                },
            },
            id="ties_at_uniform_attention",
        )
    ],
)
def test_measure_ties_by_hand(given, expected):
    assert_answer(measure_ties(**given), expected)


EMPTY = recording_of_lists({})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {
                "first": recording_of_lists(
                    {"steps": [0], "validation.offsets": [0, 2, 4], "validation.correct": [[True, True]]}
                ),
                "second": recording_of_lists(
                    {
                        "steps": [0],
                        "validation.offsets": [0, 1, 4],
                        "validation.correct": [[True, True]],
                        "seed": 1,
                    }
                ),
                "pairs": "attention~probe",
            },
            "seed 0 and seed 1 were looked at on other samples",
            id="other samples",
        ),
        pytest.param(
            {
                "first": recording_of_lists(
                    {
                        "steps": [0],
                        "validation.offsets": [0, 1, 2],
                        "validation.correct": [[True, True]],
                        "validation.saliency": [[math.nan, math.nan]],
                    }
                ),
                "second": recording_of_lists(
                    {
                        "steps": [0],
                        "validation.offsets": [0, 1, 2],
                        "validation.correct": [[True, True]],
                        "validation.log_polarity": [[0.0, 0.0]],
                    }
                ),
                "pairs": "saliency~probe",
            },
            "seed 0 has no saliency at its best checkpoint",
            id="saliency was not recorded",
        ),
    ],
)
def test_measure_agreement_refuses(given, message):
    assert_refused(partial(measure_agreement, **given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"first": EMPTY, "second": EMPTY, "pairs": ""}, id="no pair"),
        pytest.param({"first": EMPTY, "second": EMPTY, "pairs": "attention"}, id="one side of a pair"),
        pytest.param(
            {"first": EMPTY, "second": EMPTY, "pairs": "attention~loss"}, id="side that is no weighing"
        ),
    ],
)
def test_agreement_of_what_is_no_pair_is_refused(given):
    assert_refused(
        partial(measure_agreement, **given), "such as 'attention~probe', of attention, saliency, probe"
    )


TRANSLATOR = recording_of_lists(
    {
        "steps": [0],
        "validation.source_mask": [[True], [True]],
        "validation.target_mask": [[True], [True]],
        "validation.target_output": [[9], [9]],
        "validation.right": [[1, 1]],
        "validation.log_probe": [[0.0, 0.0]],
        "validation.attention": [[math.nan, math.nan]],
    }
)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (
                recording_of_lists({"validation.source_mask": [[True]], "validation.target_mask": [[True]]}),
                TRANSLATOR,
            ),
            "other samples",
            id="other_samples",
        )
    ],
)
def test_measure_saliency_variants_refuses(given, message):
    assert_refused(partial(measure_saliency_variants, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {
                "first": recording_of_lists(
                    {"validation.source_mask": [[True]], "validation.target_mask": [[True]]}
                ),
                "second": TRANSLATOR,
                "sides": "attention",
            },
            "other samples",
            id="other_samples",
        ),
        pytest.param(
            {"first": TRANSLATOR, "second": TRANSLATOR, "sides": "attention"},
            "no attention at its best checkpoint",
            id="attention was not recorded",
        ),
    ],
)
def test_measure_ties_refuses(given, message):
    assert_refused(partial(measure_ties, **given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"first": TRANSLATOR, "second": TRANSLATOR, "sides": ""}, id="no side"),
        pytest.param({"first": TRANSLATOR, "second": TRANSLATOR, "sides": "weights"}, id="unknown side"),
    ],
)
def test_ties_of_unknown_sides_are_refused(given):
    assert_refused(partial(measure_ties, **given), "expected some of attention")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0, 2])),
            "3 positions, but the offsets end at 2",
            id="position beyond the offsets",
        )
    ],
)
def test_padded_refuses(given, message):
    assert_refused(partial(padded, *given), message)
