"""Files that appear whole or not at all, in folders that one process at a time writes to."""

import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from filelock import lock_descriptor

from attnlib.errors import NO_ROOM, BadInput, CorruptFile, refusal

POSIX = os.name == "posix"  # elsewhere a file that is open cannot be renamed


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``; replaces it when the block ends well, vanishes when it does not.

    The file keeps the permissions that it had; a new one has those that the umask leaves.
    The temporary is locked while it is written; one whose writer is dead goes when its file is next written.

    Raises:
        BadInput: it cannot be written, for want of permission or of room; what was there is untouched.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent, f"{path.name}.")
        temporary, handle, mode = _locked_temporary(path)
        if not POSIX:
            os.close(handle)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; choose a folder you may write to") from error
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
        sync_folder(path.parent)
    except Exception as error:
        if (number := refusal(error)) is None:
            raise
        way_out = "make room" if number in NO_ROOM else "choose a folder you may write to"
        raise BadInput(
            f"cannot write {path}: {os.strerror(number)}; what was there before is untouched: {way_out}, and "
            "give the same command again"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
        if POSIX:
            os.close(handle)


def _locked_temporary(path: Path) -> tuple[Path, int, int]:
    """Create a temporary file beside a path, and lock it.

    Between the two another process may take it for a dead writer's and delete it; then a new one is made.

    Returns:
        its path, its descriptor, and the mode that the file is to have in the end.
    """
    while True:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
        handle, mode = _created(temporary, like=path)
        if not POSIX or _lock_new_file(handle):
            return temporary, handle, mode
        os.close(handle)
        temporary.unlink(missing_ok=True)


def _lock_new_file(handle: int) -> bool:
    """Lock a file that was just created; False where another process has locked or deleted it meanwhile."""
    try:
        is_locked = lock_descriptor(handle, blocking=False)
    except OSError:  # some network folders have no locks, and nothing there is swept
        return True
    return is_locked and os.fstat(handle).st_nlink > 0


def _created(temporary: Path, like: Path) -> tuple[int, int]:
    """Create a file with the permissions of another, or else those of any new file.

    Returns:
        its descriptor, and the mode that it is to have in the end; meanwhile its owner may write it.
    """
    try:
        mode = stat.S_IMODE(like.stat().st_mode)
    except FileNotFoundError:
        mode = None
    asked = 0o666 if mode is None else mode | stat.S_IRUSR | stat.S_IWUSR
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, asked)
    if mode is None:
        mode = stat.S_IMODE(temporary.stat().st_mode)
    return handle, mode


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk; otherwise a power cut may lose a file that was renamed."""
    with suppress(OSError):  # Windows and some network folders cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(folder: str | Path, name: str = ".lock", *, wait: bool = False) -> Iterator[int]:
    """Hold the lock of a folder, and delete the temporary files that dead processes left in it.

    The lock ends with the last process that holds it, killed or not. The file says who holds it: see
    :func:`holder`.

    Args:
        folder: made if it does not exist.
        name: of the lock's file; a folder may have several locks.
        wait: until the lock is free; by default a lock that is held is refused at once.

    Yields:
        The file descriptor, which a child process may inherit and hold further.

    Raises:
        BadInput: another process holds the lock, and the message says which, since when; or the folder cannot
            be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise BadInput(
            f"cannot write {folder}: {error.strerror}; choose a folder you may write to"
        ) from error
    try:
        if not lock_descriptor(handle, blocking=wait):
            raise BadInput(
                f"{folder} is being written by {holder(folder, name)}: wait for it to end, or end it"
            )
        record_holder(handle, os.getpid())
        sweep(folder)
        yield handle
    finally:
        os.close(handle)


def record_holder(handle: int, pid: int) -> None:
    """Write into a lock which process holds it, from now on."""
    with suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {pid}, since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode(), 0)


def holder(folder: Path, name: str = ".lock") -> str:
    """Who holds, or held last, the lock of a folder: ``process 4711, since 2026-11-25 03:04:05``."""
    return (folder / name).read_text(encoding="utf-8", errors="replace") or "another process"


def sweep(folder: Path, name: str = "") -> None:
    """Delete the temporary files of killed processes in a folder, or those of one file.

    A temporary file that is still locked has a living writer and stays.
    """
    for path in folder.glob(f".{escape(name)}*.tmp"):
        with suppress(OSError), path.open("rb") as temporary:  # another process may sweep as well
            if POSIX and lock_descriptor(temporary.fileno(), blocking=False):
                path.unlink()


def require_plain(path: str | Path) -> None:
    """Raise CorruptFile where what is there is no file: a pipe without a writer would be read for ever."""
    if Path(path).exists() and not Path(path).is_file():
        raise CorruptFile(f"{path} is a folder, a pipe or a device; expected a file")


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write UTF-8 text so that a reader sees the old file or the new one, never a part."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json_atomic(path: str | Path, content: object) -> None:
    """Write JSON with sorted keys, so that equal contents are equal bytes."""
    write_text_atomic(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
