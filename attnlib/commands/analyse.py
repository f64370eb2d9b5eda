"""Run ``attnlib analyse``: report on a checkpoint and two texts, or on saved traces.

A run that was cut short goes on, and a corpus can be split into shards.
"""

import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console

from attnlib.adapters.single_stack import is_single_stack
from attnlib.analysis.fit import Fit
from attnlib.analysis.learned import SCORED, not_learned
from attnlib.analysis.passes import fit_shard, judge_shard
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import STAGES, HoldOut, Shard, Stream
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput
from attnlib.files import locked
from attnlib.options import (
    BATCH_OPTIONS,
    CALL_OPTIONS,
    OWN_OPTIONS,
    PASS_OPTIONS,
    TEXT_OPTIONS,
    AnalyseOptions,
    arguments,
    flag_of,
)
from attnlib.progress import following
from attnlib.report.contents import Name
from attnlib.report.files import RUN, write_report, write_run
from attnlib.report.model_folders import search_notice
from attnlib.report.pretrained import Checkpoint
from attnlib.report.resume import PartialSums, merged_analysis, merged_fit
from attnlib.report.sequences import adapter_of_sequences, stream_of_sequences
from attnlib.report.texts import ParallelText, about_own, own_sentences
from attnlib.report.words_shown import with_words

PASSES = {"fit": "first pass", "judge": "second pass"}
WORTH = 0.9  # of the time, at most, that a further thread has to leave
_GENERATED = {
    "Target": "what the model itself writes, the likeliest piece at every step",
    "Predictions": "not judged: there is no reference to say how good what the model writes is",
}

_StageOfShard = tuple[str, Shard]


def analyse_command(options: AnalyseOptions) -> None:
    """Run the stages of an analysis that can be run now, and say what remains.

    Args:
        options: what to analyse and how.

    Raises:
        BadInput: options that cannot be used, or a stage that has to wait for another one.

    Example:
        >>> from pathlib import Path
        >>> from attnlib.options import AnalyseOptions
        >>> options = AnalyseOptions(out=Path("report"), traces=Path("no-such-folder"))
        >>> analyse_command(options)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: no-such-folder holds no *.safetensors; expected one a batch, ...
    """
    began = time.monotonic()
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    job = _job_of(options, console)
    stages = _stages_of_shards(options)
    with job.keep.held(stages):
        unfinished = [(stage, shard) for stage, shard in stages if not job.keep.is_finished(stage, shard)]
        if unfinished:
            job = _prepared(job, unfinished[0], options=options, console=console)
        remaining = _run_stages(job, stages, options=options, console=console)
    if remaining and options.stage != "all":
        raise BadInput(remaining)
    if remaining:
        console.print(remaining)
        return
    if options.stage in STAGES:
        return
    with locked(options.out, ".report.lock", wait=True):  # the last two shards may end together
        analysis = _finished_analysis(job, options, console)
        if unfinished or not (options.out / RUN).is_file():
            write_run(options.out, began)
        title = f"How {job.shown} attends"
        tables = options.tables
        if options.sentence:
            tables = (*tables, "sentences")
        write_report(analysis, options.out, title=title, name=job.name, tables=tables)
    if options.sentence:
        console.print(f"your sentences, with the terms of every head: {options.out / 'sentences.csv'}")
    if warning := not_learned(analysis.learned):
        console.print(warning)
    console.print(f"report: {options.out / 'index.html'}")


# -- jobs --


@dataclass(frozen=True, kw_only=True)
class _Job:
    """The work that options ask for, and how a report names it.

    Attributes:
        stream: passes of the model.
        keep: holds the sums of both passes.
        n_batches: of the corpus.
        about: what a report says of model and corpus.
        shown: the name of the model.
        name: the word of an id.
        checkpoint: joins the pieces of samples to words, if that is wanted.
        bleu: how good what the model writes for some batches is, if that can be judged.
    """

    stream: Stream
    keep: PartialSums
    n_batches: int
    about: dict[str, str]
    shown: str
    name: Name | None = None
    checkpoint: Checkpoint | None = None
    bleu: Callable[[Iterable], dict[str, float]] | None = None


