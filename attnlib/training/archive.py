"""What was measured of trained models, without the models: small enough to commit and to carry about.

A paper-sized model takes minutes to train and megabytes to keep; what the experiments ask of it is some
kilobytes. One file a model, ``<folder>/<key>.json``, whose key says what the model was trained from.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from attnlib.files import write_text_atomic
from attnlib.rounding import rounded
from attnlib.training.keys import model_key
from attnlib.training.product import ProductSpec
from attnlib.training.spec import ModelSpec

Spec = ModelSpec | ProductSpec


class Archive:
    """A folder of measurements that outlive their models; safe for several processes."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def path(self, spec: Spec) -> Path:
        """The file of a model, there or not."""
        return self.folder / f"{model_key(spec)}.json"

    def history(self, spec: Spec) -> dict | None:
        """The record of a model's training; None where the archive does not have the model."""
        return self._read(spec).get("history")

    def get(self, spec: Spec, name: str) -> dict | None:
        """What was measured under this name; None where it was not."""
        return self._read(spec).get("measured", {}).get(name)

    def put(self, spec: Spec, history: dict, name: str, found: dict) -> None:
        """Add a measurement. One made by other code of the same measure gives way to it."""
        with self._locked():
            content = self._read(spec) or {"spec": asdict(spec), "history": rounded(history), "measured": {}}
            self._add(spec, content, name, found)

    def move(self, file: Path, name: str, spec: Spec, today: str) -> None:
        """Put a measurement of ``file`` where ``spec`` has its own, under another name.

        A file of another key that is left without measurements goes.
        """
        with self._locked():
            before = json.loads(file.read_text(encoding="utf-8"))
            found = before["measured"].pop(name)
            self._add(spec, self._read(spec) or before | {"measured": {}}, today, found)
            if file != self.path(spec):
                if before["measured"]:
                    self._write(file, before)
                else:
                    file.unlink()

    def _add(self, spec: Spec, content: dict, name: str, found: dict) -> None:
        measure = name.rpartition("-")[0]
        others = {n: v for n, v in content["measured"].items() if n.rpartition("-")[0] != measure}
        self._write(self.path(spec), content | {"measured": others | {name: found}})

    @staticmethod
    def _write(path: Path, content: dict) -> None:
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        write_text_atomic(path, text + "\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self, spec: Spec) -> dict:
        path = self.path(spec)
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
