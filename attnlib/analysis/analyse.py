"""A model and a corpus to an analysis: two passes over the corpus, and what they come to."""

from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from warnings import warn

import attnlib
from attnlib.adapters.modules import Traced, described, weights_digest
from attnlib.analysis.judge import HeldOutSums
from attnlib.analysis.passes import Progress, both_passes, merged_fit
from attnlib.analysis.results import Analysis, results
from attnlib.analysis.samples import samples_of
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Shard, Stream
from attnlib.arrays import several
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput

PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "sentencepiece")


def analyse(
    stream: Stream,
    *,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    keep: Keep | None = None,
    progress: Progress | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    Args:
        stream: passes of a model, see :class:`~attnlib.analysis.stream.Stream`.
        heads: of every attention; all by default.
        method: of the components. Least squares tells position, word and what is constant apart exactly,
            and shares are about positions whose word was fitted on; what a mark and a place that has no other
            word share goes to the place. ``"means"`` is the way of the papers: a
            constant counts as temporal, and a word that was not fitted on as residual.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        keep: where to keep the sums of both passes while they go on; without it nothing outlasts the process.
        progress: called after each batch.
        about: what the report says of model and corpus.

    Warns of a lexical probe that cannot be taken, before the first pass.

    Raises:
        BadInput: a corpus with nothing to judge; no head; what is no Stream.
    """
    if not isinstance(stream, Stream):
        raise BadInput(f"{type(stream).__name__} is given; expected a Stream: Stream(adapter.trace, batches)")
    heads = several(heads)
    if any(type(head) is not int for head in heads or ()):
        raise BadInput(f"heads is {heads}; expected numbers of heads, from 0")
    tried = stream.tried(stream.first())
    if tried is not stream:
        warn(f"no lexical probe: {tried.no_probe}", stacklevel=2)
    judgement, part = both_passes(tried, every, keep, progress, heads=heads, method=method)
    return _analysis(tried, judgement, part, about)


def merged_analysis(
    stream: Stream,
    keep: Keep,
    part: Shard,
    *,
    heads: Collection[int] | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """What the finished parts of both passes come to; BadInput where one is not finished."""
    fit = merged_fit(keep, part)
    judgement = keep.merged("judge", part, lambda: HeldOutSums(fit))
    if not judgement.samples:
        if part.shards > 1:
            raise BadInput(
                f"nothing was held out of {fit.samples:,} samples: take fewer shards than {part.shards}"
            )
        return analyse(stream, heads=heads, method=fit.method, every=1, about=about)
    return _analysis(stream, judgement, part, about)


def versions() -> dict[str, str]:
    """Of this library, and of those of :data:`PACKAGES` that are there."""
    return {"attnlib": attnlib.__version__} | {name: version(name) for name in PACKAGES if find_spec(name)}


def _analysis(stream: Stream, judgement: HeldOutSums, part: Shard, about: dict[str, str] | None) -> Analysis:
    batch, fit = stream.first("judge", part), judgement.fit
    options = {"heads": fit.heads and ",".join(map(str, fit.heads)), "method": fit.method}
    options |= {"every": part.every, "probed": stream.probed}
    made = {"options": {}, "sha256": {}} | stream.made() | {"versions": versions()}
    made["options"] = options | made["options"]
    adapter = getattr(stream.trace, "__self__", None)
    if isinstance(adapter, Traced) and "model" not in made["sha256"]:
        about = {"Model": described(adapter.model)} | (about or {})
        made["sha256"] = made["sha256"] | {"model": weights_digest(adapter.model)}
    found = results(fit, judgement, held_out=part.every > 1, about=about)
    if batch is None:
        return replace(found, made=made)
    one = stream.trace(batch)
    dtypes = {str(own.precision or own.query_inputs.dtype).removeprefix("torch.") for own in one.attended}
    batch_of = {"device": str(one.source_mask.device), "samples in its first batch": len(one.source_mask)}
    made["computed in"] = {"precision": ", ".join(sorted(dtypes))} | batch_of
    return replace(found, made=made, samples=samples_of(stream, one, fit))
