"""The two passes of an analysis by which answers of the archive were computed.

Where least squares leave a constant free, these take the solution of least norm; ``attnlib analyse`` goes by
counts (:class:`~attnlib.decomposition.growing.CentredComponents`). Shares of terms differ where a mark keeps
to its own place, and nowhere else.
"""

from collections.abc import Collection
from contextlib import nullcontext

from attnlib.analysis.judge import Judgement
from attnlib.analysis.passes import STAGES, Progress, fit_part, judge_part
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Shard, Stream
from attnlib.decomposition.components import Method


def both_passes(
    stream: Stream,
    *,
    heads: Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> tuple[Judgement, Shard]:
    """Sums of the second pass, with their fit, and which batches they are of; see :func:`analyse`."""
    part = Shard(every=every)
    with keep.held((stage, part) for stage in STAGES) if keep else nullcontext():
        fit = fit_part(stream, part, heads=heads, method=method, keep=keep, progress=progress)
        judgement = judge_part(stream, fit, part, keep=keep, progress=progress)
    if judgement.samples:
        return judgement, part
    part = Shard(every=1)
    fit = fit_part(stream, part, heads=heads, method=method, progress=progress)
    return judge_part(stream, fit, part, progress=progress), part
