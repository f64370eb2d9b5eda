"""What figures refuse, and in which words: settings by a table, and what their functions are called with."""

from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from attnlib.training.corpus import Corpus
from companion.data import registry as tasks
from companion.results import registry
from companion.results.config import override
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.attend.without_attention import measure as memory
from notebooks.learn.agreement.experiment import best_checkpoint, contextualise
from notebooks.learn.early_dynamics import derivative, word_counts
from notebooks.learn.optimal_attention.experiment import probability_of_right_label
from notebooks.learn.probe_locality.keyword import keyword_batch, locality
from notebooks.learn.resting_attention.experiment import pair_spread
from notebooks.primer.one_vector.dates import FORMS, write
from notebooks.primer.scoring_functions.asked_before import PreviousStateQueries
from notebooks.primer.source_reversal.experiment import count_distances
from notebooks.shared import bleu, copier, copying, intervals, lexicon, number_words, pieces, ragged, unrolled
from notebooks.shared.copied_sentences import draw_sources, words_of
from notebooks.shared.probe_bits import probe_bits
from notebooks.shared.reordering import translate
from notebooks.shared.scan import interpret
from notebooks.shared.spearman import spearman
from notebooks.shared.transformer_sequences import tie_encoder
from notebooks.shared.words import link_distances
from tests.attnlib.models.model_builders import generator, sequence_network, transformer
from tests.attnlib.refusals import assert_refused

REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))


def make(kind, name, given):
    if kind == "procedures":
        return RunSpec.of(name, **given)
    if kind == "tasks":
        return tasks.load(name, **given)
    return override(registry.load(name).PROFILES["quick"], given)


SETTINGS = [
    (partial(make, kind, name, given), message)
    for kind, refused in REFUSED.items()
    for name, cases in refused.items()
    for given, message in cases
]

# Grammars.

NO_COMMANDS = {
    "fly": "fly", "turn": "turn", "walk opposite": "walk opposite", "walk and": "", "and walk": "", "": "",
    "walk twice twice": "walk twice twice", "walk left and left walk": "left walk",
}  # fmt: skip
NO_SENTENCES = ("", "red fox", "now red", "now fox red", "now red fox once", "now now red fox")
GRAMMARS = [
    (partial(write, date(1998, 3, 3), "DAY MONTHS YEAR"), "did you mean 'DAY MONTH YEAR'"),
    (partial(write, date(1899, 12, 31), FORMS[0]), "from 1900-01-01 to 2099-12-31"),
    (partial(write, date(2100, 1, 1), FORMS[0]), "from 1900-01-01 to 2099-12-31"),
    (lambda: number_words.spell(-1), "from 0 to 999,999,999"),
    (lambda: number_words.spell(10**9), "from 0 to 999,999,999"),
    *((partial(interpret, words.split()), f"'{at}' is no SCAN command") for words, at in NO_COMMANDS.items()),
    *((partial(translate, words.split()), "is no sentence") for words in NO_SENTENCES),
    (lambda: translate(["now", "red", "foxx"]), "no word 'foxx'; did you mean 'fox'"),
    (lambda: translate(["now"], "locl"), "no reach 'locl'; did you mean 'local'"),
    (lambda: lexicon.translate(["the", "floods"]), "no word 'floods'; did you mean 'flood'"),
    (lambda: lexicon.summarise(["the", "floods"]), "no word 'floods'; did you mean 'flood'"),
    (lambda: lexicon.summarise(["the", "cat"]), "nothing to sum up; topics are war, plague"),
    (lambda: words_of("permutations", 4), "did you mean 'permutation'"),
    (lambda: draw_sources("permutation", 1, 400, generator()), "length 1"),
    *((partial(keyword_batch, *sizes, generator()), message) for sizes, message in (
        ((3, 5, 5), "even number"), ((0, 5, 5), "even number"),
        ((4, 0, 5), "at least two"), ((4, 5, 1), "at least two"))),
    (lambda: pieces.train_pieces(["a b"], 50), "no vocabulary of 50 pieces from 1 lines … too high"),
    (lambda: pieces.train_pieces(["abcdefgh"], 8), "of 8 pieces from 1 lines … smaller than required"),
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
    (lambda: copying.judged([({}, {"steps": [0]})], 4), "no snapshot after 4 updates"),
    (lambda: copying.check_checkpoints(15, 10, 40), "steps is 15, and a network that is trained for longer"),
    (lambda: memory.one_length(UNEVEN), "2 lengths"),
    (lambda: unrolled.UnrolledComponents(3, 2, 4).update(*NOT_FINITE), "not finite"),
    (lambda: unrolled.UnrolledComponents(3_000, 20, 8), "at most 4,096: take shorter sentences"),
    (lambda: probe_bits(VECTORS, IDS, VECTORS, 0 * IDS, words=3), "expected 0 … 2"),
    (lambda: link_distances([(0, 3)], 3), "beyond a source of 3 words"),
    (lambda: count_distances("scan"), "'scan' has no known links"),
    (lambda: contextualise(torch.nan, [0.1], [0.2]), "is NaN"),
    (lambda: best_checkpoint([torch.nan]), "no checkpoint has a row"),
    (lambda: pair_spread({}), "no units"),
    *((partial(intervals.mean_interval, values), "finite") for values in ([], [1.0, np.nan], [[1.0], [2.0]])),
    *((partial(intervals.share_interval, *counts), f"{counts[0]} of {counts[1]}")
      for counts in ((0, 0), (3, 2), (-1, 4))),
    (lambda: intervals.jackknife_interval([], sum), "jackknife of no units"),
    (lambda: intervals.hierarchical_bootstrap({"scan": []}, None), "Group 'scan' has no rows"),
    (lambda: intervals.hierarchical_bootstrap([[1.0], [[1.0, 2.0]]], None), "one width"),
    (lambda: intervals.hierarchical_bootstrap([], None), "at least one"),
    (lambda: spearman([1, 2], [1, 2, 3]), "one length"),
    (lambda: spearman([1, np.nan], [1, 2]), "NaN"),
    *((partial(score, *sides), "hypotheses and 0 references; give one each")
      for score in (bleu.bleu_counts, bleu.corpus_bleu) for sides in ((["a"], []), ([], []))),
]  # fmt: skip

# Networks.

NETWORKS = [
    (lambda: ModelSpec("one_to_one", "AED", steps=0), "steps is 0"),
    (lambda: Store("nowhere").model(ModelSpec("one_to_won", "AED", 2)), "did you mean 'one_to_one'"),
    (lambda: copier.CopierConfig(5, 8, "lstm", 1, "uniforn"), "did you mean 'uniform'"),
    (lambda: copier.CopierConfig(5, 8, "lstm", 0), "heads is 0"),
    (lambda: tie_encoder(transformer(positions="rotary")), "self-attention that would be tied"),
    *((partial(sequence_network, network=PreviousStateQueries, **changes), "in Bahdanau's it asks anyway")
      for changes in ({"decoder": "bahdanau"}, {"input_feeding": True}, {"link": "initial"})),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [*SETTINGS, *GRAMMARS, *MEASURES, *NETWORKS])
def test_what_cannot_be_is_refused(call, message):
    assert_refused(call, message)
