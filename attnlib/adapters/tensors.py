"""Make traces of plain tensors, which any code can compute and save, with no framework in between.

The names of the tensors of a batch, in a mapping or in a safetensors file. ``<at>`` is an attention:
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

In self-attention both sides are one sequence, and ``query_states`` serves for both. A cross-attention without
``key_states`` takes ``encoder_states``. Weights that are the same in every batch may be saved once, in a file
``maps.safetensors`` of the folder.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import cast, get_args

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnlib.arrays import ShowsShapes, as_ids, as_mask, as_tensor
from attnlib.errors import BadInput, CorruptFile, first_names
from attnlib.files import require_plain
from attnlib.linear_map import LinearMap
from attnlib.trace import Attention, AttentionKind, Trace

MAPS = "maps.safetensors"
_REQUIRED = ("source_tokens", "source_mask", "target_tokens", "target_mask")
_OF_WORDS = (*_REQUIRED, "target_outputs")
_OF_A_PASS = (*_OF_WORDS, "encoder_states", "lexical_probe")
_OF_ATTENTION = re.compile(
    rf"({'|'.join(get_args(AttentionKind))})\.([0-9]+)\."
    "(query_states|key_states|query_weight|key_weight|query_bias|key_bias|scale|position_bias|attention)"
)
_MOST_NAMED = 5  # tensors that a message names


def pass_of_tensors(tensors: Mapping[str, object]) -> Trace:
    """Return the validated trace of one batch from named tensors or arrays.

    Args:
        tensors: by the names listed at the top of this module. Padding may be on either side of a row.

    Returns:
        The trace, padded at the right. Attentions that come without ``<at>.attention`` are compared with
        nothing; :attr:`Trace.unchecked` names them.

    Raises:
        BadInput: a name is unknown or missing, shapes do not fit together, or an attention is not the softmax
            of the scores of its states.

    Example:
        >>> words, valid = torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.bool)
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> tensors |= {"target_tokens": words, "target_mask": valid}
        >>> tensors |= {"encoder_states": torch.eye(2)[None], "cross.0.query_states": torch.eye(2)[None]}
        >>> trace = pass_of_tensors(tensors)
        >>> trace.unchecked, trace.attentions[0].scores.tolist()
        (('cross.0',), [[[[1.0, 0.0], [0.0, 1.0]]]])
    """
    _require_names(tensors)
    tensors_by_name = {name: _real(as_tensor(value, name), name) for name, value in tensors.items()}
    prefixes = _prefixes_of_attentions(tensors_by_name)
    words = _words_and_masks(tensors_by_name)
    attentions = [_attention(tensors_by_name, prefix) for prefix in prefixes]
    trace = Trace(
        source_tokens=words["source_tokens"],
        source_mask=words["source_mask"],
        target_tokens=words["target_tokens"],
        target_mask=words["target_mask"],
        target_outputs=words.get("target_outputs", words["target_tokens"]),
        lexical_probe=tensors_by_name.get("lexical_probe"),
        attentions=tuple(attentions),
    )
    if "target_outputs" not in words:
        trace = _predicting_what_is_read_next(trace)
    return trace.validated()


@dataclass(frozen=True, order=True)
class _Prefix:
    """The ``<at>`` with which the names of the tensors of an attention begin, as text and taken apart."""

    kind: AttentionKind
    layer: int
    text: str


def _require_names(tensors: Mapping[str, object]) -> None:
    """Raise BadInput unless the words and masks of both sides are there."""
    absent = [name for name in _REQUIRED if name not in tensors]
    if not absent:
        return
    names = sorted(tensors)
    present = first_names(names, most=_MOST_NAMED) or "none"
    raise BadInput(f"tensors lack {', '.join(absent)}; they have {present}")


def _real(tensor: Tensor, name: str) -> Tensor:
    """Return a tensor of real numbers: words and masks as they are, all else as floats."""
    if tensor.is_complex():
        raise BadInput(f"{name} of {tensor.dtype}: expected real numbers")
    if name in _OF_WORDS or tensor.is_floating_point():
        return tensor
    return tensor.float()


def _prefixes_of_attentions(tensors: Mapping[str, Tensor]) -> list[_Prefix]:
    """Return the attentions that the names of tensors are about, by kind and layer."""
    prefixes = set()
    for name in sorted(tensors.keys() - set(_OF_A_PASS)):
        match = _OF_ATTENTION.fullmatch(name)
        if match is None:
            raise BadInput(
                f"no tensor {name!r} is known; those of an attention are named like cross.0.query_states"
            )
        kind, layer = match[1], match[2]
        prefixes.add(_Prefix(cast("AttentionKind", kind), int(layer), f"{kind}.{layer}"))
    return sorted(prefixes)


def _words_and_masks(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of words as integers and the masks as truth values."""
    words = {}
    for name in _OF_WORDS:
        if name not in tensors:
            continue
        tensor = tensors[name]
        if not tensor.numel():
            shape = tuple(tensor.shape)
            raise BadInput(f"{name} of shape {shape}: expected a sample and a position at least")
        words[name] = as_mask(tensor, name) if name.endswith("mask") else as_ids(tensor, name)
    return words


