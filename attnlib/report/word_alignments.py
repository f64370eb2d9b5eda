"""Word alignments of a text by a model's cross-attention, in one call."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, Literal, get_args

from attnlib.adapters.single_stack import is_single_stack
from attnlib.alignment.alignments import Alignments
from attnlib.alignment.both_directions import Symmetrisation, symmetrise
from attnlib.alignment.gold import Gold, GoldFile, gold_of_text, read_gold
from attnlib.alignment.links import (
    MEAN,
    HeadChoice,
    LinkedPair,
    Number,
    Shift,
    all_choices,
    best_sources,
    choices_of,
)
from attnlib.alignment.score_table import (
    FITTED_ON,
    IBM_MODEL_1,
    Lexicon,
    best_choice,
    diagonal_links,
    row_of_links,
    row_of_other_half,
    rows_of_heads,
    score_row,
    sums_by_choice,
)
from attnlib.alignment.scores import LinkSums
from attnlib.analysis.stream import Stream
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.progress import AfterBatch, Follower, Progress, following
from attnlib.report.attended_pairs import CheckpointPasses, Passes, StreamPasses, WordPair
from attnlib.report.contents import Name, id_as_word
from attnlib.report.one_call import checkpoint_of
from attnlib.report.pretrained import Checkpoint
from attnlib.report.texts import Sentences, text_of
from attnlib.trace import SIDES

Direction = Literal["forward", "reverse"]

# Sentence pairs, at most, on which the best head is looked for where there are no gold links.
CHOSEN_ON = 1_000
MOST_UNKNOWN = 0.1  # share of the pieces of a side beyond which a note says so
SHOWN_SYMMETRISED: tuple[Symmetrisation, ...] = ("intersection", "union", "grow-diag-final-and")
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
        text = _Text(passes=passes, shift=shift, direction="forward", follower=follower)
        forward = _linked(text, layer, head, file=file)
        if reverse is None:
            return _alignments([forward], method)
        assert isinstance(passes, CheckpointPasses)  # a stream with a reverse model was refused
        other = _reverse_passes(reverse, forward, passes, settings=reverse_settings, prefix=reverse_prefix)
        text = replace(text, passes=other, direction="reverse")
        backward = _linked(text, layer, head, file=_flipped(file, forward))
    return _alignments([forward, backward], method)


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
    model: Any, forward: "_Linked", passes: CheckpointPasses, *, settings: dict[str, Any], prefix: str
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


def _flipped(file: GoldFile | None, forward: "_Linked") -> GoldFile | None:
    if file is None:
        return None
    return GoldFile(
        tuple(
            forward.gold[number].flipped() if number in forward.gold else None
            for number in range(len(forward))
        )
    )


# -- links of one direction --


@dataclass(frozen=True, eq=False, kw_only=True)
class _Linked:
    """The links of one direction.

    Attributes:
        direction: "forward" or "reverse".
        read: the pairs that have links, by each of ``choices``.
        source: words of every line.
        target: words of every line of the translation.
        choices: heads and means over heads.
        among: the choices that ``layer`` and ``head`` admit.
        chosen: the one whose links count.
        gold: links by the number of the line.
        lexicon: IBM Model 1 of the text, where there are gold links.
        notes: why the head was chosen, and what has no links.
    """

    direction: Direction
    read: "_Read"
    source: tuple[tuple[str, ...], ...]
    target: tuple[tuple[str, ...], ...]
    choices: tuple[HeadChoice, ...]
    among: tuple[HeadChoice, ...]
    chosen: HeadChoice
    gold: dict[int, Gold] = field(default_factory=dict)
    lexicon: Lexicon | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.source)

    @property
    def pairs(self) -> tuple[LinkedPair, ...]:
        """The pairs that have links."""
        return self.read.pairs

    @property
    def left_out(self) -> frozenset[int]:
        """Numbers of the lines that have no links."""
        return frozenset(range(len(self))) - {pair.number for pair in self.pairs}


def _linked(text: "_Text", layer: Number | None, head: Number | None, *, file: GoldFile | None) -> _Linked:
    """Return the links of one direction by the head that is given, or else by the best one."""
    among = choices_of(text.passes.heads(), layer, head)
    if file is not None:
        return _linked_by_gold(text, among, file)
    if len(among) == 1:
        return _linked_by_only(text, among[0])
    return _linked_by_agreement(text, among)


def _linked_by_gold(text: "_Text", among: tuple[HeadChoice, ...], file: GoldFile) -> _Linked:
    """Return the links of every head; the chosen one is the best by gold links."""
    if text.words is not None:
        gold_of_text(file, *_sides(text.words))  # before the model reads anything
    choices = all_choices(text.passes.heads())
    read = text.read(choices)
    source, target = text.words_of_lines(read)
    of_text, n_outside = gold_of_text(file, source, target)
    gold = {number: links for number, links in enumerate(of_text) if links is not None}
    lexicon = text.lexicon(read)
    chosen = best_choice(sums_by_choice(read.pairs, gold, choices), among)
    notes = [f"{IBM_MODEL_1} was fitted on {lexicon.n_pairs:,} sentence pairs of this text"]
    if len(among) > 1:
        notes.append(
            f"{chosen} was chosen by the gold links themselves: its error rate is lower than it will be on "
            "other text, for which see the row “best head of the other half”"
        )
    if n_outside:
        notes.append(f"{n_outside:,} gold links lead outside their sentences and are left out")
    return _Linked(
        direction=text.direction,
        read=read,
        source=source,
        target=target,
        choices=choices,
        among=among,
        chosen=chosen,
        gold=gold,
        lexicon=lexicon,
        notes=(*notes, *read.notes(len(source))),
    )


def _linked_by_agreement(text: "_Text", among: tuple[HeadChoice, ...]) -> _Linked:
    """Return the links of the head that agrees most with IBM Model 1 on the first pairs of a text."""
    first = text.read(among, most=CHOSEN_ON)
    lexicon = text.lexicon(first)
    links = {pair.number: Gold(frozenset(lexicon.links(pair.source, pair.target))) for pair in first.pairs}
    best = best_choice(sums_by_choice(first.pairs, links, among), among)
    why = (
        f"{best} was chosen because its links agree most with those of {IBM_MODEL_1}, fitted on "
        f"{lexicon.n_pairs:,} sentence pairs of this text and compared on {len(first.pairs):,}"
    )
    if first.is_whole:
        linked = _of_read(text, first, choices=among, chosen=best)
    else:
        linked = _linked_by_only(text, best)
    return replace(linked, notes=(why, *linked.notes))


def _linked_by_only(text: "_Text", choice: HeadChoice) -> _Linked:
    """Return the links of one head."""
    return _of_read(text, text.read((choice,)), choices=(choice,), chosen=choice)


def _of_read(text: "_Text", read: "_Read", *, choices: tuple[HeadChoice, ...], chosen: HeadChoice) -> _Linked:
    """Return the links of a chosen head in a text without gold links."""
    source, target = text.words_of_lines(read)
    return _Linked(
        direction=text.direction,
        read=read,
        source=source,
        target=target,
        choices=choices,
        among=choices,
        chosen=chosen,
        notes=tuple(read.notes(len(source))),
    )


# -- reading --


@dataclass(frozen=True, eq=False, kw_only=True)
class _Read:
    """Pairs read of a text.

    Attributes:
        pairs: those that have links.
        n_unjoined: number of pairs without links, whose pieces could not be joined to words.
        n_cut: number of pairs whose last words have no links.
        is_whole: whether the whole text was read.
        unknown: share of the pieces that the tokenizer does not know, by side.
    """

    pairs: tuple[LinkedPair, ...]
    n_unjoined: int = 0
    n_cut: int = 0
    is_whole: bool = True
    unknown: Mapping[str, float] = field(default_factory=dict)

    def notes(self, n_lines: int) -> list[str]:
        """Return what a reader must know of a text with this number of lines."""
        notes = []
        n_empty = n_lines - len(self.pairs) - self.n_unjoined
        if n_empty:
            notes.append(f"{n_empty:,} of {n_lines:,} lines have an empty side, and no links")
        if self.n_unjoined:
            notes.append(
                f"{self.n_unjoined:,} of {n_lines:,} lines have no links, because the tokenizer's marks make "
                "other words of their pieces than white space does; they are not scored either"
            )
        if self.n_cut:
            notes.append(
                f"{self.n_cut:,} of {n_lines:,} lines were cut off, and their last words have no links: take "
                "a larger longest"
            )
        for side, share in self.unknown.items():
            if share > MOST_UNKNOWN:
                notes.append(
                    f"{share:.0%} of the {side} pieces are unknown to the tokenizer, so that links rest on "
                    "little: is it the language that the model reads there, written as in its training?"
                )
        return notes


@dataclass(frozen=True, eq=False, kw_only=True)
class _Text:
    """A text that a model reads in one direction.

    Attributes:
        passes: of the model over the text.
        shift: the decoder step of a target word.
        direction: "forward" or "reverse".
        follower: says how far it is.
    """

    passes: Passes
    shift: Shift
    direction: Direction
    follower: Follower

    @cached_property
    def words(self) -> list[WordPair] | None:
        """The words of each line; None where they are known only when the model has read it."""
        return self.passes.words()

    def read(self, choices: tuple[HeadChoice, ...], *, most: int | None = None) -> _Read:
        """Return the links of each choice in the text, or in its first pairs.

        Raises:
            BadInput: no pair can be linked.
        """
        after_batch = self._after_batch(is_choice=most is not None)
        pairs = []
        n_unjoined = n_cut = 0
        n_pieces: Counter[str] = Counter()
        n_unknown: Counter[str] = Counter()
        for pair in islice(self.passes.pairs(self._layers(choices), after_batch), most):
            if pair.source is None or pair.target is None:
                n_unjoined += 1
                continue
            n_cut += pair.is_cut
            n_pieces.update(pair.n_pieces)
            n_unknown.update(pair.n_unknown)
            best = best_sources(pair.weights, pair.target, pair.source, choices=choices, shift=self.shift)
            pairs.append(LinkedPair(pair.number, pair.source.words, pair.target.words, best))
        if not pairs:
            raise BadInput(
                "no sentence pair can be aligned: every line has an empty side, or pieces that make other "
                "words"
            )
        is_whole = most is None or len(pairs) + n_unjoined < most
        unknown = {side: n_unknown[side] / number for side, number in n_pieces.items() if number}
        return _Read(
            pairs=tuple(pairs), n_unjoined=n_unjoined, n_cut=n_cut, is_whole=is_whole, unknown=unknown
        )

    def _after_batch(self, *, is_choice: bool) -> AfterBatch:
        """Return what is called after each batch that is read to choose a head, or to align."""
        n_batches = self.passes.n_batches()
        if self.direction == "reverse":
            return self.follower.stage("reverse", title="the other direction", n_batches=n_batches)
        if not is_choice:
            return self.follower.stage("align", title="aligning", n_batches=n_batches)
        if n_batches is not None and isinstance(self.passes, CheckpointPasses):
            n_batches = min(n_batches, ceil(CHOSEN_ON / self.passes.batch_size))
        return self.follower.stage("choose", title="choosing a head", n_batches=n_batches)

    def _layers(self, choices: tuple[HeadChoice, ...]) -> list[int]:
        """Return the layers that choices are of."""
        numbers = {choice.layer for choice in choices}
        if MEAN in numbers:
            return sorted(self.passes.heads())
        return sorted(number for number in numbers if isinstance(number, int))

    def lexicon(self, read: _Read) -> Lexicon:
        """Return IBM Model 1 of the text, or of those of its pairs that were read where a model writes it."""
        if self.words is None:
            known = [(pair.source, pair.target) for pair in read.pairs]
        else:
            known = [pair for pair in self.words if all(pair)]
        return Lexicon(known[:FITTED_ON])

    def words_of_lines(self, read: _Read) -> "_Sides":
        """Return the words of every source and target; of a line without links what is known."""
        if self.words is not None:
            return _sides(self.words)
        target_of = {pair.number: pair.target for pair in read.pairs}
        if isinstance(self.passes, CheckpointPasses):
            source = tuple(self.passes.sources())
        else:
            source = tuple(pair.source for pair in read.pairs)  # of a stream, which leaves none out
        return source, tuple(target_of.get(number, ()) for number in range(len(source)))


_Sides = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]  # words of sources, and of targets


def _sides(pairs: Iterable[WordPair]) -> _Sides:
    pairs = list(pairs)
    return tuple(source for source, _ in pairs), tuple(target for _, target in pairs)


# -- alignments and scores --


def _alignments(directions: list[_Linked], method: Symmetrisation) -> Alignments:
    """Return the alignments of one direction, or of both symmetrised, with all scores."""
    by_direction = [_of_direction(linked) for linked in directions]
    rows = []
    for linked in directions:
        rows += _rows_of_direction(linked, is_result=len(directions) == 1)
    if len(directions) == 1:
        (alignments,) = by_direction
        return replace(alignments, scores=tuple(rows))
    forward, reverse = by_direction
    rows += _rows_of_both(directions, by_direction, method)
    return replace(forward.symmetrised(reverse, method), scores=tuple(rows))


def _of_direction(linked: _Linked) -> Alignments:
    links: list[tuple] = [()] * len(linked)
    weights: list[tuple] = [()] * len(linked)
    number_of_chosen = linked.choices.index(linked.chosen)
    for pair in linked.pairs:
        made = pair.best.links(number_of_chosen)
        attention = pair.best.weights(number_of_chosen)
        in_order = sorted(zip(made, attention, strict=True))
        links[pair.number] = tuple(link for link, _ in in_order)
        weights[pair.number] = tuple(weight for _, weight in in_order)
    return Alignments(
        links=tuple(links),
        weights=tuple(weights),
        source=linked.source,
        target=linked.target,
        method=str(linked.chosen),
        notes=linked.notes,
        left_out=linked.left_out,
    )


def _rows_of_direction(linked: _Linked, *, is_result: bool) -> list[dict[str, Any]]:
    """Return the scores of all heads, of the best of either half, of IBM Model 1 and of the diagonal."""
    if not linked.gold or linked.lexicon is None:
        return []
    sums = sums_by_choice(linked.pairs, linked.gold, linked.choices)
    rows = rows_of_heads(linked.direction, sums, linked.chosen)
    if not is_result:
        rows = [row | {"chosen": False} for row in rows]
    other_half = row_of_other_half(
        linked.direction, linked.pairs, linked.gold, choices=linked.choices, among=linked.among
    )
    if other_half is not None:
        rows.append(other_half)
    for name, links in ((IBM_MODEL_1, linked.lexicon.links), ("diagonal", diagonal_links)):
        rows.append(row_of_links(linked.direction, name, linked.pairs, gold=linked.gold, links=links))
    return rows


def _rows_of_both(
    directions: list[_Linked], by_direction: list[Alignments], method: Symmetrisation
) -> list[dict[str, Any]]:
    """Return the scores of what is symmetrised, of attention and of IBM Model 1."""
    forward, reverse = directions
    if not forward.gold or forward.lexicon is None or reverse.lexicon is None:
        return []
    methods = dict.fromkeys((*SHOWN_SYMMETRISED, method))
    rows = []
    for name in methods:
        both = by_direction[0].symmetrised(by_direction[1], name)
        sums = LinkSums()
        of_lexicons = LinkSums()
        for number, gold in forward.gold.items():
            if number in both.left_out:
                continue
            source, target = forward.source[number], forward.target[number]
            sums.update(both.links[number], gold)
            forward_links = forward.lexicon.links(source, target)
            reverse_links = reverse.lexicon.links(target, source)  # (target word, source word)
            turned = [(source_word, target_word) for target_word, source_word in reverse_links]
            of_lexicons.update(symmetrise(forward_links, turned, name), gold)
        rows.append(score_row("both", name, sums, chosen=name == method))
        rows.append(score_row("both", f"{IBM_MODEL_1}, {name}", of_lexicons))
    return rows
