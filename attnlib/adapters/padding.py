"""Padding moved to the right of every row, with all that belongs to a position."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.errors import BadInput

if TYPE_CHECKING:
    from attnlib.adapters.model_pass import ModelPass

Orders = dict[str, Int[Tensor, "batch length"] | None]


def order_of(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
    """Places of the valid positions, then those of padding; None where they are in this order already.

    >>> order_of(torch.tensor([[False, True, True], [True, True, False]])).tolist()
    [[1, 2, 0], [0, 1, 2]]
    >>> order_of(torch.tensor([[True, False]])) is None
    True
    """
    order = torch.argsort(~mask, dim=1, stable=True)
    ahead = torch.arange(mask.shape[1], device=mask.device)
    return None if bool((order == ahead).all()) else order


def fields_at_the_left(one: "ModelPass") -> dict[str, Any]:
    """The fields of a pass with padding at the right of every row; valid positions keep their order.

    Raises:
        BadInput: an attention that would have to move rotates by position.
    """
    orders = {side: order_of(one.mask(side)) for side in ("source", "target")}
    given = {field.name: getattr(one, field.name) for field in fields(one)}
    if all(order is None for order in orders.values()):
        return given
    moved = {
        name: _moved(value, orders["source" if "source" in name else "target"], 1)
        for name, value in given.items()
        if name not in ("attended", "lexical_probe")
    }
    moved["lexical_probe"] = _moved(_moved(one.lexical_probe, orders["target"], 1), orders["source"], 2)
    moved["attended"] = tuple(_reordered(own, one, orders) for own in one.attended)
    return moved


def _reordered(own: Attended, one: "ModelPass", orders: Orders) -> Attended:
    asks, answers = (orders[side] for side in one.sides(own.kind))
    if own.query_rotation is not None or own.key_rotation is not None:
        raise BadInput(f"{own.name} rotates by position: pad its batches at the right")
    matrices = {
        name: _moved(_moved(_whole(getattr(own, name), len(one.source_mask)), asks, 2), answers, 3)
        for name in ("position_bias", "attention")
    }
    inputs = {"query_inputs": _moved(own.query_inputs, asks, 1)}
    return replace(own, **inputs, key_inputs=_moved(own.key_inputs, answers, 1), **matrices)


def _moved(tensor: Tensor | None, order: Tensor | None, axis: int) -> Tensor | None:
    if tensor is None or order is None:
        return tensor
    shape = [1] * tensor.dim()
    shape[0], shape[axis] = order.shape
    return tensor.take_along_dim(order.view(shape), dim=axis)


def _whole(matrix: Tensor | None, batch: int) -> Tensor | None:
    return None if matrix is None else matrix.expand(batch, -1, -1, -1)
