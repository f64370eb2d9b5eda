"""The bag-of-words proxy of the translation model along its training: β^px (Snell et al. 2021, section 2.3).

What the network learns before its attention does, made simple: attention is uniform, an embedding e stands
for the encoder's state, one linear layer W for the network N, and the decoder's state is left out. Every
target position s of a source x of L positions has the same distribution (equation 5),

    p = softmax(1/L Σ_t W e[x_t]),    and    β^px[s, t] = softmax(W e[x_t])[right word of s]   (equation 6).

All else is as in :mod:`notebooks.shared.trainings.translation`.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.models.corpus import Batch, evaluation_batches
from companion.runs.loop import Report, Schedule, train_network
from notebooks.shared.pieces import EqualLengthBatches
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots
from notebooks.shared.trainings import translation
from notebooks.shared.trainings.translation import TranslationSettings, checksums, joined_cells, valid_cells

VERSION = 1  # of the training: raised when what it trains changes

__all__ = ["VERSION", "Settings", "checksums", "record"]

WORDS_AT_ONCE = 512


class TranslationProxy(nn.Module):
    """The proxy, its parameters drawn from ``generator`` alone.

    Embeddings are drawn from N(0, 1), W uniformly from ±1/√width, torch's own distributions. W has no bias,
    as in equation 5. The source's end mark is a word of the bag, as it is a position to attend to. The width
    is d of the paper, which does not say it; the translation model's is 256.
    """

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding = nn.Embedding(words, width)
            self.output = nn.Linear(width, words, bias=False)
        with torch.no_grad():
            self.embedding.weight.normal_(generator=generator)
            self.output.weight.uniform_(-(width**-0.5), width**-0.5, generator=generator)

    def forward(
        self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]
    ) -> Float[Tensor, "batch words"]:
        """Logits of the one distribution that all positions of a target share."""
        embedded = self.embedding(source) * source_mask[:, :, None]
        return self.output(embedded.sum(1) / source_mask.sum(1, keepdim=True))

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the right words, in nats a word."""
        log_probabilities = self(batch.source, batch.source_mask).log_softmax(-1)
        return -log_probabilities.gather(1, batch.target_output)[batch.target_mask].mean()

    @torch.no_grad()
    def log_probe(
        self, batch: Batch, *, at_once: int = WORDS_AT_ONCE
    ) -> Float[Tensor, "batch target source"]:
        """log β^px of every pair of valid positions, ``-inf`` at padding.

        A source word's distribution is normalised once, wherever it stands; the logit of a pair is one
        product of two rows. Logits of ``at_once`` source words are held at a time: the most memory it takes
        beside the result is 2 × ``at_once`` × words numbers.
        """
        distinct, place = batch.source.unique(return_inverse=True)
        normaliser = torch.cat([self.output(self.embedding(s)).logsumexp(1) for s in distinct.split(at_once)])
        right = self.output.weight[batch.target_output] @ self.embedding(batch.source).transpose(1, 2)
        valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
        return (right - normaliser[place][:, None, :]).masked_fill(~valid, -torch.inf)


@dataclass(frozen=True)
class Settings(TranslationSettings):
    """As for the network that the proxy stands for."""


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train the proxy and look at it at every checkpoint; what is recorded is as the network has it."""
    data = translation.load_pieces(settings)
    parts = translation.probed_parts(data, settings)
    schedule = Schedule(
        settings.steps, settings.seed, settings.learning_rate, translation.checkpoints(settings)
    )

    def visit(step: int, proxy: TranslationProxy) -> None:
        snapshots = {name: snapshot_of(proxy, part, device) for name, part in parts.items()}
        save_snapshot(
            folder,
            step,
            {f"{name}.{what}": seen for name, of_part in snapshots.items() for what, seen in of_part.items()},
        )

    train_network(
        TranslationProxy(len(data.pieces), settings.width, torch.Generator().manual_seed(settings.seed)),
        EqualLengthBatches(data.train, settings.batch_size, settings.seed), TranslationProxy.loss, schedule,
        folder, visit=visit, device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, schedule.checkpoints) | translation.masks_of(parts)


@torch.no_grad()
def snapshot_of(proxy: TranslationProxy, part: translation.Probed, device: str = "cpu") -> Tensors:
    cells = []
    right = torch.zeros(len(part.corpus), dtype=torch.int32)
    loss = torch.zeros(len(part.corpus))
    for batch in evaluation_batches(part.corpus, translation.EVALUATION_BATCH):
        batch = batch.to(device)
        cells.append(
            (batch.indices, proxy.log_probe(batch), valid_cells(batch.source_mask, batch.target_mask))
        )
        log_probabilities = proxy(batch.source, batch.source_mask).log_softmax(-1)
        chosen = log_probabilities.gather(1, batch.target_output)
        likeliest = log_probabilities.argmax(-1, keepdim=True)  # one word for all positions
        rows = batch.indices.cpu()
        right[rows] = ((batch.target_output == likeliest) & batch.target_mask).sum(1, dtype=torch.int32).cpu()
        loss[rows] = -chosen.masked_fill(~batch.target_mask, 0).sum(1).cpu()
    return {"log_probe": joined_cells(cells), "right": right, "loss": loss}
