"""Analyse a model on a text in one call, whatever form the two have."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from attnlib.adapters.single_stack import is_single_stack
from attnlib.analysis.from_stream import analyse_stream
from attnlib.analysis.passes import Keeper
from attnlib.analysis.stream import Stream
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput
from attnlib.progress import Progress
from attnlib.report.order import in_one_order
from attnlib.report.pretrained import Checkpoint
from attnlib.report.sequences import stream_of_sequences
from attnlib.report.texts import Sentences, about_own, own_sentences, text_of
from attnlib.report.views import AnalysisWithViews
from attnlib.report.words_shown import with_pieces, with_words


def analyse(
    model: Stream | Checkpoint | str | Path | Any,
    source: str | Path | Iterable[str] | None = None,
    target: str | Path | Iterable[str] | None = None,
    *,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    interventions: bool = False,
    keep: Keeper | None = None,
    progress: Progress | bool | None = None,
    about: dict[str, str] | None = None,
    words: bool = False,
    sentence: str | Iterable[str] | None = None,
    translation: str | Iterable[str] | None = None,
    **options: Any,
) -> AnalysisWithViews:
    """Fit components of all states on most of a corpus, and judge every head on the rest.

    ``analyse("Helsinki-NLP/opus-mt-en-de", sources, targets)`` needs nothing more. A decoder or an encoder
    alone (GPT-2, Llama, BERT and the like), loaded, reads one text: ``analyse(model, texts,
    tokenizer=tokenizer)``. A model of another form comes as a :class:`~attnlib.analysis.stream.Stream` of its
    passes, without a source.

    Args:
        model: the name or folder of a checkpoint that transformers loads, such a model itself, a
            :class:`~attnlib.report.pretrained.Checkpoint`, or a stream of passes.
        source: a file with a text a line, or a list of texts.
        target: their translations, likewise. Without a target an encoder–decoder writes it.
        heads: of every attention; all by default.
        method: of the components. ``"least_squares"`` fits constant, position and word together; shares are
            then about positions whose word was fitted on, and what a word that occurs at one position only
            shares with this position goes to the position. ``"means"`` is the method of the papers: a
            constant counts as temporal, and a word that was not fitted on as residual.
        every: hold out and judge every n-th batch. A corpus of fewer batches is fitted and judged on
            the same samples, and the analysis says so: its residuals are too small.
        interventions: also measure how far attention moves when a part of the states comes from another
            sample or is drawn anew, and how well shares predict that: ``analysis.tables.interventions()`` and
            ``analysis.tables.calibration()``, see :mod:`attnlib.analysis.interventions`. It takes 24 more
            attentions a batch in the second pass.
        keep: keeps the sums of both passes while they go on, such as
            :class:`~attnlib.report.resume.PartialSums`; without it nothing outlasts the process.
        progress: True for a bar with the time left, in notebooks too; or a function that is called after each
            batch with the stage, "fit" or "judge", and the number of batches read.
        about: what the report says of model and corpus.
        words: join the pieces of a tokenizer to words in the samples that are shown: attention is summed over
            the pieces of the word attended to, and averaged over those of the word that attends. Shares and
            all other numbers stay by piece. Samples then have no terms to explain.
        sentence: a sentence that the text need not have, or several. It is neither fitted on nor judged. They
            are the first samples of the analysis: ``analysis.explain(0, layer, head)`` has the terms of the
            first.
        translation: of each of these sentences; by default the model writes it.
        options: of the model: ``device``, ``tokenizer``, ``model_kwargs``, ``tokenizer_kwargs``,
            ``source_language``, ``target_language``, ``prefix`` and ``target_tokenizer``, see
            :meth:`~attnlib.report.pretrained.Checkpoint.load`. Options of its passes: ``kinds``, ``layers``,
            ``ignore_special``, ``batch_size``, ``longest``, ``probed`` and ``generation``, see
            :meth:`~attnlib.report.pretrained.Checkpoint.stream`. A list of fewer than 320 sentences is cut
            into ten batches by default.

    Returns:
        The analysis. A lexical probe that cannot be taken is warned of before the first pass.

    Raises:
        BadInput: nothing of the corpus can be judged; its order changes when it is read again; there is no
            such head; a model that is not a stream has no source, or cannot be loaded.

    Example:
        >>> from attnlib import zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> len(analysis.heads), analysis.method
        (4, 'least_squares')
    """
    shown = own_sentences(sentence, translation)
    if shown is not None:
        options["shown"] = shown
    stream, checkpoint, known = _stream_of(model, source, target, options=options)
    if words and checkpoint is None:
        raise BadInput("words=True joins the pieces of a tokenizer, and a Stream has none: leave it out")
    analysis = analyse_stream(
        stream,
        heads=heads,
        method=method,
        every=every,
        interventions=interventions,
        keep=keep,
        progress=progress,
        about=known | (about or {}),
    )
    if checkpoint is not None and words:
        analysis = with_words(analysis, checkpoint)
    elif checkpoint is not None:
        analysis = with_pieces(analysis, checkpoint)
    return AnalysisWithViews.of(analysis)


_OF_A_TEXT = ("source_language", "target_language", "prefix", "target_tokenizer")
_OF_LOADING = ("device", "model_kwargs", "tokenizer_kwargs")


def _stream_of(
    model: Any, source: Any, target: Any, *, options: dict[str, Any]
) -> tuple[Stream, Checkpoint | None, dict[str, str]]:
    """Return the passes of a model over a text, its checkpoint, and what a report says of both."""
    if isinstance(model, Stream):
        if source is not None or options:
            raise BadInput(
                "a Stream has its corpus and its options already: leave out source, target and "
                f"{', '.join(options) or 'options'}"
            )
        return in_one_order(model), None, {}
    if source is None:
        raise BadInput(
            f"{type(model).__name__} is given without a source; expected a model with source= and target=, "
            "or a Stream: Stream(adapter.trace, batches)"
        )
    text = text_of(source, target)
    checkpoint, options = checkpoint_of(model, options)
    if isinstance(text, Sentences):
        options.setdefault("batch_size", max(1, min(32, len(text.source) // 10)))
    if is_single_stack(checkpoint.model):
        stream = stream_of_sequences(checkpoint, text, **options)
    else:
        stream = checkpoint.stream(text, generate=text.target is None, **options)
    shown = options.get("shown")
    of_sentences = {}
    if shown is not None:
        of_sentences = about_own(shown, one_text=is_single_stack(checkpoint.model))
    return in_one_order(stream), checkpoint, checkpoint.about | text.about | of_sentences


def checkpoint_of(model: Any, options: Mapping[str, Any]) -> tuple[Checkpoint, dict[str, Any]]:
    """Return the model as a checkpoint, and the options that are not about it.

    Args:
        model: a name, a folder, a loaded model or a checkpoint.
        options: of loading it, of its text and of others.

    Returns:
        The checkpoint, loaded if need be, and the options that are left.

    Example:
        >>> from types import SimpleNamespace
        >>> checkpoint = Checkpoint("my-model", model=None, tokenizer=SimpleNamespace())
        >>> checkpoint_of(checkpoint, {"batch_size": 8})[1]
        {'batch_size': 8}
    """
    left = dict(options)
    if isinstance(model, Checkpoint):
        return model, left
    settings = _take(_OF_A_TEXT, left)
    if isinstance(model, str | Path):
        checkpoint = Checkpoint.load(str(model), **_take(_OF_LOADING, left), **settings)
    else:
        checkpoint = Checkpoint.of(model, left.pop("tokenizer", None), **settings)
    return checkpoint, left


def _take(names: Collection[str], options: dict[str, Any]) -> dict[str, Any]:
    """Remove the named options, and return those that were there."""
    return {name: options.pop(name) for name in names if name in options}
