"""Compiled kernels against torch's calls, in turns within one process: python benchmarks/kernels.py

`Components.update` and `.split` of batches of several sizes, words by Zipf's law, a quarter of padding, on
one thread. Each line has the median processor time of both ways, and the median and quartiles of their ratio,
turn by turn. The first line says what a start costs: numba is imported and the kernels are compiled, or
loaded where they were compiled before. numba comes with ``pip install "attnlib[fast]"``.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
import typer

from attnlib import Components
from attnlib.decomposition import kernels

WORDS = 4_000
BATCHES = [
    (32, 16, 96),
    (32, 16, 512),
    (128, 32, 512),
    (256, 32, 512),
    (4_000, 20, 256),
]  # samples, length, width
NUMBERS_A_TURN = 4_000_000  # small batches are repeated, so that the clock can tell


def seconds(step: Callable[[], object], repeats: int) -> float:
    """Return the processor seconds of one of so many steps."""
    began = time.process_time()
    for _ in range(repeats):
        step()
    return (time.process_time() - began) / repeats


def paired(step: Callable[[], object], turns: int, repeats: int) -> dict[str, list[float]]:
    """Return processor seconds with and without kernels, turn by turn, after a turn that warms up."""
    fewest_numbers = {"kernel": 0, "torch": sys.maxsize}
    taken: dict[str, list[float]] = {way: [] for way in fewest_numbers}
    for _ in range(turns + 1):
        for way, fewest in fewest_numbers.items():
            with patch.object(kernels, "FEWEST_NUMBERS", fewest):
                taken[way].append(seconds(step, repeats))
    return {way: times[1:] for way, times in taken.items()}


def start() -> None:
    """Print how long the first update and split take longer than the next."""
    states, tokens = torch.randn(64, 64, 1024), torch.randint(WORDS, (64, 64))
    components = Components(1024)

    def both() -> None:
        components.update(states, tokens).split(states, tokens)

    with patch.object(kernels, "FEWEST_NUMBERS", 0):
        first, second = seconds(both, 1), seconds(both, 1)
    print(f"a start takes {first - second:.1f} s")


def main(turns: int = 15) -> None:
    torch.set_num_threads(1)
    if not kernels.is_available():
        raise SystemExit('numba is not installed: pip install "attnlib[fast]"')
    start()
    rng = torch.Generator().manual_seed(0)
    chances = 1.0 / torch.arange(1, WORDS + 1)
    print(f"{'samples × length × width':26} {'':8} kernel, ms  torch, ms  kernel / torch")
    for samples, length, width in BATCHES:
        states = torch.randn(samples, length, width, generator=rng)
        lengths = torch.randint(length // 2, length + 1, (samples, 1), generator=rng)
        mask = torch.arange(length) < lengths
        tokens = torch.multinomial(chances, mask.numel(), replacement=True, generator=rng).view_as(mask)
        components = Components(width, n_tokens=WORDS, n_positions=length).update(states, tokens, mask)
        repeats = max(1, NUMBERS_A_TURN // states.numel())
        for name in ("update", "split"):
            step = partial(getattr(components, name), states, tokens, mask)
            times = paired(step, turns, repeats)
            ratios = np.divide(times["kernel"], times["torch"])
            low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            kernel, plain = (1e3 * np.median(times[way]) for way in ("kernel", "torch"))
            size = f"{samples} × {length} × {width}"
            print(f"{size:26} {name:8} {kernel:10.2f} {plain:10.2f}  {ratio:.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main.__doc__ = __doc__
    typer.run(main)
