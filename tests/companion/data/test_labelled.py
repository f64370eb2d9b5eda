"""Labelled texts: from raw text to a task, each set as it is read, and the paper's Table 9 where data are."""

import bz2
import csv
import gzip
import lzma
from functools import partial

import numpy as np
import pytest

from attnlib.errors import BadInput, CorruptFile, DataUnavailable
from companion.data import labelled_sets
from companion.data.labelled import (
    N_MARKS,
    LabelledTexts,
    RawTexts,
    WordRules,
    collate_labelled,
    prepare,
    without_html,
)
from companion.data.labelled_sets import SOURCES, checksums, load_labelled, own_sentences, read_own
from companion.data.text import Dropped
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import available, put
from tests.notebooks.worked import assert_answer
from tests.tables import beside

TOLD = beside(__file__, "labelled")
BY_HAND = {
    "words": WordRules().words,
    "words_where_underscores_split": WordRules(split_underscores=True).words,
    "without_html": without_html,
}


@pytest.mark.parametrize(
    ("read", "text", "expected"), [(read, *row) for kind, read in BY_HAND.items() for row in TOLD[kind]]
)
def test_a_text_is_read_by_hand(read, text, expected):
    assert list(read(text)) == expected


def raw(train, test, rules=None, **options):
    return RawTexts("toy", ("bad", "good"), train, test, rules or WordRules(), **options)


TRAIN = [("fine fine fine film", 1), ("poor poor poor film", 0), ("a film of 1993", 0)]
TEST = [("fine film", 1), ("poor film of 1993", 0), ("Poor, poor poor film!", 0)]


def words_of(task, texts, i):
    return task.vocabulary.decode(texts.text(i))


def test_words_seen_three_times_in_training_are_kept():
    task = prepare(raw(TRAIN, TEST), reading="cleaned")
    assert task.vocabulary.words[4:] == ("film", "fine", "poor")
    assert words_of(task, task.train, 2) == ["<unk>", "film", "<unk>", "<unk>"]
    assert task.train.labels.tolist() == [1, 0, 0]


@pytest.mark.parametrize(("part", "number"), [("train", 3), ("validation", 2)])
def test_words_that_are_not_kept_are_counted(part, number):
    task = prepare(raw(TRAIN, TEST), reading="cleaned")
    rare = "seen fewer than 3 times in training, read as <unk>"
    assert Dropped(part, "words", rare, number) in task.dropped


def test_cleaning_leaves_out_what_is_trained_on():
    task = prepare(raw(TRAIN, TEST), reading="cleaned")
    assert len(task.validation) == 2
    assert Dropped("validation", "texts", "trained on as well", 1) in task.dropped


def test_the_published_reading_leaves_out_no_text():
    task = prepare(raw(TRAIN, TEST), reading="published")
    assert len(task.validation) == 3
    assert not [line for line in task.dropped if line.what == "texts"]


@pytest.fixture
def masked():
    """A set whose rules mask integers: of two that are rare enough to be masked, one is trained on thrice."""
    train = [("born 1993 1993 1993 7 7 7", 1), ("born born 7", 0)]
    return prepare(raw(train, train, WordRules(mask_integers=True)), reading="published")


def test_integers_are_masked_where_the_rules_say_so(masked):
    assert masked.vocabulary.words[4:] == ("7", "born")
    assert words_of(masked, masked.train, 0) == ["born", "<unk>", "<unk>", "<unk>", "7", "7", "7"]


def test_masked_integers_are_counted(masked):
    assert [line.count for line in masked.dropped if line.part == "train"] == [3]


BREAKS = raw([("so<br />so<br />so", 1), ("no no no", 0)], [("so", 1), ("no", 0)], WordRules(html=True))


def test_breaks_are_blanks_in_the_cleaned_reading():
    cleaned = prepare(BREAKS, reading="cleaned")
    assert words_of(cleaned, cleaned.train, 0) == ["so", "so", "so"]
    assert Dropped("train", "HTML breaks", "read as blanks", 2) in cleaned.dropped


def test_breaks_are_words_in_the_published_reading():
    published = prepare(BREAKS, reading="published")
    assert len(published.train.text(0)) == 5


def test_repeats_leave_a_pool_before_it_is_split():
    pool = [(f"word{i} word{i} word{i}", i % 2) for i in range(40)] * 2
    task = prepare(raw(pool, None, n_validation=10))
    assert (len(task.train), len(task.validation)) == (30, 10)
    assert Dropped("pool", "texts", "a repeat of another one", 40) in task.dropped
    # A word of a validation text is in that text alone, so that none is known.
    assert set(task.validation.ids.tolist()) == {3}


@pytest.mark.parametrize("reason", ["no word in it", "400 words or more"])
def test_a_text_that_cannot_be_used_leaves_a_pool_before_it_is_split(reason):
    pool = [("w " * 399, 0), ("w " * 400, 1), *((f"x{i}", i % 2) for i in range(8))]
    task = prepare(raw([*pool, ("...", 1)], None, WordRules(below=400), n_validation=4))
    assert len(task.train) + len(task.validation) == 9
    assert Dropped("pool", "texts", reason, 1) in task.dropped


