"""Parallel corpora: words and tasks, lines and text, of published files and of a reader's own."""

import gzip
import hashlib
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, CorruptFile, DataUnavailable, UnknownName
from attnlib.training.vocabulary import MARKS, UNK
from companion.data import parallel as corpora
from companion.data.parallel import (
    at_hand,
    known_lexicon,
    parallel,
    purely_numerical,
    read_parallel_files,
    read_translation,
    split_90_10,
    tokenise,
    translation_checksums,
    translation_of,
    undo_bpe,
)
from companion.data.registry import load
from companion.data.sources import dataset, find

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


@pytest.fixture(scope="module", params=["fr", "de"])
def task(request):
    try:
        return load(f"multi30k_en_{request.param}")
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


def test_every_pair_is_in_one_of_the_parts(task):
    assert len(task.train) == 29_000 - 4_000
    assert len(task.held_out) == 1_014 + 1_000 + 1_000 + 461 + 4_000
    assert len(task.checksums) == 2 * 5


def test_the_first_pair_reads_as_published(task):
    source = task.source_vocabulary.decode(task.train.source(0))
    assert " ".join(source) == "two young , white males are outside near many bushes ."
    first = {
        "multi30k_en_fr": "deux jeunes hommes blancs sont dehors près de buissons .",
        "multi30k_en_de": "zwei junge weiße männer sind im freien in der nähe vieler büsche .",
    }[task.name]
    assert task.target_vocabulary.decode(task.train.target(0)) == first.split(" ")


def test_few_words_are_unknown(task):
    # German compounds make its share the largest.
    for ids in (task.held_out.source_ids, task.held_out.target_ids):
        assert np.mean(ids == UNK) < 0.06


def test_most_held_out_samples_have_thirty_of_their_lengths(task):
    lengths = np.stack([task.held_out.source_lengths, task.held_out.target_lengths])
    _, counts = np.unique(lengths, axis=1, return_counts=True)
    assert counts[counts >= 30].sum() > 0.75 * len(task.held_out)


def test_options_bound_the_task(task):
    small = load(task.name, n_train=500, max_words=300, held_out_from_train=0, max_length=20)
    assert len(small.train) == 500
    assert len(small.source_vocabulary) == len(small.target_vocabulary) == 304
    assert max(small.held_out.source_lengths.max(), small.held_out.target_lengths.max()) == 20


def test_more_pairs_than_there_are_are_refused(task):
    with pytest.raises(BadInput, match="cannot take 25001 pairs"):
        load(task.name, n_train=25_001)


def test_without_data_the_error_says_both_ways_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path))
    with pytest.raises(DataUnavailable, match=r"attnlib data fetch multi30k`, or set ATTNLIB_DATA"):
        load("multi30k_en_fr")


def loaded(name, **options):
    try:
        return load(name, **options)
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


@pytest.fixture(scope="module")
def tatoeba():
    return loaded("tatoeba_en_fr", n_train=3_000, n_held_out=500, min_count=1)


@pytest.fixture(scope="module")
def europarl():
    return loaded("europarl_de_en")


def sentences(corpus, vocabulary):
    return {" ".join(vocabulary.decode(corpus.source(i))) for i in range(len(corpus))}


def test_no_english_sentence_is_in_both_parts(tatoeba):
    assert len(tatoeba.train) == 3_000
    assert 500 <= len(tatoeba.held_out) < 600
    # Held-out sentences may hold unknown words, which are alike; those that do not are told apart.
    known = {text for text in sentences(tatoeba.held_out, tatoeba.source_vocabulary) if "<unk>" not in text}
    assert known
    assert not known & sentences(tatoeba.train, tatoeba.source_vocabulary)


def test_tatoeba_says_where_its_sizes_end(tatoeba):
    with pytest.raises(BadInput, match="n_train is 1000000; it must lie between 1 and 13"):
        load("tatoeba_en_fr", n_train=1_000_000)


