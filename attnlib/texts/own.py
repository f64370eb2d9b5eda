"""A reader's own labelled texts: a table with columns ``text`` and ``label``, any two label strings.

``.tsv``: a tab between fields, nothing quoted, so that a field holds neither tab nor line break. ``.csv``: as
in RFC 4180, fields in double quotes where they hold a comma, a quote (doubled) or a line break. The first
row names the columns, in any order and among others; text is UTF-8, plain or compressed (``.tsv.gz``).
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from attnlib.errors import BadInput
from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.words import WordRules
from companion.data.text import read_text

FEWEST = 20  # texts: a tenth is held out, and both labels have to be in it
_COLUMNS = ("text", "label")
_SHOWN = 5  # labels named in an error message

Row = tuple[int, list[str]]  # the line that a row ends on, and its fields


def kind(path: Path) -> Literal[".tsv", ".csv"] | None:
    """What kind of table a file is by its name; None for another kind of file.

    >>> kind(Path("Mine.TSV.gz")), kind(Path("mine.txt"))
    ('.tsv', None)
    """
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    return ending if ending in (".tsv", ".csv") else None


def read(path: str | Path, checksums: dict[str, str]) -> RawTexts:
    """All rows of the table as one pool, of which a tenth is held out; labels in alphabetical order.

    Args:
        path: of the table.
        checksums: to be handed on with the texts.

    Raises:
        DataUnavailable: the file cannot be read. CorruptFile: broken gzip.
        BadInput: not UTF-8, another kind of file, a missing column, a row with too many or too few fields,
            malformed CSV, a row without label, other than two labels, or fewer than 20 rows. Each says which
            line or which labels, and what to do.
    """
    path = Path(path)
    if kind(path) is None:
        raise BadInput(f"{path}: expected a file called .tsv (tab-separated, unquoted) or .csv (RFC 4180)")
    rows = _tsv_rows(read_text(path)) if kind(path) == ".tsv" else _csv_rows(read_text(path), path)
    labelled = list(_labelled(rows, path))
    counts = Counter(label for _, label in labelled)
    if len(counts) != 2:
        shown = ", ".join(f"{label!r} ({count} rows)" for label, count in counts.most_common(_SHOWN))
        more = f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else ""
        raise BadInput(
            f"{path}: expected two different labels, found {len(counts)}: {shown or 'no row'}{more}; "
            "keep the rows of two"
        )
    if len(labelled) < FEWEST:
        raise BadInput(f"{path}: {len(labelled)} rows; expected at least {FEWEST}, a tenth is held out")
    classes = tuple(sorted(counts))
    texts: list[RawText] = [(text, classes.index(label)) for text, label in labelled]
    rules = WordRules(html=True)
    return RawTexts("own", classes, texts, None, rules, checksums=checksums, n_validation=None)


def _labelled(rows: Iterator[Row], path: Path) -> Iterator[tuple[str, str]]:
    _, header = next(rows, (0, []))
    names = [name.strip() for name in header]
    for column in _COLUMNS:
        if names.count(column) != 1:
            raise BadInput(
                f"{path}: expected one column {column!r} in the first row, found {names.count(column)}; "
                f"its columns: {', '.join(names) or 'none'}"
            )
    text, label = (names.index(column) for column in _COLUMNS)
    for line, fields in rows:
        if len(fields) != len(names):
            raise BadInput(f"{path}, line {line}: {len(fields)} fields, but the first row has {len(names)}")
        if not fields[label].strip():
            raise BadInput(f"{path}, line {line}: no label; fill it in or leave the row out")
        yield fields[text], fields[label].strip()


def _tsv_rows(text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if line := line.removesuffix("\r"):
            yield number, line.split("\t")


def _csv_rows(text: str, path: Path) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise BadInput(
            f"{path}, line {reader.line_num}: {error}; a quote inside a quoted field is doubled, "
            f"and a field has at most {csv.field_size_limit():,} characters"
        ) from error
