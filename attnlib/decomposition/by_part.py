"""Tensors indexed by the names of parts of the decoder states and of the encoder states."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from attnlib.decomposition.components import STATE_PARTS
from attnlib.errors import BadInput, check_known
from attnlib.optional import library

if TYPE_CHECKING:
    from pandas import DataFrame

PART_AXES = ("decoder_part", "encoder_part")
Named = TypeVar("Named", bound="ByPart")


class ByPart(Tensor):
    """A tensor with an axis of decoder parts, followed by one of encoder parts.

    It is a tensor like any other, and results of operations on it are plain tensors. In addition, an index
    may name parts: ``shares["temporal", "input"]`` is ``shares[0, 1]``.

    Attributes:
        parts: names of the parts, the same for both axes.
        axes: names of all axes; two of them are :data:`PART_AXES`.

    Example:
        >>> shares = ByPart.of(torch.arange(9.0).view(3, 3), axes=PART_AXES)
        >>> float(shares["temporal", "input"]), shares["residual"].tolist()
        (1.0, [6.0, 7.0, 8.0])
    """

    parts: tuple[str, ...]
    axes: tuple[str, ...]
    # Results of operations are plain tensors, as those on torch.nn.Parameter are.
    # pyright takes torch's function in C for an instance attribute, which overrides a class method.
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore[reportAssignmentType]

    @classmethod
    def of(
        cls: type[Named], values: Tensor, *, axes: Sequence[str], parts: Sequence[str] = STATE_PARTS
    ) -> Named:
        """Name the axes and parts of a tensor, which shares its memory with the result.

        Args:
            values: of any shape with two axes of parts.
            axes: a name for each axis; two of them are :data:`PART_AXES`.
            parts: names of the parts, the same for both axes.

        Returns:
            a tensor of this class.

        Raises:
            BadInput: the tensor has another number of axes, or of parts.
        """
        named = values.as_subclass(cls)
        named.axes = tuple(axes)
        named.parts = tuple(parts)
        sizes = dict(zip(named.axes, values.shape, strict=False))
        parts_fit = all(sizes.get(axis) == len(named.parts) for axis in PART_AXES)
        if len(named.axes) != values.dim() or not parts_fit:
            raise BadInput(
                f"a tensor of shape {tuple(values.shape)} with axes {', '.join(named.axes)} and parts "
                f"{', '.join(named.parts)}: expected one axis a name, and {len(named.parts)} entries a side"
            )
        return named

    def __getitem__(self, index: Any) -> Tensor:
        """Return the entries at an index, in which parts may be named.

        Raises:
            UnknownName: there is no such part.
            BadInput: a part is named at an axis that is not an axis of parts.
        """
        indices = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(entry, str) for entry in indices):
            return super().__getitem__(index)
        numbers = []
        for axis, entry in enumerate(indices):
            if isinstance(entry, str):
                self._require_part_axis(axis, indices[:axis])
                check_known("part", entry, self.parts)
                entry = self.parts.index(entry)
            numbers.append(entry)
        return super().__getitem__(tuple(numbers))

    def _require_part_axis(self, axis: int, before: tuple) -> None:
        plain = all(isinstance(entry, str | int | slice) for entry in before)
        if not plain or axis >= len(self.axes) or self.axes[axis] not in PART_AXES:
            raise BadInput(
                f"index {axis} is the name of a part; parts can be named at the axes decoder_part and "
                f"encoder_part of ({', '.join(self.axes)}), after numbers and slices"
            )

    def __deepcopy__(self: Named, memo: dict) -> Named:
        return self._like(self.detach().clone())

    def _like(self: Named, values: Tensor) -> Named:
        return type(self).of(values, axes=self.axes, parts=self.parts)

    def __repr__(self, *, tensor_contents: None = None) -> str:
        """Return a small table, or for a larger tensor its sizes."""
        if self.axes == PART_AXES:
            return f"{type(self).__name__}, decoder part down, encoder part across\n{self._table()}"
        sizes = zip(self.axes, self.shape, strict=True)
        other_sizes = ", ".join(f"{axis} {size}" for axis, size in sizes if axis not in PART_AXES)
        parts = ", ".join(self.parts)
        return f"{type(self).__name__}({parts}, decoder by encoder; {other_sizes})"

    def _table(self) -> str:
        """Return the values as a table with a row and a column for each part."""
        width = max(map(len, self.parts))
        cells = [["", *self.parts]]
        for part, row in zip(self.parts, self.tolist(), strict=True):
            cells.append([part, *(f"{value:.3f}" for value in row)])
        lines = []
        for label, *values in cells:
            columns = [label.ljust(width)]
            columns += [value.rjust(width) for value in values]
            lines.append("  ".join(columns))
        return "\n".join(lines)

    def pooled(self: Named, *parts: str) -> Named:
        """Return a copy in which two or more parts are added up to one, on both axes.

        Terms add up, and so do covariance shares. Mean absolute shares do not: pool the terms before taking
        shares, as ``shares(terms, pool=...)`` does.

        Args:
            *parts: names of the parts to add up. Their sum is named after them, such as "input+residual", and
                takes the place of the first.

        Returns:
            a tensor of the same class.

        Raises:
            UnknownName: there is no such part.
            BadInput: fewer than two parts.

        Example:
            >>> shares = ByPart.of(torch.arange(9.0).view(3, 3), axes=PART_AXES)
            >>> print(shares.pooled("input", "residual"))
            ByPart, decoder part down, encoder part across
                                  temporal  input+residual
            temporal                 0.000           3.000
            input+residual           9.000          24.000
        """
        groups = pooled_parts(self.parts, parts)
        pooled = self.as_subclass(Tensor)
        for name in PART_AXES:
            axis = self.axes.index(name)
            of_group = [pooled.index_select(axis, self._numbers(members)) for members in groups.values()]
            pooled = torch.stack([members.sum(axis) for members in of_group], axis)
        return self._with_parts(pooled, tuple(groups))

    def _with_parts(self: Named, values: Tensor, parts: tuple[str, ...]) -> Named:
        return type(self).of(values, axes=self.axes, parts=parts)

    def _numbers(self, parts: Sequence[str]) -> Tensor:
        return torch.tensor([self.parts.index(part) for part in parts], device=self.device)

    def to_frame(self, value: str = "value") -> "DataFrame":
        """Return a tidy pandas data frame with a row for each entry and a column for each axis.

        Args:
            value: name of the column of values.

        Returns:
            the frame; axes of parts have names, other axes have numbers from 0.

        Raises:
            BadInput: pandas is not installed.
        """
        values = self.detach().cpu().as_subclass(Tensor)
        is_listed = self._is_listed()
        if is_listed is None:
            is_listed = torch.ones(values.shape, dtype=torch.bool)
        columns: dict[str, Any] = {}
        for axis, numbers in zip(self.axes, is_listed.nonzero().unbind(1), strict=True):
            labels = numbers.tolist()
            if axis in PART_AXES:
                labels = [self.parts[number] for number in labels]
            columns[axis] = labels
        columns[value] = values[is_listed].tolist()
        return library("pandas").DataFrame(columns)

    def _is_listed(self) -> Tensor | None:
        """Return which entries a frame has; None for all."""
        return None


def pooled_parts(parts: Sequence[str], pooled: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parts that are left after pooling, with the parts that each consists of.

    Args:
        parts: names of all parts.
        pooled: names of the parts to pool.

    Raises:
        UnknownName: there is no such part.
        BadInput: fewer than two parts are pooled.

    Example:
        >>> pooled_parts(STATE_PARTS, ("residual", "input"))
        {'temporal': ('temporal',), 'input+residual': ('input', 'residual')}
    """
    for part in pooled:
        check_known("part", part, parts)
    members = tuple(part for part in parts if part in pooled)
    if len(members) < 2:
        raise BadInput(
            f"pooling {', '.join(pooled) or 'nothing'}: name two parts of {', '.join(parts)} or more"
        )
    groups = {}
    for part in parts:
        if part == members[0]:
            groups["+".join(members)] = members
        elif part not in members:
            groups[part] = (part,)
    return groups
