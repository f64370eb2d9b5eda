"""Parallel corpora: words and tasks, lines and text, of published files and of a reader's own."""

import gzip
import hashlib
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, CorruptFile, DataUnavailable
from attnlib.models.vocabulary import MARKS, UNK
from companion.data import parallel as corpora
from companion.data import text
from companion.data.parallel import parallel, read_translation, translation_checksums
from companion.data.registry import load
from companion.data.sources import checksum, dataset
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import available, pairs, put, sources
from tests.tables import beside

TOLD = beside(__file__, "parallel")


def joined(task, part):
    return [" ".join(source) for source in sources(task, part)]


@pytest.mark.parametrize(("line", "words"), TOLD["words"])
def test_tokens_worked_by_hand(line, words):
    assert corpora.tokenise(line) == words.split()
    assert [word.lower() for word in corpora.tokenise(line, lowercase=False)] == words.split()


# -- a reader's own files ------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    french = gzip.compress("Un chien court.\nUn chat.\nvide\nL'animal !\nUn zèbre court.\n".encode())
    put(tmp_path, {"a.en": "A dog runs.\nA cat.\n\nThe dog!\nA zebra runs.\n", "a.fr.gz": french})
    return {"source": tmp_path / "a.en", "target": str(tmp_path / "a.fr.gz")}


@pytest.fixture
def own_lines(files):
    """With this seed the line with "zebra" is held out; "a", "dog" and "." occur twice in the others."""
    return load("parallel", **files, n_held_out=1, min_count=1, seed=5)


def test_empty_pairs_are_dropped(own_lines):
    assert (len(own_lines.train), len(own_lines.held_out)) == (3, 1)


def test_vocabularies_come_from_the_training_lines(own_lines):
    assert own_lines.source_vocabulary.words == (*MARKS, ".", "a", "dog", "!", "cat", "runs", "the")
    assert joined(own_lines, "held_out") == ["a <unk> runs ."]
    assert UNK not in own_lines.train.source_ids


def test_lines_are_split_into_words(own_lines):
    assert ("l'", "animal", "!") in {target for _, target in pairs(own_lines, "train")}


def test_checksums_of_own_lines_are_named_by_their_file(own_lines):
    assert set(own_lines.checksums) == {"source/a.en", "target/a.fr.gz"}


def test_the_most_frequent_words_are_kept(tmp_path):
    put(tmp_path, {"a": "a a a a a a a a a b\n" + "a a a a a a a a a c\n"})
    task = parallel(source=tmp_path / "a", target=tmp_path / "a", n_held_out=1, max_words=1, min_count=1)
    assert task.source_vocabulary.words == (*MARKS, "a")


@pytest.fixture
def linked_files(tmp_path):
    put(tmp_path, {role: "\n".join(lines) + "\n" for role, lines in TOLD["linked"].items()})
    return {role: tmp_path / role for role in TOLD["linked"]}


@pytest.fixture
def linked(linked_files):
    """The empty pair and the long one are dropped with their lines of links."""
    return load("aligned", **linked_files, min_count=1, max_length=3, n_held_out=1)


def test_pairs_with_links_come_first_among_the_held_out(linked):
    assert joined(linked, "held_out") == ["the house sleeps", "the dog sleeps", "the house"]


def test_links_are_read_from_source_to_target(linked):
    """Word 1 of the target, "hund", has links to words 1 and 2 of the source."""
    dog = frozenset({(0, 0), (1, 1), (2, 1), (2, 2)})
    assert linked.gold == (frozenset({(0, 0), (1, 1), (2, 2)}), dog)


def test_pairs_with_links_are_trained_on(linked):
    trained = [" ".join(target) for _, target in pairs(linked, "train")]
    assert trained == ["ein hund", "das haus schläft", "der hund schläft"]


def test_links_have_a_checksum(linked):
    assert set(linked.checksums) == {"source/source", "target/target", "links/links"}


