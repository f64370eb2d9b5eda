"""Read the words of a text and, with the attention of a model, the links of its sentence pairs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import ceil
from typing import Literal

from attnlib.alignment.links import MEAN, HeadChoice, LinkedPair, Shift, best_sources
from attnlib.alignment.score_table import FITTED_ON, Lexicon
from attnlib.analysis.learned import Learned, not_learned
from attnlib.errors import BadInput
from attnlib.progress import AfterBatch, Follower
from attnlib.report.attended_pairs import CheckpointPasses, Passes, WordPair

Direction = Literal["forward", "reverse"]
MOST_UNKNOWN = 0.1  # share of the pieces of a side beyond which a note says so
# The words of every source, and of every target.
WordsOfSides = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadPairs:
    """Pairs read of a text.

    Attributes:
        pairs: those that have links.
        n_unjoined: number of pairs without links, whose pieces could not be joined to words.
        n_cut: number of pairs whose last words have no links.
        is_whole: whether the whole text was read.
        unknown: share of the pieces that the tokenizer does not know, by side.
        learned: how well the model predicts the first of them, see
            :meth:`~attnlib.analysis.learned.Learned.result`; empty where it writes them.

    Example:
        >>> ReadPairs(pairs=(), n_unjoined=1).notes(n_lines=3)[0]
        '2 of 3 lines have an empty side, and no links'
    """

    pairs: tuple[LinkedPair, ...]
    n_unjoined: int = 0
    n_cut: int = 0
    is_whole: bool = True
    unknown: Mapping[str, float] = field(default_factory=dict)
    learned: dict[str, int | float] = field(default_factory=dict)

    def notes(self, n_lines: int) -> list[str]:
        """Return what a reader must know of the text.

        Args:
            n_lines: how many lines it has.

        Returns:
            A sentence for each thing that is missing or cut off.
        """
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
        if warning := not_learned(self.learned):
            notes.append(warning)
        return notes


@dataclass(frozen=True, eq=False, kw_only=True)
class TextToLink:
    """A text that a model reads in one direction.

    Attributes:
        passes: of the model over the text.
        shift: the decoder step of a target word.
        direction: "forward" or "reverse".
        follower: says how far it is.

    Example:
        >>> from attnlib import zoo
        >>> from attnlib.alignment.links import choices_of
        >>> from attnlib.progress import following
        >>> from attnlib.report.attended_pairs import StreamPasses
        >>> trained = zoo.load("one_to_one_AO")
        >>> passes = StreamPasses(stream=trained.stream(), name=trained.word)
        >>> with following(progress=None) as follower:
        ...     text = TextToLink(passes=passes, shift="write", direction="forward", follower=follower)
        ...     read = text.read(choices_of(passes.heads(), layer=None, head=None), most=10)
        >>> len(read.pairs), read.is_whole
        (10, False)
    """

    passes: Passes
    shift: Shift
    direction: Direction
    follower: Follower

    @cached_property
    def words(self) -> list[WordPair] | None:
        """The words of each line; None where they are known only when the model has read it."""
        return self.passes.words()

    def read(self, choices: tuple[HeadChoice, ...], *, most: int | None = None) -> ReadPairs:
        """Return the links of each choice in the text, or in its first pairs.

        Args:
            choices: heads and means over heads.
            most: how many pairs are read at most; all by default.

        Returns:
            The pairs with their links.

        Raises:
            BadInput: no pair can be linked.
        """
        after_batch = self._after_batch(most)
        learned = Learned()
        pairs = []
        n_unjoined = n_cut = 0
        n_pieces: Counter[str] = Counter()
        n_unknown: Counter[str] = Counter()
        for pair in islice(self.passes.pairs(self._layers(choices), after_batch, learned), most):
            if pair.source is None or pair.target is None:
                n_unjoined += 1
                continue
            n_cut += pair.is_cut
            n_pieces.update(pair.n_pieces)
            n_unknown.update(pair.n_unknown)
            best = best_sources(pair.weights, pair.target, pair.source, choices=choices, shift=self.shift)
            pairs.append(LinkedPair(pair.number, pair.source.words, pair.target.words, best=best))
        if not pairs:
            raise BadInput(
                "no sentence pair can be aligned: every line has an empty side, or pieces that make other "
                "words"
            )
        is_whole = most is None or len(pairs) + n_unjoined < most
        unknown = {side: n_unknown[side] / number for side, number in n_pieces.items() if number}
        return ReadPairs(
            pairs=tuple(pairs),
            n_unjoined=n_unjoined,
            n_cut=n_cut,
            is_whole=is_whole,
            unknown=unknown,
            learned=learned.result(),
        )

    def _after_batch(self, most: int | None) -> AfterBatch:
        """Return what is called after each batch, of the first pairs to choose a head, or of all to align."""
        n_batches = self.passes.n_batches()
        if self.direction == "reverse":
            return self.follower.stage("reverse", title="the other direction", n_batches=n_batches)
        if most is None:
            return self.follower.stage("align", title="aligning", n_batches=n_batches)
        if n_batches is not None and isinstance(self.passes, CheckpointPasses):
            n_batches = min(n_batches, ceil(most / self.passes.batch_size))
        return self.follower.stage("choose", title="choosing a head", n_batches=n_batches)

    def _layers(self, choices: tuple[HeadChoice, ...]) -> list[int]:
        """Return the layers that choices are of."""
        numbers = {choice.layer for choice in choices}
        if MEAN in numbers:
            return sorted(self.passes.heads())
        return sorted(number for number in numbers if isinstance(number, int))

    def lexicon(self, read: ReadPairs) -> Lexicon:
        """Return IBM Model 1 of the text, or of those of its pairs that were read where a model writes it.

        Args:
            read: pairs of the text.

        Returns:
            A model of both directions.
        """
        if self.words is None:
            known = [(pair.source, pair.target) for pair in read.pairs]
        else:
            known = [pair for pair in self.words if all(pair)]
        return Lexicon(known[:FITTED_ON])

    def words_of_lines(self, read: ReadPairs) -> WordsOfSides:
        """Return the words of every source and target; of a line without links what is known.

        Args:
            read: pairs of the text.

        Returns:
            The words of all sources, and those of all targets.
        """
        if self.words is not None:
            return words_of_sides(self.words)
        target_of = {pair.number: pair.target for pair in read.pairs}
        if isinstance(self.passes, CheckpointPasses):
            source = tuple(self.passes.sources())
        else:
            source = tuple(pair.source for pair in read.pairs)  # of a stream, which leaves none out
        return source, tuple(target_of.get(number, ()) for number in range(len(source)))


def words_of_sides(pairs: Iterable[WordPair]) -> WordsOfSides:
    """Return the words of all sources, and those of all targets.

    Args:
        pairs: the words of each source and its target.

    Returns:
        Two tuples with an entry for each pair.

    Example:
        >>> words_of_sides([(("the", "house"), ("la", "maison")), (("two",), ("deux",))])[0]
        (('the', 'house'), ('two',))
    """
    pairs = list(pairs)
    sources = tuple(source for source, _ in pairs)
    targets = tuple(target for _, target in pairs)
    return sources, targets
