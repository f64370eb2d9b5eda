"""A model and a corpus to an analysis, in one process."""

from collections.abc import Collection

from attnlib.analysis.readings import (
    Keep,
    Progress,
    fit_part,
    judge_part,
    merged_fit,
    merged_judgement,
)
from attnlib.analysis.results import Analysis, Example, example_of, results
from attnlib.analysis.stream import Part, Stream
from attnlib.errors import BadInput


def analyse(
    stream: Stream,
    *,
    heads: Collection[int] | None = None,
    every: int = 5,
    keep: Keep | None = None,
    progress: Progress | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    Args:
        stream: passes of a model, see :class:`~attnlib.analysis.stream.Stream`.
        heads: of every attention; all by default.
        every: one batch in so many is held out and judged. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        keep: where to keep both readings while they go on; without it nothing outlasts the process.
        progress: called after each batch.
        about: what the report tells of model and corpus.

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
    return results(
        fit, judgement, held_out=part.every > 1, example=first_example(stream, part, fit.heads), about=about
    )


def analyse_kept(
    stream: Stream,
    keep: Keep,
    part: Part,
    *,
    heads: Collection[int] | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """What the finished parts of both readings come to, shards added up.

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
    return results(
        fit, judgement, held_out=part.every > 1, example=first_example(stream, part, fit.heads), about=about
    )


def first_example(stream: Stream, part: Part, heads: tuple[int, ...] | None) -> Example | None:
    """The first sample that is judged, passed through the model once more."""
    wanted = (batch for number, batch in stream.numbered() if part.is_of("judge", number))
    batch = next(wanted, None)
    return None if batch is None else example_of(stream.trace(batch), heads)