def test_every_line_may_have_links(linked_files, tmp_path):
    put(tmp_path, {"links": "0-0\n1-1\n\n1-1\n0-0\n0-1\n"})
    task = load("aligned", **linked_files, min_count=1)
    assert len(task.train) == len(task.held_out) == len(task.gold) == 5


@pytest.mark.parametrize(("options", "message"), TOLD["refused"])
def test_what_cannot_be_used_is_refused(files, tmp_path, options, message):
    for role, name in {"source": "a.en", "links": "links"}.items():
        if options.get(role):
            put(tmp_path, {name: options[role]})
            options = options | {role: tmp_path / name}
    with pytest.raises(BadInput, match=message):
        parallel(**files | options)


# -- published tasks -----------------------------------------------------------------------------------------


@pytest.fixture
def placed(monkeypatch, tmp_path):
    """Puts files where published ones are looked for, those of an archive under its name."""

    def placed(contents):
        put(tmp_path, contents)
        monkeypatch.setattr(corpora, "locate", lambda _, name: tmp_path / name.rpartition("/")[2])
        return tmp_path

    return placed


@pytest.fixture
def tatoeba(placed):
    """20 English sentences, of which each comes twice, in two cases, with neighbouring translations."""
    english = [f"Sentence {chr(97 + i)}{chr(97 + i)}." for i in range(20)]
    lines = [
        f"{source}\t{source[-3]} {way}\tCC-BY"
        for sentence in english
        for way, source in enumerate((sentence, sentence.upper()))
    ]
    return placed({"fra-eng.zip": {"fra.txt": "\n".join([*lines, "no tab", ""])}}) / "fra-eng.zip"


def test_all_translations_of_a_sentence_fall_into_one_part_which_the_seed_decides(tatoeba):
    task = corpora.tatoeba_en_fr(min_count=1, n_held_out=7)
    # The eighth pair has the source of the seventh.
    assert (len(task.train), len(task.held_out)) == (32, 8)
    assert len(set(joined(task, "train"))) == 16
    # The sentences of this archive differ in one word, which is unknown when it was not trained on.
    assert set(joined(task, "held_out")) == {"sentence <unk> ."}
    cased = set(corpora.tatoeba_en_fr(min_count=1, n_held_out=8, lowercase=False).source_vocabulary.words[4:])
    assert {"Sentence", "SENTENCE"} < cased
    named = {word.lower() for word in cased} - {"sentence", "."}
    # Of each of the 16 sentences trained on there are both cases, of the 4 others neither.
    assert len(named) == 16
    assert all({name, name.upper()} <= cased for name in named)

    def left(**options):
        return frozenset(joined(corpora.tatoeba_en_fr(min_count=1, n_held_out=8, **options), "train"))

    assert left(seed=0) == left(seed=0) != left(seed=1)
    assert left(seed=0, n_train=10) < left(seed=0)


def test_what_the_archive_does_not_have_is_refused(tatoeba):
    for options in ({"n_held_out": 40}, {"n_held_out": 8, "n_train": 33}):
        message = "to hold out from 40, all translations of a sentence together"
        assert_refused(partial(corpora.tatoeba_en_fr, **options), message)
    assert_refused(partial(text.unzipped, tatoeba, "deu.txt"), "no readable deu.txt", CorruptFile)
    tatoeba.write_bytes(b"PK")
    assert_refused(corpora.tatoeba_en_fr, "no readable fra.txt", CorruptFile)


@pytest.fixture
def europarl(placed):
    german = "Das ist rot.\n" * 5 + "Nein nein nein nein nein.\n" + "Ja.\n" * 4
    english = "This is red.\n" * 5 + "No.\n" + "Yes.\n" * 4
    placed({"train.de": german, "train.en": english} | TOLD["europarl"])
    return partial(corpora.europarl_de_en, min_count=1)


def test_links_of_europarl_stay_from_source_to_target(europarl):
    task = europarl(held_out_from_train=3)
    assert task.gold == (frozenset({(0, 1), (1, 1), (2, 0)}), frozenset({(0, 0), (2, 0)}))


