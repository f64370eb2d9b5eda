"""A training step of attnlib's networks against the same network as anyone would write it, at a paper's size.

    python benchmarks/training_step.py translator [--threads 2] [--rounds 25] [--cpu-time]

Ways take turns, each in a process of its own with the defaults of its allocator. Printed are medians of
milliseconds, and of *ours* / theirs of the same turn with quartiles. ``--cpu-time`` counts processor seconds
in place of the clock's, for a machine that is shared; use one thread then.

aed         of Aitken et al., batch 128, with 20 words a side and with uneven lengths, against two nn.LSTM and
            masked dot attention; and our rate as a share of that of a matrix product
translator  of Snell et al., batch 16: all pairs of 15 pieces a side; and an epoch's batches, ours of equal
            source lengths, theirs drawn at random from sentences about as long as Multi30k's. *plain* reads
            padding as if it were words, *packed* leaves it out
copier      of Snell et al., permutations of 40 words, batch 128, against nn.LSTM and plain Adam; ours has its
            own recurrence with one thread, torch's with several
classifier  of Snell et al., 32 texts with lengths within a fifth of each other, against one bidirectional
            nn.LSTM over packed sequences; both with one fused Adam
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from timing import Step, command_line, in_turns, quotient, seconds
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.models.attention import masked_softmax
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, classification_loss
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.corpus import Batch, Corpus, collate
from attnlib.training.vocabulary import PAD
from companion.runs.command import keep_freed_memory
from companion.runs.loop import prediction_loss
from notebooks.shared.copied_sentences import copy_batch, draw_sources, words_of
from notebooks.shared.copier import Copier, CopierConfig
from notebooks.shared.pieces import EqualLengthBatches

WIDTH = 256  # of all networks
UNEVEN = "uneven lengths"
Loss = Callable[[nn.Module, Batch], Tensor]


def step_of(
    model: nn.Module, loss: Loss, batch_at: Callable[[int], Batch], *, fused: bool, clip: float | None = None
) -> Step:
    """One update; torch's default Adam is not fused, ours is."""
    optimiser = torch.optim.Adam(model.parameters(), fused=fused)

    def step(number: int) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(model, batch_at(number)).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()

    return step


