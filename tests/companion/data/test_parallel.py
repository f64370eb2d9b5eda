import gzip

import pytest

from attnlib.errors import BadInput, DataUnavailable
from attnlib.training.vocabulary import MARKS, UNK
from companion.data.parallel import parallel, tokenise
from companion.data.registry import load

ENGLISH = ["A dog runs.", "A cat.", "", "The dog!", "A zebra runs."]
FRENCH = ["Un chien court.", "Un chat.", "vide", "L'animal !", "Un zèbre court."]


@pytest.fixture
def files(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.fr.gz"
    source.write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    target.write_bytes(gzip.compress(("\n".join(FRENCH) + "\n").encode()))
    return {"source": source, "target": str(target)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("L'homme d’à côté.", "l' homme d' à côté ."),
        ("Aujourd'hui, jusqu'au quai", "aujourd'hui , jusqu' au quai"),
        ("The man's dog isn't 3.5 feet", "the man 's dog isn 't 3.5 feet"),
        ("two T-shirts, peut-être", "two t-shirts , peut-être"),
        ('"Straße" (groß)…', '" straße " ( groß ) …'),
        ("cafe\N{COMBINING ACUTE ACCENT}\N{NO-BREAK SPACE}!", "café !"),
        ("dogs' O'Brien it's 'stop'", "dogs ' o ' brien it 's ' stop '"),
        ("  ", ""),
    ],
)
def test_tokens_worked_by_hand(line, words):
    assert tokenise(line) == words.split()


def test_case_is_kept_when_asked():
    assert tokenise("L'Homme QU'IL", lowercase=False) == ["L'", "Homme", "QU'", "IL"]


def test_vocabularies_come_from_the_training_lines_and_empty_pairs_are_dropped(files):
    task = load("parallel", **files, n_held_out=1, min_count=1)
    assert (len(task.train), len(task.held_out)) == (3, 1)
    # "a", "dog" and "." occur twice; "zebra" only in the held-out line.
    assert task.source_vocabulary.words == (*MARKS, ".", "a", "dog", "!", "cat", "runs", "the")
    assert task.source_vocabulary.decode(task.held_out.source(0)) == ["a", "<unk>", "runs", "."]
    assert task.target_vocabulary.decode(task.train.target(2)) == ["l'", "animal", "!"]
    assert UNK not in task.train.source_ids
    assert set(task.checksums) == {"source/a.en", "target/a.fr.gz"}


def test_sizes_bound_the_vocabulary_the_sentences_and_the_training_set(files):
    task = parallel(**files, n_held_out=1, n_train=2, max_words=2, max_length=4, min_count=1)
    assert task.source_vocabulary.words == (*MARKS, ".", "a")
    assert len(task.train) == 2
    assert len(parallel(**files, n_held_out=1, max_length=3, min_count=1).train) == 1


def test_files_of_different_length_are_refused(files):
    files["source"].write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"has 2, .* has 5; line 3 of .*a.fr.gz has no counterpart"):
        parallel(**files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_held_out": 4}, "cannot take any pairs to train on and 4 to hold out from 4"),
        ({"n_held_out": 1, "n_train": 4}, "cannot take 4 pairs"),
        ({"n_held_out": 0}, "holds no pair out"),
        ({"n_held_out": 1, "max_length": 0}, "max_length must be at least 1"),
        ({"n_held_out": 1, "min_count": 0}, "min_count and max_words must be at least 1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(files, options, message):
    with pytest.raises(BadInput, match=message):
        parallel(**files, **options)


def test_missing_files_are_named(files, tmp_path):
    with pytest.raises(BadInput, match="source=PATH and target=PATH"):
        parallel()
    with pytest.raises(DataUnavailable, match=r"nowhere\.fr"):
        parallel(source=files["source"], target=tmp_path / "nowhere.fr")
