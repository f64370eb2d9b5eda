"""The bag-of-words proxy of the classifiers (Snell et al. 2021, section 2.3), recorded like them: β^px.

Equation 5 with the one score of section 2.4 in place of a softmax over two:

    logit = 1/L Σ_l W · e_{x_l};    p(label 1) = σ(logit);    β^px_l = σ(±W · e_{x_l})    (equation 6)

The marks at both ends of a text are words like any other. Equation 5 has no bias, so neither has W. Log odds
depend on the word alone, and are kept by position all the same, to be compared.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.models.classifiers import classification_loss
from companion.data.labelled import LabelledBatch
from companion.runs.loop import Report
from notebooks.shared.trainings.classification import (
    LabelledSettings,
    Tensors,
    checksums,
    load_task,
    record_course,
)

VERSION = 1  # of the training: raised when what it trains changes

__all__ = ["VERSION", "Settings", "checksums", "record"]


class ClassifierProxy(nn.Module):
    """The proxy, its parameters drawn from ``generator`` alone, both from N(0, 1 / width) (section 4.1)."""

    def __init__(self, words: int, width: int, generator: torch.Generator):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(words, width, generator=generator) * width**-0.5)
        self.readout = nn.Parameter(torch.randn(width, generator=generator) * width**-0.5)

    def forward(
        self, tokens: Int[Tensor, "batch length"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, " batch"]:
        """Log odds of label 1."""
        return (self.log_odds(tokens) * mask).sum(1) / mask.sum(1)

    def log_odds(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length"]:
        """Log odds of label 1 if each word stood alone: W · e_x."""
        return nn.functional.embedding(tokens, self.embedding) @ self.readout


@dataclass(frozen=True)
class Settings(LabelledSettings):
    """A proxy and its texts: all as for the classifier that it stands for."""


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    generator = torch.Generator().manual_seed(settings.seed)
    model = ClassifierProxy(len(load_task(settings).vocabulary), settings.embedding_width, generator)
    return record_course(
        model, settings, folder, loss=_loss, probe=_probe, at_best={}, device=device, report=report
    )


def _loss(model: ClassifierProxy, batch: LabelledBatch) -> Tensor:
    return classification_loss(model(batch.tokens, batch.mask), batch.labels)


def _probe(model: ClassifierProxy, batch: LabelledBatch) -> tuple[Tensor, Tensors]:
    return model(batch.tokens, batch.mask), {"log_odds": model.log_odds(batch.tokens)}