def _job_of(options: AnalyseOptions, console: Console) -> _Job:
    if options.traces is not None:
        return _job_of_traces(options.traces, options)
    return _job_of_checkpoint(options, console)


def _job_of_traces(folder: Path, options: AnalyseOptions) -> _Job:
    stream = Stream.saved(folder)
    assert stream.n_batches is not None  # the files are a list
    shown = f"saved traces of {folder.name}"
    return _Job(
        stream=stream,
        keep=_partial_sums(options, stream.made()["sha256"]),
        n_batches=stream.n_batches,
        about={"Model": shown},
        shown=shown,
    )


def _job_of_checkpoint(options: AnalyseOptions, console: Console) -> _Job:
    assert options.model is not None  # options without traces have a model and a source
    assert options.source is not None
    text = ParallelText(options.source, options.target)
    text.checked()  # before the model is loaded
    if notice := search_notice(options.model):
        console.print(notice)
    checkpoint = Checkpoint.load(options.model, options.device, **options.settings(*TEXT_OPTIONS))
    if is_single_stack(checkpoint.model):
        stream = _stream_of_sequences(checkpoint, text, options)
    elif text.target is None and not options.generate:
        raise BadInput("there is no target: give --target, or --generate for the model to write it")
    else:
        settings = options.settings(*PASS_OPTIONS, *BATCH_OPTIONS)
        settings["generation"] = arguments(options.generation)
        stream = checkpoint.stream(text, shown=own_sentences(**options.settings(*OWN_OPTIONS)), **settings)
    assert stream.n_batches is not None  # options have no batches without pairs
    settings = options.settings(*TEXT_OPTIONS, *PASS_OPTIONS, *BATCH_OPTIONS)
    about = checkpoint.about | text.about
    if options.generate:
        about |= _GENERATED
    if options.generation is not None:
        about["Target"] = f"what the model itself writes, with {options.generation}"
    shown = own_sentences(**options.settings(*OWN_OPTIONS))
    if shown is not None:
        about |= about_own(shown, one_text=is_single_stack(checkpoint.model))
    references = [ParallelText(path, options.target) for path in options.references or ()]
    for reference in references:
        reference.checked()
    shortened = checkpoint.shortened(options.longest)
    if shortened:
        console.print(shortened)
        about["Positions"] = shortened
    job = _Job(
        stream=stream,
        keep=_partial_sums(options, stream.made()["sha256"] | settings),
        n_batches=stream.n_batches,
        about=about,
        shown=checkpoint.shown,
        name=checkpoint.word,
        checkpoint=checkpoint if options.words else None,
        bleu=None if text.target is None else partial(checkpoint.bleu, references=references),
    )
    for trace in text.traces():
        console.print(
            f"note: {trace}, which the tokenizer takes as plain text; take them out of the files first"
        )
    console.print(_memory_needed(checkpoint, options))
    return job


def _stream_of_sequences(checkpoint: Checkpoint, text: ParallelText, options: AnalyseOptions) -> Stream:
    """Return the passes of a decoder or an encoder alone."""
    if options.generate:
        raise BadInput(f"{checkpoint.shown} reads one text and writes no translation: leave --generate out")
    for name in ("target", "translation"):
        if getattr(options, name) is not None:
            raise BadInput(
                f"{checkpoint.shown} reads one text and translates nothing: leave {flag_of(name)} out"
            )
    settings = _settings_of_sequences(options) | options.settings("batch_size", "longest")
    shown = own_sentences(**options.settings(*OWN_OPTIONS))
    return stream_of_sequences(checkpoint, text, shown=shown, **settings)


def _settings_of_sequences(options: AnalyseOptions) -> dict[str, Any]:
    """Return what is looked at of a model that reads one text, which has no attention of the default kind."""
    settings = options.settings(*PASS_OPTIONS)
    if settings["kinds"] == ("cross",):
        settings["kinds"] = None
    return settings


