"""Count tables and early dynamics as an experiment: its corpora, and numbers known by hand."""

import numpy as np
import pytest

from attnlib.errors import UnknownName
from notebooks.learn.early_dynamics.count_tables import cooccurrence
from notebooks.learn.early_dynamics.experiment import Config, compute, measurements
from notebooks.learn.early_dynamics.measure import CORPORA, NO_TRANSLATION, draw
from tests.notebooks.given import Given

NUMBERS = {"agreement": 0.7, "chance": 0.1, "derivative_error": 1.5, "derivative_correlation": 0.5}
TINY = {"sentences": 40, "seeds": 2, "iterations": 3, "widths": (64, 512), "text": "none"}


@pytest.fixture(scope="module")
def found():
    return compute(Config(**TINY), store=None)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_what_its_seed_says_and_every_translation_stands_beside_its_word(name):
    drawn = draw(name, 40, seed=1)
    again, other = draw(name, 40, seed=1), draw(name, 40, seed=2)
    assert (drawn.corpus.source_ids == again.corpus.source_ids).all()
    assert (drawn.corpus.source_ids != other.corpus.source_ids).any()
    assert len(drawn.corpus) == 40
    counts = drawn.without_marks(cooccurrence(drawn.corpus, *drawn.sizes))
    assert counts.shape == (len(drawn.source_words), len(drawn.target_words))
    assert counts.sum() == len(drawn.corpus.target_ids)  # no mark stands in a corpus
    assert np.allclose(drawn.bags.counts, counts)
    for word, right in enumerate(drawn.right):
        if right != NO_TRANSLATION and counts[word].any():
            assert counts[word, right] == counts[word].max()


def test_reviews_have_one_polar_word_and_its_label():
    drawn = draw("polarity", 20, seed=0)
    right = drawn.right[drawn.corpus.source_ids - 4].reshape(20, 4)
    assert ((right != NO_TRANSLATION).sum(1) == 1).all()
    assert (right.max(1) == drawn.corpus.target_ids - 4).all()
    assert sorted(drawn.corpus.target_ids.tolist()) == [4] * 10 + [5] * 10


def test_numbers_known_by_hand(found):
    values, _ = found
    for stage in ("counted", "iterated"):
        for name in ("permutation", "mixture"):  # Figures 4 and 8: a quarter for each, and it stays so
            for key in ("right", "first", "aligned"):
                assert values[name][stage][key]["value"] == pytest.approx(0.25)
    assert values["permutation"]["spread"] == values["mixture"]["spread"] == pytest.approx(0, abs=1e-12)
    assert values["polarity"]["counted"]["right"]["value"] == 1  # a polar word has one label only
    # Every word stands beside its own translation always, so that one word in four of its company is that.
    assert values["lexicon"]["counted"]["right"]["value"] == pytest.approx(0.25)
    assert values["lexicon"]["counted"]["first"]["value"] == 1
    assert values["lexicon"]["iterated"]["right"]["value"] > 0.75  # three iterations; many bring it to 1


def test_multi30k_is_left_out_where_it_is_not_at_hand_unless_asked_to_stop(monkeypatch):
    monkeypatch.setattr("companion.data.parallel.available", lambda name: True)
    assert [dict(one.spec.settings)["n_train"] for one in measurements(Config())] == [2000]
    monkeypatch.setattr("companion.data.parallel.available", lambda name: False)
    assert measurements(Config()) == ()
    assert len(measurements(Config(absent="stop"))) == 1
    assert len(measurements(Config(text="scan"))) == 1  # made by rule


def test_a_text_is_counted_where_there_is_one():
    rows = [
        {"source": source, "counted": [[".", 0.5], [right, 0.25]], "iterated": [[right, 1.0]]}
        for source, right in (("a", "ein"), ("dog", "Hund"))
    ]
    store = Given(lambda spec, measure: NUMBERS | {"log_likelihood": [-2.0, -1.0], "rows": rows})
    values, tables = compute(Config(**TINY | {"text": "scan", "pairs": 0}), store)
    (asked,) = store.asked
    assert (asked.task, asked.iterations, asked.n_train) == ("scan", 3, 0)
    assert values["text"] == NUMBERS | {"listed": 2, "counted_words": 1, "iterated_words": 2}
    assert tables["words"][1] == {"source": "dog", "counted": ". 0.50, Hund 0.25", "iterated": "Hund 1.00"}


def test_an_unknown_corpus_is_said():
    with pytest.raises(UnknownName, match="no corpus 'permutations'; did you mean 'permutation'"):
        draw("permutations", 4, seed=0)
