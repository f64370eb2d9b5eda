"""Convert arrays of any kind to tensors, for functions that take tensors."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from attnlib.errors import BadInput

# Common annotations. A type checker lets callers pass whatever numpy or torch can convert to an array, or
# omit a mask; in the body of a function that :func:`takes_arrays` decorates, all of these are tensors.
if TYPE_CHECKING:
    Array = States = Tokens = Mask = Terms = AttentionMatrices = TargetMask = SourceMask = Rows = RowMask = (
        Any
    )
else:
    Array = Tensor
    # States, ids of tokens, and a mask that is True at valid positions:
    States = Float[Array, "batch length width"]
    Tokens = Integer[Array, "batch length"]
    Mask = Bool[Array, "batch length"] | None
    # Alignment terms, decoder's part first, or attention; and the masks of both of their sides:
    Terms = Float[Array, "3 3 batch target source"]
    AttentionMatrices = Float[Array, "batch target source"]
    TargetMask = Bool[Array, "batch target"] | None
    SourceMask = Bool[Array, "batch source"] | None
    # Rows of any number of axes, which broadcast:
    Rows = Float[Array, "*#rows length"]
    RowMask = Bool[Array, "*#rows length"] | None

Function = TypeVar("Function", bound=Callable)
EVERYWHERE = None  # the default of a mask
HALF_PRECISION = (torch.float16, torch.bfloat16)  # too coarse for products of states


class ShowsShapes:
    """Base of dataclasses of tensors whose ``repr`` shows the shapes of tensors instead of their numbers.

    Fields that are None are left out; objects with names, such as attentions, are shown by their names.
    """

    def __repr__(self) -> str:
        entries = []
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if field.repr and value is not None:
                entries.append(f"{field.name}={_shape_or_value(value)}")
        return f"{type(self).__name__}({', '.join(entries)})"


def _shape_or_value(value: Any) -> str:
    """Return the dtype and shape of an array, the names of named objects, or else the value.

    Example:
        >>> _shape_or_value(torch.zeros(2, 3)), _shape_or_value(np.array(1.5)), _shape_or_value("means")
        ('float32 (2, 3)', '1.5', "'means'")
        >>> _shape_or_value({"temporal": torch.zeros(2, 3)})
        '{temporal: float32 (2, 3)}'
    """
    if isinstance(value, Tensor | np.ndarray):
        if value.ndim == 0:
            return str(value.item())
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        entries = [f"{name}: {_shape_or_value(entry)}" for name, entry in value.items()]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, tuple):
        names = [getattr(entry, "name", None) or _shape_or_value(entry) for entry in value]
        return f"({', '.join(names)})"
    if callable(value) and not is_dataclass(value):
        return "computed when needed"
    return repr(value)


@overload
def as_tuple(value: None) -> None: ...


@overload
def as_tuple(value: Any) -> tuple: ...


def as_tuple(value: Any) -> tuple | None:
    """Return a single value, or a collection of values, as a tuple; None stays None.

    Example:
        >>> as_tuple("cross"), as_tuple(np.arange(2)), as_tuple(None)
        (('cross',), (0, 1), None)
    """
    if value is None:
        return None
    if hasattr(value, "tolist"):  # an array, or a number out of one
        value = value.tolist()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def as_tensor(value: object, name: str) -> Tensor:
    """Convert whatever numpy or torch can make an array of to a tensor; return a tensor as it is.

    Args:
        value: a tensor, an array, or nested lists of numbers.
        name: of the argument, for messages.

    Raises:
        BadInput: it cannot be converted.

    Example:
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
            f"{name} is {type(value).__name__}, which cannot be converted to a tensor; give a torch.Tensor, "
            "or numbers in an array of one shape"
        ) from error