POOL = [(f"word{i}", i % 2) for i in range(100)]


@pytest.mark.parametrize(
    ("n_validation", "asked", "sizes"),
    [
        pytest.param(None, {}, (90, 10), id="a_tenth_is_held_out"),
        pytest.param(500, {"n_train": 30, "n_validation": 20}, (30, 20), id="as_asked"),
        # What is trained on has its number; what is judged on makes do with the rest.
        pytest.param(70, {"n_train": 60}, (60, 40), id="training_comes_first"),
    ],
)
def test_sizes_of_the_split(n_validation, asked, sizes):
    task = prepare(raw(POOL, None, n_validation=n_validation), **asked)
    assert (len(task.train), len(task.validation)) == sizes


def test_a_seed_splits_always_alike():
    first, again = (prepare(raw(POOL, POOL[:50]), n_train=30, split_seed=0).train.labels for _ in range(2))
    assert first.tolist() == again.tolist()


def test_another_seed_splits_otherwise():
    first, other = (
        prepare(raw(POOL, POOL[:50]), n_train=30, split_seed=seed).train.labels for seed in (0, 1)
    )
    assert first.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("test", "options", "message"),
    [
        (TEST, {"reading": "clean"}, "no reading 'clean'; did you mean 'cleaned'"),
        (TEST, {"n_train": 4}, "has 3 texts to train on, not 4"),
        (TEST[:1], {}, "validation texts must have both labels, 'bad' and 'good'"),
    ],
)
def test_what_cannot_be_prepared_says_why(test, options, message):
    assert_refused(partial(prepare, raw(TRAIN, test), **options), message)


