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
``target_outputs``             (batch, target), integers       what it predicts; by default what is read next,
                                                               and at the last step, where none is, the same
``lexical_probe``              (batch, target, source)         β, where it was taken
``<at>.query_states``          (batch, target, width)          of the queries, before their projection
``<at>.key_states``            (batch, source, width)          of the keys, before their projection
``<at>.query_weight``          (heads, head width, width)      none: the states are compared as they are
``<at>.key_weight``            (heads, head width, width)
``<at>.query_bias``            (heads, head width)             none: no bias
``<at>.key_bias``              (heads, head width)
``<at>.scale``                 ()                              of the product; none: 1
``<at>.position_bias``         (batch or 1, heads, target,     added to the product
                               source)
``<at>.attention``             (batch, heads, target, source)  what the model made of it, which the scores
                                                               are compared with; none: nothing checks them
=============================  ==============================  ==============================================

In self-attention both sides are one sequence: ``query_states`` stands for both. Cross-attentions without a
``key_states`` of their own take ``encoder_states``. Weights that are the same in every batch may stand in a
file ``maps.safetensors`` of the folder.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnlib.arrays import as_ids, as_mask, as_tensor
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import require_plain
from attnlib.linear_map import LinearMap
from attnlib.trace import Attention, AttentionKind, Trace

MAPS = "maps.safetensors"
_TOKENS = ("source_tokens", "source_mask", "target_tokens", "target_mask")
_KNOWN = (*_TOKENS, "target_outputs", "encoder_states", "lexical_probe")
_OF_ATTENTION = re.compile(
    rf"({'|'.join(get_args(AttentionKind))})\.([0-9]+)\."
    "(query_states|key_states|query_weight|key_weight|query_bias|key_bias|scale|position_bias|attention)"
)


def pass_of_tensors(tensors: Mapping[str, object]) -> Trace:
    """A pass from tensors, or arrays, with the names of this module; padding may stand on either side.

    Raises:
        BadInput: a name that is unknown or missing, shapes that do not fit, attention that the states do not
            make. Without ``<at>.attention`` nothing is compared: :attr:`Trace.unchecked` says where.

    >>> given = dict.fromkeys(("source_tokens", "target_tokens"), torch.tensor([[5, 6]]))
    >>> given |= dict.fromkeys(("source_mask", "target_mask"), torch.ones(1, 2, dtype=torch.bool))
    >>> given |= {"encoder_states": torch.eye(2)[None], "cross.0.query_states": torch.eye(2)[None]}
    >>> found = pass_of_tensors(given)
    >>> found.unchecked, found.attentions[0].scores.tolist()
    (('cross.0',), [[[[1.0, 0.0], [0.0, 1.0]]]])
    """
    absent = [name for name in _TOKENS if name not in tensors]
    if absent:
        names = sorted(tensors)
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        there = (", ".join(names[:5]) or "none") + more
        raise BadInput(f"tensors lack {', '.join(absent)}; they have {there}")
    tensors = {name: _real(as_tensor(own, name), name) for name, own in tensors.items()}
    places = set()
    for name in sorted(tensors.keys() - set(_KNOWN)):
        if (match := _OF_ATTENTION.fullmatch(name)) is None:
            raise BadInput(
                f"no tensor {name!r} is known; those of an attention are named like cross.0.query_states"
            )
        places.add((match[1], match[2]))
    words = {name: tensors[name] for name in (*_TOKENS, "target_outputs") if name in tensors}
    for name, own in words.items():
        if not own.numel():
            raise BadInput(f"{name} of shape {tuple(own.shape)}: expected a sample and a position at least")
        words[name] = (as_mask if name.endswith("mask") else as_ids)(own, name)
    ordered = sorted(places, key=lambda place: (place[0], int(place[1])))
    trace = Trace(
        **{"target_outputs": words["target_tokens"]} | words,
        lexical_probe=tensors.get("lexical_probe"),
        attentions=tuple(_attention(tensors, kind, layer) for kind, layer in ordered),
    )
    if "target_outputs" in tensors:
        return trace.validated()
    trace.check_tensors()
    trace = trace.padded_right()
    read, follows = trace.target_tokens, trace.target_mask[:, 1:]
    following = torch.where(follows, read[:, 1:], read[:, :-1])
    return replace(trace, target_outputs=torch.cat([following, read[:, -1:]], dim=1)).validated()