def as_mask(value: object, name: str) -> Tensor:
    """Convert to a tensor of bool.

    Args:
        value: truth values, or integers 0 and 1.
        name: of the argument, for messages.

    Raises:
        BadInput: there are numbers other than the integers 0 and 1.
    """
    mask = as_tensor(value, name)
    if mask.dtype == torch.bool:
        return mask
    expected = "expected torch.bool, True at valid positions, or integers 0 and 1"
    if mask.is_floating_point() or mask.is_complex():
        raise BadInput(f"{name} of {mask.dtype}: {expected}")
    if bool(((mask != 0) & (mask != 1)).any()):
        raise BadInput(f"{name} of {mask.dtype} with other numbers: {expected}")
    return mask.bool()


def as_numbers(value: object, name: str) -> Tensor:
    """Convert to a floating-point tensor: half precision becomes single, integers become float64.

    Args:
        value: real numbers.
        name: of the argument, for messages.

    Raises:
        BadInput: they are complex numbers or truth values.

    Example:
        >>> as_numbers([[1, 2]], "attention").dtype
        torch.float64
    """
    numbers = as_tensor(value, name)
    if numbers.is_complex() or numbers.dtype == torch.bool:
        raise BadInput(f"{name} of {numbers.dtype}: expected real numbers")
    if numbers.dtype in HALF_PRECISION:
        return numbers.float()
    if not numbers.is_floating_point():
        return numbers.double()
    return numbers


