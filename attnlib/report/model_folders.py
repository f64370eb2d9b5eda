"""Folders that hold a model in a form that transformers does not read: which form it is, and the way out."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

_POINTER = b"version https://git-lfs"
_PAGES = (b"<!doctype html", b"<html")
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz")
_HEAD = 64  # bytes of a file that are looked at
_READ = (".json", ".safetensors", ".bin", ".model", ".spm", ".txt")  # endings of what transformers reads
_CONVERT = "load it with transformers 4, from_pretrained(…, {}=True), and save it with save_pretrained"
_GIVE_ORIGINAL = "give the folder of the model that it was made from"


def why_unreadable(name: str) -> str | None:
    """Return what a folder holds instead of a model that transformers reads, and what to do.

    Args:
        name: of a folder, or of a model elsewhere.

    Returns:
        The rest of a sentence about the folder, after "it"; None where nothing is recognised.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "model-q4.gguf").write_bytes(b"GGUF")
        >>> why_unreadable(str(folder))
        'holds a model for llama.cpp (model-q4.gguf); give the folder of the model that it was made from'
    """
    folder = Path(name)
    if folder.is_file() and folder.suffix in _ARCHIVES:
        return "is an archive; unpack it, and give the folder with config.json"
    if folder.is_file():
        return f"is a file; give the folder that save_pretrained wrote, such as {folder.absolute().parent}"
    if not folder.is_dir():
        return None
    files = sorted(path for path in folder.iterdir() if path.is_file())
    read = [path for path in files if path.suffix in _READ]
    return (
        _damaged(read)
        or _folder_within(folder)
        or _other_form({path.name: path for path in files})
        or _without_config(folder)
    )


def is_path(name: str) -> bool:
    """Return True for what can only be a path, and no name of a model on Hugging Face.

    Args:
        name: of a model, as it was given.

    Example:
        >>> is_path("./my-model"), is_path("my-model/"), is_path("Helsinki-NLP/opus-mt-en-de")
        (True, True, False)
    """
    before, _, _ = name.rstrip("/").rpartition("/")
    has_separators = name.count("/") > 1 or name.endswith("/") or (os.sep != "/" and os.sep in name)
    is_in_a_folder = before != "" and Path(before).is_dir()
    return name.startswith((".", "/", "~")) or has_separators or is_in_a_folder


def search_notice(name: str) -> str:
    """Return the notice that a model is looked for on Hugging Face because there is no such folder.

    Args:
        name: of a model, as it was given.

    Returns:
        A sentence; empty if there is such a folder, or if the name can only be a path.

    Example:
        >>> search_notice("nofolder"), search_notice("./nofolder")
        ('there is no folder nofolder here; looking on Hugging Face', '')
    """
    if Path(name).exists() or is_path(name):
        return ""
    return f"there is no folder {name} here; looking on Hugging Face"


def why_damaged(error: Exception) -> str | None:
    """Return what an error of reading weights says about their file, and what to do.

    Args:
        error: of safetensors or torch, as transformers hands it on.

    Returns:
        The rest of a sentence about the folder, after "it"; None for any other error.

    Example:
        >>> why_damaged(RuntimeError("PytorchStreamReader failed reading zip archive"))
        'has weights that are cut off or damaged; get the file again'
    """
    if type(error).__name__ == "SafetensorError" or "PytorchStreamReader" in str(error):
        return "has weights that are cut off or damaged; get the file again"
    if "weights_only" in str(error) or "Weights only load failed" in str(error):
        return (
            "has other objects among its weights, which are not read since they may run code; if you trust "
            "them, load the model yourself and save it with save_pretrained"
        )
    return None


def _damaged(files: list[Path]) -> str | None:
    """Recognise files that were never downloaded, or only as a page that shows them."""
    for path in files:
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD)
        except OSError:  # transformers has said so already
            continue
        if head.startswith(_POINTER):
            return f"has a pointer of Git LFS as {path.name}; get the file itself with `git lfs pull`"
        if head.lower().startswith(_PAGES):
            return f"has a web page as {path.name}; download the file itself"
        if not head:
            return f"has an empty {path.name}; get the file again"
        if path.suffix == ".json" and not is_json(path):
            return f"has a {path.name} that is cut off or no JSON; get the file again"
    return None


def is_json(path: Path) -> bool:
    """Return True for a file of JSON.

    Args:
        path: of the file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "config.json"
        >>> _ = path.write_text('{"model_type": ')
        >>> is_json(path)
        False
    """
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _folder_within(folder: Path) -> str | None:
    """Recognise a folder whose folders are the models, as the Trainer and the cache of the hub have them."""
    if (folder / "config.json").is_file():
        return None
    within = sorted(folder.glob("checkpoint-*/config.json"), key=_number_of_updates)
    within = within or sorted(folder.glob("snapshots/*/config.json")) or sorted(folder.glob("*/config.json"))
    if not within:
        return None
    return f"has models in its folders; give one, such as {within[-1].parent}"


def _number_of_updates(config: Path) -> int:
    _, _, number = config.parent.name.rpartition("-")
    return int(number) if number.isdecimal() else -1


def _without_config(folder: Path) -> str | None:
    if (folder / "config.json").is_file():
        return None
    return "has no config.json, which save_pretrained writes beside the weights"


def _other_form(files: dict[str, Path]) -> str | None:
    """Recognise weights of other programs where there are none of PyTorch's."""
    if any(name.startswith(("model.safetensors", "pytorch_model.bin")) for name in files):
        return None
    for is_form, form, way_out in _FORMS:
        of_form = next((name for name in files if is_form(name, files)), None)
        if of_form is not None:
            return f"holds a model for {form} ({of_form}); {way_out}"
    return None


