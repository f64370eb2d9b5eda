"""Read a corpus twice, whole or in shards that add up; every number of an analysis follows from it."""

import time
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from attnlib.analysis.bar import followed
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.learned import SCORED
from attnlib.analysis.stream import STAGES, HoldOut, Shard, Stream
from attnlib.decomposition.components import Method
from attnlib.former_names import former_arguments, former_object
from attnlib.progress import Progress

Sums = TypeVar("Sums", Fit, JudgedSums)  # of the first or of the second pass


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedPass(Generic[Sums]):
    """The state of a pass over a shard of a corpus, from which it can be continued.

    Attributes:
        sums: of the pass so far.
        done: number of batches of the stream that are summed already.
        finished: whether nothing of the shard is left.
    """

    sums: Sums
    done: int
    finished: bool


@runtime_checkable
class Keeper(Protocol):
    """An object that saves the sums of a pass while it is running.

    :class:`attnlib.report.resume.PartialSums` saves them in files.
    """

    @property
    def seconds(self) -> float:
        """The time between two saves, in seconds."""
        ...

    def held(self, stages: Iterable[tuple[str, Shard]]) -> AbstractContextManager[None]:
        """Return a context in which no other process writes the sums of these stages, each of a shard."""
        ...

    def load(self, stage: str, shard: Shard, sums: Sums) -> SavedPass[Sums] | None:
        """Load what was saved of a shard into empty sums of its kind; None if nothing was saved."""
        ...

    def save(self, stage: str, shard: Shard, saved: SavedPass) -> None:
        """Save the sums of a shard as they are now."""


def both_passes(
    stream: Stream,
    every: int = 5,
    *,
    method: Method,
    heads: Collection[int] | None = None,
    keep: Keeper | None = None,
    progress: Progress | bool | None = None,
    interventions: bool = False,
) -> tuple[JudgedSums, Shard]:
    """Fit on most of a corpus and judge the rest; fit and judge all of it if the rest would be empty.

    Args:
        stream: batches of the corpus and the model that reads them.
        every: hold out and judge every N-th batch.
        method: of the components, see :class:`~attnlib.analysis.fit.Fit`.
        heads: numbers of the heads to analyse in every attention; all by default.
        keep: saves the sums of both passes while they are running.
        progress: True for a bar, or a function, see :func:`~attnlib.analysis.from_stream.analyse_stream`.
        interventions: as :class:`~attnlib.analysis.judge.JudgedSums`.

    Returns:
        The sums of the second pass, which have those of the first, and the shard that they are of: the whole
        corpus, with the batches that were held out.
    """
    with_hold_out = Shard(hold_out=HoldOut(every))
    fit_and_judge = partial(
        _fit_and_judge, stream, method=method, heads=heads, progress=progress, interventions=interventions
    )
    judgement = fit_and_judge(with_hold_out, keep=keep)
    if judgement.samples:
        return judgement, with_hold_out
    everything = Shard(hold_out=HoldOut(every=1))
    return fit_and_judge(everything, keep=None), everything


def _fit_and_judge(
    stream: Stream,
    shard: Shard,
    *,
    method: Method,
    heads: Collection[int] | None,
    keep: Keeper | None,
    progress: Progress | bool | None,
    interventions: bool,
) -> JudgedSums:
    held = nullcontext()
    if keep is not None:
        held = keep.held([(stage, shard) for stage in STAGES])
    with held, followed(stream, shard, progress=progress) as follow:
        fit = fit_shard(stream, shard, method=method, heads=heads, keep=keep, progress=follow)
        return judge_shard(stream, fit, shard, interventions=interventions, keep=keep, progress=follow)


@former_arguments(part="shard")
def fit_shard(
    stream: Stream,
    shard: Shard | None = None,
    *,
    method: Method,
    heads: Collection[int] | None = None,
    keep: Keeper | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Sum the first pass over a shard of a corpus; an interrupted pass is continued.

    Args:
        stream: batches of the corpus and the model that reads them.
        shard: the batches to read, all by default.
        method: of the components, see :class:`~attnlib.analysis.fit.Fit`.
        heads: numbers of the heads to analyse in every attention; all by default.
        keep: saves the sums while the pass is running.
        progress: called after each batch with the stage and the number of batches read.
    """
    sums = Fit(heads, method=method)
    return _pass_over(stream, sums, "fit", shard=shard or Shard(), keep=keep, progress=progress)


@former_arguments(part="shard")
def judge_shard(
    stream: Stream,
    fit: Fit,
    shard: Shard | None = None,
    *,
    interventions: bool = False,
    keep: Keeper | None = None,
    progress: Progress | None = None,
) -> JudgedSums:
    """Sum the second pass over a shard of a corpus; an interrupted pass is continued.

    Args:
        stream: batches of the corpus and the model that reads them.
        fit: sums of the first pass over all shards.
        shard: the batches to read, all by default.
        interventions: as :class:`~attnlib.analysis.judge.JudgedSums`.
        keep: saves the sums while the pass is running.
        progress: called after each batch with the stage and the number of batches read.
    """
    sums = JudgedSums(fit, interventions=interventions)
    return _pass_over(stream, sums, "judge", shard=shard or Shard(), keep=keep, progress=progress)


def _pass_over(
    stream: Stream, sums: Sums, stage: str, *, shard: Shard, keep: Keeper | None, progress: Progress | None
) -> Sums:
    """Add all batches of one shard to the sums of one stage, and save them now and then."""
    done = 0  # batches of the stream that are summed already
    saved = None
    if keep is not None:
        saved = keep.load(stage, shard, sums)
    if saved is not None:
        sums = saved.sums
        done = saved.done
        if saved.finished:
            return sums
    last_save = time.monotonic()
    fit = sums.fit if isinstance(sums, JudgedSums) else sums
    n_read = 0
    number = -1
    for number, batch in stream.numbered():
        if keep is not None:  # what is kept may be of another process, which read other batches
            fit.readings.compare(number, batch)
        if not shard.is_of(stage, number):
            continue
        n_read += 1
        if number < done:
            continue
        _add_batch(sums, stream, batch, judged_before=shard.judged_before(number))
        if progress:
            progress(stage, n_read)
        if keep is not None and time.monotonic() - last_save > keep.seconds:
            keep.save(stage, shard, SavedPass(sums=sums, done=number + 1, finished=False))
            last_save = time.monotonic()
    if keep is not None:
        fit.readings.end(number + 1)
        keep.save(stage, shard, SavedPass(sums=sums, done=number + 1, finished=True))
    return sums


def _add_batch(sums: Fit | JudgedSums, stream: Stream, batch: Any, *, judged_before: int) -> None:
    """Add a batch to the sums of either pass; ``judged_before`` counts batches of the second."""
    trace = stream.trace(batch).validated()
    sums.losses += stream.losses(batch)
    if stream.no_probe:
        sums.no_probe |= {stream.no_probe}
    if not isinstance(sums, JudgedSums):
        sums.update(trace)
        return
    probe = None
    if stream.is_probed(judged_before):
        probe = stream.probe(trace)
    sums.update(trace, probe)
    if stream.logits and judged_before < SCORED:
        sums.learned.add(trace, stream.logits(trace), stream.never_written)


def __getattr__(name: str) -> Any:
    former = {"fit_part": f"{__name__}.fit_shard", "judge_part": f"{__name__}.judge_shard"}
    return former_object(__name__, former, name)
