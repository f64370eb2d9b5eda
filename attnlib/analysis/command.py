"""``attnlib analyse``: a checkpoint and two texts, or saved traces, to a report; resumable, in shards."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attnlib.analysis.analyse import analyse_kept
from attnlib.analysis.checkpoint import Checkpoint, ParallelText
from attnlib.analysis.page import Name
from attnlib.analysis.readings import STAGES, Keep, fit_part, judge_part, lacking, merged_fit
from attnlib.analysis.report import write_report
from attnlib.analysis.stream import Part, Stream
from attnlib.errors import BadInput, UnknownName
from attnlib.models.transformer_trace import AttentionKind


@dataclass(frozen=True)
class Request:
    """What is asked on the command line, see ``attnlib analyse --help``."""

    out: Path
    model: str | None = None
    source: Path | None = None
    target: Path | None = None
    traces: Path | None = None
    kinds: tuple[AttentionKind, ...] = ("cross",)
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    ignore_special: bool = False
    batch_size: int = 32
    longest: int = 128
    every: int = 5
    probed: int = 4
    device: str = "cpu"
    shards: int = 1
    shard: int | None = None
    stage: str = "all"

    def __post_init__(self) -> None:
        if self.stage not in (*STAGES, "report", "all"):
            raise UnknownName("stage", self.stage, (*STAGES, "report", "all"))
        text = [given is not None for given in (self.model, self.source, self.target)]
        if not all(text) if self.traces is None else any(text):
            raise BadInput("give --model, --source and --target; or --traces alone")
        if self.shards > 1 and self.shard is None and self.stage in STAGES:
            raise BadInput(
                f"--stage {self.stage} is done shard by shard: give --shard 0 to {self.shards - 1}"
            )


def analyse_command(request: Request) -> None:
    """Do what is asked as far as it can be done now, and say what remains.

    Raises:
        BadInput: see the parts: a model, files or a folder that cannot be used.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    stream, keep, about, name, total = _prepared(request)
    shards = range(request.shards) if request.shard is None else [request.shard]
    for stage in STAGES:
        if request.stage not in (stage, "all"):
            continue
        if stage == "judge" and (missing := lacking("fit", keep, Part(0, request.shards, request.every))):
            console.print(_remaining("fit", missing, request.shards))
            return
        for shard in shards:
            part = Part(shard, request.shards, request.every)
            _run(stage, stream, part, request, keep, total, console)
    if request.stage in STAGES:
        return
    part = Part(0, request.shards, request.every)
    if missing := lacking("judge", keep, part):
        console.print(_remaining("judge", missing, request.shards))
        return
    analysis = analyse_kept(stream, keep, part, heads=request.heads, about=about)
    write_report(analysis, request.out, title=f"How {about['Model'].split(' (')[0]} attends", name=name)
    console.print(f"report: {request.out / 'index.html'}")


def numbers(text: str | None) -> tuple[int, ...] | None:
    """Numbers and ranges as the command line has them.

    >>> numbers("0,4-6")
    (0, 4, 5, 6)

    Raises:
        BadInput: anything else.
    """
    if text is None:
        return None
    found: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise BadInput(f"{text!r} are no numbers; write them as in 0,4-6")
        found += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(found))


def _prepared(request: Request) -> tuple[Stream, Keep, dict[str, str], Name | None, int]:
    if request.traces is not None:
        stream = Stream.saved(request.traces)
        about = {"Model": f"saved traces of {request.traces.name}"}
        asked = {"traces": _digest_of_files(sorted(request.traces.glob("*.safetensors")))}  # weights as well
        name, total = None, len(stream.batches)
    else:
        text = ParallelText(request.source, request.target)
        lines, digests = text.checked()
        checkpoint = Checkpoint.load(request.model, request.device)
        stream = checkpoint.stream(
            text,
            kinds=request.kinds,
            layers=request.layers,
            ignore_special=request.ignore_special,
            batch_size=request.batch_size,
            longest=request.longest,
            probed=request.probed,
        )
        about = checkpoint.about | text.about
        names = ("kinds", "layers", "ignore_special", "batch_size", "longest", "probed")
        settings = {name: getattr(request, name) for name in names}
        asked = digests | {"model": checkpoint.digest()} | settings
        name, total = checkpoint.word, -(-lines // request.batch_size)
    keep = Keep(request.out / "parts", asked | {"heads": request.heads})
    return stream, keep, about, name, total


def _run(
    stage: str, stream: Stream, part: Part, request: Request, keep: Keep, total: int, console: Console
) -> None:
    wanted = sum(part.is_of(stage, number) for number in range(total))
    title = {"fit": "first reading", "judge": "second reading"}[stage]
    shard = f", shard {part.shard} of {part.shards}" if part.shards > 1 else ""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as shown:
        task = shown.add_task(f"{title}{shard}", total=wanted)

        def progress(_stage: str, read: int) -> None:
            shown.update(task, completed=read)

        if stage == "fit":
            fit_part(stream, part, heads=request.heads, keep=keep, progress=progress)
        else:
            judge_part(stream, merged_fit(keep, part), part, keep=keep, progress=progress)
        shown.update(task, completed=wanted)


def _remaining(stage: str, shards: list[int], of: int) -> str:
    name = {"fit": "first", "judge": "second"}[stage]
    return (
        f"the {name} reading of shards {', '.join(map(str, shards))} of {of} is not finished: run them, then "
        "this command again"
    )


def _digest_of_files(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            found.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
