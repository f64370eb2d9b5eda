"""A model and a corpus to an analysis: two passes over the corpus, at once or in parts that add up."""

import time
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from attnlib.analysis.fit import Fit, Sums
from attnlib.analysis.judge import Judgement
from attnlib.analysis.learned import SCORED
from attnlib.analysis.results import Analysis, example_of, results
from attnlib.analysis.samples import samples_of
from attnlib.analysis.stored import Keep, read_sums
from attnlib.analysis.stream import Shard, Stream
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput

Progress = Callable[[str, int], None]  # stage, batches read so far
STAGES = ("fit", "judge")


def analyse(
    stream: Stream,
    *,
    heads: Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    keep: Keep | None = None,
    progress: Progress | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    Args:
        stream: passes of a model, see :class:`~attnlib.analysis.stream.Stream`.
        heads: of every attention; all by default.
        method: of the components. Least squares tells position, word and what is constant apart exactly,
            and shares are about positions whose word was fitted on. ``"means"`` is the way of the papers: a
            constant counts as temporal, and a word that was not fitted on as residual.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        keep: where to keep the sums of both passes while they go on; without it nothing outlasts the process.
        progress: called after each batch.
        about: what the report says of model and corpus.

    Raises:
        BadInput: a corpus with nothing to judge; no head.
    """
    stream, part = stream.with_probe_tried(stream.first()), Shard(every=every)
    with keep.held((stage, part) for stage in STAGES) if keep else nullcontext():
        fit = fit_part(stream, part, heads=heads, method=method, keep=keep, progress=progress)
        judgement = judge_part(stream, fit, part, keep=keep, progress=progress)
    if not judgement.samples:
        part = Shard(every=1)
        fit = fit_part(stream, part, heads=heads, method=method, progress=progress)
        judgement = judge_part(stream, fit, part, progress=progress)
    return _analysis(stream, part, fit, judgement, about)


def analyse_kept(
    stream: Stream,
    keep: Keep,
    part: Shard,
    *,
    heads: Collection[int] | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """What the finished parts of both passes come to; BadInput where one is not finished."""
    fit = merged_fit(keep, part)
    judgement = keep.merged("judge", part, lambda: Judgement(fit))
    if not judgement.samples:
        if part.shards > 1:
            raise BadInput(
                f"nothing was held out of {fit.samples:,} samples: take fewer shards than {part.shards}"
            )
        return analyse(stream, heads=heads, method=fit.method, every=1, about=about)
    return _analysis(stream, part, fit, judgement, about)


def _analysis(
    stream: Stream, part: Shard, fit: Fit, judgement: Judgement, about: dict[str, str] | None
) -> Analysis:
    batch, found = stream.first("judge", part), results(fit, judgement, held_out=part.every > 1, about=about)
    if batch is None:
        return found
    one = stream.trace(batch)
    return replace(found, example=example_of(one, fit.heads), samples=samples_of(stream, one, fit))


def fit_part(
    stream: Stream,
    part: Shard | None = None,
    *,
    heads: Collection[int] | None = None,
    method: Method = "means",
    **options: Any,
) -> Fit:
    """First pass over a part; goes on where it was left; ``keep`` and ``progress`` as :func:`analyse`."""
    return _pass_over("fit", stream, part or Shard(), Fit(heads, method), **options)


def judge_part(stream: Stream, fit: Fit, part: Shard | None = None, **options: Any) -> Judgement:
    """Second pass over a part, by the fit of all parts."""
    return _pass_over("judge", stream, part or Shard(), Judgement(fit), **options)


def merged_fit(keep: Keep, part: Shard) -> Fit:
    return keep.merged("fit", part, Fit)


def _pass_over(
    stage: str,
    stream: Stream,
    part: Shard,
    sums: Sums,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Sums:
    done = 0
    if keep and (facts := keep.begun(stage, part)):
        sums, done = read_sums(keep.path(stage, part), sums), facts["done"]
        if facts["finished"]:
            return sums
    saved, read, number = time.monotonic(), 0, -1
    for number, batch in stream.numbered():
        if not part.is_of(stage, number):
            continue
        read += 1
        if number < done:
            continue
        one = stream.trace(batch)
        sums.losses += stream.losses(batch)
        sums.no_probe |= {stream.no_probe} - {""}
        probed = stage == "judge" and stream.is_probed(part.judged_before(number))
        sums.update(one, stream.probe(one)) if probed else sums.update(one)
        if stage == "judge" and stream.logits and part.judged_before(number) < SCORED:
            sums.learned.add(one, stream.logits(one))
        if progress:
            progress(stage, read)
        if keep and time.monotonic() - saved > keep.seconds:
            keep.save(stage, part, sums, number + 1, finished=False)
            saved = time.monotonic()
    if keep:
        keep.save(stage, part, sums, number + 1, finished=True)
    return sums
