"""Speed of `Components`, as ratios within one run: python benchmarks/components.py

The yardstick is `states.sum()` over the same tensor, timed in turns with each candidate, so that a busy
machine slows both; medians are compared. The promise is `update` within 6 times the yardstick on two cores.
On a machine that runs other things as well, set OMP_WAIT_POLICY=passive: threads that spin while they wait
for each other measure the neighbours instead.
"""

import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import torch
from timing import command_line, seconds

from attnlib.decomposition.components import Components

SENTENCES, POSITIONS, WIDTH, WORDS = 4_000, 20, 256, 4_000
PROMISE = 6.0
EVICT_MB = 600  # written between any two timings: more than a cache holds


def naive_update(tables: dict[str, torch.Tensor], states, tokens, mask) -> None:
    """What one would write first: masked einsum and index_add_, in float32."""
    weights = mask.to(states.dtype)
    tables["position_sums"] += torch.einsum("bs,bsd->sd", weights, states)
    tables["position_counts"] += weights.sum(0)
    tables["token_sums"].index_add_(0, tokens[mask], states[mask])
    tables["token_counts"].index_add_(0, tokens[mask], weights[mask])


def pandas_components(states, tokens, mask) -> None:
    """The definitions as two group-bys."""
    places = pd.DataFrame(states[mask].numpy())
    position = mask.nonzero()[:, 1].numpy()
    means = places.groupby(position).transform("mean")
    (places - means).groupby(tokens[mask].numpy()).mean()


def compare(candidate: Callable[[], object], states: torch.Tensor, repeats: int) -> tuple[float, float]:
    """Median milliseconds of the yardstick and of the candidate.

    Both meet the states as a batch of a corpus is met, in memory: some server caches hold all 82 MB, and a
    sum repeated over the same tensor would then be timed against the cache.
    """
    elsewhere = torch.zeros(EVICT_MB * 250_000)

    def timed(step: Callable[[], object]) -> float:
        elsewhere.add_(1)
        return 1e3 * seconds(step)

    turns = [(timed(states.sum), timed(candidate)) for _ in range(repeats + 2)]
    return tuple(map(statistics.median, zip(*turns[2:], strict=True)))


def speed(generator: torch.Generator, repeats: int) -> None:
    states = torch.randn(SENTENCES, POSITIONS, WIDTH, generator=generator)
    lengths = torch.randint(POSITIONS // 2, POSITIONS + 1, (SENTENCES, 1), generator=generator)
    full = torch.ones(SENTENCES, POSITIONS, dtype=torch.bool)
    ragged = torch.arange(POSITIONS) < lengths
    uniform = torch.randint(WORDS, (SENTENCES, POSITIONS), generator=generator)
    shares = 1.0 / torch.arange(1, WORDS + 1)  # as in text, by Zipf's law
    zipf = torch.multinomial(shares, SENTENCES * POSITIONS, replacement=True, generator=generator)
    zipf = zipf.view(SENTENCES, POSITIONS)
    print(f"{torch.get_num_threads()} threads, {states.nbytes / 1e6:.0f} MB of states, median of {repeats}")
    print(f"{'':42}{'sum ms':>8}{'ms':>9}{'ratio':>8}{'GB/s':>7}")
    candidates: dict[str, tuple[Callable[[], object], int]] = {}
    for words, tokens in (("uniform", uniform), ("Zipf", zipf)):
        for padding, mask in (("none", full), ("a quarter", ragged)):
            update = partial(Components(WORDS, POSITIONS, WIDTH).update, states, tokens, mask)
            candidates[f"update: {words} words, padding: {padding}"] = update, repeats
    sums = {"position": (POSITIONS, WIDTH), "token": (WORDS, WIDTH)}
    tables = {f"{name}_sums": torch.zeros(shape) for name, shape in sums.items()}
    tables |= {f"{name}_counts": torch.zeros(shape[0]) for name, shape in sums.items()}
    fitted = Components(WORDS, POSITIONS, WIDTH).update(states, zipf, ragged)
    given = states, zipf, ragged
    candidates["split"] = partial(fitted.split, *given), repeats // 3 + 1
    candidates["einsum and index_add_"] = partial(naive_update, tables, *given), repeats // 3 + 1
    candidates["pandas group-by"] = partial(pandas_components, *given), 3
    for name, (candidate, times) in candidates.items():
        yardstick, taken = compare(candidate, states, times)
        ratio = taken / yardstick
        verdict = f"  {'within' if ratio <= PROMISE else 'OVER'} {PROMISE:g}" if "update" in name else ""
        rate = states.nbytes / taken / 1e6
        print(f"{name:42}{yardstick:8.2f}{taken:9.2f}{ratio:8.1f}{rate:7.1f}{verdict}")


def main() -> None:
    arguments = command_line(__doc__, threads=2, repeats=30).parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, numpy {np.__version__}, pandas {pd.__version__}")
    speed(torch.Generator().manual_seed(0), arguments.repeats)


if __name__ == "__main__":
    main()