def _named(*endings: str) -> Callable[[str, dict[str, Path]], bool]:
    return lambda name, files: name.endswith(endings)


def _is_ctranslate2(name: str, files: dict[str, Path]) -> bool:
    return name == "model.bin" and any("vocabulary" in other for other in files)


def _is_shard_without_index(name: str, files: dict[str, Path]) -> bool:
    has_index = any(other.endswith(".index.json") for other in files)
    return _SHARD.fullmatch(name) is not None and not has_index


def _is_deep_speed(name: str, files: dict[str, Path]) -> bool:
    return name == "zero_to_fp32.py"


_SHARD = re.compile(r"(?:model|pytorch_model)-\d+-of-\d+\.(?:safetensors|bin)")


def _is_fairseq(name: str, files: dict[str, Path]) -> bool:
    has_dictionaries = any(other.startswith("dict.") for other in files)
    return name.endswith(".pt") and has_dictionaries


_MODULES = "load it with its program and name its modules to attnlib.adapters.Modules, or save its tensors"
# A test of a file by its name and those beside it, the form that it is of, and the way out.
_FORMS: tuple[tuple[Callable[[str, dict[str, Path]], bool], str, str], ...] = (
    (
        _is_shard_without_index,
        "transformers, in parts",
        "get the index of its parts as well, model.safetensors.index.json",
    ),
    (_is_deep_speed, "DeepSpeed", "run zero_to_fp32.py in it, and give the folder that it writes"),
    (_named("tf_model.h5"), "TensorFlow", _CONVERT.format("from_tf")),
    (_named("flax_model.msgpack"), "Flax", _CONVERT.format("from_flax")),
    (_named(".onnx"), "ONNX Runtime", _GIVE_ORIGINAL),
    (_named(".gguf"), "llama.cpp", _GIVE_ORIGINAL),
    (_is_ctranslate2, "CTranslate2", _GIVE_ORIGINAL),
    (_is_fairseq, "fairseq", _MODULES),
    (_named(".npz"), "Marian's own program", "give the model as transformers has it, or save its tensors"),
    (_named(".pt", ".ckpt", ".pth"), "another program", _MODULES),
)
