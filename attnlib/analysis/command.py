"""``attnlib analyse``: a checkpoint and two texts, or saved traces, to a report; resumable, in shards."""

import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from itertools import islice

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attnlib.adapters.single_stack import is_single_stack
from attnlib.analysis.analyse import merged_analysis
from attnlib.analysis.checkpoint import Checkpoint, ParallelText
from attnlib.analysis.fit import Fit
from attnlib.analysis.learned import SCORED
from attnlib.analysis.passes import STAGES, fit_part, judge_part, merged_fit
from attnlib.analysis.report import RUN, Name, write_report, write_run
from attnlib.analysis.sequences import stream_of_sequences
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Shard, Stream
from attnlib.errors import BadInput
from attnlib.files import locked, readable
from attnlib.request import OF_A_CALL, OF_A_PASS, OF_A_TEXT, OF_BATCHES, Request

WRITTEN = {
    "Target": "what the model itself writes, the likeliest piece at every step",
    "Predictions": "not judged: there is no reference to say how good what the model writes is",
}
PASSES = {"fit": "first pass", "judge": "second pass"}
WORTH = 0.9  # of the time, at most, that a further thread has to leave


def analyse_command(request: Request) -> None:
    """Do what can be done of a request now, and say what remains."""
    console, start = Console(stderr=True, highlight=False, soft_wrap=True, markup=False), time.monotonic()
    job = _of_traces(request) if request.traces is not None else _of_checkpoint(request, console)
    shards = range(request.shards) if request.shard is None else [request.shard]
    stages = STAGES if request.stage == "all" else [stage for stage in STAGES if stage == request.stage]
    parts = [(stage, request.part(shard)) for stage in stages for shard in shards]
    with job.keep.held(parts):
        waiting = [own for own in parts if not (job.keep.begun(*own) or {}).get("finished")]
        if waiting:
            job = _ready(job, *waiting[0], request, console)
        for stage, part in parts:
            if stage == "judge" and (remaining := _remaining(job, "fit", request)):
                break
            _run(stage, job, part, request, console)
        else:
            remaining = _remaining(job, "judge", request) if request.stage in ("report", "all") else ""
    if remaining and request.stage != "all":
        raise BadInput(remaining)
    if remaining:
        return console.print(remaining)
    if request.stage in STAGES:
        return
    with locked(request.out, ".report.lock", wait=True):  # the last two shards may end together
        analysis = merged_analysis(job.stream, job.keep, request.part(), heads=request.heads, about=job.about)
        changes = {"samples": analysis.samples[: request.sentences]}
        if job.bleu is not None:
            part = Shard(every=request.every if analysis.held_out else 1)
            judged = (own for number, own in job.stream.numbered() if part.is_of("judge", number))
            changes["learned"] = analysis.learned | job.bleu(islice(judged, SCORED))
        analysis = replace(analysis, **changes, made=analysis.made | {"options": _options(request)})
        if waiting or not (request.out / RUN).is_file():
            write_run(request.out, start)
        write_report(analysis, request.out, title=f"How {job.shown} attends", name=job.name)
    console.print(f"report: {request.out / 'index.html'}")


def _options(request: Request) -> dict[str, object]:
    """All that the numbers depend on, but for the machine and what files hold."""
    named = request.settings(*(field.name for field in fields(request) if field.name not in OF_A_CALL))
    return {f"--{name.replace('_', '-')}": _shown(value) for name, value in named.items()}


def _shown(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | tuple) else readable(str(value))


def _remaining(job: "_Job", stage: str, request: Request) -> str:
    """What has to be done before the next stage can be; empty where nothing has."""
    if not (missing := job.keep.lacking(stage, request.part())):
        return ""
    return (
        f"the {PASSES[stage]} over shards {', '.join(map(str, missing))} of {request.shards} is not "
        "finished: run them, then this command again"
    )


@dataclass(frozen=True)
class _Job:
    """What a request comes to: a corpus through a model, in so many batches, and how a report names it."""

    stream: Stream
    keep: Keep
    batches: int
    about: dict[str, str]
    shown: str
    name: Name | None = None
    bleu: Callable[[Iterable], dict[str, float]] | None = None


def _of_traces(request: Request) -> _Job:
    stream = Stream.saved(request.traces)
    shown = f"saved traces of {readable(request.traces.name)}"
    keep = _keep(request, stream.made()["sha256"])
    return _Job(stream, keep, len(stream.batches), {"Model": shown}, shown)