def _real(tensor: Tensor, name: str) -> Tensor:
    if tensor.is_complex():
        raise BadInput(f"{name} of {tensor.dtype}: expected real numbers")
    whole = name in (*_TOKENS, "target_outputs") or tensor.is_floating_point()
    return tensor if whole else tensor.float()


def saved_files(folder: str | Path) -> list[Path]:
    """The files of a folder that hold a batch each, in the order of their names; BadInput without any."""
    paths = sorted(path for path in Path(folder).glob("*.safetensors") if path.name != MAPS)
    if not paths:
        raise BadInput(f"{folder} holds no *.safetensors; expected one a batch, see attnlib.adapters.tensors")
    return paths


def digest_of(folder: str | Path) -> str:
    """A hash of the files of a folder, shared weights included."""
    found = hashlib.sha256()
    for path in sorted(Path(folder).glob("*.safetensors")):
        require_plain(path)
        with path.open("rb") as file:
            found.update(os.fsencode(path.name) + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def read_pass(path: Path) -> Trace:
    """The pass of one file, with ``maps.safetensors`` beside it where there is one; BadInput for no pass."""
    shared = path.with_name(MAPS)
    tensors = (_read(shared) if shared.exists() else {}) | _read(path)
    try:
        return pass_of_tensors(tensors)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def saved_passes(folder: str | Path) -> Iterator[Trace]:
    """The passes of a folder, one after the other; BadInput as :func:`pass_of_tensors`, CorruptFile."""
    return map(read_pass, saved_files(folder))


def _read(path: Path) -> dict[str, Tensor]:
    require_plain(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CorruptFile(f"{path} cannot be read as safetensors ({error}): write it again") from error


def _attention(tensors: Mapping[str, Tensor], kind: AttentionKind, layer: str) -> Attention:
    place = f"{kind}.{layer}"
    own = {name.rpartition(".")[2]: each for name, each in tensors.items() if name.startswith(f"{place}.")}
    if "query_states" not in own:
        raise BadInput(f"{place} lacks {place}.query_states")
    precision, names = own["query_states"].dtype, set(own)
    shared = kind == "cross" and "key_states" not in own
    if shared and "encoder_states" not in tensors:
        raise BadInput(f"{place} lacks {place}.key_states, and there is no encoder_states")
    own.setdefault("key_states", tensors["encoder_states"] if shared else own["query_states"])
    if own.get("scale", torch.ones(())).numel() != 1:
        raise BadInput(f"{place}.scale is of shape {tuple(own['scale'].shape)}; expected one number")
    computed = (each.dtype for name, each in own.items() if name not in ("scale", "attention"))
    dtype = reduce(torch.promote_types, computed, torch.float32)
    own = {name: each if name == "attention" else each.to(dtype) for name, each in own.items()}
    weights = names & {"query_weight", "key_weight"}
    if len(weights) == 1:
        raise BadInput(f"{place} has a weight for one side: give query_weight and key_weight, or neither")
    if not weights and names & {"query_bias", "key_bias"}:
        raise BadInput(f"{place} has a bias and no weights: give query_weight and key_weight as well")
    try:
        maps = [
            LinearMap(own[f"{side}_weight"], own.get(f"{side}_bias"))
            if weights
            else LinearMap.none(own[f"{side}_states"])
            for side in ("query", "key")
        ]
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error
    return Attention(
        kind=kind,
        layer=int(layer),
        query_inputs=own["query_states"],
        key_inputs=own["key_states"],
        query_site=f"{place}.query",
        key_site="encoder" if shared else f"{place}.{'key' if 'key_states' in names else 'query'}",
        maps=(maps[0], maps[1]),
        scale=float(own.get("scale", 1.0)),
        position_bias=own.get("position_bias"),
        attention=own.get("attention"),
        causal=kind == "decoder_self",
        precision=precision,
    )
