"""Freed memory that a training process keeps, for it will want as much at the next step."""

import ctypes

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
