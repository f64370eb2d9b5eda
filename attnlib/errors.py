"""The errors a user can meet. Each says what was given, what was expected, and the way out."""

import errno
import os
import re
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress
from difflib import get_close_matches


class AttnlibError(Exception):
    """Base of every error that attnlib raises on purpose; the command line prints it without a traceback."""


class BadInput(AttnlibError, ValueError):
    """An argument, parameter or file that cannot be used as it is."""


class UnknownName(BadInput):
    """A name that is not one of the known ones; the message offers the nearest.

    >>> str(UnknownName("task", "one_to_won", ["one_to_one", "scan"]))
    "no task 'one_to_won'; did you mean 'one_to_one'? Known: one_to_one, scan"
    """

    def __init__(self, kind: str, name: str, options: Iterable[str]):
        self.kind, self.name, self.options = kind, name, list(options)
        super().__init__(kind, name, self.options)

    def __str__(self) -> str:
        """The message, made when it is read: near names take long, and most such errors are caught."""
        near = get_close_matches(self.name, self.options, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        more = f", … ({len(self.options)} in all)" if len(self.options) > 30 else ""
        return f"no {self.kind} {self.name!r}{hint} Known: {', '.join(self.options[:30])}{more}"


class DataUnavailable(AttnlibError):
    """A data set that is neither in the local mirror nor in the cache."""


class CorruptFile(AttnlibError):
    """A file whose content is not what its checksum says."""


class Altered(CorruptFile):
    """A file that attnlib wrote itself, and that is not as it was written."""


class NotMeasured(AttnlibError):
    """A number that only training could give, where training was not asked for."""


class TrainingDiverged(AttnlibError):
    """A loss that is not finite; names the step, the seed and the setting."""


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise UnknownName where a name is none of the known ones."""
    if name not in known:
        raise UnknownName(kind, name, known)


def check_at_least(least: int, settings: object, *names: str) -> None:
    """Raise BadInput where one of some settings is smaller; for ``__post_init__``."""
    for name in names:
        if getattr(settings, name) < least:
            raise BadInput(f"{name} is {getattr(settings, name)}; it must be at least {least}")


# What ends a command: our own errors, the machine's refusals, and whoever stops it.

NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
REFUSED = NO_ROOM | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR}
GOES_ON = "what was finished is kept, and the same command goes on from there"
NO_MEMORY = ("DefaultCPUAllocator", "out of memory", "std::bad_alloc")


def refusal(error: BaseException) -> int | None:
    """The number of a refusal by the machine, such as a full disk; None for any other error."""
    found = re.search(r"\(os error (\d+)\)", str(error))  # as safetensors has it
    number = getattr(error, "errno", None) or (int(found[1]) if found else None)
    return number if number in REFUSED else None


class Stopped(KeyboardInterrupt):
    """The process was told to end (SIGTERM), and tidies up as after Ctrl-C."""


def stop_when_told() -> None:
    """From now on SIGTERM ends this process by :class:`Stopped`."""

    def stop(*_: object) -> None:
        raise Stopped

    with suppress(ValueError):  # only the main thread may say so
        signal.signal(signal.SIGTERM, stop)


def line_of(error: BaseException) -> tuple[str, int] | None:
    """An error in one line, and the exit code; None for a mistake of the code, which needs its traceback.

    >>> line_of(Stopped())
    ('stopped; what was finished is kept, and the same command goes on from there', 143)
    """
    if isinstance(error, AttnlibError):
        return f"error: {error}", 2
    if isinstance(error, KeyboardInterrupt):
        return f"stopped; {GOES_ON}", 143 if isinstance(error, Stopped) else 130
    if (number := refusal(error)) is not None:
        where = f": {name}" if (name := getattr(error, "filename", None)) else ""
        return f"error: {os.strerror(number)}{where}; {GOES_ON}", 2
    memory = isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    if memory or isinstance(error, MemoryError):
        return f"error: out of memory; {GOES_ON}: choose smaller sizes", 2
    return None
