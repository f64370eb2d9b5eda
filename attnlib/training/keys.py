"""The name of a trained model: a hash of everything that goes into it."""

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

from attnlib.code_hash import code_hash
from attnlib.tasks import registry
from attnlib.training.product import ProductSpec
from attnlib.training.spec import ModelSpec


def model_key(spec: ModelSpec | ProductSpec) -> str:
    """Folder name of the product of a spec: a readable front, then a hash of the spec, the code and the data.

    Raises:
        UnknownName: the spec's task does not exist.
    """
    if not isinstance(spec, ModelSpec):
        return spec.key
    parts = [asdict(spec), _training_code(spec.task), _file_checksums(spec.task_options)]
    digest = hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]
    return f"{spec.task}-{spec.architecture}-{spec.cell}-w{spec.width}-s{spec.seed}-{digest}"


@cache
def _training_code(task: str) -> str:
    """Hash of the code that a model of this task comes from, checksums of published data included."""
    return code_hash("attnlib.training.loop", registry.module_of(task))


def _file_checksums(options: tuple[tuple[str, object], ...]) -> list[str]:
    """Checksums of the reader's own files among a task's options."""
    paths = [Path(value) for _, value in options if isinstance(value, str) and Path(value).is_file()]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
