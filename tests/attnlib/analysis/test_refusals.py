"""What the analysis refuses, and in which words; those of checkpoints and the command are beside these."""

from functools import partial

import pytest
import torch

from attnlib.analysis import Part, Stream, analyse
from attnlib.analysis.command import numbers
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import NINE, POSITION_BIAS, TermSums
from attnlib.errors import BadInput
from tests.attnlib.analysis.analysis_builders import Toy, by_hand, fit_of, judged

CROSS, SELF = Toy(("cross",))(0), Toy(("encoder_self",))(0)


def analyse_copies(count, *one):
    analyse(Stream(lambda one: one, [by_hand(*one)] * count))


def sum_terms(terms, allowed):
    TermSums(NINE).update(torch.zeros(terms), torch.ones(allowed, dtype=torch.bool))


SHAPES = r"expected \(9, batch, target, source\)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Part(3, 3), "shard is 3 of 3"),
        (lambda: Part(-1, 3), "shard is -1"),
        (lambda: Part(0, 0), "of 0"),
        (lambda: Part(0, 1, 0), "every is 0"),
        (lambda: Stream(str, iter([1, 2])), "read only once"),
        (lambda: analyse(Stream(str, [])), "no sample with a counted position"),
        (lambda: analyse_copies(7, [[1.0, 2.0]], [True, True]), "no sample with a counted position"),
        # a row with one position to look at says nothing: without another there is nothing to report
        (
            lambda: analyse_copies(6, [[1.0], [2.0]], [False]),
            "no row of attention has two positions to choose",
        ),
        (lambda: Fit([]), "heads is empty"),
        (lambda: judged(fit_of([CROSS]), [SELF]), r"no components of encoder\.self; the fit has those of"),
        (lambda: fit_of([CROSS]) + fit_of([SELF]), "different attentions"),
        (lambda: sum_terms((10, 2, 3, 4), (2, 3, 4)), SHAPES),
        (lambda: sum_terms((9, 2, 3, 4), (2, 4, 3)), SHAPES),
        (lambda: sum_terms((9, 2, 3, 4), (1, 3, 4)), SHAPES),
        (lambda: sum_terms((9, 2, 3), (2, 3)), SHAPES),
        (lambda: TermSums(NINE) + TermSums((*NINE, POSITION_BIAS)), "cannot merge"),
        *(
            (partial(numbers, text), "are no numbers; write them as in 0,4-6")
            for text in ("", "a", "1,", "-1", "1-", "6-4", "1-2-3", "1.5", "0 1")
        ),
    ],
)
def test_what_cannot_be_done_is_said(call, message):
    with pytest.raises(BadInput, match=message):
        call()
