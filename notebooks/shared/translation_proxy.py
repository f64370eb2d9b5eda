"""The bag-of-words proxy of the translation model along its training: β^px (Snell et al. 2021, section 2.3).

All else is as in :mod:`notebooks.shared.translation`.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlib.models.translator import TranslationProxy
from attnlib.training.corpus import evaluation_batches
from attnlib.training.course import Course, Report, run_course
from companion.data.pieces import EqualLengthBatches
from companion.runs.looks import gathered_looks, keep_look
from notebooks.shared.ragged import joined_cells, valid_cells
from notebooks.shared.translation import (
    LOOK_BATCH,
    Probed,
    TranslationSettings,
    checkpoints,
    checksums,
    load_pieces,
    masks_of,
    probed_parts,
)

__all__ = ["Settings", "checksums", "record"]


@dataclass(frozen=True)
class Settings(TranslationSettings):
    """As for the network that the proxy stands for."""


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the proxy and look at it at every checkpoint; what is recorded is as the network has it."""
    data = load_pieces(settings)
    parts = probed_parts(data, settings)
    course = Course(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings))

    def visit(step: int, proxy: TranslationProxy) -> None:
        looks = {name: look_at(proxy, part, device) for name, part in parts.items()}
        keep_look(
            folder,
            step,
            {f"{name}.{what}": seen for name, look in looks.items() for what, seen in look.items()},
        )

    run_course(
        TranslationProxy(len(data.pieces), settings.width, torch.Generator().manual_seed(settings.seed)),
        EqualLengthBatches(data.train, settings.batch_size, settings.seed),
        TranslationProxy.loss,
        course,
        folder,
        visit=visit,
        device=device,
        report=report,
    )
    return gathered_looks(folder, course.checkpoints) | masks_of(parts)


@torch.no_grad()
def look_at(proxy: TranslationProxy, part: Probed, device: str = "cpu") -> dict[str, Tensor]:
    cells = []
    right = torch.zeros(len(part.corpus), dtype=torch.int32)
    loss = torch.zeros(len(part.corpus))
    for batch in evaluation_batches(part.corpus, LOOK_BATCH):
        batch = batch.to(device)
        cells.append(
            (batch.indices, proxy.log_probe(batch), valid_cells(batch.source_mask, batch.target_mask))
        )
        log_probabilities = proxy(batch.source, batch.source_mask).log_softmax(-1)
        chosen = log_probabilities.gather(1, batch.target_output)
        said = log_probabilities.argmax(-1, keepdim=True)  # one word for all positions
        rows = batch.indices.cpu()
        right[rows] = ((batch.target_output == said) & batch.target_mask).sum(1, dtype=torch.int32).cpu()
        loss[rows] = -chosen.masked_fill(~batch.target_mask, 0).sum(1).cpu()
    return {"log_probe": joined_cells(cells), "right": right, "loss": loss}
