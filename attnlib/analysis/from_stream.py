"""From the passes of a model over a corpus to an analysis."""

from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any
from warnings import warn

from attnlib.adapters.modules import Traced, described, weights_digest
from attnlib.analysis.bar import Progress
from attnlib.analysis.judge import HeldOutSums
from attnlib.analysis.passes import Keeper, both_passes
from attnlib.analysis.results import Analysis, results
from attnlib.analysis.samples import samples_of
from attnlib.analysis.stream import Shard, Stream
from attnlib.arrays import several
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput
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
        stream: passes of the model over the corpus.
        heads: of every attention; all by default.
        method: of the components, ``"least_squares"`` or ``"means"``.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        interventions: also see how far attention moves when a part of the states comes from another sample or
            is drawn anew, see :mod:`attnlib.analysis.interventions`.
        keep: keeps the sums of both passes while they go on; without it nothing outlasts the process.
        progress: True for a bar with the time left, or a function that is called after each batch with the
            stage, "fit" or "judge", and the number of batches read.
        about: what a report says of model and corpus.

    Returns:
        The analysis. Warns of a lexical probe that cannot be taken, before the first pass.

    Raises:
        BadInput: a corpus with nothing to judge, or no head.
    """
    heads = several(heads)
    if any(type(head) is not int for head in heads or ()):
        raise BadInput(f"heads is {heads}; expected numbers of heads, from 0")
    tried = stream.tried(stream.first())
    if tried is not stream:
        warn(f"no lexical probe: {tried.no_probe}", stacklevel=3)
    judgement, part = both_passes(
        tried, every, keep=keep, progress=progress, interventions=interventions, heads=heads, method=method
    )
    return analysis_of(tried, judgement, part, about=about)


def analysis_of(
    stream: Stream, judgement: HeldOutSums, part: Shard, *, about: dict[str, str] | None = None
) -> Analysis:
    """Return what the sums of both passes come to, with what made them and some judged samples.

    Args:
        stream: what the sums are of.
        judgement: the sums of the second pass, which have those of the first.
        part: the batches that they are of.
        about: what a report says of model and corpus.
    """
    fit = judgement.fit
    made = _made_by(stream, judgement, part)
    adapter = getattr(stream.trace, "__self__", None)
    if isinstance(adapter, Traced) and "model" not in made["sha256"]:
        about = {"Model": described(adapter.model)} | (about or {})
        made["sha256"] = made["sha256"] | {"model": weights_digest(adapter.model)}
    analysis = results(fit, judgement, held_out=part.every > 1, about=about)
    first_batch = stream.first("judge", part)
    if first_batch is None:
        return replace(analysis, made=made)
    model_pass = stream.trace(first_batch).validated()
    return replace(
        analysis,
        made=made | {"computed in": _computed_in(model_pass)},
        samples=samples_of(stream, model_pass, fit),
        one_sequence=model_pass.is_one_sequence,
    )


def _made_by(stream: Stream, judgement: HeldOutSums, part: Shard) -> dict[str, dict]:
    """Return options, checksums and versions, by group; those of the stream come last."""
    fit = judgement.fit
    options: dict[str, Any] = {
        "heads": fit.heads and ",".join(map(str, fit.heads)),
        "method": fit.method,
        "every": part.every,
        "probed": stream.probed,
    }
    made = {"options": {}, "sha256": {}} | stream.made() | {"versions": versions()}
    made["options"] = options | made["options"]
    return made


def _computed_in(model_pass: Trace) -> dict[str, Any]:
    """Return in which precision, where and with how many samples a batch went through the model."""
    dtypes = {attended.precision or attended.query_inputs.dtype for attended in model_pass.attentions}
    names = sorted(str(dtype).removeprefix("torch.") for dtype in dtypes)
    return {
        "precision": ", ".join(names),
        "device": str(model_pass.source_mask.device),
        "samples in its first batch": len(model_pass.source_mask),
    }


def versions() -> dict[str, str]:
    """Return the versions of this library and of those of :data:`PACKAGES` that are installed."""
    installed = [name for name in PACKAGES if find_spec(name)]
    return {"attnlib": __version__} | {name: version(name) for name in installed}
