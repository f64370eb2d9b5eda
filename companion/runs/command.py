"""What the commands of runs and results share: ``python -m companion.runs.answer`` and its like."""

import ctypes
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import wraps

from attnlib.errors import line_of, stop_when_told


def parser_of(module: str, told: str) -> ArgumentParser:
    return ArgumentParser(
        prog=f"python -m {module}", description=told, formatter_class=RawDescriptionHelpFormatter
    )


def errors_in_a_line(main: Callable[..., int]) -> Callable[..., int]:
    """What cannot be done, and what stops it, is said in a line, with exit code 2 (or 130, 143)."""

    @wraps(main)
    def guarded(arguments: list[str] | None = None) -> int:
        stop_when_told()
        try:
            return main(arguments)
        except BaseException as error:
            if (told := line_of(error)) is None:
                raise
            print(told[0], file=sys.stderr)
            return told[1]

    return guarded


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt, in glibc's malloc.h
_MOST = 2**31 - 1  # bytes


def keep_freed_memory() -> bool:
    """Tell the C library of this process not to give freed memory back; for processes that train.

    glibc gives large blocks back as soon as they are freed, and the next step, which wants gradients and
    logits of the same sizes, has each page cleared anew. No result changes. The process stays as large as it
    was at its largest. Returns whether there is such a setting here: with glibc there is.
    """
    try:
        setting = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no mallopt; or no way to look, as on Windows
        return False
    # Blocks come from the heap and not from pages of their own; and the heap is never made shorter.
    wanted = {_MMAP_MAX: 0, _TRIM_THRESHOLD: _MOST}
    return all([setting(name, value) for name, value in wanted.items()])
