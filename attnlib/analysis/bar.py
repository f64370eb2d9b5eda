"""Show how far the two passes over a corpus are, as a bar with the time left."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from attnlib.analysis.stream import Shard, Stream

Progress = Callable[[str, int], None]  # takes a stage and the number of batches that it has read
TITLES = {"fit": "components", "judge": "shares"}


def followed(
    stream: Stream, shard: Shard, *, progress: Progress | bool | None
) -> AbstractContextManager[Progress | None]:
    """Return a context whose value is the function to call after each batch, or None.

    Args:
        stream: batches of the corpus, which may know how many they are.
        shard: the batches that are read.
        progress: a function, which is returned as it is; True for a function that moves a bar on standard
            error, or below the cell of a notebook; None or False for nothing.
    """
    if progress is True:
        return _bar(stream, shard)
    return nullcontext(progress or None)


@contextmanager
def _bar(stream: Stream, shard: Shard) -> Iterator[Progress]:
    """Draw a bar for each stage that has begun; the value of the context moves them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks = {}

        def follow(stage: str, read: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(TITLES[stage], total=_total(stream, shard, stage))
            bars.update(tasks[stage], completed=read)

        yield follow


def _total(stream: Stream, shard: Shard, stage: str) -> int | None:
    """Return how many batches a stage reads; None if the length of the corpus is unknown."""
    if stream.n_batches is None:
        return None
    return sum(shard.is_of(stage, number) for number in range(stream.n_batches))
