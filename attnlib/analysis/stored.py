"""Sums of both passes in files, one a part, with checksums, so that parts can be added up elsewhere."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from attnlib.analysis.pass_sums import PassSums
from attnlib.analysis.stream import Shard
from attnlib.errors import Altered, BadInput, CorruptFile
from attnlib.files import atomic_path, locked
from attnlib.sealed import load_file, save_file

FORMAT = "attnlib.analysis/9"
SECONDS_BETWEEN_SAVES = 60.0


@dataclass(frozen=True)
class Keep:
    """Where the sums of a pass are kept while it goes on, and what identifies it."""

    folder: Path
    settings: dict  #: what the numbers depend on beside the part: model, corpus, layers, heads
    seconds: float = SECONDS_BETWEEN_SAVES  #: between two saves

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

    def save(self, stage: str, part: Shard, sums: PassSums, done: int, finished: bool) -> None:
        about = {"settings": self._settings_of(part), "done": done, "finished": finished}
        write_sums(self.path(stage, part), sums, about)

    def merged(self, stage: str, part: Shard, empty: Callable[[], PassSums]) -> PassSums:
        """The sums of all shards, read into what ``empty`` makes; BadInput lists those not finished."""
        if missing := self.lacking(stage, part):
            shards = ", ".join(map(str, missing))
            raise BadInput(f"{self.folder}: shards {shards} of {part.shards} have no finished {stage} yet")
        paths = [self.path(stage, shard) for shard in part.all_shards()]
        return reduce(add, (read_sums(path, empty()) for path in paths))

    def lacking(self, stage: str, part: Shard) -> list[int]:
        """Shards whose pass is not finished."""
        missing = []
        for part_of_stage in part.all_shards():
            facts = self.begun(stage, part_of_stage)
            if facts is None or not facts["finished"]:
                missing.append(part_of_stage.shard)
        return missing

    def _settings_of(self, part: Shard) -> dict:
        return json.loads(json.dumps({**self.settings, **asdict(part)}))  # tuples are lists there


def write_sums(path: Path, sums: PassSums, about: dict) -> None:
    """Write sums to a file; it appears whole or not at all."""
    tensors: dict[str, Tensor] = {}
    state = _with_names_for_tensors(sums.state_dict(), "", tensors)
    facts = about | {"format": FORMAT, "state": state}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, {"facts": json.dumps(facts, sort_keys=True)})


def read_facts(path: Path) -> dict:
    """Return what is said of a file's sums, which :func:`read_sums` checks.

    Raises:
        CorruptFile: the file is cut, or has another format.
    """
    with _refused_whole(path), safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
        if facts["format"] != FORMAT:
            raise ValueError(f"it is of format {facts['format']}, not {FORMAT}")
        return {name: facts[name] for name in ("settings", "done", "finished", "state")}


def read_sums(path: Path, sums: PassSums) -> PassSums:
    """Load what a file holds into sums of its kind, and return them.

    Raises:
        CorruptFile: the file is not what :func:`write_sums` wrote.
    """
    with _refused_whole(path):
        tensors = load_file(path)
        return sums.load_state_dict(_with_tensors(read_facts(path)["state"], tensors))


_TENSOR = "tensor"  # what has this key alone is the name of a tensor


def _with_names_for_tensors(state: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return a state with the names of tensors in their places, and put the tensors into a dictionary."""
    if isinstance(state, Tensor):
        tensors[name] = state
        return {_TENSOR: name}
    if isinstance(state, dict):
        return {
            key: _with_names_for_tensors(value, f"{name}/{key}".lstrip("/"), tensors)
            for key, value in state.items()
        }
    return state


def _with_tensors(state: Any, tensors: dict[str, Tensor]) -> Any:
    """Return a state with tensors in the places of their names."""
    if not isinstance(state, dict):
        return state
    if state.keys() == {_TENSOR}:
        return tensors[state[_TENSOR]]
    return {key: _with_tensors(value, tensors) for key, value in state.items()}


@contextmanager
def _refused_whole(path: Path) -> Iterator[None]:
    try:
        yield
    except (Altered, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{path} is not what was written there ({error}): make this part again") from error
