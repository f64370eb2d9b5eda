"""The sets of labelled texts: on small files made here, and against the paper's Table 9 where data are."""

import csv
import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from attnlib.errors import BadInput, CorruptFile, DataUnavailable, UnknownName
from companion.data import labelled_sets, text
from companion.data.labelled import N_MARKS, prepare
from companion.data.labelled_sets import (
    N_TEST,
    N_TRAIN,
    SOURCES,
    at_hand,
    checksums,
    load_labelled,
    names,
    polarity_of,
    read_own,
)


def loaded(load, *arguments, **options):
    try:
        return load(*arguments, **options)
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


@pytest.mark.parametrize(
    ("data", "train", "train_median", "validation", "validation_median"),
    [
        ("twenty_newsgroups", 1_197, 183, 796, 207),
        ("sst", 5_130, 16, 1_421, 17),
        ("sst_as_text", 6_920, None, 1_821, None),  # as the text says, it has more sentences
        ("ag_news", 20_477, None, 3_800, None),  # the test rows of Table 9, a third of its training rows
    ],
)
def test_sizes_and_medians_are_those_of_table_9(data, train, train_median, validation, validation_median):
    task = loaded(load_labelled, data, reading="published")
    assert (len(task.train), len(task.validation)) == (train, validation)
    for texts, median in ((task.train, train_median), (task.validation, validation_median)):
        assert median is None or np.median(texts.lengths) == median


