"""A corpus in shards: memory stays as it is, and time grows with the tokens.

    python benchmarks/corpus_scale.py                        # 100 million tokens through 4 shards, width 64

The first reading of an analysis (:mod:`attnlib.analysis.passes`) over passes of one cross-attention with one
head that are drawn, not computed. Half of the tokens are the source's, about three places in four are
valid, and words follow Zipf's law. Shards are processes, one after the other, whose saved parts are merged.
"""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import torch
import typer

from attnlib.analysis.fit import Fit
from attnlib.analysis.passes import fit_shard
from attnlib.analysis.stream import HoldOut, Shard, Stream
from attnlib.linear_map import compared_as_they_are
from attnlib.report.resume import PartialSums, merged_fit
from attnlib.trace import Attention, Trace

SAMPLES, LENGTH, WORDS, POOL = 256, 20, 32_000, 8
TOKENS = 2 * SAMPLES * LENGTH  # of a batch


@cache
def pool(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """States of some batches, and chances of words; batches take turns with the states."""
    rng = torch.Generator().manual_seed(0)
    chances = 1 / torch.arange(1, WORDS + 1, dtype=torch.float64)
    return torch.randn(POOL, 2, SAMPLES, LENGTH, width, generator=rng), chances.cumsum(0) / chances.sum()


def drawn_pass(number: int, width: int) -> Trace:
    """The pass of a batch, a function of its number."""
    states, chances = pool(width)
    rng = torch.Generator().manual_seed(number)
    uniform = torch.rand(2, SAMPLES, LENGTH, generator=rng, dtype=torch.float64)
    tokens = torch.searchsorted(chances, uniform).clamp(max=WORDS - 1)
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (2, SAMPLES, 1), generator=rng)
    masks = torch.arange(LENGTH) < lengths
    encoder_states, decoder_states = states[number % POOL]
    attention = Attention(
        "cross",
        0,
        query_inputs=decoder_states,
        key_inputs=encoder_states,
        query_site="decoder",
        key_site="encoder",
        maps=compared_as_they_are(decoder_states, encoder_states),
        scale=width**-0.5,
    )
    return Trace(
        source_tokens=tokens[0],
        source_mask=masks[0],
        target_tokens=tokens[1],
        target_outputs=tokens[1],
        target_mask=masks[1],
        attentions=(attention,),
    )


def peak() -> int:
    """The largest resident memory of this process so far, in MB; Linux only."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:"))


def run_shard(folder: str, tokens: int, width: int, part: Shard) -> tuple[float, int, str]:
    """The first pass over a shard: its processor seconds, what was counted, and memory along the way."""
    torch.set_num_threads(1)
    peaks = []

    def progress(_stage: str, read: int) -> None:
        if read in (200, 1_000) or read % 2_000 == 0:
            peaks.append(f"{peak()} MB at {read}")

    drawn_pass(0, width)
    clock = time.process_time()
    stream = Stream(lambda number: drawn_pass(number, width), range(tokens // TOKENS))
    keep = PartialSums(Path(folder), {"tokens": tokens, "width": width})
    counted = valid(fit_shard(stream, part, method="means", keep=keep, progress=progress))
    taken = time.process_time() - clock
    return taken, counted, ", ".join([*peaks, f"{peak()} MB at end"])


def valid(fit: Fit) -> int:
    return sum(own.occurrences for own in fit.components.values())


def measure(tokens: int, width: int, shards: int) -> tuple[float, int]:
    """Processor seconds of all shards and the merge, and what was counted; prints a line a shard."""
    with tempfile.TemporaryDirectory() as folder:
        total = counted = 0
        for shard in range(shards):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:  # whose memory is nobody else's
                own = process.submit(run_shard, folder, tokens, width, Shard(shard, shards, HoldOut(every=1)))
                taken, found, peaks = own.result()
            total, counted = total + taken, counted + found
            print(f"  shard {shard}: {taken:.1f} s of processor time; {peaks}", flush=True)
        clock = time.process_time()
        fit = merged_fit(
            PartialSums(Path(folder), {"tokens": tokens, "width": width}), Shard(0, shards, HoldOut(every=1))
        )
        total += time.process_time() - clock
        assert valid(fit) == counted
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        print(f"  merged: {counted:,} positions, {size:.0f} MB of parts", flush=True)
    return total, counted


def main(tokens: int = 134_000_000, width: int = 64, shards: int = 4) -> None:
    torch.set_num_threads(1)
    taken, counted = measure(tokens, width, shards)
    print(f"{counted:,} tokens, width {width}: {taken:.0f} s of processor time")


if __name__ == "__main__":
    main.__doc__ = __doc__
    typer.run(main)
