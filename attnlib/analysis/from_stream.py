"""Analyse a corpus that a model reads batch by batch."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any
from warnings import warn

from attnlib.adapters.modules import described, weights_digest
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.passes import Keeper, both_passes
from attnlib.analysis.results import Analysis, results
from attnlib.analysis.samples import Sample, samples_of
from attnlib.analysis.stream import Shard, Stream
from attnlib.arrays import as_tuple
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput
from attnlib.progress import Progress
from attnlib.trace import Trace
from attnlib.version import __version__

PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "sentencepiece")


def analyse_stream(
    stream: Stream,
    *,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    interventions: bool = False,
    keep: Keeper | None = None,
    progress: Progress | bool | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    Args:
        stream: batches of the corpus and the model that reads them.
        heads: numbers of the heads to analyse in every attention, from 0; all by default.
        method: of the components, ``"least_squares"`` or ``"means"``.
        every: hold out and judge every N-th batch. A corpus of fewer batches is fitted and judged
            on the same samples, and the analysis says so: its residuals are too small.
        interventions: whether to measure, too, how far attention moves when a part of the states is exchanged
            or drawn anew, see :mod:`attnlib.analysis.interventions`.
        keep: saves the sums of both passes while they are running; without it nothing outlasts the process.
        progress: True for a bar with the time left, or a function that is called after each batch with the
            stage, "fit" or "judge", and the number of batches read.
        about: what a report says of model and corpus, by title.

    Returns:
        The analysis. Before the first pass it warns if the lexical probe cannot be taken.

    Raises:
        BadInput: the corpus has nothing to judge, or ``heads`` is empty or not made of whole numbers.

    Example:
        >>> import torch
        >>> from attnlib.trace import Attention, Trace
        >>> from attnlib.linear_map import LinearMap
        >>> draw = torch.Generator().manual_seed(0)
        >>> def trace_of(tokens):
        ...     states = torch.randn(*tokens.shape, 4, generator=draw)
        ...     maps = (LinearMap.none(states), LinearMap.none(states))
        ...     attention = Attention("encoder_self", 0, query_inputs=states, key_inputs=states, maps=maps)
        ...     return Trace.of_one_sequence(tokens, tokens > 0, (attention,))
        >>> batches = [torch.randint(1, 9, (2, 5), generator=draw) for _ in range(10)]
        >>> analyse_stream(Stream(trace_of, batches))
        Analysis of 1 heads, fitted on 16 samples, judged on 4
    """
    heads = as_tuple(heads)
    if heads is not None and any(type(head) is not int for head in heads):
        raise BadInput(f"heads is {heads}; expected numbers of heads, from 0")
    probed_stream = stream.with_working_probe(stream.first())
    if probed_stream is not stream:
        warn(f"no lexical probe: {probed_stream.no_probe}", stacklevel=3)
    judgement, shard = both_passes(
        probed_stream,
        every,
        keep=keep,
        progress=progress,
        interventions=interventions,
        heads=heads,
        method=method,
    )
    return analysis_of(probed_stream, judgement, shard, about=about)


def analysis_of(
    stream: Stream, judgement: JudgedSums, shard: Shard, *, about: dict[str, str] | None = None
) -> Analysis:
    """Return the analysis that follows from the sums of both passes, with its provenance and judged samples.

    Args:
        stream: batches of the corpus and the model that read them.
        judgement: sums of the second pass, which hold those of the first.
        shard: the batches that were read.
        about: what a report says of model and corpus, by title.
    """
    fit = judgement.fit
    made = _made_by(stream, judgement, shard)
    if stream.model is not None and "model" not in made["sha256"]:
        about = {"Model": described(stream.model)} | (about or {})
        made["sha256"] = made["sha256"] | {"model": weights_digest(stream.model)}
    analysis = results(fit, judgement, held_out=not shard.hold_out.is_empty, about=about)
    first_batch = stream.first("judge", shard)
    if first_batch is None:
        return replace(analysis, made=made)
    trace = stream.trace(first_batch).validated()
    samples = samples_of(stream, trace, fit)
    return replace(
        analysis,
        made=made | {"computed in": _computed_in(trace)},
        samples=(*_own_samples(stream, fit), *samples),
        one_sequence=trace.is_one_sequence,
    )


def _own_samples(stream: Stream, fit: Fit) -> Iterator[Sample]:
    """Yield the sentences that a reader has given besides the corpus."""
    for batch in stream.shown:
        yield from samples_of(stream, stream.trace(batch).validated(), fit)


def _made_by(stream: Stream, judgement: JudgedSums, shard: Shard) -> dict[str, dict]:
    """Return options, checksums and versions, by group; those of the stream come last."""
    fit = judgement.fit
    heads = None
    if fit.heads is not None:
        heads = ",".join(map(str, fit.heads))
    options: dict[str, Any] = {
        "heads": heads,
        "method": fit.method,
        "every": shard.hold_out.every,
        "probed": stream.probed,
    }
    by_group = {"options": {}, "sha256": {}} | stream.made()
    by_group["options"] = options | by_group["options"]
    by_group["versions"] = versions()
    return by_group


def _computed_in(trace: Trace) -> dict[str, Any]:
    """Return the precision, the device and the size of the first batch that the model computed with."""
    dtypes = {attention.precision or attention.query_inputs.dtype for attention in trace.attentions}
    precisions = sorted(str(dtype).removeprefix("torch.") for dtype in dtypes)
    return {
        "precision": ", ".join(precisions),
        "device": str(trace.source_mask.device),
        "samples in its first batch": len(trace.source_mask),
    }


def versions() -> dict[str, str]:
    """Return the versions of this library and of those of :data:`PACKAGES` that are installed."""
    installed = [name for name in PACKAGES if find_spec(name)]
    return {"attnlib": __version__} | {name: version(name) for name in installed}
