"""A model and a corpus to an analysis: two passes over the corpus, at once or in parts that add up."""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path

from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.results import Analysis, Example, example_of, results
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


def analyse(
    stream: Stream,
    *,
    heads: Collection[int] | None = None,
    every: int = 5,
    keep: "Keep | None" = None,
    progress: Progress | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    Args:
        stream: passes of a model, see :class:`~attnlib.analysis.stream.Stream`.
        heads: of every attention; all by default.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        keep: where to keep the sums of both passes while they go on; without it nothing outlasts the process.
        progress: called after each batch.
        about: what the report says of model and corpus.

    Raises:
        BadInput: a corpus with nothing to judge; no head.

    Ten batches of two samples, of which two are held out:

    >>> import torch
    >>> from attnlib import pass_of_tensors
    >>> def batch(seed):
    ...     draw = torch.Generator().manual_seed(seed)
    ...     words, valid = torch.randint(9, (2, 2, 4), generator=draw), torch.ones(2, 4, dtype=torch.bool)
    ...     states = torch.randn(2, 2, 4, 3, generator=draw)
    ...     return {
    ...         "source_tokens": words[0], "source_mask": valid, "cross.0.key_states": states[0],
    ...         "target_tokens": words[1], "target_mask": valid, "cross.0.query_states": states[1],
    ...     }
    >>> found = analyse(Stream(pass_of_tensors, [batch(seed) for seed in range(10)]))
    >>> found.fitted, found.judged, found.held_out, [row["layer"] for row in found.heads]
    (16, 4, True, [0])
    >>> row = found.heads[0]
    >>> shares = [row[f"{part}_share"] for part in ("temporal", "input", "mixed", "residual")]
    >>> round(sum(shares), 6)
    1.0
    """
    part = Part(every=every)
    fit = fit_part(stream, part, heads=heads, keep=keep, progress=progress)
    judgement = judge_part(stream, fit, part, keep=keep, progress=progress)
    if not judgement.samples:
        part = Part(every=1)
        fit = fit_part(stream, part, heads=heads, progress=progress)
        judgement = judge_part(stream, fit, part, progress=progress)
    return _analysis(stream, part, fit, judgement, about)


def analyse_kept(
    stream: Stream,
    keep: "Keep",
    part: Part,
    *,
    heads: Collection[int] | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """What the finished parts of both passes come to, shards added up.

    Raises:
        BadInput: a part is not finished; nothing was judged, and the corpus is too large to be one batch.
    """
    fit = merged_fit(keep, part)
    judgement = merged_judgement(keep, part, fit)
    if not judgement.samples:
        if part.shards > 1:
            raise BadInput(
                f"nothing was held out of {fit.samples:,} samples: take fewer shards than {part.shards}"
            )
        return analyse(stream, heads=heads, every=1, about=about)
    return _analysis(stream, part, fit, judgement, about)


def _analysis(
    stream: Stream, part: Part, fit: Fit, judgement: Judgement, about: dict[str, str] | None
) -> Analysis:
    """With the first sample that is judged, which goes through the model once more, as the example."""
    batch = next((batch for number, batch in stream.numbered() if part.is_of("judge", number)), None)
    example: Example | None = None if batch is None else example_of(stream.trace(batch), fit.heads)
    return results(fit, judgement, held_out=part.every > 1, example=example, about=about)


@dataclass(frozen=True)
class Keep:
    """Where the sums of a pass are kept while it goes on, and what identifies it.

    Attributes:
        folder: of the whole analysis; every part of a stage has a folder of its own in it.
        asked: what the numbers depend on beside the part: model, corpus, layers, heads.
        seconds: between two saves.
    """

    folder: Path
    asked: dict
    seconds: float = SECONDS_BETWEEN_SAVES

    def part(self, stage: str, part: Part) -> Path:
        """The folder of a part."""
        return self.folder / f"{stage}-{part.shard}-of-{part.shards}"

    def index(self, part: Part, done: int, finished: bool) -> dict:
        """What the index of a part says, as JSON gives it back."""
        content = {"asked": self.asked, "part": asdict(part), "done": done, "finished": finished}
        return json.loads(json.dumps(content))

    def begun(self, stage: str, part: Part) -> dict | None:
        """What the index says of a part that was begun; None where there is none.

        Raises:
            BadInput: it is a part of another analysis.
        """
        folder = self.part(stage, part)
        if not is_stored(folder):
            return None
        index = read_index(folder)
        there, here = ({**own["asked"], **own["part"]} for own in (index, self.index(part, 0, False)))
        pairs = {name: (there.get(name), here.get(name)) for name in {**there, **here}}
        different = [f"{name} is {old} there, {new} here" for name, (old, new) in pairs.items() if old != new]
        if different:
            said = "; ".join(different)
            raise BadInput(
                f"{folder} is a part of another analysis ({said}); choose another folder, or delete "
                f"{self.folder} to begin anew"
            )
        return index


def fit_part(
    stream: Stream,
    part: Part | None = None,
    *,
    heads: Collection[int] | None = None,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Fit:
    """First pass over a part; goes on where it was left."""
    return _pass_over("fit", stream, part or Part(), Fit(heads), keep, progress)


def judge_part(
    stream: Stream,
    fit: Fit,
    part: Part | None = None,
    *,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Judgement:
    """Second pass over a part, by the fit of all parts; goes on where it was left."""
    return _pass_over("judge", stream, part or Part(), Judgement(fit), keep, progress)


def _pass_over(
    stage: str,
    stream: Stream,
    part: Part,
    sums: Fit | Judgement,
    keep: Keep | None,
    progress: Progress | None,
) -> Fit | Judgement:
    save, done = save_fit if stage == "fit" else save_judgement, 0
    if keep and (index := keep.begun(stage, part)):
        folder, done = keep.part(stage, part), index["done"]
        sums = load_fit(folder)[0] if stage == "fit" else load_judgement(folder, sums.fit)[0]
        if index["finished"]:
            return sums
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
            save(sums, keep.part(stage, part), keep.index(part, number + 1, False))
            saved = time.monotonic()
    if keep:
        save(sums, keep.part(stage, part), keep.index(part, number + 1, True))
    return sums


def merged_fit(keep: Keep, part: Part) -> Fit:
    """The fits of all shards, added up.

    Raises:
        BadInput: one is missing or not finished; the message lists them.
    """
    return reduce(add, (load_fit(folder)[0] for folder in _finished("fit", keep, part)))


def merged_judgement(keep: Keep, part: Part, fit: Fit) -> Judgement:
    """The judgements of all shards, added up; errors as :func:`merged_fit`."""
    return reduce(add, (load_judgement(folder, fit)[0] for folder in _finished("judge", keep, part)))


def lacking(stage: str, keep: Keep, part: Part) -> list[int]:
    """Shards whose pass is not finished."""
    return [own.shard for own in part.all_shards() if not (keep.begun(stage, own) or {}).get("finished")]


def _finished(stage: str, keep: Keep, part: Part) -> list[Path]:
    if missing := lacking(stage, keep, part):
        shards = ", ".join(map(str, missing))
        raise BadInput(f"{keep.folder}: shards {shards} of {part.shards} have no finished {stage} yet")
    return [keep.part(stage, own) for own in part.all_shards()]
