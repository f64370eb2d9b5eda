"""Text files as readers have them, whatever their encoding, compression or layout.

Read are UTF-8, and UTF-16 and UTF-32 with a byte-order mark; plain files and files packed by gzip, bzip2 or
xz; zip and tar archives. One file may hold both sides of a parallel text: a table (``.tsv``, ``.csv``, or any
lines with tabs), a translation memory (``.tmx``), or an archive with two files, as OPUS has it. Given as
source and as target, its first side is the source and its second the target. ``PATH#PART`` names a side:

============================  ==============================================
``pairs.tsv#2``               the second column
``pairs.csv#german``          the column which the first row calls *german*
``memory.tmx#de``             the segments of one language
``Books.zip#Books.de-en.de``  a file of an archive
============================  ==============================================

A file that cannot be read is refused, and nothing is guessed: no encoding is ever taken for another one.
"""

import bz2
import codecs
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, BinaryIO
from xml.etree import ElementTree

from attnlib.errors import BadInput, CorruptFile, DataUnavailable, UnknownName

_HEAD = 1 << 16  # bytes that are looked at to tell encodings and layouts
_BEGINNING = 64  # bytes that say what a text is instead of sentences
_SAMPLE = 20  # rows that are looked at to tell a table from lines
_OF_A_SCRIPT = 0.4  # share of its letters with one upper byte in UTF-16; no letter is that frequent in ASCII
_SEPARATORS = ("\t", "|||")  # of columns; fast_align reads and writes the second
_IN_COLUMNS = 0.5  # share of the lines of a table that have its separator; those without are refused
_SHOWN = 24  # characters of a line in a message
_MOST_LAYERS = 4  # of packing; some download tools pack what is packed already

