"""What is shown while the workflow runs: a line a job with its reason, bars where it is a terminal."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text


class Display:
    """Bars for the whole and for every training in progress; lines alone where it is not a terminal."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"), console=self.console, transient=True,
            disable=not self.console.is_terminal,
        )  # fmt: skip
        self._whole = self._bars.add_task("looking for what is out of date", total=None, note="")
        self._trainings: dict[str, TaskID] = {}

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        """A line above the bars; errors in red."""
        self.console.print(Text(line, style="red" if line.startswith("error:") else ""), soft_wrap=True)

    def start(self, job) -> None:
        """A job begins, and why; or it has failed."""
        self._bars.update(self._whole, description="all jobs")
        self.console.print(
            Text.assemble(str(job), (f"  ({job.reason})", "red" if job.reason == "failed" else "dim")),
            soft_wrap=True,
        )

    def done(self, count: int, total: int) -> None:
        """``count`` of ``total`` jobs are done."""
        self._bars.update(self._whole, description="all jobs", completed=count, total=total)

    def training(self, setting: str, step: int, steps: int, note: str) -> None:
        """A training has come to ``step`` of ``steps``; its bar goes when it ends."""
        if setting not in self._trainings:
            self._trainings[setting] = self._bars.add_task(setting, total=steps, note=note)
        self._bars.update(self._trainings[setting], completed=step, note=note)
        if step >= steps:
            self._bars.remove_task(self._trainings.pop(setting))
