"""The bag-of-words proxy of the classifiers (Snell et al. 2021, section 2.3), recorded like them: β^px.

Its log odds depend on the word alone. They are kept by position all the same, to be compared.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlib.models.classifiers import ClassifierProxy, classification_loss
from attnlib.training.course import Report
from companion.data.labelled import LabelledBatch
from notebooks.shared.classification import LabelledSettings, checksums, load_task, record_course

__all__ = ["Settings", "checksums", "record"]


@dataclass(frozen=True)
class Settings(LabelledSettings):
    """A proxy and its texts: all as for the classifier that it stands for."""


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(settings.seed)
    model = ClassifierProxy(len(load_task(settings).vocabulary), settings.embedding_width, generator)
    return record_course(
        model, settings, folder, loss=_loss, probe=_probe, at_best={}, device=device, report=report
    )


def _loss(model: ClassifierProxy, batch: LabelledBatch) -> Tensor:
    return classification_loss(model(batch.tokens, batch.mask), batch.labels)


def _probe(model: ClassifierProxy, batch: LabelledBatch) -> tuple[Tensor, dict[str, Tensor]]:
    return model(batch.tokens, batch.mask), {"log_odds": model.log_odds(batch.tokens)}