def _predicting_what_is_read_next(trace: Trace) -> Trace:
    """Return the trace with outputs: each step predicts the token that is read next, the last its own."""
    trace.check_tensors()
    trace = trace.padded_right()
    read = trace.target_tokens  # (batch, target)
    has_next = trace.target_mask[:, 1:]  # (batch, target - 1)
    predicted = torch.where(has_next, read[:, 1:], read[:, :-1])  # (batch, target - 1)
    return replace(trace, target_outputs=torch.cat([predicted, read[:, -1:]], dim=1))


# -- one attention --


@dataclass(frozen=True, eq=False, repr=False)
class _Keys(ShowsShapes):
    """The states that keys are made of, and the name under which an analysis counts them."""

    states: Float[Tensor, "batch source width"]
    site: str


def _attention(tensors: Mapping[str, Tensor], prefix: _Prefix) -> Attention:
    """Return an attention; all that its scores are computed of is brought to one precision."""
    start = f"{prefix.text}."
    fields = {}
    for name, tensor in tensors.items():
        if name.startswith(start):
            fields[name.removeprefix(start)] = tensor
    if "query_states" not in fields:
        raise BadInput(f"{prefix.text} lacks {prefix.text}.query_states")
    query_states = fields["query_states"]  # (batch, target, width)
    keys = _keys_of(prefix, fields, tensors.get("encoder_states"))
    scale = fields.get("scale", torch.ones(()))
    if scale.numel() != 1:
        raise BadInput(f"{prefix.text}.scale is of shape {tuple(scale.shape)}; expected one number")
    computed = {name: tensor for name, tensor in fields.items() if name not in ("scale", "attention")}
    computed["key_states"] = keys.states
    precisions = [tensor.dtype for tensor in computed.values()]
    precision = reduce(torch.promote_types, precisions, torch.float32)
    operands = {name: tensor.to(precision) for name, tensor in computed.items()}
    query_map, key_map = _maps_of(prefix, operands)
    return Attention(
        kind=prefix.kind,
        layer=prefix.layer,
        query_inputs=operands["query_states"],
        key_inputs=operands["key_states"],
        query_site=f"{prefix.text}.query",
        key_site=keys.site,
        maps=(query_map, key_map),
        scale=float(scale.to(precision)),
        position_bias=operands.get("position_bias"),
        weights=fields.get("attention"),
        causal=prefix.kind == "decoder_self",
        precision=query_states.dtype,
    )


def _keys_of(prefix: _Prefix, fields: Mapping[str, Tensor], encoder_states: Tensor | None) -> _Keys:
    """Return the states of the keys: given for this attention, or those that it shares with others."""
    if "key_states" in fields:
        return _Keys(fields["key_states"], site=f"{prefix.text}.key")
    if prefix.kind != "cross":  # self-attention: both sides are one sequence
        return _Keys(fields["query_states"], site=f"{prefix.text}.query")
    if encoder_states is None:
        raise BadInput(f"{prefix.text} lacks {prefix.text}.key_states, and encoder_states are missing too")
    return _Keys(encoder_states, site="encoder")


