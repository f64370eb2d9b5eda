"""Translation sets as text: what is read, what is cleaned, and that nothing goes missing in silence."""

import gzip
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, DataUnavailable, UnknownName
from companion.data.parallel import (
    at_hand,
    known_lexicon,
    purely_numerical,
    read_parallel_files,
    read_translation,
    split_90_10,
    translation_checksums,
    translation_of,
    undo_bpe,
)
from companion.data.sources import dataset, find

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