def test_aligned_sentences_of_europarl_come_first(europarl):
    task = europarl(held_out_from_train=3)
    assert joined(task, "held_out") == ["das alte haus", "ja , ja", "ja .", "ja .", "ja ."]
    assert [target for _, target in pairs(task, "held_out")][:2] == [("house", "the-old"), ("yes",)]


def test_aligned_sentences_of_europarl_are_trained_on(europarl):
    task = europarl(held_out_from_train=3)
    assert joined(task, "train")[-2:] == joined(task, "held_out")[:2]
    assert len(task.train) == 10 - 3 + 2


def test_the_bound_on_length_spares_aligned_sentences(europarl):
    task = europarl(held_out_from_train=1, max_length=2)
    assert set(joined(task, "train")[:-2]) == {"ja ."}  # short enough
    assert len(task.gold) == 2
    assert task.held_out.source_lengths.tolist() == [3, 3, 2]


@pytest.mark.usefixtures("europarl")
def test_without_a_bound_on_length_all_is_trained_on():
    assert len(corpora.europarl_de_en(held_out_from_train=0, max_length=None).train) == 12


# -- text ----------------------------------------------------------------------------------------------------


def counts(text):
    return {(line.part, line.what, line.why): line.count for line in text.dropped}


@pytest.mark.parametrize(("name", "train", "validation", "first"), TOLD["table_9"])
def test_sizes_are_those_of_table_9_less_what_is_counted_as_dropped(name, train, validation, first):
    text = available(read_translation, name)
    assert (len(text.train) + sum(counts(text).values()), len(text.validation)) == (train, validation)
    assert not first or text.train[0][0].startswith(first)
    assert not set(text.train) & set(text.validation) or name != "iwslt14_de_en"


@pytest.mark.parametrize(("function", "line", "expected"), TOLD["by_hand"])
def test_lines_by_hand(function, line, expected):
    assert getattr(corpora, function)(line) == expected


NEWS = "news_commentary/news-commentary-v14.it-pt.tsv"


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "none"))


@pytest.fixture
def news(no_data, tmp_path):
    """The content of a file of news in which lines are numerical, empty and odd."""
    more = (f"frase {i} bella\tfrase {i} bela" for i in range(18))
    content = "\n".join([*TOLD["table"], *more, ""]).encode()
    put(tmp_path, {f"{NEWS}.gz": gzip.compress(content)})
    return content


@pytest.mark.usefixtures("no_data")
def test_checksums_of_files_that_are_not_there_are_known():
    known = translation_checksums("multi30k_en_de")
    assert known["multi30k/val.de"] == dataset("multi30k").file("val.de").sha256
    assert len(known) == 4


@pytest.mark.usefixtures("no_data")
def test_news_that_are_not_there_are_refused():
    message = "news-commentary-v14.it-pt.tsv is not available here"
    assert_refused(partial(read_translation, "news_it_pt"), message, DataUnavailable)


@pytest.mark.parametrize("function", [corpora.available, read_translation, translation_checksums])
def test_a_misspelt_set_is_refused_with_the_nearest(function):
    assert_refused(partial(function, "multi30k_en_d"), "did you mean 'multi30k_en_de'")


@pytest.mark.usefixtures("no_data")
def test_without_files_two_sets_are_available():
    assert [name for name in corpora.NAMES if corpora.available(name)] == ["known_lexicon", "parallel_files"]


@pytest.mark.usefixtures("news")
def test_news_are_available_with_their_file():
    assert corpora.available("news_it_pt")


@pytest.mark.usefixtures("news")
def test_lines_of_news_that_are_no_pair_are_dropped():
    text = read_translation("news_it_pt")
    assert (len(text.train), len(text.validation)) == (18, 2)


@pytest.mark.usefixtures("news")
def test_lines_of_news_that_were_dropped_are_counted():
    assert counts(read_translation("news_it_pt")) == {
        ("pool", "pairs", "an empty side"): 2,
        ("pool", "pairs", "purely numerical"): 2,
        ("pool", "lines", "not two columns"): 2,
    }