def _partial_sums(options: AnalyseOptions, settings: Mapping) -> PartialSums:
    """Return where the sums are kept; a change of any setting that numbers depend on is refused."""
    of_passes = options.settings("heads", "method", "interventions")
    free_constants = {"free constants": "by counts"}  # once of least norm
    return PartialSums(options.out / "parts", {**settings, **of_passes, **free_constants}, flags=True)


def _method(options: AnalyseOptions) -> Method:
    """Return how components are fitted; options of another method cannot be made."""
    return cast("Method", options.method)


def _memory_needed(checkpoint: Checkpoint, options: AnalyseOptions) -> str:
    """Return how much memory an analysis takes besides the model, in a sentence or two."""
    if is_single_stack(checkpoint.model):
        adapter = adapter_of_sequences(checkpoint, **_settings_of_sequences(options))
        sizes = (options.batch_size, options.longest)
    else:
        adapter = checkpoint.adapter(**options.settings(*PASS_OPTIONS))
        sizes = (options.batch_size, options.longest, options.longest)
    caught = adapter.pass_bytes(*sizes, every_layer=False)
    with_every_layer = adapter.pass_bytes(*sizes, every_layer=True)
    every_layer = ""
    if caught != with_every_layer:
        every_layer = f" ({with_every_layer / 1e6:,.0f} MB with all layers)"
    tables = adapter.table_bytes(options.longest) / 1e6
    return (
        f"memory besides the model: up to {caught / 1e6:,.0f} MB for a batch{every_layer}, and up to "
        f"{tables:,.0f} MB for the components of all words, twice as much during the second pass"
    )


# -- going through it, shard by shard --


def _stages_of_shards(options: AnalyseOptions) -> list[_StageOfShard]:
    """Return the chosen stages and shards, in order."""
    shards = range(options.shards) if options.shard is None else [options.shard]
    stages = [stage for stage in STAGES if options.stage in (stage, "all")]
    return [(stage, _shard(options, shard)) for stage in stages for shard in shards]


def _shard(options: AnalyseOptions, shard: int = 0) -> Shard:
    return Shard(shard, options.shards, HoldOut(options.every))


def _prepared(job: _Job, first: _StageOfShard, *, options: AnalyseOptions, console: Console) -> _Job:
    """Say before any work what cannot be probed, and choose how many threads there are."""
    stage, shard = first
    batch = job.stream.first(stage, shard)
    stream = job.stream.with_working_probe(batch)
    if stream.no_probe:
        console.print(f"no lexical probe: {stream.no_probe}")
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    elif batch is not None and options.device == "cpu":
        empty = Fit(options.heads, method=_method(options))
        seconds = choose_threads(lambda: empty.empty().update(stream.trace(batch)))
        timings = ", ".join(f"{time:.2g} s a batch with {count}" for count, time in seconds.items())
        line = f"threads: {torch.get_num_threads()}"
        if timings:
            line += f" ({timings})"
        console.print(line)
    return replace(job, stream=stream)


def _run_stages(job: _Job, stages: list[_StageOfShard], *, options: AnalyseOptions, console: Console) -> str:
    """Run all stages that can be run, and return what has to be done before the next; empty for nothing."""
    for stage, shard in stages:
        if stage == "judge" and (remaining := _remaining(job, "fit", options)):
            return remaining
        if not job.keep.is_finished(stage, shard):
            _run(job, stage, shard, options=options, console=console)
    if options.stage in STAGES:
        return ""
    return _remaining(job, "judge", options)


def _remaining(job: _Job, stage: str, options: AnalyseOptions) -> str:
    """Return what has to be done before a stage is finished, in words; empty for nothing."""
    unfinished = job.keep.unfinished(stage, _shard(options))
    if not unfinished:
        return ""
    return (
        f"the {PASSES[stage]} over shards {', '.join(map(str, unfinished))} of {options.shards} is not "
        "finished: run them, then this command again"
    )


