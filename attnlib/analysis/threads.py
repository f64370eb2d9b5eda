"""How many threads a pass is fastest with, by measurement: small models are slower with more."""

import timeit
from collections.abc import Callable

import torch

WORTH = 0.9  # a further thread has to take this much of the time at most


def choose_threads(work: Callable[[], object], most: int | None = None) -> dict[int, float]:
    """Let torch use as many threads as make some work fastest; the seconds that it took with each number.

    Numbers double from 1 up to ``most``, by default what torch uses now, as long as that is worth it.

    >>> before = torch.get_num_threads()
    >>> list(choose_threads(lambda: None, most=1)), torch.get_num_threads()
    ([], 1)
    >>> torch.set_num_threads(before)
    """
    most = torch.get_num_threads() if most is None else most
    torch.set_num_threads(1)
    if most == 1:
        return {}
    found, best = {}, 1
    for count in sorted({*(2**n for n in range(most.bit_length()) if 2**n < most), most}):
        torch.set_num_threads(count)
        work()  # the first call of a kind is slow
        found[count] = min(timeit.repeat(work, number=1, repeat=2))
        if count > 1 and found[count] > WORTH * found[best]:
            break
        best = count
    torch.set_num_threads(best)
    return found
