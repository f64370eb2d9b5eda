"""Say how far a computation is: by bars with the time left, by the caller's function, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

Progress = Callable[[str, int], None]  # takes a stage and the number of batches that it has read
AfterBatch = Callable[[int], None]  # takes the number of batches that a stage has read


class Follower:
    """Follow the stages of a computation; this class says nothing, and its subclasses do.

    Example:
        >>> after_batch = Follower().stage("fit", title="first pass", n_batches=10)
        >>> after_batch(1)
    """

    def stage(self, name: str, *, title: str, n_batches: int | None) -> AfterBatch:
        """Begin a stage.

        Args:
            name: of the stage, for programs.
            title: of the stage, for people.
            n_batches: that it reads; None if that is unknown.

        Returns:
            A function to call after each batch with the number of batches read.
        """
        return _ignore


def _ignore(_n_read: int) -> None:
    pass


class _FollowerByFunction(Follower):
    def __init__(self, progress: Progress):
        self._progress = progress

    def stage(self, name: str, *, title: str, n_batches: int | None) -> AfterBatch:
        def after_batch(n_read: int) -> None:
            self._progress(name, n_read)

        return after_batch


class _FollowerByBars(Follower):
    def __init__(self, bars: "RichProgress"):
        self._bars = bars

    def stage(self, name: str, *, title: str, n_batches: int | None) -> AfterBatch:
        bar = self._bars.add_task(title, total=n_batches)

        def after_batch(n_read: int) -> None:
            self._bars.update(bar, completed=n_read)

        return after_batch


def following(
    *, progress: Progress | bool | None, console: "Console | None" = None
) -> AbstractContextManager[Follower]:
    """Return a context whose value follows the stages of a computation.

    Args:
        progress: True for a bar for each stage, below the cell of a notebook or on a console; a function that
            takes the name of a stage and the number of batches that it has read; None or False for nothing.
        console: that bars are drawn on; by default standard error.

    Returns:
        A context, which takes the bars away at its end.

    Example:
        >>> with following(progress=print) as follower:
        ...     after_batch = follower.stage("fit", title="first pass", n_batches=2)
        ...     after_batch(1)
        fit 1
    """
    if progress is True:
        return _following_by_bars(console)
    return nullcontext(_FollowerByFunction(progress) if progress else Follower())


@contextmanager
def _following_by_bars(console: "Console | None") -> Iterator[Follower]:
    with _bars(console) as bars:
        yield _FollowerByBars(bars)


def _bars(console: "Console | None") -> "RichProgress":
    """Return bars that count batches and show the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return RichProgress(*columns, console=console or Console(stderr=True))
