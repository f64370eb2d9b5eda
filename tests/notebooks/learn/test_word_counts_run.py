"""Count tables of a text: on a task whose links are known, and as words."""

import pytest
import torch

from attnlib.training.corpus import Corpus, Task
from attnlib.training.vocabulary import Vocabulary
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.early_dynamics.count_tables import cooccurrence, translation
from notebooks.learn.early_dynamics.measure import measure_word_counts
from notebooks.learn.early_dynamics.word_counts import Settings, checksums, record, text_of

GERMAN = Vocabulary.of(["ein", "Hund", "Mann", "rennt"], open=True)
ENGLISH = Vocabulary.of(["a", "dog", "man", "runs"], open=True)
PAIRS = ["ein Hund rennt", "ein Mann rennt", "ein Hund", "ein Mann", "Hund rennt"]
SAME = dict(zip(GERMAN.words, ENGLISH.words, strict=True))
TINY = {"iterations": 30, "listed": 10, "judged": 2}


@pytest.fixture(autouse=True)
def text(monkeypatch):
    def load(name, **options):
        sources = [line.split() for line in PAIRS]
        targets = [[SAME[word] for word in line] for line in sources]
        corpus = Corpus.from_ids([GERMAN.encode(s) for s in sources], [ENGLISH.encode(t) for t in targets])
        return Task(name, GERMAN, ENGLISH, corpus, corpus, {"file": "digest"})

    monkeypatch.setattr("notebooks.learn.early_dynamics.word_counts.registry.load", load)


def test_iterations_find_the_translations(tmp_path):
    found = record(Settings(**TINY), tmp_path)
    assert found["words"].tolist() == [4, 5, 6, 7]
    assert found["iterated_words"][:, 0].tolist() == [4, 5, 6, 7]  # translations have equal ids here
    assert (found["iterated"][:, 0] > 0.9).all()
    assert (found["log_likelihood"].diff() >= -1e-9).all()
    text = text_of(Settings())
    table = torch.from_numpy(translation(cooccurrence(text.train, 8, 8)))
    assert torch.equal(found["counted"][0], table[4].topk(4).values)
    assert checksums(Settings()) == {"file": "digest"}


def test_agreement_of_links_is_counted_by_hand(tmp_path):
    """ein is the one word in doubt: after the iterations every word has its own, from C most have."""
    found = record(Settings(**TINY), tmp_path)
    text = text_of(Settings())
    table = translation(cooccurrence(text.train, 8, 8))
    hits = [
        table[text.train.source(i), word].argmax() == place
        for i in range(2)
        for place, word in enumerate(text.train.target(i))
    ]
    assert found["agreement"].item() == pytest.approx(sum(hits) / len(hits))
    assert found["chance"].item() == pytest.approx(1 / 3)


def test_words_stand_for_ids(tmp_path):
    spec = RunSpec.of("word_counts", **TINY)
    found = measure_word_counts(Store(tmp_path).recording(spec))
    assert [row["source"] for row in found["rows"]] == ["ein", "Hund", "Mann", "rennt"]
    assert [row["iterated"][0][0] for row in found["rows"]] == ["a", "dog", "man", "runs"]
    assert found["chance"] == pytest.approx(1 / 3)


def test_the_derivative_nears_the_count_table_with_the_width(tmp_path):
    narrow, wide = (record(Settings(**TINY, width=width), tmp_path) for width in (8, 8192))
    assert wide["derivative_error"] < 0.1 < narrow["derivative_error"]
    assert wide["derivative_correlation"] > 0.99
    other = record(Settings(**TINY, width=8, seed=1), tmp_path)
    assert other["derivative_error"] != narrow["derivative_error"]
