"""Columns of records: what a number means, in which unit, and between which numbers it can lie.

A measurement declares the columns of its records beside the function:

.. code-block:: python

    TRANSLATION = {
        "bleu": Column("BLEU of greedy translations", unit="points", low=0, high=100),
        "token_accuracy": share("next words that are predicted correctly"),
    }

    @measure(version=1, columns=TRANSLATION)
    def measure_translation(trained: TrainedModel, samples: int) -> dict: ...

Intervals end where a column's numbers end, so that a column that is renamed keeps its intervals.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """What is in a column of a table.

    Attributes:
        meaning: what its values are, as a reader of the data sees it.
        unit: of its numbers; empty where they have none, or are no numbers.
        low: the smallest number that there can be.
        high: the largest number that there can be.
        source: where the quantity is defined: a paper, with section or equation.
        categories: of text that is one of a few names, what each of them means.
    """

    meaning: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    source: str = ""
    categories: Mapping[str, str] = field(default_factory=dict)

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def __str__(self) -> str:
        return f"{self.meaning}, in {self.unit}" if self.unit else self.meaning


Columns = Mapping[str, Column]  # by name, in the order of the table


def share(meaning: str, *, source: str = "") -> Column:
    """Return the column of a number from 0 to 1.

    >>> share("target words that are predicted correctly").range
    (0.0, 1.0)
    """
    return Column(meaning, low=0.0, high=1.0, source=source)


ARCHITECTURES = {
    "AED": "recurrent with attention",
    "AO": "attention only",
    "VED": "recurrent without attention",
}
NETWORK = {  # columns that name a network of the task suite, see `companion.runs.suite.point`
    "task": Column("task that the network was trained on"),
    "architecture": Column("kind of network", categories=ARCHITECTURES),
    "cell": Column("recurrent cell; none for AO"),
    "seed": Column("random seed of weights, data and batches"),
}
INTERVAL = {  # columns of an estimate over several networks
    "value": Column("mean over networks"),
    "low": Column("lower end of the 95 % interval; empty where there are too few networks"),
    "high": Column("upper end of the 95 % interval; empty where there are too few networks"),
    "n": Column("networks with a number", low=0),
}
