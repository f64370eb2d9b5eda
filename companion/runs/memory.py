"""How a process that trains handles freed memory."""

import ctypes
from functools import cache

# Settings of mallopt, from glibc's malloc.h.
TRIM_THRESHOLD = -1  # bytes free at the end of the heap from which on the heap is shortened
MMAP_MAX = -4  # how many blocks may have pages of their own, which go back as soon as they are freed
NO_LIMIT = 2**31 - 1  # bytes: the heap is never shortened


@cache
def keep_freed_memory() -> bool:
    """Tell the C library of this process to keep the memory that is freed.

    glibc returns large blocks to the system as soon as they are freed. The next update needs gradients and
    logits of the same sizes, and the system clears each of their pages again: an update of a translator takes
    a seventh longer for it (``benchmarks/training_step.py``). No number changes. The process stays as large
    as it was at its largest.

    Returns:
        True if the C library has such a setting, as glibc does.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    is_set = [mallopt(TRIM_THRESHOLD, NO_LIMIT), mallopt(MMAP_MAX, 0)]
    return all(is_set)
