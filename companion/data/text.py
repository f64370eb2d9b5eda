"""Read text files, plain or compressed with gzip; an error names the file and the line."""

import gzip
import zlib
from pathlib import Path

from attnlib.errors import BadInput, CorruptFile, DataUnavailable

_GZIP = b"\x1f\x8b"


def read_text(path: str | Path) -> str:
    """The whole file as text, decompressed if it is gzip by its first bytes, without a byte-order mark.

    Raises:
        DataUnavailable: there is no such file, or it cannot be read.
        CorruptFile: broken gzip.
        BadInput: not UTF-8.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFile(f"{path} is not a complete gzip file ({error}); get it again") from error
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror}; check the path") from error
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; "
            "convert the file, say with `iconv -f latin1 -t utf-8`"
        ) from error


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file without their ends; errors as in :func:`read_text`.

    Only a newline ends a line: ``str.splitlines`` would also split at the odd U+2028 or U+0085 inside a
    sentence, and the lines of two parallel files would no longer correspond.
    """
    lines = read_text(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_parallel(source: str | Path, target: str | Path) -> tuple[list[str], list[str]]:
    """The lines of two files of which line i of one translates line i of the other.

    Raises:
        BadInput: the files have different numbers of lines; and as in :func:`read_text`.
    """
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        longer, shorter = (source, target) if len(sources) > len(targets) else (target, source)
        line = min(len(sources), len(targets)) + 1
        raise BadInput(
            f"parallel files must have as many lines: {source} has {len(sources)}, "
            f"{target} has {len(targets)}; line {line} of {longer} has no counterpart in {shorter}"
        )
    return sources, targets
