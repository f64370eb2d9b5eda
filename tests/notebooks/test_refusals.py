"""What figures refuse, and in which words: settings by a table, and what their functions are called with."""

from functools import partial
from pkgutil import resolve_name

import numpy as np
import pytest
import torch

from attnlib.training.corpus import Corpus
from companion.data import registry as tasks
from companion.results import registry
from companion.results.config import override
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.without_attention import experiment as memory
from notebooks.learn.early_dynamics import derivative, word_counts
from notebooks.learn.optimal_attention.experiment import probability_of_right_label
from notebooks.learn.probe_locality.keyword import keyword_batch, locality
from notebooks.primer.scoring_functions.asked_before import PreviousStateQueries
from notebooks.shared import ragged, unrolled
from notebooks.shared.copied_sentences import draw_sources
from notebooks.shared.probe_bits import probe_bits
from notebooks.shared.transformer_sequences import tie_encoder
from tests.attnlib.models.model_builders import generator, sequence_network, transformer
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import beside

REFUSED = beside(__file__, "refused")


def make(kind, name, given):
    if kind == "procedures":
        return RunSpec.of(name, **given)
    if kind == "functions":
        return resolve_name(name)(*given)
    if kind == "tasks":
        return tasks.load(name, **given)
    return override(registry.load(name).PROFILES["quick"], given)


PLAIN = [
    (partial(make, kind, name, given), message)
    for kind, refused in REFUSED.items()
    for name, cases in refused.items()
    for given, message in cases
]

OTHERS = [
    (lambda: draw_sources("permutation", 1, 400, generator()), "length 1"),
    *((partial(keyword_batch, *sizes, generator()), message) for sizes, message in (
        ((3, 5, 5), "even number"), ((0, 5, 5), "even number"),
        ((4, 0, 5), "at least two"), ((4, 5, 1), "at least two"))),
    (lambda: Store("nowhere").model(ModelSpec("one_to_won", "AED", 2)), "did you mean 'one_to_one'"),
    (lambda: tie_encoder(transformer(positions="rotary")), "self-attention that would be tied"),
    *((partial(sequence_network, network=PreviousStateQueries, **changes), "in Bahdanau's it asks anyway")
      for changes in ({"decoder": "bahdanau"}, {"input_feeding": True}, {"link": "initial"})),
]  # fmt: skip

# What is counted and measured.

ONE = Corpus.from_ids([[7]], [[4]])
NO_SOURCE = Corpus.from_ids([[]], [[4]])
UNEVEN = Corpus.from_ids([[4], [4, 5]], [[4], [4, 5]])
INFINITE = torch.tensor([[1.0, 0.0], [1.0, 0.25]])
VECTORS, IDS = torch.zeros(2, 2), torch.full((2, 3), 3)
ENDS = torch.tensor([[0], [4], [5]])
NOT_FINITE = torch.zeros(5, 2, dtype=torch.long), torch.full((5, 4), torch.nan)

MEASURES = [
    (lambda: word_counts.cooccurrence(ONE, 6, 6), "a source word has id 7, but there are 6"),
    (lambda: word_counts.shared_counts(ONE, np.ones((8, 4))), "a target word has id 4, but there are 4"),
    (lambda: word_counts.CountTables.of(ONE, 8, 8, -1), "iterations is -1"),
    (lambda: derivative.Bags.of(NO_SOURCE, 5, 5), "no mean embedding"),
    (lambda: derivative.Bags.of(ONE, 5, 5), "id 7"),
    (lambda: derivative.derivative_at_random(derivative.Bags.of(ONE, 8, 8), 0, seed=0), "width is 0"),
    (lambda: derivative.compare(torch.ones(2, 2), torch.zeros(2, 2)), "zero everywhere"),
    (lambda: word_counts.draw("permutations", 4, seed=0), "no corpus … did you mean 'permutation'"),
    (lambda: ragged.padded(torch.ones(3), torch.tensor([0, 2])), "3 positions, but the offsets end at 2"),
    *((partial(locality, torch.zeros(1, 6), place), "must differ") for place in ENDS),
    (lambda: probability_of_right_label(*INFINITE), "log odds are infinite"),
    (lambda: memory.one_length(UNEVEN), "2 lengths"),
    (lambda: unrolled.UnrolledComponents(3, 2, 4).update(*NOT_FINITE), "not finite"),
    (lambda: probe_bits(VECTORS, IDS, VECTORS, 0 * IDS, words=3), "expected 0 … 2"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [*PLAIN, *OTHERS, *MEASURES])
def test_what_cannot_be_is_refused(call, message):
    assert_refused(call, message)
