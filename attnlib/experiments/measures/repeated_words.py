"""Whether one-to-one translation finds its place by counting or by the word that it has just read.

After the word read at step s − 1 comes the one at step s. A network that looks for "what follows this word"
is led to several places where the word occurs more than once in the source; a network that counts is not.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.experiments.measures.task_patterns import attention_to_source, network_of
from attnlib.recipes.sequence_course import judged_samples
from attnlib.tasks.corpus import Batch

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

READ = ("once", "again")


@torch.no_grad()
def measure_repeated(recording: "Recording") -> dict:
    """Steps from the second word on, by whether the word read there occurs again in the source.

    Returns:
        ``once``, ``again``: ``attention`` on the aligned word, mean over layers and heads of the trained
        network's cross-attention, ``accuracy`` of the words predicted, and ``steps`` counted; means are None
        where there is no step.

    Raises:
        BadInput: the task is not one-to-one translation, so place s is not aligned with place s.
    """
    settings = recording.spec.resolved
    if settings.task_name != "one_to_one":
        raise BadInput(
            f"the task is {settings.task_name}; words are aligned place by place in one_to_one alone"
        )
    right = recording["right"][-1].bool()
    found: dict[str, list[np.ndarray]] = {read: [] for read in READ}
    for batch, heads in attention_to_source(network_of(recording, "trained"), judged_samples(settings)):
        aligned = heads.mean((0, 1)).diagonal(dim1=1, dim2=2).double()
        hit = right[batch.indices, : aligned.shape[1]].double()
        for read, steps in zip(READ, steps_by_reading(batch), strict=True):
            found[read].append(torch.stack([aligned[steps], hit[steps]]).numpy())
    return {read: _means(np.concatenate(own, axis=1)) for read, own in found.items()}


def steps_by_reading(batch: Batch) -> tuple[Bool[Tensor, "batch target"], Bool[Tensor, "batch target"]]:
    """Steps that predict a word after reading one that the source has once, and one that it has again."""
    words = batch.source.masked_fill(~_words(batch.source_mask), -1)
    equal = words[:, :, None] == words[:, None, :]
    repeated = (equal.sum(-1) > 1)[:, :-1]
    before = torch.zeros_like(words, dtype=torch.bool)
    before[:, 1:] = repeated
    predicts = _words(batch.target_mask)
    predicts[:, 0] = False  # reads the start mark
    return predicts & ~before, predicts & before


def _words(mask: Bool[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
    """Without the end mark, the last valid place of each row."""
    places = torch.arange(mask.shape[1])
    return places < (mask.sum(1) - 1)[:, None]


def _means(rows: np.ndarray) -> dict[str, float | int | None]:
    steps = rows.shape[1]
    attention, accuracy = rows.mean(1) if steps else (None, None)
    return {
        "attention": None if attention is None else float(attention),
        "accuracy": None if accuracy is None else float(accuracy),
        "steps": steps,
    }
