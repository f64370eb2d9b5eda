"""How good a network is at one look: on all the samples it was looked at, and on either half of them."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.probes.halves import halves
from companion.data.bleu import bleu

# The samples that quality is taken of. A checkpoint is chosen on all, the paper's way, or on half of them.
GROUPS = ("all", "selecting", "reporting")
CHOOSING = ("all", "selecting")


def qualities(look: Mapping[str, Tensor], part: str) -> dict[str, dict[str, float]]:
    """Accuracy, and for translations BLEU, in percent, of one part of what was looked at.

    Args:
        look: the tensors of one checkpoint: of texts ``<part>.correct``; of sentence pairs ``<part>.right``,
            ``<part>.target_mask`` and, where sentences were written, ``<part>.bleu_counts``.

    Returns:
        by measure of quality and group of :data:`GROUPS`. Accuracy is that of texts, or of words under
        teacher forcing.

    Raises:
        BadInput: fewer than two samples.
    """
    text = f"{part}.correct" in look
    right = look[f"{part}.correct" if text else f"{part}.right"].double()
    words = torch.ones_like(right) if text else look[f"{part}.target_mask"].sum(1)  # a text has one label
    members = _members(len(right))
    found = {
        "accuracy": {
            name: 100 * float(right[group].sum() / words[group].sum()) for name, group in members.items()
        }
    }
    if f"{part}.bleu_counts" in look:
        counts = look[f"{part}.bleu_counts"].cpu().numpy()
        found["bleu"] = {name: bleu(counts[group.numpy()]) for name, group in members.items()}
    return found


def _members(samples: int) -> dict[str, Bool[Tensor, " samples"]]:
    selects = torch.zeros(samples, dtype=torch.bool)
    selects[halves(samples)[0]] = True
    return dict(zip(GROUPS, (torch.ones_like(selects), selects, ~selects), strict=True))
