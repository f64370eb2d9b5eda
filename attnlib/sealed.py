"""Tensors and JSON in files with a checksum, so that an altered file is refused.

The functions replace those of the same names in ``safetensors.torch``, ``json`` and :mod:`attnlib.files`. Any
reader of safetensors reads what :func:`save` writes, and equal contents are equal bytes; the writer of
safetensors orders metadata differently in every process.
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

CODES = {  # names of dtypes in the format of safetensors
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return tensors as the bytes of a file with a checksum among its metadata."""
    return b"".join(_pieces(tensors, metadata or {}))


def save_file(
    tensors: Mapping[str, Tensor], path: str | Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a file one after the other, without a copy of all of them in memory."""
    with Path(path).open("wb") as file:
        file.writelines(_pieces(tensors, metadata or {}))


def load_file(path: str | Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Return the tensors of a file.

    A file without any metadata is from the time before checksums, and is not checked.

    Args:
        path: of the file.
        device: of the tensors.

    Returns:
        the tensors by name.

    Raises:
        Altered: the file is incomplete or altered, or was not written by :func:`save`.
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
    """Raise Altered if tensors or metadata are not those that were written."""
    covered = {name: text for name, text in metadata.items() if name != "sha256"}
    if metadata.get("sha256") != _checksum(tensors, covered):
        raise Altered(f"{path} does not hold what was written there: its checksum is another")


def _ordered(tensors: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Return tensors with the widest dtypes first, so that each begins at a multiple of its item size."""
    return sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    checksum = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in _ordered(tensors):
        description = f"{name} {CODES.get(tensor.dtype)} {tuple(tensor.shape)}\n"
        checksum.update(description.encode())
        checksum.update(_bytes(tensor))
    return checksum.hexdigest()


def _pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Iterator[bytes | memoryview]:
    """Yield the length of the header in eight bytes, the header and the tensors, as safetensors has them."""
    header: dict[str, object] = {"__metadata__": {**metadata, "sha256": _checksum(tensors, metadata)}}
    begin = 0
    for name, tensor in _ordered(tensors):
        end = begin + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    encoded = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    padding = b" " * (-len(encoded) % 8)
    yield struct.pack("<Q", len(encoded) + len(padding)) + encoded + padding
    for _, tensor in _ordered(tensors):
        yield _bytes(tensor)


def write_json_atomic(path: str | Path, content: object) -> None:
    """Write JSON with its checksum, ``{"content": …, "seal": "5f0c…"}``; it appears whole or not at all."""
    content = json.loads(json.dumps(content))  # as it will be read
    files.write_json_atomic(path, {"content": content, "seal": _seal(content)})


def loads(text: str) -> object:
    """Return the content that :func:`write_json_atomic` wrote; JSON without a seal is returned as it is.

    Args:
        text: of a file.

    Raises:
        Altered: the text is incomplete or altered.

    Example:
        >>> loads('{"content": [1, 2], "seal": "05a7"}')
        Traceback (most recent call last):
        attnlib.errors.Altered: a file does not hold what was written there: its seal is broken
    """
    try:
        sealed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Altered(f"a file does not hold what was written there: it is not JSON ({error})") from error
    if not isinstance(sealed, dict) or not {"content", "seal"} & sealed.keys():
        return sealed
    if sealed.keys() != {"content", "seal"} or sealed["seal"] != _seal(sealed["content"]):
        raise Altered("a file does not hold what was written there: its seal is broken")
    return sealed["content"]


def _seal(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