_UNPACKERS = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
    b"]\x00\x00": ("lzma", lzma.open),
}
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second of an archive without files
_AS_COLUMNS = "save two of its columns as a .tsv file first"
_AS_LINES = "save its texts as lines of UTF-8 first"
_UNREADABLE = {
    b"\x28\xb5\x2f\xfd": "packed by Zstandard; unpack it with `zstd -d`",
    b"\x04\x22\x4d\x18": "packed by LZ4; unpack it with `lz4 -d`",
    b"\x1f\x9d": "packed by compress; unpack it with `gzip -d`",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"%PDF": "a PDF; save its text as UTF-8 first",
    b"\xd0\xcf\x11\xe0": "an Office document; save its text as UTF-8 first",
    b"PAR1": f"a Parquet table; {_AS_COLUMNS}",
    b"ARROW1": f"an Arrow table; {_AS_COLUMNS}",
    b"SQLite format 3": f"an SQLite database; {_AS_COLUMNS}",
    b"\x89HDF": f"an HDF5 file; {_AS_LINES}",
    b"\x93NUMPY": f"a NumPy array; {_AS_LINES}",
    **dict.fromkeys(
        (b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"), f"a pickle of Python objects; {_AS_LINES}"
    ),
}
# Beginnings of texts, in lower case and without white space before them.
_NOT_SENTENCES = {
    b"version https://git-lfs": "a pointer of Git LFS instead of the text; get the text with `git lfs pull`",
    b"/annex/objects/": "a pointer of git-annex instead of the text; get the text with `git annex get`",
    **dict.fromkeys(
        (b"<!doctype html", b"<html", b"<head>"),
        "a web page; download the file itself instead of the page that shows it",
    ),
    b"404: not found": "what a server answers where there is no such file; check the address",
    **dict.fromkeys(
        (b"<srcset", b"<refset", b"<tstset", b"<doc ", b"<xliff"),
        "a file of marked-up segments; save what is between <seg> and </seg> as lines first",
    ),
    b"{\\rtf": "a rich-text document (RTF); save it as plain text in UTF-8 first",
    **dict.fromkeys((b"webvtt", b"[script info]"), f"a file of subtitles; {_AS_LINES}"),
}
_PACKED_ENDINGS = (".gz", ".bz2", ".xz")
# UTF-32 comes first: the mark of little-endian UTF-16 begins its own.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Encodings in which a line is shown that is not UTF-8. `iconv` knows each by this name.
_OF_ONE_BYTE = ("cp1252", "cp1250", "cp1251", "koi8-r", "cp1253", "cp1255", "cp1256", "cp874")
_OF_TWO_BYTES = ("gb18030", "big5", "euc-jp", "shift_jis", "euc-kr")
_READINGS = 8  # in a message, at most
_LISTED = 6  # files of an archive in a message, at most
_HEADINGS = {"source", "target", "src", "tgt", "trg", "text", "translation", "sentence"}
_LANGUAGES = {
    "ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "ga", "he", "hi", "hr",
    "hu", "id", "it", "ja", "ko", "lt", "lv", "mt", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl",
    "sr", "sv", "ta", "th", "tr", "uk", "ur", "vi", "zh",
    "arabic", "chinese", "dutch", "english", "french", "german",
    "hindi", "italian", "japanese", "korean", "polish", "portuguese", "russian", "spanish", "thai", "turkish",
}  # fmt: skip
# Files that archives of parallel texts hold beside the texts.
_BESIDE = ("readme", "license", "licence", "copying", ".")
_BESIDE_ENDINGS = (".xml", ".ids", ".md", ".json", ".html", ".scores", ".info")
_LANGUAGE_OF = "{http://www.w3.org/XML/1998/namespace}lang"
_CODES = {"bpt", "ept", "ph", "it", "ut"}  # elements of a segment that hold a program's codes instead of text


@dataclass(frozen=True)
class Location:
    """A file, and the part of it that is meant, if one was named.

    Attributes:
        path: of the file.
        part: a column, a language or a file of an archive; None for the whole file.

    Example:
        >>> print(Location(Path("pairs.tsv"), "2"))
        pairs.tsv#2
    """

    path: Path
    part: str | None = None

    @classmethod
    def of(cls, path: str | Path) -> "Location":
        """Read ``PATH`` or ``PATH#PART``; a file whose name has a ``#`` itself is that file.

        Args:
            path: of a file, with or without a part.

        Returns:
            The file and the part.

        Example:
            >>> Location.of("pairs.tsv#2").part
            '2'
        """
        whole = Path(path)
        before, mark, part = whole.name.rpartition("#")
        if not mark or not before or not part or _exists(whole):
            return cls(whole)
        return cls(whole.with_name(before), part)

    def __str__(self) -> str:
        return str(self.path) if self.part is None else f"{self.path}#{self.part}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Yield the lines of a text file, or of the named part of one, without their ends.

    Only a newline ends a line: ``str.splitlines`` also splits at the odd U+2028 inside a sentence, and the
    lines of two parallel files would no longer correspond.

    Args:
        path: of a file, or of a part of one, as in ``"pairs.tsv#2"``.

    Returns:
        An iterator over the lines, which are read as needed.

    Raises:
        DataUnavailable: the file cannot be opened.
        CorruptFile: a packed file is cut off or broken.
        BadInput: it is not a text, is in another encoding, or has several sides, and none is named.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.tsv"
        >>> _ = path.write_text("one\tun\ntwo\tdeux\n")
        >>> list(read_lines(f"{path}#2"))
        ['un', 'deux']
    """
    return _side(Location.of(path), None)


def read_pairs(
    source: str | Path, target: str | Path | None = None
) -> Iterator[tuple[str | None, str | None]]:
    r"""Yield line after line of two files that are translations of each other, or of both sides of one file.

    A side that ends before the other is None from there on; without ``target`` the second is always None. A
    row of a table that lacks a column is empty there, so that rows stay together.

    Args:
        source: path of a file, or of a part of one.
        target: path of its translations, likewise; the path of the source again for a file with both sides.

    Returns:
        An iterator over pairs of a source and a target, which are read as needed.

    Raises:
        DataUnavailable: a file cannot be opened.
        CorruptFile: a packed file is cut off or broken.
        BadInput: a file cannot be read, as in :func:`read_lines`, or one side of a file is named without the
            other.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.tsv"
        >>> _ = path.write_text("one\tun\ntwo\tdeux\n")
        >>> list(read_pairs(path, path))
        [('one', 'un'), ('two', 'deux')]
    """
    first = Location.of(source)
    if target is None:
        _check_one_side(first)
        return ((line, None) for line in _side(first, None))
    second = Location.of(target)
    if not _same_file(first.path, second.path):
        _check_one_side(first)
        _check_one_side(second)
        return zip_longest(_side(first, None), _side(second, None))
    if (first.part is None) != (second.part is None):
        raise BadInput(f"{first} and {second} are one file; name a part of it on both sides, or on neither")
    return zip_longest(_side(first, 0), _side(second, 1))


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return first == second


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file, unpacked if it is packed.

    Args:
        path: of the file.

    Returns:
        The bytes of the unpacked file.

    Raises:
        DataUnavailable: the file cannot be read.
        CorruptFile: it is packed, and cut off or broken.
        BadInput: it is packed or stored in a way that cannot be read here.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "text.gz"
        >>> _ = path.write_bytes(gzip.compress(b"one"))
        >>> read_bytes(path)
        b'one'
    """
    with _opened(Path(path)) as stream, _whole(Path(path), stream):
        content = stream.read()
    if content.startswith(_ZIP):
        raise BadInput(f"{path} is an archive or an Office document; unpack it, or save its sheet as .csv")
    return content


def decode(content: bytes, path: str | Path) -> str:
    """Return a file's content as text, without its byte-order mark.

    Args:
        content: of the file, unpacked.
        path: of the file, for messages.

    Returns:
        The text, with the ends of its lines as they are.

    Raises:
        BadInput: it is not a text, or is in an encoding that nothing in it names.

    Example:
        >>> decode("né".encode("utf-16"), "text.txt")
        'né'
    """
    encoding = _encoding(content, lambda: content, str(path))
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _undecodable(f"{path}, line {line:,}", error) from error


def checksum(path: str | Path) -> str:
    """Return the SHA-256 of a file as it lies on disk; a part has that of its file.

    Args:
        path: of a file, or of a part of one.

    Returns:
        64 hexadecimal digits.

    Raises:
        DataUnavailable: the file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "text.txt"
        >>> _ = path.write_text("one")
        >>> checksum(path)[:12]
        '7692c3ad3540'
    """
    location = Location.of(path)
    try:
        with location.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise _unavailable(location.path, error) from error


# -- files and archives --


def _unavailable(path: Path, error: Exception) -> DataUnavailable:
    if path.is_dir():
        return DataUnavailable(f"cannot read {path}: it is not a file; check the path")
    reason = getattr(error, "strerror", None) or str(error)
    return DataUnavailable(f"cannot read {path}: {reason}; check the path")


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file and unpack it, by its first bytes, whatever it is called."""
    if _exists(path) and not path.is_file():  # a folder, or a pipe that never ends
        raise DataUnavailable(f"cannot read {path}: it is not a file; check the path")
    try:
        file = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        raise _unavailable(path, error) from error
    with ExitStack() as stack:
        stack.enter_context(file)
        yield _unpacked(file, path, stack)


def _unpacked(file: IO[bytes], label: object, stack: ExitStack) -> io.BufferedReader:
    stream = stack.enter_context(io.BufferedReader(file, _HEAD))  # type: ignore[arg-type]
    for _ in range(_MOST_LAYERS):
        inner = _without_a_layer(stream, label, stack)
        if inner is None:
            return stream
        stream = inner
    raise BadInput(f"{label} is packed more than {_MOST_LAYERS - 1} times; unpack it first")


def _without_a_layer(stream: io.BufferedReader, label: object, stack: ExitStack) -> io.BufferedReader | None:
    """Return what a packed file holds; None for any other file.

    Raises:
        BadInput: the file is of a form that is not read here.
    """
    head = stream.peek(_HEAD)
    beginning = head.removeprefix(codecs.BOM_UTF8).lstrip()[:_BEGINNING].lower()
    for magic, form in _UNREADABLE.items():
        if head.startswith(magic):
            raise BadInput(f"{label} is {form}")
    for words, form in _NOT_SENTENCES.items():
        if beginning.startswith(words):
            raise BadInput(f"{label} is {form}")
    for magic, (name, unpack) in _UNPACKERS.items():
        if head.startswith(magic):
            unpacking = stack.enter_context(unpack(stream))
            inner = stack.enter_context(io.BufferedReader(unpacking, _HEAD))  # type: ignore[arg-type]
            with _whole(label, inner, name):
                inner.peek(1)
            return inner
    return None


@contextmanager
def _whole(label: object, stream: BinaryIO | None = None, kind: str = "") -> Iterator[None]:
    """Turn the many errors of unpacking into one."""
    broken = EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError
    try:
        yield
    except (*broken, OSError) as error:
        if not isinstance(error, broken) and error.errno is not None:  # bz2 raises an OSError without number
            raise DataUnavailable(f"cannot read {label}: {error.strerror}; check the path") from error
        kind = kind or _kind_of(stream)
        raise CorruptFile(f"{label} is not a complete {kind} file ({error}); get it again") from error


def _kind_of(stream: BinaryIO | None) -> str:
    raw = getattr(stream, "raw", None)
    kinds = {gzip.GzipFile: "gzip", bz2.BZ2File: "bzip2", lzma.LZMAFile: "xz"}
    return kinds.get(type(raw), "packed")


@dataclass(frozen=True, kw_only=True)
class _Side:
    """A file that is open, and which part of it is read."""

    stream: io.BufferedReader
    name: str  # whose ending says the layout
    label: str  # for messages
    part: str | None  # as the reader named it
    index: int | None  # 0 or 1 where one file was given for both sides, and no part was named


def _side(location: Location, index: int | None) -> Iterator[str]:
    """Yield the lines of a location; ``index`` is 0 or 1 where one file was given for both sides."""
    with ExitStack() as stack:
        stream = stack.enter_context(_opened(location.path))
        side = _Side(
            stream=stream, name=location.path.name, label=str(location.path), part=location.part, index=index
        )
        members = _members(location.path, stream, stack)
        if members is not None:
            side = _member(side, members, stack)
        with _whole(location.path, side.stream):
            yield from _lines_of(side)


Members = dict[str, Callable[[], IO[bytes]]]


def _members(path: Path, stream: io.BufferedReader, stack: ExitStack) -> Members | None:
    """Return what opens each text of an archive, sorted by name; None for any other file."""
    head = stream.peek(_HEAD)
    members: Members = {}
    with _whole(path, None, "zip" if head.startswith(_ZIP) else "tar"):
        if head.startswith(_ZIP):
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
            _check_is_of_texts(path, names)
            members = {name: _opener(archive, name) for name in names}
        elif head[257:262] == b"ustar":
            tar = stack.enter_context(tarfile.open(path))  # noqa: SIM115  closed by the stack
            members = {entry.name: _tar_opener(tar, entry) for entry in tar if entry.isfile()}
        else:
            return None
    return {name: members[name] for name in sorted(members)}


def _check_is_of_texts(path: Path, names: Iterable[str]) -> None:
    """Refuse files of other programs, which are zip archives as well."""
    inner = {Path(name).name for name in names}
    if inner & {"[Content_Types].xml", "mimetype"}:
        raise BadInput(
            f"{path} is an Office document or an e-book; save its text as UTF-8 first, a sheet as .csv or "
            ".tsv"
        )
    if "data.pkl" in inner:
        raise BadInput(f"{path} is a file that torch.save wrote; {_AS_LINES}")


def _opener(archive: zipfile.ZipFile, name: str) -> Callable[[], IO[bytes]]:
    def opener() -> IO[bytes]:
        try:
            return archive.open(name)
        except RuntimeError as error:  # encrypted
            raise BadInput(f"{name} in {archive.filename} has a password; unpack it first") from error

    return opener


def _tar_opener(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opener() -> IO[bytes]:
        file = archive.extractfile(entry)
        assert file is not None, entry.name  # folders and links were left out
        return file

    return opener


def _member(side: _Side, members: Members, stack: ExitStack) -> _Side:
    """Open the file of an archive that is meant.

    Raises:
        BadInput: the archive has several, and nothing says which is meant.
    """
    texts = [name for name in members if not _is_beside(name)]
    by_name = {Path(name).name: name for name in members} | {name: name for name in members}
    part, index = side.part, side.index
    if part in by_name:
        chosen, part = by_name[part], None
    elif len(texts) == 1:
        chosen = texts[0]
    elif part is not None:
        raise UnknownName(f"file in {side.label}", part, texts)
    elif index is not None and len(texts) == 2:
        chosen, index = texts[index], None
    elif not texts:
        listed = ", ".join([*members][:_LISTED]) or "no file at all"
        raise BadInput(
            f"{side.label} is an archive without a text ({listed}); give one of plain text, which OPUS calls "
            "moses"
        )
    else:
        listed = ", ".join(texts[:_LISTED])
        raise BadInput(
            f"{side.label} is an archive of {len(texts)} texts ({listed}); name one, as in "
            f"{side.name}#{texts[0]}"
        )
    label = f"{side.label}#{chosen}"
    with _whole(side.label, None, "archive"):
        opened = stack.enter_context(members[chosen]())
        return _Side(stream=_unpacked(opened, label, stack), name=chosen, label=label, part=part, index=index)


def _is_beside(name: str) -> bool:
    file = Path(name).name.lower()
    return file.startswith(_BESIDE) or file.endswith(_BESIDE_ENDINGS) or "__MACOSX" in name


# -- layouts --


def _lines_of(side: _Side) -> Iterator[str]:
    """Yield the lines of a side; in a table or a translation memory, its cells."""
    names_side = side.part is not None or side.index is not None
    if _ending(side.name) == ".tmx":
        return _segments(side)
    lines = _decoded(side.stream, side.label)
    if _ending(side.name) == ".csv" and names_side:
        return _cells(_csv_rows(lines, side.label), side)
    head = list(islice(lines, _SAMPLE))
    _check_are_sentences(head, side.label)
    lines = chain(head, lines)
    separator = _separator(head, share=_IN_COLUMNS)
    if side.part is not None:
        return _cells(_split_rows(lines, separator or "\t"), side)
    if side.index is not None and separator is not None:
        return _cells(_complete_rows(_split_rows(lines, separator), side.label), side)
    return lines


def _check_are_sentences(head: list[str], label: str) -> None:
    """Refuse files whose lines are something other than sentences.

    Raises:
        BadInput: the lines are XML, JSON, subtitles, messages of gettext or words of CoNLL-U.
    """
    filled = [line for line in head if line.strip()]
    if filled and filled[0].startswith("<?xml"):
        raise BadInput(
            f"{label} is XML: if it is a translation memory, let its name end in .tmx; else save its "
            "segments as lines first"
        )
    if filled and all(map(_is_json_object, filled)):
        raise BadInput(
            f"{label} has a JSON object in each line; save two of their fields as the columns of a .tsv "
            "file first"
        )
    if _JSON.match("\n".join(head)):
        raise BadInput(f"{label} is JSON; save two of its fields as the columns of a .tsv file first")
    for sign, form in _LINE_FORMS.items():
        if any(sign.match(line) for line in filled):
            raise BadInput(f"{label} is {form}; {_AS_LINES}")


# A list of objects or of texts, or an object of several lines.
_JSON = re.compile(r'\s*(?:\[\s*\{|\[\s*\n\s*"|\{\s*\n?\s*"[^"\n]*"\s*:|\["[^\n]*"\]\s*$)')
# By what a line of each form looks like.
_LINE_FORMS = {
    re.compile(r"(?:\d+:)?\d\d:\d\d[,.]\d\d\d --> "): "a file of subtitles",
    re.compile(r'msgid "'): "a file of messages for gettext (PO)",
    re.compile(r"# (?:sent_id|newdoc|newpar)\b|\d+(?:\t[^\t]+){9}$"): "a treebank (CoNLL-U), a word a line",
}


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _separator(lines: Iterable[str], *, share: float) -> str | None:
    """Return what is between two columns of a table, if that share of its lines have it."""
    filled = [line for line in lines if line.strip()]
    for separator in _SEPARATORS:
        n_split = sum(separator in line for line in filled)
        if n_split and n_split >= share * len(filled):
            return separator
    return None


def _split_rows(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    for line in lines:
        yield [unquoted(cell.strip(" ")) for cell in line.split(separator)]


def unquoted(cell: str) -> str:
    r"""Return the cell of a table without the quotes that csv and pandas put around one with quotes in it.

    Quotes around a whole sentence are its own where none inside is doubled.

    Args:
        cell: as it is between two tabs.

    Returns:
        The text of the cell.

    Example:
        >>> unquoted('"the ""old"" house"'), unquoted('"Come!"')
        ('the "old" house', '"Come!"')
    """
    inner = cell[1:-1]
    is_quoted = len(cell) > 2 and cell[0] == cell[-1] == '"'
    if is_quoted and '""' in inner and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell


def _complete_rows(rows: Iterable[list[str]], label: str) -> Iterator[list[str]]:
    """Yield the rows of a table of which no column is named; an empty line is a row of empty cells.

    Raises:
        BadInput: a line is a cell alone.
    """
    for number, row in enumerate(rows, start=1):
        if len(row) == 1 and row[0]:
            raise BadInput(
                f"{label}, line {number:,} has one column, unlike most: a line break within a sentence? Mend "
                "the line, or name the columns, as in #1 and #2; its other cells are then empty"
            )
        yield row


def _check_one_side(location: Location) -> None:
    """Refuse a table or a translation memory of which no side is named, where one side of a text is read."""
    if location.part is not None:
        return
    name = location.path.name
    has_both_sides = _ending(name) in (".tmx", ".csv")
    if not has_both_sides:
        with _opened(location.path) as stream, ExitStack() as stack:
            if _members(location.path, stream, stack) is not None:
                return  # an archive names its files itself
        head = list(islice(_side(location, None), _SAMPLE))
        has_both_sides = len(head) > 1 and _separator(head, share=1) is not None
    if has_both_sides:
        raise BadInput(
            f"{location} has several columns or languages; name one, as in {name}#1 or {name}#en, or give "
            "the file on both sides for its first and second"
        )


def _ending(name: str) -> str:
    name = name.lower()
    for packed in _PACKED_ENDINGS:
        name = name.removesuffix(packed)
    return Path(name).suffix


_EXCEL_DELIMITER = re.compile(r"sep=(.)", re.IGNORECASE)  # the first line that Excel reads, and may write


def _csv_rows(lines: Iterable[str], label: str) -> Iterator[list[str]]:
    lines = iter(lines)
    first = next(lines, "")
    named = _EXCEL_DELIMITER.fullmatch(first)
    if named is not None:
        first, delimiter = next(lines, ""), named[1]
    else:
        delimiter = max(",;\t", key=first.count)
    reader = csv.reader((f"{line}\n" for line in chain([first], lines)), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            yield [" ".join(cell.split()) for cell in row]
    except csv.Error as error:
        raise BadInput(
            f"{label}, line {reader.line_num:,}: {error}; a quote inside a quoted cell is doubled"
        ) from error


def _cells(rows: Iterable[list[str]], side: _Side) -> Iterator[str]:
    """Yield a column of a table, named by the part or else the first or second; a missing cell is empty.

    Raises:
        BadInput: there is no such column, or the column holds numbers instead of text.
    """
    rows = iter(rows)
    head = list(islice(rows, _SAMPLE))
    column, has_heading = _column(head, side)
    n_columns = len(head[0]) if head else 0
    for number, row in enumerate(chain(head, rows), start=1):
        if len(row) > n_columns:
            raise BadInput(
                f"{side.label}, row {number:,} has {len(row)} cells and the first {n_columns}: a cell with a "
                "separator in it has to be quoted, in a .csv file"
            )
        if number > 1 or not has_heading:
            yield row[column] if column < len(row) else ""


def _column(head: list[list[str]], side: _Side) -> tuple[int, bool]:
    """Return which column is meant, from 0, and whether the first row names the columns."""
    first = [cell.strip() for cell in head[0]] if head else []
    headings = [cell.casefold() for cell in first]
    has_heading = len(set(headings) & (_HEADINGS | _LANGUAGES)) > 1
    n_columns = max(map(len, head), default=0)
    if side.part is None:
        assert side.index is not None
        cells = [row[side.index].strip() for row in head[has_heading:] if side.index < len(row)]
        _check_are_texts([cell for cell in cells if cell], side, n_columns=n_columns)
        return side.index, has_heading
    if side.part.isdecimal():
        column = int(side.part) - 1
        if not 0 <= column < n_columns:
            raise BadInput(f"{side.label} has columns 1 to {n_columns}; there is no column {side.part}")
        return column, has_heading
    if side.part.casefold() in headings:
        return headings.index(side.part.casefold()), True
    raise UnknownName(f"column in the first row of {side.label}", side.part, first)


def _check_are_texts(cells: list[str], side: _Side, *, n_columns: int) -> None:
    """Refuse a column of numbers or of dictionaries, where nobody named the column."""
    assert side.index is not None
    column = f"{side.label} has {n_columns} columns, and column {side.index + 1}"
    has_numbers = bool(cells) and all(cell.isdecimal() for cell in cells)
    if has_numbers and (n_columns > 2 or _count_rows(cells)):
        way_out = f"name the two with sentences, as in source={side.name}#2 target={side.name}#3"
        if n_columns == 2:
            way_out = "give a table with two columns of sentences"
        raise BadInput(f"{column} has numbers; {way_out}")
    if cells and all(_DICTIONARY.match(cell) for cell in cells):
        raise BadInput(f"{column} has dictionaries; save the two texts in them as columns first")


_DICTIONARY = re.compile(r"""\{['"]\w+['"]:""")  # as pandas writes the column of a data set of translations


def _count_rows(cells: list[str]) -> bool:
    """Return True for the numbers of rows, which pandas writes as a first column."""
    numbers = [int(cell) for cell in cells]
    return len(numbers) > 1 and numbers[0] in (0, 1) and numbers == [*range(numbers[0], numbers[-1] + 1)]


def _segments(side: _Side) -> Iterator[str]:
    """Yield the segments of one language of a translation memory, empty where a unit lacks it.

    Raises:
        BadInput: it is not XML, the language is not in it, or nothing says which of several is meant.
    """
    content = side.stream.read()
    languages = _languages(content, side.label)
    language = _language(languages, side)
    for unit in _units(content, side.label):
        yield unit.get(language, "")


def _language(languages: list[str], side: _Side) -> str:
    if side.part is None:
        if side.index is not None and len(languages) == 2:
            return languages[side.index]
        raise BadInput(
            f"{side.label} is a translation memory with {', '.join(languages) or 'no language'}; name one on "
            f"each side, as in source={side.name}#en target={side.name}#de"
        )
    part = side.part.lower()
    if part.isdecimal() and 1 <= int(part) <= len(languages):
        return languages[int(part) - 1]
    variants = [language for language in languages if language.partition("-")[0] == part]
    if part in languages:
        return part
    if len(variants) == 1:
        return variants[0]
    raise UnknownName(f"language in {side.label}", side.part, languages)


def _languages(content: bytes, label: str) -> list[str]:
    """Return the languages of a translation memory, that of its sources first."""
    present: dict[str, None] = {}
    for unit in _units(content, label):
        present |= dict.fromkeys(unit)
    source = ""
    for _, element in ElementTree.iterparse(io.BytesIO(content), events=("start",)):
        if _tag(element) == "header":
            source = element.get("srclang", "").lower()
        if _tag(element) == "body":
            break
    main = source.partition("-")[0]
    others = [language for language in present if language.partition("-")[0] != main]
    return [language for language in present if language not in others] + others


def _units(content: bytes, label: str) -> Iterator[dict[str, str]]:
    """Yield language → text of each unit."""
    if b"<!ENTITY" in content[:_HEAD]:
        raise BadInput(
            f"{label} defines entities of XML, which a translation memory does not need; take them out"
        )
    try:
        for _, element in ElementTree.iterparse(io.BytesIO(content)):
            if _tag(element) == "tu":
                yield dict(filter(None, map(_variant, element)))
                element.clear()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BadInput(f"{label} is not a translation memory: {error}") from error


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _variant(element: ElementTree.Element) -> tuple[str, str] | None:
    language = element.get(_LANGUAGE_OF) or element.get("lang")
    segments = [child for child in element if _tag(child) == "seg"]
    if not language or not segments:
        return None
    text = "".join(_text_of(segments[0]))
    return language.lower().replace("_", "-"), " ".join(text.split())


def _text_of(element: ElementTree.Element) -> Iterator[str]:
    if _tag(element) not in _CODES:
        yield element.text or ""
        for child in element:
            yield from _text_of(child)
            yield child.tail or ""


# -- encodings --


def _decoded(stream: io.BufferedReader, label: str) -> Iterator[str]:
    """Yield lines of text without their ends."""
    head = stream.peek(_HEAD)
    content: list[bytes] = []

    def whole() -> bytes:
        content.append(stream.read())
        return content[0]

    encoding = _encoding(head, whole, label)
    binary = io.BufferedReader(io.BytesIO(content[0])) if content else stream  # type: ignore[arg-type]
    newline = "\r" if _ends_with_returns(head.decode(encoding, errors="ignore")) else "\n"
    number = 0
    try:
        with io.TextIOWrapper(binary, encoding=encoding, newline=newline) as text:
            for line in text:
                number += 1
                if "\0" in line:
                    raise _with_nul(f"{label}, line {number:,}")
                yield line.removesuffix(newline).removesuffix("\r").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        lines_before = number + error.object.count(b"\n", 0, error.start)
        raise _undecodable(f"{label}, line {lines_before + 1:,}", error) from error
    except UnicodeError as error:  # UTF-16 that lacks its mark, in the words of the codec
        raise BadInput(f"{label}, line {number + 1:,}: {error}") from error


def _ends_with_returns(head: str) -> bool:
    """Return True for the line ends of old Macs, a carriage return alone."""
    return "\n" not in head and "\r" in head


def _encoding(head: bytes, whole: Callable[[], bytes], label: str) -> str:
    """Return the encoding that the first bytes name; UTF-16 without a mark is recognized by its NULs.

    Raises:
        BadInput: it is not a text, or UTF-16 that was once read as another encoding.
    """
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    if b"\0" not in head:
        return "utf-8"
    # Letters below U+0100 have a NUL in their two bytes, always on the same side. UTF-16 that was converted
    # from a wrong encoding has NULs on both, since each letter beyond ASCII took one byte more, or the two
    # letters of its mark.
    content = whole()
    at_even = content[0::2].count(0)
    at_odd = content[1::2].count(0)
    converted = content.startswith(("ÿþ".encode(), "þÿ".encode()))
    encoding = "utf-16-le" if at_odd else "utf-16-be"
    if len(content) % 2 or converted or min(at_even, at_odd):
        raise _with_nul(label)
    has_few = max(at_even, at_odd) < len(content) // 8  # ASCII letters: spaces and line ends, or stray NULs
    if has_few and not _is_utf_16(content, encoding):
        raise _with_nul(label)
    return encoding


def _is_utf_16(content: bytes, encoding: str) -> bool:
    """Return True for letters of another script than Latin, whose NULs are of spaces and line ends alone.

    Their upper bytes are few, one or two a script; or the bytes without the NULs are not UTF-8 either, as
    those of Chinese. A text of ASCII with a stray NUL is neither.
    """
    try:
        letters = content.decode(encoding)
    except UnicodeDecodeError:
        return False
    if any(unicodedata.category(letter) in ("Cn", "Co", "Cs") for letter in set(letters)):
        return False
    upper_bytes = content[1::2] if encoding == "utf-16-le" else content[0::2]
    counts = Counter(upper_bytes.replace(b"\0", b""))
    is_of_a_script = max(counts.values(), default=0) > _OF_A_SCRIPT * len(upper_bytes)
    return is_of_a_script or not _is_utf_8(content.replace(b"\0", b""))


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_nul(place: str) -> BadInput:
    return BadInput(
        f"{place} has NUL characters. It is not a text, or a UTF-16 file that was converted as if it were in "
        "another encoding: take the file as it first was, which is read as it is"
    )


def _undecodable(place: str, error: UnicodeDecodeError) -> BadInput:
    """Say how a line that is not UTF-8 reads in other encodings, for the reader to choose."""
    byte = f"byte 0x{error.object[error.start]:02x}"
    if error.encoding.startswith(("utf-16", "utf-32")):
        return BadInput(
            f"{place}: {byte} is not {error.encoding.upper()} ({error.reason}); get the file again"
        )
    first = error.object.rfind(b"\n", 0, error.start) + 1
    last = error.object.find(b"\n", error.start)
    line = error.object[first : last if last >= 0 else None]
    shown: dict[str, str] = {}
    beyond_ascii = sum(byte >= 0x80 for byte in line)
    orders = (_OF_TWO_BYTES, _OF_ONE_BYTE) if beyond_ascii > len(line) / 2 else (_OF_ONE_BYTE, _OF_TWO_BYTES)
    for encoding in chain(*orders):
        text = _as_read(line, error.start - first, encoding)
        if text is not None:
            shown.setdefault(text, encoding)
    if not shown:
        return BadInput(
            f"{place}: {byte} is not UTF-8, nor is the line text in a usual encoding; get the file again"
        )
    readings = ", ".join(f"{text!r} as {encoding}" for text, encoding in list(shown.items())[:_READINGS])
    return BadInput(
        f"{place}: {byte} is not UTF-8. The line reads {readings}. Convert the file from the encoding in "
        "which it reads right, with `iconv -f ENCODING -t utf-8`"
    )


def _as_read(line: bytes, place: int, encoding: str) -> str | None:
    """Return what is around a place of a line, in an encoding; None where it cannot be read in it."""
    try:
        text = line.decode(encoding).strip()
        before = len(line[:place].decode(encoding, errors="ignore"))
    except UnicodeDecodeError:
        return None
    if any(unicodedata.category(sign) in ("Cc", "Cn", "Co") for sign in text if sign != "\t"):
        return None
    first = max(0, before - _SHOWN // 2)
    return text[first : first + _SHOWN]
