"""Files that appear whole or not at all."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlib.errors import BadInput


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``; replaces it when the block ends well, vanishes when it does not.

    Raises:
        BadInput: the folder cannot be written (the message names it).
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; choose a folder you may write to") from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write UTF-8 text so that a reader sees the old file or the new one, never a part."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json_atomic(path: str | Path, content: object) -> None:
    """Write JSON with sorted keys, so that equal contents are equal bytes."""
    write_text_atomic(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


# The digits of a number that are kept.

DIGITS = 7  # significant digits: more than any claim needs, fewer than bytes to review


def rounded(content: object) -> object:
    """The same content with every float rounded to :data:`DIGITS` significant digits; NaN becomes null."""
    if isinstance(content, float):
        return None if content != content else float(f"{content:.{DIGITS}g}")
    if isinstance(content, dict):
        return {str(name): rounded(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content