def test_the_hundred_aligned_sentences_are_trained_on_and_judged(europarl):
    assert len(europarl.gold) == 100
    assert sum(map(len, europarl.gold)) == 1_232  # of 1,233; one points beyond its sentence
    assert len(europarl.held_out) == 100 + 1_000
    first = len(europarl.train) - 100
    for i in (0, 57, 99):
        assert np.array_equal(europarl.train.source(first + i), europarl.held_out.source(i))
        assert np.array_equal(europarl.train.target(first + i), europarl.held_out.target(i))


def test_the_first_aligned_pair_reads_as_published(europarl):
    source = europarl.source_vocabulary.decode(europarl.held_out.source(0))
    target = europarl.target_vocabulary.decode(europarl.held_out.target(0))
    assert source[:5] == ["herr", "präsident", ",", "herr", "kommissar"]
    links = europarl.gold[0]
    assert {(target[t], source[s]) for t, s in links} >= {("mr", "herr"), ("president", "präsident")}
    assert (3, 4) in links  # commissioner – kommissar, past a comma and "herr"


def test_links_stay_inside_their_sentences(europarl):
    for i, links in enumerate(europarl.gold):
        assert all(t < len(europarl.held_out.target(i)) for t, _ in links)
        assert all(s < len(europarl.held_out.source(i)) for _, s in links)


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
    monkeypatch.setattr(corpora, "locate", lambda dataset, name: path)


def test_all_translations_of_a_sentence_fall_into_one_part(few_pairs):
    task = corpora.tatoeba_en_fr(min_count=1, n_held_out=7)
    # The eighth pair has the source of the seventh.
    assert (len(task.train), len(task.held_out)) == (32, 8)
    sources = set(texts(task.train, task.source_vocabulary, "source"))
    assert len(sources) == 16
    # The sentences of this archive differ in one word, which is unknown when it was not trained on.
    assert set(texts(task.held_out, task.source_vocabulary, "source")) == {"sentence <unk> ."}


def test_held_out_tatoeba_sentences_depend_on_the_seed_but_not_on_the_training_pairs(few_pairs):
    def left(**options):
        task = corpora.tatoeba_en_fr(min_count=1, n_held_out=8, **options)
        return frozenset(texts(task.train, task.source_vocabulary, "source"))

    assert left(seed=0) == left(seed=0) != left(seed=1)
    assert left(seed=0, n_train=10) < left(seed=0)


def test_case_can_be_kept_without_a_leak(few_pairs):
    task = corpora.tatoeba_en_fr(min_count=1, n_held_out=8, lowercase=False)
    words = set(task.source_vocabulary.words[4:])
    assert {"Sentence", "SENTENCE"} < words
    named = {word.lower() for word in words} - {"sentence", "."}
    # Of each of the 16 sentences trained on there are both cases, of the 4 others neither.
    assert len(named) == 16
    assert all({name, name.upper()} <= words for name in named)


@pytest.mark.parametrize("options", [{"n_held_out": 0}, {"n_held_out": 40}, {"n_held_out": 8, "n_train": 33}])
def test_sizes_beyond_the_file_are_refused(few_pairs, options):
    with pytest.raises(BadInput, match="it must lie between 1 and"):
        corpora.tatoeba_en_fr(**options)


def test_an_archive_without_its_text_is_refused(monkeypatch, tmp_path):
    path = archive(tmp_path / "fra.zip", other="")
    monkeypatch.setattr(corpora, "locate", lambda dataset, name: path)
    with pytest.raises(CorruptFile, match=r"no readable fra\.txt"):
        corpora.tatoeba_en_fr()


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

    monkeypatch.setattr(corpora, "locate", locate)


def test_links_are_turned_to_target_and_source_and_come_first(two_aligned):
    task = corpora.europarl_de_en(held_out_from_train=3, min_count=1)
    assert task.gold == (frozenset({(1, 0), (1, 1), (0, 2)}), frozenset({(0, 0), (0, 2)}))
    held_out = texts(task.held_out, task.source_vocabulary, "source")
    assert held_out == ["das alte haus", "ja , ja", "ja .", "ja .", "ja ."]
    assert texts(task.held_out, task.target_vocabulary, "target")[:2] == ["house the-old", "yes"]
    assert texts(task.train, task.source_vocabulary, "source")[-2:] == held_out[:2]
    assert len(task.train) == 10 - 3 + 2


