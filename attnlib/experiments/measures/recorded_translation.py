"""What is asked of a recorded translation model of either form: quality by checkpoint, 𝒜(α, β) at the end.

Samples are rebuilt from the recording, so that the data is not read again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.probes.row_mean import RowMean
from attnlib.recipes.cells import padded_cells
from attnlib.tasks.corpus import Batch
from attnlib.tasks.vocabulary import BOS
from companion.data.bleu import bleu

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

TOGETHER = 16  # samples that are looked at together


def recorded_batches(recording: "Recording", samples: int, together: int = TOGETHER) -> Iterator[Batch]:
    """The first validation samples of a recording, 0 for all; those of like length stand together.

    Raises:
        BadInput: a number of samples below 0.
    """
    if samples < 0:
        raise BadInput(f"{samples} samples; give 0 for all, or how many")
    source_mask, target_mask = (recording[f"validation.{side}_mask"] for side in ("source", "target"))
    chosen = torch.arange(len(source_mask), device=source_mask.device)[: samples or None]
    order = (source_mask[chosen].sum(1) * 10_000 + target_mask[chosen].sum(1)).argsort(stable=True)
    for indices in chosen[order].split(together):
        source, target = (int(mask[indices].sum(1).max()) for mask in (source_mask, target_mask))
        right = recording["validation.target_output"][indices, :target].long()
        yield Batch(
            source=recording["validation.source"][indices, :source].long(),
            source_mask=source_mask[indices, :source],
            target_input=torch.cat([torch.full_like(right[:, :1], BOS), right[:, :-1]], 1),
            target_output=right,
            target_mask=target_mask[indices, :target],
            indices=indices,
        )


def recorded_probe(recording: "Recording", batch: Batch) -> Tensor:
    """log β at the last checkpoint for the samples of a batch, ``-inf`` at padding."""
    masks = recording["validation.source_mask"], recording["validation.target_mask"]
    padded = padded_cells(recording["validation.log_probe"][-1], *masks, fill=-torch.inf)
    return padded[batch.indices][:, : batch.target_mask.shape[1], : batch.source_mask.shape[1]]


def measure_translation(recording: "Recording") -> dict:
    """BLEU by checkpoint; at the last one, word accuracy, loss, and how far α agrees with its own β.

    Returns:
        ``steps``, ``bleu``, lists by checkpoint; ``accuracy``, ``loss`` (nats a word, teacher-forced),
        ``learned_probe`` (𝒜(α, β), equation 10, over all words of all samples) and ``chance`` (𝒜̂ of β).
    """
    source_mask, target_mask = (recording[f"validation.{side}_mask"] for side in ("source", "target"))
    words = int(target_mask.sum())
    attention, probe = (
        padded_cells(recording[f"validation.{name}"][-1], source_mask, target_mask, fill=fill)
        for name, fill in (("attention", 0.0), ("log_probe", -torch.inf))
    )
    rows = source_mask[:, None, :].expand(attention.shape)
    return {
        "steps": recording["steps"].tolist(),
        "bleu": [bleu(counts.cpu().numpy()) for counts in recording["validation.bleu_counts"]],
        "accuracy": float(recording["validation.right"][-1].sum()) / words,
        "loss": float(recording["validation.loss"][-1].double().sum()) / words,
        "learned_probe": RowMean.of(agreement(attention, probe, rows), target_mask).value,
        "chance": RowMean.of(chance_agreement(probe, rows), target_mask).value,
    }
