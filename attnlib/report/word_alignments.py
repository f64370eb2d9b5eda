"""Word alignments of a text by a model's cross-attention, in one call."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from attnlib.adapters.single_stack import is_single_stack
from attnlib.alignment.alignments import Alignments
from attnlib.alignment.both_directions import Symmetrisation
from attnlib.alignment.gold import Gold, GoldFile, read_gold
from attnlib.alignment.links import Number, Shift
from attnlib.analysis.stream import Stream
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.progress import Progress, following
from attnlib.report.alignments_of_text import alignments_of
from attnlib.report.attended_pairs import CheckpointPasses, Passes, StreamPasses
from attnlib.report.contents import Name, id_as_word
from attnlib.report.linked_text import LinkedText, linked_text
from attnlib.report.one_call import checkpoint_of
from attnlib.report.pretrained import Checkpoint
from attnlib.report.text_to_link import TextToLink
from attnlib.report.texts import Sentences, text_of
from attnlib.trace import SIDES

_OF_PASSES = ("batch_size", "longest", "generation")
_OF_STREAM = ("name", "special")


def align(
    model: Stream | Checkpoint | str | Path | Any,
    source: str | Path | Iterable[str] | None = None,
    target: str | Path | Iterable[str] | None = None,
    *,
    layer: Number | None = None,
    head: Number | None = None,
    shift: Shift = "write",
    gold: str | Path | Iterable[str | Gold | None] | None = None,
    gold_first: int | None = None,
    reverse: Checkpoint | str | Path | Any = None,
    reverse_prefix: str = "",
    method: Symmetrisation = "grow-diag-final-and",
    progress: Progress | bool | None = None,
    **options: Any,
) -> Alignments:
    """Link the words of sentence pairs by the cross-attention of an encoder–decoder.

    Each target word is linked with the source word that it attends to most. Words are what is between white
    space in the two texts. Attention is summed over the pieces of a source word and averaged over those of a
    target word; special pieces, such as end marks, are of no word.

    **Which head.** Without ``layer`` and ``head`` it is the best one: by gold links, where there are any, or
    else the one that agrees most with IBM Model 1, fitted on the same text. The error rate of the head that
    is best by gold links is too low an estimate for other text; the row "best head of the other half" of
    ``scores`` has a fair one.

    Args:
        model: the name or folder of a checkpoint that transformers loads, such a model itself, a
            :class:`~attnlib.report.pretrained.Checkpoint`; or a :class:`~attnlib.analysis.stream.Stream` of
            passes, in which every token is a word.
        source: a file, a text a line, or a list of texts.
        target: their translations, likewise, which the model is made to read (forced decoding). Without a
            target it writes them itself, greedily or by ``generation``.
        layer: number of a layer, from 0; "mean" takes the mean over all heads of all layers.
        head: number of a head, from 0; "mean" takes the mean over the heads of a layer.
        shift: the decoder step whose attention is that of a target word: "write", the one that predicts it
            (the default, as in every report of this library), or "read", the next one, which reads it, see
            :mod:`attnlib.alignment.links`.
        gold: gold links, see :func:`~attnlib.alignment.gold.read_gold`. They make ``scores``.
        gold_first: the number that gold links count words from.
        reverse: a model of the other direction. The links of both are then symmetrised. ``layer``, ``head``
            and ``shift`` hold for it as well, languages exchanged.
        reverse_prefix: put before every source of ``reverse``.
        method: of symmetrising, see :func:`~attnlib.alignment.both_directions.symmetrise`.
        progress: True for a bar, or a function of what is done ("choose", "align", "reverse") and how many
            batches were read.
        options: of the model: ``device``, ``tokenizer``, ``model_kwargs``, ``tokenizer_kwargs``,
            ``source_language``, ``target_language`` and ``prefix``. Its passes have ``batch_size`` (32) and
            ``longest`` (128 pieces of a side; more are cut off) and ``generation``, how the model writes, see
            :meth:`~attnlib.report.pretrained.Checkpoint.write`. A stream has ``name``, the word of an id,
            and ``special``, ids that are not words, or such by side.

    Returns:
        The alignments, a line for each line of the text: ``alignments.to_pharaoh()``, ``.to_frame()``,
        ``.scores_to_frame()``.

    Raises:
        BadInput: a model without cross-attention; texts of different lengths; gold links of another text, or
            of a text that the model writes; no such layer or head; a stream that is given a text.
        UnknownName: no such shift or method.

    Example:
        >>> from attnlib import zoo
        >>> trained = zoo.load("one_to_one_AO")  # a word for a word, in the same order; 2 is the end mark
        >>> alignments = align(trained.stream(), name=trained.word, special=[2])
        >>> alignments.to_pharaoh()[:15]
        '0-0 1-1 2-2 3-3'
    """
    check_known("shift", shift, get_args(Shift))
    check_known("method", method, get_args(Symmetrisation))
    passes, reverse_settings = _passes_of(model, source, target, options=options)
    if reverse is not None and isinstance(passes, StreamPasses):
        raise BadInput(
            "a Stream has no reverse model: align a Stream of the other direction as well, and join the two "
            "by alignments.symmetrised(alignments_of_the_other)"
        )
    writes = isinstance(passes, CheckpointPasses) and passes.generate
    if writes and gold is not None:
        raise BadInput("gold links are of given targets, and the model writes its own: give target as well")
    file = None if gold is None else read_gold(gold, first=gold_first)
    with following(progress=progress) as follower:
        text = TextToLink(passes=passes, shift=shift, direction="forward", follower=follower)
        forward = linked_text(text, layer, head, file=file)
        if reverse is None:
            return alignments_of([forward], method)
        assert isinstance(passes, CheckpointPasses)  # a stream with a reverse model was refused
        other = _reverse_passes(reverse, forward, passes, settings=reverse_settings, prefix=reverse_prefix)
        text = replace(text, passes=other, direction="reverse")
        backward = linked_text(text, layer, head, file=_flipped(file, forward))
    return alignments_of([forward, backward], method)


# -- what is given --


def _passes_of(
    model: Any, source: Any, target: Any, *, options: dict[str, Any]
) -> tuple[Passes, dict[str, Any]]:
    """Return the passes of a model over a text, and the settings that the reverse model shares."""
    if isinstance(model, Stream):
        if source is not None or set(options) - set(_OF_STREAM):
            raise BadInput(
                "a Stream has its corpus and its options already: leave out source, target and all options "
                f"but {' and '.join(_OF_STREAM)}"
            )
        special = options.get("special", ())
        if not isinstance(special, Mapping):
            special = dict.fromkeys(SIDES, as_tuple(special))
        name: Name = options.get("name") or id_as_word
        return StreamPasses(stream=model, name=name, special=special), {}
    if source is None:
        raise BadInput("source is missing: give the text that the model translates")
    text = text_of(source, target)
    text.checked()
    checkpoint, left = checkpoint_of(model, options)
    _require_two_texts(checkpoint)
    unknown = set(left) - set(_OF_PASSES)
    if unknown:
        raise BadInput(f"align has no option {', '.join(sorted(unknown))}")
    loading = {name: options[name] for name in ("device", "model_kwargs") if name in options}
    return CheckpointPasses(checkpoint=checkpoint, text=text, **left), loading


def _require_two_texts(checkpoint: Checkpoint) -> None:
    if is_single_stack(checkpoint.model):
        raise BadInput(
            f"{type(checkpoint.model).__name__} reads one text and has no cross-attention: expected an "
            "encoder–decoder such as T5, BART, mBART or Marian"
        )


def _reverse_passes(
    model: Any, forward: LinkedText, passes: CheckpointPasses, *, settings: dict[str, Any], prefix: str
) -> CheckpointPasses:
    """Return the passes of the model of the other direction, over the two texts exchanged."""
    of_forward = passes.checkpoint
    if not isinstance(model, Checkpoint):
        settings = settings | {
            "source_language": of_forward.target_language,
            "target_language": of_forward.source_language,
            "prefix": prefix,
        }
        is_name = isinstance(model, str | Path)
        model, _ = checkpoint_of(
            model, settings if is_name else _without(settings, ("device", "model_kwargs"))
        )
    _require_two_texts(model)
    sources = [" ".join(words) for words in forward.source]
    targets = [" ".join(words) for words in forward.target]
    return replace(passes, checkpoint=model, text=Sentences(targets, sources), generation=None)


def _without(settings: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def _flipped(file: GoldFile | None, forward: LinkedText) -> GoldFile | None:
    if file is None:
        return None
    return GoldFile(
        tuple(
            forward.gold[number].flipped() if number in forward.gold else None
            for number in range(len(forward))
        )
    )