def test_the_bound_on_length_spares_the_aligned_sentences(two_aligned):
    task = corpora.europarl_de_en(held_out_from_train=1, min_count=1, max_length=2)
    # "Ja." alone is short enough.
    assert set(texts(task.train, task.source_vocabulary, "source")[:-2]) == {"ja ."}
    assert len(task.gold) == 2
    assert task.held_out.source_lengths.tolist() == [3, 3, 2]
    assert len(corpora.europarl_de_en(held_out_from_train=0, max_length=None).train) == 12


def test_checksums_name_the_three_files(two_aligned):
    task = corpora.europarl_de_en(held_out_from_train=0)
    assert list(task.checksums) == [
        "europarl/train.de",
        "europarl/train.en",
        f"gold_alignments/{corpora._ZIP}",
    ]


SOURCE = ["the House sleeps", "a dog", "", "the dog sleeps", "a very long line", "the house"]
TARGET = ["das Haus schläft", "ein Hund", "leer", "der Hund schläft", "eine sehr lange Zeile", "das Haus"]
LINKS = ["0-0 1-1 2-2", "", "", "0-0 1-1 2-1 2-2", "0-3", ""]


@pytest.fixture
def linked(tmp_path):
    paths = {role: tmp_path / role for role in ("source", "target", "links")}
    for path, lines in zip(paths.values(), (SOURCE, TARGET, LINKS), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def test_pairs_with_links_come_first_among_the_held_out_and_are_trained_on(linked):
    task = load("aligned", **linked, min_count=1, max_length=3, n_held_out=1)
    words = [task.source_vocabulary.decode(task.held_out.source(i)) for i in range(len(task.held_out))]
    # The empty pair and the long one are dropped with their lines of links.
    assert words == [["the", "house", "sleeps"], ["the", "dog", "sleeps"], ["the", "house"]]
    # (target, source): word 1 of the target, "hund", has links to words 1 and 2 of the source.
    assert task.gold == (frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0), (1, 1), (1, 2), (2, 2)}))
    trained = [task.target_vocabulary.decode(task.train.target(i)) for i in range(len(task.train))]
    assert trained == [["ein", "hund"], ["das", "haus", "schläft"], ["der", "hund", "schläft"]]
    assert set(task.checksums) == {"source/source", "target/target", "links/links"}


