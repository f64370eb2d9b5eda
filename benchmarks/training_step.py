"""A training step of the networks of Part III against plain PyTorch: python benchmarks/training_step.py

The two take turns, each in a process and on a thread of its own, in processor time. Ours keeps freed memory,
as every process that trains does (:mod:`companion.runs.memory`). Printed are the median milliseconds of each,
and the median of ours / plain of the same turn with its quartiles.

* translator: a batch of 16 pairs of 15 pieces a side. *Plain* is ``PlainTranslator`` of
  ``benchmarks/training_step.py`` at commit d193d24a: the network of Snell et al. (2021) as its equations are
  usually written, with ``nn.LSTM``, every logit and the default Adam.
* copier: 128 permutations of 40 words. *Plain* leaves the recurrence to ``nn.LSTM``, with the default Adam,
  as at that commit.

The code that the paper's authors published is not part of this repository; the plain networks have its layers
and sizes.
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Literal

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.models.vocabulary import PAD
from companion.runs.memory import keep_freed_memory
from notebooks.shared.trainings.permutation_copying import (
    Copier,
    CopierConfig,
    copy_batch,
    draw_sources,
    words_of,
)

WIDTH = 256
PIECES, PAIRS, LENGTH = 8_000, 16, 15
SENTENCES, PERMUTED_WORDS = 128, 40
AIMS = {"translator": 0.72, "copier": 0.77}

Step = Callable[[], None]


class PlainTranslator(nn.Module):
    """The translation model as its equations are usually written, with a logit for every place."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PIECES, WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, dropout=0.5, bidirectional=True)
        self.decoder = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, dropout=0.5)
        self.query = nn.Linear(WIDTH, 2 * WIDTH)
        self.context = nn.Linear(2 * WIDTH, WIDTH)
        self.hidden = nn.Linear(2 * WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, PIECES)

    def forward(self, batch: Batch) -> Tensor:
        encoder_states, (hidden, cell) = self.encoder(self.embedding(batch.source))
        start = [last.view(2, 2, len(batch), WIDTH).mean(1) for last in (hidden, cell)]  # over directions
        decoder_states, _ = self.decoder(self.embedding(batch.target_input), start)
        scores = self.query(decoder_states) @ encoder_states.transpose(1, 2)
        attention = scores.masked_fill(~batch.source_mask[:, None, :], -torch.inf).softmax(-1)
        context = self.context(attention @ encoder_states)
        hidden_states = self.hidden(torch.cat([context, decoder_states], dim=-1)).relu()
        return self.output(hidden_states)  # (batch, target length, pieces)


def training_step(model: nn.Module, loss: Callable[[], Tensor], *, fused: bool) -> Step:
    """Return a function that updates the model once; the default Adam of torch is not fused."""
    optimiser = torch.optim.Adam(model.parameters(), fused=fused)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()

    return step


def our_translator() -> Step:
    """Return an update of our translator."""
    batch = translated_batch()
    model = BilinearTranslator(TranslatorConfig(), torch.Generator().manual_seed(0))
    return training_step(model, lambda: model.loss(batch), fused=True)


def plain_translator() -> Step:
    """Return an update of the plain translator, on the same batch."""
    batch = translated_batch()
    with torch.random.fork_rng(devices=[]):  # nn.Module takes no generator
        torch.manual_seed(0)
        model = PlainTranslator()

    def loss() -> Tensor:
        logits = model(batch).flatten(0, 1)
        return cross_entropy(logits, batch.target_output.flatten(), ignore_index=PAD)

    return training_step(model, loss, fused=False)


def translated_batch() -> Batch:
    """Return pairs of random pieces, all of one length, each with its end mark."""
    pieces = np.random.default_rng(0).integers(4, PIECES, size=(2, PAIRS, LENGTH - 1))
    corpus = Corpus.from_ids(list(pieces[0]), list(pieces[1]))
    return collate(corpus, np.arange(PAIRS))


def copier(implementation: Literal["fast", "plain"], *, fused: bool) -> Step:
    """Return an update of the copier."""
    words = words_of("permutation", PERMUTED_WORDS)
    generator = torch.Generator().manual_seed(1)
    batch = copy_batch(draw_sources("permutation", PERMUTED_WORDS, SENTENCES, generator), words)
    model = Copier(CopierConfig(words, WIDTH), torch.Generator().manual_seed(0))

    def loss() -> Tensor:
        logits = model(batch, implementation).logits.flatten(0, 1)
        return cross_entropy(logits, batch.target.flatten())

    return training_step(model, loss, fused=fused)


UPDATES = {
    "translator": (our_translator, plain_translator),
    "copier": (partial(copier, "fast", fused=True), partial(copier, "plain", fused=False)),
}

# In the process of each way.


def prepare(make_step: Callable[[], Step], keeps_memory: bool) -> None:
    """Make the step that this process repeats, and take it once to warm up."""
    global repeated_step
    torch.set_num_threads(1)
    if keeps_memory:
        keep_freed_memory()
    repeated_step = make_step()
    repeated_step()


def seconds() -> float:
    """Return the processor seconds that the step of this process takes."""
    began = time.process_time()
    repeated_step()
    return time.process_time() - began


def main(turns: int = 25) -> None:
    print(f"torch {torch.__version__}, one thread each, {turns} turns")
    processes = get_context("spawn")
    for name, (our_way, plain_way) in UPDATES.items():
        with (
            ProcessPoolExecutor(1, processes, prepare, (our_way, True)) as our_process,
            ProcessPoolExecutor(1, processes, prepare, (plain_way, False)) as plain_process,
        ):
            pairs = [
                (our_process.submit(seconds).result(), plain_process.submit(seconds).result())
                for _ in range(turns)
            ]
        ours, plain = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
        low, ratio, high = statistics.quantiles((ours / plain for ours, plain in pairs), n=4)
        print(
            f"{name:10} ours {ours:6.1f} ms, plain {plain:6.1f} ms, ours / plain {ratio:.2f} "
            f"[{low:.2f}, {high:.2f}], aim {AIMS[name]}",
            flush=True,
        )


if __name__ == "__main__":
    main.__doc__ = __doc__
    typer.run(main)