def test_two_marks_to_a_sentence_fit_the_random_baseline_printed_for_sst():
    task = loaded(load_labelled, "sst", reading="published")
    for texts, printed in ((task.validation, 8.39), (task.train, 8.48)):
        lengths = texts.lengths + N_MARKS
        chance = 100 * np.mean((5 * lengths + 99) // 100 / lengths)
        assert chance == pytest.approx(printed, abs=0.05)


def test_sms_trains_on_3500_messages_and_leaves_its_repeats_out():
    task = loaded(load_labelled, "sms_spam")
    assert len(task.train) == 3_500
    assert {line.why: line.count for line in task.dropped if line.what == "texts"} == {
        "a repeat of another one": 444,
        "no word in it": 2,
    }
    texts = [part.text(i).tobytes() for part in (task.train, task.validation) for i in range(len(part))]
    assert len(texts) + 444 + 2 == 5_574


def test_sst_drops_by_label_and_says_so():
    task = loaded(load_labelled, "sst")
    counts = {(line.part, line.why): line.count for line in task.dropped if line.what == "texts"}
    assert counts["train", "label 0 counted from 0, very negative"] == 1_092
    assert counts["train", "label 3 counted from 0, positive"] == 2_322
    assert counts["validation", "trained on as well"] == 1
    assert task.classes == ("negative or neutral", "very positive")


def test_headers_of_newsgroups_are_kept_and_numbers_are_not():
    task = loaded(load_labelled, "twenty_newsgroups", n_train=200, n_validation=50)
    words = set(task.vocabulary.words)
    assert {"subject", "lines", "organization", "edu"} <= words
    assert not [word for word in words if word.isdecimal() and len(word) > 1]
    assert not [word for word in words if "_" in word]


def test_the_archive_of_imdb_has_25000_reviews_a_part_and_breaks_are_taken_out():
    raw = loaded(SOURCES["imdb"].read)
    for part in (raw.train, raw.test):
        assert (len(part), sum(label for _, label in part)) == (25_000, 12_500)
    cleaned, published = (
        prepare(raw, reading=reading, n_train=300, n_validation=100) for reading in ("cleaned", "published")
    )
    assert "br" in published.vocabulary.words
    assert "br" not in cleaned.vocabulary.words
    assert (len(cleaned.train), len(cleaned.validation)) == (300, 100)


@pytest.mark.parametrize("data", ["yelp", "amazon"])
def test_a_part_of_the_long_sets_can_be_had(data):
    task = loaded(load_labelled, data, n_train=100, n_validation=50)
    assert (len(task.train), len(task.validation)) == (100, 50)
    assert "br" not in task.vocabulary.words
    assert task.checksums == checksums(data)
    if data == "amazon":
        assert max(task.train.lengths.max(), task.validation.lengths.max()) < 400


def test_checksums_are_known_without_the_files(monkeypatch):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    for data in SOURCES:
        assert all(len(sum_) == 64 for sum_ in checksums(data).values())
    assert checksums("known_polarity") == {}


def test_an_unknown_name_is_offered_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        load_labelled("sts")
    assert {"known_polarity", "imdb"} <= set(names())


def test_the_made_set_has_polar_words_of_the_right_kind():
    task = load_labelled("known_polarity")
    assert (len(task.train), len(task.validation)) == (N_TRAIN, N_TEST)
    assert 0.4 < task.train.labels.mean() < 0.6
    for i in range(100):
        kinds = [polarity_of(word) for word in task.vocabulary.decode(task.train.text(i))]
        own, other = ("plus", "minus") if task.train.labels[i] else ("minus", "plus")
        assert 2 <= kinds.count(own) <= 3
        assert kinds.count(other) <= 1
        assert 6 <= kinds.count("neutral") <= 24


def test_what_is_at_hand(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    assert at_hand("known_polarity")
    assert not any(at_hand(data) for data in SOURCES)
    (tmp_path / "sst").mkdir()
    for part in ("train.gz", "test"):
        assert not at_hand("sst")
        (tmp_path / "sst" / f"stsa.fine.{part}").write_bytes(b"")
    assert at_hand("sst")
    assert at_hand("sst_as_text")
    assert not at_hand(str(tmp_path / "my.tsv"))
    (tmp_path / "my.tsv").write_text("text\tlabel\n")
    assert at_hand(str(tmp_path / "my.tsv"))
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        at_hand("sts")


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Call it with the bytes of a set's files by name."""

    def put(contents):
        paths = {}
        for number, (name, content) in enumerate(contents.items()):
            paths[name] = tmp_path / f"{number}-{name.replace('/', '-')}"
            paths[name].write_bytes(content)

        def locate(dataset, name):
            if name not in paths:
                raise DataUnavailable(f"{name} is not at hand")
            return paths[name]

        for module in (labelled_sets, text):
            monkeypatch.setattr(module, "locate", locate)

    return put


def tar_of(members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return content.getvalue()


def test_imdb_takes_part_and_label_from_the_folder(files):
    members = {
        "aclImdb/train/pos/0_9.txt": "très bon<br />".encode(),
        "aclImdb/test/neg/3_1.txt": b"bad",
        "aclImdb/train/neg/0_2.txt": b"dull",
    }
    files({"aclImdb_labeled.tar.gz": tar_of(members)})
    raw = SOURCES["imdb"].read()
    assert raw.train == [("dull", 0), ("très bon<br />", 1)]
    assert raw.test == [("bad", 0)]


def test_newsgroups_are_latin_1_with_their_headers(files):
    members = {
        "20news-bydate-train/rec.sport.hockey/2": "Subject: café\n\nbody".encode("latin-1"),
        "20news-bydate-test/rec.sport.baseball/1": b"From: me",
    }
    files({"20news-bydate-rec.sport.tar.gz": tar_of(members)})
    raw = SOURCES["twenty_newsgroups"].read()
    assert raw.train == [("Subject: café\n\nbody", 1)]
    assert raw.test == [("From: me", 0)]
    assert raw.rules.words("a_b") == ["a", "b"]


def test_a_broken_archive_is_named(files):
    files({"aclImdb_labeled.tar.gz": tar_of({"aclImdb/train/pos/0_9.txt": b"x" * 10_000})[:60]})
    with pytest.raises(CorruptFile, match="is no readable archive of texts"):
        SOURCES["imdb"].read()


def test_ag_news_keeps_two_of_four_classes(files):
    rows = b'"1","War ""over""","A, b"\n"2","Goal","x"\n"3","Stocks","Up 3.5%"\n"4","Chip","y"\n'
    files({"train_world_business_subset.csv": rows, "test.csv": rows})
    assert SOURCES["ag_news"].read().train == [('War "over" A, b', 0), ("Stocks Up 3.5%", 1)]


def test_ag_news_with_an_open_quote_names_the_line(files):
    files({"train_world_business_subset.csv": b'"1","a","b"\n"3","c","d\n', "test.csv": b""})
    with pytest.raises(CorruptFile, match="line 2"):
        SOURCES["ag_news"].read()


SENTENCES = b"0 awful\n1 bad\n2 so so\n3 good\n4 great\n"


@pytest.mark.parametrize(
    ("name", "texts", "left_out"),
    [
        ("sst", [("bad", 0), ("so so", 0), ("great", 1)], {"very negative", "positive"}),
        ("sst_as_text", [("awful", 0), ("bad", 0), ("good", 1), ("great", 1)], {"neutral"}),
    ],
)
def test_sst_under_both_filters(files, name, texts, left_out):
    files({"stsa.fine.train": SENTENCES, "stsa.fine.test": SENTENCES})
    raw = SOURCES[name].read()
    assert raw.train == raw.test == texts
    assert {line.why.partition(", ")[2] for line in raw.dropped if line.part == "train"} == left_out


def test_sst_with_another_label_names_the_line(files):
    files({"stsa.fine.train": b"0 awful\n5 best\n", "stsa.fine.test": SENTENCES})
    with pytest.raises(CorruptFile, match="line 2: expected a label 0 … 4 and a sentence; got '5 best'"):
        SOURCES["sst"].read()


def test_yelp_reads_both_kinds_of_file_and_drops_three_stars(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("yelp.csv", 'stars,id,text\n5,a,"Fine,\nreally"\n3,b,Meh\n1,c,Bad\n')
    sample = (
        b'text,a,b\n"Good","Business Category: Bars","Review Stars: 4.0"\n"Poor","x","Review Stars: 2.0"\n'
    )
    files({"yelp.csv.zip": content.getvalue(), "dev.csv": sample, "test.csv": sample})
    raw = SOURCES["yelp"].read()
    assert raw.train == [("Fine,\nreally", 1), ("Bad", 0), *[("Good", 1), ("Poor", 0)] * 2]
    assert raw.test is None
    assert [str(line) for line in raw.dropped] == ["pool: 1 text (three stars)"]


def test_amazon_reads_broken_utf8_and_the_original_reviews(files):
    contents = {name: b"" for name in SOURCES["amazon"].files}
    contents["fdu-mtl/dvd.task.train"] = b"1\tgood \xe9 film\n\n0\tpoor\n"
    xml = "<review>\n<review_text>\nCafé, fine\n</review_text>\n</review>\n"
    contents["sorted_data_acl/books/positive.review"] = xml.encode("latin-1")
    contents["sorted_data_acl/books/negative.review"] = xml.replace("fine", "poor").encode("latin-1")
    files(contents)
    raw = SOURCES["amazon"].read()
    assert sorted(raw.train) == [
        ("Café, fine", 1),
        ("Café, poor", 0),
        ("good \ufffd film", 1),
        ("poor", 0),
    ]
    assert raw.rules.words(raw.train[0][0]) == ["good", "film"]


def test_amazon_without_a_tab_names_the_line(files):
    contents = {name: b"" for name in SOURCES["amazon"].files}
    files(contents | {"fdu-mtl/apparel.task.test": b"1\tx\nno label\n"})
    with pytest.raises(CorruptFile, match=r"line 2: expected 0 or 1, a tab and a text; got 'no label'"):
        SOURCES["amazon"].read()


def test_sms_reads_plain_and_compressed(files):
    lines = b'ham\tsay "hi"\tthere\nspam\tWIN\n'
    for content in (lines, gzip.compress(lines)):
        files({"sms.tsv": content})
        assert SOURCES["sms_spam"].read().train == [('say "hi"\tthere', 0), ("WIN", 1)]
    files({"sms.tsv": b"ham\tx\nhum\ty\n"})
    with pytest.raises(CorruptFile, match="line 2: expected ham or spam"):
        SOURCES["sms_spam"].read()


ROWS = [(f"a text number {i}", "no" if i % 3 else "yes") for i in range(30)]


def written(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


def tsv(rows, header="text\tlabel"):
    return "\n".join([header, *("\t".join(row) for row in rows)]) + "\n"


def test_tsv_is_unquoted(tmp_path):
    rows = [('say "hi', "yes"), ('"quoted"', "no"), *ROWS]
    raw = read_own(written(tmp_path / "my.tsv", tsv(rows)), {})
    assert raw.classes == ("no", "yes")
    assert raw.train[:2] == [('say "hi', 1), ('"quoted"', 0)]
    assert len(raw.train) == 32


def test_csv_is_what_the_csv_module_writes(tmp_path):
    rows = [('a comma, a "quote"\nand a line', "yes"), *ROWS]
    path = tmp_path / "my.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "label", "text"), *((i, b, a) for i, (a, b) in enumerate(rows))])
    assert [(text, ("no", "yes")[label]) for text, label in read_own(path, {}).train] == rows


def test_windows_line_ends_byte_order_mark_blank_lines_and_gzip(tmp_path):
    content = "\ufeff" + tsv(ROWS).replace("\n", "\r\n") + "\r\n"
    path = tmp_path / "my.tsv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert [text for text, _ in read_own(path, {}).train] == [text for text, _ in ROWS]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "expected one column 'text' in the first row, found 0; its columns: none"),
        ("a.tsv", tsv(ROWS, "text\tclass"), "one column 'label' .*, found 0; its columns: text, class"),
        ("a.tsv", tsv(ROWS, "text\ttext"), "one column 'text' in the first row, found 2"),
        ("a.tsv", tsv([*ROWS, ("x", "maybe")]), "found 3: 'no' .20 rows., 'yes' .10 rows., 'maybe' .1 rows."),
        ("a.tsv", tsv([("x", "yes")] * 30), "two different labels, found 1: 'yes' .30 rows."),
        ("a.tsv", tsv([]), "two different labels, found 0: no row"),
        ("a.tsv", tsv([(f"x{i}", f"{i}") for i in range(30)]), "found 30: .* and 25 others"),
        ("a.tsv", tsv([ROWS[0], ("x", "yes", "z")]), "line 3: 3 fields, but the first row has 2"),
        ("a.tsv", tsv([ROWS[0], ("x", " ")]), "line 3: no label"),
        ("a.tsv", tsv(ROWS[:19]), "19 rows; expected at least 20"),
        ("a.csv", 'text,label\nx,yes\n"y" z,no\n', "line 3: .*a quote inside a quoted field is doubled"),
        ("a.csv", 'text,label\n"never closed,no\n', "line 2: "),
        ("a.txt", tsv(ROWS), "expected a file called .tsv .*or .csv"),
    ],
)  # fmt: skip
def test_an_error_says_what_and_where(tmp_path, name, content, message):
    with pytest.raises(BadInput, match=message):
        read_own(written(tmp_path / name, content), {})


def test_a_file_that_is_not_utf8_or_not_there(tmp_path):
    with pytest.raises(BadInput, match="line 2: byte 0xe9 is not UTF-8"):
        read_own(written(tmp_path / "a.tsv", tsv([("café", "no")]), "latin-1"), {})
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(tsv(ROWS).encode())[:-4])
    with pytest.raises(CorruptFile, match=r"b\.tsv\.gz is not a complete gzip file"):
        read_own(tmp_path / "b.tsv.gz", {})
    with pytest.raises(DataUnavailable, match="check the path"):
        load_labelled(tmp_path / "none.tsv")


def test_an_own_table_is_a_task_with_a_tenth_held_out(tmp_path):
    rows = [(f"text{i} of word{i % 4}", "spam" if i % 2 else "ham") for i in range(100)]
    path = written(tmp_path / "mine.tsv", tsv(rows))
    task = load_labelled(path)
    assert task.classes == ("ham", "spam")
    assert (len(task.train), len(task.validation)) == (90, 10)
    assert task.checksums == checksums(path)
    assert list(task.checksums) == ["own/mine.tsv"]


def test_a_path_of_another_kind_is_no_name():
    with pytest.raises(
        UnknownName, match=r"no set of labelled texts 'my\.txt'.*a path ending in \.tsv or \.csv"
    ):
        load_labelled("my.txt")