def test_every_line_may_have_links(linked):
    linked["links"].write_text("0-0\n1-1\n\n1-1\n0-0\n0-1\n", encoding="utf-8")
    task = load("aligned", **linked)
    assert len(task.train) == len(task.held_out) == len(task.gold) == 5


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0\n", "has 1 lines and .*source has 6"),
        ("0-0\n0:1\n\n\n\n\n", "line 2: '0:1' is no link; write source-target"),
        ("0-0\n\n\n0-3\n\n\n", "line 4: link 0-3 points beyond its sentences of 3 and 3 words"),
        ("0-0\n\n0-0\n\n\n\n", "line 3: link 0-0 points beyond"),
        ("٠-٠\n\n\n\n\n\n", "line 1: '٠-٠' is no link"),
        ("\n" * 6, "has no links; a line such as"),
    ],
)
def test_links_that_cannot_be_used_are_refused_by_line(linked, links, message):
    linked["links"].write_text(links, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        load("aligned", **linked)


def test_a_file_that_is_missing_is_named(linked, tmp_path):
    with pytest.raises(BadInput, match="without links"):
        load("aligned", source=linked["source"], target=linked["target"])
    with pytest.raises(DataUnavailable, match="nowhere"):
        load("aligned", **linked | {"links": tmp_path / "nowhere"})


needs_data = pytest.mark.skipif(
    find(dataset("multi30k"), dataset("multi30k").file("train.en")) is None,
    reason="ATTNLIB_DATA lacks the text sets",
)


def counts(text):
    return {(one.part, one.what, one.why): one.count for one in text.dropped}


@needs_data
@pytest.mark.parametrize(
    ("name", "first"), [("multi30k_en_de", "Two young"), ("multi30k_de_en", "Zwei junge")]
)
def test_multi30k_has_the_sizes_of_table_9(name, first):
    text = read_translation(name)
    assert (len(text.train), len(text.validation)) == (29_000, 1_014)
    assert text.train[0][0].startswith(first)
    assert counts(text) == {}


@needs_data
def test_iwslt14_is_two_samples_joined_with_pieces_undone_and_escapes_read():
    text = read_translation("iwslt14_de_en")
    assert len(text.validation) == 7_283  # Table 9 has one more
    found = counts(text)
    assert len(text.train) + found["train", "pairs", "also in validation"] == 8_639
    assert len(text.train) + sum(found.values()) == 8_800  # lines of the two samples
    assert not set(text.train) & set(text.validation)
    assert len(set(text.train)) == len(text.train)
    everything = "\n".join(line for pair in (*text.train, *text.validation) for line in pair)
    assert "@@" not in everything
    assert "&apos;" not in everything
    assert "&quot;" not in everything
    assert ("so , da haben sie es . das ist die wahrheit .") in {source for source, _ in text.train}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lei@@ sur@@ ely", "leisurely"),
        ("a & b &amp; c &#91; d &#93;", "a & b & c [ d ]"),
        ("mail me@example.org @ noon", "mail me@example.org @ noon"),
        ("cut off@@", "cut off"),
        ("&amp;quot;", "&quot;"),
    ],
)
def test_pieces_are_undone_once(line, words):
    assert undo_bpe(line) == words


NEWS = "\n".join(
    [
        "Il PIL cresce.\tO PIB cresce.",
        "\t",
        "1995–2005\t1995–2005",
        "100%\tcem por cento",
        "sem parceiro\t",
        "one column",
        "a\tb\tc",
        "G20 a Roma\tG20 em Roma",
        *[f"frase {i} bella\tfrase {i} bela" for i in range(18)],
    ]
)


@pytest.fixture
def news(tmp_path, monkeypatch):
    folder = tmp_path / "news_commentary"
    folder.mkdir()
    (folder / "news-commentary-v14.it-pt.tsv.gz").write_bytes(gzip.compress((NEWS + "\n").encode()))
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "none"))
    return tmp_path


def test_news_commentary_drops_numerical_empty_and_odd_lines_and_counts_them(news):
    text = read_translation("news_it_pt")
    assert (len(text.train), len(text.validation)) == (18, 2)
    assert counts(text) == {
        ("pool", "pairs", "an empty side"): 2,
        ("pool", "pairs", "purely numerical"): 2,
        ("pool", "lines", "not two columns"): 2,
    }
    kept = {*text.train, *text.validation}
    assert ("G20 a Roma", "G20 em Roma") in kept
    assert ("frase 3 bella", "frase 3 bela") in kept
    assert text == read_translation("news_it_pt"), "the split is drawn once and for all"


def test_checksums_are_of_the_content_not_of_its_compression(news):
    (name, sha256), *rest = translation_checksums("news_it_pt").items()
    assert (name, rest) == ("news_commentary/news-commentary-v14.it-pt.tsv", [])
    assert sha256 == hashlib.sha256((NEWS + "\n").encode()).hexdigest()
    assert translation_checksums("known_lexicon") == {}


def test_without_the_file_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "none"))
    with pytest.raises(DataUnavailable, match=r"news-commentary-v14\.en-nl\.tsv is not at hand"):
        read_translation("news_en_nl")
    with pytest.raises(DataUnavailable, match="news-commentary"):
        translation_checksums("news_en_nl")
    # What the registry knows is told without the file.
    known = translation_checksums("multi30k_en_de")
    assert known["multi30k/val.de"] == dataset("multi30k").file("val.de").sha256
    assert len(known) == 4
    assert all(file.sha256 is None for file in dataset("news_commentary").files)


