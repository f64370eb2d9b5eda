"""A bar for a download, apart from :mod:`companion.data.sources`, which also runs without rich."""

import sys
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


def bar_on_a_terminal() -> "Callable[[str], DownloadBar] | None":
    """What makes bars, where somebody looks; None where standard error is a file or a pipe."""
    return DownloadBar if sys.stderr.isatty() else None


class DownloadBar:
    """A bar with the size and the time left of a download, which pooch calls as it would call tqdm's."""

    total = 0  # bytes; pooch sets it once the server has said how many there are

    def __init__(self, title: str):
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, console=Console(stderr=True))
        self._task = self._bars.add_task(title, total=None)
        self._bars.start()

    def update(self, n_bytes: int) -> None:
        self._bars.update(self._task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        self._bars.update(self._task, completed=0)

    def close(self) -> None:
        self._bars.stop()
