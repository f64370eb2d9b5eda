"""Arrays of any kind as tensors, where a function takes tensors."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import TypeVar, get_args

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.errors import BadInput

Function = TypeVar("Function", bound=Callable)


def as_tensor(value: object, name: str) -> Tensor:
    """Of whatever numpy or torch can make an array; a tensor as it is. BadInput for anything else."""
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(
            f"{name} is {type(value).__name__}, of which no tensor can be made; give a torch.Tensor, or "
            "numbers in an array of one shape"
        ) from error


def require_tensors(given: Mapping[str, object]) -> None:
    """Refuse, by name, what is neither a tensor nor None."""
    for name, own in given.items():
        if own is not None and not isinstance(own, Tensor):
            raise BadInput(f"{name} is {type(own).__name__}; expected a tensor: torch.as_tensor makes one")


def takes_arrays(function: Function) -> Function:
    """Let arguments that are annotated as tensors be arrays or lists, and masks be left out.

    A mask that is left out, or None, is true everywhere; its shape is read off the annotations, which name
    the axes. A tensor comes in as it was given, so that this can move no number.

    >>> import attnlib
    >>> fitted = attnlib.Components(4, 3, 2).update(np.ones((1, 3, 2)), [[1, 2, 3]])
    >>> fitted.position_counts.tolist()
    [1, 1, 1]
    """
    own = signature(function)
    arrays = {name: each.annotation for name, each in own.parameters.items() if _axes(each.annotation)}
    masks = [name for name, kind in arrays.items() if getattr(kind, "dtype", None) is Bool]
    parameters, required = [], False
    for each in reversed(own.parameters.values()):  # no default may come before an argument without one
        if each.name in masks and each.default is Parameter.empty and not required:
            each = each.replace(default=None)
        required |= each.default is Parameter.empty and each.kind == Parameter.POSITIONAL_OR_KEYWORD
        parameters.insert(0, each)
    shown = own.replace(parameters=parameters)

    @wraps(function)
    def taking(*given: object, **named: object) -> object:
        bound = shown.bind(*given, **named)
        values, sizes = bound.arguments, {}
        for name, kind in arrays.items():
            if values.get(name) is not None:
                values[name] = as_tensor(values[name], name)
                # "3 3 batch target source" names the last axes of what is given
                names, shape = _axes(kind), values[name].shape
                _require_axes(name, names, shape)
                sizes |= dict(zip(reversed(names), reversed(shape), strict=False))
        device = next((own.device for own in values.values() if isinstance(own, Tensor)), None)
        for name in masks:
            axes = _axes(arrays[name])
            if values.get(name) is None and all(axis in sizes for axis in axes):
                shape = [sizes[axis] for axis in axes]
                values[name] = torch.ones(shape, dtype=torch.bool, device=device)
        return function(*bound.args, **bound.kwargs)

    taking.__signature__ = shown
    return taking


def _require_axes(name: str, axes: list[str], shape: torch.Size) -> None:
    """Refuse another number of axes, or another size of one whose size is known."""
    known = all(own == str(size) for own, size in zip(axes, shape, strict=False) if own.isdecimal())
    if not axes[0].startswith("*") and not (known and len(axes) == len(shape)):
        raise BadInput(f"{name} of shape {tuple(shape)}; expected ({', '.join(axes)})")


def _axes(annotation: object) -> list[str]:
    """Names of the axes of a tensor's annotation, or of one that may be None; none of anything else."""
    for kind in (annotation, *get_args(annotation)):
        if getattr(kind, "array_type", None) is Tensor:
            return kind.dim_str.split()
    return []
