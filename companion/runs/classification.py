"""A classifier on labelled texts (Snell et al. 2021, sections 2.4 and A.8), and what it attends to.

Besides what :mod:`companion.runs.labelled_course` says, the recording holds by checkpoint and position

``<part>.attention``
    where attention is learned (uniform attention is one over the length);
``<part>.saliency``
    where ``saliency`` is asked for, of the best looks alone (:mod:`companion.runs.looks`), NaN at all
    others: its backward pass would make every look three times as dear.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from attnlib.errors import BadInput, UnknownName
from attnlib.models.classifiers import Attention, AttentiveClassifier, ClassifierConfig, classification_loss
from attnlib.probes.saliency import saliency
from attnlib.training.course import Report
from companion.data.labelled import LabelledBatch
from companion.runs import labelled_course
from companion.runs.labelled_course import LabelledSettings, load_task, record_course


@dataclass(frozen=True)
class Settings(LabelledSettings):
    """One network and its texts.

    Attributes:
        attention: ``learned``; ``uniform``, which gives β^uf; ``alone``, with all else frozen as drawn (A.6).
        width: of the state of one direction.
        saliency: whether to record it, at the best looks.

    Raises:
        UnknownName: another kind of attention. BadInput: a size that cannot be.
    """

    attention: str = "learned"
    width: int = 256
    saliency: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention not in get_args(Attention):
            raise UnknownName("attention", self.attention, get_args(Attention))
        if self.width < 1:
            raise BadInput(f"width is {self.width}; it must be at least 1")


def checksums(settings: Settings) -> dict[str, str]:
    """sha256 of the content of each data file read, by "dataset/file"."""
    return labelled_course.checksums(settings)


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the classifier and look at it along the way; see the module for what is returned.

    Raises:
        DataUnavailable, CorruptFile, BadInput: texts that cannot be had, see
            :func:`companion.data.labelled_sets.load_labelled`.
        TrainingDiverged: the loss is not finite.
    """
    config = ClassifierConfig(
        len(load_task(settings).vocabulary), settings.embedding_width, settings.width, settings.attention
    )
    model = AttentiveClassifier(config, torch.Generator().manual_seed(settings.seed))

    def probe(network: AttentiveClassifier, batch: LabelledBatch) -> tuple[Tensor, dict[str, Tensor]]:
        trace = network(batch.tokens, batch.mask)
        found = {} if settings.attention == "uniform" else {"attention": trace.attention}
        return trace.logit, found | {"log_odds": trace.log_odds}

    at_best = {"saliency": _saliency} if settings.saliency else {}
    return record_course(
        model, settings, folder, loss=_loss, probe=probe, at_best=at_best, device=device, report=report
    )


def _saliency(model: AttentiveClassifier, batch: LabelledBatch) -> Tensor:
    return saliency(model, batch.tokens, batch.mask, batch.labels)[0]


def _loss(model: AttentiveClassifier, batch: LabelledBatch) -> Tensor:
    return classification_loss(model(batch.tokens, batch.mask).logit, batch.labels)
