"""The errors that a user can meet: each message says what was given, what was expected, and what to do."""

import errno
import os
import re
import signal
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches

MOST_NAMES = 30  # that a message lists


class AttnlibError(Exception):
    """Base of every error that attnlib raises on purpose; the command line prints it without a traceback."""


class BadInput(AttnlibError, ValueError):
    """An argument, parameter or file that cannot be used as it is."""


class UnknownName(BadInput):
    """A name that is not one of the known names; the message offers the most similar one.

    Args:
        kind: of thing that has such names, such as "task".
        name: the unknown name.
        options: the known names.

    Example:
        >>> str(UnknownName("task", "one_to_won", ["one_to_one", "scan"]))
        "no task 'one_to_won'; did you mean 'one_to_one'? Known: one_to_one, scan"
    """

    def __init__(self, kind: str, name: str, options: Iterable[str]):
        self.kind, self.name, self.options = kind, name, list(options)
        super().__init__(kind, name, self.options)

    def __str__(self) -> str:
        """Return the message; it is made only when it is read, because a search for similar names is slow."""
        similar = get_close_matches(self.name, self.options, n=1, cutoff=0.5)
        hint = "."
        if similar:
            hint = f"; did you mean {similar[0]!r}?"
        listed = ", ".join(self.options[:MOST_NAMES])
        if len(self.options) > MOST_NAMES:
            listed += f", … ({len(self.options)} in all)"
        return f"no {self.kind} {self.name!r}{hint} Known: {listed}"


class DataUnavailable(AttnlibError):
    """A data set that is neither in the local mirror nor in the cache."""


class CorruptFile(AttnlibError):
    """A file whose content does not agree with its checksum or its format."""


class Altered(CorruptFile):
    """A file that attnlib wrote and that has been altered since."""


class NotMeasured(AttnlibError):
    """A number that only training could provide, where training was not requested."""


class TrainingDiverged(AttnlibError):
    """A loss that is not finite; the message names the step, the seed and the setting."""


def check_known(kind: str, name: str, options: Collection[str]) -> None:
    """Raise UnknownName if a name is not one of the options.

    Args:
        kind: of thing that has such names, such as "task".
        name: to check.
        options: the known names.
    """
    if name not in options:
        raise UnknownName(kind, name, options)


def check_at_least(least: int, settings: object, *names: str) -> None:
    """Raise BadInput if a setting is smaller than allowed; for use in ``__post_init__``.

    Args:
        least: smallest value allowed.
        settings: an object with the settings as attributes.
        *names: of the settings to check.
    """
    for name in names:
        value = getattr(settings, name)
        if value < least:
            raise BadInput(f"{name} is {value}; it must be at least {least}")


def first_names(names: Sequence[str], *, most: int) -> str:
    """Return the first names of a list for a message, and how many more there are.

    Args:
        names: any number of them.
        most: how many are named.

    Returns:
        The names with commas between them; an empty text for none.

    Example:
        >>> first_names(["a", "b", "c", "d"], most=2)
        'a, b and 2 more'
    """
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text


# -- ends of a command: errors of this library, refusals by the operating system, and signals --

NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
REFUSED = NO_ROOM | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR}
GOES_ON = "what was finished is kept, and the same command goes on from there"
NO_MEMORY = ("DefaultCPUAllocator", "out of memory", "std::bad_alloc")


def refusal(error: BaseException) -> int | None:
    """Return the number of a refusal by the operating system, such as a full disk; None for other errors."""
    number = getattr(error, "errno", None)
    if not number:
        match = re.search(r"\(os error (\d+)\)", str(error))  # in a message of safetensors
        number = int(match[1]) if match else None
    return number if number in REFUSED else None


class Stopped(KeyboardInterrupt):
    """The process received SIGTERM, and cleans up as after Ctrl-C."""


def stop_on_sigterm() -> None:
    """Raise :class:`Stopped` in this process when it receives SIGTERM."""

    def stop(*_: object) -> None:
        raise Stopped

    with suppress(ValueError):  # only the main thread may set a handler
        signal.signal(signal.SIGTERM, stop)


def line_of(error: BaseException) -> tuple[str, int] | None:
    """Return an error in one line, and the exit code; None for a bug, which needs its traceback.

    Example:
        >>> line_of(Stopped())
        ('stopped; what was finished is kept, and the same command goes on from there', 143)
    """
    if isinstance(error, AttnlibError):
        return f"error: {error}", 2
    if isinstance(error, KeyboardInterrupt):
        return f"stopped; {GOES_ON}", 143 if isinstance(error, Stopped) else 130
    number = refusal(error)
    if number is not None:
        reason = os.strerror(number)
        filename = getattr(error, "filename", None)
        if filename:
            reason = f"{reason}: {filename}"
        return f"error: {reason}; {GOES_ON}", 2
    if _is_out_of_memory(error):
        return f"error: out of memory; {GOES_ON}: choose smaller sizes", 2
    return None


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(words in message for words in NO_MEMORY)
