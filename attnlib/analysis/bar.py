"""Show how far the two passes over a corpus are."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from attnlib.analysis.stream import Shard, Stream
from attnlib.progress import AfterBatch, Progress, following

TITLES = {"fit": "components", "judge": "shares"}


def followed(
    stream: Stream, shard: Shard, *, progress: Progress | bool | None
) -> AbstractContextManager[Progress | None]:
    """Return a context whose value is the function to call after each batch, with stage and batches read.

    Args:
        stream: batches of the corpus, which may know how many they are.
        shard: the batches that are read.
        progress: a function, which becomes the value as it is; True for a function that moves a bar; None or
            False for nothing.
    """
    if progress is True:
        return _followed_by_bars(stream, shard)
    return nullcontext(progress or None)


@contextmanager
def _followed_by_bars(stream: Stream, shard: Shard) -> Iterator[Progress]:
    """Draw a bar for each stage once its first batch has been read."""
    with following(progress=True) as follower:
        stages: dict[str, AfterBatch] = {}

        def follow(stage: str, n_read: int) -> None:
            if stage not in stages:
                n_batches = n_batches_of(stream, shard, stage)
                stages[stage] = follower.stage(stage, title=TITLES[stage], n_batches=n_batches)
            stages[stage](n_read)

        yield follow


def n_batches_of(stream: Stream, shard: Shard, stage: str) -> int | None:
    """Return how many batches a stage reads; None if the length of the corpus is unknown."""
    if stream.n_batches is None:
        return None
    return sum(shard.is_of(stage, number) for number in range(stream.n_batches))
