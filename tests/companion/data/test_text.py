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


LATIN = "eins\nzwei\nfünf\n".encode("latin-1")
LATINS = LATIN, gzip.compress(LATIN, mtime=0)
PACKED = gzip.compress(b"many words\n" * 50, mtime=0)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        *((latin, BadInput, "file, line 3: byte 0xfc is not UTF-8") for latin in LATINS),
        *((PACKED[:cut], CorruptFile, "file is not a complete gzip file") for cut in (5, 20, -9)),
        (None, DataUnavailable, "cannot read .*file: No such file"),
    ],
)
def test_what_cannot_be_read_says_why_and_where(tmp_path, content, error, message):
    if content is not None:
        write(tmp_path / "file", content)
    with pytest.raises(error, match=message):
        read_lines(tmp_path / "file")


def test_parallel_lines_correspond_or_the_line_and_both_counts_are_named(tmp_path):
    source, target = write(tmp_path / "a", b"1\n2\n"), write(tmp_path / "b", gzip.compress(b"one\ntwo\n"))
    assert read_parallel(source, target) == (["1", "2"], ["one", "two"])
    write(source, b"1\n2\n3\n")
    with pytest.raises(BadInput, match=r"a has 3, .*b has 2; line 3 of .*a has no counterpart in .*b"):
        read_parallel(source, target)
    with pytest.raises(BadInput, match=r"b has 2, .*a has 3; line 3 of .*a has no counterpart in .*b"):
        read_parallel(target, source)
