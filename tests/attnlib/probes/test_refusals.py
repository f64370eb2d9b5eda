"""What the probes refuse, and in which words."""

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.probes.agreement import RowMean, agreement, agreement_with_ties_broken, halves, places
from attnlib.probes.alignment_error import AlignmentSums, gold_links
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.probes.kendall import kendall
from attnlib.probes.lexical_probe import log_probability_of_pairs
from attnlib.probes.optimal_attention import optimal_attention
from attnlib.training.corpus import Corpus

ROW, SHORT = torch.zeros(1, 3), torch.zeros(1, 1)
WORDS = torch.ones(1, 2, dtype=torch.bool)
PADDED = torch.tensor([[True, False]])


def align(links, length, target_words):
    AlignmentSums().update(torch.ones(1, 2, length), gold_links([links], 2, length), target_words, WORDS)


def fit(sources, targets, iterations=1):
    IBMModel1.fit(Corpus.from_ids(sources, targets), 6, 6, iterations=iterations)


def optimum(encoder=1.0, words=3, positions=2, mask=WORDS):
    logits = torch.full((1, 2, words), encoder), torch.zeros(1, 2, words)
    optimal_attention(*logits, torch.zeros(1, positions, dtype=torch.long), mask, WORDS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: agreement(ROW, SHORT), BadInput, "the same length"),
        (lambda: agreement_with_ties_broken(ROW, SHORT), BadInput, "the same length"),
        (lambda: kendall(ROW, SHORT), BadInput, "the same length"),
        (lambda: places(torch.tensor([4]), 0), BadInput, "percent is 0"),
        (lambda: agreement(ROW, ROW, percent=101), BadInput, "percent is 101"),
        (lambda: agreement(ROW, ROW, ties="last"), UnknownName, "rule for ties"),
        (lambda: RowMean.of(torch.zeros(3), torch.ones(2).bool()), BadInput, "one truth value a row"),
        (lambda: halves(1), BadInput, "at least 2"),
        (lambda: gold_links([{(3, 0)}], 3, 2), BadInput, "leads outside"),
        (lambda: gold_links([{(0, 2)}], 3, 2), BadInput, "leads outside"),
        (lambda: gold_links([{(-1, 0)}], 3, 2), BadInput, "leads outside"),
        (lambda: align({(1, 0)}, 2, PADDED), BadInput, "outside the words"),
        (lambda: align(set(), 3, WORDS), BadInput, "give all three as"),
        (lambda: fit([], []), BadInput, "at least one sentence pair"),
        (lambda: fit([[4]], [[]]), BadInput, "at least one sentence pair"),
        (lambda: fit([[4]], [[4]], 0), BadInput, "iterations is 0"),
        (lambda: fit([[7]], [[4]]), BadInput, "a source word has id 7, but n_source is 6"),
        (lambda: fit([[4]], [[6]]), BadInput, "a target word has id 6, but n_target is 6"),
        (
            lambda: log_probability_of_pairs(*[ROW[..., None]] * 2, None, *[ROW > 0] * 3, at_once=0),
            BadInput,
            "at_once is 0",
        ),
        (lambda: optimum(positions=1), BadInput, "words has shape"),
        (lambda: optimum(words=1), BadInput, "only one word"),
        (lambda: optimum(mask=~WORDS), BadInput, "no valid source position"),
        (lambda: optimum(torch.inf), BadInput, "encoder_logits are not all finite"),
    ],
)
def test_what_cannot_be_done_is_said(call, error, message):
    with pytest.raises(error, match=message):
        call()
