"""The names of trained networks: hashes of everything that goes into them.

Three hashes are told apart. The *identity* of a spec says which network is meant: what differs from the
defaults, and the reader's own files. Its *code* is the fingerprint of what trains it, with the checksums of
the published data that this reads. Its *key*, the name of the folder in ``build/models``, covers both.
"""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from attnlib.errors import BadInput
from companion.runs.fingerprint import RENAMED, ROOT, fingerprint
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec

EQUAL_CODE = ROOT / "results" / "paper" / "archive" / "equal_code.json"
Spec = ModelSpec | RunSpec


def model_key(spec: Spec) -> str:
    """Folder name of a spec's product; UnknownName where its task does not exist."""
    return _named(spec, code_of(spec))


def identity(spec: Spec) -> str:
    """Which network is meant, whatever code trains it: the name of its lines in the archive."""
    return _named(spec)


def code_of(spec: Spec) -> str:
    """The fingerprint of what trains a spec's network, checksums of published data included."""
    return _code(spec.roots)


@cache
def _code(roots: tuple[Callable, ...]) -> str:
    return first_equal(fingerprint(*roots))


def first_equal(code: str) -> str:
    """The first fingerprint that a later one was shown to equal in every digit, see ``equal_code.json``."""
    seen = {code}
    while (code := _was().get(code, code)) not in seen:
        seen.add(code)
    return code


@cache
def _was() -> dict[str, str]:
    if not EQUAL_CODE.is_file():
        return {}
    return {entry["is"]: entry["was"] for entry in json.loads(EQUAL_CODE.read_text(encoding="utf-8"))}


def read_spec(text: str) -> Spec:
    """The spec whose ``content`` is this JSON; BadInput where it is none."""
    try:
        content = json.loads(text)
        if "recipe" in content:
            procedure, settings = content.pop("recipe"), content.pop("settings", {})
            today = {archived: name for name, archived in RENAMED.items()}
            given = {today.get(name, name): _hashable(value) for name, value in settings.items()}
            return RunSpec.of(procedure, **content, **given)
        return ModelSpec(**content | {"task_options": tuple(sorted(content.get("task_options", {}).items()))})
    except (ValueError, TypeError, AttributeError) as error:
        raise BadInput(f"not the spec of a model or procedure: {error}") from error


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _named(spec: Spec, *code: str) -> str:
    parts = [spec.content, _own_files(spec.content), *code]
    text = json.dumps(parts, sort_keys=True, default=str)
    return f"{spec.front}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _own_files(content: object) -> list[str]:
    """Checksums of the reader's own files among the settings."""
    if isinstance(content, dict):
        return [digest for value in content.values() for digest in _own_files(value)]
    if isinstance(content, str) and Path(content).is_file():
        return [hashlib.sha256(Path(content).read_bytes()).hexdigest()]
    return []