def _of_checkpoint(request: Request, console: Console) -> _Job:
    text = ParallelText(request.source, request.target)
    lines, _ = text.checked()
    checkpoint = Checkpoint.load(request.model, request.device, **request.settings(*OF_A_TEXT))
    if is_single_stack(checkpoint.model):
        stream = _stream_of_sequences(checkpoint, text, request)
    else:
        stream = checkpoint.stream(text, **request.settings(*OF_A_PASS, *OF_BATCHES))
    job = _Job(
        stream,
        _keep(request, stream.made()["sha256"] | request.settings(*OF_A_TEXT, *OF_A_PASS, *OF_BATCHES)),
        -(-lines // request.batch_size),
        checkpoint.about | text.about | (WRITTEN if request.generate else {}),
        checkpoint.shown,
        checkpoint.word,
        None if text.target is None else checkpoint.bleu,
    )
    if is_single_stack(checkpoint.model):
        adapter = stream.trace.__self__
        size = (request.batch_size, request.longest)
    else:
        adapter = checkpoint.adapter(**request.settings(*OF_A_PASS))
        size = (request.batch_size, request.longest, request.longest)
    own, every = (adapter.pass_bytes(*size, every_layer=all_of_them) for all_of_them in (False, True))
    more = "" if own == every else f" ({every / 1e6:,.0f} MB with all layers)"
    console.print(
        f"beside the model: at most {own / 1e6:,.0f} MB are caught of a batch{more}; tables of all words "
        f"would take {adapter.table_bytes(request.longest) / 1e6:,.0f} MB, twice that while they are merged "
        "or judged by"
    )
    return job


def _stream_of_sequences(checkpoint: Checkpoint, text: ParallelText, request: Request) -> Stream:
    """Return the passes of a decoder or an encoder alone; it has one kind of attention, the default here."""
    if request.generate:
        raise BadInput(f"{checkpoint.shown} reads one text and writes no translation: leave --generate out")
    options = request.settings(*OF_A_PASS, "batch_size", "longest")
    if options["kinds"] == ("cross",):
        options["kinds"] = None
    return stream_of_sequences(checkpoint, text, **options)


def _ready(job: _Job, stage: str, part: Shard, request: Request, console: Console) -> _Job:
    """Said before any work: what cannot be probed, and how many threads there are."""
    batch = job.stream.first(stage, part)
    stream = job.stream.tried(batch)
    if stream.no_probe:
        console.print(f"no lexical probe: {stream.no_probe}")
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    elif batch is not None and request.device == "cpu":
        seconds = choose_threads(lambda: Fit(request.heads, request.method).update(stream.trace(batch)))
        said = ", ".join(f"{own:.2g} s a batch with {count}" for count, own in seconds.items())
        console.print(f"threads: {torch.get_num_threads()}{f' ({said})' if said else ''}")
    return replace(job, stream=stream)


def _keep(request: Request, settings: dict) -> Keep:
    own = request.settings("heads", "method", "interventions")
    more = own | {"free constants": "by counts"}  # once of least norm
    return Keep(request.out / "parts", settings | more)


def _run(stage: str, job: _Job, part: Shard, request: Request, console: Console) -> None:
    wanted = sum(part.is_of(stage, number) for number in range(job.batches))
    shard = f", shard {part.shard} of {part.shards}" if part.shards > 1 else ""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as shown:
        task = shown.add_task(f"{PASSES[stage]}{shard}", total=wanted)
        more = {"keep": job.keep, "progress": lambda _stage, read: shown.update(task, completed=read)}
        if stage == "fit":
            fit_part(job.stream, part, heads=request.heads, method=request.method, **more)
        else:
            fit = merged_fit(job.keep, part)
            judge_part(job.stream, fit, part, interventions=request.interventions, **more)
        shown.update(task, completed=wanted)


def choose_threads(work: Callable[[], object], most: int | None = None) -> dict[int, float]:
    """Let torch use as many threads as make some work fastest; the seconds that it took with each number.

    Numbers double from 1 up to ``most``, by default what torch uses now, as long as that is worth it.

    >>> before = torch.get_num_threads()
    >>> list(choose_threads(lambda: None, most=1)), torch.get_num_threads()
    ([], 1)
    >>> torch.set_num_threads(before)
    """
    most = torch.get_num_threads() if most is None else most
    torch.set_num_threads(1)
    if most == 1:
        return {}
    found, best = {}, 1
    for count in sorted({*(2**n for n in range(most.bit_length()) if 2**n < most), most}):
        torch.set_num_threads(count)
        work()  # the first call of a kind is slow
        found[count] = min(timeit.repeat(work, number=1, repeat=2))
        if count > 1 and found[count] > WORTH * found[best]:
            break
        best = count
    torch.set_num_threads(best)
    return found
