"""Sentence pairs, one after another, with the cross-attention of a model and the words of its pieces."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.adapters.token_batch import LineBatch, line_batches
from attnlib.alignment.links import cross_attention
from attnlib.alignment.words import NO_WORD, Words, split_words, words_at
from attnlib.analysis.learned import SCORED, Learned
from attnlib.analysis.stream import Stream
from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.report.contents import Name
from attnlib.report.pieces import ignorable_ids
from attnlib.report.pretrained import Checkpoint, Generation, generation_arguments, number_of_batches
from attnlib.report.texts import Text
from attnlib.trace import SIDES, Trace

WordPair = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttendedPair(ShowsShapes):
    """A sentence pair that a model has read.

    Attributes:
        number: of its line, from 0.
        source: the words of the pieces that the encoder reads; None where pieces could not be joined to the
            words of the line.
        target: those of the pieces that are predicted.
        weights: cross-attention by layer, without padding.
        is_cut: whether one side is longer than what the model was given.
        n_pieces: number of pieces of each side; of none where ids are words.
        n_unknown: how many of them the tokenizer does not know.

    Example:
        >>> import torch
        >>> source, target = Words(("das", "Haus"), (0, 1)), Words(("house",), (0,))
        >>> AttendedPair(number=0, source=source, target=target, weights={0: torch.ones(1, 1, 2) / 2}).is_cut
        False
    """

    number: int
    source: Words | None
    target: Words | None
    weights: Mapping[int, Float[Tensor, "heads target source"]]
    is_cut: bool = False
    n_pieces: Mapping[str, int] = field(default_factory=dict)
    n_unknown: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Passes(Protocol):
    """A text that a model can read, any number of times.

    Example:
        >>> from attnlib import zoo
        >>> trained = zoo.load("one_to_one_AO")
        >>> passes: Passes = StreamPasses(stream=trained.stream(batch_size=2), name=trained.word)
        >>> passes.heads()
        {0: 1}
    """

    def heads(self) -> dict[int, int]:
        """Return how many heads each layer of cross-attention has.

        Returns:
            Numbers of heads by the number of the layer.
        """
        ...

    def words(self) -> list[WordPair] | None:
        """Return the words of each line.

        Returns:
            The words of source and target; None where they are known only when a model has read the text.
        """
        ...

    def n_batches(self) -> int | None:
        """Return how many batches there are.

        Returns:
            A number; None where it is not known.
        """
        ...

    def pairs(
        self, layers: Collection[int], after_batch: Callable[[int], None], learned: Learned | None = None
    ) -> Iterator[AttendedPair]:
        """Yield the sentence pairs, with the cross-attention of some layers.

        Args:
            layers: numbers of the layers.
            after_batch: is called after each batch with the number of batches read.
            learned: scores the predictions of the first batches; None scores nothing.

        Yields:
            Sentence pairs in the order of the text.
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckpointPasses:
    """The passes of a checkpoint over a text, whose targets it reads or, with ``generate``, writes.

    Attributes:
        checkpoint: a model with its tokenizer.
        text: sources, with their targets or without.
        batch_size: pairs at once.
        longest: pieces of a side; longer ones are cut off.
        generation: arguments of ``generate`` with which it writes them, see
            :meth:`~attnlib.report.pretrained.Checkpoint.write`.

    Raises:
        BadInput: there are such arguments and the targets are given, or there is no such argument.

    Example:
        >>> from types import SimpleNamespace
        >>> from attnlib.report.texts import Sentences
        >>> checkpoint = Checkpoint("my-model", model=None, tokenizer=SimpleNamespace())
        >>> passes = CheckpointPasses(checkpoint=checkpoint, text=Sentences(["das Haus"], ["the house"]))
        >>> passes.words(), passes.n_batches()
        ([(('das', 'Haus'), ('the', 'house'))], 1)
    """

    checkpoint: Checkpoint
    text: Text
    batch_size: int = 32
    longest: int = 128
    generation: Generation | str | None = None

    def __post_init__(self) -> None:
        if self.generation is not None and not self.generate:
            raise BadInput("generation is about targets that the model writes: leave it or the target out")
        generation_arguments(self.generation)

    @property
    def generate(self) -> bool:
        """True where the model writes the targets."""
        return self.text.target is None

    def heads(self) -> dict[int, int]:
        """Return how many heads each layer of cross-attention has.

        Returns:
            Numbers of heads by the number of the layer.
        """
        return {hooked.layer: hooked.heads for hooked in self.checkpoint.adapter(("cross",)).hooked}

    def words(self) -> list[WordPair] | None:
        """Return the words of each line.

        Returns:
            The words of source and target; None where the model writes the target.
        """
        return None if self.generate else self._words_of_lines()

    def sources(self) -> list[tuple[str, ...]]:
        """Return the words of each source.

        Returns:
            Words by line.
        """
        return [source for source, _ in self._words_of_lines()]

    def _words_of_lines(self) -> list[WordPair]:
        return [
            (tuple(split_words(source)), tuple(split_words(target))) for source, target in self.text.pairs()
        ]

    def n_batches(self) -> int | None:
        """Return how many batches there are.

        Returns:
            A number; lines without words are counted too, so fewer batches may be read. None for a size of
            batches that is refused later.
        """
        return number_of_batches(self.text, self.batch_size)

    def pairs(
        self, layers: Collection[int], after_batch: Callable[[int], None], learned: Learned | None = None
    ) -> Iterator[AttendedPair]:
        """Yield the sentence pairs, with the cross-attention of some layers.

        Args:
            layers: numbers of the layers.
            after_batch: is called after each batch with the number of batches read.
            learned: scores the predictions of the first batches; None scores nothing.

        Yields:
            Sentence pairs in the order of the text, without those that have an empty side.
        """
        adapter = self.checkpoint.adapter(("cross",), layers)
        batches = line_batches(
            self.checkpoint.tokenizer,
            self.text.pairs(),
            batch_size=self.batch_size,
            longest=self.longest,
            prefix=self.checkpoint.prefix,
            write=partial(self.checkpoint.write, generation=self.generation) if self.generate else None,
            positions=(self.checkpoint.positions["source"], self.checkpoint.positions["target"]),
        )
        for n_read, batch in enumerate(batches, start=1):
            trace = adapter.trace(batch.tokens)
            if learned is not None and n_read <= SCORED and not self.generate:
                with suppress(BadInput):  # a model without an output layer can be aligned all the same
                    learned.add(trace, adapter.logits(trace), self.checkpoint.never_written())
            yield from self._pairs_of(trace, batch)
            after_batch(n_read)

    def _pairs_of(self, trace: Trace, batch: LineBatch) -> Iterator[AttendedPair]:
        source_lines = self._source_lines(trace, batch)
        target_lines = self._target_lines(trace, batch)
        weights = cross_attention(trace)
        unknown = self.checkpoint.unknown()
        for row, number in enumerate(batch.numbers):
            source, target = source_lines[row], target_lines[row]
            source_words = self._words_of(source)
            target_words = self._words_of(target)
            yield AttendedPair(
                number=number,
                source=source_words,
                target=target_words,
                weights=_without_padding(weights, row, n_target=len(target.ids), n_source=len(source.ids)),
                is_cut=_lacks_pieces(source_words) or _lacks_pieces(target_words),
                n_pieces={"source": len(source.ids), "target": len(target.ids)},
                n_unknown={
                    "source": _count(source.ids, unknown["source"]),
                    "target": _count(target.ids, unknown["target"]),
                },
            )

    def _source_lines(self, trace: Trace, batch: LineBatch) -> list["_Line"]:
        texts = [source for source, _ in batch.pairs]
        ids = _valid_ids(trace.source_tokens, trace.source_mask)
        prefix = self.checkpoint.prefix
        spans = self._spans("source", [prefix + text for text in texts])
        lines = []
        for row, text in enumerate(texts):
            spans_of_row = None if spans is None else spans[row]
            lines.append(_Line(side="source", text=text, ids=ids[row], spans=spans_of_row, prefix=prefix))
        return lines

    def _target_lines(self, trace: Trace, batch: LineBatch) -> list["_Line"]:
        ids = _valid_ids(trace.target_outputs, trace.target_mask)
        if self.generate:
            return [_Line(side="target", text=None, ids=ids_of_row) for ids_of_row in ids]
        texts = [target for _, target in batch.pairs]
        spans = self._spans("target", texts)
        lines = []
        for row, text in enumerate(texts):
            spans_of_row = None if spans is None else spans[row]
            lines.append(_Line(side="target", text=text, ids=ids[row], spans=spans_of_row))
        return lines

    def _spans(self, side: str, lines: Sequence[str]) -> list[list[tuple[int, int]]] | None:
        """Return where in its line each piece is; None of a tokenizer that does not say."""
        tokenizer = self.checkpoint.tokenizer
        if not getattr(tokenizer, "is_fast", False):
            return None
        texts = {"text" if side == "source" else "text_target": list(lines)}
        cut = {"truncation": True, "max_length": self._longest(side)}
        return tokenizer(**texts, **cut, return_offsets_mapping=True)["offset_mapping"]

    def _words_of(self, line: "_Line") -> Words | None:
        """Return the words of a line and the word that each piece is of; None where the two do not fit."""
        if line.text is None:
            return self.checkpoint.join(line.side, line.ids)
        words = split_words(line.text)
        if line.spans is not None and len(line.spans) == len(line.ids):
            of_piece = words_at(line.text, _without_prefix(line))
            marks = self._marks[line.side]
            for index, token in enumerate(line.ids):
                _, end = line.spans[index]
                if token in marks or (line.prefix and end <= len(line.prefix)):
                    of_piece[index] = NO_WORD
            return Words(tuple(words), tuple(of_piece))
        joined = self.checkpoint.join(line.side, line.ids, text=line.prefix + line.text)
        return _of_known_words(
            joined, words, n_before=len(split_words(line.prefix)), is_cut=self._is_cut(line)
        )

    def _is_cut(self, line: "_Line") -> bool:
        return len(line.ids) >= self._longest(line.side)

    def _longest(self, side: str) -> int:
        """Return at how many pieces lines of a side are cut."""
        return int(min(self.longest, self.checkpoint.positions[side]))

    @cached_property
    def _marks(self) -> dict[str, frozenset[int]]:
        """Ids of special pieces by side."""
        return {side: frozenset(ignorable_ids(self.checkpoint.tokenizer, side)) for side in SIDES}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Line:
    """One side of a sentence pair: its text, if it is known, and the pieces that were made of it.

    ``spans`` says where each piece is in the text with what is put before it.
    """

    side: str
    text: str | None
    ids: list[int]
    spans: list[tuple[int, int]] | None = None
    prefix: str = ""


