"""Two passes over a corpus, at once or in parts that add up: no more than what numbers depend on."""

import time
from collections.abc import Collection
from contextlib import nullcontext
from typing import Any

from attnlib.analysis.bar import Progress, followed
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import HeldOutSums
from attnlib.analysis.learned import SCORED
from attnlib.analysis.pass_sums import PassSums
from attnlib.analysis.stored import Keep, read_sums
from attnlib.analysis.stream import Shard, Stream
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput

STAGES = ("fit", "judge")


def both_passes(
    stream: Stream,
    every: int = 5,
    keep: Keep | None = None,
    progress: Progress | bool | None = None,
    *,
    interventions: bool = False,
    **fitted: Any,
) -> tuple[HeldOutSums, Shard]:
    """Sums of the second pass, with their fit, and which batches they are of; see :func:`analyse`."""
    for part, kept in ((Shard(every=every), keep), (Shard(every=1), None)):
        held = kept.held((stage, part) for stage in STAGES) if kept else nullcontext()
        with held, followed(progress, stream, part) as follow:
            fit = fit_part(stream, part, keep=kept, progress=follow, **fitted)
            judgement = judge_part(stream, fit, part, interventions=interventions, keep=kept, progress=follow)
        if judgement.samples:
            break
    return judgement, part


def fit_part(
    stream: Stream,
    part: Shard | None = None,
    *,
    heads: Collection[int] | None = None,
    method: Method = "means",
    **options: Any,
) -> Fit:
    """First pass over a part; goes on where it was left; ``keep`` and ``progress`` as :func:`analyse`."""
    return _pass_over("fit", stream, Fit(heads, method), part=part or Shard(), **options)


def judge_part(
    stream: Stream, fit: Fit, part: Shard | None = None, *, interventions: bool = False, **options: Any
) -> HeldOutSums:
    """Second pass over a part, by the fit of all parts.

    Raises:
        BadInput: a part of it is kept with interventions where none are asked for, or the other way round.
    """
    sums = HeldOutSums(fit, interventions=interventions)
    return _pass_over("judge", stream, sums, part=part or Shard(), **options)


def merged_fit(keep: Keep, part: Shard) -> Fit:
    return keep.merged("fit", part, Fit)


def _pass_over(
    stage: str,
    stream: Stream,
    sums: PassSums,
    *,
    part: Shard,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> PassSums:
    done = 0  # batches of the stream that are summed already
    if keep and (facts := keep.begun(stage, part)):
        settings = sums.settings()
        sums = read_sums(keep.path(stage, part), sums)
        if sums.settings().get("interventions") != settings.get("interventions"):
            raise BadInput(
                f"{keep.path(stage, part)} was kept with other interventions than are asked for now; choose "
                f"another folder, or delete {keep.folder} to begin anew"
            )
        done = facts["done"]
        if facts["finished"]:
            return sums
    last_save = time.monotonic()
    n_read = 0
    number = -1
    for number, batch in stream.numbered():
        if not part.is_of(stage, number):
            continue
        n_read += 1
        if number < done:
            continue
        _add_batch(sums, stream, batch, judged_before=part.judged_before(number))
        if progress:
            progress(stage, n_read)
        if keep and time.monotonic() - last_save > keep.seconds:
            keep.save(stage, part, sums, number + 1, finished=False)
            last_save = time.monotonic()
    if keep:
        keep.save(stage, part, sums, number + 1, finished=True)
    return sums


def _add_batch(sums: PassSums, stream: Stream, batch: Any, *, judged_before: int) -> None:
    """Add a batch to the sums of either pass; ``judged_before`` counts batches of the second."""
    model_pass = stream.trace(batch)
    sums.losses += stream.losses(batch)
    if stream.no_probe:
        sums.no_probe |= {stream.no_probe}
    if not isinstance(sums, HeldOutSums):
        sums.update(model_pass)
        return
    probe = None
    if stream.is_probed(judged_before):
        probe = stream.probe(model_pass)
    sums.update(model_pass, probe)
    if stream.logits and judged_before < SCORED:
        sums.learned.add(model_pass, stream.logits(model_pass), stream.never_written)
