"""The two readings of a corpus, in parts: resumable, and added up wherever they were made."""

import json
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.stored import (
    is_stored,
    load_fit,
    load_judgement,
    read_index,
    save_fit,
    save_judgement,
)
from attnlib.analysis.stream import Part, Stream
from attnlib.errors import BadInput

Progress = Callable[[str, int], None]  # stage, batches read so far
STAGES = ("fit", "judge")
SECONDS_BETWEEN_SAVES = 60.0


@dataclass(frozen=True)
class Keep:
    """Where a reading is kept while it goes on, and what identifies it.

    Attributes:
        folder: of the whole analysis; every part of a stage has a folder of its own in it.
        asked: what the numbers depend on beside the part: model, corpus, layers, heads.
        seconds: between two saves.

    >>> Keep(Path("report/parts"), {"model": "mine"}).part("fit", Part(shard=3, shards=8)).name
    'fit-3-of-8'
    """

    folder: Path
    asked: dict
    seconds: float = SECONDS_BETWEEN_SAVES

    def part(self, stage: str, part: Part) -> Path:
        """The folder of a part."""
        return self.folder / f"{stage}-{part.shard}-of-{part.shards}"

    def told(self, part: Part, done: int, finished: bool) -> dict:
        """What the index of a part says, as JSON gives it back."""
        told = {"asked": self.asked, "part": asdict(part), "done": done, "finished": finished}
        return json.loads(json.dumps(told))

    def begun(self, stage: str, part: Part) -> dict | None:
        """What the index of a part says that was begun; None where there is none.

        Raises:
            BadInput: it is a part of another analysis.
        """
        folder = self.part(stage, part)
        if not is_stored(folder):
            return None
        told = read_index(folder)
        if difference := _difference(told, self.told(part, 0, False)):
            raise BadInput(
                f"{folder} is a part of another analysis ({difference}); choose another folder, or delete "
                f"{self.folder} to begin anew"
            )
        return told


def fit_part(
    stream: Stream,
    part: Part | None = None,
    *,
    heads: Collection[int] | None = None,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Fit:
    """First reading of a part; goes on where it was left."""
    part, fit, done = part or Part(), Fit(heads), 0
    told = keep.begun("fit", part) if keep else None
    if told:
        fit, done = load_fit(keep.part("fit", part))[0], told["done"]
    if not (told and told["finished"]):
        _read("fit", stream, part, fit, done, save_fit, keep, progress)
    return fit


def judge_part(
    stream: Stream,
    fit: Fit,
    part: Part | None = None,
    *,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Judgement:
    """Second reading of a part, by the fit of all parts; goes on where it was left."""
    part, judgement, done = part or Part(), Judgement(fit), 0
    told = keep.begun("judge", part) if keep else None
    if told:
        judgement, done = load_judgement(keep.part("judge", part), fit)[0], told["done"]
    if not (told and told["finished"]):
        _read("judge", stream, part, judgement, done, save_judgement, keep, progress)
    return judgement


def merged_fit(keep: Keep, part: Part) -> Fit:
    """The fits of all shards, added up.

    Raises:
        BadInput: one is missing or not finished; the message lists them.
    """
    return _added(load_fit(folder)[0] for folder in _finished("fit", keep, part))


def merged_judgement(keep: Keep, part: Part, fit: Fit) -> Judgement:
    """The judgements of all shards, added up; errors as :func:`merged_fit`."""
    return _added(load_judgement(folder, fit)[0] for folder in _finished("judge", keep, part))


def lacking(stage: str, keep: Keep, part: Part) -> list[int]:
    """Shards whose reading is not finished."""
    return [own.shard for own in part.all_shards() if not (keep.begun(stage, own) or {}).get("finished")]


def _finished(stage: str, keep: Keep, part: Part) -> list[Path]:
    if missing := lacking(stage, keep, part):
        shards = ", ".join(map(str, missing))
        raise BadInput(f"{keep.folder}: shards {shards} of {part.shards} have no finished {stage} yet")
    return [keep.part(stage, own) for own in part.all_shards()]


def _added(parts: Iterable):
    total = None
    for own in parts:
        total = own if total is None else total + own
    return total


def _read(
    stage: str,
    stream: Stream,
    part: Part,
    sums: Fit | Judgement,
    done: int,
    save: Callable[[Fit | Judgement, Path, dict], None],
    keep: Keep | None,
    progress: Progress | None,
) -> None:
    saved, read, number = time.monotonic(), 0, -1
    for number, batch in stream.numbered():
        if not part.is_of(stage, number):
            continue
        read += 1
        if number < done:
            continue
        one: ModelPass = stream.trace(batch)
        sums.losses += stream.losses(batch)
        if stage == "judge" and stream.is_probed(part.judged_before(number)):
            sums.update(one, stream.probe(one))
        else:
            sums.update(one)
        if progress:
            progress(stage, read)
        if keep and time.monotonic() - saved > keep.seconds:
            save(sums, keep.part(stage, part), keep.told(part, number + 1, False))
            saved = time.monotonic()
    if keep:
        save(sums, keep.part(stage, part), keep.told(part, number + 1, True))


def _difference(there: dict, here: dict) -> str:
    there, here = ({**own["asked"], **own["part"]} for own in (there, here))
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return "; ".join(f"{name} is {there.get(name)} there, {here.get(name)} here" for name in names)
