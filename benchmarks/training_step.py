"""A training step against the plain PyTorch loop anyone would write, and against a matrix product.

    python benchmarks/training_step.py [--threads 2] [--words 4000]

Prints, from one run on one machine: seconds a step of ours and of the plain loop in turn (their medians and
ratio),
and the floating-point rate of our step as a share of the rate of a large matrix product of the same width.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.corpus import Batch, Corpus, collate
from attnlib.training.vocabulary import PAD
from companion.runs.loop import prediction_loss

BATCH, LENGTH = 128, 20


class PlainSeq2Seq(nn.Module):
    """The reference: embeddings, two ``nn.LSTM``, masked dot attention, a linear readout."""

    def __init__(self, words: int, width: int):
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.readout = nn.Linear(2 * width, words)

    def forward(self, batch: Batch) -> Tensor:
        encoder_states, last = self.encoder(self.source(batch.source))
        decoder_states, _ = self.decoder(self.target(batch.target_input), last)
        scores = decoder_states @ encoder_states.transpose(1, 2)
        attention = scores.masked_fill(batch.source.eq(PAD)[:, None, :], -torch.inf).softmax(-1)
        return self.readout(torch.cat([decoder_states, attention @ encoder_states], dim=-1))


def step_with(model: nn.Module, loss: Callable[[], Tensor], *, fused: bool) -> Callable[[], None]:
    """One update of Adam with a clipped gradient; torch's default Adam is not fused, ours is."""
    optimiser = torch.optim.Adam(model.parameters(), fused=fused)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def gemm_rate(width: int) -> float:
    """Floating-point operations a second of (batch · length × width) @ (width × 4 width)."""
    left, right = torch.randn(BATCH * LENGTH, width), torch.randn(width, 4 * width)
    best = min(seconds(lambda: left @ right) for _ in range(30))
    return 2 * left.shape[0] * width * 4 * width / best


def operations(words: int, width: int) -> float:
    """Multiply-adds × 2 of one update: forward once, backward twice as much."""
    tokens = BATCH * LENGTH
    recurrent = 2 * 2 * tokens * (width * 4 * width * 2)  # two LSTMs, input and recurrent products
    attention = 2 * 2 * tokens * LENGTH * width
    readout = 2 * tokens * 2 * width * words
    return 3 * (recurrent + attention + readout)


def main() -> None:
    """Measure in turns, print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", type=int, default=4000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    draw = np.random.default_rng(0)
    words = draw.integers(4, options.words, size=(2, BATCH, LENGTH - 1))
    batch = collate(Corpus.from_ids(list(words[0]), list(words[1])), np.arange(BATCH))
    uneven = [row[: LENGTH - 1 - i % 4] for i, row in enumerate(words[0])]
    padded = collate(Corpus.from_ids(uneven, list(words[1])), np.arange(BATCH))

    config = ModelConfig("AED", options.words, options.words, cell="lstm", width=options.width)
    ours = EncoderDecoder(config, torch.Generator().manual_seed(0))
    plain = PlainSeq2Seq(options.words, options.width)

    def our_loss(given: Batch) -> Tensor:
        return prediction_loss(ours(given).logits, given.target_output, given.target_mask)

    def plain_loss() -> Tensor:
        return nn.functional.cross_entropy(
            plain(batch).flatten(0, 1), batch.target_output.flatten(), ignore_index=PAD
        )

    steps = {
        "ours": step_with(ours, lambda: our_loss(batch), fused=True),
        "ours, uneven lengths": step_with(ours, lambda: our_loss(padded), fused=True),
        "plain": step_with(plain, plain_loss, fused=False),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for run in range(options.runs + 1):
        for name, step in steps.items():
            taken = seconds(step)
            if run:  # the first round warms up
                times[name].append(taken)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in median.items():
        print(f"{name:22} {taken * 1e3:7.1f} ms a step   {taken / median['plain']:.2f} × plain")
    peak, rate = gemm_rate(options.width), operations(options.words, options.width) / median["ours"]
    print(
        f"matrix product {peak / 1e9:.0f} GFLOP/s; our step {rate / 1e9:.0f} GFLOP/s, {rate / peak:.0%} of it"
    )


if __name__ == "__main__":
    main()
