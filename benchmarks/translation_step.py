"""A training step of the second paper's translation model against the plain PyTorch loop, at its paper size.

    python benchmarks/translation_step.py [--threads 2] [--rounds 25] [--cpu-time]

Two yardsticks, both `nn.LSTM` and `torch.optim.Adam` at their defaults, each in a process of its own with
the defaults of its allocator. *plain* reads padding as if it were words, which a bidirectional encoder should
not; *packed* leaves it out by `pack_padded_sequence`. Two settings: batches in which all 16 pairs have 15
pieces a side; and an epoch's batches, ours of equal source lengths, theirs drawn at random and padded to
their longest, from sentences about as long as Multi30k's. Medians over rounds in turn, and of the ratios of
turns, with quartiles. With `--cpu-time` the seconds are those of the process, for machines that others share;
use one thread then.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from contenders import in_turns, quotient
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.allocator import keep_freed_memory
from attnlib.training.corpus import Batch, Corpus, collate
from attnlib.training.vocabulary import PAD
from companion.data.pieces import EqualLengthBatches

WORDS, WIDTH, BATCH, PIECES = 8_000, 256, 16, 15
EVEN, UNEVEN = "15 pieces a side", "lengths like Multi30k's"


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


def at_random(corpus: Corpus, number: int) -> Batch:
    """The next 16 pairs of a shuffled corpus."""
    shuffled = np.random.default_rng(1).permutation(len(corpus))
    return collate(corpus, np.take(shuffled, range(number * BATCH, (number + 1) * BATCH), mode="wrap"))


def ours(setting: str) -> Callable[[int], None]:
    """As attnlib trains: batches of equal source lengths, a fused Adam, memory kept."""
    keep_freed_memory()
    model = BilinearTranslator(TranslatorConfig(), torch.Generator().manual_seed(0))
    even, batches = even_batch(), EqualLengthBatches(uneven_corpus(), BATCH, seed=0)
    batch_at = batches if setting == UNEVEN else lambda number: even
    return step_with(model, batch_at, fused=True)


def theirs(setting: str, *, packed: bool) -> Callable[[int], None]:
    """As anyone would write it: torch's default Adam is not fused."""
    even, corpus = even_batch(), uneven_corpus()
    batch_at = partial(at_random, corpus) if setting == UNEVEN else lambda number: even
    return step_with(PlainTranslator(packed=packed), batch_at, fused=False)


def step_with(model: nn.Module, batch_at: Callable[[int], Batch], *, fused: bool) -> Callable[[int], None]:
    """One update."""
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
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    for setting in (EVEN, UNEVEN):
        makers = {
            "ours": partial(ours, setting),
            "plain": partial(theirs, setting, packed=False),
            "packed": partial(theirs, setting, packed=True),
        }
        times = in_turns(makers, options.rounds, threads=options.threads, cpu_time=options.cpu_time)
        print(setting)
        for kind, taken in times.items():
            told = "" if kind == "ours" else f"   ours takes {quotient(times['ours'], taken)} of it"
            print(f"  {kind:8} {statistics.median(taken) * 1e3:7.1f} ms a step{told}")


if __name__ == "__main__":
    main()
