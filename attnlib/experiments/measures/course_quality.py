"""How good a recorded network is at its checkpoints, whole and on the half of the samples that reports."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib.probes.contextualised import halves
from attnlib.texts.bleu import bleu

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

HALVES_SEED = 0  # which samples select and which report: the same for every pair of runs


def measure_quality(recording: "Recording") -> dict:
    """Accuracy, and for translations BLEU, in percent.

    Returns:
        ``steps``, and by part of the data that was looked at ``{"accuracy" | "bleu": {"all": …,
        "reporting": …}}``, one number a checkpoint. Accuracy is that of texts, or of words under teacher
        forcing.
    """
    return {
        "steps": recording["steps"].tolist(),
        "parts": {part: _quality(recording, part) for part in parts(recording)},
    }


def parts(recording: "Recording") -> tuple[str, ...]:
    """``validation``, then the sample of the training data where one was looked at."""
    found = [name.split(".") for name in recording.tensors if name.endswith((".correct", ".right"))]
    return tuple(sorted((part for part, _ in found), key=lambda part: part != "validation"))


def _quality(recording: "Recording", part: str) -> dict:
    samples = _samples(recording, part)
    reporting = torch.zeros(samples, dtype=torch.bool)
    reporting[halves(samples, HALVES_SEED)[1]] = True
    groups = {"all": torch.ones(samples, dtype=torch.bool), "reporting": reporting}
    found = {
        "accuracy": {
            name: (100 * _share_right(recording, part, group)).tolist() for name, group in groups.items()
        }
    }
    if f"{part}.bleu_counts" in recording.tensors:
        counts = recording[f"{part}.bleu_counts"].numpy()
        found["bleu"] = {
            name: [bleu(look[group.numpy()]) for look in counts] for name, group in groups.items()
        }
    return found


def _share_right(recording: "Recording", part: str, group: Tensor) -> Tensor:
    if f"{part}.correct" in recording.tensors:  # a text has one label
        right = recording[f"{part}.correct"].double()
        return right[:, group.expand(right.shape[1])].mean(1)
    right, words = recording[f"{part}.right"].double(), recording[f"{part}.target_mask"].sum(1)
    group = group.expand(len(words))
    return right[:, group].sum(1) / words[group].sum()


def _samples(recording: "Recording", part: str) -> int:
    labels = f"{part}.labels"
    return len(recording[labels if labels in recording.tensors else f"{part}.target_mask"])