def _valid_ids(ids: Int[Tensor, "batch length"], mask: Bool[Tensor, "batch length"]) -> list[list[int]]:
    """Return the ids of each row without padding, which is at its right."""
    lengths = mask.sum(1).tolist()
    return [row[:length] for row, length in zip(ids.tolist(), lengths, strict=True)]


def _without_padding(
    weights: Mapping[int, Float[Tensor, "batch heads target source"]],
    row: int,
    *,
    n_target: int,
    n_source: int,
) -> dict[int, Float[Tensor, "heads target source"]]:
    """Return the attention of one row of a batch by layer."""
    return {layer: of_layer[row, :, :n_target, :n_source] for layer, of_layer in weights.items()}


def _count(ids: Sequence[int], unknown: int | None) -> int:
    return 0 if unknown is None else ids.count(unknown)


def _lacks_pieces(words: Words | None) -> bool:
    """Return True if the model was not given all words of a line."""
    return words is not None and not all(words.has_pieces())


def _without_prefix(line: _Line) -> list[tuple[int, int]]:
    """Return where each piece is in the line itself."""
    assert line.spans is not None
    before = len(line.prefix)
    return [(max(start - before, 0), max(end - before, 0)) for start, end in line.spans]


def _of_known_words(joined: Words, words: Sequence[str], *, n_before: int, is_cut: bool) -> Words | None:
    """Return pieces with the words of a line, in the order of the words that their marks make of them.

    Args:
        joined: what marks make of the pieces, words before the line included.
        words: of the line.
        n_before: words that were put before the line.
        is_cut: whether the last words of the line have no pieces.

    Returns:
        None where marks make more words of the pieces than the line has, or fewer.
    """
    n_joined = len(joined.words) - n_before
    if not (n_joined == len(words) or (is_cut and 0 <= n_joined < len(words))):
        return None
    of_piece = (max(number - n_before, NO_WORD) for number in joined.of_piece)
    return Words(tuple(words), tuple(of_piece))


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamPasses:
    """The passes of a stream, in which every token is a word.

    Attributes:
        stream: of a model with cross-attention.
        name: the word of an id.
        special: ids that are not words, such as end marks, by side.

    Example:
        >>> from attnlib import zoo
        >>> trained = zoo.load("one_to_one_AO")
        >>> passes = StreamPasses(stream=trained.stream(batch_size=2), name=trained.word)
        >>> pair = next(passes.pairs([0], after_batch=lambda n_read: None))
        >>> len(pair.source.words) == pair.weights[0].shape[-1]
        True
    """

    stream: Stream[Any]
    name: Name
    special: Mapping[str, Collection[int]] = field(default_factory=dict)

    def heads(self) -> dict[int, int]:
        """Return how many heads each layer of cross-attention has, by the first batch.

        Returns:
            Numbers of heads by the number of the layer.

        Raises:
            BadInput: a stream without batches.
        """
        batch = self.stream.first()
        if batch is None:
            raise BadInput("the stream has no batches: there is nothing to align")
        return {attention.layer: attention.heads for attention in self.stream.trace(batch).layers("cross")}

    def words(self) -> None:
        """Return nothing: words are known when a batch is read."""

    def n_batches(self) -> int | None:
        """Return how many batches there are.

        Returns:
            A number; None where the stream does not know.
        """
        return self.stream.n_batches

    def pairs(
        self, layers: Collection[int], after_batch: Callable[[int], None], learned: Learned | None = None
    ) -> Iterator[AttendedPair]:
        """Yield the sentence pairs, with the cross-attention of some layers.

        Args:
            layers: numbers of the layers.
            after_batch: is called after each batch with the number of batches read.
            learned: scores the predictions of the first batches; None scores nothing.

        Yields:
            Sentence pairs in the order of the stream.
        """
        number = 0
        for n_read, batch in self.stream.numbered():
            trace = self.stream.trace(batch).validated()
            if learned is not None and n_read < SCORED and self.stream.logits is not None:
                learned.add(trace, self.stream.logits(trace), self.stream.never_written)
            weights = {layer: heads for layer, heads in cross_attention(trace).items() if layer in layers}
            for row in range(len(trace.source_mask)):
                n_source, n_target = int(trace.source_mask[row].sum()), int(trace.target_mask[row].sum())
                ignored = None if trace.ignored_source is None else trace.ignored_source[row, :n_source]
                yield AttendedPair(
                    number=number,
                    source=self._words_of("source", trace.source_tokens[row, :n_source], ignored),
                    target=self._words_of("target", trace.target_outputs[row, :n_target]),
                    weights=_without_padding(weights, row, n_target=n_target, n_source=n_source),
                )
                number += 1
            after_batch(n_read + 1)

    def _words_of(self, side: str, tokens: Tensor, ignored: Tensor | None = None) -> Words:
        """Return each token as a word, except special and ignored ones."""
        special = self.special.get(side, ())
        is_ignored = [False] * len(tokens) if ignored is None else ignored.tolist()
        words, of_piece = [], []
        for token, ignore in zip(tokens.tolist(), is_ignored, strict=True):
            if ignore or token in special:
                of_piece.append(NO_WORD)
                continue
            of_piece.append(len(words))
            words.append(self.name(side, token))
        return Words(tuple(words), tuple(of_piece))
