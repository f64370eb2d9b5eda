"""Keep the sums of both passes in files with checksums, so that a run goes on and shards add up."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from attnlib.analysis.fit import Fit
from attnlib.analysis.from_stream import analyse_stream, analysis_of
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.passes import SavedPass, Sums
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Shard, Stream
from attnlib.errors import Altered, BadInput, CorruptFile
from attnlib.files import atomic_path, locked
from attnlib.former_names import former_arguments
from attnlib.options import AnalyseOptions, flag_of
from attnlib.sealed import load_file, save_file

FORMAT = "attnlib.analysis/10"
SECONDS_BETWEEN_SAVES = 60.0
_OPTIONS = {field.name for field in fields(AnalyseOptions)}


@dataclass(frozen=True)
class PartialSums:
    """A folder that keeps the sums of both passes while they go on.

    Attributes:
        folder: has a folder for each stage and shard.
        settings: what the numbers depend on besides the shard: model, corpus, layers, heads. Sums of other
            settings are refused.
        seconds: between two saves.
        flags: whether messages name the settings as options of the command line.

    Example:
        >>> keep = PartialSums(Path("parts"), settings={})
        >>> str(keep.path("fit", Shard(0, 2)))
        'parts/fit-0-of-2/sums.safetensors'
    """

    folder: Path
    settings: dict
    seconds: float = SECONDS_BETWEEN_SAVES
    flags: bool = False

    def path(self, stage: str, shard: Shard) -> Path:
        """Return the file that holds the sums of a stage over a shard.

        Args:
            stage: "fit" or "judge".
            shard: whose sums are meant.

        Returns:
            Its path, whether it exists or not.
        """
        return self.folder / f"{stage}-{shard.number}-of-{shard.of}" / "sums.safetensors"

    @contextmanager
    def held(self, stages: Iterable[tuple[str, Shard]]) -> Iterator[None]:
        """Keep others from writing the sums of some stages within a block.

        Args:
            stages: each with the shard that it reads.

        Yields:
            Nothing.

        Raises:
            BadInput: somebody else writes one of them, or the folder cannot be written.
        """
        with ExitStack() as locks:
            for stage, shard in stages:
                locks.enter_context(locked(self.path(stage, shard).parent))
            yield

    def load(self, stage: str, shard: Shard, sums: Sums) -> SavedPass[Sums] | None:
        """Load what was saved of a shard.

        Args:
            stage: "fit" or "judge".
            shard: whose sums are meant.
            sums: empty ones of its kind, which are filled.

        Returns:
            The sums and how far they go; None if nothing was saved.

        Raises:
            BadInput: they are of other settings, or one of saved and empty sums has interventions and the
                other has not.
            CorruptFile: the file is damaged.
        """
        facts = self.read_progress(stage, shard)
        if facts is None:
            return None
        interventions = sums.settings().get("interventions")
        loaded = read_sums(self.path(stage, shard), sums)
        if loaded.settings().get("interventions") != interventions:
            raise BadInput(
                f"{self.path(stage, shard)} was kept with other interventions than are chosen now; choose "
                f"another folder, or delete {self.folder} to begin anew"
            )
        return SavedPass(sums=loaded, done=facts["done"], finished=facts["finished"])

    def read_progress(self, stage: str, shard: Shard) -> dict | None:
        """Return how far a shard is.

        Args:
            stage: "fit" or "judge".
            shard: whose sums are meant.

        Returns:
            Facts with ``done`` and ``finished``; None if nothing was saved.

        Raises:
            BadInput: it is of other settings.
        """
        path = self.path(stage, shard)
        if not path.is_file():
            return None
        facts = read_facts(path)
        differences = self._differences(facts["settings"], shard)
        if differences:
            another = "--out" if self.flags else "folder"
            raise BadInput(
                f"{self.folder} belongs to another {' and '.join(differences)}; delete it or choose another "
                f"{another}"
            )
        return facts

    def is_finished(self, stage: str, shard: Shard) -> bool:
        """Return True if a shard is finished.

        Args:
            stage: "fit" or "judge".
            shard: whose sums are meant.

        Returns:
            False if it was not begun.
        """
        facts = self.read_progress(stage, shard)
        return facts is not None and facts["finished"]

    def unfinished(self, stage: str, shard: Shard) -> list[int]:
        """Return the numbers of the shards whose pass is not finished.

        Args:
            stage: "fit" or "judge".
            shard: any of the shards.

        Returns:
            Numbers, ascending.
        """
        return [
            any_shard.number for any_shard in shard.all_shards() if not self.is_finished(stage, any_shard)
        ]

    def save(self, stage: str, shard: Shard, saved: SavedPass) -> None:
        """Save the sums of a shard as they are now.

        Args:
            stage: "fit" or "judge".
            shard: whose sums are meant.
            saved: the sums and how far they go.
        """
        facts = {"settings": self._settings_of(shard), "done": saved.done, "finished": saved.finished}
        write_sums(self.path(stage, shard), saved.sums, facts)

    def merged(self, stage: str, shard: Shard, empty: Callable[[], Sums]) -> Sums:
        """Return the sums of all shards together.

        Args:
            stage: "fit" or "judge".
            shard: any of the shards.
            empty: makes empty sums, which those of a file fill.

        Returns:
            Their sum.

        Raises:
            BadInput: some shards are not finished; the message lists them.
        """
        unfinished = self.unfinished(stage, shard)
        if unfinished:
            shards = ", ".join(map(str, unfinished))
            raise BadInput(f"{self.folder}: shards {shards} of {shard.of} have no finished {stage} yet")
        paths = [self.path(stage, other) for other in shard.all_shards()]
        merged = read_sums(paths[0], empty())
        for path in paths[1:]:
            merged = merged + read_sums(path, empty())
        return merged

    def _differences(self, saved: dict, shard: Shard) -> list[str]:
        """Return in words which settings of saved sums differ from those of this analysis.

        Digests are left out: they say no more than that contents differ.
        """
        present = self._settings_of(shard)
        differences = []
        for name in {**saved, **present}:
            if saved.get(name) != present.get(name):
                there, here = saved.get(name), present.get(name)
                difference = flag_of(name) if self.flags and name in _OPTIONS else name
                if not (_is_digest(there) or _is_digest(here)):
                    difference += f" ({there!r} there, {here!r} here)"
                differences.append(difference)
        return differences

    def _settings_of(self, shard: Shard) -> dict:
        """Return the settings as JSON gives them back, in which tuples are lists."""
        return json.loads(json.dumps({**self.settings, **shard.settings()}))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


@former_arguments(part="shard")
def merged_fit(keep: PartialSums, shard: Shard) -> Fit:
    """Return the sums of the first pass over all shards.

    Args:
        keep: has the sums.
        shard: any of the shards.

    Raises:
        BadInput: some shards are not finished; the message lists them.

    Example:
        >>> import tempfile
        >>> from attnlib.analysis.passes import SavedPass
        >>> keep = PartialSums(Path(tempfile.mkdtemp()), settings={})
        >>> keep.save("fit", Shard(), SavedPass(sums=Fit(method="means"), done=0, finished=True))
        >>> merged_fit(keep, Shard()).samples
        0
    """
    return keep.merged("fit", shard, _empty_fit)


def _empty_fit() -> Fit:
    """Return an empty fit to load sums into, which replace its heads and its method."""
    return Fit(method="least_squares")


@former_arguments(part="shard")
def merged_analysis(
    stream: Stream,
    keep: PartialSums,
    shard: Shard,
    *,
    heads: Collection[int] | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Return the analysis from the finished shards of both passes.

    Args:
        stream: what the sums are of.
        keep: has the sums.
        shard: any of the shards.
        heads: those that were looked at.
        about: what a report says of model and corpus.

    Raises:
        BadInput: a shard is not finished, or nothing was held out of several shards.

    Example:
        >>> import tempfile
        >>> from attnlib import zoo
        >>> keep = PartialSums(Path(tempfile.mkdtemp()), settings={})
        >>> merged_analysis(zoo.load("reordering").stream(), keep, Shard())  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: ...: shards 0 of 1 have no finished fit yet
    """
    fit = merged_fit(keep, shard)
    judgement = keep.merged("judge", shard, lambda: JudgedSums(fit))
    if judgement.samples:
        return analysis_of(stream, judgement, shard, about=about)
    if shard.of > 1:
        raise BadInput(f"nothing was held out of {fit.samples:,} samples: take fewer shards than {shard.of}")
    return analyse_stream(
        stream, heads=heads, method=fit.method, every=1, interventions=judgement.interventions, about=about
    )


