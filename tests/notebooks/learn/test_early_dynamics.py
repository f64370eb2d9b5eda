"""Early dynamics: count tables, the first derivative of the proxy, counts of a text, and the figure."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from attnlib.probes.ibm_model_1 import IBMModel1
from companion.data.task import Task
from companion.runs.procedure import RunSpec
from notebooks.learn.early_dynamics.trainings import word_counts
from notebooks.learn.early_dynamics.trainings.word_counts import (
    Bags,
    CountTables,
    Settings,
    alignment,
    compare,
    cooccurrence,
    draw,
    log_likelihood,
    shared_counts,
    translation,
)
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import computed, tiny
from tests.notebooks.worked import assert_answer

SOURCE_WORDS, TARGET_WORDS = SIZES = 10, 14


def random_corpus(seed: int = 0) -> Corpus:
    """The first target word follows from the source, two others from nothing."""
    generator = np.random.default_rng(seed)
    sources = [generator.integers(4, SOURCE_WORDS, size=generator.integers(1, 6)) for _ in range(40)]
    targets = [[4 + total % 3, *generator.integers(4, TARGET_WORDS, size=2)] for total in map(sum, sources)]
    return Corpus.from_ids(sources, targets)


BAGS = word_counts.Bags.of(random_corpus(), *SIZES)


# Count tables against Model 1 with a null word, and by what must hold of any corpus.


@pytest.mark.parametrize("seed", range(3))
def test_with_null_written_into_every_source_it_is_ibm_model_1(seed):
    corpus = random_corpus(seed)
    null = 3  # <unk>, a word like any other here
    sources = [np.concatenate(([null], corpus.source(i))) for i in range(len(corpus))]
    written = Corpus.from_ids(sources, [corpus.target(i) for i in range(len(corpus))])
    ours = CountTables.of(written, *SIZES, 20)
    for iterations in (1, 5):
        theirs = IBMModel1.fit(corpus, *SIZES, iterations=iterations)
        rows = np.where(theirs.sources == 0, null, theirs.sources)
        assert ours.counts[iterations - 1][rows, theirs.targets] == pytest.approx(theirs.counts)
    # the likelihood never falls, and no target word is lost
    assert len(ours.counts) == len(ours.log_likelihood) == 21
    assert (np.diff(ours.log_likelihood) >= -1e-9).all()
    assert ours.log_likelihood[-1] > ours.log_likelihood[0]
    for counts in ours.counts:
        assert counts.sum() == pytest.approx(len(corpus.target_ids))
        assert translation(counts).sum(1) == pytest.approx((counts.sum(1) > 0).astype(float))


# The first derivative of the proxy: by hand, by a gradient step, and as the width grows.


def test_the_theory_by_hand():
    """One pair, one word each: C is 1 at (4, 4). Logits: 2 (1 − 1/5); probabilities: a fifth of it."""
    theory = word_counts.derivative_in_theory(word_counts.Bags.of(Corpus.from_ids([[4]], [[4]]), 5, 5))
    assert theory.logits[4].tolist() == pytest.approx([-0.4, -0.4, -0.4, -0.4, 1.6])
    assert theory.probabilities[4].tolist() == pytest.approx([-0.08, -0.08, -0.08, -0.08, 0.32])
    assert theory.logits[:4].abs().max() == 0  # words that stand nowhere


def test_the_measured_derivative_is_the_slope_of_one_gradient_step():
    output, embeddings = word_counts.random_proxy(BAGS, 32, seed=1)
    slopes, rate = word_counts.gradients(BAGS, output, embeddings), 1e-7
    before = embeddings @ output.T
    after = (embeddings - rate * slopes[1]) @ (output - rate * slopes[0]).T
    measured = word_counts.derivative_at_random(BAGS, 32, seed=1)
    assert torch.allclose(measured.logits, (after - before) / rate, rtol=1e-4, atol=1e-4)
    stepped = (after.softmax(-1) - before.softmax(-1)) / rate
    assert torch.allclose(measured.probabilities, stepped, rtol=1e-4, atol=1e-5)


def test_the_gradients_are_those_of_the_loss_word_by_word():
    corpus, loss = random_corpus(), 0
    output, embeddings = (side.requires_grad_() for side in word_counts.random_proxy(BAGS, 8, seed=0))
    for i in range(len(corpus)):
        log_probability = (output @ embeddings[corpus.source(i).tolist()].mean(0)).log_softmax(0)
        loss = loss - log_probability[corpus.target(i).tolist()].sum()
    expected = torch.autograd.grad(loss, (output, embeddings))
    torch.testing.assert_close(word_counts.gradients(BAGS, output, embeddings), expected)


def test_the_probabilities_lack_a_factor_in_print():
    """Measured over 2 (C − mean C), as equation 15 has it, the slope is 1/|O|; with the factor it is one."""
    theory = word_counts.derivative_in_theory(BAGS)
    measured = word_counts.derivative_at_random(BAGS, 4096, seed=0).probabilities
    printed, derived = (
        word_counts.compare(measured, formula) for formula in (theory.logits, theory.probabilities)
    )
    assert printed.slope == pytest.approx(1 / TARGET_WORDS, rel=0.03)
    assert derived.slope == pytest.approx(1, abs=0.03)
    assert derived.error < 0.1 < 0.9 < printed.error
    assert 0.995 < derived.correlation == pytest.approx(printed.correlation)  # the order of words is the same


# The counts of a text whose translations are known.

PAIRS = ["ein Hund rennt", "ein Mann rennt", "ein Hund", "ein Mann", "Hund rennt"]
GERMAN, ENGLISH = ["ein", "Hund", "Mann", "rennt"], ["a", "dog", "man", "runs"]
COUNTED = {"iterations": 30, "listed": 10, "judged": 2}


@pytest.fixture
def text(monkeypatch) -> Task:
    """Translations have equal ids."""
    vocabularies = [Vocabulary.of(words, open=True) for words in (GERMAN, ENGLISH)]
    ids = [vocabularies[0].encode(line.split()) for line in PAIRS]
    corpus = Corpus.from_ids(ids, ids)
    task = Task("", *vocabularies, corpus, corpus, {"file": "digest"})
    loaded = "notebooks.learn.early_dynamics.trainings.word_counts.registry.load"
    monkeypatch.setattr(loaded, lambda name, **options: task)
    return task


@pytest.mark.usefixtures("text")
def test_iterations_find_the_translations(store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    assert recording["words"].tolist() == recording["iterated_words"][:, 0].tolist() == [4, 5, 6, 7]
    assert (recording["iterated"][:, 0] > 0.9).all()


@pytest.mark.usefixtures("text")
def test_iterations_never_lower_the_likelihood(store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    assert (recording["log_likelihood"].diff() >= -1e-9).all()


def test_counted_translations_are_those_of_cooccurrence(text, store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    table = translation(cooccurrence(text.train, 8, 8))
    assert torch.equal(recording["counted"][0], torch.from_numpy(table)[4].topk(4).values)


def test_agreement_of_links_is_counted(text, store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    table = translation(cooccurrence(text.train, 8, 8))
    hits = [
        table[text.train.source(i), word].argmax() == place
        for i in range(2)
        for place, word in enumerate(text.train.target(i))
    ]
    assert recording["agreement"].item() == pytest.approx(np.mean(hits))


@pytest.mark.usefixtures("text")
def test_words_stand_for_ids_in_measured_rows(store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    measured = word_counts.measure_word_counts(recording)
    assert [row["source"] for row in measured["rows"]] == GERMAN
    assert [row["iterated"][0][0] for row in measured["rows"]] == ENGLISH


@pytest.mark.usefixtures("text")
def test_chance_is_one_of_the_words_of_a_sentence(store):
    recording = store.recording(RunSpec.of("word_counts", **COUNTED))
    measured = word_counts.measure_word_counts(recording)
    assert measured["chance"] == pytest.approx(1 / 3)


@pytest.mark.usefixtures("text")
def test_the_derivative_of_a_text_nears_its_count_table_with_the_width(tmp_path):
    narrow, wide, other = (
        word_counts.record(Settings(**COUNTED, **of), tmp_path)
        for of in ({"width": 8}, {"width": 8192}, {"width": 8, "seed": 1})
    )
    assert wide["derivative_error"] < 0.1 < narrow["derivative_error"]
    assert wide["derivative_correlation"] > 0.99
    assert other["derivative_error"] != narrow["derivative_error"]


# The figure: its corpora, and numbers known by hand.


@pytest.mark.parametrize("name", word_counts.CORPORA)
def test_a_corpus_is_what_its_seed_says(name):
    drawn, again, other = (word_counts.draw(name, 40, seed) for seed in (1, 1, 2))
    assert (drawn.corpus.source_ids == again.corpus.source_ids).all()
    assert (drawn.corpus.source_ids != other.corpus.source_ids).any()


@pytest.mark.parametrize("name", word_counts.CORPORA)
def test_a_corpus_has_as_many_sentences_as_asked(name):
    drawn = word_counts.draw(name, 40, seed=1)
    assert len(drawn.corpus) == 40


@pytest.mark.parametrize("name", word_counts.CORPORA)
def test_no_mark_is_in_a_corpus(name):
    drawn = word_counts.draw(name, 40, seed=1)
    counts = drawn.without_marks(cooccurrence(drawn.corpus, *drawn.sizes))
    assert counts.shape == (len(drawn.source_words), len(drawn.target_words))
    assert counts.sum() == len(drawn.corpus.target_ids)


@pytest.mark.parametrize("name", word_counts.CORPORA)
def test_every_translation_is_beside_its_word(name):
    drawn = word_counts.draw(name, 40, seed=1)
    counts = drawn.without_marks(cooccurrence(drawn.corpus, *drawn.sizes))
    for word, right in enumerate(drawn.right):
        if right != word_counts.NO_TRANSLATION and counts[word].any():
            assert counts[word, right] == counts[word].max()


def test_reviews_have_one_polar_word():
    drawn = word_counts.draw("polarity", 20, seed=0)
    right = drawn.right[drawn.corpus.source_ids - 4].reshape(20, 4)
    assert ((right != word_counts.NO_TRANSLATION).sum(1) == 1).all()


def test_reviews_have_the_label_of_their_polar_word():
    drawn = word_counts.draw("polarity", 20, seed=0)
    right = drawn.right[drawn.corpus.source_ids - 4].reshape(20, 4)
    assert (right.max(1) == drawn.corpus.target_ids - 4).all()


def test_either_label_has_half_of_the_reviews():
    drawn = word_counts.draw("polarity", 20, seed=0)
    assert sorted(drawn.corpus.target_ids.tolist()) == [4] * 10 + [5] * 10


def test_numbers_known_by_hand():
    values = computed(tiny("early_dynamics", text="none"), store=None).values
    for name in ("permutation", "mixture"):  # Figures 4 and 8: a quarter for each, and it stays so
        for stage in ("counted", "iterated"):
            for key in ("right", "first", "aligned"):
                assert values[name][stage][key]["value"] == pytest.approx(0.25)
        assert values[name]["spread"] == pytest.approx(0, abs=1e-12)
    assert values["polarity"]["counted"]["right"]["value"] == 1  # a polar word has one label only
    # Every word stands beside its own translation always, so that one word in four of its company is that.
    assert values["lexicon"]["counted"]["right"]["value"] == pytest.approx(0.25)
    assert values["lexicon"]["counted"]["first"]["value"] == 1
    assert values["lexicon"]["iterated"]["right"]["value"] > 0.75  # three iterations; many bring it to 1


MET = Corpus.from_ids([[4, 5], [4]], [[6, 7], [6]])
NO = [0, 0, 0, 0, 0, 0, 0, 0]
OF_4 = [0, 0, 0, 0, 0, 0, 1.5, 0.5]
OF_5 = [0, 0, 0, 0, 0, 0, 0.5, 0.5]
LONELY = Corpus.from_ids([[4], [], [5]], [[4], [5], []])
NONE_OF_SIX = [0, 0, 0, 0, 0, 0]
ONLY_4 = [0, 0, 0, 0, 1.0, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Sources 4 5 and 4; 4 meets 6 twice, for half and for a whole; each target word is handed out whole.
        pytest.param((MET, 6, 8), [NO, NO, NO, NO, OF_4, OF_5], id="a_word_met_twice"),
        # An empty source hands nothing out.
        pytest.param(
            (LONELY, 6, 6),
            [NONE_OF_SIX, NONE_OF_SIX, NONE_OF_SIX, NONE_OF_SIX, ONLY_4, NONE_OF_SIX],
            id="an_empty_source",
        ),
    ],
)
def test_cooccurrence_by_hand(given, expected):
    assert_answer(cooccurrence(*given), expected)


SAID_OF_4 = [0, 0, 0, 0, 0, 0, 0.75, 0.25]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (np.array([NO, NO, NO, NO, OF_4, OF_5]),), {4: SAID_OF_4, 5: OF_5, 0: NO}, id="rows_sum_to_one"
        ),
        pytest.param((np.array([NONE_OF_SIX, ONLY_4]),), {1: ONLY_4, 0: NONE_OF_SIX}, id="a_word_met_once"),
    ],
)
def test_translation_by_hand(given, expected):
    assert_answer(translation(*given), expected)


SAID = np.array([NO, NO, NO, NO, SAID_OF_4, OF_5])
SAID_ALONE = np.array([NONE_OF_SIX, NONE_OF_SIX, NONE_OF_SIX, NONE_OF_SIX, ONLY_4, NONE_OF_SIX])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((SAID, [4, 5], [6, 7]), [[0.6, 0.4], [1 / 3, 2 / 3]], id="columns_sum_to_one"),
        pytest.param((SAID_ALONE, [5], [4]), [[0]], id="a_word_never_met"),
    ],
)
def test_alignment_by_hand(given, expected):
    assert_answer(alignment(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (MET, SAID), {4: {6: 1.6, 7: 1 / 3}, 5: {6: 0.4, 7: 2 / 3}}, id="words_shared_by_two_sources"
        )
    ],
)
def test_shared_counts_by_hand(given, expected):
    assert_answer(shared_counts(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((LONELY, SAID_ALONE), 0, id="certain_words"),
        pytest.param((Corpus.from_ids([[5]], [[4]]), SAID_ALONE), -math.inf, id="an_impossible_word"),
    ],
)
def test_log_likelihood_by_hand(given, expected):
    assert_answer(log_likelihood(*given), expected)


ONE = Corpus.from_ids([[7]], [[4]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((Corpus.from_ids([[]], [[4]]), 5, 5), "no mean embedding", id="empty source"),
        pytest.param((ONE, 5, 5), "id 7", id="id_7"),
    ],
)
def test_bags_of_refuses(given, message):
    assert_refused(partial(Bags.of, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param((torch.tensor([[1.0]]), torch.tensor([[0.0]])), "zero everywhere", id="zero_everywhere")],
)
def test_compare_refuses(given, message):
    assert_refused(partial(compare, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param((ONE, 6, 6), "a source word has id 7, but there are 6", id="word beyond the vocabulary")],
)
def test_cooccurrence_refuses(given, message):
    assert_refused(partial(cooccurrence, *given), message)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param((ONE, 8, 8, -1), "iterations is -1", id="negative iterations")]
)
def test_count_tables_of_refuses(given, message):
    assert_refused(partial(CountTables.of, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param(("permutations", 4, 0), "no corpus … did you mean 'permutation'", id="misspelt corpus")],
)
def test_draw_refuses(given, message):
    assert_refused(partial(draw, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (
                Corpus.from_ids([[3]], [[4]]),
                np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]),
            ),
            "a target word has id 4, but there are 4",
            id="word beyond the table",
        )
    ],
)
def test_shared_counts_refuses(given, message):
    assert_refused(partial(shared_counts, *given), message)
