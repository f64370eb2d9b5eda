"""``attnlib analyse``: a checkpoint and two texts, or saved traces, to a report; resumable, in shards."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attnlib.analysis.analyse import analyse_kept
from attnlib.analysis.readings import STAGES, fit_part, judge_part, lacking, merged_fit
from attnlib.analysis.report import write_report
from attnlib.analysis.request import Job, Request, job_of
from attnlib.analysis.stream import Part
from attnlib.errors import BadInput


def analyse_command(request: Request) -> None:
    """Do what is asked as far as it can be done now, and say what remains.

    Raises:
        BadInput: see the parts: a model, files or a folder that cannot be used; a stage asked for by name of
            which nothing can be done, because the one before it is not finished.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    job = job_of(request)
    if job.memory:
        console.print(job.memory)
    shards = range(request.shards) if request.shard is None else [request.shard]
    for stage in STAGES:
        if request.stage not in (stage, "all"):
            continue
        if stage == "judge" and (missing := lacking("fit", job.keep, request.part())):
            return _wait(_remaining("fit", missing, request.shards), request, console)
        for shard in shards:
            _run(stage, job, request.part(shard), request, console)
    if request.stage in STAGES:
        return
    if missing := lacking("judge", job.keep, request.part()):
        return _wait(_remaining("judge", missing, request.shards), request, console)
    analysis = analyse_kept(job.stream, job.keep, request.part(), heads=request.heads, about=job.about)
    write_report(analysis, request.out, title=f"How {job.shown} attends", name=job.name)
    console.print(f"report: {request.out / 'index.html'}")


def _run(stage: str, job: Job, part: Part, request: Request, console: Console) -> None:
    wanted = sum(part.is_of(stage, number) for number in range(job.batches))
    title = {"fit": "first reading", "judge": "second reading"}[stage]
    shard = f", shard {part.shard} of {part.shards}" if part.shards > 1 else ""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as shown:
        task = shown.add_task(f"{title}{shard}", total=wanted)

        def progress(_stage: str, read: int) -> None:
            shown.update(task, completed=read)

        if stage == "fit":
            fit_part(job.stream, part, heads=request.heads, keep=job.keep, progress=progress)
        else:
            judge_part(job.stream, merged_fit(job.keep, part), part, keep=job.keep, progress=progress)
        shown.update(task, completed=wanted)


def _wait(remaining: str, request: Request, console: Console) -> None:
    """Say what has to be done first; that is an error where this stage alone was asked for."""
    if request.stage != "all":
        raise BadInput(remaining)
    console.print(remaining)


def _remaining(stage: str, shards: list[int], of: int) -> str:
    name = {"fit": "first", "judge": "second"}[stage]
    return (
        f"the {name} reading of shards {', '.join(map(str, shards))} of {of} is not finished: run them, then "
        "this command again"
    )