def _maps_of(prefix: _Prefix, operands: Mapping[str, Tensor]) -> tuple[LinearMap, LinearMap]:
    """Return the projections of queries and keys; without weights, states are compared as they are."""
    weights = [name for name in ("query_weight", "key_weight") if name in operands]
    has_bias = "query_bias" in operands or "key_bias" in operands
    if len(weights) == 1:
        raise BadInput(
            f"{prefix.text} has a weight for one side: give query_weight and key_weight, or neither"
        )
    if not weights and has_bias:
        raise BadInput(f"{prefix.text} has a bias and no weights: give query_weight and key_weight as well")
    try:
        if not weights:
            return LinearMap.none(operands["query_states"]), LinearMap.none(operands["key_states"])
        query_map = LinearMap(operands["query_weight"], operands.get("query_bias"))
        key_map = LinearMap(operands["key_weight"], operands.get("key_bias"))
    except BadInput as error:
        raise BadInput(f"{prefix.text}: {error}") from error
    return query_map, key_map


# -- files --


def saved_files(folder: str | Path) -> list[Path]:
    """Return the files of a folder that hold a batch each, in the order of their names.

    Args:
        folder: holds a file ``*.safetensors`` for each batch, and perhaps :data:`MAPS`.

    Returns:
        Their paths, without that of :data:`MAPS`.

    Raises:
        BadInput: the folder holds no such file.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("batch_1.safetensors", "batch_0.safetensors", MAPS):
        ...     (folder / name).touch()
        >>> [path.name for path in saved_files(folder)]
        ['batch_0.safetensors', 'batch_1.safetensors']
    """
    paths = sorted(path for path in Path(folder).glob("*.safetensors") if path.name != MAPS)
    if not paths:
        raise BadInput(f"{folder} holds no *.safetensors; expected one a batch, see attnlib.adapters.tensors")
    return paths


def digest_of(folder: str | Path) -> str:
    """Return the SHA-256 of the names and contents of the tensor files of a folder, shared weights included.

    Args:
        folder: holds files ``*.safetensors``; others do not count.

    Returns:
        64 hexadecimal digits.

    Raises:
        CorruptFile: one of them is not a regular file.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "batch_0.safetensors").touch()
        >>> len(digest_of(folder)), digest_of(folder) == digest_of(tempfile.mkdtemp())
        (64, False)
    """
    digest = hashlib.sha256()
    for path in sorted(Path(folder).glob("*.safetensors")):
        require_plain(path)
        with path.open("rb") as file:
            digest.update(os.fsencode(path.name))
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def read_pass(path: Path) -> Trace:
    """Return the trace that one file holds, with the weights of :data:`MAPS` beside it, if that exists.

    Args:
        path: a file ``*.safetensors`` with the tensors of one batch.

    Returns:
        The trace, as :func:`pass_of_tensors` makes it.

    Raises:
        BadInput: the tensors make no pass; the message names the file.
        CorruptFile: the file cannot be read.

    Example:
        >>> import tempfile
        >>> from safetensors.torch import save_file
        >>> path = Path(tempfile.mkdtemp()) / "batch_0.safetensors"
        >>> words, valid = torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.bool)
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> tensors |= {"target_tokens": words.clone(), "target_mask": valid.clone()}
        >>> save_file(tensors | {"encoder_self.0.query_states": torch.eye(2)[None]}, path)
        >>> read_pass(path).unchecked
        ('encoder_self.0',)
    """
    shared = path.with_name(MAPS)
    tensors = _read(shared) if shared.exists() else {}
    tensors |= _read(path)
    try:
        return pass_of_tensors(tensors)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def saved_passes(folder: str | Path) -> Iterator[Trace]:
    """Read the traces of a folder, one file at a time.

    Args:
        folder: as of :func:`saved_files`.

    Returns:
        An iterator over the traces, in the order of the names of their files.

    Raises:
        BadInput: the folder holds no tensors, or a file makes no pass.
        CorruptFile: a file cannot be read.

    Example:
        >>> import tempfile
        >>> from safetensors.torch import save_file
        >>> folder = Path(tempfile.mkdtemp())
        >>> words, valid = torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.bool)
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> tensors |= {"target_tokens": words.clone(), "target_mask": valid.clone()}
        >>> save_file(tensors | {"decoder_self.0.query_states": torch.eye(2)[None]}, folder / "0.safetensors")
        >>> [trace.attentions[0].name for trace in saved_passes(folder)]
        ['decoder_self.0']
    """
    return map(read_pass, saved_files(folder))


def _read(path: Path) -> dict[str, Tensor]:
    require_plain(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CorruptFile(f"{path} cannot be read as safetensors ({error}): write it again") from error
