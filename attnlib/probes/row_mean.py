"""The mean of a number over rows, with the rows where it is undefined counted beside it."""

import math
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.errors import BadInput


@dataclass(frozen=True)
class RowMean:
    """Sums over rows, added over batches with ``+``: constant memory, any order.

    A row counts once: as judged where its number is defined, as undefined where it is NaN.

    Attributes:
        total: sum of the number over the judged rows.
        rows: number of judged rows.
        undefined: number of rows without a number; they are left out of the mean.
    """

    total: float = 0.0
    rows: int = 0
    undefined: int = 0

    @classmethod
    def of(cls, values: Float[Tensor, "*rows"], present: Bool[Tensor, "*rows"] | None = None) -> "RowMean":
        """The sums of one batch.

        Args:
            values: one number a row, NaN where undefined.
            present: False at rows that are padding; these count as nothing. All rows by default.

        Raises:
            BadInput: the two have different shapes.

        >>> import torch
        >>> RowMean.of(torch.tensor([1.0, 0.0, torch.nan])) + RowMean.of(torch.tensor([1.0]))
        RowMean(total=2.0, rows=3, undefined=1)
        """
        if present is not None:
            if present.shape != values.shape:
                raise BadInput(
                    f"values of shape {tuple(values.shape)} with a mask of rows of {tuple(present.shape)}: "
                    "give one truth value a row"
                )
            values = values[present]
        undefined = values.isnan()
        judged = values[~undefined]
        return cls(float(judged.double().sum()), judged.numel(), int(undefined.sum()))

    @property
    def value(self) -> float:
        """The mean over judged rows; NaN where there is none."""
        return self.total / self.rows if self.rows else math.nan

    def __add__(self, other: "RowMean") -> "RowMean":
        return RowMean(self.total + other.total, self.rows + other.rows, self.undefined + other.undefined)
