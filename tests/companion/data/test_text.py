import gzip

import pytest

from attnlib.errors import BadInput, CorruptFile, DataUnavailable
from companion.data.text import read_lines, read_parallel


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"", []),
        (b"\n", [""]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("a\u2028b\u0085c\x0cd\ne\n".encode(), ["a\u2028b\u0085c\x0cd", "e"]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_only_newlines_end_lines(tmp_path, content, lines, pack):
    assert read_lines(write(tmp_path / "file", pack(content))) == lines


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path, pack):
    path = write(tmp_path / "latin.txt", pack("eins\nzwei\nfünf\n".encode("latin-1")))
    with pytest.raises(BadInput, match=r"latin\.txt, line 3: byte 0xfc is not UTF-8"):
        read_lines(path)


@pytest.mark.parametrize("cut", [5, 20, -9])
def test_truncated_gzip_is_corrupt(tmp_path, cut):
    path = write(tmp_path / "cut.gz", gzip.compress(b"many words\n" * 50)[:cut])
    with pytest.raises(CorruptFile, match=r"cut\.gz is not a complete gzip file"):
        read_lines(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataUnavailable, match=r"cannot read .*gone\.txt: No such file"):
        read_lines(tmp_path / "gone.txt")


def test_parallel_lines_correspond(tmp_path):
    source, target = write(tmp_path / "a", b"1\n2\n"), write(tmp_path / "b", gzip.compress(b"one\ntwo\n"))
    assert read_parallel(source, target) == (["1", "2"], ["one", "two"])


def test_parallel_files_of_different_length_name_the_line_and_both_counts(tmp_path):
    source, target = write(tmp_path / "a", b"1\n2\n3\n"), write(tmp_path / "b", b"one\ntwo\n")
    with pytest.raises(BadInput, match=r"a has 3, .*b has 2; line 3 of .*a has no counterpart in .*b"):
        read_parallel(source, target)
    with pytest.raises(BadInput, match=r"b has 2, .*a has 3; line 3 of .*a has no counterpart in .*b"):
        read_parallel(target, source)
