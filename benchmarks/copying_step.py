"""A training step of the copying network against the same network written with ``nn.LSTM`` and plain Adam.

    python benchmarks/copying_step.py [--threads 1] [--cell lstm] [--heads 1] [--cpu-time]

Permutations of 40 words, batch 128, width 256, the second paper's size; the two take turns. ``--cpu-time``
counts processor seconds in place of the clock's, for a machine that is shared.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from attnlib.models.copier import Copier, CopierConfig
from attnlib.tasks.copying import copy_batch, draw_sources, words_of


def step_of(config: CopierConfig, length: int, batch_size: int, implementation: str) -> Callable[[], None]:
    """One update, sentences drawn anew; ``fast`` is what recipes run, ``plain`` what anyone would write."""
    model = Copier(config, torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(model.parameters(), fused=implementation == "fast")
    draw = torch.Generator().manual_seed(1)

    def step() -> None:
        batch = copy_batch(draw_sources("permutation", length, batch_size, draw), config.words)
        optimiser.zero_grad(set_to_none=True)
        logits = model(batch, implementation).logits
        nn.functional.cross_entropy(logits.flatten(0, 1), batch.target.flatten()).backward()
        optimiser.step()

    return step


def main() -> None:
    """Measure in turns, print medians and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--cell", default="lstm")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.cpu_time else time.perf_counter

    words = words_of("permutation", options.length)
    config = CopierConfig(words, options.width, options.cell, options.heads)
    steps = {name: step_of(config, options.length, options.batch, name) for name in ("fast", "plain")}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for run in range(options.runs + 1):
        for name, step in steps.items():
            started = clock()
            step()
            if run:  # the first round warms up
                times[name].append(clock() - started)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in median.items():
        print(f"{name:6} {taken * 1e3:7.1f} ms a step   {taken / median['plain']:.2f} × plain")


if __name__ == "__main__":
    main()