# -- the published sets --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("data", "options", "sizes", "medians"), TOLD["table_9"])
def test_a_set_is_that_of_table_9(data, options, sizes, medians):
    task = available(load_labelled, data, **options)
    assert [len(task.train), len(task.validation)] == sizes
    assert medians in (None, [np.median(task.train.lengths), np.median(task.validation.lengths)])
    assert task.checksums == checksums(data)
    if (data, options) == ("sst", {"reading": "published"}):
        # Two marks to a sentence fit the random baseline printed.
        for texts, published in ((task.validation, 8.39), (task.train, 8.48)):
            lengths = texts.lengths + N_MARKS
            assert 100 * np.mean((5 * lengths + 99) // 100 / lengths) == pytest.approx(published, abs=0.05)


@pytest.fixture
def without_files(monkeypatch, tmp_path):
    """A folder for published files, in which there are none."""
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_checksums_are_known_without_files(without_files):
    assert checksums("known_polarity") == {}
    assert all(len(digest) == 64 for data in SOURCES for digest in checksums(data).values())


def test_without_files_the_synthetic_set_alone_is_available(without_files):
    assert [data for data in SOURCES if labelled_sets.available(data)] == ["known_polarity"]


def test_a_set_is_available_once_all_its_files_are(without_files):
    for part in ("train.gz", "test"):
        assert not labelled_sets.available("sst")
        put(without_files, {f"sst/stsa.fine.{part}": b""})
    assert labelled_sets.available("sst")


def test_an_own_file_is_available_once_it_is_there(without_files):
    path = without_files / "my.tsv"
    assert not labelled_sets.available(str(path))
    path.write_text("text\tlabel\n")
    assert labelled_sets.available(str(path))


@pytest.mark.parametrize("function", [labelled_sets.available, load_labelled])
def test_an_unknown_set_is_refused_with_the_nearest(without_files, function):
    assert_refused(partial(function, "sts"), "did you mean 'sst'")


# -- how each is read ----------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Reads a set from files with these texts; a file that is not given is empty."""

    def read(name, files, encoding="utf-8", compressed=()):
        put(tmp_path, dict.fromkeys(SOURCES[name].files, "") | files, encoding)
        for path in map(tmp_path.joinpath, compressed):
            path.write_bytes(gzip.compress(path.read_bytes()))
        monkeypatch.setattr(labelled_sets, "locate", lambda _, file: tmp_path / file)
        return SOURCES[name].read()

    return read


@pytest.mark.parametrize("case", TOLD["sets"], ids=lambda case: case["given"]["name"])
def test_sets_are_read(read, case):
    raw = read(**case["given"])
    assert [*map(list, raw.train)] == case["train"]
    assert (raw.test and [*map(list, raw.test)]) == case["test"]
    assert [line.why for line in raw.dropped if line.part != "validation"] == case.get("dropped", [])


@pytest.mark.parametrize(("name", "files", "message"), TOLD["corrupt"])
def test_a_file_that_is_not_as_it_should_be_is_named_with_the_line(read, name, files, message):
    with pytest.raises(CorruptFile, match=message):
        read(name, files, encoding="latin-1" if name == "imdb" else "utf-8")


# -- a reader's own table ------------------------------------------------------------------------------------

ROWS = [(f"a text number {i}", "no" if i % 3 else "yes") for i in range(30)]


def tsv(rows, header="text\tlabel"):
    return "\n".join([header, *("\t".join(row) for row in rows)]) + "\n"


def test_csv_is_what_the_csv_module_writes(tmp_path):
    rows = [('a comma, a "quote"\r\nand a line', "yes"), *ROWS]
    path = tmp_path / "my.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "label", "text"), *((i, b, a) for i, (a, b) in enumerate(rows))])
    assert [(text, ("no", "yes")[label]) for text, label in read_own(path, {}).train] == rows


@pytest.fixture
def own_tsv(tmp_path):
    """Rows with quotation marks, and a packed file of them with a byte-order mark and line ends of DOS."""
    rows = [('say "hi', "yes"), ('"quoted"', "no"), *ROWS]
    path = tmp_path / "my.tsv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + tsv(rows).replace("\n", "\r\n") + "\r\n").encode()))
    return rows, path


def test_tsv_is_unquoted_whatever_its_line_ends(own_tsv):
    rows, path = own_tsv
    table = read_own(path, {})
    assert table.classes == ("no", "yes")
    assert table.train == [(text, int(label == "yes")) for text, label in rows]


def test_a_tenth_of_an_own_file_is_held_out(own_tsv):
    task = load_labelled(own_tsv[1])
    assert (len(task.train), len(task.validation)) == (29, 3)


def test_a_set_of_an_own_file_has_its_checksum(own_tsv):
    task = load_labelled(own_tsv[1])
    assert task.checksums == checksums(own_tsv[1])
    assert list(task.checksums) == ["own/my.tsv.gz"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(("a.tsv", tsv([*ROWS[:sound], *more], "\t".join(header)), message)
          for header, sound, more, message in TOLD["own"]),
        *TOLD["malformed"],
        ("a.txt", tsv(ROWS), "no set of labelled texts .*a path ending in .tsv or .csv"),
        ("b.tsv.gz", gzip.compress(tsv(ROWS).encode())[:-4], "is not a complete gzip"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named_with_its_line(tmp_path, name, content, message):
    put(tmp_path, {name: content})
    with pytest.raises(CorruptFile if name == "b.tsv.gz" else BadInput, match=message):
        load_labelled(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert_refused(partial(load_labelled, tmp_path / "none.tsv"), "check the path", DataUnavailable)


PACKED = [
    pytest.param("my.tsv", str.encode, id="plain"),
    pytest.param("my.tsv", partial(str.encode, encoding="utf-16"), id="as Excel writes it"),
    pytest.param("my.tsv.xz", lambda text: lzma.compress(text.encode()), id="xz"),
    pytest.param("my.csv.bz2", lambda text: bz2.compress(text.replace("\t", ",").encode()), id="bzip2"),
]


@pytest.mark.parametrize(("name", "written"), PACKED)
def test_a_table_is_read_however_it_is_written(tmp_path, name, written):
    (tmp_path / name).write_bytes(written(tsv(ROWS) + "\n"))
    assert len(read_own(tmp_path / name, {}).train) == len(ROWS)


def test_words_of_a_readers_table_keep_their_marks(tmp_path):
    rows = [(f"हिन्दी, 老房 {number}", ("no", "yes")[number % 2]) for number in range(40)]
    (tmp_path / "my.tsv").write_text(tsv(rows) + "\n", encoding="utf-8")
    words = load_labelled(str(tmp_path / "my.tsv")).vocabulary.words
    assert {"हिन्दी", "老", "房"} < set(words)


def test_what_was_made_of_a_table_is_said(tmp_path):
    rows = [(f"good film {number}", ("no", "yes")[number % 2]) for number in range(40)]
    (tmp_path / "my.tsv").write_text(tsv(rows) + "\n", encoding="utf-8")
    text = " ".join(own_sentences(tmp_path / "my.tsv"))
    assert "36 texts to train on and 4 held out" in text
    assert "33.3% of the words trained on" in text


def test_a_table_of_words_that_occur_once_is_refused(tmp_path):
    rows = [(f"a{number} b{number} c{number} d", ("no", "yes")[number % 2]) for number in range(40)]
    (tmp_path / "my.tsv").write_text(tsv(rows) + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match="75% of the words to train on are unknown"):
        load_labelled(str(tmp_path / "my.tsv"))


THREE = LabelledTexts.of([[7, 8], [9], [4, 5, 6]], [1, 0, 0])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (THREE, [1, 0]),
            {
                "tokens": [[1, 9, 2, 0], [1, 7, 8, 2]],
                "mask": [[True, True, True, False], [True, True, True, True]],
                "labels": [0, 1],
                "indices": [1, 0],
            },
            id="shorter_texts_are_padded",
        )
    ],
)
def test_collate_labelled_by_hand(given, expected):
    assert_answer(collate_labelled(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (THREE, [2, 1]),
            {"ids": [4, 5, 6, 9], "offsets": [0, 3, 4], "labels": [0, 0]},
            id="texts_in_the_order_asked_for",
        )
    ],
)
def test_subset_by_hand(given, expected):
    assert_answer(LabelledTexts.subset(*given), expected)
