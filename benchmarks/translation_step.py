"""A training step of the second paper's translation model against the plain PyTorch loop, at its paper size.

    python benchmarks/translation_step.py [--threads 2] [--rounds 15] [--cpu-time]

Two yardsticks, both `nn.LSTM` and `torch.optim.Adam` at their defaults. *plain* reads padding as if it were
words, which a bidirectional encoder should not; *packed* leaves it out by `pack_padded_sequence`. Two
settings: batches in which all 16 pairs have 15 pieces a side; and an epoch's batches, ours of equal source
lengths, theirs drawn at random and padded to their longest, from sentences about as long as Multi30k's.
Medians over rounds in turn, and their ratios. With `--cpu-time` the seconds are those of the process, for
machines that others share; use one thread then.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.models.bilinear_translator import BilinearTranslator, TranslatorConfig
from attnlib.tasks.corpus import Batch, Corpus, collate
from attnlib.tasks.vocabulary import PAD
from attnlib.texts.piece_corpus import EqualLengthBatches

WORDS, WIDTH, BATCH, PIECES = 8_000, 256, 16, 15


class PlainTranslator(nn.Module):
    """The same network as its equations are usually written, every logit made."""

    def __init__(self, *, packed: bool):
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(WORDS, WIDTH)
        stack = {"num_layers": 2, "batch_first": True, "dropout": 0.5}
        self.encoder = nn.LSTM(WIDTH, WIDTH, bidirectional=True, **stack)
        self.decoder = nn.LSTM(WIDTH, WIDTH, **stack)
        self.query = nn.Linear(WIDTH, 2 * WIDTH)
        self.context = nn.Linear(2 * WIDTH, WIDTH)
        self.hidden = nn.Linear(2 * WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, batch: Batch) -> Tensor:
        embedded = self.embedding(batch.source)
        if self.packed:
            lengths = batch.source_mask.sum(1)
            states, last = self.encoder(
                pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
            )
            states, _ = pad_packed_sequence(states, batch_first=True)
        else:
            states, last = self.encoder(embedded)
        start = tuple(part.view(2, 2, len(batch), WIDTH).mean(1) for part in last)
        decoded, _ = self.decoder(self.embedding(batch.target_input), start)
        scores = self.query(decoded) @ states.transpose(1, 2)
        attention = scores.masked_fill(~batch.source_mask[:, None, :], -torch.inf).softmax(-1)
        joined = torch.cat([self.context(attention @ states), decoded], dim=-1)
        return self.output(self.hidden(joined).relu())

    def loss(self, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(
            self(batch).flatten(0, 1), batch.target_output.flatten(), ignore_index=PAD
        )


def even_batch() -> Batch:
    """All pairs of 15 pieces a side, the end mark among them."""
    words = np.random.default_rng(0).integers(4, WORDS, size=(2, BATCH, PIECES - 1))
    return collate(Corpus.from_ids(list(words[0]), list(words[1])), np.arange(BATCH))


def uneven_corpus() -> Corpus:
    """Lengths like Multi30k's: about 15 pieces a side, both sides of a pair alike, some twice as long."""
    draw = np.random.default_rng(0)
    sources = np.clip(draw.lognormal(2.62, 0.33, size=4_000).round().astype(int), 4, 45)
    targets = np.clip((sources * draw.lognormal(0.02, 0.18, size=4_000)).round().astype(int), 3, 50)
    sides = [[draw.integers(4, WORDS, size=n) for n in lengths] for lengths in (sources, targets)]
    return Corpus.from_ids(*sides)


def step_with(model: nn.Module, batch_at: Callable[[int], Batch], *, fused: bool) -> Callable[[int], None]:
    """One update; torch's default Adam is not fused, the one of our loop is."""
    optimiser = torch.optim.Adam(model.parameters(), fused=fused)

    def step(number: int) -> None:
        batch = batch_at(number)
        optimiser.zero_grad(set_to_none=True)
        model.loss(batch).backward()
        optimiser.step()

    return step


def main() -> None:
    """Measure in turns, print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.process_time if options.cpu_time else time.perf_counter

    corpus, even = uneven_corpus(), even_batch()
    shuffled = np.random.default_rng(1).permutation(len(corpus))

    def at_random(number: int) -> Batch:
        return collate(corpus, np.take(shuffled, range(number * BATCH, (number + 1) * BATCH), mode="wrap"))

    settings = {
        "15 pieces a side": (lambda number: even, lambda number: even),
        "lengths like Multi30k's": (EqualLengthBatches(corpus, BATCH, seed=0), at_random),
    }
    for name, (ours, theirs) in settings.items():
        steps = {
            "ours": step_with(
                BilinearTranslator(TranslatorConfig(), torch.Generator().manual_seed(0)), ours, fused=True
            ),
            "plain": step_with(PlainTranslator(packed=False), theirs, fused=False),
            "packed": step_with(PlainTranslator(packed=True), theirs, fused=False),
        }
        times: dict[str, list[float]] = {kind: [] for kind in steps}
        for number in range(options.rounds + 1):
            for kind, step in steps.items():
                began = clock()
                step(number)
                if number:  # the first round warms up
                    times[kind].append(clock() - began)
        median = {kind: statistics.median(taken) for kind, taken in times.items()}
        print(name)
        for kind, taken in median.items():
            ratio = "" if kind == "ours" else f"   ours takes {median['ours'] / taken:.2f} of it"
            print(f"  {kind:8} {taken * 1e3:7.1f} ms a step{ratio}")


if __name__ == "__main__":
    main()
