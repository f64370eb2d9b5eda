"""Tatoeba and Europarl read from small archives made here, so also where the data are not at hand."""

import zipfile

import pytest

from attnlib.errors import BadInput, CorruptFile
from companion.data import parallel

FOLDER = "German-English_WordAlignment"


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in members.items():
            opened.writestr(name, text)
    return path


def texts(corpus, vocabulary, side):
    return [" ".join(vocabulary.decode(getattr(corpus, side)(i))) for i in range(len(corpus))]


@pytest.fixture
def few_pairs(monkeypatch, tmp_path):
    """20 English sentences, of which each comes twice, in two cases, with neighbouring translations."""
    english = [f"Sentence {chr(97 + i)}{chr(97 + i)}." for i in range(20)]
    lines = [
        f"{source}\t{source[-3]} {way}\tCC-BY"
        for text in english
        for way, source in enumerate((text, text.upper()))
    ]
    path = archive(tmp_path / "fra.zip", **{"fra.txt": "\n".join([*lines, "no tab", ""])})
    monkeypatch.setattr(parallel, "locate", lambda dataset, name: path)


def test_all_translations_of_a_sentence_fall_into_one_part(few_pairs):
    task = parallel.tatoeba_en_fr(min_count=1, n_held_out=7)
    # The eighth pair has the source of the seventh.
    assert (len(task.train), len(task.held_out)) == (32, 8)
    sources = set(texts(task.train, task.source_vocabulary, "source"))
    assert len(sources) == 16
    # The sentences of this archive differ in one word, which is unknown when it was not trained on.
    assert set(texts(task.held_out, task.source_vocabulary, "source")) == {"sentence <unk> ."}


def test_held_out_tatoeba_sentences_depend_on_the_seed_but_not_on_the_training_pairs(few_pairs):
    def left(**options):
        task = parallel.tatoeba_en_fr(min_count=1, n_held_out=8, **options)
        return frozenset(texts(task.train, task.source_vocabulary, "source"))

    assert left(seed=0) == left(seed=0) != left(seed=1)
    assert left(seed=0, n_train=10) < left(seed=0)


def test_case_can_be_kept_without_a_leak(few_pairs):
    task = parallel.tatoeba_en_fr(min_count=1, n_held_out=8, lowercase=False)
    words = set(task.source_vocabulary.words[4:])
    assert {"Sentence", "SENTENCE"} < words
    named = {word.lower() for word in words} - {"sentence", "."}
    # Of each of the 16 sentences trained on there are both cases, of the 4 others neither.
    assert len(named) == 16
    assert all({name, name.upper()} <= words for name in named)


@pytest.mark.parametrize("options", [{"n_held_out": 0}, {"n_held_out": 40}, {"n_held_out": 8, "n_train": 33}])
def test_sizes_beyond_the_file_are_refused(few_pairs, options):
    with pytest.raises(BadInput, match="it must lie between 1 and"):
        parallel.tatoeba_en_fr(**options)


def test_an_archive_without_its_text_is_refused(monkeypatch, tmp_path):
    path = archive(tmp_path / "fra.zip", other="")
    monkeypatch.setattr(parallel, "locate", lambda dataset, name: path)
    with pytest.raises(CorruptFile, match=r"no readable fra\.txt"):
        parallel.tatoeba_en_fr()


@pytest.fixture
def two_aligned(monkeypatch, tmp_path):
    (tmp_path / "train.de").write_text("Das ist rot.\n" * 5 + "Nein nein nein nein nein.\n" + "Ja.\n" * 4)
    (tmp_path / "train.en").write_text("This is red.\n" * 5 + "No.\n" + "Yes.\n" * 4)
    members = {
        f"{FOLDER}/test.de": "\N{ZERO WIDTH NO-BREAK SPACE}das alte haus\nja , ja\n".encode(),
        f"{FOLDER}/test.en": b"house the-old\nyes\n",
        # German first; the last link points beyond the end of the English sentence.
        f"{FOLDER}/de-en.wa": b"0-1 1-1 2-0\n0-0 2-0 1-7\n",
    }
    aligned = archive(tmp_path / "aligned.zip", **members)

    def locate(dataset, name):
        return aligned if name.endswith(".zip") else tmp_path / name

    monkeypatch.setattr(parallel, "locate", locate)


def test_links_are_turned_to_target_and_source_and_come_first(two_aligned):
    task = parallel.europarl_de_en(held_out_from_train=3, min_count=1)
    assert task.gold == (frozenset({(1, 0), (1, 1), (0, 2)}), frozenset({(0, 0), (0, 2)}))
    held_out = texts(task.held_out, task.source_vocabulary, "source")
    assert held_out == ["das alte haus", "ja , ja", "ja .", "ja .", "ja ."]
    assert texts(task.held_out, task.target_vocabulary, "target")[:2] == ["house the-old", "yes"]
    assert texts(task.train, task.source_vocabulary, "source")[-2:] == held_out[:2]
    assert len(task.train) == 10 - 3 + 2


def test_the_bound_on_length_spares_the_aligned_sentences(two_aligned):
    task = parallel.europarl_de_en(held_out_from_train=1, min_count=1, max_length=2)
    # "Ja." alone is short enough.
    assert set(texts(task.train, task.source_vocabulary, "source")[:-2]) == {"ja ."}
    assert len(task.gold) == 2
    assert task.held_out.source_lengths.tolist() == [3, 3, 2]
    assert len(parallel.europarl_de_en(held_out_from_train=0, max_length=None).train) == 12


def test_checksums_name_the_three_files(two_aligned):
    task = parallel.europarl_de_en(held_out_from_train=0)
    assert list(task.checksums) == [
        "europarl/train.de",
        "europarl/train.en",
        f"gold_alignments/{parallel._ZIP}",
    ]
