"""Table 9 of Snell et al. (2021) from the data, for the classification sets."""

from dataclasses import dataclass

import numpy as np

from attnlib.texts.labelled import LabelledTask
from attnlib.texts.labelled_sets import load_labelled
from attnlib.texts.words import Reading


@dataclass(frozen=True)
class SizesRow:
    """A data set in Table 9, lengths in words without marks.

    Attributes:
        words_kept: rows of the embedding table: the four marks, and the words seen at least three times. The
            paper's vocabulary also has rarer words that GloVe knows, and so is larger.
    """

    data: str
    train_texts: int
    train_median: float
    validation_texts: int
    validation_median: float
    words_kept: int


def sizes(task: LabelledTask) -> SizesRow:
    """The row of a task that is loaded."""
    return SizesRow(
        task.name,
        len(task.train),
        float(np.median(task.train.lengths)),
        len(task.validation),
        float(np.median(task.validation.lengths)),
        len(task.vocabulary),
    )


def table9_row(data: str, reading: Reading = "published") -> SizesRow:
    """The row of a data set at its full size; arguments and errors as in
    :func:`~attnlib.texts.labelled_sets.load_labelled`.
    """
    return sizes(load_labelled(data, reading=reading))