def aligned_rows(first: Tensor, second: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Broadcast two sets of rows and their mask, true everywhere by default, to one shape.

    Raises:
        BadInput: their lengths differ, or their leading axes do not broadcast.
    """
    if mask is None:
        mask = torch.ones_like(first, dtype=torch.bool)
    shapes = f"{tuple(first.shape)} and {tuple(second.shape)} with a mask of {tuple(mask.shape)}"
    lengths = {tensor.shape[-1:] for tensor in (first, second, mask)}
    if len(lengths) > 1 or not first.dim():
        raise BadInput(f"rows of shapes {shapes}: all must have the same length, which comes last")
    try:
        return torch.broadcast_tensors(first, second, mask)
    except RuntimeError as error:
        raise BadInput(f"rows of shapes {shapes}: the axes before the last must be equal, or one") from error


def as_ids(value: object, name: str) -> Tensor:
    """Convert to a tensor of int64.

    Args:
        value: integers.
        name: of the argument, for messages.

    Raises:
        BadInput: there are numbers that are not integers.
    """
    ids = as_tensor(value, name)
    if ids.numel() and (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool):
        raise BadInput(f"{name} of {ids.dtype}: expected integers, the ids of a vocabulary")
    return ids.long()


def make_tensors_of(instance: Any) -> None:
    """Convert each field of a frozen dataclass of tensors to the type of its annotation.

    A None stays if it is the default. Arrays are copied, since their owner may change them.
    """
    for field in fields(instance):
        value = getattr(instance, field.name)
        if value is None and field.default is not MISSING:
            continue
        annotation = _tensor_annotation(field.type)
        if annotation.dtype is Bool:
            tensor = as_mask(value, field.name)
        elif annotation.dtype is Int:
            tensor = as_ids(value, field.name)
        else:
            tensor = as_tensor(value, field.name)
        if not isinstance(value, Tensor):
            tensor = tensor.clone()
        object.__setattr__(instance, field.name, tensor)


def takes_arrays(function: Function) -> Function:
    """Let arguments that are annotated as tensors be arrays or lists, and let masks be omitted.

    An omitted mask, or None, is True everywhere; its shape follows from the annotations, which name the axes.
    Integers 0 and 1 are taken as a mask, integers become float64 where numbers are expected, and half
    precision becomes single. Any other tensor is passed on as it is.

    Args:
        function: with annotations by jaxtyping.

    Example:
        >>> import attnlib
        >>> fitted = attnlib.Components(2).update(np.ones((1, 3, 2)), [[1, 2, 3]])
        >>> fitted.position_counts.tolist()
        [1, 1, 1]
    """
    function_signature = signature(function)
    parameters = function_signature.parameters
    annotations = {name: _tensor_annotation(parameter.annotation) for name, parameter in parameters.items()}
    arrays = {name: annotation for name, annotation in annotations.items() if annotation is not None}
    masks = {name: annotation for name, annotation in arrays.items() if annotation.dtype is Bool}
    optional = {name for name in arrays if name in masks or parameters[name].default is None}

    @wraps(function)
    def with_tensors(*positional: Any, **named: Any) -> Any:
        bound = function_signature.bind(*positional, **named)
        arguments = bound.arguments
        sizes: dict[str, int] = {}  # of each axis that an annotation names
        for name, annotation in arrays.items():
            if arguments.get(name) is None and name in optional:
                continue
            tensor = _as_annotated(arguments[name], name, annotation)
            arguments[name] = tensor
            axes = annotation.dim_str.split()
            _require_axes(name, axes, tensor.shape)
            # An annotation such as "*rows length" names the last axes.
            sizes |= dict(zip(reversed(axes), reversed(tensor.shape), strict=False))
        device = next((value.device for value in arguments.values() if isinstance(value, Tensor)), None)
        for name, annotation in masks.items():
            axes = annotation.dim_str.split()
            has_known_shape = all(axis in sizes and not axis.startswith("*") for axis in axes)
            if arguments.get(name) is None and has_known_shape:
                shape = [sizes[axis] for axis in axes]
                arguments[name] = torch.ones(shape, dtype=torch.bool, device=device)
        return function(*bound.args, **bound.kwargs)

    return cast(Function, with_tensors)


def _as_annotated(value: Any, name: str, annotation: Any) -> Tensor:
    if annotation.dtype is Bool:
        return as_mask(value, name)
    if annotation.dtype is Float:
        return as_numbers(value, name)
    return as_tensor(value, name)


def _require_axes(name: str, axes: list[str], shape: torch.Size) -> None:
    """Raise BadInput for a wrong number of axes, or a wrong size of an axis that is annotated with one."""
    if axes[0].startswith("*"):
        return
    sizes_fit = all(axis == str(size) for axis, size in zip(axes, shape, strict=False) if axis.isdecimal())
    if len(axes) != len(shape) or not sizes_fit:
        raise BadInput(f"{name} of shape {tuple(shape)}; expected ({', '.join(axes)})")


def _tensor_annotation(annotation: Any) -> Any:
    """Return the jaxtyping annotation of a tensor, also of an optional one; None for other annotations."""
    for candidate in (annotation, *get_args(annotation)):
        if getattr(candidate, "array_type", None) is Tensor:
            return candidate
    return None


# -- ids and their masks --


def valid_first(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """Return an order of positions in which the valid ones of each row come first, then padding."""
    return torch.argsort(~mask, dim=1, stable=True)


def require_tokens(ids_and_masks: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Raise BadInput for ids and masks that do not fit each other; ids at padding are arbitrary.

    Args:
        ids_and_masks: by name, the source first.
    """
    for name, (ids, mask) in ids_and_masks.items():
        if ids.dim() != 2 or ids.shape != mask.shape or mask.dtype != torch.bool:
            raise BadInput(
                f"{name} of shape {tuple(ids.shape)} with a mask of shape {tuple(mask.shape)} and "
                f"{mask.dtype}; expected (batch, length) of both, the mask of torch.bool (mask.bool())"
            )
        has_valid = mask.any(1)  # (batch,)
        if not bool(has_valid.all()):
            row = int(has_valid.int().argmin())
            raise BadInput(f"{name} row {row} is all padding: leave such samples out")
    counts = [len(ids) for ids, _ in ids_and_masks.values()]
    if counts[0] != counts[-1]:
        raise BadInput(f"{counts[0]} sources with {counts[-1]} targets")
    for name, (ids, mask) in ids_and_masks.items():
        is_negative = (ids < 0) & mask
        if bool(is_negative.any()):
            row, position = is_negative.nonzero()[0].tolist()
            raise BadInput(
                f"{name} hold {int(ids[row, position])} at valid position {position} of row {row}: ids start "
                "at 0; a label that does not count, such as -100, is padding: set the mask to False there"
            )
