"""A training step of the copying network against the same network written with ``nn.LSTM`` and plain Adam.

    python benchmarks/copying_step.py [--threads 2] [--cell lstm] [--heads 1] [--cpu-time]

Permutations of 40 words, batch 128, width 256, the second paper's size; the two take turns, each in a process
of its own. *fast* is what attnlib runs: with one thread its own recurrence, with several torch's.
``--cpu-time`` counts processor seconds in place of the clock's, for a machine that is shared; use one thread
then.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import torch
from contenders import in_turns, quotient
from torch import nn

from attnlib.models.copier import Copier, CopierConfig
from attnlib.training.allocator import keep_freed_memory
from companion.data.synthetic import copy_batch, draw_sources, words_of


def step_of(config: CopierConfig, length: int, batch_size: int, implementation: str) -> Callable[[int], None]:
    """One update, sentences drawn anew; ``plain`` is what anyone would write."""
    if implementation == "fast":
        keep_freed_memory()
    model = Copier(config, torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(model.parameters(), fused=implementation == "fast")
    draw = torch.Generator().manual_seed(1)

    def step(number: int) -> None:
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
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--cell", default="lstm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    config = CopierConfig(words_of("permutation", options.length), options.width, options.cell, options.heads)
    makers = {
        name: partial(step_of, config, options.length, options.batch, name) for name in ("fast", "plain")
    }
    times = in_turns(makers, options.rounds, threads=options.threads, cpu_time=options.cpu_time)
    for name, taken in times.items():
        told = f"   {quotient(taken, times['plain'])} × plain" if name == "fast" else ""
        print(f"{name:6} {statistics.median(taken) * 1e3:7.1f} ms a step{told}")


if __name__ == "__main__":
    main()