def seed(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def word_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Of a plain network that returns logits."""
    return cross_entropy(model(batch).flatten(0, 1), batch.target_output.flatten(), ignore_index=PAD)


def attended(queries: Tensor, states: Tensor, mask: Tensor) -> Tensor:
    scores = queries @ states.transpose(1, 2)
    return scores.masked_fill(~mask[:, None, :], -torch.inf).softmax(-1) @ states


# -- AED --

AED_WORDS, AED_BATCH, LENGTH = 4_000, 128, 20


class PlainSeq2Seq(nn.Module):
    """Embeddings, two ``nn.LSTM``, masked dot attention, a linear readout."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(AED_WORDS, WIDTH), nn.Embedding(AED_WORDS, WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.decoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.readout = nn.Linear(2 * WIDTH, AED_WORDS)

    def forward(self, batch: Batch) -> Tensor:
        encoder_states, last = self.encoder(self.source(batch.source))
        decoder_states, _ = self.decoder(self.target(batch.target_input), last)
        context = attended(decoder_states, encoder_states, batch.source.ne(PAD))
        return self.readout(torch.cat([decoder_states, context], dim=-1))


def aed(way: str, setting: str) -> Step:
    words = np.random.default_rng(0).integers(4, AED_WORDS, size=(2, AED_BATCH, LENGTH - 1))
    sources = [row[: LENGTH - 1 - i % 4] if setting == UNEVEN else row for i, row in enumerate(words[0])]
    batch = collate(Corpus.from_ids(sources, list(words[1])), np.arange(AED_BATCH))
    if way == "plain":
        return step_of(PlainSeq2Seq(), word_loss, lambda _: batch, fused=False, clip=1.0)
    model = EncoderDecoder(ModelConfig("AED", AED_WORDS, AED_WORDS, cell="lstm", width=WIDTH), seed(0))

    def loss(network: nn.Module, given: Batch) -> Tensor:
        return prediction_loss(network(given).logits, given.target_output, given.target_mask)

    return step_of(model, loss, lambda _: batch, fused=True, clip=1.0)


def against_a_product(taken: float, clock: Callable[[], float]) -> str:
    """Operations a second of an update, and of (batch · length × width) @ (width × 4 width)."""
    tokens = AED_BATCH * LENGTH
    left, right = torch.randn(tokens, WIDTH), torch.randn(WIDTH, 4 * WIDTH)
    product = 2 * tokens * WIDTH * 4 * WIDTH
    recurrent = 4 * product  # two LSTMs, input and recurrent products
    attention, readout = 4 * tokens * LENGTH * WIDTH, 4 * tokens * WIDTH * AED_WORDS
    rate = 3 * (recurrent + attention + readout) / taken  # forward once, backward twice as much
    peak = product / min(seconds(lambda: left @ right, clock) for _ in range(30))
    return f"matrix product {peak / 1e9:.0f} GFLOP/s; ours {rate / 1e9:.0f}, {rate / peak:.0%} of it"


# -- the translator --

WORDS, PAIRS = 8_000, 16
EVEN = "15 pieces a side"


class PlainTranslator(nn.Module):
    """The network as its equations are usually written, every logit made."""

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
        states, last = recurrence(
            self.encoder, self.embedding(batch.source), batch.source_mask if self.packed else None
        )
        start = tuple(part.view(2, 2, len(batch), WIDTH).mean(1) for part in last)
        decoded, _ = self.decoder(self.embedding(batch.target_input), start)
        context = self.context(attended(self.query(decoded), states, batch.source_mask))
        return self.output(self.hidden(torch.cat([context, decoded], dim=-1)).relu())


def recurrence(layer: nn.LSTM, embedded: Tensor, mask: Tensor | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """States and the last ones, over packed sequences where a mask is given."""
    if mask is None:
        return layer(embedded)
    states, last = layer(pack_padded_sequence(embedded, mask.sum(1), batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(states, batch_first=True)[0], last


def translator(way: str, setting: str) -> Step:
    draw = np.random.default_rng(0)
    if setting == EVEN:
        words = draw.integers(4, WORDS, size=(2, PAIRS, 14))  # and the end mark
        batch = collate(Corpus.from_ids(list(words[0]), list(words[1])), np.arange(PAIRS))

        def batch_at(number: int) -> Batch:
            return batch
    else:  # about 15 pieces a side, both sides of a pair alike, some twice as long
        sources = np.clip(draw.lognormal(2.62, 0.33, size=4_000).round().astype(int), 4, 45)
        targets = np.clip((sources * draw.lognormal(0.02, 0.18, size=4_000)).round().astype(int), 3, 50)
        sides = [[draw.integers(4, WORDS, size=n) for n in lengths] for lengths in (sources, targets)]
        corpus = Corpus.from_ids(*sides)
        shuffled = np.random.default_rng(1).permutation(len(corpus))

        def batch_at(number: int) -> Batch:
            chosen = range(number * PAIRS, (number + 1) * PAIRS)
            return collate(corpus, np.take(shuffled, chosen, mode="wrap"))

        if way == "ours":
            batch_at = EqualLengthBatches(corpus, PAIRS, seed=0)
    if way != "ours":
        return step_of(PlainTranslator(packed=way == "packed"), word_loss, batch_at, fused=False)
    keep_freed_memory()
    model = BilinearTranslator(TranslatorConfig(), seed(0))
    return step_of(model, BilinearTranslator.loss, batch_at, fused=True)


# -- the copier and the classifier --


def copier(way: str, setting: str) -> Step:
    words, draw = words_of("permutation", 40), seed(1)
    if way == "ours":
        keep_freed_memory()

    def loss(model: nn.Module, batch) -> Tensor:
        logits = model(batch, "fast" if way == "ours" else "plain").logits
        return cross_entropy(logits.flatten(0, 1), batch.target.flatten())

    def batch_at(number: int):
        return copy_batch(draw_sources("permutation", 40, 128, draw), words)

    return step_of(Copier(CopierConfig(words, WIDTH), seed(0)), loss, batch_at, fused=way == "ours")


TEXT_WORDS, TEXTS = 10_000, 32


class PackedClassifier(nn.Module):
    """The network as it is usually written."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TEXT_WORDS, 300)
        self.encoder = nn.LSTM(300, WIDTH, batch_first=True, bidirectional=True)
        self.score = nn.Sequential(nn.Linear(512, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
        self.readout = nn.Linear(512, 1)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states, _ = recurrence(self.encoder, self.embedding(tokens), mask)
        attention = masked_softmax(self.score(states)[:, None, :, 0], mask)
        return self.readout((attention @ states)[:, 0])[:, 0]


def classifier(way: str, longest: str) -> Step:
    lengths = torch.linspace(0.8 * int(longest), int(longest), TEXTS).long()
    mask = torch.arange(int(longest)) < lengths[:, None]
    tokens = torch.randint(4, TEXT_WORDS, mask.shape, generator=seed(0)) * mask
    labels = torch.arange(TEXTS) % 2
    ours = way == "ours"
    model = AttentiveClassifier(ClassifierConfig(TEXT_WORDS), seed(0)) if ours else PackedClassifier()

    def loss(network: nn.Module, _) -> Tensor:
        logits = network(tokens, mask)
        return classification_loss(logits.logit if ours else logits, labels)

    return step_of(model, loss, lambda number: number, fused=True)


NETWORKS = {  # how a step is made, other ways than ours, and settings
    "aed": (aed, ("plain",), ("20 words a side", UNEVEN)),
    "translator": (translator, ("plain", "packed"), (EVEN, "lengths like Multi30k's")),
    "copier": (copier, ("plain",), ("40 words",)),
    "classifier": (classifier, ("packed",), ("20", "75", "200")),
}


def main() -> None:
    parser = command_line(__doc__, threads=2, rounds=25, cpu_time=False)
    parser.add_argument("network", choices=NETWORKS)
    options = parser.parse_args()
    make, others, settings = NETWORKS[options.network]
    for setting in settings:
        makers = {way: partial(make, way, setting) for way in ("ours", *others)}
        times = in_turns(makers, options.rounds, threads=options.threads, cpu_time=options.cpu_time)
        print(setting)
        for way, taken in times.items():
            told = "" if way == "ours" else f"   ours / {way} {quotient(times['ours'], taken)}"
            print(f"  {way:8} {statistics.median(taken) * 1e3:7.1f} ms a step{told}", flush=True)
        if make is aed and setting != UNEVEN:
            torch.set_num_threads(options.threads)
            clock = time.process_time if options.cpu_time else time.perf_counter
            print(f"  {against_a_product(statistics.median(times['ours']), clock)}")


if __name__ == "__main__":
    main()