def _run(job: _Job, stage: str, shard: Shard, *, options: AnalyseOptions, console: Console) -> None:
    """Run a stage over a shard, with a bar."""
    n_batches = sum(shard.is_of(stage, number) for number in range(job.n_batches))
    title = PASSES[stage]
    if shard.of > 1:
        title += f", shard {shard.number} of {shard.of}"
    with following(progress=True, console=console) as follower:
        after_batch = follower.stage(stage, title=title, n_batches=n_batches)

        def follow(_stage: str, n_read: int) -> None:
            after_batch(n_read)

        if stage == "fit":
            fit_shard(
                job.stream,
                shard,
                heads=options.heads,
                method=_method(options),
                keep=job.keep,
                progress=follow,
            )
        else:
            fit = merged_fit(job.keep, shard)
            judge_shard(
                job.stream, fit, shard, interventions=options.interventions, keep=job.keep, progress=follow
            )
        after_batch(n_batches)


def choose_threads(work: Callable[[], object], most: int | None = None) -> dict[int, float]:
    """Let torch use the number of threads that does some work fastest.

    Numbers double from 1 up to ``most``, as long as that is worth it.

    Args:
        work: is done with each number of threads.
        most: by default what torch uses now.

    Returns:
        The seconds that the work took, by number of threads; empty if there is no choice.

    Example:
        >>> before = torch.get_num_threads()
        >>> list(choose_threads(lambda: None, most=1)), torch.get_num_threads()
        ([], 1)
        >>> torch.set_num_threads(before)
    """
    if most is None:
        most = torch.get_num_threads()
    torch.set_num_threads(1)
    if most == 1:
        return {}
    powers = {2**exponent for exponent in range(most.bit_length())}
    counts = sorted({count for count in powers if count < most} | {most})
    seconds: dict[int, float] = {}
    best = 1
    for count in counts:
        torch.set_num_threads(count)
        work()  # the first call of a kind is slow
        seconds[count] = min(timeit.repeat(work, number=1, repeat=2))
        if count > 1 and seconds[count] > WORTH * seconds[best]:
            break
        best = count
    torch.set_num_threads(best)
    return seconds


# -- results --


def _finished_analysis(job: _Job, options: AnalyseOptions, console: Console) -> Analysis:
    """Return the analysis of all shards, with how well the model writes and with the options of the call."""
    analysis = merged_analysis(job.stream, job.keep, _shard(options), heads=options.heads, about=job.about)
    learned = analysis.learned
    if job.bleu is not None:
        every = options.every if analysis.held_out else 1
        judged = _judged_batches(job.stream, every=every)
        scored = islice(judged, SCORED)
        n_judged = sum(HoldOut(every).is_of("judge", number) for number in range(job.n_batches))
        n_scored = min(SCORED, n_judged)
        learned = learned | job.bleu(_with_bar(scored, "writing for BLEU", n_scored, console=console))
    if job.checkpoint is not None:
        analysis = with_words(analysis, job.checkpoint)
    return replace(
        analysis,
        samples=analysis.samples[: options.sentences + len(options.sentence or ())],
        learned=learned,
        made=analysis.made | {"options": _options_of_page(options)},
    )


def _with_bar(batches: Iterable, title: str, n_batches: int, *, console: Console) -> Iterator[Any]:
    """Yield batches, with a bar of how many are done."""
    with following(progress=True, console=console) as follower:
        after_batch = follower.stage("bleu", title=title, n_batches=n_batches)
        for n_done, batch in enumerate(batches, start=1):
            yield batch
            after_batch(n_done)
        after_batch(n_batches)


def _judged_batches(stream: Stream, *, every: int) -> Iterator[Any]:
    """Yield the batches of a whole corpus that the second pass judges."""
    hold_out = HoldOut(every)
    for number, batch in stream.numbered():
        if hold_out.is_of("judge", number):
            yield batch


def _options_of_page(options: AnalyseOptions) -> dict[str, object]:
    """Return all options that the numbers depend on, except the machine and the contents of files."""
    names = [field.name for field in fields(options) if field.name not in CALL_OPTIONS]
    return {flag_of(name): _plain(value) for name, value in options.settings(*names).items()}


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    if value is None or isinstance(value, bool | int | tuple):
        return value
    return str(value)
