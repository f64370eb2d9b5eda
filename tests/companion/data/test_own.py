"""A reader's own table: both formats read_own by hand-made files, and every error names the place."""

import csv
import gzip

import pytest

from attnlib.errors import BadInput, CorruptFile, DataUnavailable, UnknownName
from companion.data.labelled_sets import checksums, load_labelled, read_own

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
