"""The published sets' loaders on small files made here, so also where the data are not at hand."""

import gzip
import io
import tarfile
import zipfile

import pytest

from attnlib.errors import CorruptFile, DataUnavailable
from companion.data import labelled_sets, text
from companion.data.labelled_sets import SOURCES


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
