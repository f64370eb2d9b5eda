"""Text files of every encoding, compression and layout give the same lines, or are refused with a way out."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from attnlib.errors import AttnlibError, BadInput, CorruptFile, DataUnavailable
from attnlib.text_files import Location, checksum, decode, read_bytes, read_lines, read_pairs

LINES = ["Die Bäume blühen.", "Es regnet — wieder.", "", "老房子。"]
TEXT = "\n".join([*LINES, ""])
TABLE = "the house\tdas Haus\nthe trees\tdie Bäume\n"
PAIRS = [("the house", "das Haus"), ("the trees", "die Bäume")]
MEMORY = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="de-DE"><seg>das <bpt i="1">&lt;b&gt;</bpt>Haus<ept i="1">&lt;/b&gt;</ept></seg></tuv>
    <tuv xml:lang="en"><seg>the
house</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>the trees</seg></tuv><tuv xml:lang="de-DE"><seg>die Bäume</seg></tuv></tu>
</body></tmx>"""


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


CONTENTS = [
    pytest.param(TEXT.encode(), id="utf-8"),
    pytest.param(TEXT.encode("utf-8-sig"), id="utf-8 with a mark"),
    pytest.param(TEXT.encode("utf-16"), id="utf-16 with a mark"),
    pytest.param(b"\xfe\xff" + TEXT.encode("utf-16-be"), id="big-endian utf-16"),
    pytest.param(TEXT.encode("utf-32"), id="utf-32"),
    pytest.param(TEXT.encode("utf-16-le"), id="little-endian without a mark"),
    pytest.param(TEXT.encode("utf-16-be"), id="big-endian without a mark"),
    pytest.param(TEXT.replace("\n", "\r\n").encode(), id="line ends of Windows"),
    pytest.param(TEXT.replace("\n", "\r").encode(), id="line ends of old Macs"),
    pytest.param(TEXT.replace("\n", "\r\n").encode("utf-16"), id="utf-16 of Windows"),
    pytest.param(gzip.compress(TEXT.encode()), id="gzip"),
    pytest.param(bz2.compress(TEXT.encode()), id="bzip2"),
    pytest.param(lzma.compress(TEXT.encode()), id="xz"),
    pytest.param(gzip.compress(TEXT.encode("utf-16")), id="utf-16 in gzip"),
    pytest.param(zipped({"README": "x", "a.de": TEXT}), id="zip of one text"),
    pytest.param(tarred({"a.de": TEXT.encode()}), id="tar of one text"),
]


@pytest.mark.parametrize("content", CONTENTS)
def test_the_same_lines_however_they_are_written(tmp_path, content):
    (tmp_path / "text").write_bytes(content)
    assert list(read_lines(tmp_path / "text")) == LINES


def test_a_mark_inside_a_file_is_no_letter(tmp_path):
    (tmp_path / "joined").write_bytes("eins\n".encode("utf-8-sig") * 2)
    assert list(read_lines(tmp_path / "joined")) == ["eins", "eins"]


SOURCE, TARGET = "the house\nthe trees\n", "das Haus\ndie Bäume"
OPUS = {"README": "x", "B.de-en.xml": "", "B.de-en.en": SOURCE, "B.de-en.de": TARGET}
NAMED = b"text\tX\tY\n" + TABLE.replace("\t", "\t?\t").encode()
NUMBERED = "1\tthe house\tdas Haus\n2\tthe trees\tdie Bäume\n".encode()
SIDES = [
    pytest.param("pairs.txt", TABLE.encode(), "", "", id="lines with tabs"),
    pytest.param("pairs.tsv", TABLE.encode("utf-16"), "", "", id="table of Excel"),
    pytest.param("pairs.tsv.gz", gzip.compress(TABLE.encode()), "", "", id="packed table"),
    pytest.param("pairs.tsv", b"en\tde\n" + TABLE.encode(), "", "", id="table with headings"),
    pytest.param("pairs.tsv", NAMED, "#text", "#Y", id="columns by name"),
    pytest.param("pairs.tsv", NUMBERED, "#2", "#3", id="columns by number"),
    pytest.param("p.csv", b'the house;"das\nHaus"\nthe trees;die B\xc3\xa4ume\n', "", "", id="csv"),
    pytest.param("memory.tmx", MEMORY.encode(), "", "", id="translation memory"),
    pytest.param("memory.tmx", MEMORY.encode(), "#en", "#de", id="languages by name"),
    pytest.param("B.de-en.zip", zipped(OPUS), "#B.de-en.en", "#B.de-en.de", id="OPUS by name"),
    pytest.param("B.zip", zipped({"B.a-b.a": SOURCE, "B.a-b.b": TARGET}), "", "", id="OPUS in its order"),
    pytest.param("B.zip", zipped({"pairs.tsv": TABLE}), "", "", id="a table in an archive"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "source", "target"), SIDES)