@pytest.mark.usefixtures("news")
def test_lines_of_news_with_a_number_are_kept():
    text = read_translation("news_it_pt")
    assert ("G20 a Roma", "G20 em Roma") in (*text.train, *text.validation)


@pytest.mark.usefixtures("news")
def test_the_split_of_news_is_always_the_same():
    assert read_translation("news_it_pt") == read_translation("news_it_pt")


def test_the_checksum_of_news_is_of_the_content(news):
    """Nobody knows it beforehand; compression does not change it."""
    assert translation_checksums("news_it_pt") == {NEWS: None}
    assert checksum(NEWS) == hashlib.sha256(news).hexdigest()


NUMBERS = st.integers(2, 300)


def numbered(n):
    return [(str(i), str(-i)) for i in range(n)]


@given(NUMBERS)
def test_the_split_is_nine_to_one(n):
    train, _ = corpora.split_90_10(numbered(n))
    assert len(train) == n * 9 // 10  # of 57,856 pairs Table 9 has 52,070 and 5,786


@given(NUMBERS)
def test_the_split_loses_nothing(n):
    train, validation = corpora.split_90_10(numbered(n))
    assert sorted((*train, *validation), key=lambda pair: int(pair[0])) == numbered(n)


@given(NUMBERS)
def test_what_is_trained_on_stays_in_order(n):
    train, _ = corpora.split_90_10(numbered(n))
    assert [int(source) for source, _ in train] == sorted(int(source) for source, _ in train)


def test_a_readers_files_as_text(tmp_path):
    paths = {"source": str(tmp_path / "my.en"), "target": str(tmp_path / "my.xx")}
    lines = {word: "".join(f"{word} {i}\n" for i in range(20)) for word in ("word", "wort")}
    put(tmp_path, {"my.en": lines["word"] + " \n", "my.xx": lines["wort"] + "leer\n", "one": "a\n"})
    text = read_translation("parallel_files", **paths)
    assert (len(text.train), len(text.validation)) == (18, 2)
    assert all(source.replace("word", "wort") == target for source, target in text.train)
    assert counts(text) == {("pool", "pairs", "an empty side"): 1}
    assert list(translation_checksums("parallel_files", **paths)) == ["source/my.en", "target/my.xx"]
    short = tmp_path / "one"
    for files, message in (
        ((), "source=PATH and target=PATH"),
        ((paths["source"], short), "line 2"),
        ((short, short), "at least 2"),
    ):
        assert_refused(partial(corpora.read_parallel_files, *files or ("", "")), message)


known_lexicon = cache(corpora.known_lexicon)


def known_translations():
    """Words of a source in the target's spelling, with the words of the target."""
    train, validation = known_lexicon()
    for source, target in (*train[:300], *validation):
        yield source.replace("s", "t").split(), target.split()


def test_the_known_lexicon_needs_no_file():
    assert translation_checksums("known_lexicon") == {}


def test_the_known_lexicon_has_4_000_pairs_to_train_on():
    assert tuple(map(len, known_lexicon())) == (4_000, 200)


def test_sentences_of_the_known_lexicon_have_three_to_nine_words():
    assert all(3 <= len(words) <= 9 for words, _ in known_translations())


def test_the_known_lexicon_translates_every_word():
    for words, translated in known_translations():
        assert sorted(words) == sorted(translated)


def test_the_known_lexicon_exchanges_neighbours_alone():
    for words, translated in known_translations():
        assert all(word in words[max(0, place - 1) : place + 2] for place, word in enumerate(translated))


def test_the_known_lexicon_exchanges_a_third_of_its_words():
    exchanged = []
    for words, translated in known_translations():
        exchanged += [a != b for a, b in zip(words, translated, strict=True)]
    assert 0.25 < sum(exchanged) / len(exchanged) < 0.4
