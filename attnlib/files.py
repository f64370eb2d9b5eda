"""Write files atomically, in folders that one process at a time writes to."""

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
    """Yield a temporary path that replaces ``path`` when the block ends, and is deleted if it raises.

    The file keeps its permissions; a new file has those that the umask leaves. The temporary file is locked
    while it is written; a temporary file of a dead process is deleted when its file is next written.

    Args:
        path: of the file to write; its folder is made if it does not exist.

    Yields:
        the path to write to.

    Raises:
        BadInput: permission or room is missing; an existing file is unchanged.
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
        number = refusal(error)
        if number is None:
            raise
        way_out = "choose a folder you may write to"
        if number in NO_ROOM:
            way_out = "make room"
        raise BadInput(
            f"cannot write {path}: {os.strerror(number)}; what was there before is unchanged: {way_out}, and "
            "give the same command again"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
        if POSIX:
            os.close(handle)


def _locked_temporary(path: Path) -> tuple[Path, int, int]:
    """Create a temporary file in the folder of a path, and lock it.

    Between these steps another process may take it for the file of a dead process, and delete it; then
    another one is created.

    Returns:
        its path, its descriptor, and the mode that the file gets in the end.
    """
    while True:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
        handle, mode = _created(temporary, like=path)
        if not POSIX or _lock_new_file(handle):
            return temporary, handle, mode
        os.close(handle)
        temporary.unlink(missing_ok=True)


def _lock_new_file(handle: int) -> bool:
    """Lock a file that was just created; return False if another process has locked or deleted it."""
    try:
        is_locked = lock_descriptor(handle, blocking=False)
    except OSError:  # network folders without locks exist; nothing is deleted there
        return True
    return is_locked and os.fstat(handle).st_nlink > 0


def _created(temporary: Path, like: Path) -> tuple[int, int]:
    """Create a file with the permissions of another file, or of a new file if that does not exist.

    Returns:
        its descriptor, and the mode that it gets in the end; until then its owner may write it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    try:
        mode = stat.S_IMODE(like.stat().st_mode)
    except FileNotFoundError:
        handle = os.open(temporary, flags, 0o666)
        return handle, stat.S_IMODE(temporary.stat().st_mode)
    return os.open(temporary, flags, mode | stat.S_IRUSR | stat.S_IWUSR), mode


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk; otherwise a power cut may undo a rename."""
    with suppress(OSError):  # Windows and some network folders cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(folder: str | Path, name: str = ".lock", *, wait: bool = False) -> Iterator[int]:
    """Hold the lock of a folder, and delete the temporary files of dead processes in it.

    The lock ends with the last process that holds it, even if that is killed. The lock file names its holder,
    see :func:`holder`.

    Args:
        folder: made if it does not exist.
        name: of the lock file; a folder may have several locks.
        wait: whether to wait until the lock is free; by default BadInput is raised at once.

    Yields:
        the file descriptor; a child process that inherits it goes on holding the lock.

    Raises:
        BadInput: another process holds the lock, which the message names; or the folder cannot be written.
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
    """Write into a lock file which process holds the lock, and since when."""
    with suppress(OSError):  # on a full disk; the lock is held nevertheless
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {pid}, since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode(), 0)


def holder(folder: Path, name: str = ".lock") -> str:
    """Return who holds, or last held, the lock of a folder: ``process 4711, since 2026-11-25 03:04:05``."""
    return (folder / name).read_text(encoding="utf-8", errors="replace") or "another process"


def sweep(folder: Path, name: str = "") -> None:
    """Delete the temporary files of killed processes in a folder.

    A temporary file that is still locked belongs to a running process, and stays.

    Args:
        folder: to look in.
        name: of a file, to delete only its temporary files.
    """
    for path in folder.glob(f".{escape(name)}*.tmp"):
        with suppress(OSError), path.open("rb") as temporary:  # another process may sweep as well
            if POSIX and lock_descriptor(temporary.fileno(), blocking=False):
                path.unlink()


def require_plain(path: str | Path) -> None:
    """Raise CorruptFile if a path exists and is not a regular file; reading a pipe could block for ever."""
    if Path(path).exists() and not Path(path).is_file():
        raise CorruptFile(f"{path} is a folder, a pipe or a device; expected a file")


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write UTF-8 text so that a reader sees the old file or the new one, never a part."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json_atomic(path: str | Path, content: object) -> None:
    """Write JSON with sorted keys, so that equal contents are equal bytes."""
    write_text_atomic(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
