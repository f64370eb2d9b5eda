"""What the store needs to know of a product that is not a model of the task ladder."""

from pathlib import Path
from typing import Protocol

from attnlib.training.course import Report
from companion.runs.keys import Spec


class ProductSpec(Spec, Protocol):
    """A frozen spec that names, makes and opens its own product, such as a run of a recipe.

    ``make`` writes all files of the product but ``history.json`` and ``spec.json``, may keep what it needs to
    go on in ``folder/checkpoints``, and returns what the history says beyond time and machine. ``open`` reads
    the product back as whatever measures of it expect.
    """

    def to_json(self) -> str: ...

    def make(self, folder: Path, *, device: str, report: Report | None) -> dict[str, object]: ...

    def open(self, folder: Path, history: dict, *, device: str) -> object: ...
