"""Offset of temporal components: where their product is largest, and where average attention is.

The product μ^D_s · μ^E_t depends on the two positions alone. At each step s its largest entry over the
positions of a source is its peak, which is compared with the diagonal and with the peak of the average
attention of all held-out samples of the same two lengths.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition.typicality import MINIMUM_CELL, AttentionCells
from companion.rounding import rounded
from companion.runs.columns import Column, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.store import TrainedModel
from notebooks.shared.measure import Fitted, fit_components

CLOSE = 1  # positions

OFFSETS = {
    "near_diagonal": share("steps whose product of temporal parts peaks within one position of the diagonal"),
    "near_average": share("the same, within one position of the peak of average attention"),
    "average_near_diagonal": share("steps whose average attention peaks within one position of the diagonal"),
    "chance": share("positions within one of the peak of average attention"),
    "offset": Column("mean place of the peak of temporal parts minus the diagonal", "positions"),
    "distance": Column(
        "mean distance of the peak of temporal parts from that of average attention", "positions"
    ),
    "coverage": share("held-out samples in cells that are large enough for an average"),
}


@measure(version=1)
def measure_temporal_offset(trained: TrainedModel, fit_samples: int) -> dict:
    """Compare the peaks of the product of temporal parts with the diagonal and with average attention.

    Components are fitted on training samples; attention is averaged over held-out samples of the same
    source and target length, in cells of at least 30. Each step of a cell counts once for each sample.

    Returns:
        ``near_diagonal`` and ``near_average``, the shares of steps whose temporal peak is within one position
        of the diagonal and of the average's peak; ``average_near_diagonal``, of steps whose average peaks
        there; ``chance``, the share of positions that are within one of the average's peak; ``offset``, the
        mean of the temporal peak minus the diagonal, and ``distance``, its mean distance from the average's
        peak, in positions; ``coverage``, the share of samples; ``cell``, the peaks of the most frequent
        lengths.
    """
    fitted = fit_components(trained, fit_samples)
    cells = AttentionCells()
    for trace in traces(trained.model, trained.task.held_out):
        cells.update(trace.attention, trace.target_mask, trace.source_mask)
    sums = torch.zeros(len(PEAKS), dtype=torch.float64)
    n_steps = n_samples = 0
    for (source, target), count in cells.counts.items():
        if count < MINIMUM_CELL:
            continue
        temporal = temporal_peaks(fitted, source, target)
        average = cells.average_attention((source, target)).argmax(-1)  # (target,)
        sums += count * compared_peaks(temporal, average, source)
        n_steps += count * target
        n_samples += count
    means = dict(zip(PEAKS, (sums / n_steps).tolist(), strict=True))  # 0 / 0 is NaN: no cell is large enough
    coverage = n_samples / sum(cells.counts.values())
    return rounded(means | {"coverage": coverage, "cell": _peaks_of_frequent_cell(fitted, cells)})


PEAKS = ("near_diagonal", "near_average", "average_near_diagonal", "chance", "offset", "distance")
Peaks = Int[Tensor, " target"]


def temporal_peaks(fitted: Fitted, source: int, target: int) -> Peaks:
    """Return the source position of the largest product of temporal parts at each step."""
    products = fitted.decoder.temporal[:target] @ fitted.encoder.temporal[:source].T  # (target, source)
    return products.argmax(-1).cpu()


def compared_peaks(temporal: Peaks, average: Peaks, source: int) -> Float[Tensor, " peaks"]:
    """Return the sums over steps of what :data:`PEAKS` names.

    Args:
        temporal: the peak of the product of temporal parts at each step.
        average: that of average attention.
        source: the length of the source.
    """
    target = len(temporal)
    slope = (source - 1) / max(target - 1, 1)
    diagonal = slope * torch.arange(target)  # (target,)
    positions = torch.arange(source)
    beside_average = (positions[None, :] - average[:, None]).abs() <= CLOSE  # (target, source)
    by_step = torch.stack(
        [
            ((temporal - diagonal).abs() <= CLOSE).double(),
            ((temporal - average).abs() <= CLOSE).double(),
            ((average - diagonal).abs() <= CLOSE).double(),
            beside_average.double().mean(-1),
            (temporal - diagonal).double(),
            (temporal - average).abs().double(),
        ]
    )
    return by_step.sum(-1)


def _peaks_of_frequent_cell(fitted: Fitted, cells: AttentionCells) -> dict:
    """Return both peaks at each step, of the lengths that most samples have."""
    source, target = max(cells.counts, key=lambda cell: (cells.counts[cell], cell))
    return {
        "source_length": source,
        "target_length": target,
        "temporal": temporal_peaks(fitted, source, target).tolist(),
        "average": cells.average_attention((source, target)).argmax(-1).tolist(),
    }
