"""Passes from plain tensors: what somebody else's code computed, with no framework in between.

The names of the tensors of a batch, in a mapping or in a safetensors file. ``<at>`` stands for an attention:
``cross.0``, ``encoder_self.3``, ``decoder_self.0``, its kind and its layer.

=============================  ==============================  ==============================================
name                           shape                           meaning
=============================  ==============================  ==============================================
``source_tokens``              (batch, source), integers       ids
``source_mask``                (batch, source), bool           True at valid positions
``target_tokens``              (batch, target), integers       what the decoder *reads*
``target_mask``                (batch, target), bool
``target_outputs``             (batch, target), integers       what it predicts; by default what is read next
``<at>.query_states``          (batch, target, width)          what asks, before its projection
``<at>.key_states``            (batch, source, width)          what answers, before its projection
``<at>.query_weight``          (heads, head width, width)      none: the states are compared as they are
``<at>.key_weight``            (heads, head width, width)
``<at>.query_bias``            (heads, head width)             none: no bias
``<at>.key_bias``              (heads, head width)
``<at>.scale``                 ()                              of the product; none: 1
``<at>.position_bias``         (batch or 1, heads, target,     added to the product
                               source)
``<at>.attention``             (batch, heads, target, source)  what the model made of it: the check
=============================  ==============================  ==============================================

In self-attention both sides are one sequence: ``query_states`` stands for both. Cross-attentions without a
``key_states`` of their own take ``encoder_states``. Weights that are the same in every batch may stand in a
file ``maps.safetensors`` of the folder.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap
from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput, CorruptFile
from attnlib.models.transformer_trace import AttentionKind

MAPS = "maps.safetensors"
_TOKENS = ("source_tokens", "source_mask", "target_tokens", "target_mask")
_OWN = (
    "query_states", "key_states", "query_weight", "key_weight", "query_bias", "key_bias", "scale",
    "position_bias", "attention",
)  # fmt: skip
_KNOWN = (*_TOKENS, "target_outputs", "encoder_states")


def pass_of_tensors(tensors: Mapping[str, Tensor]) -> ModelPass:
    """A pass from tensors with the names of this module; padding may stand on either side.

    Raises:
        BadInput: a name that is unknown or missing, shapes that do not fit, attention that the states do not
            make.
    """
    absent = [name for name in _TOKENS if name not in tensors]
    if absent:
        raise BadInput(f"tensors lack {', '.join(absent)}; they have {', '.join(sorted(tensors)) or 'none'}")
    places = sorted({name.rpartition(".")[0] for name in tensors if name not in _KNOWN})
    for name in tensors:
        place, _, own = name.rpartition(".")
        kind, _, layer = place.partition(".")
        if name not in _KNOWN and not (
            own in _OWN and kind in get_args(AttentionKind) and layer.isascii() and layer.isdigit()
        ):
            raise BadInput(
                f"no tensor {name!r} is known; those of an attention are named like cross.0.query_states"
            )
    read = tensors["target_tokens"]
    found = ModelPass(
        source_tokens=tensors["source_tokens"].long(),
        source_mask=tensors["source_mask"].bool(),
        target_tokens=read.long(),
        target_outputs=tensors.get("target_outputs", torch.cat([read[:, 1:], read[:, -1:]], 1)).long(),
        target_mask=tensors["target_mask"].bool(),
        attended=tuple(_attended(tensors, place) for place in places),
    )
    _check_shapes(found)
    found = found.to_the_left()
    found.check()
    return found


def saved_passes(folder: str | Path) -> Iterator[ModelPass]:
    """The passes of a folder of safetensors files, one file a batch, in the order of their names.

    Raises:
        BadInput: no such files, or :func:`pass_of_tensors`; the message names the file. CorruptFile: a file
            that cannot be read.
    """
    folder = Path(folder)
    paths = sorted(path for path in folder.glob("*.safetensors") if path.name != MAPS)
    if not paths:
        raise BadInput(f"{folder} holds no *.safetensors; expected one a batch, see attnlib.adapters.tensors")
    maps = _read(folder / MAPS) if (folder / MAPS).exists() else {}
    for path in paths:
        try:
            yield pass_of_tensors(maps | _read(path))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CorruptFile(f"{path} cannot be read as safetensors ({error}): write it again") from error


def _attended(tensors: Mapping[str, Tensor], place: str) -> Attended:
    kind, _, layer = place.partition(".")
    own = {name: tensors[f"{place}.{name}"] for name in _OWN if f"{place}.{name}" in tensors}
    query = own.get("query_states")
    if query is None:
        raise BadInput(f"{place} lacks {place}.query_states")
    shared = kind == "cross" and "key_states" not in own
    key = tensors.get("encoder_states") if shared else own.get("key_states", query)
    if key is None:
        raise BadInput(f"{place} lacks {place}.key_states, and there is no encoder_states")
    if ("query_weight" in own) != ("key_weight" in own):
        raise BadInput(f"{place} has a weight for one side: give query_weight and key_weight, or neither")
    maps = [
        LinearMap(_single(own[f"{side}_weight"]), _single(own.get(f"{side}_bias")))
        if "query_weight" in own
        else LinearMap.none(states.shape[-1])
        for side, states in (("query", query), ("key", key))
    ]
    return Attended(
        kind=kind,
        layer=int(layer),
        query_inputs=_single(query),
        key_inputs=_single(key),
        query_site=f"{place}.query",
        key_site="encoder" if shared else f"{place}.{'key' if kind == 'cross' else 'query'}",
        query_map=maps[0],
        key_map=maps[1],
        scale=float(own.get("scale", 1.0)),
        position_bias=_single(own.get("position_bias")),
        attention=own.get("attention"),
        causal=kind == "decoder_self",
    )


def _single(tensor: Tensor | None) -> Tensor | None:
    """Half precision is computed with in single."""
    return None if tensor is None else tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _check_shapes(found: ModelPass) -> None:
    for side in ("source", "target"):
        tokens, mask = found.tokens(side), found.mask(side)
        if tokens.dim() != 2 or tokens.shape != mask.shape:
            raise BadInput(
                f"{side}_tokens of shape {tuple(tokens.shape)}, {side}_mask of {tuple(mask.shape)}; expected "
                "(batch, length) of both"
            )
        if not bool(mask.any(1).all()):
            raise BadInput(f"{side} row {int(mask.any(1).int().argmin())} is all padding: leave it out")
    for one in found.attended:
        sides = zip(found.sides(one.kind), (one.query_inputs, one.key_inputs), strict=True)
        for (side, states), own in zip(sides, (one.query_map, one.key_map), strict=True):
            expected = (*found.tokens(side).shape, own.weight.shape[-1])
            if tuple(states.shape) != expected:
                raise BadInput(f"{one.name}: states of shape {tuple(states.shape)}; expected {expected}")
        lengths = tuple(found.tokens(side).shape[1] for side in found.sides(one.kind))
        full = (len(found.source_tokens), one.heads, *lengths)
        for name, matrix in (("attention", one.attention), ("position_bias", one.position_bias)):
            if matrix is not None and tuple(matrix.shape) not in (full, (1, *full[1:])):
                raise BadInput(f"{one.name}: {name} of shape {tuple(matrix.shape)}; expected {full}")
