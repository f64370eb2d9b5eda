"""Sums of both passes in files, one a part, with checksums: parts of a corpus can be added up elsewhere."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attnlib.analysis.fit import Sums
from attnlib.analysis.stream import Shard
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path, locked

FORMAT = "attnlib.analysis/6"
SECONDS_BETWEEN_SAVES = 60.0


@dataclass(frozen=True)
class Keep:
    """Where the sums of a pass are kept while it goes on, and what identifies it.

    Attributes:
        settings: what the numbers depend on beside the part: model, corpus, layers, heads.
        seconds: between two saves.
    """

    folder: Path
    settings: dict
    seconds: float = SECONDS_BETWEEN_SAVES

    def path(self, stage: str, part: Shard) -> Path:
        return self.folder / f"{stage}-{part.shard}-of-{part.shards}" / "sums.safetensors"

    @contextmanager
    def held(self, parts: Iterable[tuple[str, Shard]]) -> Iterator[None]:
        """Nobody else writes these parts meanwhile; BadInput where somebody does, or nobody can."""
        with ExitStack() as locks:
            for stage, part in parts:
                locks.enter_context(locked(self.path(stage, part).parent))
            yield

    def begun(self, stage: str, part: Shard) -> dict | None:
        """What is said of a part, ``done`` and ``finished``, or None; BadInput for another analysis."""
        path = self.path(stage, part)
        if not path.is_file():
            return None
        facts = read_facts(path)
        there, here = facts["settings"], self._settings_of(part)
        pairs = {name: (there.get(name), here.get(name)) for name in {**there, **here}}
        different = [f"{name} is {old} there, {new} here" for name, (old, new) in pairs.items() if old != new]
        if different:
            raise BadInput(
                f"{path} is a part of another analysis ({'; '.join(different)}); choose another folder, or "
                f"delete {self.folder} to begin anew"
            )
        return facts

    def save(self, stage: str, part: Shard, sums: Sums, done: int, finished: bool) -> None:
        about = {"settings": self._settings_of(part), "done": done, "finished": finished}
        write_sums(self.path(stage, part), sums, about)

    def merged(self, stage: str, part: Shard, empty: Callable[[], Sums]) -> Sums:
        """The sums of all shards, read into what ``empty`` makes; BadInput lists those not finished."""
        if missing := self.lacking(stage, part):
            shards = ", ".join(map(str, missing))
            raise BadInput(f"{self.folder}: shards {shards} of {part.shards} have no finished {stage} yet")
        paths = [self.path(stage, own) for own in part.all_shards()]
        return reduce(add, (read_sums(path, empty()) for path in paths))

    def lacking(self, stage: str, part: Shard) -> list[int]:
        """Shards whose pass is not finished."""
        return [own.shard for own in part.all_shards() if not (self.begun(stage, own) or {}).get("finished")]

    def _settings_of(self, part: Shard) -> dict:
        return json.loads(json.dumps({**self.settings, **asdict(part)}))  # tuples are lists there


def write_sums(path: Path, sums: Sums, about: dict) -> None:
    tensors = {name: tensor.contiguous() for name, tensor in sums.tensors().items()}
    facts = sums.facts() | about | {"format": FORMAT, "tensors": _digest(tensors)}
    text = json.dumps(facts, sort_keys=True)
    header = json.dumps({"facts": text, "sha256": hashlib.sha256(text.encode()).hexdigest()})
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, {"attnlib": header})


def read_facts(path: Path) -> dict:
    """What is said of the sums of a file; CorruptFile where it is not what :func:`write_sums` wrote."""
    with _opened(path) as file:
        header = json.loads((file.metadata() or {}).get("attnlib", "{}"))
        if header["sha256"] != hashlib.sha256(header["facts"].encode()).hexdigest():
            raise ValueError("sha256 of its facts is another")
        facts = json.loads(header["facts"])
    if facts["format"] != FORMAT:
        raise CorruptFile(f"{path} is of format {facts['format']}, not {FORMAT}: make this part again")
    return facts


def read_sums(path: Path, sums: Sums) -> Sums:
    facts = read_facts(path)
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
        if _digest(tensors) != facts["tensors"]:
            raise ValueError("sha256 of its tensors is another")
    return sums.restore(tensors, facts)


@contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{path} is not what was written there ({error}): make this part again") from error


def _digest(tensors: dict[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.numpy())
    return found.hexdigest()