def write_sums(path: Path, sums: Fit | JudgedSums, facts: dict) -> None:
    """Write sums and facts about them to a file, which appears whole or not at all.

    Args:
        path: of the file.
        sums: of either pass.
        facts: what JSON can hold, with ``settings``, ``done`` and ``finished``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "sums.safetensors"
        >>> write_sums(path, Fit(method="means"), {"settings": {}, "done": 3, "finished": False})
        >>> read_facts(path)["done"], read_sums(path, Fit(method="means")).samples
        (3, 0)
    """
    tensors: dict[str, Tensor] = {}
    state = _with_names_for_tensors(sums.state_dict(), "", tensors)
    facts = facts | {"format": FORMAT, "state": state}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, {"facts": json.dumps(facts, sort_keys=True)})


def read_facts(path: Path) -> dict:
    """Return the facts that a file has about its sums, unchecked; :func:`read_sums` checks the sums.

    Args:
        path: of the file.

    Returns:
        Its facts, with ``settings``, ``done``, ``finished`` and ``state``.

    Raises:
        CorruptFile: the file is cut, or has another format.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "sums.safetensors"
        >>> write_sums(path, Fit(method="means"), {"settings": {}, "done": 3, "finished": False})
        >>> read_facts(path)["finished"]
        False
    """
    with _refused_whole(path), safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
        _require_format(facts["format"])
        return {name: facts[name] for name in ("settings", "done", "finished", "state")}


def _require_format(saved: str) -> None:
    if saved != FORMAT:
        raise ValueError(f"it is of format {saved}, not {FORMAT}")


def read_sums(path: Path, sums: Sums) -> Sums:
    """Load what a file holds into sums of its kind.

    Args:
        path: of the file.
        sums: empty ones, which are filled.

    Returns:
        The sums.

    Raises:
        CorruptFile: the file is not what :func:`write_sums` wrote.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "sums.safetensors"
        >>> write_sums(path, Fit(method="means"), {"settings": {}, "done": 0, "finished": False})
        >>> read_sums(path, Fit(method="least_squares")).method
        'means'
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
        raise CorruptFile(f"{path} is not what was written there ({error}): run this shard again") from error