@given(st.integers(2, 300))
def test_the_split_is_nine_to_one_and_loses_nothing(n):
    pairs = [(str(i), str(-i)) for i in range(n)]
    train, validation = split_90_10(pairs)
    assert len(train) == n * 9 // 10
    assert sorted((*train, *validation), key=lambda pair: int(pair[0])) == pairs
    assert [int(source) for source, _ in train] == sorted(int(source) for source, _ in train)


@pytest.mark.parametrize(("train", "validation"), [(52_070, 5_786), (48_538, 5_394), (21_572, 2_397)])
def test_the_split_rounds_as_table_9_does(train, validation):
    n = train + validation
    assert (n * 9 // 10, n - n * 9 // 10) == (train, validation)


def test_a_readers_files(tmp_path):
    (tmp_path / "my.en").write_text("".join(f"word {i}\n" for i in range(20)) + " \n", encoding="utf-8")
    (tmp_path / "my.xx").write_text("".join(f"wort {i}\n" for i in range(20)) + "leer\n", encoding="utf-8")
    text = read_parallel_files(tmp_path / "my.en", tmp_path / "my.xx")
    assert (len(text.train), len(text.validation)) == (18, 2)
    assert all(source.replace("word", "wort") == target for source, target in text.train)
    assert counts(text) == {("pool", "pairs", "an empty side"): 1}
    same = read_translation("parallel_files", source=str(tmp_path / "my.en"), target=str(tmp_path / "my.xx"))
    assert same == text
    named = translation_checksums(
        "parallel_files", source=str(tmp_path / "my.en"), target=str(tmp_path / "my.xx")
    )
    assert list(named) == ["source/my.en", "target/my.xx"]


def test_a_readers_mistakes(tmp_path):
    (tmp_path / "two").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "one").write_text("a\n", encoding="utf-8")
    with pytest.raises(BadInput, match="source=PATH and target=PATH"):
        read_translation("parallel_files")
    with pytest.raises(BadInput, match="line 2"):
        read_parallel_files(tmp_path / "two", tmp_path / "one")
    with pytest.raises(BadInput, match="at least 2"):
        read_parallel_files(tmp_path / "one", tmp_path / "one")
    with pytest.raises(UnknownName, match="did you mean 'multi30k_en_de'"):
        read_translation("multi30k_en_d")


@pytest.mark.parametrize(
    ("line", "numerical"), [("", False), ("…", False), ("3.5 %", True), ("3 km", False), ("٣", True)]
)
def test_purely_numerical(line, numerical):
    assert purely_numerical(line) == numerical


def test_the_known_lexicon_translates_every_word_and_exchanges_neighbours_alone():
    train, validation = known_lexicon(300, 20)
    assert (train, validation) == known_lexicon(300, 20)
    assert (len(train), len(validation)) == (300, 20)
    moved = []
    for source, target in (*train, *validation):
        words, translated = [translation_of(word) for word in source.split()], target.split()
        assert sorted(words) == sorted(translated)
        assert 3 <= len(words) <= 9
        place = 0
        while place < len(words):
            exchanged = translated[place] != words[place]
            if exchanged:
                assert translated[place : place + 2] == words[place + 1 : place - 1 if place else None : -1]
            moved.append(exchanged)
            place += 2 if exchanged else 1
    assert 0.1 < sum(moved) / len(moved) < 0.3


def test_what_is_at_hand(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    assert at_hand("known_lexicon")
    assert not at_hand("news_it_pt")
    folder = tmp_path / dataset("news_commentary").folder
    folder.mkdir()
    (folder / "news-commentary-v14.it-pt.tsv.gz").write_bytes(b"")
    assert at_hand("news_it_pt")
    assert not at_hand("multi30k_de_en")
    with pytest.raises(UnknownName, match="did you mean 'multi30k_en_de'"):
        at_hand("multi30k_en_d")