def test_both_sides_of_one_file(tmp_path, name, content, source, target):
    (tmp_path / name).write_bytes(content)
    path = tmp_path / name
    assert list(read_pairs(f"{path}{source}", f"{path}{target}")) == PAIRS


def test_the_two_files_of_opus(tmp_path):
    (tmp_path / "Books.de-en.de").write_text("das Haus\ndie Bäume\n", encoding="utf-8")
    (tmp_path / "Books.de-en.en").write_text("the house\nthe trees\n", encoding="utf-8")
    assert list(read_pairs(tmp_path / "Books.de-en.en", tmp_path / "Books.de-en.de")) == PAIRS


def test_a_row_without_a_second_cell_keeps_its_place(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tA\nb\nc\tC\n")
    path = f"{tmp_path}/pairs.tsv"
    assert list(read_pairs(path + "#1", path + "#2")) == [("a", "A"), ("b", ""), ("c", "C")]


def test_a_unit_that_lacks_a_language_keeps_its_place(tmp_path):
    unit = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu></body>'
    (tmp_path / "memory.tmx").write_text(MEMORY.replace("</body>", unit), encoding="utf-8")
    path = tmp_path / "memory.tmx"
    assert list(read_pairs(path, path))[2] == ("alone", "")


def test_one_file_without_tabs_is_a_text_that_is_copied(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    assert list(read_pairs(tmp_path / "a", tmp_path / "a")) == [("one", "one"), ("two", "two")]


def test_a_side_that_ends_early_is_none(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("eins\n")
    assert list(read_pairs(tmp_path / "a", tmp_path / "b"))[1] == ("two", None)


def test_a_file_whose_name_has_a_number_sign_is_itself(tmp_path):
    (tmp_path / "a#1").write_text("one\ttwo\n")
    assert Location.of(tmp_path / "a#1").part is None


def test_the_checksum_of_a_part_is_that_of_its_file(tmp_path):
    (tmp_path / "pairs.tsv").write_text(TABLE, encoding="utf-8")
    assert checksum(f"{tmp_path}/pairs.tsv#2") == checksum(tmp_path / "pairs.tsv")


def test_the_content_of_a_packed_file_is_unpacked(tmp_path):
    (tmp_path / "a").write_bytes(bz2.compress(b"one\n"))
    assert read_bytes(tmp_path / "a") == b"one\n"


def test_a_whole_file_in_utf_16_is_decoded():
    assert decode(TEXT.encode("utf-16"), "a") == TEXT


def taken_for_latin_1(text, encoding):
    """What `iconv -f latin1 -t utf-8` makes of it."""
    return text.encode(encoding).decode("latin-1").encode()


LATIN = "eins\nfünf Häuser\n".encode("latin-1")
PLAIN = b"many words\n" * 50
GERMAN = "eins\nfünf Häuser\n" * 4
REFUSED = [
    pytest.param("a", LATIN, BadInput, "a, line 2: byte 0xfc is not UTF-8", id="latin-1"),
    pytest.param("a", LATIN, BadInput, "'fünf Häuser' as cp1252", id="latin-1 is shown as what it is"),
    pytest.param("a", "пять домов\n".encode("cp1251"), BadInput, "'пять домов' as cp1251", id="cyrillic"),
    pytest.param("a", "老房子\n".encode("gb18030"), BadInput, "'老房子' as gb18030", id="chinese"),
    pytest.param("a", "古い家です\n".encode("shift_jis"), BadInput, "as shift_jis", id="japanese"),
    pytest.param("a", taken_for_latin_1(GERMAN, "utf-16"), BadInput, "NUL", id="utf-16 as latin-1"),
    pytest.param("a", taken_for_latin_1(GERMAN, "utf-16-le"), BadInput, "NUL", id="without a mark"),
    pytest.param("a", taken_for_latin_1("plain\n" * 9, "utf-16"), BadInput, "NUL", id="the same of ASCII"),
    pytest.param("a", b"one\ntw\0o\n", BadInput, "NUL characters", id="a stray NUL"),
    pytest.param("a", b"\xff\xfea\0b", BadInput, "is not UTF-16", id="utf-16 that is cut off"),
    pytest.param("a", b"\x28\xb5\x2f\xfd..", BadInput, "zstd -d", id="zstandard"),
    pytest.param("a", b"%PDF-1.7", BadInput, "a PDF", id="pdf"),
    pytest.param("a", zipped({"[Content_Types].xml": "", "b": ""}), BadInput, "Office", id="office document"),
    pytest.param("a", zipped(dict.fromkeys("bcd", "")), BadInput, "name one, as in a#b", id="three texts"),
    pytest.param("a", gzip.compress(PLAIN)[:-9], CorruptFile, "not a complete gzip", id="gzip"),
    pytest.param("a", bz2.compress(PLAIN)[:-9], CorruptFile, "not a complete bzip2", id="bzip2"),
    pytest.param("a", lzma.compress(PLAIN)[:-9], CorruptFile, "not a complete xz", id="xz"),
    pytest.param("a", zipped({"b": PLAIN})[:-9], CorruptFile, "not a complete zip", id="zip"),
    pytest.param("a", b'{"en": "a"}\n{"en": "b"}\n', BadInput, "JSON object in each line", id="json lines"),
    pytest.param("a", b"version https://git-lfs.github.com/", BadInput, "git lfs pull", id="pointer"),
    pytest.param("a", b"<!DOCTYPE html><p>", BadInput, "a web page", id="web page"),
    pytest.param("a", b'<srcset setid="t">', BadInput, "<seg>", id="segments of a test set"),
    pytest.param("a", b'<?xml version="1.0"?>\n<tmx>', BadInput, "end in .tmx", id="xml"),
    pytest.param("a.tmx", b"<tmx><body>", BadInput, "not a translation memory", id="xml that is cut off"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "error", "message"), REFUSED)
def test_what_is_no_text_is_refused(tmp_path, name, content, error, message):
    (tmp_path / name).write_bytes(content)
    path = tmp_path / name
    with pytest.raises(error, match=message):
        list(read_pairs(path, path))


@pytest.mark.parametrize("name", ["gone", "."])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(DataUnavailable, match="check the path"):
        list(read_lines(tmp_path / name))


UNNAMED = [
    pytest.param("pairs.tsv", TABLE, "pairs.tsv has several columns", id="table"),
    pytest.param("pairs.csv", "a,b\n", "pairs.csv has several columns", id="csv"),
    pytest.param("memory.tmx", MEMORY, "several columns or languages", id="translation memory"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNNAMED)
def test_one_of_several_sides_has_to_be_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "other").write_text("eins\nzwei\n")
    with pytest.raises(BadInput, match=message):
        list(read_pairs(tmp_path / name, tmp_path / "other"))


PARTS = [
    pytest.param("pairs.tsv", TABLE, "3", "no column 3", id="column beyond the last"),
    pytest.param("pairs.tsv", TABLE, "german", "no column in the first row", id="heading"),
    pytest.param("memory.tmx", MEMORY, "fr", "no language in", id="language"),
]


@pytest.mark.parametrize(("name", "content", "part", "message"), PARTS)
def test_a_part_that_is_not_there_is_refused(tmp_path, name, content, part, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(AttnlibError, match=message):
        list(read_lines(f"{tmp_path / name}#{part}"))


def test_one_file_is_named_with_parts_on_both_sides_or_on_neither(tmp_path):
    (tmp_path / "pairs.tsv").write_text(TABLE, encoding="utf-8")
    with pytest.raises(BadInput, match="on both sides, or on neither"):
        read_pairs(f"{tmp_path}/pairs.tsv#1", tmp_path / "pairs.tsv")


def test_columns_of_numbers_are_no_sentences(tmp_path):
    (tmp_path / "p.tsv").write_text("1\tthe house\tdas Haus\n2\tthe tree\tder Baum\n")
    with pytest.raises(BadInput, match=r"source=p.tsv#2 target=p.tsv#3"):
        list(read_pairs(tmp_path / "p.tsv", tmp_path / "p.tsv"))
