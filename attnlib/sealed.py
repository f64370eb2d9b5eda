"""Tensors and JSON in files that know their own checksum: read as they were written, or not at all.

The functions take the places of those of ``safetensors.torch``, ``json`` and :mod:`attnlib.files` that have
their names. Any reader of safetensors reads what :func:`save` writes, and equal contents are equal bytes; the
writer of safetensors itself puts metadata into another order in every process.
"""

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attnlib import files
from attnlib.errors import Altered

CODES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip  # of safetensors


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Tensors as the bytes of a file, with a checksum among its metadata."""
    return b"".join(_pieces(tensors, metadata or {}))


def save_file(
    tensors: Mapping[str, Tensor], path: str | Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors, one after the other, so that tables of any size need no memory beside their own."""
    with Path(path).open("wb") as file:
        file.writelines(_pieces(tensors, metadata or {}))


def load_file(path: str | Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """The tensors of a file. One that has no metadata at all is from before there were checksums.

    Raises Altered: it is cut, altered, or nothing that :func:`save` wrote.
    """
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
    except (SafetensorError, OSError) as error:
        raise Altered(f"{path} cannot be read ({error})") from error
    if metadata is not None:
        check_checksum(path, metadata, tensors)
    return tensors


def check_checksum(path: str | Path, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    """Raise Altered where tensors or metadata are not those that were written."""
    told = {name: text for name, text in metadata.items() if name != "sha256"}
    if metadata.get("sha256") != _checksum(tensors, told):
        raise Altered(f"{path} does not hold what was written there: its checksum is another")


def _ordered(tensors: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Those of wide numbers first, so that every one begins at a multiple of its width."""
    return sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    found = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in _ordered(tensors):
        found.update(f"{name} {CODES.get(tensor.dtype)} {tuple(tensor.shape)}\n".encode())
        found.update(_bytes(tensor))
    return found.hexdigest()


def _pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Iterator[bytes | memoryview]:
    """The length of the header in eight bytes, the header, and the tensors (the format of safetensors)."""
    header: dict[str, object] = {"__metadata__": {**metadata, "sha256": _checksum(tensors, metadata)}}
    end = 0
    for name, tensor in _ordered(tensors):
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in _ordered(tensors):
        yield _bytes(tensor)


def write_json_atomic(path: str | Path, content: object) -> None:
    """Write JSON with its checksum, ``{"content": …, "seal": "5f0c…"}``; it appears whole or not at all."""
    content = json.loads(json.dumps(content))  # as it will be read
    files.write_json_atomic(path, {"content": content, "seal": _seal(content)})


def loads(text: str) -> object:
    """What :func:`write_json_atomic` wrote, and JSON from before there were seals as it is.

    >>> loads('{"content": [1, 2], "seal": "05a7"}')
    Traceback (most recent call last):
    attnlib.errors.Altered: a file does not hold what was written there: its seal is broken

    Raises Altered: the text is cut or altered.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Altered(f"a file does not hold what was written there: it is no JSON ({error})") from error
    if not isinstance(found, dict) or not {"content", "seal"} & found.keys():
        return found
    if found.keys() != {"content", "seal"} or found["seal"] != _seal(found["content"]):
        raise Altered("a file does not hold what was written there: its seal is broken")
    return found["content"]


def _seal(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
