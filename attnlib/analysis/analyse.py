"""From a model and a corpus to an analysis: two passes over the corpus, and what they come to."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import warn

import attnlib
from attnlib.adapters.modules import Traced, described, weights_digest
from attnlib.adapters.single_stack import is_single_stack
from attnlib.analysis.checkpoint import Checkpoint, Sentences, text_of
from attnlib.analysis.judge import HeldOutSums
from attnlib.analysis.passes import Progress, both_passes, merged_fit
from attnlib.analysis.results import Analysis, results
from attnlib.analysis.samples import samples_of
from attnlib.analysis.sequences import stream_of_sequences
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Shard, Stream
from attnlib.arrays import several
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput

PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "sentencepiece")


def analyse(
    model: Stream | Checkpoint | str | Path | Any,
    source: str | Path | Iterable[str] | None = None,
    target: str | Path | Iterable[str] | None = None,
    *,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    interventions: bool = False,
    keep: Keep | None = None,
    progress: Progress | bool | None = None,
    about: dict[str, str] | None = None,
    **options: Any,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    ``analyse("Helsinki-NLP/opus-mt-en-de", sources, targets)`` is all there is to it. A decoder or an encoder
    alone (GPT-2, Llama, BERT and their kin), loaded, reads one text: ``analyse(model, texts,
    tokenizer=tokenizer)``. A model of another form comes as a :class:`~attnlib.analysis.stream.Stream` of its
    passes, without a source.

    Args:
        model: the name or folder of a checkpoint that transformers loads, such a model itself, a
            :class:`~attnlib.analysis.checkpoint.Checkpoint`, or a stream of passes.
        source, target: two files, line by line translations of each other, or two lists of sentences. Without
            a target an encoder–decoder writes it.
        heads: of every attention; all by default.
        method: of the components. Least squares tells position, word and what is constant apart exactly,
            and shares are about positions whose word was fitted on; what a mark and a place that has no other
            word share goes to the place. ``"means"`` is the way of the papers: a
            constant counts as temporal, and a word that was not fitted on as residual.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        interventions: also see how far attention moves when a part of the states comes from another sample or
            is drawn anew, and how well shares predict that: ``analysis.tables.interventions()`` and
            ``analysis.tables.calibration()``, see :mod:`attnlib.analysis.interventions`. It takes 24 more
            attentions a batch in the second pass.
        keep: where to keep the sums of both passes while they go on; without it nothing outlasts the process.
        progress: True for a bar with the time left, in notebooks too; or a function that is called after each
            batch with the stage, "fit" or "judge", and the number of batches read.
        about: what the report says of model and corpus.
        options: of the model, ``device``, ``tokenizer``, ``model_kwargs``, ``tokenizer_kwargs``,
            ``source_language``, ``target_language`` and ``prefix``, see :meth:`Checkpoint.load`; and of its
            passes, ``kinds``, ``layers``, ``ignore_special``, ``batch_size``, ``longest`` and ``probed``, see
            :meth:`Checkpoint.stream`. A list of fewer than 320 sentences is cut into ten batches by default.

    Returns:
        The analysis. Warns of a lexical probe that cannot be taken, before the first pass.

    Raises:
        BadInput: a corpus with nothing to judge; no head; no source for a model that is no stream; a model
            that cannot be loaded.
    """
    stream, known = _stream_of(model, source, target, options)
    heads = several(heads)
    if any(type(head) is not int for head in heads or ()):
        raise BadInput(f"heads is {heads}; expected numbers of heads, from 0")
    tried = stream.tried(stream.first())
    if tried is not stream:
        warn(f"no lexical probe: {tried.no_probe}", stacklevel=2)
    judgement, part = both_passes(
        tried, every, keep, progress, interventions=interventions, heads=heads, method=method
    )
    return _analysis(tried, judgement, part, known | (about or {}))


_OF_A_MODEL = ("source_language", "target_language", "prefix")


def _stream_of(
    model: Any, source: Any, target: Any, options: dict[str, Any]
) -> tuple[Stream, dict[str, str]]:
    """Return the passes of a model over a text, and what a report says of both."""
    if isinstance(model, Stream):
        if source is not None or options:
            raise BadInput(
                "a Stream has its corpus and its options already: leave out source, target and "
                f"{', '.join(options) or 'options'}"
            )
        return model, {}
    if source is None:
        raise BadInput(
            f"{type(model).__name__} is given without a source; expected a model with source= and target=, "
            "or a Stream: Stream(adapter.trace, batches)"
        )
    text = text_of(source, target)
    checkpoint, options = _checkpoint_of(model, options)
    if isinstance(text, Sentences):
        options.setdefault("batch_size", max(1, min(32, len(text.source) // 10)))
    if is_single_stack(checkpoint.model):
        stream = stream_of_sequences(checkpoint, text, **options)
    else:
        stream = checkpoint.stream(text, generate=text.target is None, **options)
    return stream, checkpoint.about | text.about


def _checkpoint_of(model: Any, options: Mapping[str, Any]) -> tuple[Checkpoint, dict[str, Any]]:
    """Return the model as a checkpoint, and the options that are not about it."""
    left = dict(options)
    if isinstance(model, Checkpoint):
        return model, left
    settings = {name: left.pop(name) for name in _OF_A_MODEL if name in left}
    if isinstance(model, str | Path):
        loading = {
            name: left.pop(name) for name in ("device", "model_kwargs", "tokenizer_kwargs") if name in left
        }
        checkpoint = Checkpoint.load(str(model), **loading, **settings)
    else:
        checkpoint = Checkpoint.of(model, left.pop("tokenizer", None), **settings)
    return checkpoint, left


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
        options = {"heads": heads, "method": fit.method, "interventions": judgement.interventions}
        return analyse(stream, every=1, about=about, **options)
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
    samples = samples_of(stream, one, fit)
    return replace(found, made=made, samples=samples, one_sequence=one.is_one_sequence)
