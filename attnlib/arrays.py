"""Arrays of any kind as tensors, where a function takes tensors."""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, TypeVar, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from attnlib.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Array = Tensor | ArrayLike
else:
    Array = Tensor  # of the rest :func:`takes_arrays` makes one

Function = TypeVar("Function", bound=Callable)
EVERYWHERE = None  # the default of a mask
HALF = (torch.float16, torch.bfloat16)  # too coarse for products of states

# What many functions take. States, ids of tokens, and a mask that is True at valid positions:
States = Float[Array, "batch length width"]
Tokens = Integer[Array, "batch length"]
Mask = Bool[Array, "batch length"] | None
# Alignment terms, decoder's part first, or attention; and the masks of both of their sides:
Terms = Float[Array, "3 3 batch target source"]
Attention = Float[Array, "batch target source"]
TargetMask = Bool[Array, "batch target"] | None
SourceMask = Bool[Array, "batch source"] | None
# Rows of any number of axes, which broadcast:
Rows = Float[Array, "*#rows length"]
RowMask = Bool[Array, "*#rows length"] | None


def several(value: object) -> tuple | None:
    """One thing alone, or a collection of such, as a tuple; None stays.

    >>> several("cross"), several(np.arange(2)), several(None)
    (('cross',), (0, 1), None)
    """
    value = value.tolist() if hasattr(value, "tolist") else value  # an array, or a number out of one
    alone = isinstance(value, str) or not isinstance(value, Iterable)
    return value if value is None else (value,) if alone else tuple(value)


def as_tensor(value: object, name: str) -> Tensor:
    """Of whatever numpy or torch can make an array; a tensor as it is. BadInput for anything else.

    >>> as_tensor(np.array([1, 2], dtype=">i4")[::-1], "ids").tolist()
    [2, 1]
    """
    if isinstance(value, Tensor):
        if value.is_meta:
            raise BadInput(f"{name} is on the device meta and has no numbers; give those of another device")
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise BadInput(f"{name} is a masked array; give its .data, and a mask that is True where it counts")
    try:
        array = np.asarray(value)
        shareable = array.flags.writeable and min(array.strides, default=0) >= 0
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=not shareable))
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(
            f"{name} is {type(value).__name__}, of which no tensor can be made; give a torch.Tensor, or "
            "numbers in an array of one shape"
        ) from error


def as_mask(value: object, name: str) -> Tensor:
    """A tensor of bool; BadInput for other numbers than 0 and 1, and for those that are no integers."""
    mask = as_tensor(value, name)
    if mask.dtype == torch.bool:
        return mask
    whole = not (mask.is_floating_point() or mask.is_complex())
    if not whole or bool((mask.long() >> 1).any()):  # which leaves nothing of 0 and 1
        more, valid = " with other numbers" * whole, "True at valid positions, or integers 0 and 1"
        raise BadInput(f"{name} of {mask.dtype}{more}: expected torch.bool, {valid}")
    return mask.bool()


def as_numbers(value: object, name: str) -> Tensor:
    """A floating-point tensor: half precision becomes single, integers float64; BadInput for anything else.

    >>> as_numbers([[1, 2]], "attention").dtype
    torch.float64
    """
    numbers = as_tensor(value, name)
    if numbers.is_complex() or numbers.dtype == torch.bool:
        raise BadInput(f"{name} of {numbers.dtype}: expected real numbers")
    if numbers.dtype in HALF:
        return numbers.float()
    if not numbers.is_floating_point():
        return numbers.double()
    return numbers


def aligned_rows(first: Tensor, second: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and the mask of both, everywhere true by default, at one shape.

    Raises:
        BadInput: their lengths differ, or their leading axes do not broadcast.
    """
    if mask is None:
        mask = torch.ones_like(first, dtype=torch.bool)
    shapes = f"{tuple(first.shape)} and {tuple(second.shape)} with a mask of {tuple(mask.shape)}"
    lengths = {side.shape[-1:] for side in (first, second, mask)}
    if len(lengths) > 1 or not first.dim():
        raise BadInput(f"rows of shapes {shapes}: all must have the same length, which comes last")
    try:
        return torch.broadcast_tensors(first, second, mask)
    except RuntimeError as error:
        raise BadInput(f"rows of shapes {shapes}: the axes before the last must be equal, or one") from error


def as_ids(value: object, name: str) -> Tensor:
    """A tensor of int64; BadInput for numbers that are no integers."""
    ids = as_tensor(value, name)
    if ids.numel() and (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool):
        raise BadInput(f"{name} of {ids.dtype}: expected integers, the ids of a vocabulary")
    return ids.long()


def make_tensors_of(given: object) -> None:
    """Make the fields of a frozen dataclass what they are annotated as; a None stays if it is the default."""
    for field in fields(given):
        make = {Bool: as_mask, Int: as_ids}.get(_tensor_of(field.type).dtype, as_tensor)
        if (own := getattr(given, field.name)) is not None or field.default is MISSING:
            made = make(own, field.name)  # an array may be filled anew
            object.__setattr__(given, field.name, made if isinstance(own, Tensor) else made.clone())


def takes_arrays(function: Function) -> Function:
    """Let arguments that are annotated as tensors be arrays or lists, and masks be left out.

    A mask that is left out, or None, is true everywhere; its shape is read off the annotations, which name
    the axes. Integers 0 and 1 do as a mask, integers become float64 where numbers are asked for, and half
    precision becomes single. Any other tensor comes in as it was given.

    >>> import attnlib
    >>> fitted = attnlib.Components(2).update(np.ones((1, 3, 2)), [[1, 2, 3]])
    >>> fitted.position_counts.tolist()
    [1, 1, 1]
    """
    own = signature(function)
    kinds = {name: _tensor_of(each.annotation) for name, each in own.parameters.items()}
    arrays = {name: kind.dim_str.split() for name, kind in kinds.items() if kind is not None}
    masks = [name for name in arrays if kinds[name].dtype is Bool]

    @wraps(function)
    def taking(*given: object, **named: object) -> object:
        bound = own.bind(*given, **named)
        values, sizes = bound.arguments, {}
        for name, axes in arrays.items():
            if values.get(name) is None and (name in masks or own.parameters[name].default is None):
                continue
            if name in masks:
                values[name] = as_mask(values[name], name)
            elif kinds[name].dtype is Float:
                values[name] = as_numbers(values[name], name)
            else:
                values[name] = as_tensor(values[name], name)
            # "3 3 batch target source" names the last axes of what is given
            _require_axes(name, axes, values[name].shape)
            sizes |= dict(zip(reversed(axes), reversed(values[name].shape), strict=False))
        device = next((each.device for each in values.values() if isinstance(each, Tensor)), None)
        for name in masks:
            axes = arrays[name]
            if values.get(name) is None and all(axis in sizes and axis[0] != "*" for axis in axes):
                values[name] = torch.ones([sizes[axis] for axis in axes], dtype=torch.bool, device=device)
        return function(*bound.args, **bound.kwargs)

    return taking


def _require_axes(name: str, axes: list[str], shape: torch.Size) -> None:
    """Refuse another number of axes, or another size of one whose size is known."""
    known = all(own == str(size) for own, size in zip(axes, shape, strict=False) if own.isdecimal())
    if not axes[0].startswith("*") and not (known and len(axes) == len(shape)):
        raise BadInput(f"{name} of shape {tuple(shape)}; expected ({', '.join(axes)})")


def _tensor_of(annotation: object) -> type | None:
    """The tensor that an annotation is, or may be beside None; None where it is anything else."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if getattr(kind, "array_type", None) is Tensor), None)
